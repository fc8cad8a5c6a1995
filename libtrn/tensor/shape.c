/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes, strides, broadcasting and type promotion: arithmetic on descriptors,
 * no memory.
 */
#include <stdio.h>

#include "libtrn/tensor/tensor.h"

int64_t trn__numel(uint32_t rank, const int64_t *shape)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < rank; d++)
        n *= shape[d]; /* cannot overflow: trn__desc_make has checked */
    return n;
}

trn_status trn__desc_make(trn_context *c, const char *what, uint32_t dtype,
                          int rank, const int64_t *shape, trn__desc *out,
                          uint64_t *bytes)
{
    size_t element = trn_dtype_size((trn_dtype)dtype);
    if (element == 0)
        return trn__fail(c, TRN_ERR_DTYPE,
                         "%s: dtype is %u; expected a trn_dtype", what,
                         (unsigned)dtype);
    if (c->backend == NULL || !(c->backend->stores & TRN_DTYPE_BIT(dtype)))
        return trn__fail(c, TRN_ERR_DTYPE,
                         "%s: device %s does not store %s; expected a type "
                         "that it stores",
                         what, trn_device_name(c),
                         trn_dtype_name((trn_dtype)dtype));
    if (rank < 0 || rank > TRN_MAX_RANK)
        return trn__fail(c, TRN_ERR_ARG, "%s: rank is %d; expected 0 to %d",
                         what, rank, TRN_MAX_RANK);
    if (rank > 0 && shape == NULL)
        return trn__fail(c, TRN_ERR_ARG, "%s: shape is NULL, rank is %d", what,
                         rank);
    *out = (trn__desc){.dtype = dtype, .rank = (uint32_t)rank};
    int64_t total = (int64_t)element;
    for (int d = 0; d < rank; d++) {
        if (shape[d] < 0)
            return trn__fail(c, TRN_ERR_ARG,
                             "%s: dimension %d is %lld; expected 0 or more",
                             what, d, (long long)shape[d]);
        /* Zero must not hide an overflow of the other dimensions: strides and
         * products of parts of the shape are formed later. */
        if (!trn__mul_size(total, shape[d] == 0 ? 1 : shape[d], &total))
            return trn__fail(c, TRN_ERR_ARG,
                             "%s: the size overflows at dimension %d (%lld); "
                             "expected less than 2^63 bytes",
                             what, d, (long long)shape[d]);
        out->shape[d] = shape[d];
    }
    *bytes = (uint64_t)trn__numel(out->rank, out->shape) * element;
    return TRN_OK;
}

void trn__row_major(trn_arg *arg)
{
    int64_t stride = 1;
    for (uint32_t d = arg->rank; d-- > 0;) {
        arg->stride[d] = stride;
        stride *= arg->shape[d] > 0 ? arg->shape[d] : 1;
    }
}

bool trn__is_contiguous(const trn_arg *arg)
{
    int64_t stride = 1;
    bool dense = true;
    for (uint32_t d = arg->rank; d-- > 0;) {
        if (arg->shape[d] == 0)
            return true; /* whatever the strides of the other axes */
        dense = dense && (arg->shape[d] == 1 || arg->stride[d] == stride);
        stride *= arg->shape[d];
    }
    return dense;
}

bool trn__same_shape(const trn_arg *a, const trn_arg *b)
{
    if (a->rank != b->rank)
        return false;
    for (uint32_t d = 0; d < a->rank; d++) {
        if (a->shape[d] != b->shape[d])
            return false;
    }
    return true;
}

void trn__extent(const trn_arg *arg, int64_t *low, int64_t *high)
{
    *low = *high = arg->offset;
    for (uint32_t d = 0; d < arg->rank; d++) {
        if (arg->shape[d] == 0) {
            *low = *high = arg->offset;
            return;
        }
        int64_t span = (arg->shape[d] - 1) * arg->stride[d];
        *(span < 0 ? low : high) += span;
    }
    *high += 1;
}

bool trn__self_overlaps(const trn_arg *arg)
{
    /* Sorted by stride, each axis must step over all that the smaller ones
     * span.  Sufficient for what views can make; true when in doubt. */
    int64_t spanned = 0;
    bool done[TRN_MAX_RANK] = {false};
    for (uint32_t i = 0; i < arg->rank; i++) {
        uint32_t best = TRN_MAX_RANK;
        for (uint32_t d = 0; d < arg->rank; d++) {
            if (arg->shape[d] == 0)
                return false;
            if (!done[d] &&
                (best == TRN_MAX_RANK || arg->stride[d] < arg->stride[best]))
                best = d;
        }
        done[best] = true;
        if (arg->shape[best] == 1)
            continue;
        if (arg->stride[best] <= spanned)
            return true;
        spanned += (arg->shape[best] - 1) * arg->stride[best];
    }
    return false;
}

bool trn__broadcast(const trn_arg *a, const trn_arg *b, uint32_t *rank,
                    int64_t *shape)
{
    *rank = a->rank > b->rank ? a->rank : b->rank;
    for (uint32_t i = 0; i < *rank; i++) { /* from the last axis on */
        int64_t da = i < a->rank ? a->shape[a->rank - 1 - i] : 1;
        int64_t db = i < b->rank ? b->shape[b->rank - 1 - i] : 1;
        if (da != db && da != 1 && db != 1)
            return false;
        shape[*rank - 1 - i] = da == 1 ? db : da;
    }
    return true;
}

bool trn__is_float(uint32_t dtype)
{
    return dtype >= TRN_F64 && dtype <= TRN_F16;
}

uint32_t trn__compute_dtype(uint32_t dtype)
{
    return dtype == TRN_BF16 || dtype == TRN_F16 ? (uint32_t)TRN_F32 : dtype;
}

uint32_t trn__promote(uint32_t a, uint32_t b)
{
    /* The wider of two kinds; what neither holds goes to the next above. */
    static const uint8_t order[] = {
        [TRN_BOOL] = 0, [TRN_U8] = 1,  [TRN_I32] = 2,
        [TRN_U32] = 3,  [TRN_I64] = 4, [TRN_F16] = 5,
        [TRN_BF16] = 6, [TRN_F32] = 7, [TRN_F64] = 8,
    };
    if (a == b)
        return a;
    uint32_t low = order[a] < order[b] ? a : b;
    uint32_t high = low == a ? b : a;
    if (low == TRN_I32 && high == TRN_U32)
        return TRN_I64;
    if (low == TRN_F16 && high == TRN_BF16)
        return TRN_F32;
    return high;
}

trn__text trn__describe(const trn_arg *arg)
{
    trn__text text;
    size_t n = sizeof text.s;
    int at = snprintf(text.s, n, "%s[", trn_dtype_name((trn_dtype)arg->dtype));
    for (uint32_t d = 0; d < arg->rank && at > 0 && (size_t)at < n; d++)
        at += snprintf(text.s + at, n - (size_t)at, d == 0 ? "%lld" : ",%lld",
                       (long long)arg->shape[d]);
    if (at > 0 && (size_t)at < n)
        snprintf(text.s + at, n - (size_t)at, "]");
    return text;
}
