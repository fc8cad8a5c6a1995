/* SPDX-License-Identifier: Apache-2.0
 *
 * The oracle's common parts, and which part knows which row.
 */
#include <math.h>
#include <stdlib.h>

#include "oracle.h"

oracle_tensor *oracle_make(oracle_result *r, int i, trn_dtype dtype, int rank,
                           const int64_t *dim)
{
    oracle_tensor *t = &r->out[i];
    *t = (oracle_tensor){.dtype = dtype, .rank = rank, .n = 1};
    for (int d = 0; d < rank; d++) {
        t->dim[d] = dim[d];
        t->n *= dim[d];
    }
    t->v = calloc((size_t)t->n + 1, sizeof *t->v);
    t->size = calloc((size_t)t->n + 1, sizeof *t->size);
    assert_non_null(t->v);
    assert_non_null(t->size);
    r->n_out = i + 1 > r->n_out ? i + 1 : r->n_out;
    return t;
}

void oracle_free(oracle_result *r)
{
    for (int i = 0; i < r->n_out; i++) {
        free(r->out[i].v);
        free(r->out[i].size);
    }
    r->n_out = 0;
}

void oracle_index(int rank, const int64_t *dim, int64_t flat, int64_t *index)
{
    for (int d = rank; d-- > 0;) {
        index[d] = flat % dim[d];
        flat /= dim[d];
    }
}

int64_t oracle_flat(int rank, const int64_t *dim, const int64_t *index)
{
    int64_t flat = 0;
    for (int d = 0; d < rank; d++)
        flat = flat * dim[d] + index[d];
    return flat;
}

int64_t oracle_broadcast(const case_input *x, int rank, const int64_t *index)
{
    int64_t flat = 0;
    for (int d = 0; d < x->rank; d++) {
        int64_t i = index[rank - x->rank + d];
        flat = flat * x->dim[d] + (x->dim[d] == 1 ? 0 : i);
    }
    return flat;
}

uint64_t oracle_bits(long double v)
{
    return v < 0 ? ~(uint64_t)(-(v + 1)) : (uint64_t)v;
}

long double oracle_wrap(trn_dtype dtype, uint64_t bits)
{
    switch (dtype) {
    case TRN_I64:
        return bits >> 63 ? -(long double)~bits - 1 : (long double)bits;
    case TRN_I32:
        bits &= 0xffffffffu;
        return bits >> 31 ? (long double)bits - 0x1p32L : (long double)bits;
    case TRN_U32:
        return (long double)(bits & 0xffffffffu);
    case TRN_F64:
    case TRN_F32:
    case TRN_BF16:
    case TRN_F16:
    case TRN_U8:
    case TRN_BOOL:
    default:
        return (long double)(bits & 0xffu);
    }
}

long double oracle_saturate(trn_dtype dtype, long double v)
{
    long double low = 0, high = dtype == TRN_U32 ? 0x1p32L - 1 : 255;
    if (dtype == TRN_I64 || dtype == TRN_I32) {
        low = dtype == TRN_I64 ? -0x1p63L : -0x1p31L;
        high = -low - 1;
    }
    v = isnan(v) ? 0 : truncl(v);
    return v < low ? low : v > high ? high : v;
}

trn_dtype oracle_compute(trn_dtype dtype)
{
    return dtype == TRN_BF16 || dtype == TRN_F16 ? TRN_F32 : dtype;
}

long double oracle_value(trn_dtype dtype, double value)
{
    return dtype_round(oracle_compute(dtype), (long double)value);
}

long double oracle_maximum(long double a, long double b)
{
    if (isnan(a) || isnan(b))
        return (long double)NAN;
    if (a == 0 && b == 0)
        return signbit(a) ? b : a;
    return a > b ? a : b;
}

long double oracle_minimum(long double a, long double b)
{
    return -oracle_maximum(-a, -b);
}

static bool run_softmax(const case_args *a, oracle_result *r)
{
    switch (a->tc->op) {
    case TRN_OP_softmax:
    case TRN_OP_log_softmax:
        oracle_softmax(a, r);
        return true;
    case TRN_OP_cross_entropy:
    case TRN_OP_cross_entropy_grad:
        oracle_cross_entropy(a, r);
        return true;
    case TRN_OP_cross_entropy_weighted:
    case TRN_OP_soft_cross_entropy:
        oracle_general_cross_entropy(a, r);
        return true;
    default:
        return false;
    }
}

static void run_part(const case_args *a, oracle_result *r)
{
    switch (a->tc->op) {
    case TRN_OP_copy:
    case TRN_OP_check_finite:
    case TRN_OP_reshape:
    case TRN_OP_permute:
    case TRN_OP_expand:
    case TRN_OP_slice:
    case TRN_OP_pad:
    case TRN_OP_full:
    case TRN_OP_assign:
    case TRN_OP_concat:
    case TRN_OP_flip:
        oracle_shape(a, r);
        return;
    case TRN_OP_sum:
    case TRN_OP_mean:
    case TRN_OP_norm:
    case TRN_OP_max:
    case TRN_OP_min:
        oracle_reduce(a, r);
        return;
    case TRN_OP_argmax:
        oracle_argmax(a, r);
        return;
    case TRN_OP_matmul:
        oracle_matmul(a, r);
        return;
    case TRN_OP_embedding:
    case TRN_OP_embedding_grad:
    case TRN_OP_gather:
    case TRN_OP_scatter_add:
    case TRN_OP_index_select:
    case TRN_OP_one_hot:
        oracle_index_ops(a, r);
        return;
    case TRN_OP_uniform:
    case TRN_OP_normal:
    case TRN_OP_dropout:
        oracle_random(a, r);
        return;
    case TRN_OP_randint:
    case TRN_OP_permutation:
        oracle_random_integers(a, r);
        return;
    case TRN_OP_sgd_update:
    case TRN_OP_sgd_momentum_update:
    case TRN_OP_adamw_update:
        oracle_update(a, r);
        return;
    default:
        if (!run_softmax(a, r) && !oracle_statistics(a, r))
            oracle_elementwise(a, r);
        return;
    }
}

void oracle_run(const case_args *a, oracle_result *r)
{
    *r = (oracle_result){.n_out = 0, .length = 1};
    run_part(a, r);
}
