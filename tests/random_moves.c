/* SPDX-License-Identifier: Apache-2.0
 *
 * Instructions of random programs that join, turn round and select, and draw
 * integers.
 */
#include "random_parts.h"

static bool has_axis_small(const trn_tensor *t, const void *user)
{
    return trn_tensor_rank(t) > 0 && random_is_any(t, user) &&
           random_is_small(t);
}

static bool is_of_shape(const trn_tensor *t, const void *user)
{
    const trn_tensor *x = user;
    bool same = trn_tensor_rank(t) == trn_tensor_rank(x);
    for (int d = 0; same && d < trn_tensor_rank(x); d++)
        same = trn_tensor_dim(t, d) == trn_tensor_dim(x, d);
    return same;
}

/* Up to three of one shape, or a tensor and a part of it. */
trn_tensor *random_do_join(random_world *w, const random_instr *in)
{
    trn_tensor *x = random_find(w, in->a, has_axis_small, NULL);
    int rank = trn_tensor_rank(x), axis = in->i % rank;
    trn_tensor *y = random_find(w, in->b, is_of_shape, x);
    trn_tensor *part[3] = {x, y == NULL ? x : y, x};
    if (in->j % 3 == 0)
        part[1] = trn_slice(x, axis, in->j % 2, in->j % 5, 1);
    else if (in->j % 3 == 1 && rank < TRN_MAX_RANK)
        return trn_stack(1 + in->j % 2, part, axis);
    return trn_concat(1 + in->i / 8 % 3, part, axis);
}

trn_tensor *random_do_flip(random_world *w, const random_instr *in)
{
    trn_tensor *x = random_find(w, in->a, random_is_any, NULL);
    uint32_t all = (1u << trn_tensor_rank(x)) - 1u;
    return trn_flip(x, in->i % 4 == 0 ? TRN_ALL_AXES : in->i & all);
}

trn_tensor *random_do_select(random_world *w, const random_instr *in)
{
    trn_tensor *x = random_find(w, in->a, has_axis_small, NULL);
    int axis = in->i % trn_tensor_rank(x);
    int64_t size = trn_tensor_dim(x, axis), n = size == 0 ? 0 : 1 + in->j % 4;
    return trn_index_select(x, axis, random_data(w, TRN_I32, 1, &n, size));
}

trn_tensor *random_do_one_hot(random_world *w, const random_instr *in)
{
    int64_t n = w->p->batch, classes = 1 + in->i % 5;
    return trn_one_hot(random_data(w, TRN_I32, 1, &n, classes), classes,
                       in->j % 4 == 0 ? TRN_I32 : TRN_F32);
}

/* As an index, or as numbers. */
trn_tensor *random_do_integers(random_world *w, const random_instr *in)
{
    trn_generator *g = w->generator[in->j % 2];
    int64_t shape[2] = {w->p->batch, w->k->n}, low = (int64_t)(in->i % 7) - 3;
    trn_tensor *y = in->i & 64 ? trn_permutation(g, TRN_I32, shape[1])
                               : trn_randint(g, TRN_I32, low,
                                             low + 1 + in->i % 9, 2, shape);
    return in->j & 2 ? trn_cast(y, TRN_F32) : y;
}
