/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens where a step leaves its trace.
 *
 * First another trace is looked for that agrees up to here and goes on as the
 * step does: slots are positions, so its tensors and the step's are the same
 * ones.  Else a new trace begins with what has matched, and the tape, which
 * matched calls do not write, is written for them now.
 */
#include <string.h>

#include "libtrn/ops/trace.h"
#include "libtrn/ops/trace_parts.h"
#include "trn/autograd.h"

static uint64_t prefix_hash(const trn__trace *t, int32_t n)
{
    return n == 0 ? 1 : t->entries[n - 1].hash;
}

/* Shapes follow from those of the inputs, which the hash does not tell. */
static bool same_inputs(const trn__capture *p, const trn__trace *t)
{
    const trn_graph *g = t->graph;
    if (g->n_inputs < p->n_bound)
        return false;
    for (int32_t i = 0; i < p->n_bound; i++) {
        int32_t slot = g->inputs[i];
        const trn_arg *want = &g->values[slot].arg;
        const trn_arg *is = &p->bound[i]->arg;
        if (slot != p->trace->graph->inputs[i] || want->dtype != is->dtype ||
            !trn__same_shape(want, is))
            return false;
    }
    return true;
}

static bool same_effects(const trn__trace *a, const trn__entry *x,
                         const trn__trace *b, const trn__entry *y)
{
    if (x->n_effects != y->n_effects)
        return false;
    for (int32_t i = 0; i < x->n_effects; i++) {
        const trn__effect *f = &a->effects[x->effect + i];
        const trn__effect *g = &b->effects[y->effect + i];
        if (f->leaf != g->leaf || f->old != g->old || f->slot != g->slot)
            return false;
    }
    return true;
}

static bool same_node(const trn__graph_node *x, const trn__graph_node *y)
{
    return x->op == y->op && x->n_in == y->n_in &&
           memcmp(x->in, y->in, x->n_in * sizeof x->in[0]) == 0 &&
           x->attrs_size == y->attrs_size &&
           memcmp(x->attrs, y->attrs, x->attrs_size) == 0 &&
           x->n_scalars == y->n_scalars &&
           memcmp(x->scalar, y->scalar, x->n_scalars * sizeof x->scalar[0]) ==
               0 &&
           x->draw == y->draw;
}

/* The hash was the first look: now entry by entry. */
static bool same_entries(const trn__trace *a, const trn__trace *b, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        const trn__entry *x = &a->entries[i], *y = &b->entries[i];
        if (x->kind != y->kind || x->flags != y->flags || x->in != y->in ||
            x->out != y->out || x->n_inputs != y->n_inputs ||
            x->node != y->node || !same_effects(a, x, b, y))
            return false;
        if (x->node >= 0 &&
            !same_node(&a->graph->nodes[x->node], &b->graph->nodes[y->node]))
            return false;
    }
    return true;
}

static bool shares_prefix(const trn__capture *p, const trn__trace *t)
{
    return t->complete && t != p->trace && t->n_entries >= p->at &&
           prefix_hash(t, p->at) == prefix_hash(p->trace, p->at) &&
           same_inputs(p, t) && same_entries(p->trace, t, p->at);
}

/* The tensor that had a slot first in this step, written since or not: its
 * version tells a record that it was. */
static trn_tensor *first_at(const trn__capture *p, int32_t slot)
{
    trn_tensor *t =
        slot < 0 || slot >= p->room_tensors ? NULL : p->tensors[slot];
    return t != NULL && t->trace_step == p->serial ? t : NULL;
}

/* The call of entry i again, with this step's tensors. */
static void call_again(trn_context *c, int32_t i, trn__call *k)
{
    trn__capture *p = c->capture;
    const trn__entry *e = &p->trace->entries[i];
    const trn__graph_node *n = &p->trace->graph->nodes[e->node];
    *k = (trn__call){
        .c = c,
        .op = n->op,
        .n_in = n->n_in,
        .n_values = n->n_scalars,
        .attrs = n->attrs_size > 0 ? n->attrs : NULL,
        .attrs_size = n->attrs_size,
        .draw_no = n->draw,
        .out = e->nested ? NULL : p->used[i].out,
    };
    for (int j = 0; j < n->n_in; j++)
        k->in[j] = e->nested ? first_at(p, n->in[j]) : p->used[i].in[j];
    for (int j = 0; j < n->n_scalars; j++) {
        k->scalar[j] = n->scalar[j];
        k->values[j] = p->scalars[n->scalar[j]];
    }
    if (n->draw >= 0) {
        k->key = p->draws[n->draw][0];
        k->draw = p->draws[n->draw][1];
    }
}

/* Writes of the prefix that a call has not seen yet count as not made. */
static void count_ahead(trn_context *c, int32_t n, bool ahead)
{
    trn__capture *p = c->capture;
    const trn__trace *t = p->trace;
    for (int32_t i = 0; i < n; i++) {
        const trn__entry *e = &t->entries[i];
        if (e->node < 0 || e->nested)
            continue;
        const trn__graph_node *node = &t->graph->nodes[e->node];
        uint32_t writes = trn__ops[node->op].writes;
        for (int j = 0; j < node->n_in && writes != 0; j++) {
            trn__storage *s = p->used[i].in[j]->storage;
            if ((writes >> j) & 1u)
                s->trace_ahead = ahead ? s->trace_ahead + 1 : 0;
        }
    }
}

/* The result of a call inside a matched walk, which nobody has asked for. */
static trn_tensor *revive(trn__call *k, int32_t i)
{
    trn__capture *p = k->c->capture;
    trn_tensor *t = first_at(p, p->trace->entries[i].out);
    if (t != NULL)
        return t;
    for (int j = 0; j < k->n_in; j++) {
        if (k->in[j] == NULL)
            return NULL; /* of a value that no tensor has in this step */
    }
    return trn__ops[k->op].view != NULL ? trn__entry_view(k, i)
                                        : trn__entry_handle(k->c, i);
}

static void put_record(trn_context *c, trn_tensor *t,
                       struct trn__record *record)
{
    struct trn__record *old = t->record;
    t->record = record;
    t->traced_grad = false;
    if (old != NULL)
        trn__record_unref(c, old);
}

static trn_status rebuild_entry(trn_context *c, int32_t i)
{
    trn__entry *e = &c->capture->trace->entries[i];
    trn__call k;
    call_again(c, i, &k);
    const trn__op_info *info = &trn__ops[k.op];
    if (e->nested)
        k.out = revive(&k, i);
    for (int j = 0; j < k.n_in && info->writes != 0; j++) {
        if (!((info->writes >> j) & 1u))
            continue;
        k.in[j]->storage->trace_ahead--;
        trn_tensor *through = c->capture->used[i].through;
        if (k.op == TRN_OP_assign) /* what it held before is over */
            put_record(c, through != NULL ? through : k.in[0], NULL);
        k.out = k.in[0]; /* assign: its target has the record */
    }
    bool whole = k.out != NULL;
    for (int j = 0; j < k.n_in; j++)
        whole = whole && k.in[j] != NULL;
    if (!e->needs_grad || !whole)
        return c->status;
    put_record(c, k.out, NULL);
    return trn__tape_record(&k, info->saves);
}

/* What walk i has freed: unless the record was retained. */
static void consume_walked(trn_context *c, int32_t i)
{
    trn__capture *p = c->capture;
    const trn__entry *e = &p->trace->entries[i];
    if (e->flags & 3u)
        return;
    if (e->kind == TRN__ENTRY_BACKWARD) {
        trn__walk_consume(c, p->used[i].in[0]);
        return;
    }
    for (int32_t k = 0; k < e->n_effects; k++) {
        const trn__effect *f = &p->trace->effects[e->effect + k];
        trn_tensor *root = f->slot != -2 ? NULL : first_at(p, f->leaf);
        if (root != NULL)
            trn__walk_consume(c, root);
    }
}

/* A walk stands before its calls, but frees what it needs after them. */
static trn_status rebuild_tape(trn_context *c, int32_t n)
{
    trn__trace *t = c->capture->trace;
    trn_status status = TRN_OK;
    int32_t walk = -1;
    count_ahead(c, n, true);
    for (int32_t i = 0; i < n && status == TRN_OK; i++) {
        if (walk >= 0 && i >= t->entries[walk].end) {
            consume_walked(c, walk);
            walk = -1;
        }
        if (t->entries[i].kind == TRN__ENTRY_OP)
            status = rebuild_entry(c, i);
        else
            walk = i;
    }
    if (walk >= 0 && status == TRN_OK)
        consume_walked(c, walk);
    if (status != TRN_OK)
        count_ahead(c, n, false);
    return status;
}

trn_status trn__trace_diverge(trn_context *c,
                              bool (*probe)(trn_context *c, const trn__trace *t,
                                            void *user),
                              void *user)
{
    trn__capture *p = c->capture;
    for (trn__trace *t = p->first; t != NULL; t = t->next) {
        if (shares_prefix(p, t) && probe(c, t, user)) {
            p->trace = t;
            TRN_TRY(trn__trace_room(c, t->graph));
            trn__trace_take_literals(c);
            return TRN_OK;
        }
    }
    trn__trace *fork = trn__trace_fork(c, p->trace, p->at);
    if (fork == NULL)
        return c->status;
    p->trace = fork;
    p->matching = false;
    p->info.traces++;
    TRN_TRY(trn__trace_room(c, fork->graph));
    return rebuild_tape(c, p->at);
}
