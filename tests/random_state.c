/* SPDX-License-Identifier: Apache-2.0
 *
 * Instructions of random programs that write, differentiate, train, keep.
 */
#include <stdlib.h>
#include <string.h>

#include "libtrn/optim/optim.h"
#include "random_parts.h"

static bool may_be_written(const trn_tensor *t, const void *user)
{
    (void)user;
    return trn_tensor_numel(t) < 2000;
}

trn_tensor *random_do_assign(random_world *w, const random_instr *in)
{
    uint8_t code = in->i % 4 == 0   ? in->a
                   : in->i % 4 == 3 ? (uint8_t)(CODE_PARAMETER + in->i / 4 % 8)
                                    : (uint8_t)(CODE_BUFFER + in->i / 4 % 13);
    trn_tensor *x = random_find(w, code, may_be_written, NULL);
    trn_tensor *y = random_find(w, in->b, random_goes_into, x);
    bool quiet = in->j % 4 != 0 || trn_requires_grad(x);
    if (quiet)
        trn_no_grad_begin(w->c);
    trn_assign(x, y);
    if (quiet)
        trn_no_grad_end(w->c);
    return NULL;
}

static bool can_take_data(const trn_tensor *t, const void *user)
{
    return may_be_written(t, user) && trn_tensor_dtype(t) == TRN_F32 &&
           !trn_requires_grad(t);
}

trn_tensor *random_do_write(random_world *w, const random_instr *in)
{
    static float data[2000];
    trn_tensor *x = random_find(w, in->a, can_take_data, NULL);
    uint64_t s = random_mix(w->salt, in->j);
    if (x == NULL)
        return NULL;
    for (int i = 0; i < 2000; i++)
        data[i] = (float)(random_next(&s) % 9) / 4.0f - 1.0f;
    trn_tensor_write(x, data, (size_t)trn_tensor_numel(x) * sizeof(float));
    return NULL;
}

trn_tensor *random_do_detach(random_world *w, const random_instr *in)
{
    return trn_detach(random_find(w, in->a, random_is_any, NULL));
}

trn_tensor *random_do_no_grad(random_world *w, const random_instr *in)
{
    if (w->no_grad > 0 && in->i % 2 == 0) {
        w->no_grad--;
        trn_no_grad_end(w->c);
    } else if (w->no_grad < 2 && trn_no_grad_begin(w->c) == TRN_OK) {
        w->no_grad++;
    }
    return NULL;
}

/* ---- gradients ---- */

static bool wants_gradient(const trn_tensor *t, const void *user)
{
    return random_is_float(t, user) && trn_requires_grad(t);
}

static bool is_computed(const trn_tensor *t, const void *user)
{
    const random_world *w = user;
    for (int i = 0; i < 8; i++) {
        if (t == w->tensor[CODE_PARAMETER + i])
            return false;
    }
    return wants_gradient(t, NULL);
}

trn_tensor *random_do_grad(random_world *w, const random_instr *in)
{
    trn_grad_options o = TRN_GRAD_INIT;
    trn_tensor *out[2] = {NULL, NULL};
    o.create_graph = in->i & 1;
    o.retain_graph = in->i % 8 != 0;
    o.zeros = in->i & 16;
    trn_tensor *y = random_find(w, in->a, is_computed, w);
    trn_tensor *inputs[2] = {random_find(w, in->b, wants_gradient, NULL),
                             random_find(w, in->c, wants_gradient, NULL)};
    if (y == NULL || inputs[0] == NULL)
        return NULL;
    int64_t shape[TRN_MAX_RANK];
    random_shape(y, shape);
    trn_tensor *seed = NULL;
    if (trn_tensor_numel(y) != 1)
        seed = trn_full(w->c, trn_tensor_dtype(y), trn_tensor_rank(y), shape,
                        random_value(w, in));
    trn_grad(1, &y, in->j % 4 == 0 ? 1 : 2, inputs, &seed, &o, out);
    w->tensor[CODE_SECOND + w->at] = out[1];
    return out[0];
}

trn_tensor *random_do_backward(random_world *w, const random_instr *in)
{
    trn_tensor *y = random_find(w, in->a, is_computed, w);
    bool retain = in->i % 4 != 0;
    if (y == NULL)
        return NULL;
    if (in->j % 8 == 0) { /* with a seed, perhaps one of the results */
        trn_tensor *seed = random_find(w, in->b, random_goes_into, y);
        int64_t shape[TRN_MAX_RANK];
        random_shape(y, shape);
        seed = trn_expand(trn_detach(seed), trn_tensor_rank(y), shape);
        trn_backward_with(y, seed, retain);
        return NULL;
    }
    if (trn_tensor_numel(y) != 1)
        y = in->j % 2 == 0 ? trn_mean(y, TRN_ALL_AXES, false)
                           : trn_sum(y, TRN_ALL_AXES, false);
    trn_backward_with(y, NULL, retain);
    return NULL;
}

/* Parameters next to each other that were updated equally often take the same
 * scalars; so a step in which others do is another program. */
static void step_of(random_world *w, trn_optim *o)
{
    uint64_t age = UINT64_MAX;
    for (int64_t i = 0; i < o->n; i++) {
        if (o->parameters[i] == NULL || trn_grad_of(o->parameters[i]) == NULL)
            continue;
        w->signature = random_mix(w->signature, o->ages[i].value == age);
        age = o->ages[i].value;
    }
    trn_optim_step(o);
}

trn_tensor *random_do_optim(random_world *w, const random_instr *in)
{
    step_of(w, w->optim[in->i % 3]);
    if (in->j % 4 == 3)
        step_of(w, w->optim[1]);
    return NULL;
}

trn_tensor *random_do_clip(random_world *w, const random_instr *in)
{
    return trn_optim_clip_norm(w->optim[in->i % 3],
                               0.5 + (double)(w->salt % 8));
}

trn_tensor *random_do_zero_grad(random_world *w, const random_instr *in)
{
    if (in->i % 2 == 0)
        trn_optim_zero_grad(w->optim[in->j % 3]);
    else
        trn_zero_grad(w->tensor[CODE_PARAMETER + in->j % 8]);
    return NULL;
}

/* ---- lives ---- */

/* A result that no other register and nothing kept is, too. */
static bool is_own_result(const trn_tensor *t, const void *user)
{
    const random_world *w = user;
    int n = 0;
    for (int i = 0; i < N_CODES; i++)
        n += w->tensor[i] == t;
    for (int i = 0; i < 4; i++)
        n += w->wants[i] == t;
    for (int i = CODE_PARAMETER; i < N_CODES; i++)
        n += w->tensor[i] == t;
    return n == 1;
}

static void want(random_world *w, int slot, trn_tensor *t)
{
    trn_tensor_release(w->wants[slot]);
    w->wants[slot] = t;
    w->wants_from[slot] = w->origin[w->found];
}

trn_tensor *random_do_keep(random_world *w, const random_instr *in)
{
    trn_tensor *t = random_find(w, in->a, is_own_result, w);
    if (t == NULL || w->wants[in->i % 4] != NULL)
        return NULL;
    if (trn_keep(t) != NULL)
        want(w, in->i % 4, t);
    return NULL;
}

trn_tensor *random_do_retain(random_world *w, const random_instr *in)
{
    trn_tensor *t = random_find(w, in->a, is_own_result, w);
    if (t == NULL || w->wants[in->i % 4] != NULL)
        return NULL;
    if (w->p->outside ? trn_keep(t) != NULL : trn_tensor_retain(t) != NULL)
        want(w, in->i % 4, t);
    return NULL;
}

trn_tensor *random_do_release(random_world *w, const random_instr *in)
{
    trn_tensor *t = random_find(w, in->a, is_own_result, w);
    if (t == NULL)
        return NULL;
    for (int i = 0; i < CODE_PARAMETER; i++) {
        if (w->tensor[i] == t)
            w->tensor[i] = NULL;
    }
    trn_tensor_release(t);
    return NULL;
}

static bool can_be_leaf(const trn_tensor *t, const void *user)
{
    return random_is_float(t, user) && !trn_requires_grad(t) &&
           is_own_result(t, user);
}

trn_tensor *random_do_leaf(random_world *w, const random_instr *in)
{
    trn_tensor *t = random_find(w, in->a, can_be_leaf, w);
    if (t != NULL)
        trn_set_requires_grad(t, true);
    return NULL;
}

/* ---- looking ---- */

static uint64_t hash_of(trn_tensor *t)
{
    size_t element = trn_dtype_size(trn_tensor_dtype(t));
    size_t n = (size_t)trn_tensor_numel(t) * element;
    unsigned char *data = malloc(n + 8);
    uint64_t h = 9;
    memset(data, 0, n + 8);
    if (trn_tensor_read(t, data, n) == TRN_OK && element == 4) {
        for (size_t i = 0; i < n; i += 4) {
            float x;
            memcpy(&x, data + i, 4);
            bool nan = trn_tensor_dtype(t) == TRN_F32 && x != x;
            uint32_t bits;
            memcpy(&bits, data + i, 4);
            h = random_mix(h, nan ? 77u : bits);
        }
    }
    free(data);
    return h;
}

trn_tensor *random_do_read(random_world *w, const random_instr *in)
{
    trn_tensor *t = random_find(w, in->a, random_is_any, NULL);
    w->log[2 * RANDOM_MAX_OPS + w->at] = hash_of(t);
    return NULL;
}

trn_tensor *random_do_loss(random_world *w, const random_instr *in)
{
    double x = trn_step_loss(w->c);
    uint64_t bits;
    (void)in;
    memcpy(&bits, &x, sizeof bits);
    w->log[2 * RANDOM_MAX_OPS + w->at] = x != x ? 77u : bits;
    return NULL;
}

trn_tensor *random_do_finite(random_world *w, const random_instr *in)
{
    return trn_check_finite(random_find(w, in->a, random_is_float, NULL));
}
