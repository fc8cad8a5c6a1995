/* SPDX-License-Identifier: Apache-2.0
 *
 * Tracing one call: slots of its inputs, matching it, or recording it.
 */
#include <stdio.h>
#include <string.h>

#include "libtrn/ops/lower.h"
#include "libtrn/ops/trace.h"
#include "libtrn/ops/trace_parts.h"

/* ---- matching ---- */

typedef struct wanted {
    const trn__call *k;
    const int32_t *in;
    uint8_t kinds;
} wanted;

uint8_t trn__input_kinds(const trn__call *k, const trn__op_info *info)
{
    unsigned kinds = 0;
    if (k->c->tape->off || !info->differentiable)
        return 0;
    for (int i = 0; i < k->n_in; i++) {
        const trn_tensor *t = k->in[i];
        if (trn__needs_grad(t) && trn__is_float(t->arg.dtype))
            kinds |= (t->requires_grad ? 2u : 1u) << (2 * i);
    }
    return (uint8_t)kinds;
}

static void note_used(trn__capture *p, int32_t i, const trn__call *k)
{
    for (int j = 0; j < k->n_in; j++)
        p->used[i].in[j] = k->in[j];
    p->used[i].out = k->out;
    p->used[i].through = p->through;
}

/* Scalars of its own, or those of the same call before it? */
static bool same_source(const trn__entry *e, const trn__graph_node *n,
                        const trn__call *k)
{
    return e->sourced == k->sourced &&
           (!k->sourced ||
            memcmp(n->scalar, k->scalar,
                   (size_t)k->n_values * sizeof n->scalar[0]) == 0);
}

static bool agrees(trn_context *c, const trn__trace *t, void *user)
{
    const wanted *w = user;
    const trn__capture *p = c->capture;
    if (p->at >= t->n_entries)
        return false;
    const trn__entry *e = &t->entries[p->at];
    if (e->kind != TRN__ENTRY_OP || e->nested || e->n_inputs != p->n_bound ||
        e->kinds != w->kinds)
        return false;
    const trn__graph_node *n = &t->graph->nodes[e->node];
    const trn__call *k = w->k;
    if (n->op != k->op || !same_source(e, n, k) ||
        (k->attrs_size > 0 && memcmp(n->attrs, k->attrs, k->attrs_size) != 0))
        return false;
    for (int i = 0; i < k->n_in; i++) {
        if (n->in[i] != w->in[i])
            return false;
        if (w->kinds != 0 && k->in[i]->record != NULL)
            return false; /* computed before the step: it has a history */
    }
    return true;
}

static void note_call(trn_context *c, const trn__call *k)
{
    trn__capture *p = c->capture;
    const trn__trace *t = p->trace;
    const char *name = trn__ops[k->op].name;
    const char *before = "the end of the step";
    if (p->at < t->n_entries) {
        const trn__entry *e = &t->entries[p->at];
        before = e->kind != TRN__ENTRY_OP
                     ? "a walk"
                     : trn__ops[t->graph->nodes[e->node].op].name;
    }
    snprintf(p->reason, sizeof p->reason,
             "call %d: %s with its attributes and inputs comes where %s was",
             (int)p->at, name, before);
}

static void take_scalars(trn__capture *p, trn__call *k,
                         const trn__graph_node *n)
{
    for (int i = 0; i < k->n_values; i++) {
        k->scalar[i] = n->scalar[i];
        p->scalars[n->scalar[i]] = k->values[i];
    }
    k->numbered = p->serial;
    if (n->draw >= 0) {
        p->draws[n->draw][0] = k->key;
        p->draws[n->draw][1] = k->draw;
    }
}

/* ---- recording ---- */

/* Scalars of calls that rules make are the same in every step. */
static trn_status keep_literals(trn_graph *g, const trn__call *k)
{
    for (int i = 0; i < k->n_values && !k->sourced; i++)
        TRN_TRY(trn__graph_add_literal(g, k->scalar[i], k->values[i]));
    return TRN_OK;
}

static int32_t record_node(trn_context *c, trn__call *k, const int32_t *in,
                           int n_out, const trn_arg *out)
{
    trn__capture *p = c->capture;
    trn_graph *g = p->trace->graph;
    trn__graph_node n;
    memset(&n, 0, sizeof n);
    n.op = k->op;
    n.n_in = (uint8_t)k->n_in;
    n.n_scalars = (uint8_t)k->n_values;
    n.draw = n.group = -1;
    n.attrs_size = k->attrs_size;
    if (k->attrs_size > 0)
        memcpy(n.attrs, k->attrs, k->attrs_size);
    for (int i = 0; i < k->n_in; i++)
        n.in[i] = in[i];
    for (int i = 0; i < k->n_values; i++) {
        if (!k->sourced)
            k->scalar[i] = g->n_scalars++;
        n.scalar[i] = k->scalar[i];
    }
    if (trn__ops[k->op].cls == TRN__CLASS_RANDOM) {
        if (!k->sourced)
            k->draw_no = g->n_draws++;
        n.draw = k->draw_no;
    }
    trn__entry *e = trn__trace_add_entry(c, TRN__ENTRY_OP);
    if (e == NULL)
        return -1;
    e->sourced = k->sourced;
    int32_t slot = trn__graph_add_node(g, &n, n_out, out);
    if (slot < 0 || trn__trace_room(c, g) != TRN_OK)
        return -1;
    e->node = g->n_nodes - 1;
    e->out = slot;
    take_scalars(p, k, &g->nodes[e->node]);
    if (p->depth > 0 && keep_literals(g, k) != TRN_OK)
        return -1;
    trn__trace_hash_entry(p->trace, p->trace->n_entries - 1);
    return slot;
}

int32_t trn__trace_view(trn__call *k, int32_t in)
{
    trn_context *c = k->c;
    trn__capture *p = c->capture;
    wanted w = {k, &in, 0};
    if (p->matching && !agrees(c, p->trace, &w)) {
        note_call(c, k);
        if (trn__trace_diverge(c, agrees, &w) != TRN_OK)
            return -1;
    }
    if (p->matching) {
        note_used(p, p->at, k);
        return p->trace->entries[p->at++].out;
    }
    int32_t slot = record_node(c, k, &in, 1, &k->out->arg);
    if (slot >= 0)
        note_used(p, p->trace->n_entries - 1, k);
    return slot;
}

/* ---- results ---- */

/* The storages that an UPDATE call overwrites have new values now. */
static void note_writes(trn__capture *p, trn__call *k, const trn__op_info *info,
                        int32_t slot)
{
    for (int i = 0; i < k->n_in; i++) {
        if (!((info->writes >> i) & 1u))
            continue;
        trn__storage *s = k->in[i]->storage;
        s->trace_slot = slot;
        s->trace_writes++;
        s->version += !k->counted;
        trn__give_slot(p, k->in[i], slot);
        slot++;
    }
}

/* What the user made of a prepared result in an earlier step is over. */
static void refresh(trn_tensor *t)
{
    TRN_ASSERT(t != NULL);
    trn_tensor *grad = t->grad;
    t->requires_grad = false;
    t->grad = NULL;
    trn__unref(grad);
    if (t->map_owned)
        trn__free(t->c, t->map);
    t->map = NULL;
    t->map_owned = false;
}

/* A prepared view looks at its input's memory, which may be another one than in
 * the last step: between steps it looks at none. */
static trn_tensor *attach(trn_tensor *t, trn__call *k, const trn__op_info *info,
                          const trn__graph_value *value)
{
    trn_tensor *base = k->in[0];
    t->arg = base->arg;
    t->arg.rank = value->arg.rank;
    memcpy(t->arg.shape, value->arg.shape, sizeof t->arg.shape);
    info->view(k, &t->arg);
    t->storage = base->storage;
    trn__storage_ref(t->storage);
    t->view->base = trn__ref(base);
    return t;
}

void trn__view_park(trn_tensor *t)
{
    trn_tensor *base = t->view->base;
    trn__storage *s = t->storage;
    t->storage = NULL;
    t->view->base = NULL;
    if (s != NULL)
        trn__storage_unref(s);
    trn__unref(base);
}

static trn_tensor *view_of(trn__call *k, int32_t i, const trn__op_info *info,
                           const trn__graph_value *value)
{
    trn__trace *trace = k->c->capture->trace;
    trn_tensor *old = trace->entries[i].handle;
    if (old != NULL && old->storage == NULL)
        return attach(old, k, info, value);
    trn__desc desc = {.dtype = value->arg.dtype, .rank = value->arg.rank};
    memcpy(desc.shape, value->arg.shape, sizeof desc.shape);
    trn_tensor *t = trn__detach_from_scope(trn__make_view(k, info, &desc));
    if (t != NULL)
        trn__entry_take(trace, i, t);
    return t;
}

/* Is a result of now for the library only, not for the user? */
static bool is_inner(const trn_context *c)
{
    return c->tensors->in_step && c->tensors->scope != &c->tensors->step;
}

trn_tensor *trn__entry_view(trn__call *k, int32_t i)
{
    trn__capture *p = k->c->capture;
    trn__entry *e = &p->trace->entries[i];
    trn_tensor *t =
        view_of(k, i, &trn__ops[k->op], &p->trace->graph->values[e->out]);
    if (t == NULL)
        return NULL;
    refresh(t);
    t->inner = is_inner(k->c);
    t->traced_grad = e->needs_grad;
    trn__give_slot(p, t, e->out);
    return t;
}

trn_tensor *trn__entry_handle(trn_context *c, int32_t i)
{
    trn__capture *p = c->capture;
    trn__entry *e = &p->trace->entries[i];
    const trn__graph_value *value = &p->trace->graph->values[e->out];
    if (e->handle == NULL) {
        trn__desc desc = {.dtype = value->arg.dtype, .rank = value->arg.rank};
        memcpy(desc.shape, value->arg.shape, sizeof desc.shape);
        trn_tensor *t = trn__tensor_lazy(c, &desc);
        if (t == NULL)
            return NULL;
        trn__entry_take(p->trace, i, t);
    }
    refresh(e->handle);
    e->handle->inner = is_inner(c);
    e->handle->traced_grad = e->needs_grad;
    e->handle->storage->version = 0;
    trn__give_storage(p, e->handle->storage, e->out, -1);
    trn__give_slot(p, e->handle, e->out);
    return e->handle;
}

static trn_tensor *matched(trn__call *k, const trn__op_info *info)
{
    trn__capture *p = k->c->capture;
    int32_t i = p->at++;
    trn__entry *e = &p->trace->entries[i];
    take_scalars(p, k, &p->trace->graph->nodes[e->node]);
    if (info->writes != 0) {
        note_writes(p, k, info, e->out);
        note_used(p, i, k);
        return k->in[0];
    }
    k->out =
        info->view == NULL ? trn__entry_handle(k->c, i) : trn__entry_view(k, i);
    note_used(p, i, k);
    return k->out;
}

static trn_tensor *recorded_update(trn__call *k, const trn__op_info *info,
                                   const int32_t *in, uint8_t kinds)
{
    trn_arg out[TRN__MAX_OUT];
    int n = 0;
    for (int i = 0; i < k->n_in; i++) {
        if ((info->writes >> i) & 1u) {
            out[n] = k->in[i]->arg;
            out[n].buffer = NULL;
            n++;
        }
    }
    int32_t slot = record_node(k->c, k, in, n, out);
    if (slot < 0)
        return NULL;
    trn__capture *p = k->c->capture;
    trn__entry *e = &p->trace->entries[p->trace->n_entries - 1];
    e->kinds = kinds;
    e->needs_grad = kinds >> 2 != 0; /* assign: what is written needs one */
    trn__trace_hash_entry(p->trace, p->trace->n_entries - 1);
    note_used(p, p->trace->n_entries - 1, k);
    note_writes(p, k, info, slot);
    return k->in[0];
}

static trn_tensor *recorded(trn__call *k, const trn__op_info *info,
                            const int32_t *in, const trn__desc *desc,
                            uint8_t kinds)
{
    trn_context *c = k->c;
    trn__capture *p = c->capture;
    if (info->writes != 0)
        return recorded_update(k, info, in, kinds);
    if (info->view != NULL)
        k->out = trn__detach_from_scope(trn__make_view(k, info, desc));
    else
        k->out = trn__tensor_lazy(c, desc);
    if (k->out == NULL)
        return NULL;
    trn_arg out = k->out->arg;
    out.buffer = NULL;
    int32_t slot =
        trn__check_placement(k) == TRN_OK ? record_node(c, k, in, 1, &out) : -1;
    trn__entry *e =
        slot < 0 ? NULL : &p->trace->entries[p->trace->n_entries - 1];
    if (e == NULL) {
        trn__unref(k->out);
        return NULL;
    }
    trn__entry_take(p->trace, p->trace->n_entries - 1, k->out);
    k->out->inner = is_inner(c);
    e->kinds = kinds;
    e->needs_grad = kinds != 0 && trn__is_float(k->out->arg.dtype);
    trn__trace_hash_entry(p->trace, p->trace->n_entries - 1);
    note_used(p, p->trace->n_entries - 1, k);
    if (info->view == NULL)
        trn__give_storage(p, k->out->storage, slot, -1);
    trn__give_slot(p, k->out, slot);
    if (e->needs_grad && trn__tape_record(k, info->saves) != TRN_OK)
        return NULL;
    if (!c->tensors->in_step) /* loose: a tensor like any other */
        trn__scope_add(c, trn__ref(k->out));
    return k->out;
}

trn_tensor *trn__trace_op(trn__call *k, const trn__op_info *info)
{
    trn_context *c = k->c;
    trn__capture *p = c->capture;
    trn__desc desc;
    int32_t in[TRN__MAX_IN];
    k->out = NULL;
    if (k->repeated) /* ... since this trace began */
        k->sourced = k->numbered == p->serial;
    p->calling = k->op;
    for (int i = 0; i < k->n_in; i++) {
        in[i] = trn__slot_of(c, k->in[i]);
        if (in[i] < 0)
            return NULL;
    }
    wanted w = {k, in, trn__input_kinds(k, info)};
    if (p->matching && agrees(c, p->trace, &w))
        return matched(k, info);
    if (!info->infer(k, &desc))
        return NULL;
    if (p->matching) {
        note_call(c, k);
        if (trn__trace_diverge(c, agrees, &w) != TRN_OK)
            return NULL;
        if (p->matching)
            return matched(k, info);
    }
    return recorded(k, info, in, &desc, w.kinds);
}
