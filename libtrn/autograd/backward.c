/* SPDX-License-Identifier: Apache-2.0
 *
 * trn_backward and trn_grad.
 *
 * Gradients are collected beside the leaves first and handed over at the end,
 * so a walk that fails changes none.
 */
#include <string.h>

#include "libtrn/autograd/walk.h"
#include "libtrn/context/struct_size.h"
#include "libtrn/ops/capture.h"
#include "libtrn/ops/step.h"
#include "trn/autograd.h"

/* d root / d root, checked: the seed, or 1 for one element.  Borrowed. */
static trn_tensor *seed_for(const char *what, trn_tensor *root,
                            trn_tensor *seed)
{
    trn_context *c = root->c;
    if (seed == NULL) {
        if (trn__numel(root->arg.rank, root->arg.shape) == 1)
            return trn_full(c, (trn_dtype)root->arg.dtype, (int)root->arg.rank,
                            root->arg.shape, 1.0);
        trn__fail(c, TRN_ERR_SHAPE,
                  "%s: the output is %s; expected one element, or a seed of "
                  "its shape",
                  what, trn__describe(&root->arg).s);
        return NULL;
    }
    if (trn__check_tensor(c, what, seed) != TRN_OK)
        return NULL;
    if (seed->arg.dtype == root->arg.dtype &&
        trn__same_shape(&seed->arg, &root->arg))
        return seed;
    trn__fail(c, TRN_ERR_SHAPE, "%s: the seed is %s; expected %s", what,
              trn__describe(&seed->arg).s, trn__describe(&root->arg).s);
    return NULL;
}

static trn_status check_root(trn_context *c, const char *what, trn_tensor *root)
{
    TRN_TRY(trn__check_tensor(c, what, root));
    if (trn__needs_grad(root))
        return TRN_OK;
    return trn__fail(c, TRN_ERR_NOGRAD,
                     "%s: %s was not computed by differentiable ops from a "
                     "tensor whose gradient is wanted",
                     what, trn__describe(&root->arg).s);
}

static trn_status add_root(trn__walk *w, trn_tensor *root, trn_tensor *seed)
{
    trn_context *c = w->c;
    TRN_TRY(check_root(c, w->what, root));
    seed = seed_for(w->what, root, seed);
    if (seed == NULL)
        return c->status;
    TRN_TRY(trn__walk_collect(w, root));
    return trn__walk_add(w, root, seed);
}

/* What becomes t->grad: the old one plus the new, in memory of its own. */
static trn_tensor *accumulated(trn_tensor *t, trn_tensor *grad)
{
    if (t->grad != NULL)
        return trn_add(t->grad, grad);
    if (trn__capture_on(t->c)) /* a value of the step that no leaf has taken */
        return grad->owner != NULL && grad->view == NULL && grad->holds == 0
                   ? grad
                   : trn_copy(grad);
    bool alone = grad->refs == 1 && grad->storage->refs == 1 &&
                 !grad->storage->read_only && trn__is_contiguous(&grad->arg);
    return alone ? grad : trn_copy(grad);
}

static trn_status hand_over(trn__walk *w)
{
    for (int64_t i = 0; i < w->n_leaves; i++) {
        trn__walk_leaf *l = &w->leaves[i];
        trn_tensor *sum = accumulated(l->leaf, l->grad);
        if (sum == NULL)
            return w->c->status;
        if (sum != l->grad) {
            trn__unref(l->grad);
            l->grad = trn__ref(sum);
        }
        sum->holds++; /* taken: the next leaf with the same one copies it */
    }
    for (int64_t i = 0; i < w->n_leaves; i++) {
        trn__walk_leaf *l = &w->leaves[i];
        trn_tensor *grad = l->grad;
        l->grad = NULL;
        grad->holds--; /* trn__set_grad counts it */
        if (trn__capture_on(w->c) &&
            trn__walk_note(w->c, l->leaf, l->leaf->grad, grad) != TRN_OK) {
            trn__unref(grad);
            return w->c->status;
        }
        TRN_TRY(trn__set_grad(l->leaf, grad));
    }
    return TRN_OK;
}

static trn_status walk_backward(trn_context *c, trn_tensor *root,
                                trn_tensor *seed, bool retain_graph)
{
    trn__walk w = {
        .c = c,
        .what = "trn_backward",
        .number = ++c->tape->walks,
        .retain = retain_graph,
    };
    trn__scope scope;
    trn__scope_enter(c, &scope);
    bool mode = trn__grad_mode(c, false);
    trn_status status = add_root(&w, root, seed);
    trn__walk_sort(&w);
    if (status == TRN_OK)
        status = trn__walk_run(&w, NULL, NULL);
    if (status == TRN_OK) {
        /* The scope lets go first: a gradient that only its leaf holds is
         * taken over without a copy. */
        trn__scope_leave(c, &scope, NULL);
        trn__scope_enter(c, &scope);
        status = hand_over(&w);
    }
    trn__grad_mode(c, mode);
    trn__walk_end(&w);
    trn__scope_leave(c, &scope, NULL);
    if (status == TRN_OK)
        trn__step_set_loss(c, root);
    return status;
}

trn_status trn_backward_with(trn_tensor *root, trn_tensor *seed,
                             bool retain_graph)
{
    if (root == NULL)
        return TRN_ERR_ARG;
    trn_context *c = root->c;
    TRN_TRY(trn__pending(c));
    TRN_TRY(check_root(c, "trn_backward", root));
    if (!trn__capture_on(c))
        return walk_backward(c, root, seed, retain_graph);
    trn__walk_call call = {
        .kind = TRN__ENTRY_BACKWARD,
        .flags = retain_graph,
        .n = 1,
        .first = &root,
        .second = &seed,
    };
    int matched = trn__walk_matched(c, &call);
    if (matched != 0)
        return c->status;
    int32_t entry = trn__walk_record_begin(c);
    if (entry < 0)
        return c->status;
    walk_backward(c, root, seed, retain_graph);
    return trn__walk_record_end(c, entry, &call);
}

trn_status trn_backward(trn_tensor *root)
{
    return trn_backward_with(root, NULL, false);
}

/* ---- trn_grad ---- */

typedef struct wanted {
    int n;
    trn_tensor *const *inputs;
    trn_tensor **out; /* with a reference of ours each */
    int n_seeds;
    trn_tensor *const *seeds; /* the caller's; NULL: none */
} wanted;

/* Inputs that were computed: their gradient is complete at their record. */
static trn_status note_complete(void *user, trn__record *r)
{
    wanted *want = user;
    for (int j = 0; j < want->n; j++) {
        if (want->inputs[j]->record == r)
            want->out[j] = trn__ref(r->grad);
    }
    return TRN_OK;
}

static trn_status check_grad(trn_context *c, int n_outputs,
                             trn_tensor *const *outputs, int n_inputs,
                             trn_tensor *const *inputs)
{
    for (int i = 0; i < n_outputs; i++) {
        if (outputs[i] == NULL)
            return trn__fail(c, TRN_ERR_ARG, "trn_grad: output %d is NULL", i);
    }
    for (int j = 0; j < n_inputs; j++) {
        if (inputs[j] == NULL)
            return trn__fail(c, TRN_ERR_ARG, "trn_grad: input %d is NULL", j);
        TRN_TRY(trn__check_tensor(c, "trn_grad", inputs[j]));
        if (!trn__needs_grad(inputs[j]))
            return trn__fail(c, TRN_ERR_NOGRAD,
                             "trn_grad: input %d, %s, has no gradient; "
                             "expected trn_set_requires_grad() before it is "
                             "used",
                             j, trn__describe(&inputs[j]->arg).s);
    }
    return TRN_OK;
}

static trn_status walk_grad(trn__walk *w, int n_outputs,
                            trn_tensor *const *outputs,
                            trn_tensor *const *seeds, wanted *want)
{
    for (int i = 0; i < n_outputs; i++)
        TRN_TRY(add_root(w, outputs[i], seeds == NULL ? NULL : seeds[i]));
    trn__walk_sort(w);
    TRN_TRY(trn__walk_run(w, note_complete, want));
    for (int j = 0; j < want->n; j++) {
        trn_tensor *t = want->inputs[j];
        if (t->record == NULL && t->walk == w->number)
            want->out[j] = trn__ref(w->leaves[t->slot].grad);
    }
    return TRN_OK;
}

/* A tensor that the caller has already: his seed, or an earlier result. */
static bool is_taken(const wanted *want, int j)
{
    const trn_tensor *g = want->out[j];
    for (int i = 0; i < j; i++) {
        if (want->out[i] == g)
            return true;
    }
    for (int i = 0; i < want->n_seeds && want->seeds != NULL; i++) {
        if (want->seeds[i] == g) /* a captured step's is in no ring */
            return true;
    }
    return g->ring != NULL;
}

/* Result j as a tensor of its own in the current scope, for ours. */
static trn_tensor *delivered(wanted *want, int j, bool zeros)
{
    trn_tensor *g = want->out[j], *t = want->inputs[j], *own = g;
    if (g == NULL)
        return zeros ? trn_full(t->c, (trn_dtype)t->arg.dtype, (int)t->arg.rank,
                                t->arg.shape, 0.0)
                     : NULL;
    if (is_taken(want, j) || g->view != NULL || g->storage->refs > 1 ||
        !trn__is_contiguous(&g->arg))
        own = trn_copy(g); /* a write to it must reach nothing else */
    if (own == g && (g->owner == NULL || !t->c->tensors->in_step))
        trn__scope_add(t->c, g); /* our reference is now the scope's */
    else
        trn__unref(g);
    return own;
}

static trn_status deliver(wanted *want, bool zeros)
{
    for (int j = 0; j < want->n; j++)
        want->out[j] = delivered(want, j, zeros);
    return want->n == 0 ? TRN_OK : want->inputs[0]->c->status;
}

static trn_status walk_and_deliver(trn_context *c, const trn_grad_options *o,
                                   const trn__walk_call *call)
{
    trn__walk w = {
        .c = c,
        .what = "trn_grad",
        .number = ++c->tape->walks,
        .retain = o->retain_graph || o->create_graph,
        .create_graph = o->create_graph,
    };
    wanted want = {
        .n = call->n_inputs,
        .inputs = call->inputs,
        .out = call->out,
        .n_seeds = call->n,
        .seeds = call->second,
    };
    trn__scope scope;
    trn__scope_enter(c, &scope);
    trn_status status =
        walk_grad(&w, call->n, call->first, call->second, &want);
    trn__walk_end(&w);
    trn__scope_leave(c, &scope, NULL);
    bool mode = trn__grad_mode(c, o->create_graph);
    if (status == TRN_OK)
        status = deliver(&want, o->zeros);
    else
        for (int j = 0; j < want.n; j++) {
            trn__unref(want.out[j]);
            want.out[j] = NULL;
        }
    trn__grad_mode(c, mode);
    return status;
}

trn_status trn_grad(int n_outputs, trn_tensor *const *outputs, int n_inputs,
                    trn_tensor *const *inputs, trn_tensor *const *seeds,
                    const trn_grad_options *options, trn_tensor **out)
{
    trn_grad_options o = TRN_GRAD_INIT;
    if (n_outputs < 1 || outputs == NULL || outputs[0] == NULL ||
        n_inputs < 0 || (n_inputs > 0 && (inputs == NULL || out == NULL)))
        return TRN_ERR_ARG;
    trn_context *c = outputs[0]->c;
    for (int j = 0; j < n_inputs; j++)
        out[j] = NULL;
    TRN_TRY(trn__pending(c));
    TRN_TRY(trn__options_take(c, "trn_grad", TRN__SIZED_trn_grad_options, &o,
                              options));
    TRN_TRY(check_grad(c, n_outputs, outputs, n_inputs, inputs));
    trn__walk_call call = {
        .kind = TRN__ENTRY_GRAD,
        .flags = (uint32_t)o.retain_graph | (uint32_t)o.create_graph << 1 |
                 (uint32_t)o.zeros << 2,
        .n = n_outputs,
        .first = outputs,
        .second = seeds,
        .n_inputs = n_inputs,
        .inputs = inputs,
        .out = out,
    };
    if (!trn__capture_on(c))
        return walk_and_deliver(c, &o, &call);
    for (int i = 0; i < n_outputs; i++)
        TRN_TRY(check_root(c, "trn_grad", outputs[i]));
    int matched = trn__walk_matched(c, &call);
    if (matched != 0)
        return c->status;
    int32_t entry = trn__walk_record_begin(c);
    if (entry < 0)
        return c->status;
    walk_and_deliver(c, &o, &call);
    return trn__walk_record_end(c, entry, &call);
}
