/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads before writes: an UPDATE node moves behind those that read what it
 * overwrites, where they do not need its results.  This saves the copy of the
 * old value that they would read otherwise.
 */
#include <string.h>

#include "libtrn/graph/graph_pass.h"

/* Does node n read the old memory of a state that `update` overwrites? */
static bool reads_old_state(const trn_graph *g, const trn__graph_node *n,
                            const trn__graph_node *update)
{
    for (int k = 0; k < update->n_out; k++) {
        int32_t w = update->out[k];
        if (g->values[w].state < 0)
            continue;
        int32_t old = update->in[trn__graph_written(update, w)];
        for (int i = 0; i < n->n_in; i++) {
            if (g->values[n->in[i]].base == g->values[old].base)
                return true;
        }
    }
    return false;
}

/* Marks who needs node p, directly or not; gives the last node that reads what
 * p overwrites and does not need it, or -1. */
static int32_t last_free_reader(const trn_graph *g, int32_t p, int32_t *needs)
{
    int32_t last = -1;
    needs[p] = 1;
    for (int32_t q = p + 1; q < g->n_nodes; q++) {
        const trn__graph_node *n = &g->nodes[q];
        for (int i = 0; i < n->n_in; i++) {
            int32_t maker = g->values[n->in[i]].node;
            needs[q] |= maker >= p && needs[maker];
        }
        if (!needs[q] && reads_old_state(g, n, &g->nodes[p]))
            last = q;
    }
    return last;
}

/* Nodes p .. last: first those that do not need p, then p and those that do. */
static void divide(trn_graph *g, int32_t p, int32_t last, const int32_t *needs,
                   trn__graph_node *later)
{
    int32_t at = p, n_later = 0;
    for (int32_t q = p; q <= last; q++) {
        if (needs[q])
            later[n_later++] = g->nodes[q];
        else
            g->nodes[at++] = g->nodes[q];
    }
    memcpy(&g->nodes[at], later, (size_t)n_later * sizeof *later);
    for (int32_t q = p; q <= last; q++) {
        for (int i = 0; i < g->nodes[q].n_out; i++)
            g->values[g->nodes[q].out[i]].node = q;
    }
}

trn_status trn__graph_sink(trn_graph *g, int32_t p, bool *moved)
{
    trn_context *c = g->c;
    size_t bytes = (size_t)(g->n_nodes - p) * sizeof *g->nodes;
    int32_t *needs = trn__graph_numbers(g, g->n_nodes, 0);
    trn__graph_node *later = trn__alloc(c, bytes);
    *moved = false;
    if (needs == NULL || later == NULL) {
        trn__free(c, needs);
        trn__free(c, later);
        return trn__fail_memory(c, "graph", bytes);
    }
    int32_t last = last_free_reader(g, p, needs);
    if (last >= 0) {
        divide(g, p, last, needs, later);
        *moved = true;
    }
    trn__free(c, needs);
    trn__free(c, later);
    return TRN_OK;
}
