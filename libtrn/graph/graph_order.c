/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph whose order changes: reads, insertion, begin and end.
 */
#include <string.h>

#include "libtrn/graph/graph_order.h"

/* ---- reads ---- */

static void add_read(trn__order *o, int32_t q, int i)
{
    int32_t v = o->g->nodes[q].in[i];
    int32_t read = q * TRN__MAX_IN + i, older = o->reads[v];
    o->at[q].newer[i] = -1;
    o->at[q].older[i] = older;
    if (older >= 0)
        o->at[older / TRN__MAX_IN].newer[older % TRN__MAX_IN] = read;
    o->reads[v] = read;
}

static void drop_read(trn__order *o, int32_t q, int i)
{
    int32_t newer = o->at[q].newer[i], older = o->at[q].older[i];
    if (newer >= 0)
        o->at[newer / TRN__MAX_IN].older[newer % TRN__MAX_IN] = older;
    else
        o->reads[o->g->nodes[q].in[i]] = older;
    if (older >= 0)
        o->at[older / TRN__MAX_IN].newer[older % TRN__MAX_IN] = newer;
}

void trn__order_rewire(trn__order *o, int32_t q, int i, int32_t v)
{
    if (o->g->nodes[q].in[i] >= 0)
        drop_read(o, q, i);
    o->g->nodes[q].in[i] = v;
    if (v >= 0)
        add_read(o, q, i);
}

trn__order_walk trn__order_readers(const trn__order *o, int32_t v)
{
    return (trn__order_walk){.read = o->reads[v], .waiting = -1};
}

int32_t trn__order_next(trn__order *o, trn__order_walk *w)
{
    while (w->read < 0) {
        if (w->waiting < 0)
            return -1;
        w->read = o->reads[o->g->nodes[w->waiting].out[0]];
        w->waiting = o->at[w->waiting].waiting;
    }
    int32_t q = w->read / TRN__MAX_IN;
    w->read = o->at[q].older[w->read % TRN__MAX_IN];
    o->g->work++;
    if (trn__graph_is_view(&o->g->nodes[q])) {
        o->at[q].waiting = w->waiting;
        w->waiting = q;
    }
    return q;
}

/* ---- insertion ---- */

/* `array` with room for n elements: itself, or a wider copy in its place; NULL
 * with the error raised. */
static void *widened(trn_context *c, void *array, int32_t n, int32_t *room,
                     size_t element)
{
    if (n <= *room)
        return array;
    size_t bytes = 2 * (size_t)n * element;
    void *wider = trn__alloc(c, bytes);
    if (wider == NULL) {
        trn__fail_memory(c, "graph", bytes);
        return NULL;
    }
    if (*room > 0)
        memcpy(wider, array, (size_t)*room * element);
    trn__free(c, array);
    *room = 2 * n;
    return wider;
}

/* Room for one node and its values more than the graph has. */
static bool make_room(trn__order *o)
{
    trn_graph *g = o->g;
    void *nodes =
        widened(g->c, o->at, g->n_nodes + 1, &o->room_nodes, sizeof *o->at);
    if (nodes == NULL)
        return false;
    o->at = nodes;
    void *values = widened(g->c, o->reads, g->n_values + TRN__MAX_OUT,
                           &o->room_values, sizeof *o->reads);
    if (values == NULL)
        return false;
    o->reads = values;
    return trn__line_room(&o->line, g->n_nodes + 1);
}

static void enter(trn__order *o, int32_t q)
{
    const trn__graph_node *n = &o->g->nodes[q];
    o->at[q].round = 0;
    for (int i = 0; i < n->n_out; i++)
        o->reads[n->out[i]] = -1;
    for (int i = 0; i < n->n_in; i++)
        add_read(o, q, i);
}

int32_t trn__order_insert(trn__order *o, int32_t p, const trn__graph_node *node,
                          int n_out, const trn_arg *out)
{
    if (!make_room(o))
        return -1;
    int32_t v = trn__graph_add_node(o->g, node, n_out, out);
    if (v < 0)
        return -1;
    int32_t q = o->g->n_nodes - 1;
    enter(o, q);
    trn__line_insert(&o->line, p, q);
    return v;
}

int32_t trn__order_insert_copy(trn__order *o, int32_t p, int32_t v)
{
    trn__graph_node node;
    memset(&node, 0, sizeof node);
    node.op = TRN_OP_copy;
    node.in[0] = v;
    trn_arg out = o->g->values[v].arg; /* the array may move */
    return trn__order_insert(o, p, &node, 1, &out);
}

int32_t *trn__order_sorted(trn__order *o, int32_t first, int32_t n)
{
    int32_t *nodes = trn__graph_numbers(o->g, n, -1);
    if (nodes == NULL)
        return NULL;
    for (int32_t k = 0, q = first; k < n; k++, q = o->at[q].chain)
        nodes[k] = q;
    if (trn__line_sort(&o->line, nodes, n))
        return nodes;
    trn__free(o->g->c, nodes);
    return NULL;
}

/* ---- begin and end ---- */

trn_status trn__order_open(trn__order *o, trn_graph *g)
{
    *o = (trn__order){.g = g};
    TRN_TRY(trn__line_open(&o->line, g, g->n_nodes));
    if (!make_room(o))
        return TRN_ERR_NOMEM;
    for (int32_t i = 0; i < g->n_inputs; i++)
        o->reads[g->inputs[i]] = -1;
    for (int32_t q = 0; q < g->n_nodes; q++)
        enter(o, q);
    return TRN_OK;
}

trn_status trn__order_apply(trn__order *o)
{
    trn_graph *g = o->g;
    int32_t *order = trn__graph_numbers(g, g->n_nodes, -1);
    if (order == NULL)
        return TRN_ERR_NOMEM;
    int32_t n = 0;
    for (int32_t q = o->line.first; q >= 0; q = o->line.at[q].next)
        order[n++] = q;
    trn_status status = trn__graph_reorder(g, order, n);
    trn__free(g->c, order);
    return status;
}

void trn__order_close(trn__order *o)
{
    trn__line_close(&o->line);
    trn__free(o->g->c, o->at);
    trn__free(o->g->c, o->reads);
}
