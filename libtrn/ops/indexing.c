/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading and adding by index: embedding, gather, and what they are the
 * gradients of.  The device checks every index before it writes.
 */
#include <string.h>

#include "libtrn/ops/op_table.h"

/* ---- embedding ---- */

bool trn__infer_embedding(const trn__call *k, trn__desc *out)
{
    const trn_arg *w = &k->in[0]->arg, *index = &k->in[1]->arg;
    int64_t shape[TRN_MAX_RANK];
    uint64_t bytes;
    if (!trn__want_float(k, 0) || !trn__want_index(k, 1))
        return false;
    if (w->rank != 2 || index->rank >= TRN_MAX_RANK) {
        trn__fail(k->c, TRN_ERR_SHAPE,
                  "embedding: weight is %s, index is %s; expected weight [V,D] "
                  "and an index of rank below %d",
                  trn__describe(w).s, trn__describe(index).s, TRN_MAX_RANK);
        return false;
    }
    memcpy(shape, index->shape, sizeof shape);
    shape[index->rank] = w->shape[1];
    return trn__desc_make(k->c, "embedding", w->dtype, (int)index->rank + 1,
                          shape, out, &bytes) == TRN_OK;
}

trn_tensor *trn_embedding(trn_tensor *weight, trn_tensor *index,
                          int64_t padding_idx)
{
    trn_embedding_attrs at;
    memset(&at, 0, sizeof at);
    trn__call k = trn__call_of(TRN_OP_embedding, weight, index, &at, sizeof at);
    if (trn__check_inputs(&k) != TRN_OK)
        return NULL;
    if (padding_idx < -1 ||
        (weight->arg.rank == 2 && padding_idx >= weight->arg.shape[0])) {
        trn__fail(k.c, TRN_ERR_ARG,
                  "embedding: padding_idx is %lld; expected -1 for none, or a "
                  "row of %s",
                  (long long)padding_idx, trn__describe(&weight->arg).s);
        return NULL;
    }
    at.padding_idx = padding_idx;
    return trn__apply(&k);
}

static trn_tensor *embedding_grad(trn_tensor *g, trn_tensor *index,
                                  int64_t n_rows, int64_t padding_idx)
{
    trn_embedding_grad_attrs at;
    memset(&at, 0, sizeof at);
    at.n_rows = n_rows;
    at.padding_idx = padding_idx;
    trn__call k = trn__call_of(TRN_OP_embedding_grad, g, index, &at, sizeof at);
    return trn__apply(&k);
}

void trn__grad_embedding(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    const trn_embedding_attrs *at = k->attrs;
    gin[0] =
        embedding_grad(g, k->in[1], k->in[0]->arg.shape[0], at->padding_idx);
}

/* g: [index's shape.., D] */
static bool check_rows(const trn__call *k)
{
    const trn_arg *g = &k->in[0]->arg, *index = &k->in[1]->arg;
    bool fits = g->rank == index->rank + 1;
    for (uint32_t d = 0; fits && d < index->rank; d++)
        fits = g->shape[d] == index->shape[d];
    if (!fits)
        trn__fail(k->c, TRN_ERR_SHAPE,
                  "embedding_grad: g is %s, index is %s; expected g [..,D] and "
                  "an index [..]",
                  trn__describe(g).s, trn__describe(index).s);
    return fits;
}

bool trn__infer_embedding_grad(const trn__call *k, trn__desc *out)
{
    const trn_embedding_grad_attrs *at = k->attrs;
    const trn_arg *g = &k->in[0]->arg;
    uint64_t bytes;
    if (!trn__want_float(k, 0) || !trn__want_index(k, 1) || !check_rows(k))
        return false;
    int64_t shape[2] = {at->n_rows, g->shape[g->rank - 1]};
    return trn__desc_make(k->c, "embedding_grad", g->dtype, 2, shape, out,
                          &bytes) == TRN_OK;
}

void trn__grad_embedding_grad(const trn__call *k, trn_tensor *g,
                              trn_tensor **gin)
{
    const trn_embedding_grad_attrs *at = k->attrs;
    trn_tensor *index = k->in[1]; /* gx[..] = g[index[..]], 0 at padding_idx */
    trn_tensor *y = trn_embedding(g, index, -1);
    if (at->padding_idx >= 0 && y != NULL) {
        trn_tensor *pad = trn_full(k->c, (trn_dtype)index->arg.dtype, 0, NULL,
                                   (double)at->padding_idx);
        int64_t shape[TRN_MAX_RANK];
        memcpy(shape, index->arg.shape, sizeof shape);
        shape[index->arg.rank] = 1;
        trn_tensor *hidden =
            trn_reshape(trn_equal(index, pad), (int)index->arg.rank + 1, shape);
        y = trn_where(hidden, trn__zeros_like(y), y);
    }
    gin[0] = y;
}

/* ---- gather and scatter_add ---- */

/* x and index agree in all axes but `axis`. */
static bool check_along(const trn__call *k, int axis, bool also_axis)
{
    const trn_arg *x = &k->in[0]->arg, *index = &k->in[1]->arg;
    bool fits = trn__want_index(k, 1);
    if (!fits)
        return false;
    fits = x->rank == index->rank;
    for (int d = 0; fits && d < (int)x->rank; d++)
        fits = x->shape[d] == index->shape[d] || (d == axis && !also_axis);
    if (!fits)
        trn__fail(k->c, TRN_ERR_SHAPE,
                  "%s: x is %s, index is %s; expected equal shapes%s",
                  trn__ops[k->op].name, trn__describe(x).s,
                  trn__describe(index).s, also_axis ? "" : " but along axis");
    return fits;
}

bool trn__infer_gather(const trn__call *k, trn__desc *out)
{
    const trn_axis_attrs *at = k->attrs;
    const trn_arg *x = &k->in[0]->arg, *index = &k->in[1]->arg;
    if (!check_along(k, at->axis, false))
        return false;
    *out = (trn__desc){.dtype = x->dtype, .rank = x->rank};
    memcpy(out->shape, index->shape, sizeof out->shape);
    return true;
}

trn_tensor *trn_gather(trn_tensor *x, int axis, trn_tensor *index)
{
    trn_axis_attrs at;
    memset(&at, 0, sizeof at);
    trn__call k = trn__call_of(TRN_OP_gather, x, index, &at, sizeof at);
    if (trn__check_inputs(&k) != TRN_OK)
        return NULL;
    at.axis = trn__axis(k.c, "gather", x, axis);
    return at.axis < 0 ? NULL : trn__apply(&k);
}

void trn__grad_gather(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    const trn_axis_attrs *at = k->attrs;
    gin[0] =
        trn_scatter_add(g, at->axis, k->in[1], k->in[0]->arg.shape[at->axis]);
}

bool trn__infer_scatter_add(const trn__call *k, trn__desc *out)
{
    const trn_scatter_attrs *at = k->attrs;
    const trn_arg *x = &k->in[0]->arg;
    int64_t shape[TRN_MAX_RANK];
    uint64_t bytes;
    if (!trn__want_float(k, 0) || !check_along(k, at->axis, true))
        return false;
    memcpy(shape, x->shape, sizeof shape);
    shape[at->axis] = at->size;
    return trn__desc_make(k->c, "scatter_add", x->dtype, (int)x->rank, shape,
                          out, &bytes) == TRN_OK;
}

trn_tensor *trn_scatter_add(trn_tensor *x, int axis, trn_tensor *index,
                            int64_t size)
{
    trn_scatter_attrs at;
    memset(&at, 0, sizeof at);
    trn__call k = trn__call_of(TRN_OP_scatter_add, x, index, &at, sizeof at);
    if (trn__check_inputs(&k) != TRN_OK)
        return NULL;
    at.axis = trn__axis(k.c, "scatter_add", x, axis);
    at.size = size;
    return at.axis < 0 ? NULL : trn__apply(&k);
}

void trn__grad_scatter_add(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    const trn_scatter_attrs *at = k->attrs;
    gin[0] = trn_gather(g, at->axis, k->in[1]);
}
