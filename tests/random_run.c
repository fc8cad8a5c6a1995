/* SPDX-License-Identifier: Apache-2.0
 *
 * The interpreter of random programs: operands, the log, the loop.
 */
#include <string.h>

#include "libtrn/tensor/tensor.h"
#include "random_parts.h"

static trn_tensor *(*const functions[RANDOM_N_OPS])(random_world *w,
                                                    const random_instr *in) = {
#define X(name, often) random_do_##name,
    RANDOM_OPS(X)
#undef X
};

static trn_tensor *tensor_of(const random_world *w, int code)
{
    return code >= CODE_GRAD
               ? trn_grad_of(w->tensor[CODE_PARAMETER + code - CODE_GRAD])
               : w->tensor[code];
}

trn_tensor *random_find(random_world *w, uint8_t code, random_fits fits,
                        const void *user)
{
    for (int i = 0; i < N_CODES; i++) {
        int at = (code + N_CODES - i) % N_CODES;
        trn_tensor *t = tensor_of(w, at);
        if (t != NULL && fits(t, user)) {
            w->found = w->found < 0 ? at : w->found;
            w->signature =
                random_mix(w->signature, (uint64_t)at + w->origin[at]);
            return t;
        }
    }
    w->signature = random_mix(w->signature, 1000);
    return NULL;
}

bool random_is_any(const trn_tensor *t, const void *user)
{
    (void)user;
    return t != NULL;
}

bool random_is_float(const trn_tensor *t, const void *user)
{
    trn_dtype d = trn_tensor_dtype(t);
    (void)user;
    return d == TRN_F64 || d == TRN_F32 || d == TRN_BF16 || d == TRN_F16;
}

bool random_is_float2(const trn_tensor *t, const void *user)
{
    return random_is_float(t, user) && trn_tensor_rank(t) >= 2;
}

bool random_is_small(const trn_tensor *t)
{
    return trn_tensor_numel(t) < 2000 && trn_tensor_rank(t) < 5;
}

bool random_is_small_float(const trn_tensor *t, const void *user)
{
    return random_is_float(t, user) && random_is_small(t);
}

bool random_is_bool(const trn_tensor *t, const void *user)
{
    (void)user;
    return trn_tensor_dtype(t) == TRN_BOOL;
}

static bool fit(const trn_tensor *t, const trn_tensor *x, bool into)
{
    int rank = trn_tensor_rank(t), other = trn_tensor_rank(x);
    if (into && rank > other)
        return false;
    for (int d = 1; d <= rank && d <= other; d++) {
        int64_t a = trn_tensor_dim(t, -d), b = trn_tensor_dim(x, -d);
        if (a != b && a != 1 && (into || b != 1))
            return false;
    }
    return true;
}

bool random_goes_into(const trn_tensor *t, const void *user)
{
    const trn_tensor *x = user;
    return trn_tensor_dtype(t) == trn_tensor_dtype(x) && fit(t, x, true);
}

bool random_broadcasts(const trn_tensor *t, const void *user)
{
    const trn_tensor *x = user;
    return trn_tensor_dtype(t) != TRN_BOOL &&
           random_is_float(t, NULL) == random_is_float(x, NULL) &&
           trn_tensor_numel(t) < 2000 && fit(t, x, false);
}

void random_shape(const trn_tensor *t, int64_t *shape)
{
    for (int d = 0; d < trn_tensor_rank(t); d++)
        shape[d] = trn_tensor_dim(t, d);
}

trn_tensor *random_data(random_world *w, trn_dtype dtype, int rank,
                        const int64_t *shape, int64_t limit)
{
    static float numbers[4096];
    static int32_t indices[4096];
    int64_t n = 1;
    uint64_t s = random_mix(w->salt, (uint64_t)w->at);
    for (int d = 0; d < rank; d++)
        n *= shape[d];
    for (int64_t i = 0; i < n && i < 4096; i++) {
        uint64_t x = random_next(&s) >> 7;
        numbers[i] = (float)((int)(x % 65) - 32) / 16.0f;
        indices[i] = limit > 0 ? (int32_t)(x % (uint64_t)limit) : 0;
    }
    return trn_tensor_from(w->c, dtype, rank, shape,
                           dtype == TRN_F32 ? (const void *)numbers : indices);
}

double random_value(const random_world *w, const random_instr *in)
{
    return in->value + (double)(w->salt % 16) / 64.0;
}

/* What can be told of a result without looking at its values. */
static uint64_t facts(const trn_tensor *t)
{
    if (t == NULL)
        return 1;
    uint64_t h = random_mix(2, trn_tensor_dtype(t));
    for (int d = 0; d < trn_tensor_rank(t); d++)
        h = random_mix(h, (uint64_t)trn_tensor_dim(t, d));
    return random_mix(h, trn_requires_grad(t));
}

static const trn_tensor *base_of(const trn_tensor *t)
{
    while (t != NULL && t->view != NULL)
        t = t->view->base;
    return t;
}

/* What a kept tensor looks at.  Two views of one view, and a history from
 * outside of steps, are not told apart: such a step is like no other. */
static void sign_kept(random_world *w, int code)
{
    const trn_tensor *base = base_of(w->tensor[code]);
    int views = 0, first = CODE_PARAMETER;
    if (base == NULL)
        return;
    for (const trn_tensor *t = w->tensor[code]; t != base; t = t->view->base) {
        w->signature = random_mix(w->signature, facts(t) + t->view->op);
        w->signature = random_mix(w->signature, t->grad != NULL);
        views++;
    }
    while (base_of(tensor_of(w, first)) != base)
        first++;
    w->signature = random_mix(w->signature, facts(base) + (uint64_t)first);
    w->signature = random_mix(w->signature, base->grad != NULL);
    if ((views > 1 && first < code) || w->tensor[code]->record != NULL)
        w->signature = random_mix(w->signature, w->salt);
}

/* Where the step begins from. */
static void sign_start(random_world *w)
{
    w->signature = random_mix(11, (uint64_t)w->which);
    for (int i = CODE_PARAMETER; i < N_CODES; i++) {
        const trn_tensor *t = tensor_of(w, i);
        w->signature = random_mix(w->signature, facts(t) + w->origin[i]);
    }
    for (int i = 0; i < 4; i++)
        sign_kept(w, CODE_KEPT + i);
}

static uint64_t origin_of(const random_world *w, const random_instr *in)
{
    uint64_t h = random_mix((uint64_t)w->which + 5, (uint64_t)w->at);
    bool view = in->op == RANDOM_reshape || in->op == RANDOM_permute ||
                in->op == RANDOM_expand || in->op == RANDOM_slice ||
                in->op == RANDOM_detach;
    if (!view || w->found < 0)
        return h;
    return random_mix(h, (uint64_t)w->found + w->origin[w->found]);
}

/* Settings, which no step takes back, are made before anything can fail. */
static void set_optimizers(random_world *w)
{
    for (int i = 0; i < 3; i++) {
        bool keeps = (w->k->seed >> (3 + i + w->which)) % 4 == 0;
        trn_optim_keep_grad(w->optim[i], keeps);
        trn_optim_set_learning_rate(w->optim[i],
                                    0.01 + (double)(w->salt % 8) / 256.0);
    }
}

void random_run(random_world *w, const random_program *p, int which)
{
    w->p = p;
    w->which = which;
    w->no_grad = 0;
    w->failed_at = -1;
    set_optimizers(w);
    sign_start(w);
    memset(w->log, 0, 4 * RANDOM_MAX_OPS * sizeof *w->log);
    for (w->at = 0; w->at < p->n; w->at++) {
        const random_instr *in = &p->at[w->at];
        w->signature = random_mix(w->signature, in->op);
        w->found = -1;
        trn_tensor *t = functions[in->op](w, in);
        w->origin[w->at] = w->origin[CODE_SECOND + w->at] = origin_of(w, in);
        w->tensor[w->at] = t;
        w->signature = random_mix(w->signature, facts(t));
        w->log[w->at] =
            random_mix(facts(t), w->had_errors ? 0 : trn_tensor_version(t));
        if (w->failed_at < 0 && trn_errcode(w->c) != TRN_OK)
            w->failed_at = w->at;
    }
    while (w->no_grad-- > 0)
        trn_no_grad_end(w->c);
}
