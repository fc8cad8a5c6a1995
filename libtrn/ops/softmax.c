/* SPDX-License-Identifier: Apache-2.0
 *
 * softmax, log_softmax and the plain cross_entropy with their decompositions.
 *
 * Infinities go by their limits: an element equal to the row's maximum has the
 * difference 0 even if both are infinite, -inf contributes exactly 0, and a row
 * of -inf alone gives zeros.  The CPU's fused kernels equal these formulas bit
 * for bit.
 */
#include <math.h>
#include <string.h>

#include "libtrn/ops/op_table.h"

/* d = x - max x along axis (0 at the maximum), e = e^d (0 where x is -inf),
 * s = sum of e, hidden = x is -inf. */
typedef struct row_parts {
    trn_tensor *d, *e, *s, *hidden;
} row_parts;

static row_parts parts_of(trn_tensor *x, int axis)
{
    row_parts r = {NULL, NULL, NULL, NULL};
    uint32_t axes = TRN_AXIS(axis);
    trn_tensor *m = trn_max(x, axes, true);
    trn_tensor *zero = trn__zeros_like(x);
    if (zero == NULL)
        return r;
    r.hidden = trn_equal(x, trn__constant_like(x, -(double)INFINITY));
    r.d = trn_where(trn_equal(x, m), zero, trn_sub(x, m));
    r.e = trn_where(r.hidden, zero, trn_exp(r.d));
    r.s = trn_sum(r.e, axes, true);
    return r;
}

static bool infer_rows(const trn__call *k, trn__desc *out)
{
    const trn_arg *x = &k->in[0]->arg;
    *out = (trn__desc){.dtype = x->dtype, .rank = x->rank};
    memcpy(out->shape, x->shape, sizeof out->shape);
    return trn__want_float(k, 0);
}

bool trn__infer_softmax(const trn__call *k, trn__desc *out)
{
    return infer_rows(k, out);
}

bool trn__infer_log_softmax(const trn__call *k, trn__desc *out)
{
    return infer_rows(k, out);
}

static bool is_empty(const trn_tensor *x)
{
    return trn__numel(x->arg.rank, x->arg.shape) == 0;
}

static trn_tensor *softmax_of(trn_tensor *x, int axis)
{
    if (x == NULL || is_empty(x))
        return x;
    row_parts r = parts_of(x, axis);
    trn_tensor *zero = trn__zeros_like(x);
    if (zero == NULL)
        return NULL;
    trn_tensor *none =
        trn_equal(r.s, trn_full(x->c, (trn_dtype)x->arg.dtype, 0, NULL, 0.0));
    return trn_where(none, zero, trn_div(r.e, r.s));
}

static trn_tensor *log_softmax_of(trn_tensor *x, int axis)
{
    if (x == NULL || is_empty(x))
        return x;
    row_parts r = parts_of(x, axis);
    return trn_where(r.hidden, trn__constant_like(x, -(double)INFINITY),
                     trn_sub(r.d, trn_log(r.s)));
}

trn_tensor *trn__decompose_softmax(const trn__call *k)
{
    const trn_axis_attrs *at = k->attrs;
    trn_tensor *x = k->in[0];
    trn_tensor *y = softmax_of(trn__up(x), at->axis);
    if (y == NULL)
        return NULL;
    return trn__down(y == x ? trn_copy(y) : y, x->arg.dtype);
}

trn_tensor *trn__decompose_log_softmax(const trn__call *k)
{
    const trn_axis_attrs *at = k->attrs;
    trn_tensor *x = k->in[0];
    trn_tensor *y = log_softmax_of(trn__up(x), at->axis);
    if (y == NULL)
        return NULL;
    return trn__down(y == x ? trn_copy(y) : y, x->arg.dtype);
}

void trn__grad_softmax(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    const trn_axis_attrs *at = k->attrs;
    trn_tensor *y = k->out; /* gx = y (g - sum(g y)) */
    trn_tensor *inner = trn_sum(trn_mul(g, y), TRN_AXIS(at->axis), true);
    gin[0] = trn_mul(y, trn_sub(g, inner));
}

void trn__grad_log_softmax(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    const trn_axis_attrs *at = k->attrs;
    uint32_t axes = TRN_AXIS(at->axis);
    trn_tensor *y = k->out; /* gx = g - e^y sum(g) */
    trn_tensor *gx = trn_sub(g, trn_mul(trn_exp(y), trn_sum(g, axes, true)));
    if (!is_empty(y)) { /* all of y is -inf only where all of x is */
        trn_tensor *top = trn_max(y, axes, true);
        trn_tensor *none =
            trn_equal(top, trn__constant_like(top, -(double)INFINITY));
        gx = trn_where(none, trn__zeros_like(g), gx);
    }
    gin[0] = gx;
}

static trn_tensor *along_axis(uint32_t op, trn_tensor *x, int axis)
{
    trn_axis_attrs at;
    memset(&at, 0, sizeof at);
    trn__call k = trn__call_of(op, x, NULL, &at, sizeof at);
    if (trn__check_inputs(&k) != TRN_OK)
        return NULL;
    at.axis = trn__axis(k.c, trn__ops[op].name, x, axis);
    return at.axis < 0 ? NULL : trn__apply(&k);
}

trn_tensor *trn_softmax(trn_tensor *x, int axis)
{
    return along_axis(TRN_OP_softmax, x, axis);
}

trn_tensor *trn_log_softmax(trn_tensor *x, int axis)
{
    return along_axis(TRN_OP_log_softmax, x, axis);
}

/* ---- cross entropy ---- */

static bool check_targets(const trn__call *k)
{
    const trn_cross_entropy_attrs *at = k->attrs;
    const trn_arg *x = &k->in[0]->arg, *t = &k->in[1]->arg;
    if (!trn__want_float(k, 0) || !trn__want_index(k, 1))
        return false;
    if (x->rank != 2 || t->rank != 1 || x->shape[0] != t->shape[0]) {
        trn__fail(k->c, TRN_ERR_SHAPE,
                  "%s: logits are %s, target is %s; expected logits [N,C], "
                  "target [N]",
                  trn__ops[k->op].name, trn__describe(x).s, trn__describe(t).s);
        return false;
    }
    if (at->reduction < TRN_REDUCE_MEAN || at->reduction > TRN_REDUCE_NONE) {
        trn__fail(k->c, TRN_ERR_ARG,
                  "%s: reduction is %d; expected a trn_reduction",
                  trn__ops[k->op].name, at->reduction);
        return false;
    }
    return true;
}

bool trn__infer_cross_entropy(const trn__call *k, trn__desc *out)
{
    const trn_cross_entropy_attrs *at = k->attrs;
    const trn_arg *x = &k->in[0]->arg;
    if (!check_targets(k))
        return false;
    *out = (trn__desc){.dtype = x->dtype};
    if (at->reduction == TRN_REDUCE_NONE)
        out->shape[out->rank++] = x->shape[0];
    return true;
}

bool trn__infer_cross_entropy_grad(const trn__call *k, trn__desc *out)
{
    const trn_cross_entropy_attrs *at = k->attrs;
    if (!check_targets(k) || !infer_rows(k, out))
        return false;
    const trn_arg *x = &k->in[0]->arg, *g = &k->in[2]->arg;
    bool rows = at->reduction == TRN_REDUCE_NONE;
    if (g->dtype == x->dtype && g->rank == (rows ? 1 : 0) &&
        (!rows || g->shape[0] == x->shape[0]))
        return true;
    trn__fail(k->c, TRN_ERR_SHAPE,
              "cross_entropy_grad: logits are %s, g is %s; expected g %s",
              trn__describe(x).s, trn__describe(g).s, rows ? "[N]" : "[]");
    return false;
}

/* Which targets count, and the targets with 0 in place of the others. */
typedef struct targets {
    trn_tensor *ignored; /* bool [N]; NULL: all count */
    trn_tensor *index;   /* [N, 1] */
    trn_tensor *count;   /* rank 0, in the type of the logits */
} targets;

static targets targets_of(const trn__call *k, const trn_tensor *logits)
{
    const trn_cross_entropy_attrs *at = k->attrs;
    trn_tensor *t = k->in[1];
    trn_dtype dtype = (trn_dtype)logits->arg.dtype;
    trn_dtype type = (trn_dtype)t->arg.dtype;
    targets r = {NULL, t, NULL};
    int64_t n = t->arg.shape[0];
    trn_tensor *each = trn_full(k->c, dtype, 1, &n, 1.0);
    if (at->has_ignore_index) {
        trn_tensor *value =
            trn_full(k->c, type, 0, NULL, (double)at->ignore_index);
        r.ignored = trn_equal(t, value);
        r.index = trn_where(r.ignored, trn_full(k->c, type, 0, NULL, 0.0), t);
        each = trn_where(r.ignored, trn_full(k->c, dtype, 0, NULL, 0.0), each);
    }
    r.count = trn_sum(each, TRN_ALL_AXES, false);
    r.index = trn_reshape(r.index, 2, (int64_t[]){n, 1});
    return r;
}

/* x / count, and 0 where nothing counts. */
static trn_tensor *over_count(trn_tensor *x, trn_tensor *count)
{
    if (x == NULL || count == NULL)
        return NULL;
    trn_tensor *zero = trn__zeros_like(count);
    trn_tensor *divisor = trn_maximum(count, trn__constant_like(count, 1.0));
    return trn_where(trn_equal(count, zero), zero, trn_div(x, divisor));
}

trn_tensor *trn__decompose_cross_entropy(const trn__call *k)
{
    const trn_cross_entropy_attrs *at = k->attrs;
    trn_tensor *x = trn__up(k->in[0]);
    if (x == NULL)
        return NULL;
    targets t = targets_of(k, x);
    trn_tensor *picked = trn_gather(log_softmax_of(x, 1), 1, t.index);
    trn_tensor *y = trn_neg(trn_reshape(picked, 1, x->arg.shape));
    if (t.ignored != NULL && y != NULL)
        y = trn_where(t.ignored, trn__zeros_like(y), y);
    if (at->reduction != TRN_REDUCE_NONE)
        y = trn_sum(y, TRN_ALL_AXES, false);
    if (at->reduction == TRN_REDUCE_MEAN)
        y = over_count(y, t.count);
    return trn__down(y, k->in[0]->arg.dtype);
}

trn_tensor *trn__decompose_cross_entropy_grad(const trn__call *k)
{
    const trn_cross_entropy_attrs *at = k->attrs;
    trn_tensor *x = trn__up(k->in[0]), *g = trn__up(k->in[2]);
    if (x == NULL || g == NULL)
        return NULL;
    targets t = targets_of(k, x);
    int64_t column[2] = {x->arg.shape[0], 1};
    trn_tensor *ones = trn_full(k->c, (trn_dtype)x->arg.dtype, 2, column, 1.0);
    trn_tensor *hot = trn_scatter_add(ones, 1, t.index, x->arg.shape[1]);
    trn_tensor *y = trn_sub(softmax_of(x, 1), hot);
    if (at->reduction == TRN_REDUCE_MEAN)
        g = over_count(g, t.count);
    else if (at->reduction == TRN_REDUCE_NONE)
        g = trn_reshape(g, 2, column);
    y = trn_mul(y, g); /* y = (softmax - one hot) g */
    if (t.ignored != NULL && y != NULL)
        y = trn_where(trn_reshape(t.ignored, 2, column), trn__zeros_like(y), y);
    return trn__down(y, k->in[0]->arg.dtype);
}

void trn__grad_cross_entropy(const trn__call *k, trn_tensor *g,
                             trn_tensor **gin)
{
    trn__call grad = trn__call_of(TRN_OP_cross_entropy_grad, k->in[0], k->in[1],
                                  k->attrs, k->attrs_size);
    grad.in[2] = g;
    gin[0] = trn__apply(&grad);
}

void trn__grad_cross_entropy_grad(const trn__call *k, trn_tensor *g,
                                  trn_tensor **gin)
{
    /* That of the decomposition y = (p - hot) w:  gx = p (v - sum(v p)) with
     * v = g w, and gw = sum(g (p - hot)) */
    trn__call one = *k;
    trn_cross_entropy_attrs at = *(const trn_cross_entropy_attrs *)k->attrs;
    trn_tensor *x = k->in[0];
    if (g == NULL)
        return;
    if (trn__needs_grad(k->in[2])) { /* y is linear in g: y with g = 1 */
        one.in[2] = trn__constant_like(k->in[2], 1.0);
        trn_tensor *inner = trn_mul(g, trn__apply(&one));
        bool rows = at.reduction == TRN_REDUCE_NONE;
        gin[2] = trn_sum(inner, rows ? TRN_AXIS(1) : TRN_ALL_AXES, false);
    }
    if (!trn__needs_grad(x))
        return;
    targets t = targets_of(k, x);
    int64_t column[2] = {x->arg.shape[0], 1};
    trn_tensor *w = k->in[2];
    if (at.reduction == TRN_REDUCE_MEAN)
        w = over_count(w, t.count);
    else if (at.reduction == TRN_REDUCE_NONE)
        w = trn_reshape(w, 2, column);
    trn_tensor *v = trn_mul(g, w);
    if (t.ignored != NULL && v != NULL)
        v = trn_where(trn_reshape(t.ignored, 2, column), trn__zeros_like(v), v);
    trn_tensor *p = trn_softmax(x, 1);
    trn_tensor *mean = trn_sum(trn_mul(v, p), TRN_AXIS(1), true);
    gin[0] = trn_mul(p, trn_sub(v, mean));
}
