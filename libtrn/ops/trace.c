/* SPDX-License-Identifier: Apache-2.0
 *
 * The lists of a trace: entries, effects, references; beginning and ending.
 */
#include <string.h>

#include "libtrn/ops/trace.h"
#include "libtrn/ops/trace_parts.h"

trn_status trn__grow(trn_context *c, void **list, int32_t *room, int32_t n,
                     size_t element)
{
    if (n <= *room)
        return TRN_OK;
    int32_t more = *room == 0 ? 64 : *room;
    while (more < n) {
        if (more > INT32_MAX / 2)
            return trn__fail(c, TRN_ERR_UNSUPPORTED,
                             "capture: a step of more than %d calls", more);
        more *= 2;
    }
    void *bigger = trn__alloc(c, (size_t)more * element);
    if (bigger == NULL)
        return trn__fail_memory(c, "capture", (uint64_t)more * element);
    if (*room > 0)
        memcpy(bigger, *list, (size_t)*room * element);
    memset((char *)bigger + (size_t)*room * element, 0,
           (size_t)(more - *room) * element);
    trn__free(c, *list);
    *list = bigger;
    *room = more;
    return TRN_OK;
}

#define GROW(c, list, room, n)                                         \
    do {                                                               \
        void *list_ = (list);                                          \
        TRN_TRY(trn__grow((c), &list_, &(room), (n), sizeof *(list))); \
        (list) = list_;                                                \
    } while (0)

static trn_status add_held(trn_context *c, trn_tensor *t)
{
    trn__capture *p = c->capture;
    GROW(c, p->held, p->room_held, p->n_held + 1);
    p->held[p->n_held++] = trn__ref(t);
    return TRN_OK;
}

trn_status trn__trace_hold(trn_context *c, trn_tensor *t)
{
    return add_held(c, t);
}

trn_status trn__trace_mark(trn_tensor *t)
{
    trn_context *c = t->c;
    trn__capture *p = c->capture;
    if (p == NULL || !p->on || t->mark_step == p->serial)
        return TRN_OK;
    GROW(c, p->marked, p->room_marked, p->n_marked + 1);
    TRN_TRY(add_held(c, t));
    t->mark_step = p->serial;
    t->mark = p->n_marked;
    p->marked[p->n_marked++] = t;
    return TRN_OK;
}

trn_status trn__trace_room(trn_context *c, const trn_graph *g)
{
    trn__capture *p = c->capture;
    GROW(c, p->tensors, p->room_tensors, g->n_values + 8);
    GROW(c, p->scalars, p->room_scalars, g->n_scalars + TRN__MAX_VALUES);
    GROW(c, p->draws, p->room_draws, g->n_draws + 1);
    GROW(c, p->bound, p->room_bound, g->n_inputs + 1);
    GROW(c, p->used, p->room_used, p->trace->n_entries + 1);
    return TRN_OK;
}

static trn__trace *trace_new(trn_context *c)
{
    trn__trace *t = trn__alloc_zeroed(c, sizeof *t);
    if (t == NULL) {
        trn__fail_memory(c, "capture", sizeof *t);
        return NULL;
    }
    t->graph = trn__graph_new(c);
    if (t->graph == NULL) {
        trn__free(c, t);
        return NULL;
    }
    return t;
}

static void unlink_trace(trn__capture *p, trn__trace *t)
{
    *(t->prev == NULL ? &p->first : &t->prev->next) = t->next;
    *(t->next == NULL ? &p->last : &t->next->prev) = t->prev;
    t->prev = t->next = NULL;
    p->n_traces--;
}

void trn__trace_to_front(trn_context *c, trn__trace *t)
{
    trn__capture *p = c->capture;
    if (p->first == t)
        return;
    if (t->prev != NULL || p->last == t)
        unlink_trace(p, t);
    t->next = p->first;
    *(p->first == NULL ? &p->last : &p->first->prev) = t;
    p->first = t;
    p->n_traces++;
}

void trn__entry_take(trn__trace *t, int32_t i, trn_tensor *handle)
{
    trn_tensor *old = t->entries[i].handle;
    t->entries[i].handle = handle;
    if (handle != NULL) {
        handle->owner = t;
        handle->owner_entry = i;
    }
    if (old != NULL) {
        old->owner = NULL;
        trn__unref(old);
    }
}

void trn__entry_let_go(trn_tensor *t)
{
    if (t->owner != NULL)
        trn__entry_take(t->owner, t->owner_entry, NULL);
}

int32_t trn__handle_entry(trn_context *c, const trn_tensor *t)
{
    return t->owner == c->capture->trace ? t->owner_entry : -1;
}

static void drop_handles(trn__trace *t)
{
    for (int32_t i = t->n_entries; i-- > 0;) /* newest first */
        trn__entry_take(t, i, NULL);
}

void trn__trace_free(trn_context *c, trn__trace *t)
{
    trn__capture *p = c->capture;
    if (t == NULL)
        return;
    if (p->first == t || t->prev != NULL)
        unlink_trace(p, t);
    drop_handles(t);
    trn__graph_free(t->graph);
    trn__free(c, t->entries);
    trn__free(c, t->effects);
    trn__free(c, t);
}

trn__entry *trn__trace_add_entry(trn_context *c, uint8_t kind)
{
    trn__capture *p = c->capture;
    trn__trace *t = p->trace;
    void *list = t->entries;
    if (trn__grow(c, &list, &t->room_entries, t->n_entries + 1,
                  sizeof *t->entries) != TRN_OK)
        return NULL;
    t->entries = list;
    trn__entry *e = &t->entries[t->n_entries++];
    *e = (trn__entry){
        .kind = kind,
        .nested = p->depth > 0,
        .node = -1,
        .in = -1,
        .out = -1,
        .n_inputs = t->graph->n_inputs,
    };
    p->at = t->n_entries;
    return e;
}

trn_status trn__trace_add_effect(trn_context *c, trn__effect effect)
{
    trn__trace *t = c->capture->trace;
    void *list = t->effects;
    TRN_TRY(trn__grow(c, &list, &t->room_effects, t->n_effects + 1,
                      sizeof *t->effects));
    t->effects = list;
    t->effects[t->n_effects++] = effect;
    return TRN_OK;
}

void trn__capture_free(trn_context *c, trn__capture *p)
{
    trn__free(c, p->bound);
    trn__free(c, p->tensors);
    trn__free(c, p->used);
    trn__free(c, p->held);
    trn__free(c, p->marked);
    trn__free(c, p->scalars);
    trn__free(c, p->draws);
    trn__free(c, p);
}

/* ---- hashes of prefixes ---- */

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ (h >> 29);
}

/* An entry's part of the hash: what matching compares. */
void trn__trace_hash_entry(trn__trace *t, int32_t i)
{
    trn__entry *e = &t->entries[i];
    uint64_t h = i == 0 ? 1 : t->entries[i - 1].hash;
    h = mix(h, (uint64_t)e->kind | (uint64_t)e->flags << 8 |
                   (uint64_t)(uint32_t)e->in << 32);
    h = mix(h, (uint64_t)(uint32_t)e->n_inputs | (uint64_t)e->kinds << 32);
    for (int32_t k = 0; k < e->n_effects; k++) {
        const trn__effect *f = &t->effects[e->effect + k];
        h = mix(h,
                (uint64_t)(uint32_t)f->leaf | (uint64_t)(uint32_t)f->old << 32);
        h = mix(h, (uint64_t)(uint32_t)f->slot |
                       (uint64_t)(uint32_t)(f->user + 1) << 32);
    }
    if (e->node >= 0) {
        const trn__graph_node *n = &t->graph->nodes[e->node];
        h = mix(h, n->op);
        for (int k = 0; k < n->n_in; k++)
            h = mix(h, (uint64_t)(uint32_t)n->in[k]);
        for (uint32_t k = 0; k < (n->attrs_size + 7) / 8; k++)
            h = mix(h, n->attrs[k]);
        for (int k = 0; k < n->n_scalars; k++)
            h = mix(h, (uint64_t)(uint32_t)n->scalar[k]);
    }
    e->hash = h;
}

/* ---- begin and end ---- */

void trn__trace_take_literals(trn_context *c)
{
    trn__capture *p = c->capture;
    const trn_graph *g = p->trace->graph;
    for (int32_t i = 0; i < g->n_literals; i++)
        p->scalars[g->literals[i].scalar] = g->literals[i].value;
}

void trn__trace_begin(trn_context *c, bool loose)
{
    trn__capture *p = c->capture;
    p->serial++;
    p->on = true;
    p->at = 0;
    p->depth = 0;
    p->n_bound = 0;
    p->matching = !loose && p->first != NULL;
    p->trace = p->matching ? p->first : NULL;
    if (!p->matching) {
        p->trace = trace_new(c);
        p->info.traces += p->trace != NULL && !loose;
    }
    if (p->trace == NULL || trn__trace_room(c, p->trace->graph) != TRN_OK) {
        if (!p->matching)
            trn__trace_free(c, p->trace);
        p->trace = NULL;
        p->matching = p->on = false;
        return;
    }
    trn__trace_take_literals(c);
    if (p->tensors != NULL)
        memset(p->tensors, 0, (size_t)p->room_tensors * sizeof *p->tensors);
}

static void park(trn_tensor *h)
{
    if (h->view != NULL && h->refs == 1)
        trn__view_park(h);
    else if (h->view != NULL)
        trn__entry_let_go(h);
}

void trn__trace_forget(trn_context *c)
{
    trn__capture *p = c->capture;
    trn__trace *t = p->trace;
    if (t == NULL || !c->tensors->in_step)
        return;
    for (int32_t i = 0; i < t->n_entries && !p->matching; i++) {
        trn_tensor *h = t->entries[i].handle;
        struct trn__record *record = h == NULL ? NULL : h->record;
        if (record == NULL)
            continue;
        h->record = NULL;
        trn__record_unref(c, record);
    }
    for (int32_t i = t->n_entries; i-- > 0;) { /* newest first */
        trn_tensor *h = t->entries[i].handle;
        trn_tensor *out = t->entries[i].nested ? NULL : p->used[i].out;
        if (i < p->at && out != h && out != NULL && out->owner != NULL)
            park(out); /* of the trace that the step began with */
        if (h != NULL)
            park(h);
    }
}

void trn__trace_end(trn_context *c)
{
    trn__capture *p = c->capture;
    for (int32_t i = 0; i < p->n_marked; i++)
        p->marked[i]->mark_step = 0;
    p->n_marked = 0;
    for (int32_t i = 0; i < p->n_bound; i++) {
        trn__unref(p->bound[i]);
        p->bound[i] = NULL;
    }
    p->n_bound = 0;
    while (p->n_held > 0)
        trn__unref(p->held[--p->n_held]);
    trn__trace_forget(c);
    if (p->trace != NULL && !p->trace->complete && p->trace != p->first &&
        p->trace->prev == NULL)
        trn__trace_free(c, p->trace); /* recorded in part only */
    p->trace = NULL;
    p->on = false;
    p->matching = false;
    p->serial++; /* no tensor's slot is valid any more */
}

/* ---- a new trace that begins like the current one ---- */

/* The nodes, values and inputs of `from` before entry `n`. */
trn_status trn__trace_copy_graph(const trn__trace *from, int32_t n,
                                 int32_t n_inputs, trn_graph *to)
{
    const trn_graph *g = from->graph;
    int32_t n_nodes = 0, at_input = 0, at_node = 0;
    for (int32_t i = 0; i < n; i++) {
        if (from->entries[i].node >= 0)
            n_nodes = from->entries[i].node + 1;
    }
    /* Values are numbered in the order of their making: redo it. */
    for (int32_t v = 0; at_node < n_nodes || at_input < n_inputs;) {
        const trn__graph_value *value = &g->values[v];
        if (value->input >= 0) {
            trn__desc desc = {.dtype = value->arg.dtype,
                              .rank = value->arg.rank};
            memcpy(desc.shape, value->arg.shape, sizeof desc.shape);
            if (trn__graph_add_input(to, &desc) < 0)
                return from->graph->c->status;
            at_input++;
            v++;
        } else {
            const trn__graph_node *node = &g->nodes[at_node];
            trn_arg out[TRN__MAX_OUT];
            for (int k = 0; k < node->n_out; k++)
                out[k] = g->values[v + k].arg;
            if (trn__graph_add_node(to, node, node->n_out, out) < 0)
                return from->graph->c->status;
            at_node++;
            v += node->n_out;
        }
    }
    to->n_scalars = 0;
    to->n_draws = 0;
    for (int32_t i = 0; i < n_nodes; i++) {
        const trn__graph_node *node = &g->nodes[i];
        for (int k = 0; k < node->n_scalars; k++) {
            if (node->scalar[k] >= to->n_scalars)
                to->n_scalars = node->scalar[k] + 1;
        }
        if (node->draw >= to->n_draws)
            to->n_draws = node->draw + 1;
    }
    for (int32_t i = 0; i < g->n_literals; i++) {
        const trn__graph_literal *l = &g->literals[i];
        if (l->scalar < to->n_scalars)
            TRN_TRY(trn__graph_add_literal(to, l->scalar, l->value));
    }
    return TRN_OK;
}

/* The result of an entry in this step, which may belong to another trace that
 * the step began with, moves to the new one. */
static void move_result(trn_context *c, trn__trace *to, int32_t i)
{
    trn__capture *p = c->capture;
    trn__entry *e = &to->entries[i];
    trn_tensor *t = e->kind != TRN__ENTRY_OP ? NULL
                    : e->nested              ? trn__tensor_at(p, e->out)
                                             : p->used[i].out;
    e->handle = NULL;
    if (t == NULL || t->owner == NULL)
        return;
    t->owner->entries[t->owner_entry].handle = NULL;
    t->owner = to;
    t->owner_entry = i;
    e->handle = t;
}

trn__trace *trn__trace_fork(trn_context *c, trn__trace *from, int32_t n)
{
    trn__trace *t = trace_new(c);
    if (t == NULL)
        return NULL;
    trn__trace *current = c->capture->trace;
    int32_t n_effects = 0;
    c->capture->trace = t;
    trn_status status =
        trn__trace_copy_graph(from, n, c->capture->n_bound, t->graph);
    for (int32_t i = 0; i < n && status == TRN_OK; i++) {
        trn__entry *e = trn__trace_add_entry(c, from->entries[i].kind);
        if (e == NULL)
            break;
        *e = from->entries[i];
        move_result(c, t, i);
        n_effects = e->n_effects > 0 ? e->effect + e->n_effects : n_effects;
    }
    for (int32_t i = 0; i < n_effects && status == TRN_OK; i++)
        status = trn__trace_add_effect(c, from->effects[i]);
    c->capture->trace = current;
    if (c->status == TRN_OK)
        return t;
    trn__trace_free(c, t);
    return NULL;
}
