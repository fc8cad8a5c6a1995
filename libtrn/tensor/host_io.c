/* SPDX-License-Identifier: Apache-2.0
 *
 * Data in and out of tensors: from, write, read, item, map, wrap.
 *
 * Everything goes through the device's write and read, in whole storages where
 * a tensor is strided; a copy is always finished before the call returns.
 */
#include <string.h>

#include "libtrn/tensor/tensor.h"

trn_status trn__storage_read(trn__storage *s, uint64_t offset, void *data,
                             uint64_t bytes)
{
    trn_context *c = s->c;
    if (bytes == 0)
        return TRN_OK;
    trn_buffer *from = s->peek != NULL ? s->peek : s->buffer;
    if (from == NULL)
        return trn__fail(c, TRN_ERR_STALE,
                         "read: a tensor is used after its step ended; "
                         "expected trn_keep() before trn_step_end()");
    if (c->backend->read(c->device, from, offset, data, bytes) != TRN_OK)
        return trn__fail(c, TRN_ERR_DEVICE,
                         "read: device %s could not read %llu bytes",
                         c->backend->name, (unsigned long long)bytes);
    c->bytes_to_host += bytes;
    return TRN_OK;
}

trn_status trn__storage_write(trn__storage *s, uint64_t offset,
                              const void *data, uint64_t bytes)
{
    trn_context *c = s->c;
    if (bytes == 0)
        return TRN_OK;
    if (s->buffer == NULL)
        return trn__fail(c, TRN_ERR_STALE,
                         "write: a tensor is used after its step ended; "
                         "expected trn_keep() before trn_step_end()");
    if (c->backend->write(c->device, s->buffer, offset, data, bytes) != TRN_OK)
        return trn__fail(c, TRN_ERR_DEVICE,
                         "write: device %s could not write %llu bytes",
                         c->backend->name, (unsigned long long)bytes);
    c->bytes_to_device += bytes;
    return TRN_OK;
}

static size_t tensor_bytes(const trn_tensor *t)
{
    return (size_t)trn__numel(t->arg.rank, t->arg.shape) *
           trn_dtype_size((trn_dtype)t->arg.dtype);
}

/* Copies all elements between a row-major image and a strided one. */
static void strided_copy(const trn_arg *arg, size_t element, char *strided,
                         char *dense, bool to_dense)
{
    int64_t index[TRN_MAX_RANK] = {0};
    int64_t n = trn__numel(arg->rank, arg->shape);
    int64_t at = arg->offset;
    for (int64_t i = 0; i < n; i++) {
        char *s = strided + (size_t)at * element;
        memcpy(to_dense ? dense : s, to_dense ? s : dense, element);
        dense += element;
        for (uint32_t d = arg->rank; d-- > 0;) {
            at += arg->stride[d];
            if (++index[d] < arg->shape[d])
                break;
            at -= arg->stride[d] * arg->shape[d];
            index[d] = 0;
        }
    }
}

/* Strided tensors go through a host image of their whole storage. */
static trn_status strided_io(trn_tensor *t, void *data, bool reading)
{
    trn__storage *s = t->storage;
    size_t element = trn_dtype_size((trn_dtype)t->arg.dtype);
    char *image = trn__alloc(t->c, (size_t)s->bytes);
    if (image == NULL)
        return trn__fail_memory(t->c, "read or write of a strided tensor",
                                s->bytes);
    trn_status status = trn__storage_read(s, 0, image, s->bytes);
    if (status == TRN_OK) {
        strided_copy(&t->arg, element, image, data, reading);
        if (!reading)
            status = trn__storage_write(s, 0, image, s->bytes);
    }
    trn__free(t->c, image);
    return status;
}

static trn_status check_io(trn_tensor *t, const char *what, const void *data,
                           size_t bytes)
{
    if (t == NULL)
        return TRN_ERR_ARG;
    trn_context *c = t->c;
    TRN_TRY(trn__pending(c));
    TRN_TRY(trn__check_tensor(c, what, t));
    if (bytes != tensor_bytes(t))
        return trn__fail(
            c, TRN_ERR_ARG, "%s: %llu bytes were given; expected %llu for %s",
            what, (unsigned long long)bytes,
            (unsigned long long)tensor_bytes(t), trn__describe(&t->arg).s);
    if (data == NULL && bytes > 0)
        return trn__fail(c, TRN_ERR_ARG,
                         "%s: data is NULL; expected %llu bytes", what,
                         (unsigned long long)bytes);
    return TRN_OK;
}

trn_status trn_tensor_read(trn_tensor *t, void *data, size_t bytes)
{
    TRN_TRY(check_io(t, "trn_tensor_read", data, bytes));
    TRN_TRY(t->c->tensors->settle(t->c, t));
    size_t element = trn_dtype_size((trn_dtype)t->arg.dtype);
    if (bytes == 0)
        return TRN_OK;
    if (!trn__is_contiguous(&t->arg))
        return strided_io(t, data, true);
    return trn__storage_read(t->storage, (uint64_t)t->arg.offset * element,
                             data, bytes);
}

static trn_status put_bytes(trn_tensor *t, const void *data, size_t bytes)
{
    trn_context *c = t->c;
    trn__storage *s = t->storage;
    size_t element = trn_dtype_size((trn_dtype)t->arg.dtype);
    TRN_TRY(c->tensors->settle(c, t));
    TRN_TRY(c->tensors->before_write(c, s));
    s->version++;
    if (!trn__is_contiguous(&t->arg)) {
        union {
            const void *from;
            void *to;
        } cast = {.from = data}; /* strided_io only reads it here */
        return strided_io(t, cast.to, false);
    }
    return trn__storage_write(s, (uint64_t)t->arg.offset * element, data,
                              bytes);
}

trn_status trn_tensor_write(trn_tensor *t, const void *data, size_t bytes)
{
    TRN_TRY(check_io(t, "trn_tensor_write", data, bytes));
    trn_context *c = t->c;
    trn__storage *s = t->storage;
    if (s->read_only)
        return trn__fail(c, TRN_ERR_STATE,
                         "trn_tensor_write: %s wraps the caller's memory; "
                         "expected a tensor of the library's own",
                         trn__describe(&t->arg).s);
    if (t->record != NULL || t->traced_grad)
        return trn__fail(c, TRN_ERR_STATE,
                         "trn_tensor_write: a gradient is recorded for %s; "
                         "expected a tensor that was not computed from "
                         "parameters, or trn_detach() of it",
                         trn__describe(&t->arg).s);
    if (trn__self_overlaps(&t->arg))
        return trn__fail(c, TRN_ERR_ARG,
                         "trn_tensor_write: elements of %s share memory; "
                         "expected a tensor that is not expanded",
                         trn__describe(&t->arg).s);
    if (bytes == 0)
        return TRN_OK;
    if (c->tensors->traces(c)) /* part of the step, in its place */
        return c->tensors->assign(t, trn_tensor_from(c, (trn_dtype)t->arg.dtype,
                                                     (int)t->arg.rank,
                                                     t->arg.shape, data));
    bool was_lost = s->lost;
    if (bytes == s->bytes)
        s->lost = false; /* all of it is new */
    trn_status status = put_bytes(t, data, bytes);
    s->lost = s->lost || (was_lost && status != TRN_OK);
    return status;
}

trn_tensor *trn_tensor_from(trn_context *c, trn_dtype dtype, int rank,
                            const int64_t *shape, const void *data)
{
    trn__desc desc;
    uint64_t bytes;
    if (trn__pending(c) != TRN_OK ||
        trn__desc_make(c, "trn_tensor_from", (uint32_t)dtype, rank, shape,
                       &desc, &bytes) != TRN_OK)
        return NULL;
    if (data == NULL && bytes > 0) {
        trn__fail(c, TRN_ERR_ARG,
                  "trn_tensor_from: data is NULL; expected %llu bytes",
                  (unsigned long long)bytes);
        return NULL;
    }
    trn_tensor *t = trn__tensor_new(c, "trn_tensor_from", &desc);
    if (t == NULL)
        return NULL;
    if (trn__storage_write(t->storage, 0, data, bytes) != TRN_OK) {
        trn__unref(t);
        return NULL;
    }
    return t;
}

trn_tensor *trn_tensor_wrap(trn_context *c, trn_dtype dtype, int rank,
                            const int64_t *shape, const void *data,
                            trn_release_fn release, void *user)
{
    size_t element = trn_dtype_size(dtype);
    union {
        const void *from;
        void *to;
    } cast = {.from = data}; /* never written: the storage is read-only */
    if (trn__pending(c) != TRN_OK)
        return NULL;
    if (element > 0 && (uintptr_t)data % element != 0) {
        trn__fail(c, TRN_ERR_ARG,
                  "trn_tensor_wrap: data is not aligned to %u bytes",
                  (unsigned)element);
        return NULL;
    }
    trn_tensor *t;
    if (c->backend != NULL && (c->backend->caps & TRN_CAP_HOST_MEMORY)) {
        trn__desc desc;
        uint64_t bytes;
        if (trn__desc_make(c, "trn_tensor_wrap", (uint32_t)dtype, rank, shape,
                           &desc, &bytes) != TRN_OK)
            return NULL;
        if (data == NULL && bytes > 0) {
            trn__fail(c, TRN_ERR_ARG,
                      "trn_tensor_wrap: data is NULL; expected %llu bytes",
                      (unsigned long long)bytes);
            return NULL;
        }
        trn__desc empty = desc; /* storage without memory of its own */
        empty.rank = 1;
        empty.shape[0] = 0;
        t = trn__tensor_new(c, "trn_tensor_wrap", &empty);
        if (t == NULL)
            return NULL;
        t->arg.rank = desc.rank;
        memcpy(t->arg.shape, desc.shape, sizeof desc.shape);
        trn__row_major(&t->arg);
        t->storage->buffer = t->arg.buffer = cast.to;
        t->storage->bytes = bytes;
        t->storage->read_only = t->storage->borrowed = true;
        t->storage->release = release;
        t->storage->release_user = user;
        t->storage->release_data = cast.to;
        return t;
    }
    t = trn_tensor_from(c, dtype, rank, shape, data);
    if (t != NULL)
        t->storage->read_only = true; /* as on every device */
    if (t != NULL && release != NULL)
        release(user, cast.to); /* copied: no more use for it */
    return t;
}

const void *trn_tensor_map(trn_tensor *t)
{
    size_t bytes = t == NULL ? 0 : tensor_bytes(t);
    if (check_io(t, "trn_tensor_map", t, bytes) != TRN_OK ||
        t->c->tensors->settle(t->c, t) != TRN_OK)
        return NULL;
    trn_context *c = t->c;
    size_t element = trn_dtype_size((trn_dtype)t->arg.dtype);
    if (t->map != NULL) {
        trn__fail(c, TRN_ERR_STATE,
                  "trn_tensor_map: %s is mapped; expected trn_tensor_unmap() "
                  "first",
                  trn__describe(&t->arg).s);
        return NULL;
    }
    if ((c->backend->caps & TRN_CAP_HOST_MEMORY) && bytes > 0 &&
        trn__is_contiguous(&t->arg) && t->storage->peek == NULL) {
        t->map = (char *)t->arg.buffer + (size_t)t->arg.offset * element;
        return t->map;
    }
    void *copy = trn__alloc(c, bytes);
    if (copy == NULL) {
        trn__fail_memory(c, "trn_tensor_map", bytes);
        return NULL;
    }
    if (trn_tensor_read(t, copy, bytes) != TRN_OK) {
        trn__free(c, copy);
        return NULL;
    }
    t->map = copy;
    t->map_owned = true;
    return copy;
}

trn_status trn_tensor_unmap(trn_tensor *t)
{
    if (t == NULL)
        return TRN_ERR_ARG;
    TRN_TRY(trn__check_tensor(t->c, "trn_tensor_unmap", t));
    if (t->map_owned)
        trn__free(t->c, t->map);
    t->map = NULL;
    t->map_owned = false;
    return TRN_OK;
}
