/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions over axes: sum, mean, norm, max; and argmax.
 *
 * A gradient rule first gives g the shape that keep_dims would have, then
 * spreads it over the reduced axes.
 */
#include <string.h>

#include "libtrn/ops/op_table.h"

static int64_t reduced_count(const trn_arg *x, uint32_t axes)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < x->rank; d++)
        n *= (axes >> d) & 1u ? x->shape[d] : 1;
    return n;
}

static uint32_t reduced_dtype(const trn__call *k)
{
    uint32_t dtype = k->in[0]->arg.dtype;
    return k->op == TRN_OP_sum && !trn__is_float(dtype) ? (uint32_t)TRN_I64
                                                        : dtype;
}

bool trn__infer_reduce(const trn__call *k, trn__desc *out)
{
    const trn_reduce_attrs *at = k->attrs;
    const trn_arg *x = &k->in[0]->arg;
    const char *name = trn__ops[k->op].name;
    if ((k->op == TRN_OP_mean || k->op == TRN_OP_norm) &&
        !trn__want_float(k, 0))
        return false;
    if (k->op == TRN_OP_max && x->dtype == TRN_BOOL) {
        trn__fail(k->c, TRN_ERR_DTYPE, "max: x is %s; expected numbers",
                  trn__describe(x).s);
        return false;
    }
    if (x->rank < 32 && at->axes >> x->rank != 0) {
        trn__fail(k->c, TRN_ERR_ARG,
                  "%s: axes 0x%x name an axis that %s does not have", name,
                  (unsigned)at->axes, trn__describe(x).s);
        return false;
    }
    *out = (trn__desc){.dtype = reduced_dtype(k)};
    for (uint32_t d = 0; d < x->rank; d++) {
        bool reduced = (at->axes >> d) & 1u;
        if (!reduced || at->keep_dims)
            out->shape[out->rank++] = reduced ? 1 : x->shape[d];
    }
    if (k->op == TRN_OP_max && reduced_count(x, at->axes) == 0 &&
        trn__numel(out->rank, out->shape) > 0) {
        trn__fail(k->c, TRN_ERR_SHAPE,
                  "max: nothing to take the largest of in %s; expected at "
                  "least one element",
                  trn__describe(x).s);
        return false;
    }
    return true;
}

static trn_tensor *reduce(uint32_t op, trn_tensor *x, uint32_t axes,
                          bool keep_dims)
{
    trn_reduce_attrs at;
    memset(&at, 0, sizeof at);
    trn__call k = trn__call_of(op, x, NULL, &at, sizeof at);
    if (trn__check_inputs(&k) != TRN_OK)
        return NULL;
    uint32_t all = (uint32_t)((1u << x->arg.rank) - 1u);
    at.axes = axes == TRN_ALL_AXES ? all : axes;
    at.keep_dims = keep_dims;
    return trn__apply(&k);
}

trn_tensor *trn_sum(trn_tensor *x, uint32_t axes, bool keep_dims)
{
    return reduce(TRN_OP_sum, x, axes, keep_dims);
}

trn_tensor *trn_mean(trn_tensor *x, uint32_t axes, bool keep_dims)
{
    return reduce(TRN_OP_mean, x, axes, keep_dims);
}

trn_tensor *trn_norm(trn_tensor *x, uint32_t axes, bool keep_dims)
{
    return reduce(TRN_OP_norm, x, axes, keep_dims);
}

trn_tensor *trn_max(trn_tensor *x, uint32_t axes, bool keep_dims)
{
    return reduce(TRN_OP_max, x, axes, keep_dims);
}

/* t, which has the reduced shape, with its reduced axes as size 1. */
static trn_tensor *kept(const trn__call *k, trn_tensor *t)
{
    const trn_reduce_attrs *at = k->attrs;
    const trn_arg *x = &k->in[0]->arg;
    int64_t shape[TRN_MAX_RANK];
    for (uint32_t d = 0; d < x->rank; d++)
        shape[d] = (at->axes >> d) & 1u ? 1 : x->shape[d];
    return trn_reshape(t, (int)x->rank, shape);
}

static trn_tensor *spread(const trn__call *k, trn_tensor *t)
{
    const trn_arg *x = &k->in[0]->arg;
    return trn__expanded(kept(k, t), (int)x->rank, x->shape);
}

void trn__grad_sum(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    gin[0] = spread(k, g);
}

void trn__grad_mean(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    const trn_reduce_attrs *at = k->attrs;
    int64_t n = reduced_count(&k->in[0]->arg, at->axes);
    trn_tensor *share = trn_mul_scalar(g, n == 0 ? 0.0 : 1.0 / (double)n);
    gin[0] = spread(k, share);
}

void trn__grad_norm(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    trn_tensor *y = spread(k, k->out); /* gx = g x / y, and 0 where y = 0 */
    trn_tensor *zero = trn__zeros_like(y), *one = trn__constant_like(y, 1.0);
    trn_tensor *none = trn_equal(y, zero); /* x / 1 there: no NaN later */
    trn_tensor *unit = trn_div(k->in[0], trn_where(none, one, y));
    gin[0] = trn_where(none, zero, trn_mul(spread(k, g), unit));
}

void trn__grad_max(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    const trn_reduce_attrs *at = k->attrs;
    trn_tensor *x = k->in[0]; /* gx = g / (number of ties) where x = y */
    trn_tensor *hit = trn_equal(x, spread(k, k->out));
    /* Not by a sum of integers, which is i64: not every device has it. */
    trn_tensor *each =
        trn_cast(hit, g == NULL ? TRN_F32 : (trn_dtype)g->arg.dtype);
    trn_tensor *ties = trn_sum(each, at->axes, true);
    trn_tensor *share = trn_div(kept(k, g), ties);
    share = trn__expanded(share, (int)x->arg.rank, x->arg.shape);
    gin[0] = trn_where(hit, share, trn__zeros_like(x));
}

/* ---- argmax ---- */

bool trn__infer_argmax(const trn__call *k, trn__desc *out)
{
    const trn_axis_attrs *at = k->attrs;
    const trn_arg *x = &k->in[0]->arg;
    if (x->dtype == TRN_BOOL) {
        trn__fail(k->c, TRN_ERR_DTYPE, "argmax: x is %s; expected numbers",
                  trn__describe(x).s);
        return false;
    }
    if (x->shape[at->axis] == 0 || x->shape[at->axis] > INT32_MAX) {
        trn__fail(k->c, TRN_ERR_SHAPE,
                  "argmax: axis %d of %s has %lld elements; expected 1 to "
                  "2^31 - 1",
                  at->axis, trn__describe(x).s, (long long)x->shape[at->axis]);
        return false;
    }
    *out = (trn__desc){.dtype = TRN_I32};
    for (int d = 0; d < (int)x->rank; d++) {
        if (d != at->axis)
            out->shape[out->rank++] = x->shape[d];
    }
    return true;
}

trn_tensor *trn_argmax(trn_tensor *x, int axis)
{
    trn_axis_attrs at;
    memset(&at, 0, sizeof at);
    trn__call k = trn__call_of(TRN_OP_argmax, x, NULL, &at, sizeof at);
    if (trn__check_inputs(&k) != TRN_OK)
        return NULL;
    at.axis = trn__axis(k.c, "argmax", x, axis);
    return at.axis < 0 ? NULL : trn__apply(&k);
}
