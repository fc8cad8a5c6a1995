/* SPDX-License-Identifier: Apache-2.0
 *
 * Instructions of random programs that compare with targets.
 */
#include "random_parts.h"

static bool has_axis_small(const trn_tensor *t, const void *user)
{
    return trn_tensor_rank(t) > 0 && random_is_small_float(t, user);
}

trn_tensor *random_do_softmax(random_world *w, const random_instr *in)
{
    trn_tensor *x = random_find(w, in->a, has_axis_small, NULL);
    int axis = in->i / 2 % trn_tensor_rank(x);
    return in->i & 1 ? trn_softmax(x, axis) : trn_log_softmax(x, axis);
}

static bool is_logits(const trn_tensor *t, const void *user)
{
    return random_is_float(t, user) && trn_tensor_rank(t) == 2 &&
           trn_tensor_dim(t, 0) > 0;
}

static bool is_like(const trn_tensor *t, const void *user)
{
    const trn_tensor *x = user;
    return trn_tensor_dtype(t) == trn_tensor_dtype(x) &&
           trn_tensor_rank(t) == 2 &&
           trn_tensor_dim(t, 0) == trn_tensor_dim(x, 0) &&
           trn_tensor_dim(t, 1) == trn_tensor_dim(x, 1);
}

static bool is_class_weight(const trn_tensor *t, const void *user)
{
    const trn_tensor *x = user;
    return trn_tensor_dtype(t) == trn_tensor_dtype(x) &&
           trn_tensor_rank(t) == 1 &&
           trn_tensor_dim(t, 0) == trn_tensor_dim(x, 1);
}

/* Positive, since the mean divides by the sum of some of them. */
static trn_tensor *class_weight(random_world *w, const random_instr *in,
                                trn_tensor *logits)
{
    trn_tensor *t = random_find(w, in->b, is_class_weight, logits);
    int64_t n = trn_tensor_dim(logits, 1);
    if (t == NULL)
        t = trn_cast(random_data(w, TRN_F32, 1, &n, 0),
                     trn_tensor_dtype(logits));
    return random_one_plus_square(t);
}

static trn_tensor *targets(random_world *w, const random_instr *in,
                           trn_tensor *logits, bool probable)
{
    int64_t n = trn_tensor_dim(logits, 0);
    if (!probable)
        return random_data(w, TRN_I32, 1, &n, trn_tensor_dim(logits, 1));
    return trn_softmax(random_find(w, in->c, is_like, logits), 1);
}

trn_tensor *random_do_cross_entropy(random_world *w, const random_instr *in)
{
    trn_cross_entropy_options o = TRN_CROSS_ENTROPY_INIT;
    trn_tensor *x = random_find(w, in->a, is_logits, NULL);
    if (trn_tensor_dim(x, 1) == 0)
        return NULL;
    bool probable = in->j % 4 == 3;
    o.reduction = in->i % 3;
    o.has_ignore_index = in->j % 3 == 0 && !probable;
    o.label_smoothing = in->i % 2 ? (double)(1 + w->salt % 3) / 8.0 : 0.0;
    if (in->i / 8 % 3 == 0)
        o.weight = class_weight(w, in, x);
    return trn_cross_entropy(x, targets(w, in, x, probable), &o);
}

trn_tensor *random_do_mse_loss(random_world *w, const random_instr *in)
{
    trn_tensor *x = random_find(w, in->a, random_is_small_float, NULL);
    trn_tensor *y = random_find(w, in->b, random_broadcasts, x);
    return trn_mse_loss(x, y, (trn_reduction)(in->i % 3));
}
