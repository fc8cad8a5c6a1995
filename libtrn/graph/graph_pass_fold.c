/* SPDX-License-Identifier: Apache-2.0
 *
 * Repeated writes: an assign that overwrites what another write has just made,
 * and nobody has read, overwrites the older memory instead.
 *
 * The earlier write is then dead.  A write that makes several values stays, as
 * it is needed for the others.
 */
#include "libtrn/graph/graph_pass.h"

static void count_uses(trn_graph *g)
{
    for (int32_t v = 0; v < g->n_values; v++)
        g->values[v].n_uses = 0;
    for (int32_t q = 0; q < g->n_nodes; q++) {
        const trn__graph_node *n = &g->nodes[q];
        for (int i = 0; i < n->n_in; i++)
            g->values[n->in[i]].n_uses++;
    }
    for (int32_t i = 0; i < g->n_outputs; i++)
        g->values[g->outputs[i].value].n_uses++;
}

trn_status trn__graph_fold(trn_graph *g)
{
    count_uses(g);
    for (int32_t q = 0; q < g->n_nodes; q++) {
        trn__graph_node *n = &g->nodes[q];
        if (n->op != TRN_OP_assign)
            continue;
        const trn__graph_value *old = &g->values[n->in[0]];
        if (old->n_uses != 1 || old->node < 0)
            continue;
        const trn__graph_node *earlier = &g->nodes[old->node];
        if (!trn__graph_is_update(earlier) || earlier->n_out != 1)
            continue;
        int32_t older = earlier->in[trn__graph_written(earlier, n->in[0])];
        if (trn__same_shape(&g->values[older].arg, &old->arg))
            n->in[0] = older;
    }
    return TRN_OK;
}
