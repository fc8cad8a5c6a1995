/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain questions about a tensor; none fails, NULL answers 0.
 */
#include <stdio.h>

#include "libtrn/tensor/tensor.h"

trn_context *trn_tensor_context(const trn_tensor *t)
{
    return t == NULL ? NULL : t->c;
}

trn_dtype trn_tensor_dtype(const trn_tensor *t)
{
    return t == NULL ? (trn_dtype)0 : (trn_dtype)t->arg.dtype;
}

int trn_tensor_rank(const trn_tensor *t)
{
    return t == NULL ? 0 : (int)t->arg.rank;
}

static int64_t at_axis(const trn_tensor *t, const int64_t *values, int axis)
{
    int rank = (int)t->arg.rank;
    axis = axis < 0 ? axis + rank : axis;
    return axis < 0 || axis >= rank ? 0 : values[axis];
}

int64_t trn_tensor_dim(const trn_tensor *t, int axis)
{
    return t == NULL ? 0 : at_axis(t, t->arg.shape, axis);
}

int64_t trn_tensor_stride(const trn_tensor *t, int axis)
{
    return t == NULL ? 0 : at_axis(t, t->arg.stride, axis);
}

int64_t trn_tensor_numel(const trn_tensor *t)
{
    return t == NULL ? 0 : trn__numel(t->arg.rank, t->arg.shape);
}

bool trn_tensor_is_contiguous(const trn_tensor *t)
{
    return t != NULL && trn__is_contiguous(&t->arg);
}

uint64_t trn_tensor_version(const trn_tensor *t)
{
    return t == NULL || t->storage == NULL ? 0 : t->storage->version;
}

const char *trn_tensor_describe(const trn_tensor *t, char *text, size_t size)
{
    if (size > 0 && text != NULL)
        snprintf(text, size, "%s",
                 t == NULL ? "NULL" : trn__describe(&t->arg).s);
    return text;
}
