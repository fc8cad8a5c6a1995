/* SPDX-License-Identifier: Apache-2.0
 *
 * Common subexpressions: a node that repeats an earlier one gives way to it.
 *
 * Equal are op, attributes, inputs and the numbers of the scalars.  Never
 * merged: RANDOM rows (each draw is its own), UPDATE rows, check_finite, and
 * nodes whose output takes over an input's memory.
 */
#include <string.h>

#include "libtrn/graph/graph_pass.h"

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ (h >> 29);
}

/* For this pass only; the bucket decides nothing but the time. */
static uint64_t node_key(const trn__graph_node *n)
{
    uint64_t h = mix(n->op, n->n_in);
    for (int i = 0; i < n->n_in; i++)
        h = mix(h, (uint64_t)n->in[i]);
    for (int i = 0; i < n->n_scalars; i++)
        h = mix(h, (uint64_t)n->scalar[i]);
    for (int i = 0; i < TRN__MAX_ATTRS / 8; i++)
        h = mix(h, n->attrs[i]);
    return h;
}

static bool same_node(const trn_graph *g, const trn__graph_node *a,
                      const trn__graph_node *b)
{
    size_t in_bytes = a->n_in * sizeof a->in[0];
    size_t scalar_bytes = a->n_scalars * sizeof a->scalar[0];
    if (a->op != b->op || a->n_out != b->n_out ||
        memcmp(a->in, b->in, in_bytes) != 0 ||
        memcmp(a->scalar, b->scalar, scalar_bytes) != 0 ||
        memcmp(a->attrs, b->attrs, a->attrs_size) != 0)
        return false;
    for (int i = 0; i < a->n_out; i++) {
        const trn_arg *x = &g->values[a->out[i]].arg;
        const trn_arg *y = &g->values[b->out[i]].arg;
        if (x->dtype != y->dtype || !trn__same_shape(x, y))
            return false;
    }
    return true;
}

static bool may_merge(const trn__graph_node *n, const int32_t *pinned)
{
    trn__graph_class cls = trn__graph_op_of(n)->cls;
    if (cls == TRN__GRAPH_RANDOM || cls == TRN__GRAPH_UPDATE ||
        n->op == TRN_OP_check_finite)
        return false;
    for (int i = 0; i < n->n_out; i++) {
        if (pinned[n->out[i]])
            return false;
    }
    return true;
}

/* The place of node q in the table: of its equal, or a free one. */
static int32_t find(const trn_graph *g, const int32_t *table, int32_t mask,
                    int32_t q)
{
    int32_t at = (int32_t)(node_key(&g->nodes[q]) & (uint64_t)mask);
    while (table[at] >= 0 && !same_node(g, &g->nodes[table[at]], &g->nodes[q]))
        at = (at + 1) & mask;
    return at;
}

/* same[v]: the value that stands for v from now on. */
static void merge(trn_graph *g, int32_t *table, int32_t mask,
                  const int32_t *pinned, int32_t *same)
{
    for (int32_t v = 0; v < g->n_values; v++)
        same[v] = v;
    for (int32_t q = 0; q < g->n_nodes; q++) {
        trn__graph_node *n = &g->nodes[q];
        for (int i = 0; i < n->n_in; i++)
            n->in[i] = same[n->in[i]];
        if (!may_merge(n, pinned))
            continue;
        int32_t at = find(g, table, mask, q);
        if (table[at] < 0) {
            table[at] = q;
            continue;
        }
        n->dead = true;
        for (int i = 0; i < n->n_out; i++)
            same[n->out[i]] = g->nodes[table[at]].out[i];
    }
    for (int32_t i = 0; i < g->n_outputs; i++)
        g->outputs[i].value = same[g->outputs[i].value];
}

/* Literals of equal bits are one scalar: the first of them.  first[k]: that of
 * literal k. */
static void find_equal_literals(const trn_graph *g, int32_t *table,
                                int32_t mask, int32_t *first)
{
    for (int32_t k = 0; k < g->n_literals; k++) {
        const double *value = &g->literals[k].value;
        uint64_t bits;
        memcpy(&bits, value, sizeof bits);
        int32_t at = (int32_t)(mix(1, bits) & (uint64_t)mask);
        while (table[at] >= 0 &&
               memcmp(&g->literals[table[at]].value, value, sizeof *value) != 0)
            at = (at + 1) & mask;
        if (table[at] < 0)
            table[at] = k;
        first[k] = table[at];
    }
}

static trn_status merge_literals(trn_graph *g)
{
    int32_t size = 16;
    while (size < 2 * g->n_literals)
        size *= 2;
    int32_t *table = trn__graph_numbers(g, size, -1);
    int32_t *first = trn__graph_numbers(g, g->n_literals, -1);
    if (table != NULL && first != NULL)
        find_equal_literals(g, table, size - 1, first);
    for (int32_t q = 0; table != NULL && first != NULL && q < g->n_nodes; q++) {
        trn__graph_node *n = &g->nodes[q];
        for (int i = 0; i < n->n_scalars; i++) {
            const trn__graph_literal *l =
                trn__graph_literal_of(g, n->scalar[i]);
            if (l != NULL)
                n->scalar[i] = g->literals[first[l - g->literals]].scalar;
        }
    }
    trn__free(g->c, table);
    trn__free(g->c, first);
    return trn__pending(g->c);
}

trn_status trn__graph_cse(trn_graph *g)
{
    TRN_TRY(merge_literals(g));
    int32_t size = 16;
    while (size < 2 * g->n_nodes)
        size *= 2;
    int32_t *table = trn__graph_numbers(g, size, -1);
    int32_t *pinned = trn__graph_numbers(g, g->n_values, 0);
    int32_t *same = trn__graph_numbers(g, g->n_values, -1);
    if (table != NULL && pinned != NULL && same != NULL) {
        for (int32_t i = 0; i < g->n_outputs; i++) {
            if (g->outputs[i].alias >= 0)
                pinned[g->outputs[i].value] = 1;
        }
        merge(g, table, size - 1, pinned, same);
        trn__graph_layout(g);
    }
    trn__free(g->c, table);
    trn__free(g->c, pinned);
    trn__free(g->c, same);
    return trn__pending(g->c);
}
