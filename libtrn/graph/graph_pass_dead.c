/* SPDX-License-Identifier: Apache-2.0
 *
 * Dead nodes: those from which no output of the graph can be reached.
 *
 * Nodes that check values stay, whoever reads them: an error that one of them
 * may raise would be raised by an eager run.
 */
#include "libtrn/graph/graph_pass.h"

/* Marks the nodes that make the inputs of live node q. */
static void mark_makers(const trn_graph *g, int32_t q, int32_t *live)
{
    const trn__graph_node *n = &g->nodes[q];
    for (int i = 0; i < n->n_in; i++) {
        int32_t maker = g->values[n->in[i]].node;
        if (maker >= 0)
            live[maker] = 1;
    }
}

trn_status trn__graph_dead(trn_graph *g)
{
    int32_t *live = trn__graph_numbers(g, g->n_nodes, 0);
    if (live == NULL)
        return TRN_ERR_NOMEM;
    for (int32_t i = 0; i < g->n_outputs; i++) {
        int32_t maker = g->values[g->outputs[i].value].node;
        if (maker >= 0)
            live[maker] = 1;
    }
    for (int32_t q = g->n_nodes - 1; q >= 0; q--) {
        if (!g->nodes[q].dead && trn__graph_node_checks(g, q))
            live[q] = 1;
        if (live[q])
            mark_makers(g, q, live);
    }
    int32_t n = 0;
    for (int32_t q = 0; q < g->n_nodes; q++) {
        if (live[q])
            live[n++] = q; /* n <= q: the list grows behind the marks */
    }
    trn_status status = trn__graph_reorder(g, live, n);
    trn__free(g->c, live);
    return status;
}
