/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions over axes: sum, mean, norm, max, min, var, logsumexp; and argmax.
 *
 * A gradient rule first gives g the shape that keep_dims would have, then
 * spreads it over the reduced axes.
 */
#include <math.h>
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

/* The shape without the axes, or with ones in their place. */
static bool infer_axes(const trn__call *k, uint32_t axes, int32_t keep_dims,
                       trn__desc *out)
{
    const trn_arg *x = &k->in[0]->arg;
    if (x->rank < 32 && axes >> x->rank != 0) {
        trn__fail(k->c, TRN_ERR_ARG,
                  "%s: axes 0x%x name an axis that %s does not have",
                  trn__ops[k->op].name, (unsigned)axes, trn__describe(x).s);
        return false;
    }
    *out = (trn__desc){.dtype = reduced_dtype(k)};
    for (uint32_t d = 0; d < x->rank; d++) {
        bool reduced = (axes >> d) & 1u;
        if (!reduced || keep_dims)
            out->shape[out->rank++] = reduced ? 1 : x->shape[d];
    }
    return true;
}

bool trn__infer_reduce(const trn__call *k, trn__desc *out)
{
    const trn_reduce_attrs *at = k->attrs;
    const trn_arg *x = &k->in[0]->arg;
    const char *name = trn__ops[k->op].name;
    bool picks = k->op == TRN_OP_max || k->op == TRN_OP_min;
    if (k->op != TRN_OP_sum && !picks && !trn__want_float(k, 0))
        return false;
    if (picks && x->dtype == TRN_BOOL) {
        trn__fail(k->c, TRN_ERR_DTYPE, "%s: x is %s; expected numbers", name,
                  trn__describe(x).s);
        return false;
    }
    if (!infer_axes(k, at->axes, at->keep_dims, out))
        return false;
    if (picks && reduced_count(x, at->axes) == 0 &&
        trn__numel(out->rank, out->shape) > 0) {
        trn__fail(k->c, TRN_ERR_SHAPE,
                  "%s: nothing to take the %s of in %s; expected at least one "
                  "element",
                  name, k->op == TRN_OP_max ? "largest" : "smallest",
                  trn__describe(x).s);
        return false;
    }
    return true;
}

static uint32_t all_axes(const trn_tensor *x)
{
    return (uint32_t)((1u << x->arg.rank) - 1u);
}

static trn_tensor *reduce(uint32_t op, trn_tensor *x, uint32_t axes,
                          bool keep_dims)
{
    trn_reduce_attrs at;
    memset(&at, 0, sizeof at);
    trn__call k = trn__call_of(op, x, NULL, &at, sizeof at);
    if (trn__check_inputs(&k) != TRN_OK)
        return NULL;
    at.axes = axes == TRN_ALL_AXES ? all_axes(x) : axes;
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

trn_tensor *trn_min(trn_tensor *x, uint32_t axes, bool keep_dims)
{
    return reduce(TRN_OP_min, x, axes, keep_dims);
}

trn_tensor *trn_logsumexp(trn_tensor *x, uint32_t axes, bool keep_dims)
{
    return reduce(TRN_OP_logsumexp, x, axes, keep_dims);
}

/* t, which has the reduced shape, with its reduced axes as size 1. */
static trn_tensor *kept_over(const trn_arg *x, uint32_t axes, trn_tensor *t)
{
    int64_t shape[TRN_MAX_RANK];
    for (uint32_t d = 0; d < x->rank; d++)
        shape[d] = (axes >> d) & 1u ? 1 : x->shape[d];
    return trn_reshape(t, (int)x->rank, shape);
}

static trn_tensor *spread_over(const trn_arg *x, uint32_t axes, trn_tensor *t)
{
    return trn__expanded(kept_over(x, axes, t), (int)x->rank, x->shape);
}

static trn_tensor *kept(const trn__call *k, trn_tensor *t)
{
    const trn_reduce_attrs *at = k->attrs;
    return kept_over(&k->in[0]->arg, at->axes, t);
}

static trn_tensor *spread(const trn__call *k, trn_tensor *t)
{
    const trn_reduce_attrs *at = k->attrs;
    return spread_over(&k->in[0]->arg, at->axes, t);
}

void trn__grad_sum(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    gin[0] = spread(k, g);
}

void trn__grad_mean(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    const trn_reduce_attrs *at = k->attrs;
    int64_t n = reduced_count(&k->in[0]->arg, at->axes);
    trn_tensor *share =
        trn_mul_scalar(g, n == 0 ? 0.0 : trn__fp_quotient(1.0, (double)n));
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

/* Of max and min. */
static void grad_pick(const trn__call *k, trn_tensor *g, trn_tensor **gin)
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

void trn__grad_max(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    grad_pick(k, g, gin);
}

void trn__grad_min(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    grad_pick(k, g, gin);
}

trn_tensor *trn__decompose_min(const trn__call *k)
{
    const trn_reduce_attrs *at = k->attrs;
    trn_tensor *x = k->in[0];
    if (trn__is_float(x->arg.dtype))
        return trn_neg(trn_max(trn_neg(x), at->axes, at->keep_dims));
    /* -1 - x turns the order of every integer type round, and wraps in none */
    trn_tensor *y = trn_add_scalar(trn_neg(x), -1.0);
    y = trn_max(y, at->axes, at->keep_dims);
    return trn_add_scalar(trn_neg(y), -1.0);
}

/* ---- logsumexp ---- */

/* y = m + ln sum of e^(x - m), m = max x; x - m is 0 where both are equal, also
 * if infinite, and -inf adds nothing. */
static trn_tensor *log_sum(trn_tensor *x, uint32_t axes, bool keep_dims)
{
    trn_tensor *m = trn_max(x, axes, true), *zero = trn__zeros_like(x);
    trn_tensor *hidden = trn_equal(x, trn__constant_like(x, -(double)INFINITY));
    trn_tensor *d = trn_where(trn_equal(x, m), zero, trn_sub(x, m));
    trn_tensor *e = trn_where(hidden, zero, trn_exp(d));
    trn_tensor *y = trn_add(m, trn_log(trn_sum(e, axes, true)));
    if (keep_dims || y == NULL)
        return y;
    int64_t shape[TRN_MAX_RANK];
    int rank = 0;
    for (uint32_t i = 0; i < x->arg.rank; i++) {
        if (!((axes >> i) & 1u))
            shape[rank++] = x->arg.shape[i];
    }
    return trn_copy(trn_reshape(y, rank, shape));
}

trn_tensor *trn__decompose_logsumexp(const trn__call *k)
{
    const trn_reduce_attrs *at = k->attrs;
    trn_tensor *x = trn__up(k->in[0]), *y;
    if (x == NULL)
        return NULL;
    if (reduced_count(&x->arg, at->axes) == 0) /* ln 0 */
        y = trn_log(trn_sum(x, at->axes, at->keep_dims));
    else
        y = log_sum(x, at->axes, at->keep_dims);
    return trn__down(y, k->in[0]->arg.dtype);
}

void trn__grad_logsumexp(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    /* gx = g e^(x - y).  Infinite elements share g; one of -inf gets nothing.
     * A y of 16 bits is too coarse for that difference, and made again. */
    const trn_reduce_attrs *at = k->attrs;
    trn_tensor *x = trn__up(k->in[0]), *y = k->out;
    if (x != k->in[0])
        y = trn_logsumexp(x, at->axes, at->keep_dims);
    y = spread(k, y);
    trn_tensor *zero = trn__zeros_like(x), *one = trn__constant_like(x, 1.0);
    trn_tensor *inf = trn__constant_like(x, (double)INFINITY);
    trn_tensor *hidden = trn_equal(x, trn_neg(inf));
    trn_tensor *d = trn_where(trn_equal(x, y), zero, trn_sub(x, y));
    trn_tensor *p = trn_where(hidden, zero, trn_exp(d));
    trn_tensor *tops = trn_where(trn_equal(x, inf), one, zero);
    trn_tensor *n = trn_sum(tops, at->axes, true);
    n = trn_maximum(n, trn__constant_like(n, 1.0));
    trn_tensor *gx = trn_mul(spread(k, trn__up(g)), trn_div(p, n));
    gin[0] = trn__down(gx, k->in[0]->arg.dtype);
}

/* ---- var ---- */

bool trn__infer_var(const trn__call *k, trn__desc *out)
{
    const trn_var_attrs *at = k->attrs;
    if (!trn__want_float(k, 0))
        return false;
    if (at->correction < 0) {
        trn__fail(k->c, TRN_ERR_ARG,
                  "var: correction is %lld; expected 0, 1 or more",
                  (long long)at->correction);
        return false;
    }
    return infer_axes(k, at->axes, at->keep_dims, out);
}

/* The first element along the axes, as a number: no gradient goes there. */
static trn_tensor *first_of(trn_tensor *x, uint32_t axes)
{
    trn_tensor *first = x;
    if (x == NULL)
        return NULL;
    bool mode = trn__grad_mode(x->c, false);
    for (int d = 0; d < (int)x->arg.rank; d++) {
        if ((axes >> d) & 1u)
            first = trn_slice(first, d, 0, 1, 1);
    }
    trn__grad_mode(x->c, mode);
    return first;
}

void trn__grad_var(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    /* gx = g 2 (x - mean x) / (n - correction), where a shift of x by its first
     * element makes the difference 0 for equal elements on every device */
    const trn_var_attrs *at = k->attrs;
    const trn_arg *arg = &k->in[0]->arg;
    trn_tensor *x = trn__up(k->in[0]);
    int64_t n = reduced_count(arg, at->axes) - at->correction;
    double factor = n > 0 ? trn__fp_quotient(2.0, (double)n) : (double)NAN;
    trn_tensor *d = trn_sub(x, first_of(x, at->axes));
    d = trn_sub(d, trn_mean(d, at->axes, true));
    g = trn_mul_scalar(trn__up(g), factor);
    trn_tensor *gx = trn_mul(spread_over(arg, at->axes, g), d);
    gin[0] = trn__down(gx, arg->dtype);
}

trn_tensor *trn_var(trn_tensor *x, uint32_t axes, bool keep_dims,
                    int64_t correction)
{
    trn_var_attrs at;
    memset(&at, 0, sizeof at);
    trn__call k = trn__call_of(TRN_OP_var, x, NULL, &at, sizeof at);
    if (trn__check_inputs(&k) != TRN_OK)
        return NULL;
    at.axes = axes == TRN_ALL_AXES ? all_axes(x) : axes;
    at.keep_dims = keep_dims;
    at.correction = correction;
    return trn__apply(&k);
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
