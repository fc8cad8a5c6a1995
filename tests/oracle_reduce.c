/* SPDX-License-Identifier: Apache-2.0
 *
 * The oracle of reductions, argmax and products.
 */
#include <math.h>

#include "oracle.h"

/* Which output element input element i goes to. */
int64_t oracle_target(const case_input *x, uint32_t axes, int64_t i)
{
    int64_t index[TRN_MAX_RANK], flat = 0;
    oracle_index(x->rank, x->dim, i, index);
    for (int d = 0; d < x->rank; d++) {
        if (!((axes >> d) & 1u))
            flat = flat * x->dim[d] + index[d];
    }
    return flat;
}

oracle_tensor *oracle_reduced(const case_args *a, oracle_result *r,
                              trn_dtype dtype, uint32_t axes)
{
    const case_input *x = &a->in[0];
    int64_t dim[TRN_MAX_RANK];
    int rank = 0;
    r->length = 1;
    for (int d = 0; d < x->rank; d++) {
        bool gone = (axes >> d) & 1u;
        if (gone)
            r->length *= x->dim[d];
        if (!gone || attr_int(a->tc, "keep", 0))
            dim[rank++] = gone ? 1 : x->dim[d];
    }
    return oracle_make(r, 0, dtype, rank, dim);
}

static void finish_float(uint32_t op, int64_t n, oracle_tensor *y)
{
    for (int64_t j = 0; j < y->n; j++) {
        if (op == TRN_OP_mean) {
            y->v[j] = n == 0 ? (long double)NAN : y->v[j] / (long double)n;
            y->size[j] = n == 0 ? 0 : 4 * y->size[j] / (long double)n;
        } else if (op == TRN_OP_norm) {
            y->v[j] = y->size[j] = sqrtl(y->v[j]);
        }
    }
}

void oracle_reduce(const case_args *a, oracle_result *r)
{
    const case_input *x = &a->in[0];
    uint32_t op = a->tc->op, axes = attr_axes(a->tc, x->rank);
    bool floats = dtype_is_float(a->dtype);
    bool integer_sum = op == TRN_OP_sum && !floats;
    oracle_tensor *y =
        oracle_reduced(a, r, integer_sum ? TRN_I64 : a->dtype, axes);
    bool picks = op == TRN_OP_max || op == TRN_OP_min;
    for (int64_t j = 0; picks && j < y->n; j++)
        y->v[j] = (long double)(op == TRN_OP_max ? -INFINITY : INFINITY);
    for (int64_t i = 0; i < x->n; i++) {
        int64_t j = oracle_target(x, axes, i);
        long double v = x->v[i];
        if (op == TRN_OP_max)
            y->v[j] = oracle_maximum(y->v[j], v);
        else if (op == TRN_OP_min)
            y->v[j] = oracle_minimum(y->v[j], v);
        else if (integer_sum)
            y->v[j] =
                oracle_wrap(TRN_I64, oracle_bits(y->v[j]) + oracle_bits(v));
        else
            y->v[j] += op == TRN_OP_norm ? v * v : v;
        y->size[j] += fabsl(v);
    }
    if (!picks && floats)
        finish_float(op, r->length, y);
    r->tolerance = picks || !floats ? TOLERANCE_EXACT : TOLERANCE_SUM;
}

void oracle_argmax(const case_args *a, oracle_result *r)
{
    const case_input *x = &a->in[0];
    int axis = attr_axis(a->tc, x->rank);
    int64_t index[TRN_MAX_RANK];
    oracle_tensor *y = oracle_reduced(a, r, TRN_I32, 1u << axis);
    r->tolerance = TOLERANCE_EXACT;
    for (int64_t i = 0; i < x->n; i++) {
        oracle_index(x->rank, x->dim, i, index);
        int64_t j = oracle_target(x, 1u << axis, i);
        int64_t best[TRN_MAX_RANK];
        memcpy(best, index, sizeof best);
        best[axis] = (int64_t)y->v[j];
        long double now = x->v[oracle_flat(x->rank, x->dim, best)];
        /* A later element wins only if it is larger; a NaN is the largest. */
        if (!isnan(now) && (isnan(x->v[i]) || x->v[i] > now))
            y->v[j] = (long double)index[axis];
    }
}

/* Element (i, j) of the matrix that operand x has for the batch of index. */
static long double matrix_at(const case_input *x, bool trans, int rank,
                             const int64_t *index, int64_t i, int64_t j)
{
    int64_t at[TRN_MAX_RANK];
    memcpy(at, index, sizeof at);
    at[rank - 2] = trans ? j : i;
    at[rank - 1] = trans ? i : j;
    int64_t flat = 0;
    for (int d = 0; d < x->rank; d++) {
        int64_t k = at[rank - x->rank + d];
        bool repeats = d < x->rank - 2 && x->dim[d] == 1;
        flat = flat * x->dim[d] + (repeats ? 0 : k);
    }
    return x->v[flat];
}

static int64_t product_shape(const case_args *a, int *rank, int64_t *dim)
{
    const case_input *x = &a->in[0], *y = &a->in[1];
    bool ta = attr_int(a->tc, "ta", 0), tb = attr_int(a->tc, "tb", 0);
    *rank = x->rank > y->rank ? x->rank : y->rank;
    for (int d = 0; d < *rank - 2; d++) {
        int dx = d - (*rank - x->rank), dy = d - (*rank - y->rank);
        int64_t nx = dx >= 0 ? x->dim[dx] : 1, ny = dy >= 0 ? y->dim[dy] : 1;
        dim[d] = nx == 1 ? ny : nx;
    }
    dim[*rank - 2] = x->dim[x->rank - (ta ? 1 : 2)];
    dim[*rank - 1] = y->dim[y->rank - (tb ? 2 : 1)];
    return x->dim[x->rank - (ta ? 2 : 1)];
}

void oracle_matmul(const case_args *a, oracle_result *r)
{
    int rank;
    int64_t dim[TRN_MAX_RANK], index[TRN_MAX_RANK];
    bool ta = attr_int(a->tc, "ta", 0), tb = attr_int(a->tc, "tb", 0);
    int64_t n = product_shape(a, &rank, dim);
    bool floats = dtype_is_float(a->dtype);
    oracle_tensor *y = oracle_make(r, 0, a->dtype, rank, dim);
    for (int64_t i = 0; i < y->n; i++) {
        uint64_t word = 0;
        oracle_index(rank, dim, i, index);
        int64_t row = index[rank - 2], column = index[rank - 1];
        for (int64_t k = 0; k < n; k++) {
            long double u = matrix_at(&a->in[0], ta, rank, index, row, k);
            long double v = matrix_at(&a->in[1], tb, rank, index, k, column);
            if (floats) {
                y->v[i] += u * v;
                y->size[i] += fabsl(u * v);
            } else {
                word += oracle_bits(u) * oracle_bits(v);
            }
        }
        if (!floats)
            y->v[i] = oracle_wrap(a->dtype, word);
    }
    r->length = n;
    r->tolerance = floats ? TOLERANCE_PRODUCT : TOLERANCE_EXACT;
}
