/* SPDX-License-Identifier: Apache-2.0
 *
 * Readers: merging of dimensions, gathering and scattering of chunks.
 *
 * All walks share one step: a run is what is left of the innermost dimension,
 * and `advance` carries into the outer ones when it is used up.
 */
#include "backends/cpu/cpu_read.h"

#include <string.h>

void trn__cpu_reader_dims(trn__cpu_reader *r, const trn_arg *a, int rank,
                          const int64_t *dim, const int64_t *stride)
{
    r->base = trn__cpu_data(a);
    r->dtype = a->dtype;
    r->size = (uint32_t)trn__cpu_size(a->dtype);
    r->rank = 0;
    for (int d = 0; d < rank; d++) {
        if (dim[d] == 1)
            continue;
        const int last = r->rank - 1;
        if (last >= 0 && r->stride[last] == stride[d] * dim[d]) {
            r->dim[last] *= dim[d];
            r->stride[last] = stride[d];
        } else {
            r->dim[r->rank] = dim[d];
            r->stride[r->rank++] = stride[d];
        }
    }
}

void trn__cpu_reader_init(trn__cpu_reader *r, const trn_arg *a)
{
    trn__cpu_reader_dims(r, a, (int)a->rank, a->shape, a->stride);
}

static void seek(const trn__cpu_reader *r, int64_t first, trn__cpu_cursor *at)
{
    at->offset = 0;
    for (int d = r->rank - 1; d > 0; d--) {
        at->index[d] = first % r->dim[d];
        at->offset += at->index[d] * r->stride[d];
        first /= r->dim[d];
    }
    if (r->rank > 0) {
        at->index[0] = first;
        at->offset += first * r->stride[0];
    }
}

/* Moves by m elements, at most to the end of the innermost dimension. */
static void advance(const trn__cpu_reader *r, int64_t m, trn__cpu_cursor *at)
{
    int d = r->rank - 1;
    at->index[d] += m;
    at->offset += m * r->stride[d];
    while (d > 0 && at->index[d] == r->dim[d]) {
        at->offset -= r->dim[d] * r->stride[d];
        at->index[d] = 0;
        d--;
        at->index[d]++;
        at->offset += r->stride[d];
    }
}

char *trn__cpu_locate(const trn__cpu_reader *r, int64_t first)
{
    trn__cpu_cursor at;
    seek(r, first, &at);
    return r->base + at.offset * r->size;
}

#define STRIDED_RUN(type)                                 \
    {                                                     \
        const type *from = (const type *)(const void *)x; \
        type *to = (type *)(void *)y;                     \
        for (int64_t i = 0; i < n; i++)                   \
            to[i * y_stride] = from[i * x_stride];        \
    }

/* n elements from x to y, each with its stride in elements. */
static void copy_run(uint32_t size, int64_t n, const char *x, int64_t x_stride,
                     char *y, int64_t y_stride)
{
    if (x_stride == 1 && y_stride == 1)
        memcpy(y, x, (size_t)n * size);
    else if (size == 4)
        STRIDED_RUN(uint32_t)
    else if (size == 8)
        STRIDED_RUN(uint64_t)
    else if (size == 2)
        STRIDED_RUN(uint16_t)
    else
        STRIDED_RUN(uint8_t)
}

static void gather_from(const trn__cpu_reader *r, trn__cpu_cursor *at,
                        int64_t n, char *y)
{
    const int in = r->rank - 1;
    while (n > 0) {
        const int64_t m = trn__i64_min(n, r->dim[in] - at->index[in]);
        copy_run(r->size, m, r->base + at->offset * r->size, r->stride[in], y,
                 1);
        advance(r, m, at);
        y += m * r->size;
        n -= m;
    }
}

void trn__cpu_collect(const trn__cpu_reader *r, int64_t first, int64_t n,
                      void *buf)
{
    trn__cpu_cursor at;
    if (r->rank == 0) {
        copy_run(r->size, n, r->base, 0, buf, 1);
        return;
    }
    seek(r, first, &at);
    gather_from(r, &at, n, buf);
}

const void *trn__cpu_fetch(const trn__cpu_reader *r, int64_t first, int64_t n,
                           void *buf)
{
    trn__cpu_cursor at;
    const int in = r->rank - 1;
    if (r->rank == 0) {
        if (n == 1)
            return r->base;
        copy_run(r->size, n, r->base, 0, buf, 1);
        return buf;
    }
    seek(r, first, &at);
    if (r->stride[in] == 1 && at.index[in] + n <= r->dim[in])
        return r->base + at.offset * r->size;
    gather_from(r, &at, n, buf);
    return buf;
}

void trn__cpu_spread(const trn__cpu_reader *r, int64_t first, int64_t n,
                     const void *x)
{
    trn__cpu_cursor at;
    const char *from = x;
    const int in = r->rank - 1;
    if (r->rank == 0) {
        memcpy(r->base, x, r->size);
        return;
    }
    seek(r, first, &at);
    while (n > 0) {
        const int64_t m = trn__i64_min(n, r->dim[in] - at.index[in]);
        copy_run(r->size, m, from, 1, r->base + at.offset * r->size,
                 r->stride[in]);
        advance(r, m, &at);
        from += m * r->size;
        n -= m;
    }
}

void trn__cpu_offsets(const trn__cpu_reader *r, int64_t first, int64_t n,
                      int64_t *offset)
{
    trn__cpu_cursor at;
    const int in = r->rank - 1;
    if (r->rank == 0) {
        memset(offset, 0, (size_t)n * sizeof *offset);
        return;
    }
    seek(r, first, &at);
    while (n > 0) {
        const int64_t m = trn__i64_min(n, r->dim[in] - at.index[in]);
        for (int64_t i = 0; i < m; i++)
            offset[i] = at.offset + i * r->stride[in];
        advance(r, m, &at);
        offset += m;
        n -= m;
    }
}

void trn__cpu_widen(const trn_device *dev, uint32_t dtype, int64_t n,
                    const uint16_t *x, float *y)
{
    if (dtype == TRN_BF16)
        dev->set.f32_from_bf16(n, x, y);
    else
        dev->set.f32_from_f16(n, x, y);
}

const void *trn__cpu_load(const trn_device *dev, const trn__cpu_reader *r,
                          int64_t first, int64_t n, trn__cpu_chunk *buf)
{
    uint16_t raw[TRN__CPU_CHUNK];
    if (r->dtype != TRN_BF16 && r->dtype != TRN_F16)
        return trn__cpu_fetch(r, first, n, buf);
    trn__cpu_widen(dev, r->dtype, n, trn__cpu_fetch(r, first, n, raw),
                   buf->f32);
    return buf->f32;
}

void trn__cpu_store(const trn_device *dev, uint32_t dtype, int64_t n,
                    const void *x, void *y)
{
    if (dtype == TRN_BF16)
        dev->set.bf16_from_f32(n, x, y);
    else if (dtype == TRN_F16)
        dev->set.f16_from_f32(n, x, y);
    else if (x != y)
        memcpy(y, x, (size_t)n * trn__cpu_size(dtype));
}

#define WIDEN_INDEX(type)                   \
    {                                       \
        const type *from = raw;             \
        for (int64_t i = 0; i < n; i++)     \
            buf->i64[i] = (int64_t)from[i]; \
    }

const int64_t *trn__cpu_load_index(const trn__cpu_reader *r, int64_t first,
                                   int64_t n, trn__cpu_chunk *buf)
{
    uint32_t own[TRN__CPU_CHUNK];
    if (r->dtype == TRN_I64)
        return trn__cpu_fetch(r, first, n, buf);
    const void *raw = trn__cpu_fetch(r, first, n, own);
    if (r->dtype == TRN_I32)
        WIDEN_INDEX(int32_t)
    else if (r->dtype == TRN_U32)
        WIDEN_INDEX(uint32_t)
    else
        WIDEN_INDEX(uint8_t)
    return buf->i64;
}
