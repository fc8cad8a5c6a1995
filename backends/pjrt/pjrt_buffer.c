/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory: handles around buffers of the plug-in.
 *
 * A buffer of PJRT has a type and a shape and cannot be written.  So a handle
 * without a value has none, a write gives it a new one, and what cannot be
 * uploaded yet, because its shape is not known or it is a part only, waits on
 * the host until an execution states the shape.
 */
#include <stdio.h>
#include <string.h>

#include "trn/context.h"
#include "backends/pjrt/pjrt.h"

static void *take(trn_device *dev, uint64_t bytes)
{
    void *memory = dev->host->alloc(dev->host->host, (size_t)bytes);
    if (memory == NULL)
        trn__pjrt_say(&dev->fault, TRN_ERR_NOMEM,
                      "pjrt: no memory on the host for %llu bytes",
                      (unsigned long long)bytes);
    return memory;
}

static void unstage(trn_device *dev, trn_buffer *b)
{
    dev->host->dealloc(dev->host->host, b->staged);
    b->staged = NULL;
}

static void set_type(trn_buffer *b, uint32_t dtype, uint32_t rank,
                     const int64_t *shape)
{
    b->dtype = dtype;
    b->rank = rank;
    for (uint32_t d = 0; d < rank; d++)
        b->shape[d] = shape[d];
}

bool trn__pjrt_is_like(const trn_buffer *b, uint32_t dtype, uint32_t rank,
                       const int64_t *shape)
{
    return b->dtype == dtype && b->rank == rank &&
           (rank == 0 || memcmp(b->shape, shape, rank * sizeof *shape) == 0);
}

static uint64_t bytes_of(uint32_t dtype, uint32_t rank, const int64_t *shape)
{
    uint64_t n = trn__pjrt_dtype_size(dtype);
    for (uint32_t d = 0; d < rank; d++)
        n *= (uint64_t)shape[d];
    return n;
}

trn_buffer *trn__pjrt_alloc(trn_device *dev, uint64_t bytes)
{
    trn_buffer *b = take(dev, sizeof *b);
    if (b == NULL)
        return NULL;
    *b = (trn_buffer){
        .bytes = bytes,
        .next = dev->buffers,
        .link = &dev->buffers,
    };
    if (b->next != NULL)
        b->next->link = &b->next;
    dev->buffers = b;
    return b;
}

trn_buffer *trn__pjrt_alloc_like(trn_device *dev, const trn_arg *like,
                                 uint64_t bytes)
{
    trn_buffer *b = trn__pjrt_alloc(dev, bytes);
    if (b != NULL && bytes_of(like->dtype, like->rank, like->shape) == bytes)
        set_type(b, like->dtype, like->rank, like->shape);
    return b;
}

void trn__pjrt_free(trn_device *dev, trn_buffer *b)
{
    if (b == NULL)
        return;
    *b->link = b->next;
    if (b->next != NULL)
        b->next->link = b->link;
    trn__pjrt_drop(dev, b->there);
    unstage(dev, b);
    dev->host->dealloc(dev->host->host, b);
}

void trn__pjrt_replace(trn_device *dev, trn_buffer *b, pjrt_buffer *there,
                       uint32_t dtype, uint32_t rank, const int64_t *shape)
{
    trn__pjrt_drop(dev, b->there);
    unstage(dev, b);
    b->there = there;
    set_type(b, dtype, rank, shape);
}

/* The whole value, into b->bytes bytes. */
static int32_t fetch(trn_device *dev, const trn_buffer *b, void *to)
{
    if (b->staged != NULL)
        memcpy(to, b->staged, (size_t)b->bytes);
    else if (b->there != NULL)
        return trn__pjrt_download(dev, b->there, b->rank, to, b->bytes);
    else
        memset(to, 0, (size_t)b->bytes);
    return TRN_OK;
}

static int32_t within(trn_device *dev, const trn_buffer *b, const char *what,
                      uint64_t offset, uint64_t bytes)
{
    if (offset <= b->bytes && bytes <= b->bytes - offset)
        return TRN_OK;
    return trn__pjrt_say(&dev->fault, TRN_ERR_ARG,
                         "pjrt: %s: %llu bytes at %llu of a buffer of %llu",
                         what, (unsigned long long)bytes,
                         (unsigned long long)offset,
                         (unsigned long long)b->bytes);
}

/* A part: the value moves to the host, and the part is changed there. */
static int32_t write_staged(trn_device *dev, trn_buffer *b, uint64_t offset,
                            const void *data, uint64_t bytes)
{
    if (b->staged == NULL) {
        char *staged = take(dev, b->bytes);
        if (staged == NULL)
            return TRN_ERR_NOMEM;
        int32_t status = bytes == b->bytes ? TRN_OK : fetch(dev, b, staged);
        if (status != TRN_OK) {
            dev->host->dealloc(dev->host->host, staged);
            return status;
        }
        b->staged = staged;
        trn__pjrt_drop(dev, b->there);
        b->there = NULL;
    }
    memcpy(b->staged + offset, data, (size_t)bytes);
    return TRN_OK;
}

static int32_t write_whole(trn_device *dev, trn_buffer *b, const void *data)
{
    pjrt_buffer *there;
    int32_t status =
        trn__pjrt_upload(dev, data, b->dtype, b->rank, b->shape, &there);
    if (status == TRN_OK)
        trn__pjrt_replace(dev, b, there, b->dtype, b->rank, b->shape);
    return status;
}

int32_t trn__pjrt_write(trn_device *dev, trn_buffer *b, uint64_t offset,
                        const void *data, uint64_t bytes)
{
    int32_t status = within(dev, b, "write", offset, bytes);
    if (status == TRN_OK && bytes > 0)
        status = bytes == b->bytes && b->dtype != 0
                     ? write_whole(dev, b, data)
                     : write_staged(dev, b, offset, data, bytes);
    return status == TRN_OK ? TRN_OK : trn__pjrt_raise(dev);
}

static int32_t read_part(trn_device *dev, const trn_buffer *b, uint64_t offset,
                         void *data, uint64_t bytes)
{
    char *whole = take(dev, b->bytes);
    if (whole == NULL)
        return TRN_ERR_NOMEM;
    int32_t status = fetch(dev, b, whole);
    if (status == TRN_OK)
        memcpy(data, whole + offset, (size_t)bytes);
    dev->host->dealloc(dev->host->host, whole);
    return status;
}

int32_t trn__pjrt_read(trn_device *dev, const trn_buffer *b, uint64_t offset,
                       void *data, uint64_t bytes)
{
    int32_t status = within(dev, b, "read", offset, bytes);
    if (status == TRN_OK && bytes > 0) {
        if (bytes == b->bytes)
            status = fetch(dev, b, data);
        else if (b->staged != NULL)
            memcpy(data, b->staged + offset, (size_t)bytes);
        else
            status = read_part(dev, b, offset, data, bytes);
    }
    return status == TRN_OK ? TRN_OK : trn__pjrt_raise(dev);
}

/* Said each time that the number doubles: a step that does it always is slow,
 * and the log need not be longer for that. */
static void count_conversion(trn_device *dev)
{
    char line[160];
    uint64_t n = ++dev->conversions;
    if ((n & (n - 1)) != 0)
        return;
    snprintf(line, sizeof line,
             "pjrt: %llu buffers so far went through the host because a "
             "program takes them in another shape",
             (unsigned long long)n);
    dev->host->log(dev->host->host, TRN_LOG_INFO, line);
}

int32_t trn__pjrt_copy(trn_device *dev, const trn_buffer *b, uint32_t dtype,
                       uint32_t rank, const int64_t *shape, pjrt_buffer **out)
{
    char *memory = b->staged;
    int32_t status = TRN_OK;
    if (memory == NULL) {
        memory = take(dev, b->bytes);
        if (memory == NULL)
            return TRN_ERR_NOMEM;
        status = fetch(dev, b, memory);
    }
    if (status == TRN_OK)
        status = trn__pjrt_upload(dev, memory, dtype, rank, shape, out);
    if (memory != b->staged)
        dev->host->dealloc(dev->host->host, memory);
    if (status == TRN_OK && b->there != NULL)
        count_conversion(dev);
    return status;
}

int32_t trn__pjrt_place(trn_device *dev, trn_buffer *b, uint32_t dtype,
                        uint32_t rank, const int64_t *shape)
{
    pjrt_buffer *there;
    if (b->there != NULL && trn__pjrt_is_like(b, dtype, rank, shape))
        return TRN_OK;
    int32_t status = trn__pjrt_copy(dev, b, dtype, rank, shape, &there);
    if (status == TRN_OK)
        trn__pjrt_replace(dev, b, there, dtype, rank, shape);
    return status;
}
