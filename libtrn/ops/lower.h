/* SPDX-License-Identifier: Apache-2.0
 *
 * What a device does not take whole: composites as regions of primitives.
 */
#ifndef TRN_LIBTRN_LOWER_H
#define TRN_LIBTRN_LOWER_H

#include "libtrn/ops/trace.h"

/* A composite node's body: inputs are the node's, scalars 0 .. n_scalars - 1
 * and draw 0 are its own; the other scalars are literals.  Its primitives are
 * checked against `target` (NULL: the context's device). */
trn_status trn__body_trace(trn_context *c, const trn_graph *g, int32_t node,
                           const trn__target *target, trn_graph **out);

/* A graph in which every node is one that the device takes: the composites that
 * it does not are replaced by their bodies, primitives that it does not are
 * placed on the host where the device can do that and the context allows it. */
trn_graph *trn__graph_lowered(trn_context *c, const trn_graph *g);

/* The same for another device than the context's, which captures.  Of `table`
 * name, caps, supports and op_limit are looked at. */
trn_graph *trn__graph_lowered_for(trn_context *c, const trn_graph *g,
                                  const trn_backend *table, trn_device *device);

/* Raises if nobody can do this call: the device lacks it, it is no composite,
 * and the host is not allowed to. */
trn_status trn__check_placement(const trn__call *k);

#endif
