/* SPDX-License-Identifier: Apache-2.0
 *
 * cross_entropy with all its options: the choice of a row, and the rows with
 * class weights, label smoothing and probability targets.
 *
 * Both rows are -sum_c f l with l = log_softmax(logits) and factors f that the
 * target gives; gx = (p sum_c f - f) times the gradient of the row's loss.
 * Where f = 0 and l = -inf the product is 0: a class that nobody asks for may
 * be hidden by a mask.
 */
#include <math.h>
#include <string.h>

#include "libtrn/context/struct_size.h"
#include "libtrn/ops/op_table.h"

/* ---- what both rows share ---- */

/* t, but 0 where `hidden`; NULL: nowhere. */
static trn_tensor *zero_where(trn_tensor *hidden, trn_tensor *t)
{
    return hidden == NULL ? t : trn_where(hidden, trn__zeros_like(t), t);
}

/* l, but 0 where the factor is 0 and l is -inf. */
static trn_tensor *asked_for(trn_tensor *l, trn_tensor *factor)
{
    trn_tensor *low = trn__constant_like(l, -(double)INFINITY);
    trn_tensor *none = trn_equal(factor, trn__zeros_like(factor));
    return trn_where(none, zero_where(trn_equal(l, low), l), l);
}

/* x / total, and 0 where total is 0. */
static trn_tensor *over_total(trn_tensor *x, trn_tensor *total)
{
    trn_tensor *zero = trn__zeros_like(total);
    trn_tensor *none = trn_equal(total, zero);
    trn_tensor *divisor =
        trn_where(none, trn__constant_like(total, 1.0), total);
    return trn_where(none, zero, trn_div(x, divisor));
}

/* p sum_c f - f, times r; f: [N, C] or [C]. */
static trn_tensor *logits_gradient(trn_tensor *logits, trn_tensor *f,
                                   trn_tensor *r)
{
    trn_tensor *sum =
        f == NULL ? NULL : trn_sum(f, TRN_AXIS((int)f->arg.rank - 1), true);
    trn_tensor *p = trn_softmax(logits, 1);
    return trn_mul(trn_sub(trn_mul(p, sum), f), r);
}

static bool check_loss(const trn__call *k, bool target_fits, int reduction,
                       const char *expected)
{
    const trn_arg *x = &k->in[0]->arg, *t = &k->in[1]->arg, *w = &k->in[2]->arg;
    const char *name = trn__ops[k->op].name;
    if (!trn__want_float(k, 2))
        return false;
    if (x->rank != 2 || !target_fits || w->rank != 1 ||
        w->shape[0] != x->shape[1]) {
        trn__fail(k->c, TRN_ERR_SHAPE,
                  "%s: logits are %s, target is %s, weight is %s; expected "
                  "logits [N,C], target %s, weight [C]",
                  name, trn__describe(x).s, trn__describe(t).s,
                  trn__describe(w).s, expected);
        return false;
    }
    if (w->dtype != x->dtype) {
        trn__fail(k->c, TRN_ERR_DTYPE,
                  "%s: logits are %s, weight is %s; expected one type", name,
                  trn__describe(x).s, trn__describe(w).s);
        return false;
    }
    if (reduction < TRN_REDUCE_MEAN || reduction > TRN_REDUCE_NONE) {
        trn__fail(k->c, TRN_ERR_ARG,
                  "%s: reduction is %d; expected a trn_reduction", name,
                  reduction);
        return false;
    }
    return true;
}

static trn__desc loss_desc(const trn_arg *logits, int reduction)
{
    trn__desc desc = {.dtype = logits->dtype};
    if (reduction == TRN_REDUCE_NONE)
        desc.shape[desc.rank++] = logits->shape[0];
    return desc;
}

/* ---- class indices ---- */

bool trn__infer_cross_entropy_weighted(const trn__call *k, trn__desc *out)
{
    const trn_cross_entropy_weighted_attrs *at = k->attrs;
    const trn_arg *x = &k->in[0]->arg, *t = &k->in[1]->arg;
    bool fits = t->rank == 1 && x->shape[0] == t->shape[0];
    if (!trn__want_float(k, 0) || !trn__want_index(k, 1) ||
        !check_loss(k, fits, at->reduction, "[N]"))
        return false;
    if (x->shape[1] == 0 && x->shape[0] > 0) {
        trn__fail(k->c, TRN_ERR_SHAPE,
                  "%s: logits are %s; expected at least one class",
                  trn__ops[k->op].name, trn__describe(x).s);
        return false;
    }
    *out = loss_desc(x, at->reduction);
    return true;
}

/* The operands in the compute type, with what the target makes of them. */
typedef struct indexed {
    trn_tensor *x;       /* logits, 0 in rows that do not count */
    trn_tensor *ignored; /* bool [N, 1]; NULL: all rows count */
    trn_tensor *index;   /* [N, 1], 0 in rows that do not count */
    trn_tensor *at;      /* [N, 1]: f at the target is this and one of all */
    trn_tensor *all;     /* [C] */
    trn_tensor *total;   /* rank 0: summed weights of the targets */
} indexed;

static indexed indexed_of(const trn__call *k)
{
    const trn_cross_entropy_weighted_attrs *at = k->attrs;
    trn_tensor *t = k->in[1], *w = trn__up(k->in[2]);
    trn_dtype type = (trn_dtype)t->arg.dtype;
    int64_t column[2] = {t->arg.shape[0], 1};
    indexed r = {.x = trn__up(k->in[0])};
    if (at->has_ignore_index) {
        trn_tensor *value =
            trn_full(k->c, type, 0, NULL, (double)at->ignore_index);
        trn_tensor *ignored = trn_equal(t, value);
        t = trn_where(ignored, trn_full(k->c, type, 0, NULL, 0.0), t);
        r.ignored = trn_reshape(ignored, 2, column);
        r.x = zero_where(r.ignored, r.x);
    }
    trn_tensor *picked = trn_reshape(trn_gather(w, 0, t), 2, column);
    picked = zero_where(r.ignored, picked);
    r.index = trn_reshape(t, 2, column);
    r.at = trn__mul_value(picked, k, 0);
    r.all = trn__mul_value(w, k, 1);
    r.total = trn_sum(picked, TRN_ALL_AXES, false);
    return r;
}

trn_tensor *trn__decompose_cross_entropy_weighted(const trn__call *k)
{
    const trn_cross_entropy_weighted_attrs *at = k->attrs;
    indexed i = indexed_of(k);
    trn_tensor *l = trn_log_softmax(i.x, 1);
    trn_tensor *target = asked_for(trn_gather(l, 1, i.index), i.at);
    trn_tensor *all = trn_mul(asked_for(l, i.all), i.all);
    all = trn_sum(all, TRN_AXIS(1), true);
    trn_tensor *y = trn_neg(trn_add(trn_mul(target, i.at), all));
    y = zero_where(i.ignored, y);
    if (at->reduction == TRN_REDUCE_NONE)
        y = trn_reshape(y, 1, k->in[1]->arg.shape);
    else
        y = trn_sum(y, TRN_ALL_AXES, false);
    if (at->reduction == TRN_REDUCE_MEAN)
        y = over_total(y, i.total);
    return trn__down(y, k->in[0]->arg.dtype);
}

/* gw = -sum_n r ((1 - s) l[target] + y at the target, s / C l everywhere): y in
 * it is that of a mean, whose divisor depends on w. */
static trn_tensor *indexed_weight_gradient(const trn__call *k, const indexed *i,
                                           trn_tensor *r)
{
    const trn_cross_entropy_weighted_attrs *at = k->attrs;
    trn_tensor *l = trn_log_softmax(i->x, 1);
    trn_tensor *target = asked_for(trn_gather(l, 1, i->index), i->at);
    target = trn__mul_value(target, k, 0);
    if (at->reduction == TRN_REDUCE_MEAN)
        target = trn_add(target, trn__up(k->out));
    target = trn_scatter_add(target, 1, i->index, k->in[2]->arg.shape[0]);
    trn_tensor *all = trn__mul_value(asked_for(l, i->all), k, 1);
    trn_tensor *each = trn_mul(trn_add(target, all), r);
    return trn_neg(trn_sum(zero_where(i->ignored, each), TRN_AXIS(0), false));
}

void trn__grad_cross_entropy_weighted(const trn__call *k, trn_tensor *g,
                                      trn_tensor **gin)
{
    const trn_cross_entropy_weighted_attrs *at = k->attrs;
    const trn_arg *x = &k->in[0]->arg;
    indexed i = indexed_of(k);
    trn_tensor *r = trn__up(g); /* gradient of each row's loss */
    if (at->reduction == TRN_REDUCE_MEAN)
        r = over_total(r, i.total);
    else if (at->reduction == TRN_REDUCE_NONE)
        r = trn_reshape(r, 2, (int64_t[]){x->shape[0], 1});
    if (trn__needs_grad(k->in[0])) {
        trn_tensor *f = trn_scatter_add(i.at, 1, i.index, x->shape[1]);
        trn_tensor *gx = logits_gradient(i.x, trn_add(f, i.all), r);
        gin[0] = trn__down(zero_where(i.ignored, gx), x->dtype);
    }
    if (trn__needs_grad(k->in[2]))
        gin[2] = trn__down(indexed_weight_gradient(k, &i, r), x->dtype);
}

/* ---- probabilities ---- */

bool trn__infer_soft_cross_entropy(const trn__call *k, trn__desc *out)
{
    const trn_soft_cross_entropy_attrs *at = k->attrs;
    const trn_arg *x = &k->in[0]->arg, *t = &k->in[1]->arg;
    bool fits = t->rank == 2 && x->shape[0] == t->shape[0] &&
                x->shape[1] == t->shape[1];
    if (!trn__want_float(k, 0) || !trn__want_float(k, 1) ||
        !check_loss(k, fits, at->reduction, "[N,C]"))
        return false;
    if (t->dtype != x->dtype) {
        trn__fail(k->c, TRN_ERR_DTYPE,
                  "%s: logits are %s, target is %s; expected one type",
                  trn__ops[k->op].name, trn__describe(x).s, trn__describe(t).s);
        return false;
    }
    *out = loss_desc(x, at->reduction);
    return true;
}

/* The operands in the compute type: q = (1 - s) target + s / C, f = q w, and l
 * = log_softmax(x) where it is asked for. */
typedef struct probable {
    trn_tensor *x, *w, *q, *f, *l;
} probable;

static probable probable_of(const trn__call *k)
{
    probable r = {.x = trn__up(k->in[0]), .w = trn__up(k->in[2])};
    r.q = trn__mul_value(trn__up(k->in[1]), k, 0);
    r.q = trn_add(r.q, trn__value(k, 1, k->in[0]));
    r.f = trn_mul(r.q, r.w);
    r.l = asked_for(trn_log_softmax(r.x, 1), r.f);
    return r;
}

trn_tensor *trn__decompose_soft_cross_entropy(const trn__call *k)
{
    const trn_soft_cross_entropy_attrs *at = k->attrs;
    probable s = probable_of(k);
    int64_t n = k->in[0]->arg.shape[0];
    trn_tensor *y = trn_neg(trn_sum(trn_mul(s.f, s.l), TRN_AXIS(1), false));
    if (at->reduction == TRN_REDUCE_MEAN && n > 0)
        y = trn_mean(y, TRN_ALL_AXES, false);
    else if (at->reduction != TRN_REDUCE_NONE)
        y = trn_sum(y, TRN_ALL_AXES, false);
    return trn__down(y, k->in[0]->arg.dtype);
}

void trn__grad_soft_cross_entropy(const trn__call *k, trn_tensor *g,
                                  trn_tensor **gin)
{
    const trn_soft_cross_entropy_attrs *at = k->attrs;
    const trn_arg *x = &k->in[0]->arg;
    probable s = probable_of(k);
    trn_tensor *r = trn__up(g); /* gradient of each row's loss */
    if (at->reduction == TRN_REDUCE_MEAN)
        r = trn_mul_scalar(r, x->shape[0] == 0
                                  ? 0.0
                                  : trn__fp_quotient(1.0, (double)x->shape[0]));
    else if (at->reduction == TRN_REDUCE_NONE)
        r = trn_reshape(r, 2, (int64_t[]){x->shape[0], 1});
    if (trn__needs_grad(k->in[0]))
        gin[0] = trn__down(logits_gradient(s.x, s.f, r), x->dtype);
    if (trn__needs_grad(k->in[1])) { /* gt = -(1 - s) w l r */
        trn_tensor *gf = trn_mul(trn_mul(s.w, s.l), r);
        gin[1] = trn__down(trn_neg(trn__mul_value(gf, k, 0)), x->dtype);
    }
    if (trn__needs_grad(k->in[2])) { /* gw = -sum_n q l r */
        trn_tensor *gf = trn_mul(trn_mul(s.q, s.l), r);
        gin[2] = trn__down(trn_neg(trn_sum(gf, TRN_AXIS(0), false)), x->dtype);
    }
}

/* ---- the choice ---- */

#define MAX_EXACT ((int64_t)1 << 53) /* integers that a double holds */

/* Can an element of t have that value?  If not, nothing is ignored. */
static bool can_be(const trn_tensor *t, int64_t value)
{
    return t->arg.dtype != TRN_I32 ||
           (value >= INT32_MIN && value <= INT32_MAX);
}

static bool is_probability(const trn_tensor *target)
{
    return trn__is_float(target->arg.dtype) && target->arg.rank == 2;
}

static bool check_options(const trn__call *k,
                          const trn_cross_entropy_options *o)
{
    char text[32];
    if (!trn__fp_within(o->label_smoothing, 0.0, 1.0)) {
        trn__fail(k->c, TRN_ERR_ARG,
                  "cross_entropy: label_smoothing is %s; expected 0 to 1",
                  trn__format_double(o->label_smoothing, text, sizeof text));
        return false;
    }
    if (o->has_ignore_index && is_probability(k->in[1])) {
        trn__fail(k->c, TRN_ERR_ARG,
                  "cross_entropy: ignore_index is given, target is %s; "
                  "expected targets i32 or i64 with it",
                  trn__describe(&k->in[1]->arg).s);
        return false;
    }
    if (o->has_ignore_index &&
        (o->ignore_index > MAX_EXACT || o->ignore_index < -MAX_EXACT) &&
        can_be(k->in[1], o->ignore_index)) {
        trn__fail(k->c, TRN_ERR_ARG,
                  "cross_entropy: ignore_index is %lld; expected at most 2^53 "
                  "in magnitude",
                  (long long)o->ignore_index);
        return false;
    }
    return true;
}

/* A row with weights and smoothing: `like` has the first two inputs. */
static trn_tensor *general(const trn__call *like, uint32_t op,
                           const trn_cross_entropy_options *o,
                           const void *attrs, uint32_t attrs_size)
{
    trn__scope scope; /* for the weights */
    const trn_arg *x = &like->in[0]->arg;
    int64_t n_classes = x->rank == 2 ? x->shape[1] : 0;
    trn__call k = trn__call_of(op, like->in[0], like->in[1], attrs, attrs_size);
    trn__fp_env saved;
    trn__fp_enter(&saved);
    volatile double smoothing = o->label_smoothing; /* stays behind enter */
    k.values[0] = 1.0 - smoothing;
    trn__fp_leave(&saved);
    k.values[1] = n_classes == 0
                      ? 0.0
                      : trn__fp_quotient(o->label_smoothing, (double)n_classes);
    trn__scope_enter(like->c, &scope);
    k.in[2] = o->weight != NULL
                  ? o->weight
                  : trn_full(like->c, (trn_dtype)x->dtype, 1, &n_classes, 1.0);
    return trn__scope_leave(like->c, &scope, trn__apply(&k));
}

trn_tensor *trn_cross_entropy(trn_tensor *logits, trn_tensor *target,
                              const trn_cross_entropy_options *options)
{
    trn_cross_entropy_options o = TRN_CROSS_ENTROPY_INIT;
    trn_cross_entropy_attrs plain;
    trn_cross_entropy_weighted_attrs weighted;
    trn_soft_cross_entropy_attrs soft;
    memset(&plain, 0, sizeof plain);
    memset(&weighted, 0, sizeof weighted);
    memset(&soft, 0, sizeof soft);
    trn__call k = trn__call_of(TRN_OP_cross_entropy, logits, target, &plain,
                               sizeof plain);
    if (trn__check_inputs(&k) != TRN_OK ||
        trn__options_take(k.c, "cross_entropy",
                          TRN__SIZED_trn_cross_entropy_options, &o,
                          options) != TRN_OK ||
        !check_options(&k, &o))
        return NULL;
    plain.reduction = weighted.reduction = soft.reduction =
        (int32_t)o.reduction;
    if (is_probability(target))
        return general(&k, TRN_OP_soft_cross_entropy, &o, &soft, sizeof soft);
    if (o.has_ignore_index && can_be(target, o.ignore_index)) {
        plain.has_ignore_index = weighted.has_ignore_index = 1;
        plain.ignore_index = weighted.ignore_index = o.ignore_index;
    }
    if (o.weight == NULL && o.label_smoothing == 0.0)
        return trn__apply(&k);
    return general(&k, TRN_OP_cross_entropy_weighted, &o, &weighted,
                   sizeof weighted);
}
