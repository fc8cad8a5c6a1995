/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows picked by index, and indices as rows: index_select, one_hot.
 *
 * What they are made of looks at the index as it was given, so that a bad one
 * is told with its position there.
 */
#include <string.h>

#include "libtrn/ops/op_table.h"

/* ---- index_select ---- */

bool trn__infer_index_select(const trn__call *k, trn__desc *out)
{
    const trn_axis_attrs *at = k->attrs;
    const trn_arg *x = &k->in[0]->arg, *index = &k->in[1]->arg;
    int64_t shape[TRN_MAX_RANK];
    uint64_t bytes;
    if (!trn__want_index(k, 1))
        return false;
    if (index->rank != 1) {
        trn__fail(k->c, TRN_ERR_SHAPE,
                  "index_select: x is %s, index is %s; expected an index of "
                  "rank 1",
                  trn__describe(x).s, trn__describe(index).s);
        return false;
    }
    memcpy(shape, x->shape, sizeof shape);
    shape[at->axis] = index->shape[0];
    return trn__desc_make(k->c, "index_select", x->dtype, (int)x->rank, shape,
                          out, &bytes) == TRN_OK;
}

trn_tensor *trn_index_select(trn_tensor *x, int axis, trn_tensor *index)
{
    trn_axis_attrs at;
    memset(&at, 0, sizeof at);
    trn__call k = trn__call_of(TRN_OP_index_select, x, index, &at, sizeof at);
    if (trn__check_inputs(&k) != TRN_OK)
        return NULL;
    at.axis = trn__axis(k.c, "index_select", x, axis);
    return at.axis < 0 ? NULL : trn__apply(&k);
}

/* x with axis in front and the other axes as one: [size, the rest] */
static trn_tensor *as_rows(trn_tensor *x, int axis)
{
    int perm[TRN_MAX_RANK];
    if (x == NULL)
        return NULL;
    const int64_t *shape = x->arg.shape;
    int64_t rows[2] = {shape[axis], 1};
    perm[0] = axis;
    for (int d = 0, at = 1; d < (int)x->arg.rank; d++) {
        if (d == axis)
            continue;
        perm[at++] = d;
        rows[1] *= shape[d];
    }
    return trn_reshape(axis == 0 ? x : trn_permute(x, perm), 2, rows);
}

/* rows [n, the rest] with the axes of `like`, `axis` of them of size n; memory
 * of its own */
static trn_tensor *from_rows(trn_tensor *rows, const trn_arg *like, int axis)
{
    int64_t shape[TRN_MAX_RANK];
    int perm[TRN_MAX_RANK];
    if (rows == NULL)
        return NULL;
    shape[0] = rows->arg.shape[0];
    perm[axis] = 0;
    for (int d = 0, at = 1; d < (int)like->rank; d++) {
        if (d == axis)
            continue;
        perm[d] = at;
        shape[at++] = like->shape[d];
    }
    trn_tensor *y = trn_reshape(rows, (int)like->rank, shape);
    return trn_copy(axis == 0 ? y : trn_permute(y, perm));
}

/* The index again: the zeros that are read by it are there to check it. */
static trn_tensor *checked(trn_tensor *index, int64_t size)
{
    trn_tensor *zero =
        trn_full(index->c, (trn_dtype)index->arg.dtype, 0, NULL, 0.0);
    trn_tensor *zeros = trn__expanded(zero, 1, &size);
    return trn_add(index, trn_gather(zeros, 0, index));
}

/* Types that embedding does not take: every element has its index. */
static trn_tensor *by_elements(const trn__call *k, int axis)
{
    const trn_arg *x = &k->in[0]->arg;
    const int64_t n = k->in[1]->arg.shape[0];
    const int rank = (int)x->rank;
    int64_t line[TRN_MAX_RANK], shape[TRN_MAX_RANK];
    for (int d = 0; d < rank; d++) {
        line[d] = d == axis ? n : 1;
        shape[d] = d == axis ? n : x->shape[d];
    }
    trn_tensor *index = checked(k->in[1], x->shape[axis]);
    index = trn__expanded(trn_reshape(index, rank, line), rank, shape);
    return trn_gather(k->in[0], axis, index);
}

trn_tensor *trn__decompose_index_select(const trn__call *k)
{
    const trn_axis_attrs *at = k->attrs;
    trn_tensor *x = k->in[0];
    if (!trn__is_float(x->arg.dtype))
        return by_elements(k, at->axis);
    trn_tensor *rows = trn_embedding(as_rows(x, at->axis), k->in[1], -1);
    return from_rows(rows, &x->arg, at->axis);
}

/* embedding's gradient, whose additions are in the order of the indices */
void trn__grad_index_select(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    const trn_axis_attrs *at = k->attrs;
    const trn_arg *x = &k->in[0]->arg;
    trn_embedding_grad_attrs rows;
    memset(&rows, 0, sizeof rows);
    rows.n_rows = x->shape[at->axis];
    rows.padding_idx = -1;
    trn__call sum = trn__call_of(TRN_OP_embedding_grad, as_rows(g, at->axis),
                                 k->in[1], &rows, sizeof rows);
    gin[0] = from_rows(trn__apply(&sum), x, at->axis);
}

/* ---- one_hot ---- */

bool trn__infer_one_hot(const trn__call *k, trn__desc *out)
{
    const trn_one_hot_attrs *at = k->attrs;
    const trn_arg *index = &k->in[0]->arg;
    int64_t shape[TRN_MAX_RANK];
    uint64_t bytes;
    if (!trn__want_index(k, 0))
        return false;
    if (index->rank >= TRN_MAX_RANK) {
        trn__fail(k->c, TRN_ERR_SHAPE,
                  "one_hot: index is %s; expected a rank below %d",
                  trn__describe(index).s, TRN_MAX_RANK);
        return false;
    }
    memcpy(shape, index->shape, sizeof shape);
    shape[index->rank] = at->n_classes;
    return trn__desc_make(k->c, "one_hot", (uint32_t)at->dtype,
                          (int)index->rank + 1, shape, out, &bytes) == TRN_OK;
}

trn_tensor *trn_one_hot(trn_tensor *index, int64_t n_classes, trn_dtype dtype)
{
    trn_one_hot_attrs at;
    memset(&at, 0, sizeof at);
    at.n_classes = n_classes;
    at.dtype = (int32_t)dtype;
    trn__call k = trn__call_of(TRN_OP_one_hot, index, NULL, &at, sizeof at);
    if (trn__check_inputs(&k) != TRN_OK)
        return NULL;
    if (trn_dtype_size(dtype) == 0 || dtype == TRN_BOOL) {
        trn__fail(k.c, TRN_ERR_DTYPE,
                  "one_hot: dtype is %s; expected a float or integer type",
                  trn_dtype_name(dtype));
        return NULL;
    }
    if (n_classes < 1) {
        trn__fail(k.c, TRN_ERR_ARG,
                  "one_hot: n_classes is %lld; expected 1 or more",
                  (long long)n_classes);
        return NULL;
    }
    return trn__apply(&k);
}

/* y = ones scattered along a last axis, one for each index */
trn_tensor *trn__decompose_one_hot(const trn__call *k)
{
    const trn_one_hot_attrs *at = k->attrs;
    trn_tensor *index = k->in[0];
    const int rank = (int)index->arg.rank;
    const trn_dtype dtype =
        trn__is_float((uint32_t)at->dtype) ? (trn_dtype)at->dtype : TRN_F32;
    int64_t shape[TRN_MAX_RANK];
    memcpy(shape, index->arg.shape, sizeof shape);
    shape[rank] = 1;
    trn_tensor *ones =
        trn__expanded(trn_full(k->c, dtype, 0, NULL, 1.0), rank + 1, shape);
    trn_tensor *y = trn_scatter_add(
        ones, rank, trn_reshape(index, rank + 1, shape), at->n_classes);
    return trn__down(y, (uint32_t)at->dtype);
}
