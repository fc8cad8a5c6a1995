/* SPDX-License-Identifier: Apache-2.0
 *
 * A step as HLO text, on whatever device it ran: what the core has of
 * backends/hlo/ beside its devices.
 */
#ifndef TRN_LIBTRN_HLO_BRIDGE_H
#define TRN_LIBTRN_HLO_BRIDGE_H

#include "libtrn/graph/graph.h"
#include "trn/step.h"

/* From libtrn/ops: a graph fitted to that device. */
typedef trn_graph *trn__lower_fn(trn_context *c, const trn_graph *g,
                                 const trn_backend *table, trn_device *device);

/* A raw graph as HLO text for the profile of that name; raises. */
trn_status trn__hlo_print_raw(trn_context *c, const trn_graph *raw,
                              const char *profile, trn__lower_fn *lower,
                              trn_put_fn put, void *user);

#endif
