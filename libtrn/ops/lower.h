/* SPDX-License-Identifier: Apache-2.0
 *
 * What a device does not take whole: composites as regions of primitives.
 */
#ifndef TRN_LIBTRN_LOWER_H
#define TRN_LIBTRN_LOWER_H

#include "libtrn/ops/trace.h"

/* A composite node's body: inputs are the node's, scalars 0 .. n_scalars - 1
 * and draw 0 are its own; what follows are constants of the decomposition. */
typedef struct trn__body {
    trn_graph *graph;
    double *constants; /* of scalars from the node's n_scalars on */
    int32_t n_constants;
} trn__body;

trn_status trn__body_trace(trn_context *c, const trn_graph *g, int32_t node,
                           trn__body *out);
void trn__body_free(trn_context *c, trn__body *body);

/* A graph in which every node is one that the device takes: the composites that
 * it does not are replaced by their bodies, primitives that it does not are
 * placed on the host where the device can do that and the context allows it.
 * Scalars from g->n_scalars on are constants, in *constants (to be freed). */
trn_graph *trn__graph_lowered(trn_context *c, const trn_graph *g,
                              double **constants);

#endif
