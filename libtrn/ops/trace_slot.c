/* SPDX-License-Identifier: Apache-2.0
 *
 * Slots: which value of the trace a tensor is in this step.
 *
 * A tensor from outside becomes an input when it is first used; a view of one,
 * or of something written since, is made again from its base.
 */
#include <stdio.h>
#include <string.h>

#include "libtrn/ops/trace.h"
#include "libtrn/ops/trace_parts.h"

trn_tensor *trn__tensor_at(const trn__capture *p, int32_t slot)
{
    trn_tensor *t =
        slot < 0 || slot >= p->room_tensors ? NULL : p->tensors[slot];
    return t != NULL && t->trace_step == p->serial && t->trace_slot == slot
               ? t
               : NULL;
}

void trn__give_slot(trn__capture *p, trn_tensor *t, int32_t slot)
{
    trn__storage *s = t->storage;
    t->trace_step = p->serial;
    t->trace_slot = slot;
    t->trace_writes = s->trace_step == p->serial ? s->trace_writes : 0;
    if (trn__tensor_at(p, slot) == NULL)
        p->tensors[slot] = t;
}

void trn__give_storage(trn__capture *p, trn__storage *s, int32_t slot,
                       int32_t input)
{
    s->trace_step = p->serial;
    s->trace_slot = slot;
    s->trace_writes = 0;
    s->trace_input = input;
}

static bool is_current(const trn__capture *p, const trn_tensor *t)
{
    const trn__storage *s = t->storage;
    return t->trace_step == p->serial &&
           t->trace_writes ==
               (s->trace_step == p->serial ? s->trace_writes : 0);
}

static bool fits_input(const trn_graph *g, int32_t slot, const trn_arg *arg)
{
    const trn_arg *want = &g->values[slot].arg;
    return want->dtype == arg->dtype && trn__same_shape(want, arg);
}

static void note_input(trn_context *c, int32_t input, const trn_tensor *t)
{
    trn__capture *p = c->capture;
    const trn_graph *g = p->trace->graph;
    int32_t slot = g->inputs[input];
    snprintf(p->reason, sizeof p->reason, "call %d, %s: input %s became %s",
             (int)p->at, trn__ops[p->calling].name,
             trn__describe(&g->values[slot].arg).s, trn__describe(&t->arg).s);
}

/* Does the entry at hand use as many inputs as are bound and one more? */
static bool expects_input(const trn__capture *p, const trn__trace *t)
{
    if (p->at >= t->n_entries)
        return false;
    const trn__entry *e = &t->entries[p->at];
    if (e->kind != TRN__ENTRY_OP && !p->walking)
        return false; /* its slot is that of a call inside the walk */
    if (e->end > 0)
        e = &t->entries[e->end - 1];
    return p->n_bound < e->n_inputs;
}

/* Is the trace's next input, at this call, of the tensor's shape and type? */
static bool next_fits(trn_context *c, const trn__trace *t, void *user)
{
    const trn__capture *p = c->capture;
    const trn_tensor *tensor = user;
    return expects_input(p, t) && p->n_bound < t->graph->n_inputs &&
           fits_input(t->graph, t->graph->inputs[p->n_bound], &tensor->arg);
}

/* t, a tensor from outside of the step, becomes the next input. */
static int32_t bind_input(trn_context *c, trn_tensor *t)
{
    trn__capture *p = c->capture;
    int32_t n = p->n_bound;
    if (t->storage->lost) {
        trn__fail(c, TRN_ERR_LOST,
                  "%s was lost with a failed step; expected it to be loaded "
                  "from a checkpoint",
                  trn__describe(&t->arg).s);
        return -1;
    }
    if (t->storage->buffer == NULL && t->storage->bytes > 0) {
        trn__fail(c, TRN_ERR_STALE,
                  "%s is used after its step ended; expected trn_keep() before "
                  "trn_step_end()",
                  trn__describe(&t->arg).s);
        return -1;
    }
    if (p->matching && !next_fits(c, p->trace, t)) {
        if (expects_input(p, p->trace))
            note_input(c, n, t);
        else
            snprintf(p->reason, sizeof p->reason,
                     "call %d, %s: input %s is used, which was not before",
                     (int)p->at, trn__ops[p->calling].name,
                     trn__describe(&t->arg).s);
        if (trn__trace_diverge(c, next_fits, t) != TRN_OK)
            return -1;
    }
    int32_t slot;
    if (p->matching) {
        slot = p->trace->graph->inputs[n];
    } else {
        trn__desc desc = {.dtype = t->arg.dtype, .rank = t->arg.rank};
        memcpy(desc.shape, t->arg.shape, sizeof desc.shape);
        slot = trn__graph_add_input(p->trace->graph, &desc);
    }
    if (slot < 0 || trn__trace_room(c, p->trace->graph) != TRN_OK)
        return -1;
    p->bound[n] = trn__ref(t);
    p->n_bound = n + 1;
    trn__give_storage(p, t->storage, slot, n);
    trn__give_slot(p, t, slot);
    return slot;
}

trn_status trn__trace_bind_stand_in(trn_context *c, trn_tensor *t)
{
    trn__capture *p = c->capture;
    trn__desc desc = {.dtype = t->arg.dtype, .rank = t->arg.rank};
    memcpy(desc.shape, t->arg.shape, sizeof desc.shape);
    int32_t slot = trn__graph_add_input(p->trace->graph, &desc);
    if (slot < 0 || trn__trace_room(c, p->trace->graph) != TRN_OK)
        return c->status;
    p->bound[p->n_bound] = trn__ref(t);
    trn__give_storage(p, t->storage, slot, p->n_bound++);
    trn__give_slot(p, t, slot);
    return TRN_OK;
}

/* A view whose base was written, or comes from outside: made again. */
static int32_t derive(trn_context *c, trn_tensor *t)
{
    trn__capture *p = c->capture;
    trn__view *view = t->view;
    int32_t slot = trn__slot_of(c, view->base);
    if (slot < 0)
        return -1;
    if (view->op != 0) {
        trn__call k = trn__call_of(view->op, view->base, NULL,
                                   view->attrs_size > 0 ? view->attrs : NULL,
                                   view->attrs_size);
        k.c = c;
        k.out = t;
        slot = trn__trace_view(&k, slot);
        if (slot < 0)
            return -1;
    }
    if (trn__trace_hold(c, t) != TRN_OK)
        return -1;
    trn__give_slot(p, t, slot);
    return slot;
}

int32_t trn__slot_of(trn_context *c, trn_tensor *t)
{
    trn__capture *p = c->capture;
    trn__storage *s = t->storage;
    if (is_current(p, t))
        return t->trace_slot;
    if (t->view != NULL)
        return derive(c, t);
    if (s->trace_step != p->serial)
        return bind_input(c, t);
    trn__give_slot(p, t, s->trace_slot);
    return t->trace_slot;
}

/* ---- views that are over ---- */

/* The prepared view that entry i has made of s in this step; NULL: none. */
static trn_tensor *inner_view(const trn__capture *p, int32_t i,
                              const trn__storage *s)
{
    const trn__entry *e = &p->trace->entries[i];
    trn_tensor *t = e->kind != TRN__ENTRY_OP ? NULL
                    : e->nested              ? e->handle
                                             : p->used[i].out;
    return t != NULL && t->storage == s && t->view != NULL && t->inner &&
                   t->owner != NULL
               ? t
               : NULL;
}

/* Would the tape have kept t for a call of the prefix that has matched? */
static bool would_be_saved(const trn__capture *p, const trn_tensor *t)
{
    const trn__trace *trace = p->trace;
    for (int32_t i = 0; p->matching && i < p->at; i++) {
        const trn__entry *e = &trace->entries[i];
        if (e->kind != TRN__ENTRY_OP || e->nested || !e->needs_grad)
            continue;
        const trn__graph_node *n = &trace->graph->nodes[e->node];
        for (int k = 0; k < n->n_in; k++) {
            if (p->used[i].in[k] == t && ((trn__ops[n->op].saves >> k) & 1u))
                return true;
        }
    }
    return false;
}

/* References to t that tracing has until the end of the step. */
static int32_t traced_refs(const trn__capture *p, const trn_tensor *t)
{
    int32_t n = 0;
    for (int32_t i = 0; i < p->n_bound; i++)
        n += p->bound[i] == t;
    for (int32_t i = 0; i < p->n_held; i++)
        n += p->held[i] == t;
    return n;
}

/* What t looks at lives on for t alone, so that t can be made again. */
static int32_t own_bases(const trn__capture *p, const trn_tensor *t)
{
    int32_t n = 0;
    for (; t->view != NULL; t = t->view->base, n++) {
        const trn_tensor *base = t->view->base;
        bool prepared = base->owner != NULL && base->inner;
        if (base->refs != 1 + prepared + traced_refs(p, base))
            break;
    }
    return n;
}

int32_t trn__unseen_shares(const trn_context *c, const trn_tensor *x)
{
    const trn__capture *p = c->capture;
    const trn__storage *s = x->storage;
    if (p == NULL)
        return 0;
    int32_t n = own_bases(p, x);
    if (!p->on || !c->tensors->in_step)
        return n;
    for (int32_t i = p->at; i-- > 0;) { /* views of views first */
        trn_tensor *t = inner_view(p, i, s);
        int32_t refs = 1; /* the trace's */
        if (t == NULL || would_be_saved(p, t))
            continue;
        for (int32_t j = i + 1; j < p->at; j++) {
            const trn_tensor *other = inner_view(p, j, s);
            refs += other != NULL && other->view->base == t;
        }
        n += t->refs == refs;
    }
    return n;
}
