/* SPDX-License-Identifier: Apache-2.0
 *
 * Views: reshape, permute, expand, slice; and pad, the gradient of slice.
 *
 * A view computes nothing: its rule gives strides and offset.  In a graph it is
 * an op like any other.
 */
#include <string.h>

#include "libtrn/ops/op_table.h"

/* ---- reshape ---- */

static trn_dims dims_of(int rank, const int64_t *shape)
{
    trn_dims dims;
    memset(&dims, 0, sizeof dims);
    dims.rank = rank;
    for (int d = 0; d < rank; d++)
        dims.dim[d] = shape[d];
    return dims;
}

bool trn__infer_reshape(const trn__call *k, trn__desc *out)
{
    const trn_shape_attrs *at = k->attrs;
    uint64_t bytes;
    return trn__desc_make(k->c, "reshape", k->in[0]->arg.dtype,
                          (int)at->shape.rank, at->shape.dim, out,
                          &bytes) == TRN_OK;
}

/*
 * Strides of `out` (shape given) over the memory of x, if they exist: groups of
 * x's axes that step evenly are cut into out's axes.
 */
static bool reshape_strides(const trn_arg *x, trn_arg *out)
{
    uint32_t xd = 0, od = 0;
    trn__row_major(out);
    if (trn__is_contiguous(x))
        return true;
    while (xd < x->rank && od < out->rank) {
        int64_t nx = x->shape[xd], no = out->shape[od];
        uint32_t x0 = xd, o0 = od;
        while (nx != no) {
            if (nx < no)
                nx *= x->shape[++xd];
            else
                no *= out->shape[++od];
        }
        int64_t stride = 0; /* of the group's last axis that is not 1 */
        int64_t span = 1;
        for (uint32_t d = xd + 1; d-- > x0;) {
            if (x->shape[d] == 1)
                continue;
            if (span > 1 && x->stride[d] != stride * span)
                return false;
            if (span == 1)
                stride = x->stride[d];
            span *= x->shape[d];
        }
        for (uint32_t d = od + 1; d-- > o0;) {
            out->stride[d] = stride;
            stride *= out->shape[d];
        }
        xd++;
        od++;
    }
    return true; /* what is left are axes of size 1 */
}

void trn__view_reshape(const trn__call *k, trn_arg *out)
{
    bool fits = reshape_strides(&k->in[0]->arg, out);
    TRN_ASSERT(fits); /* trn_reshape has copied x otherwise */
    (void)fits;
}

void trn__grad_reshape(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    const trn_arg *x = &k->in[0]->arg;
    gin[0] = trn_reshape(g, (int)x->rank, x->shape);
}

/* Puts what is left in place of a -1 in dims; raises if it does not fit. */
static trn_status fill_free_dimension(trn_tensor *x, trn_dims *dims)
{
    int64_t known = 1, n = trn__numel(x->arg.rank, x->arg.shape);
    int64_t free_axis = -1;
    for (int64_t d = 0; d < dims->rank; d++) {
        if (dims->dim[d] == -1 && free_axis < 0)
            free_axis = d;
        else if (!trn__mul_size(known, dims->dim[d], &known))
            return trn__fail(x->c, TRN_ERR_ARG,
                             "reshape: dimension %lld is %lld; expected 0 or "
                             "more, or one -1",
                             (long long)d, (long long)dims->dim[d]);
    }
    if (free_axis >= 0) {
        if (known == 0 || n % known != 0)
            return trn__fail(x->c, TRN_ERR_SHAPE,
                             "reshape: %s has %lld elements; expected a "
                             "multiple of %lld",
                             trn__describe(&x->arg).s, (long long)n,
                             (long long)known);
        dims->dim[free_axis] = n / known;
    } else if (known != n) {
        return trn__fail(x->c, TRN_ERR_SHAPE,
                         "reshape: %s has %lld elements, the new shape has "
                         "%lld; expected as many",
                         trn__describe(&x->arg).s, (long long)n,
                         (long long)known);
    }
    return TRN_OK;
}

/* Begins a call whose attributes hold a shape; raises if it is no shape. */
static trn_status shape_call(trn__call *k, int rank, const int64_t *shape)
{
    TRN_TRY(trn__check_inputs(k));
    const char *name = trn__ops[k->op].name;
    if (rank < 0 || rank > TRN_MAX_RANK || (rank > 0 && shape == NULL))
        return trn__fail(k->c, TRN_ERR_ARG,
                         "%s: rank is %d with shape %s; expected 0 to %d and a "
                         "shape",
                         name, rank, shape == NULL ? "NULL" : "given",
                         TRN_MAX_RANK);
    return TRN_OK;
}

trn_tensor *trn_reshape(trn_tensor *x, int rank, const int64_t *shape)
{
    trn_shape_attrs at;
    memset(&at, 0, sizeof at);
    trn__call k = trn__call_of(TRN_OP_reshape, x, NULL, &at, sizeof at);
    if (shape_call(&k, rank, shape) != TRN_OK)
        return NULL;
    at.shape = dims_of(rank, shape);
    if (fill_free_dimension(x, &at.shape) != TRN_OK)
        return NULL;
    trn_arg out = x->arg;
    out.rank = (uint32_t)rank;
    memcpy(out.shape, at.shape.dim, sizeof out.shape);
    if (trn__numel(x->arg.rank, x->arg.shape) == 0 ||
        reshape_strides(&x->arg, &out))
        return trn__apply(&k);
    trn__scope scope;
    trn__scope_enter(k.c, &scope);
    k.in[0] = trn_copy(x);
    return trn__scope_leave(k.c, &scope, trn__apply(&k));
}

/* ---- permute ---- */

bool trn__infer_permute(const trn__call *k, trn__desc *out)
{
    const trn_perm_attrs *at = k->attrs;
    const trn_arg *x = &k->in[0]->arg;
    *out = (trn__desc){.dtype = x->dtype, .rank = x->rank};
    uint32_t seen = 0;
    for (uint32_t d = 0; d < x->rank; d++) {
        int axis = at->perm.axis[d];
        if (axis < 0 || axis >= (int)x->rank || ((seen >> axis) & 1u)) {
            trn__fail(k->c, TRN_ERR_ARG,
                      "permute: perm[%u] is %d; expected each axis of %s once",
                      (unsigned)d, axis, trn__describe(x).s);
            return false;
        }
        seen |= 1u << axis;
        out->shape[d] = x->shape[axis];
    }
    return true;
}

void trn__view_permute(const trn__call *k, trn_arg *out)
{
    const trn_perm_attrs *at = k->attrs;
    for (uint32_t d = 0; d < out->rank; d++)
        out->stride[d] = k->in[0]->arg.stride[at->perm.axis[d]];
}

void trn__grad_permute(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    const trn_perm_attrs *at = k->attrs;
    int inverse[TRN_MAX_RANK] = {0};
    for (int d = 0; d < at->perm.rank; d++)
        inverse[at->perm.axis[d]] = d;
    gin[0] = trn_permute(g, inverse);
}

trn_tensor *trn_permute(trn_tensor *x, const int *perm)
{
    trn_perm_attrs at;
    memset(&at, 0, sizeof at);
    trn__call k = trn__call_of(TRN_OP_permute, x, NULL, &at, sizeof at);
    if (trn__check_inputs(&k) != TRN_OK)
        return NULL;
    at.perm.rank = (int32_t)x->arg.rank;
    if (perm == NULL && x->arg.rank > 0) {
        trn__fail(k.c, TRN_ERR_ARG, "permute: perm is NULL; expected %u axes",
                  (unsigned)x->arg.rank);
        return NULL;
    }
    for (uint32_t d = 0; d < x->arg.rank; d++)
        at.perm.axis[d] = perm[d] < 0 ? perm[d] + (int)x->arg.rank : perm[d];
    return trn__apply(&k);
}

trn_tensor *trn_transpose(trn_tensor *x, int axis0, int axis1)
{
    int perm[TRN_MAX_RANK] = {0};
    trn__call k = trn__call_of(TRN_OP_permute, x, NULL, NULL, 0);
    if (trn__check_inputs(&k) != TRN_OK)
        return NULL;
    int a = trn__axis(k.c, "transpose", x, axis0);
    int b = trn__axis(k.c, "transpose", x, axis1);
    if (a < 0 || b < 0)
        return NULL;
    for (int d = 0; d < (int)x->arg.rank; d++)
        perm[d] = d == a ? b : d == b ? a : d;
    return trn_permute(x, perm);
}

/* ---- expand ---- */

bool trn__infer_expand(const trn__call *k, trn__desc *out)
{
    const trn_shape_attrs *at = k->attrs;
    const trn_arg *x = &k->in[0]->arg;
    uint64_t bytes;
    if (trn__desc_make(k->c, "expand", x->dtype, (int)at->shape.rank,
                       at->shape.dim, out, &bytes) != TRN_OK)
        return false;
    bool fits = out->rank >= x->rank;
    for (uint32_t i = 1; fits && i <= x->rank; i++) {
        int64_t dx = x->shape[x->rank - i];
        fits = dx == 1 || dx == out->shape[out->rank - i];
    }
    trn_arg to = {.dtype = x->dtype, .rank = out->rank};
    memcpy(to.shape, out->shape, sizeof to.shape);
    if (!fits)
        trn__fail(k->c, TRN_ERR_SHAPE,
                  "expand: %s does not broadcast to %s; expected equal "
                  "dimensions, or 1, from the last axis on",
                  trn__describe(x).s, trn__describe(&to).s);
    return fits;
}

void trn__view_expand(const trn__call *k, trn_arg *out)
{
    const trn_arg *x = &k->in[0]->arg;
    for (uint32_t d = 0; d < out->rank; d++)
        out->stride[d] = 0;
    for (uint32_t i = 1; i <= x->rank; i++) {
        uint32_t dx = x->rank - i, d = out->rank - i;
        out->stride[d] = x->shape[dx] == out->shape[d] ? x->stride[dx] : 0;
    }
}

void trn__grad_expand(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    const trn_arg *x = &k->in[0]->arg;
    uint32_t axes = 0, extra = g->arg.rank - x->rank;
    for (uint32_t d = 0; d < g->arg.rank; d++) {
        if (d < extra || x->shape[d - extra] != g->arg.shape[d])
            axes |= TRN_AXIS(d);
    }
    if (axes != 0)
        g = trn_sum(g, axes, true);
    gin[0] = trn_reshape(g, (int)x->rank, x->shape);
}

trn_tensor *trn_expand(trn_tensor *x, int rank, const int64_t *shape)
{
    trn_shape_attrs at;
    memset(&at, 0, sizeof at);
    trn__call k = trn__call_of(TRN_OP_expand, x, NULL, &at, sizeof at);
    if (shape_call(&k, rank, shape) != TRN_OK)
        return NULL;
    at.shape = dims_of(rank, shape);
    return trn__apply(&k);
}

trn_tensor *trn__expanded(trn_tensor *x, int rank, const int64_t *shape)
{
    bool same = x != NULL && (uint32_t)rank == x->arg.rank;
    for (int d = 0; same && d < rank; d++)
        same = shape[d] == x->arg.shape[d];
    return same ? x : trn_expand(x, rank, shape);
}
