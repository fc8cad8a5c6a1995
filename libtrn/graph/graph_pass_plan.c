/* SPDX-License-Identifier: Apache-2.0
 *
 * Liveness and the memory plan: a place in one arena for every value that has
 * no other.
 *
 * No place of their own have inputs, views (they lie in their base), state (in
 * the input's memory), outputs (buffers of their own) and what only a fusion
 * group sees.  A write in place keeps the memory of what it overwrites: both
 * are one slot.  A slot lives from the node that makes it to the last that
 * reads it; a group counts as one moment, as its nodes run side by side.
 *
 * Slots are placed from the largest to the smallest, each into the tightest gap
 * between those placed before that live at the same time.
 */
#include <stdlib.h>

#include "libtrn/graph/graph_pass.h"
#include "libtrn/graph/graph_places.h"

#define ARENA_ALIGN 64

typedef struct slot {
    int32_t value; /* the first that lies in it */
    int32_t from, to;
    int64_t bytes, at;
} slot;

void trn__graph_uses(trn_graph *g)
{
    for (int32_t v = 0; v < g->n_values; v++) {
        g->values[v].n_uses = 0;
        g->values[v].last_use = -1;
    }
    for (int32_t q = 0; q < g->n_nodes; q++) {
        const trn__graph_node *n = &g->nodes[q];
        for (int i = 0; i < n->n_in; i++) {
            trn__graph_value *v = &g->values[n->in[i]];
            v->n_uses++;
            g->values[v->base].last_use = q;
        }
    }
    for (int32_t v = 0; v < g->n_values; v++)
        g->values[v].last_use = g->values[g->values[v].base].last_use;
}

static bool in_arena(const trn_graph *g, int32_t v)
{
    const trn__graph_value *value = &g->values[v];
    if (value->node < 0 || value->base != v || value->state >= 0 ||
        value->output >= 0)
        return false;
    const trn__graph_node *n = &g->nodes[value->node];
    for (int i = 0; i < n->n_out; i++) {
        if (n->out[i] == v)
            return !((n->fused_only >> i) & 1u);
    }
    return false;
}

/* The first and the last node of q's group. */
static int32_t group_end(const trn_graph *g, int32_t q, int32_t step)
{
    int32_t group = g->nodes[q].group;
    while (group >= 0 && q + step >= 0 && q + step < g->n_nodes &&
           g->nodes[q + step].group == group)
        q += step;
    return q;
}

/* Fills in slots, and slot_of each value in the arena; how many slots. */
static int32_t find_slots(const trn_graph *g, slot *slots, int32_t *slot_of)
{
    int32_t n_slots = 0;
    for (int32_t v = 0; v < g->n_values; v++) {
        if (!in_arena(g, v))
            continue;
        int32_t q = g->values[v].node;
        int32_t last = g->values[v].last_use;
        int32_t to = group_end(g, last < q ? q : last, 1);
        const trn__graph_node *n = &g->nodes[q];
        if (trn__graph_is_update(n)) {
            int32_t old = n->in[trn__graph_written(n, v)];
            slot_of[v] = slot_of[g->values[old].base];
            slot *s = &slots[slot_of[v]];
            s->to = to > s->to ? to : s->to;
            continue;
        }
        int64_t bytes = trn__graph_value_bytes(g, v);
        slot_of[v] = n_slots;
        slots[n_slots++] = (slot){
            .value = v,
            .from = group_end(g, q, -1),
            .to = to,
            .bytes = (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN,
        };
    }
    return n_slots;
}

/* Largest first; equal ones by value, which makes the plan unique. */
static int by_size(const void *a, const void *b)
{
    const slot *x = *(const slot *const *)a, *y = *(const slot *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

/* For each node how many nodes at or before it begin a slot's life. */
static void count_times(const trn_graph *g, const slot *slots, int32_t n,
                        int32_t *times)
{
    for (int32_t i = 0; i < n; i++)
        times[slots[i].from] = 1;
    for (int32_t q = 1; q < g->n_nodes; q++)
        times[q] += times[q - 1];
}

/* order: by size.  Only nodes that begin a life count as times: two slots that
 * live side by side do so at one of them. */
static trn_status place_slots(trn__places *p, slot *const *order, int32_t n,
                              const int32_t *times)
{
    int64_t peak = 0;
    for (int32_t k = 0; k < n; k++) {
        slot *s = order[k];
        if (s->bytes == 0)
            continue;
        int64_t at = trn__places_take(p, times[s->from] - 1, times[s->to] - 1,
                                      s->bytes / ARENA_ALIGN);
        if (at < 0)
            return TRN_ERR_NOMEM;
        s->at = at * ARENA_ALIGN;
        if (s->at + s->bytes > peak)
            peak = s->at + s->bytes;
    }
    p->g->arena_bytes = (uint64_t)peak;
    return TRN_OK;
}

static trn_status plan(trn_graph *g, slot *slots, slot **order, int32_t *times,
                       int32_t *slot_of)
{
    trn__places places;
    int64_t units = 0;
    int32_t n = find_slots(g, slots, slot_of);
    for (int32_t i = 0; i < n; i++) {
        order[i] = &slots[i];
        units += slots[i].bytes / ARENA_ALIGN;
    }
    qsort(order, (size_t)n, sizeof(slot *), by_size);
    count_times(g, slots, n, times);
    trn_status status = trn__places_open(&places, g, units);
    if (status == TRN_OK)
        status = place_slots(&places, order, n, times);
    trn__places_close(&places);
    for (int32_t v = 0; v < g->n_values; v++)
        g->values[v].arena_at = slot_of[v] < 0 ? -1 : slots[slot_of[v]].at;
    return status;
}

trn_status trn__graph_plan(trn_graph *g)
{
    size_t n = (size_t)g->n_values + 1;
    trn__graph_uses(g);
    slot *slots = trn__alloc(g->c, n * sizeof *slots);
    slot **order = trn__alloc(g->c, n * sizeof(slot *));
    int32_t *times = trn__graph_numbers(g, g->n_nodes, 0);
    int32_t *slot_of = trn__graph_numbers(g, g->n_values, -1);
    if (slots != NULL && order != NULL && times != NULL && slot_of != NULL)
        plan(g, slots, order, times, slot_of);
    else
        trn__fail_memory(g->c, "graph", n * sizeof *slots);
    trn__free(g->c, slots);
    trn__free(g->c, order);
    trn__free(g->c, times);
    trn__free(g->c, slot_of);
    return trn__pending(g->c);
}
