/* SPDX-License-Identifier: Apache-2.0
 *
 * REDUCE rows: the split into kept and reduced axes, integer sums, max,
 * min, and argmax.  Sums, means, norms and variances of floats are in
 * cpu_reduce_sum.c.
 */
#include "backends/cpu/cpu_reduce.h"
#include "kernels/integer_kernels.h"

#include <string.h>

void trn__cpu_reduction_init(trn__cpu_reduction *r, trn_device *dev,
                             const trn_op_call *call)
{
    const trn_reduce_attrs *attrs = call->attrs;
    const trn_arg *x = call->in[0];
    int64_t dim[2][TRN_MAX_RANK], stride[2][TRN_MAX_RANK];
    int rank[2] = {0, 0};
    r->dev = dev;
    r->n_out = r->n_red = 1;
    for (uint32_t d = 0; d < x->rank; d++) {
        const int reduced = (int)(attrs->axes >> d & 1);
        dim[reduced][rank[reduced]] = x->shape[d];
        stride[reduced][rank[reduced]++] = x->stride[d];
        if (reduced)
            r->n_red *= x->shape[d];
        else
            r->n_out *= x->shape[d];
    }
    trn__cpu_reader_dims(&r->kept, x, rank[0], dim[0], stride[0]);
    trn__cpu_reader_dims(&r->red, x, rank[1], dim[1], stride[1]);
    const int in = r->kept.rank - 1;
    r->way = TRN__CPU_SCATTERED;
    r->n_cols = 1;
    if (r->red.rank == 1 && r->red.stride[0] == 1) {
        r->way = TRN__CPU_ROWS;
    } else if (r->red.rank <= 1 && in >= 0 && r->kept.stride[in] == 1) {
        r->way = TRN__CPU_COLUMNS;
        r->n_cols = r->kept.dim[in];
    } else if (r->red.rank == 0) {
        r->way = TRN__CPU_ROWS;
    }
    r->col_units = (r->n_cols + TRN__CPU_COLS - 1) / TRN__CPU_COLS;
    r->n_units = r->n_cols == 0 ? 0 : r->n_out / r->n_cols * r->col_units;
    r->y_dtype = call->out[0]->dtype;
    r->y = trn__cpu_data(call->out[0]);
}

trn__cpu_unit trn__cpu_unit_of(const trn__cpu_reduction *r, int64_t index)
{
    const int64_t row = index / r->col_units;
    const int64_t col = index % r->col_units * TRN__CPU_COLS;
    trn__cpu_unit u;
    u.first = row * r->n_cols + col;
    u.width = trn__i64_min(r->n_cols - col, TRN__CPU_COLS);
    u.x = trn__cpu_locate(&r->kept, u.first);
    return u;
}

static int64_t unit_grain(const trn__cpu_reduction *r)
{
    const int64_t width = trn__i64_min(r->n_cols, TRN__CPU_COLS);
    return trn__i64_max(1, TRN__CPU_CHEAP / (width * r->n_red));
}

/* The reader of one output's elements. */
static trn__cpu_reader elements_of(const trn__cpu_reduction *r, int64_t output)
{
    trn__cpu_reader x = r->red;
    x.base = trn__cpu_locate(&r->kept, output);
    return x;
}

/* Sums in the wrap-around arithmetic of 64 bits; the output's type cuts it. */
static void integer_sum_range(void *arg, int64_t begin, int64_t end)
{
    const trn__cpu_reduction *r = arg;
    trn__cpu_chunk buf;
    for (int64_t o = begin; o < end; o++) {
        const trn__cpu_reader x = elements_of(r, o);
        uint64_t sum = 0;
        for (int64_t at = 0; at < r->n_red; at += TRN__CPU_CHUNK) {
            const int64_t n = trn__i64_min(r->n_red - at, TRN__CPU_CHUNK);
            const int64_t *v = trn__cpu_load_index(&x, at, n, &buf);
            for (int64_t i = 0; i < n; i++)
                sum += (uint64_t)v[i];
        }
        trn__convert(TRN_I64, (trn_dtype)r->y_dtype, 1, &sum,
                     r->y + o * (int64_t)trn__cpu_size(r->y_dtype));
    }
}

static int32_t run_sum(trn_device *dev, const trn_op_call *call)
{
    trn__cpu_reduction r;
    if (trn__cpu_numel(call->out[0]) == 0)
        return TRN_OK;
    trn__cpu_reduction_init(&r, dev, call);
    if (trn__cpu_is_float(call->in[0]->dtype))
        return trn__cpu_float_sum(&r, call->op);
    trn__cpu_for(dev, r.n_out,
                 trn__i64_max(1, TRN__CPU_CHEAP / trn__i64_max(1, r.n_red)),
                 integer_sum_range, &r);
    return TRN_OK;
}

int32_t trn__cpu_sum(trn_device *dev, const trn_op_call *call)
{
    return run_sum(dev, call);
}

int32_t trn__cpu_mean(trn_device *dev, const trn_op_call *call)
{
    return run_sum(dev, call);
}

int32_t trn__cpu_norm(trn_device *dev, const trn_op_call *call)
{
    return run_sum(dev, call);
}

int32_t trn__cpu_var(trn_device *dev, const trn_op_call *call)
{
    const trn_var_attrs *at = call->attrs;
    const trn_reduce_attrs axes = {.axes = at->axes};
    trn_op_call as_reduce = *call;
    trn__cpu_reduction r;
    if (trn__cpu_numel(call->out[0]) == 0)
        return TRN_OK;
    as_reduce.attrs = &axes;
    trn__cpu_reduction_init(&r, dev, &as_reduce);
    r.correction = at->correction;
    return trn__cpu_float_sum(&r, call->op);
}

/* y = the larger, or smaller, of two rows of n elements of a compute type. */
static void pick(const trn__cpu_reduction *r, uint32_t dtype, int64_t n,
                 const void *a, const void *b, void *y)
{
    const trn__kernel_set *set = &r->dev->set;
    const trn__integer_kernels *ints =
        trn__integer_kernels_of(dtype == TRN_BOOL ? TRN_U8 : (trn_dtype)dtype);
    if (dtype == TRN_F32)
        (r->smallest ? set->minimum_f32 : set->maximum_f32)(n, a, b, y);
    else if (dtype == TRN_F64)
        (r->smallest ? set->minimum_f64 : set->maximum_f64)(n, a, b, y);
    else
        (r->smallest ? ints->minimum : ints->maximum)(n, a, b, y);
}

/* y = the one of n >= 1 contiguous elements of a compute type. */
static void pick_one(const trn__cpu_reduction *r, uint32_t dtype, int64_t n,
                     const char *x, void *y)
{
    const trn__kernel_set *set = &r->dev->set;
    const size_t size = trn__cpu_size(dtype);
    if (dtype == TRN_F32) {
        const float *v = (const float *)(const void *)x;
        const float m = (r->smallest ? set->min_f32 : set->max_f32)(n, v);
        memcpy(y, &m, sizeof m);
    } else if (dtype == TRN_F64) {
        const double *v = (const double *)(const void *)x;
        const double m = (r->smallest ? set->min_f64 : set->max_f64)(n, v);
        memcpy(y, &m, sizeof m);
    } else {
        memcpy(y, x, size);
        for (int64_t i = 1; i < n; i++)
            pick(r, dtype, 1, y, x + (size_t)i * size, y);
    }
}

static void pick_output(const trn__cpu_reduction *r, int64_t output)
{
    const trn__cpu_reader x = elements_of(r, output);
    const uint32_t dtype = trn__cpu_compute(x.dtype);
    trn__cpu_chunk buf;
    double best = 0, next; /* room for any type */
    for (int64_t at = 0; at < r->n_red; at += TRN__CPU_CHUNK) {
        const int64_t n = trn__i64_min(r->n_red - at, TRN__CPU_CHUNK);
        pick_one(r, dtype, n, trn__cpu_load(r->dev, &x, at, n, &buf), &next);
        if (at == 0)
            best = next;
        else
            pick(r, dtype, 1, &best, &next, &best);
    }
    trn__cpu_store(r->dev, r->y_dtype, 1, &best,
                   r->y + output * (int64_t)x.size);
}

static void pick_range(void *arg, int64_t begin, int64_t end)
{
    const trn__cpu_reduction *r = arg;
    const uint32_t dtype = r->kept.dtype;
    const int64_t size = r->kept.size;
    for (int64_t i = begin; i < end; i++) {
        const trn__cpu_unit u = trn__cpu_unit_of(r, i);
        if (r->way != TRN__CPU_COLUMNS || trn__cpu_compute(dtype) != dtype) {
            for (int64_t c = 0; c < u.width; c++)
                pick_output(r, u.first + c);
            continue;
        }
        char *y = r->y + u.first * size;
        const int64_t step = r->red.rank == 0 ? 0 : r->red.stride[0];
        memcpy(y, u.x, (size_t)(u.width * size));
        for (int64_t row = 1; row < r->n_red; row++)
            pick(r, dtype, u.width, y, u.x + row * step * size, y);
    }
}

static int32_t run_pick(trn_device *dev, const trn_op_call *call)
{
    trn__cpu_reduction r;
    if (trn__cpu_numel(call->out[0]) == 0)
        return TRN_OK;
    trn__cpu_reduction_init(&r, dev, call);
    r.smallest = call->op == TRN_OP_min;
    if (r.n_red == 0)
        return dev->host->fail(dev->host->host, TRN_ERR_ARG,
                               "max or min of no elements");
    trn__cpu_for(dev, r.n_units, unit_grain(&r), pick_range, &r);
    return TRN_OK;
}

int32_t trn__cpu_max(trn_device *dev, const trn_op_call *call)
{
    return run_pick(dev, call);
}

int32_t trn__cpu_min(trn_device *dev, const trn_op_call *call)
{
    return run_pick(dev, call);
}

/* First index of the largest; a NaN is larger than all, -0 equals +0. */
#define FIRST_LARGEST(type)                                  \
    {                                                        \
        const type *v = x;                                   \
        type best;                                           \
        memcpy(&best, top, sizeof best);                     \
        for (int64_t i = 0; i < n; i++) {                    \
            const bool nan = v[i] != v[i] && best == best;   \
            if ((at == 0 && i == 0) || nan || v[i] > best) { \
                best = v[i];                                 \
                arg = at + i;                                \
            }                                                \
        }                                                    \
        memcpy(top, &best, sizeof best);                     \
        break;                                               \
    }

/* Carries on a search at element `at`; top is the largest so far. */
static int64_t first_largest(uint32_t dtype, int64_t at, int64_t n,
                             const void *x, void *top, int64_t arg)
{
    switch (dtype) {
    case TRN_F32:
        FIRST_LARGEST(float)
    case TRN_F64:
        FIRST_LARGEST(double)
    case TRN_I64:
        FIRST_LARGEST(int64_t)
    case TRN_I32:
        FIRST_LARGEST(int32_t)
    case TRN_U32:
        FIRST_LARGEST(uint32_t)
    default:
        FIRST_LARGEST(uint8_t)
    }
    return arg;
}

static void argmax_range(void *arg, int64_t begin, int64_t end)
{
    const trn__cpu_reduction *r = arg;
    trn__cpu_chunk buf;
    const uint32_t dtype = trn__cpu_compute(r->kept.dtype);
    for (int64_t o = begin; o < end; o++) {
        const trn__cpu_reader x = elements_of(r, o);
        int64_t best = 0;
        double top = 0; /* room for any type */
        for (int64_t at = 0; at < r->n_red; at += TRN__CPU_CHUNK) {
            const int64_t n = trn__i64_min(r->n_red - at, TRN__CPU_CHUNK);
            best = first_largest(dtype, at, n,
                                 trn__cpu_load(r->dev, &x, at, n, &buf), &top,
                                 best);
        }
        trn__convert(TRN_I64, (trn_dtype)r->y_dtype, 1, &best,
                     r->y + o * (int64_t)trn__cpu_size(r->y_dtype));
    }
}

int32_t trn__cpu_argmax(trn_device *dev, const trn_op_call *call)
{
    const trn_axis_attrs *attrs = call->attrs;
    const int axis =
        attrs->axis + (attrs->axis < 0 ? (int)call->in[0]->rank : 0);
    const trn_reduce_attrs axes = {.axes = call->in[0]->rank ? 1u << axis : 0};
    trn_op_call as_reduce = *call;
    trn__cpu_reduction r;
    if (trn__cpu_numel(call->out[0]) == 0)
        return TRN_OK;
    as_reduce.attrs = &axes;
    trn__cpu_reduction_init(&r, dev, &as_reduce);
    if (r.n_red == 0)
        return dev->host->fail(dev->host->host, TRN_ERR_ARG,
                               "argmax of no elements");
    trn__cpu_for(dev, r.n_out, trn__i64_max(1, TRN__CPU_CHEAP / r.n_red),
                 argmax_range, &r);
    return TRN_OK;
}
