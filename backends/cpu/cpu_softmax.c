/* SPDX-License-Identifier: Apache-2.0
 *
 * softmax and log_softmax along one axis; the arithmetic of a row is in
 * cpu_softmax_rows.h.
 */
#include "backends/cpu/cpu_reduce.h"

#include <math.h>

#define REAL float
#define ROW(name) name##_f32
#include "backends/cpu/cpu_softmax_rows.h"
#undef REAL
#undef ROW
#define REAL double
#define ROW(name) name##_f64
#include "backends/cpu/cpu_softmax_rows.h"
#undef REAL
#undef ROW

typedef struct softmax_job {
    trn_device *dev;
    bool log;
    int64_t n;            /* elements of a row */
    trn__cpu_reader x, y; /* the first elements of the rows */
    int64_t x_stride, y_stride;
} softmax_job;

/* The elements of one row. */
static trn__cpu_reader row_of(const trn__cpu_reader *rows, int64_t row,
                              int64_t n, int64_t stride)
{
    return (trn__cpu_reader){
        .base = trn__cpu_locate(rows, row),
        .dtype = rows->dtype,
        .size = rows->size,
        .rank = 1,
        .dim = {n},
        .stride = {stride},
    };
}

/* n elements of a compute type to places first .. of a row of y. */
static void put(const softmax_job *j, const trn__cpu_reader *y, int64_t first,
                int64_t n, const void *from)
{
    trn__cpu_chunk buf;
    const char *x = from;
    if (y->stride[0] == 1) {
        trn__cpu_store(j->dev, y->dtype, n, from, y->base + first * y->size);
        return;
    }
    for (int64_t at = 0; at < n; at += TRN__CPU_CHUNK) {
        const int64_t part = trn__i64_min(n - at, TRN__CPU_CHUNK);
        trn__cpu_store(j->dev, y->dtype, part, x, &buf);
        trn__cpu_spread(y, first + at, part, &buf);
        x += part * (int64_t)trn__cpu_size(trn__cpu_compute(y->dtype));
    }
}

static void range_f32(void *arg, int64_t begin, int64_t end)
{
    const softmax_job *j = arg;
    row_f32 r;
    r.dev = j->dev;
    r.n = j->n;
    for (int64_t i = begin; i < end; i++) {
        const trn__cpu_reader y = row_of(&j->y, i, j->n, j->y_stride);
        r.in = row_of(&j->x, i, j->n, j->x_stride);
        begin_f32(&r);
        for (int64_t b = 0; b * TRN__CPU_BLOCK < j->n; b++) {
            const int64_t n = hold_f32(&r, b);
            put(j, &y, b * TRN__CPU_BLOCK, n,
                j->log ? log_softmax_f32(&r, n) : softmax_f32(&r, n));
        }
    }
}

static void range_f64(void *arg, int64_t begin, int64_t end)
{
    const softmax_job *j = arg;
    row_f64 r;
    r.dev = j->dev;
    r.n = j->n;
    for (int64_t i = begin; i < end; i++) {
        const trn__cpu_reader y = row_of(&j->y, i, j->n, j->y_stride);
        r.in = row_of(&j->x, i, j->n, j->x_stride);
        begin_f64(&r);
        for (int64_t b = 0; b * TRN__CPU_BLOCK < j->n; b++) {
            const int64_t n = hold_f64(&r, b);
            put(j, &y, b * TRN__CPU_BLOCK, n,
                j->log ? log_softmax_f64(&r, n) : softmax_f64(&r, n));
        }
    }
}

/* Splits a into rows along axis: the reader of their first elements. */
static int64_t split(trn__cpu_reader *rows, const trn_arg *a, int axis)
{
    trn_arg first = *a;
    if (a->rank > 0)
        first.shape[axis] = 1;
    trn__cpu_reader_init(rows, &first);
    return a->rank > 0 ? a->stride[axis] : 1;
}

static int32_t run_softmax(trn_device *dev, const trn_op_call *call, bool log)
{
    const trn_axis_attrs *attrs = call->attrs;
    const trn_arg *x = call->in[0], *y = call->out[0];
    const int axis = attrs->axis + (attrs->axis < 0 ? (int)x->rank : 0);
    const int64_t numel = trn__cpu_numel(y);
    softmax_job j = {.dev = dev, .log = log};
    if (numel == 0)
        return TRN_OK;
    j.n = x->rank > 0 ? x->shape[axis] : 1;
    j.x_stride = split(&j.x, x, axis);
    j.y_stride = split(&j.y, y, axis);
    trn__cpu_for(dev, numel / j.n, trn__i64_max(1, TRN__CPU_DEAR / j.n),
                 x->dtype == TRN_F64 ? range_f64 : range_f32, &j);
    return TRN_OK;
}

int32_t trn__cpu_softmax(trn_device *dev, const trn_op_call *call)
{
    return run_softmax(dev, call, false);
}

int32_t trn__cpu_log_softmax(trn_device *dev, const trn_op_call *call)
{
    return run_softmax(dev, call, true);
}
