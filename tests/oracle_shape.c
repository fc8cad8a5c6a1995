/* SPDX-License-Identifier: Apache-2.0
 *
 * The oracle of rows that move values: views, pad, copy, full, assign.
 */
#include <math.h>

#include "oracle.h"

static void reshape(const case_args *a, oracle_result *r)
{
    int64_t dim[TRN_MAX_RANK], known = 1;
    int rank = attr_list(a->tc, "shape", dim), free_axis = -1;
    for (int d = 0; d < rank; d++) {
        if (dim[d] < 0)
            free_axis = d;
        else
            known *= dim[d];
    }
    if (free_axis >= 0)
        dim[free_axis] = a->in[0].n / known;
    oracle_tensor *y = oracle_make(r, 0, a->dtype, rank, dim);
    for (int64_t i = 0; i < y->n; i++)
        y->v[i] = a->in[0].v[i];
}

static void permute(const case_args *a, oracle_result *r)
{
    const case_input *x = &a->in[0];
    int64_t perm[TRN_MAX_RANK], dim[TRN_MAX_RANK];
    int64_t to[TRN_MAX_RANK], from[TRN_MAX_RANK];
    attr_list(a->tc, "perm", perm);
    for (int d = 0; d < x->rank; d++) {
        perm[d] += perm[d] < 0 ? x->rank : 0;
        dim[d] = x->dim[perm[d]];
    }
    oracle_tensor *y = oracle_make(r, 0, a->dtype, x->rank, dim);
    for (int64_t i = 0; i < y->n; i++) {
        oracle_index(x->rank, dim, i, to);
        for (int d = 0; d < x->rank; d++)
            from[perm[d]] = to[d];
        y->v[i] = x->v[oracle_flat(x->rank, x->dim, from)];
    }
}

/* expand, assign, copy: x broadcast to a shape. */
static void spread(const case_args *a, const case_input *x, int rank,
                   const int64_t *dim, oracle_result *r)
{
    int64_t index[TRN_MAX_RANK];
    oracle_tensor *y = oracle_make(r, 0, a->dtype, rank, dim);
    for (int64_t i = 0; i < y->n; i++) {
        oracle_index(rank, dim, i, index);
        y->v[i] = x->v[oracle_broadcast(x, rank, index)];
    }
}

/* Python's range(start, stop, step) over a sequence of that length. */
static int64_t clip(int64_t i, int64_t n)
{
    if (i < 0)
        i += n;
    return i < 0 ? 0 : i > n ? n : i;
}

static void slice(const case_args *a, oracle_result *r)
{
    const case_input *x = &a->in[0];
    int axis = attr_axis(a->tc, x->rank);
    int64_t dim[TRN_MAX_RANK], index[TRN_MAX_RANK], n = 0;
    int64_t size = x->dim[axis], step = attr_int(a->tc, "step", 1);
    int64_t start = clip(attr_int(a->tc, "start", 0), size);
    int64_t stop = clip(attr_int(a->tc, "stop", INT64_MAX), size);
    for (int64_t i = start; i < stop; i += step)
        n++;
    memcpy(dim, x->dim, sizeof dim);
    dim[axis] = n;
    oracle_tensor *y = oracle_make(r, 0, a->dtype, x->rank, dim);
    for (int64_t i = 0; i < y->n; i++) {
        oracle_index(x->rank, dim, i, index);
        index[axis] = start + index[axis] * step;
        y->v[i] = x->v[oracle_flat(x->rank, x->dim, index)];
    }
}

static void pad(const case_args *a, oracle_result *r)
{
    const case_input *x = &a->in[0];
    int axis = attr_axis(a->tc, x->rank);
    int64_t dim[TRN_MAX_RANK], index[TRN_MAX_RANK];
    int64_t before = attr_int(a->tc, "before", 0);
    int64_t step = attr_int(a->tc, "interior", 0) + 1;
    int64_t n = x->dim[axis];
    memcpy(dim, x->dim, sizeof dim);
    dim[axis] = before + attr_int(a->tc, "after", 0) +
                (n == 0 ? 0 : (n - 1) * step + 1);
    oracle_tensor *y = oracle_make(r, 0, a->dtype, x->rank, dim);
    for (int64_t i = 0; i < x->n; i++) {
        oracle_index(x->rank, x->dim, i, index);
        index[axis] = before + index[axis] * step;
        y->v[oracle_flat(x->rank, dim, index)] = x->v[i];
    }
}

static void concat(const case_args *a, oracle_result *r)
{
    const case_input *x = &a->in[0], *z = &a->in[1];
    int axis = attr_axis(a->tc, x->rank);
    int64_t dim[TRN_MAX_RANK], index[TRN_MAX_RANK];
    memcpy(dim, x->dim, sizeof dim);
    dim[axis] += z->dim[axis];
    oracle_tensor *y = oracle_make(r, 0, a->dtype, x->rank, dim);
    for (int64_t i = 0; i < y->n; i++) {
        oracle_index(x->rank, dim, i, index);
        bool second = index[axis] >= x->dim[axis];
        const case_input *from = second ? z : x;
        index[axis] -= second ? x->dim[axis] : 0;
        y->v[i] = from->v[oracle_flat(x->rank, from->dim, index)];
    }
}

static void flip(const case_args *a, oracle_result *r)
{
    const case_input *x = &a->in[0];
    uint32_t axes = attr_axes(a->tc, x->rank);
    int64_t index[TRN_MAX_RANK];
    oracle_tensor *y = oracle_make(r, 0, a->dtype, x->rank, x->dim);
    for (int64_t i = 0; i < y->n; i++) {
        oracle_index(x->rank, x->dim, i, index);
        for (int d = 0; d < x->rank; d++) {
            if ((axes >> d) & 1u)
                index[d] = x->dim[d] - 1 - index[d];
        }
        y->v[i] = x->v[oracle_flat(x->rank, x->dim, index)];
    }
}

static void full(const case_args *a, oracle_result *r)
{
    int64_t dim[TRN_MAX_RANK];
    int rank = attr_list(a->tc, "shape", dim);
    long double value = (long double)attr_real(a->tc, "value", 1.0);
    oracle_tensor *y = oracle_make(r, 0, a->dtype, rank, dim);
    if (a->dtype == TRN_BOOL)
        value = isnan(value) || value != 0;
    else if (!dtype_is_float(a->dtype))
        value = oracle_saturate(a->dtype, value);
    for (int64_t i = 0; i < y->n; i++)
        y->v[i] = value;
    r->tolerance =
        dtype_is_float(a->dtype) ? TOLERANCE_ROUNDED : TOLERANCE_EXACT;
}

void oracle_shape(const case_args *a, oracle_result *r)
{
    const case_input *x = &a->in[0];
    int64_t dim[TRN_MAX_RANK];
    int rank;
    r->tolerance = TOLERANCE_EXACT;
    switch (a->tc->op) {
    case TRN_OP_reshape:
        reshape(a, r);
        break;
    case TRN_OP_permute:
        permute(a, r);
        break;
    case TRN_OP_slice:
        slice(a, r);
        break;
    case TRN_OP_pad:
        pad(a, r);
        break;
    case TRN_OP_concat:
        concat(a, r);
        break;
    case TRN_OP_flip:
        flip(a, r);
        break;
    case TRN_OP_full:
        full(a, r);
        break;
    case TRN_OP_expand:
        rank = attr_list(a->tc, "shape", dim);
        spread(a, x, rank, dim, r);
        break;
    case TRN_OP_assign:
        spread(a, &a->in[1], x->rank, x->dim, r);
        break;
    default:
        spread(a, x, x->rank, x->dim, r);
        break;
    }
}
