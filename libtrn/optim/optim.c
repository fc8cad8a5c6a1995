/* SPDX-License-Identifier: Apache-2.0
 *
 * What all optimizers share: state, the update of all parameters, clipping.
 */
#include <math.h>
#include <string.h>

#include "libtrn/optim/optim.h"
#include "libtrn/ops/step.h"
#include "trn/autograd.h"

static void optim_destroy(trn__owned *self)
{
    trn_optim *o = (trn_optim *)self;
    for (int s = 0; s < TRN__MAX_STATES; s++) {
        for (int64_t i = 0; o->states[s] != NULL && i < o->n; i++)
            trn__unref(o->states[s][i]);
        trn__free(o->c, o->states[s]);
    }
    for (int64_t i = 0; o->parameters != NULL && i < o->n; i++)
        trn__unref(o->parameters[i]);
    trn__free(o->c, o->parameters);
    for (int64_t i = 0; o->ages != NULL && i < o->n; i++)
        trn__counter_remove(&o->ages[i]);
    trn__free(o->c, o->ages);
    trn__free(o->c, o->names);
    trn__counter_remove(&o->steps);
    trn__free(o->c, o);
}

trn_status trn__check_option(trn_context *c, const char *what, const char *name,
                             double value, double low, double high)
{
    char text[32], from[32], to[32];
    if (trn__fp_within(value, low, high) && !trn__fp_within(value, high, high))
        return TRN_OK;
    return trn__fail(c, TRN_ERR_ARG, "%s: %s is %s; expected [%s, %s)", what,
                     name, trn__format_double(value, text, sizeof text),
                     trn__format_double(low, from, sizeof from),
                     trn__format_double(high, to, sizeof to));
}

/* Zeros like each parameter, which live as long as the optimizer. */
static trn_status make_states(trn_optim *o, int s)
{
    TRN_ASSERT(o->parameters != NULL);
    o->states[s] = trn__alloc_zeroed(o->c, (size_t)o->n * sizeof(trn_tensor *));
    if (o->states[s] == NULL)
        return trn__fail_memory(o->c, o->kind->name,
                                (uint64_t)o->n * sizeof(trn_tensor *));
    for (int64_t i = 0; i < o->n; i++) {
        if (o->parameters[i] == NULL)
            continue;
        const trn_arg *p = &o->parameters[i]->arg;
        trn_tensor *t =
            trn_tensor_zeros(o->c, (trn_dtype)p->dtype, (int)p->rank, p->shape);
        if (t == NULL)
            return o->c->status;
        t->storage->step = 0;
        trn__adopt_tensor(t);
        o->states[s][i] = t;
    }
    return TRN_OK;
}

/* A tensor that stands in the tree twice (tied weights) is updated once. */
static bool is_listed(const trn_optim *o, const trn_tensor *p, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (o->parameters[i] == p)
            return true;
    }
    return false;
}

/* The gradient of parameter i; NULL if there is none, or no such place. */
static trn_tensor *grad_at(const trn_optim *o, int64_t i)
{
    return o->parameters[i] == NULL ? NULL : o->parameters[i]->grad;
}

static trn_status make_ages(trn_optim *o)
{
    o->ages = trn__alloc_zeroed(o->c, (size_t)(o->n + 1) * sizeof *o->ages);
    if (o->ages == NULL)
        return trn__fail_memory(o->c, o->kind->name,
                                (uint64_t)o->n * sizeof *o->ages);
    for (int64_t i = 0; i < o->n; i++)
        trn__counter_add(o->c, &o->ages[i]);
    return TRN_OK;
}

/* Kept as they are now: a module may get more parameters. */
static trn_status keep_names(trn_optim *o, trn_module *m)
{
    size_t bytes = 1, at = 0;
    for (int64_t i = 0; i < o->n; i++)
        bytes += strlen(trn_nn_parameter_name(m, i)) + 1;
    o->names = trn__alloc(o->c, bytes);
    if (o->names == NULL)
        return trn__fail_memory(o->c, o->kind->name, bytes);
    for (int64_t i = 0; i < o->n; i++) {
        const char *name = trn_nn_parameter_name(m, i);
        size_t n = strlen(name) + 1;
        memcpy(o->names + at, name, n);
        at += n;
    }
    return TRN_OK;
}

trn_optim *trn__optim_new(trn_module *m, const trn__optim_kind *kind,
                          double learning_rate)
{
    trn_context *c = trn_nn_context(m);
    trn_optim *o = trn__alloc_zeroed(c, sizeof *o);
    if (o == NULL) {
        trn__fail_memory(c, kind->name, sizeof *o);
        return NULL;
    }
    o->c = c;
    o->kind = kind;
    o->learning_rate = learning_rate;
    trn__counter_add(c, &o->steps);
    trn__own(c, &o->owned, optim_destroy);
    o->n = trn_nn_parameter_count(m);
    o->parameters =
        trn__alloc_zeroed(c, (size_t)(o->n + 1) * sizeof(trn_tensor *));
    if (o->parameters == NULL)
        trn__fail_memory(c, kind->name, (uint64_t)o->n * sizeof(trn_tensor *));
    for (int64_t i = 0; o->parameters != NULL && i < o->n; i++) {
        trn_tensor *p = trn_nn_parameter_at(m, i);
        o->parameters[i] = is_listed(o, p, i) ? NULL : trn__ref(p);
    }
    if (c->status == TRN_OK)
        make_ages(o);
    if (c->status == TRN_OK)
        keep_names(o, m);
    for (int s = 0; s < kind->n_states && c->status == TRN_OK; s++)
        make_states(o, s);
    if (c->status == TRN_OK)
        return o;
    trn__disown(&o->owned);
    optim_destroy(&o->owned);
    return NULL;
}

/* All that could fail is looked at before anything changes. */
static trn_status check_step(trn_optim *o)
{
    for (int64_t i = 0; i < o->n; i++) {
        trn_tensor *p = o->parameters[i];
        if (grad_at(o, i) == NULL)
            continue;
        if (p->grad->arg.dtype != p->arg.dtype ||
            !trn__same_shape(&p->grad->arg, &p->arg))
            return trn__fail(o->c, TRN_ERR_SHAPE,
                             "trn_optim_step: parameter %lld is %s, its "
                             "gradient is %s",
                             (long long)i, trn__describe(&p->arg).s,
                             trn__describe(&p->grad->arg).s);
    }
    return TRN_OK;
}

/* What the updates of all parameters of one age have in common. */
static trn__call begin_updates(const trn_optim *o, uint64_t age)
{
    trn__call k = {.c = o->c, .repeated = true};
    trn__fp_env saved; /* host arithmetic has the library's modes, too */
    trn__fp_enter(&saved);
    o->kind->fill(o, age, &k);
    trn__fp_leave(&saved);
    k.n_in = trn__ops[k.op].n_in;
    k.n_values = trn__ops[k.op].n_values;
    return k;
}

static trn_status update(trn_optim *o, int64_t i, trn__call *k)
{
    trn_tensor *p = o->parameters[i];
    if (p->storage->deferred) /* two updates of it in a step: in turn */
        TRN_TRY(o->c->tensors->settle(o->c, p));
    k->in[0] = p;
    k->in[1] = p->grad;
    for (int s = 0; s < o->kind->n_states; s++)
        k->in[2 + s] = o->states[s][i];
    return trn__defer_update(k);
}

static void update_all(trn_optim *o)
{
    trn__call k = {.c = NULL};
    uint64_t age = 0;
    for (int64_t i = 0; i < o->n && o->c->status == TRN_OK; i++) {
        if (grad_at(o, i) == NULL)
            continue;
        if (k.c == NULL || o->ages[i].value != age) {
            age = o->ages[i].value;
            k = begin_updates(o, age);
        }
        update(o, i, &k);
    }
}

trn_status trn_optim_step(trn_optim *o)
{
    if (o == NULL)
        return TRN_ERR_ARG;
    trn_context *c = o->c;
    TRN_TRY(trn__pending(c));
    TRN_TRY(check_step(o));
    bool mode = trn__grad_mode(c, false);
    update_all(o);
    for (int64_t i = 0; i < o->n && c->status == TRN_OK; i++) {
        if (grad_at(o, i) == NULL)
            continue;
        o->ages[i].value++;
        if (!o->keep_grad)
            trn__set_grad(o->parameters[i], NULL);
    }
    trn__grad_mode(c, mode);
    if (c->status == TRN_OK)
        o->steps.value++;
    return c->status;
}

trn_status trn_optim_keep_grad(trn_optim *o, bool keep)
{
    if (o == NULL)
        return TRN_ERR_ARG;
    TRN_TRY(trn__pending(o->c));
    o->keep_grad = keep;
    return TRN_OK;
}

trn_status trn_optim_zero_grad(trn_optim *o)
{
    if (o == NULL)
        return TRN_ERR_ARG;
    for (int64_t i = 0; i < o->n; i++) {
        if (grad_at(o, i) != NULL)
            TRN_TRY(trn_zero_grad(o->parameters[i]));
    }
    return trn__pending(o->c);
}

int64_t trn_optim_steps(const trn_optim *o)
{
    return o == NULL ? 0 : (int64_t)o->steps.value;
}

trn_status trn_optim_set_learning_rate(trn_optim *o, double value)
{
    if (o == NULL)
        return TRN_ERR_ARG;
    TRN_TRY(trn__pending(o->c));
    TRN_TRY(trn__check_option(o->c, "trn_optim_set_learning_rate",
                              "the learning rate", value, 0.0, 1e300));
    o->learning_rate = value;
    return TRN_OK;
}

double trn_optim_learning_rate(const trn_optim *o)
{
    trn__fp_env saved;
    if (o == NULL)
        return 0.0;
    trn__fp_enter(&saved);
    double factor =
        o->schedule == NULL
            ? 1.0
            : trn_schedule_factor(o->schedule, (int64_t)o->steps.value);
    double rate = o->learning_rate * factor;
    trn__fp_leave(&saved);
    return rate;
}

trn_status trn_optim_set_schedule(trn_optim *o, trn_schedule *s)
{
    if (o == NULL)
        return TRN_ERR_ARG;
    TRN_TRY(trn__pending(o->c));
    TRN_TRY(trn__schedule_check(o->c, "trn_optim_set_schedule", s));
    o->schedule = s;
    return TRN_OK;
}

trn_tensor *trn_optim_state(trn_optim *o, int64_t i, const char *name)
{
    if (o == NULL || name == NULL || i < 0 || i >= o->n)
        return NULL;
    for (int s = 0; s < o->kind->n_states; s++) {
        if (strcmp(o->kind->state_names[s], name) == 0)
            return o->states[s][i];
    }
    return NULL;
}

/* ---- clipping ---- */

/* The norm of all gradients: the norm of their norms, as one tensor [n]. */
static trn_tensor *total_norm(trn_optim *o)
{
    trn_tensor *all = NULL;
    int64_t n = 0, at = 0;
    for (int64_t i = 0; i < o->n; i++)
        n += grad_at(o, i) != NULL;
    for (int64_t i = 0; i < o->n; i++) {
        trn_tensor *g = grad_at(o, i);
        if (g == NULL)
            continue;
        trn_tensor *norm = trn_norm(trn__up(g), TRN_ALL_AXES, false);
        norm = trn_reshape(norm, 1, (int64_t[]){1});
        norm = trn_pad(norm, 0, at, n - 1 - at, 0);
        all = all == NULL ? norm : trn_add(all, norm);
        if (all == NULL)
            return NULL;
        at++;
    }
    if (all == NULL)
        return trn_full(o->c, TRN_F32, 0, NULL, 0.0);
    return trn_norm(all, TRN_ALL_AXES, false);
}

/* All scaled gradients are made before the first one is put in place. */
static trn_status scale_gradients(trn_optim *o, trn_tensor *factor)
{
    trn_context *c = o->c;
    trn_tensor **scaled =
        trn__alloc_zeroed(c, (size_t)(o->n + 1) * sizeof(trn_tensor *));
    if (scaled == NULL)
        return trn__fail_memory(c, "trn_optim_clip_norm",
                                (uint64_t)o->n * sizeof(trn_tensor *));
    for (int64_t i = 0; i < o->n && c->status == TRN_OK; i++) {
        trn_tensor *g = grad_at(o, i);
        if (g != NULL)
            scaled[i] = trn__down(trn_mul(trn__up(g), factor), g->arg.dtype);
    }
    for (int64_t i = 0; i < o->n && c->status == TRN_OK; i++) {
        if (scaled[i] != NULL)
            trn__set_grad(o->parameters[i], trn__ref(scaled[i]));
    }
    trn__free(c, scaled);
    return c->status;
}

trn_tensor *trn_optim_clip_norm(trn_optim *o, double max_norm)
{
    char text[32];
    if (o == NULL || trn__pending(o->c) != TRN_OK)
        return NULL;
    trn_context *c = o->c;
    if (!trn__fp_within(max_norm, 0.0, (double)INFINITY)) {
        trn__fail(c, TRN_ERR_ARG,
                  "trn_optim_clip_norm: max_norm is %s; expected 0 or more",
                  trn__format_double(max_norm, text, sizeof text));
        return NULL;
    }
    trn__scope scope;
    trn__scope_enter(c, &scope);
    bool mode = trn__grad_mode(c, false);
    trn_tensor *norm = trn_check_finite(total_norm(o));
    trn_tensor *factor = NULL;
    if (norm != NULL) { /* min(1, r) = -max(-1, -r) */
        trn_tensor *limit =
            trn_full(c, (trn_dtype)norm->arg.dtype, 0, NULL, max_norm);
        trn_tensor *r = trn_div(limit, trn_add_scalar(norm, 1e-6));
        trn_tensor *one = trn_full(c, (trn_dtype)norm->arg.dtype, 0, NULL, 1.0);
        factor = trn_neg(trn_maximum(trn_neg(one), trn_neg(r)));
    }
    if (factor != NULL)
        scale_gradients(o, factor);
    trn__grad_mode(c, mode);
    norm = trn__scope_leave(c, &scope, norm);
    return c->status == TRN_OK ? norm : NULL;
}
