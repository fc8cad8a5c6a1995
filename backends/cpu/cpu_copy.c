/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops that move elements: copy, cast, check_finite, full, pad, assign.
 *
 * Values change only in cast and in the rounding of full's value; everything
 * else moves bits.
 */
#include "backends/cpu/cpu_read.h"
#include "kernels/integer_kernels.h"

#include <stdatomic.h>
#include <string.h>

typedef struct copy_job {
    trn_device *dev;
    trn__cpu_reader x;      /* of assign: the source */
    trn__cpu_reader target; /* of assign */
    char *y;
    uint32_t to;
    _Atomic int64_t bad; /* lowest position that is not finite */
} copy_job;

static void copy_range(void *arg, int64_t begin, int64_t end)
{
    copy_job *j = arg;
    trn__cpu_collect(&j->x, begin, end - begin, j->y + begin * j->x.size);
}

int32_t trn__cpu_copy(trn_device *dev, const trn_op_call *call)
{
    copy_job j;
    const int64_t n = trn__cpu_numel(call->out[0]);
    if (n == 0)
        return TRN_OK;
    trn__cpu_reader_init(&j.x, call->in[0]);
    j.y = trn__cpu_data(call->out[0]);
    trn__cpu_for(dev, n, TRN__CPU_CHEAP, copy_range, &j);
    return TRN_OK;
}

static void cast_range(void *arg, int64_t begin, int64_t end)
{
    copy_job *j = arg;
    trn__cpu_chunk buf;
    const int64_t size = (int64_t)trn__cpu_size(j->to);
    for (int64_t at = begin; at < end; at += TRN__CPU_CHUNK) {
        const int64_t n = trn__i64_min(end - at, TRN__CPU_CHUNK);
        const void *x = trn__cpu_fetch(&j->x, at, n, &buf);
        char *y = j->y + at * size;
        if (j->to == TRN_F32 && j->x.size == 2)
            trn__cpu_widen(j->dev, j->x.dtype, n, x, (float *)(void *)y);
        else if (j->x.dtype == TRN_F32 && size == 2)
            trn__cpu_store(j->dev, j->to, n, x, y);
        else
            trn__convert((trn_dtype)j->x.dtype, (trn_dtype)j->to, n, x, y);
    }
}

int32_t trn__cpu_cast(trn_device *dev, const trn_op_call *call)
{
    copy_job j;
    const int64_t n = trn__cpu_numel(call->out[0]);
    if (n == 0)
        return TRN_OK;
    if (call->in[0]->dtype == call->out[0]->dtype)
        return trn__cpu_copy(dev, call);
    j.dev = dev;
    trn__cpu_reader_init(&j.x, call->in[0]);
    j.y = trn__cpu_data(call->out[0]);
    j.to = call->out[0]->dtype;
    trn__cpu_for(dev, n, TRN__CPU_CHEAP, cast_range, &j);
    return TRN_OK;
}

/* First of n elements whose exponent bits are all ones, or n. */
#define FIRST_NOT_FINITE(name, type, mask)        \
    static int64_t name(int64_t n, const void *x) \
    {                                             \
        const type *bits = x;                     \
        for (int64_t i = 0; i < n; i++)           \
            if ((bits[i] & (mask)) == (mask))     \
                return i;                         \
        return n;                                 \
    }

FIRST_NOT_FINITE(scan_f32, uint32_t, 0x7f800000u)
FIRST_NOT_FINITE(scan_f64, uint64_t, UINT64_C(0x7ff0000000000000))
FIRST_NOT_FINITE(scan_bf16, uint16_t, 0x7f80u)
FIRST_NOT_FINITE(scan_f16, uint16_t, 0x7c00u)

static void scan_range(void *arg, int64_t begin, int64_t end)
{
    copy_job *j = arg;
    trn__cpu_chunk buf;
    const uint32_t dtype = j->x.dtype;
    for (int64_t at = begin; at < end; at += TRN__CPU_CHUNK) {
        const int64_t n = trn__i64_min(end - at, TRN__CPU_CHUNK);
        const void *x = trn__cpu_fetch(&j->x, at, n, &buf);
        int64_t seen = atomic_load(&j->bad);
        if (seen < at)
            return;
        const int64_t i = dtype == TRN_F32    ? scan_f32(n, x)
                          : dtype == TRN_F64  ? scan_f64(n, x)
                          : dtype == TRN_BF16 ? scan_bf16(n, x)
                                              : scan_f16(n, x);
        if (i == n)
            continue;
        while (at + i < seen &&
               !atomic_compare_exchange_weak(&j->bad, &seen, at + i))
            ;
        return;
    }
}

int32_t trn__cpu_check_finite(trn_device *dev, const trn_op_call *call)
{
    copy_job j;
    const int64_t n = trn__cpu_numel(call->out[0]);
    if (n > 0 && trn__cpu_is_float(call->in[0]->dtype)) {
        trn__cpu_reader_init(&j.x, call->in[0]);
        atomic_init(&j.bad, INT64_MAX);
        trn__cpu_for(dev, n, TRN__CPU_CHEAP, scan_range, &j);
        const int64_t bad = atomic_load(&j.bad);
        if (bad != INT64_MAX) {
            if (call->report != NULL)
                *call->report = (trn_op_report){
                    .kind = TRN_REPORT_NOT_FINITE,
                    .input = 0,
                    .position = bad,
                };
            return TRN_ERR_NUMERIC;
        }
    }
    return trn__cpu_copy(dev, call);
}

int32_t trn__cpu_full(trn_device *dev, const trn_op_call *call)
{
    copy_job j;
    uint64_t one = 0;
    const trn_arg *y = call->out[0];
    const int64_t n = trn__cpu_numel(y);
    if (n == 0)
        return TRN_OK;
    trn__convert(TRN_F64, (trn_dtype)y->dtype, 1, &call->values[0], &one);
    j.x = (trn__cpu_reader){
        .base = (char *)(void *)&one,
        .dtype = y->dtype,
        .size = (uint32_t)trn__cpu_size(y->dtype),
    };
    j.y = trn__cpu_data(y);
    trn__cpu_for(dev, n, TRN__CPU_CHEAP, copy_range, &j);
    return TRN_OK;
}

static void assign_range(void *arg, int64_t begin, int64_t end)
{
    copy_job *j = arg;
    trn__cpu_chunk buf;
    for (int64_t at = begin; at < end; at += TRN__CPU_CHUNK) {
        const int64_t n = trn__i64_min(end - at, TRN__CPU_CHUNK);
        const void *x = trn__cpu_fetch(&j->x, at, n, &buf);
        if (x != &buf) /* in place: perhaps it is the target itself */
            x = memcpy(&buf, x, (size_t)n * j->x.size);
        trn__cpu_spread(&j->target, at, n, x);
    }
}

int32_t trn__cpu_assign(trn_device *dev, const trn_op_call *call)
{
    copy_job j;
    const int64_t n = trn__cpu_numel(call->in[0]);
    if (n == 0)
        return TRN_OK;
    trn__cpu_reader_init(&j.target, call->in[0]);
    trn__cpu_reader_init(&j.x, call->in[1]);
    trn__cpu_for(dev, n, TRN__CPU_CHEAP, assign_range, &j);
    return TRN_OK;
}

/* The input as [outer, rows, inner], the output as [outer, out_rows, inner]. */
typedef struct pad_job {
    trn__cpu_reader x;
    char *y;
    int64_t rows, out_rows, inner;
    int64_t before, step;
} pad_job;

static void zero_range(void *arg, int64_t begin, int64_t end)
{
    memset((char *)arg + begin, 0, (size_t)(end - begin));
}

static void pad_range(void *arg, int64_t begin, int64_t end)
{
    pad_job *j = arg;
    trn__cpu_chunk buf;
    const int64_t size = j->x.size;
    for (int64_t at = begin; at < end;) {
        /* A chunk never leaves its row, except that short rows share one. */
        const int64_t row = at / j->inner, col = at % j->inner;
        int64_t n = trn__i64_min(end - at, TRN__CPU_CHUNK);
        if (j->inner > 64)
            n = trn__i64_min(n, j->inner - col);
        const char *x = trn__cpu_fetch(&j->x, at, n, &buf);
        int64_t outer = row / j->rows, i = row % j->rows, c = col;
        for (int64_t done = 0; done < n;) {
            const int64_t m = trn__i64_min(n - done, j->inner - c);
            const int64_t to = j->before + i * j->step;
            if (to >= 0 && to < j->out_rows)
                memcpy(j->y +
                           ((outer * j->out_rows + to) * j->inner + c) * size,
                       x + done * size, (size_t)(m * size));
            done += m;
            c = 0;
            if (++i == j->rows) {
                i = 0;
                outer++;
            }
        }
        at += n;
    }
}

/* As HLO's pad; negative counts before and after cut elements off. */
int32_t trn__cpu_pad(trn_device *dev, const trn_op_call *call)
{
    const trn_pad_attrs *attrs = call->attrs;
    const trn_arg *x = call->in[0], *y = call->out[0];
    const int64_t n = trn__cpu_numel(x), n_out = trn__cpu_numel(y);
    pad_job j = {
        .rows = x->shape[attrs->axis],
        .out_rows = y->shape[attrs->axis],
        .inner = 1,
        .before = attrs->before,
        .step = attrs->interior + 1,
        .y = trn__cpu_data(y),
    };
    if (n_out == 0)
        return TRN_OK;
    for (uint32_t d = (uint32_t)attrs->axis + 1; d < x->rank; d++)
        j.inner *= x->shape[d];
    trn__cpu_reader_init(&j.x, x);
    trn__cpu_for(dev, n_out * (int64_t)j.x.size, TRN__CPU_CHEAP * 4, zero_range,
                 j.y);
    if (n > 0)
        trn__cpu_for(dev, n, TRN__CPU_CHEAP, pad_range, &j);
    return TRN_OK;
}
