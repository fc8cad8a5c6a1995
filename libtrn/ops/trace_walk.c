/* SPDX-License-Identifier: Apache-2.0
 *
 * Walks as entries of a trace: a matched trn_backward or trn_grad is not walked
 * again, its effects are.
 */
#include <stdio.h>
#include <string.h>

#include "libtrn/ops/capture.h"
#include "libtrn/ops/step.h"
#include "libtrn/ops/trace_parts.h"

/* The slot of a tensor that the step knows; -1 if it does not (yet). */
static int32_t known_slot(trn_context *c, trn_tensor *t)
{
    const trn__capture *p = c->capture;
    if (t == NULL)
        return -1;
    return t->storage->trace_step == p->serial ? trn__slot_of(c, t) : -1;
}

/* The leaf of a backward walk's effect. */
static trn_tensor *leaf_of(const trn__capture *p, const trn__effect *f,
                           const trn__walk_call *w)
{
    return f->user < 0 ? w->first[0] : p->used[f->user].in[f->number];
}

/* Would leaf's gradient so far have slot `old`?  *next: the input that the next
 * tensor from outside becomes. */
static bool old_agrees(trn_context *c, const trn__trace *t, trn_tensor *leaf,
                       int32_t old, int32_t *next)
{
    if (leaf == NULL || (leaf->grad != NULL) != (old >= 0))
        return false;
    if (old < 0)
        return true;
    int32_t slot = known_slot(c, leaf->grad);
    if (slot >= 0)
        return slot == old;
    return *next < t->graph->n_inputs && t->graph->inputs[(*next)++] == old;
}

static bool backward_agrees(trn_context *c, const trn__trace *t,
                            const trn__entry *e, const trn__walk_call *w)
{
    const trn__capture *p = c->capture;
    trn_tensor *seed = w->second == NULL ? NULL : w->second[0];
    int32_t next = p->n_bound;
    if (e->in != known_slot(c, w->first[0]) || e->out != known_slot(c, seed))
        return false;
    for (int32_t i = 0; i < e->n_effects; i++) {
        const trn__effect *f = &t->effects[e->effect + i];
        if (!old_agrees(c, t, leaf_of(p, f, w), f->old, &next))
            return false;
    }
    return true;
}

static bool has_form(const trn_graph *g, int32_t slot, const trn_tensor *t)
{
    const trn_arg *arg = &g->values[slot].arg;
    return arg->dtype == t->arg.dtype && trn__same_shape(arg, &t->arg);
}

static bool grad_agrees(trn_context *c, const trn__trace *t,
                        const trn__entry *e, const trn__walk_call *w)
{
    const trn__effect *f = &t->effects[e->effect];
    if (e->n_effects != w->n + w->n_inputs)
        return false;
    for (int i = 0; i < w->n; i++, f++) {
        trn_tensor *seed = w->second == NULL ? NULL : w->second[i];
        if (f->slot != -2 || f->leaf != known_slot(c, w->first[i]) ||
            f->old != known_slot(c, seed))
            return false;
    }
    for (int i = 0; i < w->n_inputs; i++, f++) {
        if (f->leaf != known_slot(c, w->inputs[i]) ||
            f->old != (w->inputs[i]->requires_grad ? 2 : 1))
            return false;
        if (f->slot >= 0 && !has_form(t->graph, f->slot, w->inputs[i]))
            return false; /* zeros for a tensor that the step does not use */
    }
    return true;
}

static bool walk_agrees(trn_context *c, const trn__trace *t, void *user)
{
    const trn__walk_call *w = user;
    const trn__capture *p = c->capture;
    if (p->at >= t->n_entries)
        return false;
    const trn__entry *e = &t->entries[p->at];
    if (e->kind != w->kind || e->flags != w->flags)
        return false;
    return w->kind == TRN__ENTRY_BACKWARD ? backward_agrees(c, t, e, w)
                                          : grad_agrees(c, t, e, w);
}

/* The prepared tensor of an effect's result. */
static trn_tensor *effect_tensor(trn_context *c, const trn__effect *f)
{
    trn__capture *p = c->capture;
    trn_tensor *t = trn__tensor_at(p, f->slot);
    if (t != NULL || f->entry < 0)
        return t;
    return trn__entry_handle(c, f->entry);
}

static trn_status apply_backward(trn_context *c, const trn__entry *e,
                                 const trn__walk_call *w)
{
    trn__capture *p = c->capture;
    for (int32_t i = 0; i < e->n_effects; i++) {
        const trn__effect *f = &p->trace->effects[e->effect + i];
        trn_tensor *leaf = leaf_of(p, f, w);
        if (f->old >= 0 && trn__slot_of(c, leaf->grad) < 0)
            return c->status;
    }
    for (int32_t i = 0; i < e->n_effects; i++) {
        const trn__effect *f = &p->trace->effects[e->effect + i];
        trn_tensor *grad = effect_tensor(c, f);
        if (grad == NULL)
            return trn__fail(c, TRN_ERR_INTERNAL,
                             "trn_backward: a matched gradient is missing");
        TRN_TRY(trn__set_grad(leaf_of(p, f, w), trn__ref(grad)));
    }
    trn__step_set_loss(c, w->first[0]);
    return c->status;
}

static trn_status apply_grad(trn_context *c, const trn__entry *e,
                             const trn__walk_call *w)
{
    const trn__trace *t = c->capture->trace;
    for (int i = 0; i < w->n_inputs; i++) {
        const trn__effect *f = &t->effects[e->effect + w->n + i];
        w->out[i] = f->slot < 0 ? NULL : effect_tensor(c, f);
        if (f->slot >= 0 && w->out[i] == NULL)
            return trn__fail(c, TRN_ERR_INTERNAL,
                             "trn_grad: a matched gradient is missing");
    }
    return TRN_OK;
}

/* Was a root computed before the step?  What was recorded then cannot be
 * compared. */
static bool has_history(const trn__walk_call *w)
{
    for (int i = 0; i < w->n; i++) {
        if (w->first[i]->record != NULL)
            return true;
    }
    return false;
}

static bool none(trn_context *c, const trn__trace *t, void *user)
{
    (void)c;
    (void)t;
    (void)user;
    return false;
}

/* Views of what was written since are made again now, before the walk, where
 * matching and recording find them alike. */
static trn_status renew(trn_context *c, int n, trn_tensor *const *list)
{
    for (int i = 0; i < n && list != NULL; i++) {
        if (list[i] != NULL && list[i]->view != NULL)
            known_slot(c, list[i]);
    }
    return c->status;
}

static int walk_matched(trn_context *c, const trn__walk_call *w)
{
    trn__capture *p = c->capture;
    union {
        const trn__walk_call *from;
        void *to;
    } user = {.from = w}; /* the probe only reads it */
    if (renew(c, w->n, w->first) != TRN_OK ||
        renew(c, w->n, w->second) != TRN_OK ||
        renew(c, w->n_inputs, w->inputs) != TRN_OK)
        return -1;
    if (!p->matching)
        return 0;
    if (has_history(w) && trn__trace_diverge(c, none, NULL) != TRN_OK)
        return -1;
    if (!p->matching)
        return 0;
    if (!walk_agrees(c, p->trace, user.to)) {
        snprintf(p->reason, sizeof p->reason,
                 "call %d: %s of these tensors was not there before",
                 (int)p->at,
                 w->kind == TRN__ENTRY_BACKWARD ? "trn_backward" : "trn_grad");
        if (trn__trace_diverge(c, walk_agrees, user.to) != TRN_OK)
            return -1;
        if (!p->matching)
            return 0;
    }
    const trn__entry *e = &p->trace->entries[p->at];
    p->used[p->at].in[0] = w->first[0];
    trn_status status = w->kind == TRN__ENTRY_BACKWARD ? apply_backward(c, e, w)
                                                       : apply_grad(c, e, w);
    p->at = e->end;
    return status == TRN_OK ? 1 : -1;
}

int trn__walk_matched(trn_context *c, const trn__walk_call *w)
{
    c->capture->walking = true;
    int matched = walk_matched(c, w);
    c->capture->walking = false;
    return matched;
}

int32_t trn__walk_record_begin(trn_context *c)
{
    trn__capture *p = c->capture;
    trn__entry *e = trn__trace_add_entry(c, TRN__ENTRY_BACKWARD);
    if (e == NULL)
        return -1;
    e->effect = p->trace->n_effects;
    if (trn__trace_room(c, p->trace->graph) != TRN_OK)
        return -1;
    p->depth++;
    return p->trace->n_entries - 1;
}

static trn_status note_pairs(trn_context *c, const trn__walk_call *w)
{
    for (int i = 0; i < w->n; i++) {
        trn_tensor *seed = w->second == NULL ? NULL : w->second[i];
        trn__effect f = {
            known_slot(c, w->first[i]), known_slot(c, seed), -2, -1, -1, 0};
        TRN_TRY(trn__trace_add_effect(c, f));
    }
    for (int i = 0; i < w->n_inputs; i++) {
        trn_tensor *g = w->out[i];
        int32_t kind = w->inputs[i]->requires_grad ? 2 : 1;
        trn__effect f = {known_slot(c, w->inputs[i]),
                         kind,
                         known_slot(c, g),
                         g == NULL ? -1 : trn__handle_entry(c, g),
                         -1,
                         0};
        TRN_TRY(trn__trace_add_effect(c, f));
    }
    return TRN_OK;
}

trn_status trn__walk_record_end(trn_context *c, int32_t entry,
                                const trn__walk_call *w)
{
    trn__capture *p = c->capture;
    trn__trace *t = p->trace;
    p->depth--;
    if (c->status != TRN_OK)
        return c->status;
    if (w->kind == TRN__ENTRY_GRAD)
        TRN_TRY(note_pairs(c, w));
    trn__entry *e = &t->entries[entry];
    e->kind = w->kind;
    e->flags = w->flags;
    if (w->kind == TRN__ENTRY_BACKWARD) {
        e->in = known_slot(c, w->first[0]);
        e->out = known_slot(c, w->second == NULL ? NULL : w->second[0]);
    }
    e->n_effects = t->n_effects - e->effect;
    e->end = t->n_entries;
    for (int32_t i = entry; i < t->n_entries; i++)
        trn__trace_hash_entry(t, i);
    return TRN_OK;
}

/* A call of the step's own that the leaf went into. */
static void find_user(trn_context *c, const trn_tensor *leaf, trn__effect *f)
{
    const trn__capture *p = c->capture;
    const trn__trace *t = p->trace;
    for (int32_t i = 0; i < t->n_entries && f->user < 0; i++) {
        const trn__entry *e = &t->entries[i];
        if (e->node < 0 || e->nested)
            continue;
        for (int k = 0; k < t->graph->nodes[e->node].n_in; k++) {
            if (p->used[i].in[k] == leaf) {
                f->user = i;
                f->number = k;
                break;
            }
        }
    }
}

trn_status trn__walk_note(trn_context *c, trn_tensor *leaf, trn_tensor *old,
                          trn_tensor *grad)
{
    trn__effect f = {known_slot(c, leaf),
                     known_slot(c, old),
                     known_slot(c, grad),
                     trn__handle_entry(c, grad),
                     -1,
                     0};
    find_user(c, leaf, &f);
    return trn__trace_add_effect(c, f);
}
