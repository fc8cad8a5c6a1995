/* SPDX-License-Identifier: Apache-2.0
 *
 * Instructions of random programs that convert, move, reduce, multiply, look up
 * and draw.
 */
#include "random_parts.h"

static bool is_small_any(const trn_tensor *t, const void *user)
{
    return random_is_any(t, user) && random_is_small(t);
}

trn_tensor *random_do_cast(random_world *w, const random_instr *in)
{
    static const trn_dtype to[] = {TRN_F32, TRN_F64, TRN_BF16, TRN_F16,
                                   TRN_I32, TRN_F32, TRN_BOOL, TRN_F32};
    return trn_cast(random_find(w, in->a, random_is_any, NULL), to[in->i % 8]);
}

trn_tensor *random_do_copy(random_world *w, const random_instr *in)
{
    return trn_copy(random_find(w, in->a, random_is_any, NULL));
}

trn_tensor *random_do_reshape(random_world *w, const random_instr *in)
{
    trn_tensor *x = random_find(w, in->a, random_is_any, NULL);
    int64_t n = trn_tensor_numel(x), shape[3] = {n, 1, 1};
    switch (in->i % 5) {
    case 0: /* flat */
        return trn_reshape(x, 1, shape);
    case 1: /* a column */
        return trn_reshape(x, 2, shape);
    case 2: /* a row */
        shape[0] = 1;
        shape[1] = n;
        return trn_reshape(x, 2, shape);
    case 3: /* in two halves */
        shape[0] = n % 2 == 0 ? 2 : 1;
        shape[1] = n / shape[0];
        return trn_reshape(x, 2, shape);
    default: /* back to a common shape */
        shape[0] = w->k->m;
        shape[1] = w->k->n;
        return n == shape[0] * shape[1] ? trn_reshape(x, 2, shape)
                                        : trn_copy(x);
    }
}

trn_tensor *random_do_permute(random_world *w, const random_instr *in)
{
    trn_tensor *x = random_find(w, in->a, random_is_any, NULL);
    int rank = trn_tensor_rank(x), perm[TRN_MAX_RANK];
    for (int d = 0; d < rank; d++)
        perm[d] = (d + in->i) % rank;
    return trn_permute(x, perm);
}

trn_tensor *random_do_expand(random_world *w, const random_instr *in)
{
    trn_tensor *x = random_find(w, in->a, is_small_any, NULL);
    int rank = trn_tensor_rank(x);
    int64_t shape[TRN_MAX_RANK + 1] = {1 + in->i % 3};
    random_shape(x, shape + 1);
    if (rank > 0 && shape[rank] == 1 && in->j % 2 == 0)
        shape[rank] = w->k->n;
    return trn_expand(x, rank + 1, shape);
}

static bool has_axis(const trn_tensor *t, const void *user)
{
    (void)user;
    return trn_tensor_rank(t) > 0;
}

trn_tensor *random_do_slice(random_world *w, const random_instr *in)
{
    trn_tensor *x = random_find(w, in->a, has_axis, NULL);
    int axis = in->i % trn_tensor_rank(x);
    int64_t size = trn_tensor_dim(x, axis);
    int64_t start = in->j % 3, stop = size - (in->j / 3) % 2;
    return trn_slice(x, axis, start, stop, 1 + (in->i / 16) % 2);
}

static bool has_axis_small(const trn_tensor *t, const void *user)
{
    return trn_tensor_rank(t) > 0 && random_is_small_float(t, user);
}

trn_tensor *random_do_pad(random_world *w, const random_instr *in)
{
    trn_tensor *x = random_find(w, in->a, has_axis_small, NULL);
    return trn_pad(x, in->i % trn_tensor_rank(x), in->j % 2, in->j / 2 % 3,
                   in->j / 6 % 2);
}

/* Without one for a single element, whose quotient would be NaN. */
static trn_tensor *variance(trn_tensor *x, uint32_t axes, bool keep,
                            bool correct)
{
    int64_t n = trn_tensor_numel(x);
    for (int d = 0; d < trn_tensor_rank(x) && axes != TRN_ALL_AXES; d++)
        n = axes == TRN_AXIS((uint32_t)d) ? trn_tensor_dim(x, d) : n;
    return trn_var(x, axes, keep, correct && n > 1);
}

trn_tensor *random_do_reduce(random_world *w, const random_instr *in)
{
    trn_tensor *x = random_find(w, in->a, random_is_float, NULL);
    int rank = trn_tensor_rank(x);
    uint32_t axes = in->j % 3 == 0 || rank == 0
                        ? TRN_ALL_AXES
                        : TRN_AXIS((uint32_t)(in->j % rank));
    bool keep = in->i & 64;
    bool empty = trn_tensor_numel(x) == 0; /* it has no largest element */
    switch (in->i % 8) {
    case 0:
        return trn_mean(x, axes, keep);
    case 1:
        return trn_norm(x, axes, keep);
    case 2:
        return empty ? trn_sum(x, axes, keep) : trn_max(x, axes, keep);
    case 3:
        return empty ? trn_sum(x, axes, keep) : trn_min(x, axes, keep);
    case 4:
        return variance(x, axes, keep, in->j & 64);
    case 5:
        return trn_logsumexp(x, axes, keep);
    default:
        return trn_sum(x, axes, keep);
    }
}

static bool is_full(const trn_tensor *t, const void *user)
{
    return has_axis(t, user) && random_is_float(t, user) &&
           trn_tensor_numel(t) > 0;
}

trn_tensor *random_do_argmax(random_world *w, const random_instr *in)
{
    trn_tensor *x = random_find(w, in->a, is_full, NULL);
    return x == NULL ? NULL : trn_argmax(x, in->i % trn_tensor_rank(x));
}

typedef struct product {
    const trn_tensor *x;
    bool trans_a, trans_b;
} product;

static bool multiplies(const trn_tensor *t, const void *user)
{
    const product *q = user;
    return random_is_float2(t, NULL) &&
           trn_tensor_dtype(t) == trn_tensor_dtype(q->x) &&
           trn_tensor_rank(t) == 2 && random_is_small(t) &&
           trn_tensor_dim(q->x, q->trans_a ? -2 : -1) ==
               trn_tensor_dim(t, q->trans_b ? -1 : -2);
}

static bool is_small_matrix(const trn_tensor *t, const void *user)
{
    return random_is_float2(t, user) && random_is_small(t);
}

trn_tensor *random_do_matmul(random_world *w, const random_instr *in)
{
    product q = {random_find(w, in->a, is_small_matrix, NULL), in->i & 1,
                 in->i & 2};
    trn_tensor *y = random_find(w, in->b, multiplies, &q);
    trn_tensor *x = random_find(w, in->a, is_small_matrix, NULL);
    return y == NULL ? trn_matmul_trans(x, x, true, false)
                     : trn_matmul_trans(x, y, q.trans_a, q.trans_b);
}

static bool is_table(const trn_tensor *t, const void *user)
{
    return random_is_float(t, user) && trn_tensor_rank(t) == 2 &&
           trn_tensor_dim(t, 0) > 0;
}

trn_tensor *random_do_embedding(random_world *w, const random_instr *in)
{
    trn_tensor *x = random_find(w, in->a, is_table, NULL);
    int64_t shape[1] = {w->p->batch};
    trn_tensor *index = random_data(w, TRN_I32, 1, shape, trn_tensor_dim(x, 0));
    return trn_embedding(x, index, in->j % 3 == 0 ? 0 : -1);
}

trn_tensor *random_do_gather(random_world *w, const random_instr *in)
{
    trn_tensor *x = random_find(w, in->a, is_full, NULL);
    int64_t shape[TRN_MAX_RANK];
    if (x == NULL)
        return NULL;
    int axis = in->i % trn_tensor_rank(x);
    int64_t size = trn_tensor_dim(x, axis);
    random_shape(x, shape);
    shape[axis] = 1 + in->j % 3;
    if (!random_is_small(x))
        return NULL;
    return trn_gather(x, axis,
                      random_data(w, TRN_I32, trn_tensor_rank(x), shape, size));
}

trn_tensor *random_do_bad_index(random_world *w, const random_instr *in)
{
    trn_tensor *x = random_find(w, in->a, is_table, NULL);
    trn_tensor *index = trn_full(w->c, TRN_I32, 0, NULL, 1000.0);
    return trn_embedding(x, index, -1);
}

trn_tensor *random_do_bad_shape(random_world *w, const random_instr *in)
{
    int64_t shape[2] = {7, 11};
    trn_tensor *x = trn_full(w->c, TRN_F32, 2, shape, in->value);
    return trn_matmul(x, x);
}

trn_tensor *random_do_scatter(random_world *w, const random_instr *in)
{
    trn_tensor *x = random_find(w, in->a, has_axis_small, NULL);
    int64_t shape[TRN_MAX_RANK], size = 1 + in->j % 5;
    random_shape(x, shape);
    return trn_scatter_add(
        x, in->i % trn_tensor_rank(x),
        random_data(w, TRN_I32, trn_tensor_rank(x), shape, size), size);
}

static void common_shape(const random_world *w, const random_instr *in,
                         int *rank, int64_t *shape)
{
    shape[0] = in->i % 3 == 0 ? w->k->m : w->p->batch;
    shape[1] = w->k->n;
    *rank = in->i % 7 == 0 ? 1 : 2;
    if (*rank == 1)
        shape[0] = w->k->n;
}

trn_tensor *random_do_uniform(random_world *w, const random_instr *in)
{
    int64_t shape[2];
    int rank;
    common_shape(w, in, &rank, shape);
    return trn_uniform(w->generator[in->j % 2],
                       in->j % 8 == 3 ? TRN_BF16 : TRN_F32, rank, shape);
}

trn_tensor *random_do_normal(random_world *w, const random_instr *in)
{
    int64_t shape[2];
    int rank;
    common_shape(w, in, &rank, shape);
    return trn_normal(w->generator[in->j % 2],
                      in->j % 8 == 3 ? TRN_F64 : TRN_F32, rank, shape);
}

trn_tensor *random_do_full(random_world *w, const random_instr *in)
{
    int64_t shape[2];
    int rank;
    common_shape(w, in, &rank, shape);
    return trn_full(w->c, TRN_F32, rank, shape, random_value(w, in));
}

trn_tensor *random_do_data(random_world *w, const random_instr *in)
{
    int64_t shape[2];
    int rank;
    common_shape(w, in, &rank, shape);
    return random_data(w, TRN_F32, rank, shape, 0);
}

trn_tensor *random_do_dropout(random_world *w, const random_instr *in)
{
    double p = (double)(in->i % 5 + w->salt % 3) / 8.0;
    return trn_dropout(random_find(w, in->a, random_is_float, NULL), p,
                       w->generator[in->j % 2]);
}
