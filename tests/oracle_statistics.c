/* SPDX-License-Identifier: Apache-2.0
 *
 * The oracle of var, logsumexp, mse_loss, sigmoid, silu and gelu_tanh.
 */
#include <math.h>
#include <stdlib.h>

#include "oracle.h"

static long double zero_or_nan(int64_t n)
{
    return n > 0 ? 0 : (long double)NAN;
}

static void variance(const case_args *a, oracle_result *r)
{
    const case_input *x = &a->in[0];
    uint32_t axes = attr_axes(a->tc, x->rank);
    oracle_tensor *y = oracle_reduced(a, r, a->dtype, axes);
    int64_t over = r->length - attr_int(a->tc, "correction", 0);
    long double *mean = calloc((size_t)y->n + 1, sizeof *mean);
    assert_non_null(mean);
    for (int64_t i = 0; i < x->n; i++)
        mean[oracle_target(x, axes, i)] += x->v[i] / (long double)r->length;
    for (int64_t i = 0; i < x->n; i++) {
        int64_t j = oracle_target(x, axes, i);
        long double d = x->v[i] - mean[j];
        y->v[j] += d * d;
    }
    for (int64_t j = 0; j < y->n; j++) {
        y->v[j] = zero_or_nan(over) + y->v[j] / (long double)over;
        if (attr_has(a->tc, "equal") && over > 0)
            y->v[j] = 0; /* long double rounds too */
        y->size[j] = y->v[j];
    }
    r->tolerance = TOLERANCE_SUM;
    free(mean);
}

static void log_sum(const case_args *a, oracle_result *r)
{
    const case_input *x = &a->in[0];
    uint32_t axes = attr_axes(a->tc, x->rank);
    oracle_tensor *y = oracle_reduced(a, r, a->dtype, axes);
    long double *sum = calloc((size_t)y->n + 1, sizeof *sum);
    assert_non_null(sum);
    for (int64_t j = 0; j < y->n; j++)
        y->v[j] = -(long double)INFINITY;
    for (int64_t i = 0; i < x->n; i++) {
        int64_t j = oracle_target(x, axes, i);
        y->v[j] = oracle_maximum(y->v[j], x->v[i]);
    }
    for (int64_t i = 0; i < x->n; i++) {
        int64_t j = oracle_target(x, axes, i);
        sum[j] += x->v[i] == y->v[j] ? 1 : expl(x->v[i] - y->v[j]);
    }
    for (int64_t j = 0; j < y->n; j++) {
        long double top = y->v[j];
        bool grows = isfinite(top) || isnan(top);
        y->v[j] = grows ? top + logl(sum[j]) : top;
        y->size[j] = isfinite(y->v[j]) ? fabsl(top) + logl(sum[j]) + 1 : 1;
    }
    r->tolerance = TOLERANCE_COMPOSITE;
    free(sum);
}

static void squared_error(const case_args *a, oracle_result *r)
{
    int rank;
    int64_t dim[TRN_MAX_RANK], index[TRN_MAX_RANK], n = 1;
    int64_t reduction = attr_int(a->tc, "reduction", TRN_REDUCE_MEAN);
    bool each = reduction == TRN_REDUCE_NONE;
    bool mean = reduction == TRN_REDUCE_MEAN;
    oracle_shape_of_all(a, &rank, dim);
    for (int d = 0; d < rank; d++)
        n *= dim[d];
    oracle_tensor *y = oracle_make(r, 0, a->dtype, each ? rank : 0, dim);
    for (int64_t i = 0; i < n; i++) {
        oracle_index(rank, dim, i, index);
        long double d = a->in[0].v[oracle_broadcast(&a->in[0], rank, index)] -
                        a->in[1].v[oracle_broadcast(&a->in[1], rank, index)];
        y->v[each ? i : 0] += d * d;
    }
    for (int64_t j = 0; j < y->n; j++) {
        if (mean)
            y->v[j] = zero_or_nan(n) + y->v[j] / (long double)n;
        y->size[j] = y->v[j];
    }
    r->length = n;
    r->tolerance = TOLERANCE_COMPOSITE;
}

/* ---- activations ---- */

/* 0 where the library's e^-|x| is. */
static long double sigmoid(trn_dtype dtype, long double x)
{
    return x < 0 ? oracle_exp(dtype, x) / (1 + oracle_exp(dtype, x))
                 : 1 / (1 + oracle_exp(dtype, -x));
}

/* By the formula of the row, with tanh u as 2 sigmoid(2 u) - 1. */
static long double gelu(trn_dtype dtype, long double x, long double *size)
{
    const long double k = sqrtl(2 / 3.14159265358979323846L);
    long double z = 2 * k * (x + 0.044715L * x * x * x);
    long double y = x * sigmoid(dtype, z);
    long double end = dtype == TRN_F64 ? 708.39L : 87.34L;
    *size = fabsl(y) * (2 + (z < 0 && isfinite(z) ? -z : 0));
    if (fabsl(z + end) < 1) /* either side of where e^z becomes 0 */
        *size = fabsl(x) * expl(z) * 0x1p60L;
    return y;
}

static void activation(const case_args *a, oracle_result *r)
{
    const case_input *x = &a->in[0];
    oracle_tensor *y = oracle_make(r, 0, a->dtype, x->rank, x->dim);
    r->tolerance = TOLERANCE_FUNCTION;
    for (int64_t i = 0; i < y->n; i++) {
        long double v = x->v[i];
        if (a->tc->op == TRN_OP_gelu_tanh) {
            y->v[i] = gelu(a->dtype, v, &y->size[i]);
            continue;
        }
        y->v[i] = sigmoid(a->dtype, v);
        if (a->tc->op == TRN_OP_silu)
            y->v[i] *= v;
        y->size[i] = 1.5L * fabsl(y->v[i]);
    }
}

bool oracle_statistics(const case_args *a, oracle_result *r)
{
    switch (a->tc->op) {
    case TRN_OP_var:
        variance(a, r);
        return true;
    case TRN_OP_logsumexp:
        log_sum(a, r);
        return true;
    case TRN_OP_mse_loss:
        squared_error(a, r);
        return true;
    case TRN_OP_sigmoid:
    case TRN_OP_silu:
    case TRN_OP_gelu_tanh:
        activation(a, r);
        return true;
    default:
        return false;
    }
}
