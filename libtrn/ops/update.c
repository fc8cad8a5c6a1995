/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes in place: assign, and the optimizers' updates with their formulas.
 */
#include <string.h>

#include "libtrn/ops/capture.h"
#include "libtrn/ops/flight.h"
#include "libtrn/ops/op_table.h"
#include "libtrn/ops/step.h"
#include "libtrn/ops/trace_parts.h"

bool trn__infer_update(const trn__call *k, trn__desc *out)
{
    const trn__op_info *info = &trn__ops[k->op];
    const trn_arg *x = &k->in[0]->arg;
    *out = (trn__desc){.dtype = x->dtype, .rank = x->rank};
    for (int i = 0; i < k->n_in; i++) {
        const trn_arg *other = &k->in[i]->arg;
        if (other->dtype != x->dtype || !trn__same_shape(other, x)) {
            trn__fail(k->c, TRN_ERR_SHAPE,
                      "%s: input %d is %s; expected that of input 0: %s",
                      info->name, i, trn__describe(other).s,
                      trn__describe(x).s);
            return false;
        }
    }
    return true;
}

/* ---- assign ---- */

static bool ranges_meet(const trn_tensor *x, const trn_tensor *y)
{
    int64_t x0, x1, y0, y1;
    if (x->storage != y->storage)
        return false;
    trn__extent(&x->arg, &x0, &x1);
    trn__extent(&y->arg, &y0, &y1);
    return x0 < y1 && y0 < x1;
}

static bool same_elements(const trn_tensor *x, const trn_tensor *y)
{
    return x->arg.offset == y->arg.offset &&
           trn__same_shape(&x->arg, &y->arg) &&
           memcmp(x->arg.stride, y->arg.stride,
                  x->arg.rank * sizeof x->arg.stride[0]) == 0;
}

/* The tape keeps the result of some calls; of matched ones it would. */
static bool is_saved(const trn_tensor *x)
{
    if (!x->traced_grad || x->owner == NULL || x->view != NULL)
        return false;
    const trn__entry *e = &x->owner->entries[x->owner_entry];
    const trn__graph_node *n = &x->owner->graph->nodes[e->node];
    return (trn__ops[n->op].saves & TRN__SAVE_OUT) != 0;
}

/* x is a leaf with gradient, or a view in a recorded computation: its history
 * could not be told from the outside any more. */
static trn_status check_history(trn_tensor *x, const trn_tensor *y)
{
    trn_context *c = x->c;
    bool recording = !c->tape->off;
    if (recording && x->requires_grad)
        return trn__fail(c, TRN_ERR_STATE,
                         "assign: %s is a leaf whose gradient is wanted; "
                         "expected trn_no_grad_begin() before it is written",
                         trn__describe(&x->arg).s);
    if (!recording ||
        (x->record == NULL && !x->traced_grad && !trn__needs_grad(y)))
        return TRN_OK;
    if (x->storage->refs > 1 && c->capture != NULL)
        TRN_TRY(trn__flights_finish(c)); /* steps in flight hold it, too */
    if (x->storage->refs > 1 + x->storage->saved + trn__unseen_shares(c, x) ||
        is_saved(x))
        return trn__fail(c, TRN_ERR_STATE,
                         "assign: %s shares memory with other tensors while "
                         "gradients are recorded; expected trn_copy() of it",
                         trn__describe(&x->arg).s);
    return TRN_OK;
}

/* base's value with y where its view `x` looks, by the view's inverse. */
static trn_tensor *put_slice(trn_tensor *base, const trn_slice_attrs *at,
                             trn_tensor *y)
{
    int64_t size = base->arg.shape[at->axis], n = y->arg.shape[at->axis];
    int64_t interior = n > 1 ? at->step - 1 : 0;
    int64_t after = size - at->start - n - (n - 1) * interior;
    if (n == 0)
        return base;
    trn_tensor *one = trn_full(y->c, TRN_BOOL, 0, NULL, 1.0);
    one = trn__expanded(one, (int)y->arg.rank, y->arg.shape);
    trn_tensor *here = trn_pad(one, at->axis, at->start, after, interior);
    trn_tensor *wide = trn_pad(y, at->axis, at->start, after, interior);
    return trn_where(here, wide, base);
}

static trn_tensor *put_back(const trn__view *view, trn_tensor *y)
{
    trn_tensor *base = view->base;
    union {
        const uint64_t *words;
        const trn_perm_attrs *perm;
        const trn_slice_attrs *slice;
    } at = {.words = view->attrs};
    int inverse[TRN_MAX_RANK] = {0};
    switch (view->op) {
    case 0:
        return y;
    case TRN_OP_reshape:
        return trn_reshape(y, (int)base->arg.rank, base->arg.shape);
    case TRN_OP_permute:
        for (int d = 0; d < at.perm->perm.rank; d++)
            inverse[at.perm->perm.axis[d]] = d;
        return trn_permute(y, inverse);
    case TRN_OP_slice:
        return put_slice(base, at.slice, y);
    default: /* expand; of axes of size 1 only, else elements share memory */
        if (trn__numel(y->arg.rank, y->arg.shape) == 0)
            return base;
        return trn_reshape(y, (int)base->arg.rank, base->arg.shape);
    }
}

/* In a captured step a write to a view is a new value of what it looks at. */
static trn_status assign_traced(trn_tensor *x, trn_tensor *y)
{
    trn_context *c = x->c;
    trn__scope scope;
    trn__scope_enter(c, &scope);
    y = trn__expanded(y, (int)x->arg.rank, x->arg.shape);
    for (; x->view != NULL && y != NULL; x = x->view->base)
        y = put_back(x->view, y);
    if (y != NULL)
        y = trn__expanded(y, (int)x->arg.rank, x->arg.shape);
    trn__call k = trn__call_of(TRN_OP_assign, x, y, NULL, 0);
    if (y != NULL)
        trn__apply(&k);
    trn__scope_leave(c, &scope, NULL);
    return c->status;
}

static trn_status check_assign(trn_tensor *x, trn_tensor *y)
{
    trn_context *c = x->c;
    uint32_t rank;
    int64_t shape[TRN_MAX_RANK];
    if (x->arg.dtype != y->arg.dtype)
        return trn__fail(c, TRN_ERR_DTYPE,
                         "assign: x is %s, y is %s; expected one type",
                         trn__describe(&x->arg).s, trn__describe(&y->arg).s);
    if (!trn__broadcast(&x->arg, &y->arg, &rank, shape) ||
        rank != x->arg.rank ||
        memcmp(shape, x->arg.shape, rank * sizeof shape[0]) != 0)
        return trn__fail(c, TRN_ERR_SHAPE,
                         "assign: x is %s, y is %s; expected y to broadcast "
                         "to x",
                         trn__describe(&x->arg).s, trn__describe(&y->arg).s);
    if (trn__self_overlaps(&x->arg))
        return trn__fail(c, TRN_ERR_ARG,
                         "assign: elements of x, %s, share memory; expected a "
                         "tensor that is not expanded",
                         trn__describe(&x->arg).s);
    if (ranges_meet(x, y) && !same_elements(x, y))
        return trn__fail(c, TRN_ERR_ARG,
                         "assign: x and y overlap in memory but are not the "
                         "same; expected trn_copy() of y");
    return check_history(x, y);
}

/* Writes and records; what x was computed of is forgotten. */
static trn_status write_over(trn__call *k, trn_tensor *x)
{
    trn_context *c = k->c;
    k->in[1] = trn__expanded(k->in[1], (int)x->arg.rank, x->arg.shape);
    if (x->view != NULL && trn__capture_on(c)) {
        bool mode = trn__grad_mode(c, false);
        c->capture->through = x;
        trn_status status = trn__trace_hold(c, x);
        if (status == TRN_OK)
            status = assign_traced(x, k->in[1]);
        c->capture->through = NULL;
        trn__grad_mode(c, mode);
        TRN_TRY(status);
    } else if (trn__apply(k) == NULL) {
        return c->status;
    }
    struct trn__record *old = x->record; /* recorded anew, perhaps, by now */
    x->record = NULL;
    x->traced_grad = false;
    if (!c->tape->off && trn__needs_grad(k->in[1]) &&
        trn__is_float(x->arg.dtype)) {
        k->out = x;
        if (c->capture != NULL && c->capture->matching)
            x->traced_grad = true;
        else
            trn__tape_record(k, trn__ops[TRN_OP_assign].saves);
        trn__step_history(x);
    }
    if (old != NULL)
        trn__record_unref(c, old);
    return c->status;
}

trn_status trn_assign(trn_tensor *x, trn_tensor *y)
{
    trn__scope scope; /* for y expanded */
    trn__call k = trn__call_of(TRN_OP_assign, x, y, NULL, 0);
    TRN_TRY(trn__check_inputs(&k));
    TRN_TRY(check_assign(x, y));
    trn__scope_enter(k.c, &scope);
    trn_status status = write_over(&k, x);
    trn__scope_leave(k.c, &scope, NULL);
    return status;
}

void trn__grad_assign(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    (void)k; /* what x held before has no influence */
    gin[1] = g;
}

/* ---- optimizers ---- */

static trn_tensor *flushed(trn_tensor *x)
{
    return trn__apply1(TRN_OP_flush_subnormal, x);
}

/* Writes `value` to input i, in its own type. */
static void put(const trn__call *k, int i, trn_tensor *value)
{
    if (value != NULL)
        trn_assign(k->in[i], trn__down(value, k->in[i]->arg.dtype));
}

trn_tensor *trn__decompose_sgd_update(const trn__call *k)
{
    trn_tensor *p = trn__up(k->in[0]), *g = trn__up(k->in[1]);
    if (p == NULL || g == NULL)
        return NULL;
    trn_tensor *lr = trn__value(k, 0, p), *wd = trn__value(k, 1, p);
    trn_tensor *d = trn_add(g, trn_mul(wd, p)); /* p <- p - lr (g + wd p) */
    put(k, 0, trn_sub(p, trn_mul(lr, d)));
    return k->c->status == TRN_OK ? k->in[0] : NULL;
}

trn_tensor *trn__decompose_sgd_momentum_update(const trn__call *k)
{
    const trn_sgd_momentum_attrs *at = k->attrs;
    trn_tensor *p = trn__up(k->in[0]), *g = trn__up(k->in[1]);
    trn_tensor *b = trn__up(k->in[2]);
    if (p == NULL || g == NULL || b == NULL)
        return NULL;
    trn_tensor *lr = trn__value(k, 0, p), *wd = trn__value(k, 1, p);
    trn_tensor *mu = trn__value(k, 2, p), *damp = trn__value(k, 3, p);
    trn_tensor *d = trn_add(g, trn_mul(wd, p)); /* as the row says */
    b = flushed(trn_add(trn_mul(mu, b), trn_mul(damp, d)));
    trn_tensor *s = at->nesterov ? trn_add(d, trn_mul(mu, b)) : b;
    put(k, 0, trn_sub(p, trn_mul(lr, s)));
    put(k, 2, b);
    return k->c->status == TRN_OK ? k->in[0] : NULL;
}

trn_tensor *trn__decompose_adamw_update(const trn__call *k)
{
    trn_tensor *p = trn__up(k->in[0]), *g = trn__up(k->in[1]);
    trn_tensor *m = trn__up(k->in[2]), *v = trn__up(k->in[3]);
    trn_tensor *value[7];
    if (p == NULL || g == NULL || m == NULL || v == NULL)
        return NULL;
    for (int i = 0; i < 7; i++)
        value[i] = trn__value(k, i, p);
    /* decay, 1 - b1, b2, 1 - b2, step size, c2, eps */
    m = flushed(trn_add(m, trn_mul(value[1], trn_sub(g, m))));
    v = flushed(
        trn_add(trn_mul(value[2], v), trn_mul(value[3], trn_mul(g, g))));
    trn_tensor *root = trn_add(trn_div(trn_sqrt(v), value[5]), value[6]);
    trn_tensor *move = trn_div(trn_mul(value[4], m), root);
    put(k, 0, trn_sub(trn_mul(p, value[0]), move));
    put(k, 2, m);
    put(k, 3, v);
    return k->c->status == TRN_OK ? k->in[0] : NULL;
}
