/* SPDX-License-Identifier: Apache-2.0
 *
 * The oracle of softmax, log_softmax, and cross_entropy with all its options.
 *
 * Infinities by their limits: equal infinite maxima share, -inf gives nothing,
 * a row of -inf alone gives zeros.
 */
#include <math.h>
#include <stdlib.h>

#include "oracle.h"

/* One row of n elements, `stride` apart: p = softmax, l = its logarithm; size
 * is what errors of l are relative to. */
static void row(trn_dtype dtype, const long double *x, int64_t n,
                int64_t stride, long double *p, long double *l,
                long double *size)
{
    long double top = -(long double)INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        top = oracle_maximum(top, x[i * stride]);
    for (int64_t i = 0; i < n; i++) {
        long double v = x[i * stride];
        long double d = v == top ? 0 : v - top;
        bool hidden = v == -(long double)INFINITY;
        l[i * stride] = hidden ? v : d;
        p[i * stride] = hidden ? 0 : oracle_exp(dtype, d);
        sum += p[i * stride];
    }
    for (int64_t i = 0; i < n; i++) {
        size[i * stride] = fabsl(l[i * stride]) + fabsl(logl(sum)) + 1;
        if (x[i * stride] != -(long double)INFINITY)
            l[i * stride] -= logl(sum);
        p[i * stride] = sum == 0 ? 0 : p[i * stride] / sum;
    }
}

void oracle_softmax(const case_args *a, oracle_result *r)
{
    const case_input *x = &a->in[0];
    int axis = attr_axis(a->tc, x->rank);
    int64_t n = x->dim[axis], stride = 1;
    bool logarithm = a->tc->op == TRN_OP_log_softmax;
    oracle_tensor *y = oracle_make(r, 0, a->dtype, x->rank, x->dim);
    long double *other = malloc((size_t)(x->n + 1) * sizeof *other);
    assert_non_null(other);
    for (int d = axis + 1; d < x->rank; d++)
        stride *= x->dim[d];
    for (int64_t i = 0; i < x->n; i++) {
        if (i / stride % n != 0)
            continue;
        row(a->dtype, x->v + i, n, stride, logarithm ? other + i : y->v + i,
            logarithm ? y->v + i : other + i, y->size + i);
    }
    /* exp's error grows with its argument's rounding: relative to |l| too. */
    for (int64_t i = 0; !logarithm && i < x->n; i++) {
        bool finite = isfinite(other[i]) && isfinite(y->size[i]);
        y->size[i] = finite ? y->v[i] * y->size[i] : 1;
    }
    for (int64_t i = 0; logarithm && i < x->n; i++)
        y->size[i] = isfinite(y->size[i]) ? y->size[i] : 1;
    free(other);
    r->length = n;
    r->tolerance = TOLERANCE_COMPOSITE;
}

typedef struct rows {
    long double *p, *l, *size;
    int64_t n_rows, n_classes, counting;
} rows;

static bool is_ignored(const case_args *a, int64_t n)
{
    return attr_has(a->tc, "ignore") &&
           (int64_t)a->in[1].v[n] == attr_int(a->tc, "ignore", 0);
}

static rows rows_of(const case_args *a)
{
    const case_input *x = &a->in[0];
    rows s = {.n_rows = x->dim[0], .n_classes = x->dim[1]};
    size_t bytes = (size_t)(x->n + 1) * sizeof *s.p;
    s.p = malloc(bytes);
    s.l = malloc(bytes);
    s.size = malloc(bytes);
    assert_true(s.p != NULL && s.l != NULL && s.size != NULL);
    for (int64_t n = 0; n < s.n_rows; n++) {
        int64_t at = n * s.n_classes;
        row(a->dtype, x->v + at, s.n_classes, 1, s.p + at, s.l + at,
            s.size + at);
        s.counting += !is_ignored(a, n);
    }
    return s;
}

static void loss(const case_args *a, const rows *s, oracle_result *r)
{
    int64_t reduction = attr_int(a->tc, "reduction", TRN_REDUCE_MEAN);
    bool each = reduction == TRN_REDUCE_NONE;
    oracle_tensor *y = oracle_make(r, 0, a->dtype, each ? 1 : 0, &s->n_rows);
    for (int64_t n = 0; n < s->n_rows; n++) {
        if (is_ignored(a, n))
            continue;
        int64_t at = n * s->n_classes + (int64_t)a->in[1].v[n];
        y->v[each ? n : 0] -= s->l[at];
        y->size[each ? n : 0] += s->size[at];
    }
    if (reduction == TRN_REDUCE_MEAN && s->counting > 0) {
        y->v[0] /= (long double)s->counting;
        y->size[0] /= (long double)s->counting;
    }
}

static void loss_grad(const case_args *a, const rows *s, oracle_result *r)
{
    const case_input *x = &a->in[0], *g = &a->in[2];
    int64_t reduction = attr_int(a->tc, "reduction", TRN_REDUCE_MEAN);
    oracle_tensor *y = oracle_make(r, 0, a->dtype, 2, x->dim);
    for (int64_t i = 0; i < x->n; i++) {
        int64_t n = i / s->n_classes;
        if (is_ignored(a, n))
            continue;
        long double w = g->v[reduction == TRN_REDUCE_NONE ? n : 0];
        if (reduction == TRN_REDUCE_MEAN)
            w /= (long double)s->counting;
        bool hot = i % s->n_classes == (int64_t)a->in[1].v[n];
        y->v[i] = w * (s->p[i] - hot);
        y->size[i] = fabsl(w) * (s->p[i] * s->size[i] + hot);
    }
}

void oracle_cross_entropy(const case_args *a, oracle_result *r)
{
    rows s = rows_of(a);
    r->length = s.n_rows;
    r->tolerance = TOLERANCE_COMPOSITE;
    if (a->tc->op == TRN_OP_cross_entropy)
        loss(a, &s, r);
    else
        loss_grad(a, &s, r);
    free(s.p);
    free(s.l);
    free(s.size);
}

/* ---- with weights and smoothing, of indices or probabilities ---- */

/* weight[c] ((1 - s) target[n, c] + s / C), target[n, c] = (c = target[n]) of
 * indices */
static long double factor(const case_args *a, int64_t n, int64_t c)
{
    const case_input *t = &a->in[1], *w = &a->in[2];
    int64_t n_classes = w->dim[0];
    double s = attr_real(a->tc, "smoothing", 0.0);
    long double hit =
        t->rank == 2 ? t->v[n * n_classes + c] : (long double)(t->v[n] == c);
    return w->v[c] * (oracle_value(a->dtype, 1.0 - s) * hit +
                      oracle_value(a->dtype, s / (double)n_classes));
}

/* What a mean divides by. */
static long double divisor(const case_args *a)
{
    const case_input *t = &a->in[1], *w = &a->in[2];
    long double sum = 0;
    if (t->rank == 2)
        return (long double)t->dim[0];
    for (int64_t n = 0; n < t->n; n++)
        sum += is_ignored(a, n) ? 0 : w->v[(int64_t)t->v[n]];
    return sum;
}

void oracle_general_cross_entropy(const case_args *a, oracle_result *r)
{
    rows s = rows_of(a);
    int64_t reduction = attr_int(a->tc, "reduction", TRN_REDUCE_MEAN);
    bool each = reduction == TRN_REDUCE_NONE;
    long double by = reduction == TRN_REDUCE_MEAN ? divisor(a) : 1;
    oracle_tensor *y = oracle_make(r, 0, a->dtype, each ? 1 : 0, &s.n_rows);
    for (int64_t n = 0; n < s.n_rows && by != 0; n++) {
        if (is_ignored(a, n))
            continue;
        for (int64_t c = 0; c < s.n_classes; c++) {
            long double f = factor(a, n, c) / by;
            y->v[each ? n : 0] -= f * s.l[n * s.n_classes + c];
            y->size[each ? n : 0] += f * s.size[n * s.n_classes + c];
        }
    }
    r->length = s.n_rows;
    r->tolerance = TOLERANCE_COMPOSITE;
    free(s.p);
    free(s.l);
    free(s.size);
}
