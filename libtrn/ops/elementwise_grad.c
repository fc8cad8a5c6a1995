/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of the elementwise rows, each with its formula.
 *
 * A slope that may be infinite or NaN never meets a gradient of 0 in a product:
 * where chooses instead, so no inf * 0 makes a NaN.  That is what the branch
 * that a `where` further on did not take gets: a 0.
 */
#include <math.h>

#include "libtrn/ops/op_table.h"

/* Where g is 0 and the slope is not a number to multiply it by.  Only there:
 * elsewhere the product must stay, for its derivative by g is the slope. */
static trn_tensor *silent(trn_tensor *g, trn_tensor *has_slope)
{
    if (g == NULL)
        return NULL;
    trn_tensor *never = trn_full(g->c, TRN_BOOL, 0, NULL, 0.0);
    return trn_where(has_slope, never, trn_equal(g, trn__zeros_like(g)));
}

trn_tensor *trn__factor_of(trn_tensor *g, trn_tensor *x)
{
    trn_tensor *limit = trn__constant_like(x, (double)INFINITY);
    trn_tensor *finite = trn_greater(limit, trn_abs(x));
    return trn_where(silent(g, finite), trn__zeros_like(x), x);
}

trn_tensor *trn__factor_of_input(const trn__call *k, int i, trn_tensor *g)
{
    return trn__factor_of(g, trn__up(k->in[i]));
}

void trn__grad_neg(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    (void)k;
    gin[0] = trn_neg(g);
}

void trn__grad_exp(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    gin[0] = trn_mul(g, trn__factor_of(g, k->out)); /* gx = g y */
}

void trn__grad_log(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    trn_tensor *x = k->in[0]; /* gx = g / x, and 0 where g = 0, not x > 0 */
    trn_tensor *none = silent(g, trn_greater(x, trn__zeros_like(x)));
    gin[0] = trn_div(g, trn_where(none, trn__constant_like(x, 1.0), x));
}

void trn__grad_tanh(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    trn_tensor *y = trn__factor_of(g, k->out); /* gx = g - g y^2 */
    gin[0] = trn_sub(g, trn_mul(g, trn_mul(y, y)));
}

void trn__grad_sqrt(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    /* gx = g / (2 y), and 0 where g is 0 and y is 0 or NaN */
    trn_tensor *y = k->out;
    trn_tensor *zero = trn__zeros_like(y);
    trn_tensor *none = silent(g, trn_greater(y, zero));
    trn_tensor *divisor =
        trn_where(none, trn__constant_like(y, 1.0), trn_add(y, y));
    gin[0] = trn_where(none, zero, trn_div(g, divisor));
}

void trn__grad_relu(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    trn_tensor *zero = trn__zeros_like(g); /* gx = g where y > 0, else 0 */
    gin[0] = trn_where(trn_greater(k->out, zero), g, zero);
}

void trn__grad_abs(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    trn_tensor *x = k->in[0]; /* gx = g, -g or, at 0, 0 */
    trn_tensor *zero = trn__zeros_like(g);
    trn_tensor *below = trn_where(trn_greater(zero, x), trn_neg(g), zero);
    gin[0] = trn_where(trn_greater(x, zero), g, below);
}

/* 0, as a function of g all the same: its gradient can be asked for. */
static trn_tensor *nothing_of(trn_tensor *g)
{
    if (g == NULL)
        return NULL;
    trn_tensor *never = trn_full(g->c, TRN_BOOL, 0, NULL, 0.0);
    return trn_where(never, g, trn__zeros_like(g));
}

#define STEPS(nm)                                                            \
    void trn__grad_##nm(const trn__call *k, trn_tensor *g, trn_tensor **gin) \
    {                                                                        \
        (void)k;                                                             \
        gin[0] = nothing_of(g);                                              \
    }
STEPS(sign)
STEPS(floor)
STEPS(ceil)
STEPS(round)
STEPS(trunc)

void trn__grad_rsqrt(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    /* gx = -g y / (2 x), and 0 where g is 0 and x is not above 0 */
    trn_tensor *x = k->in[0], *y = k->out;
    trn_tensor *zero = trn__zeros_like(y), *one = trn__constant_like(y, 1.0);
    trn_tensor *none = silent(g, trn_greater(x, zero));
    trn_tensor *divisor = trn_where(none, one, trn_mul_scalar(x, -2.0));
    trn_tensor *factor = trn_where(none, one, y);
    trn_tensor *slope = trn_div(trn_mul(g, factor), divisor);
    gin[0] = trn_where(none, zero, slope);
}

void trn__grad_sin(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    trn_tensor *slope =
        trn_cos(trn__factor_of_input(k, 0, g)); /* gx = g cos x */
    gin[0] = trn__down(trn_mul(trn__up(g), slope), k->in[0]->arg.dtype);
}

void trn__grad_cos(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    trn_tensor *slope =
        trn_sin(trn__factor_of_input(k, 0, g)); /* gx = -g sin x */
    trn_tensor *gx = trn_neg(trn_mul(trn__up(g), slope));
    gin[0] = trn__down(gx, k->in[0]->arg.dtype);
}

void trn__grad_erf(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    /* gx = g 2 / sqrt(pi) e^(-x^2).  Far from 0 it is 0, taken without x, whose
     * product with that might be inf * 0 in the next order. */
    trn_tensor *x = trn__factor_of_input(k, 0, g);
    trn_tensor *zero = trn__zeros_like(x);
    trn_tensor *far = trn_greater(trn_abs(x), trn__constant_like(x, 40.0));
    trn_tensor *near = trn_where(far, zero, x);
    trn_tensor *bell = trn_exp(trn_neg(trn_mul(near, near)));
    trn_tensor *slope = trn_mul_scalar(bell, 1.1283791670955126);
    trn_tensor *gx = trn_mul(trn__up(g), trn_where(far, zero, slope));
    gin[0] = trn__down(gx, k->in[0]->arg.dtype);
}

void trn__grad_add(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    (void)k;
    gin[0] = g;
    gin[1] = g;
}

void trn__grad_sub(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    gin[0] = g;
    gin[1] = trn__needs_grad(k->in[1]) ? trn_neg(g) : NULL;
}

void trn__grad_mul(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    if (trn__needs_grad(k->in[0]))
        gin[0] = trn_mul(g, k->in[1]);
    if (trn__needs_grad(k->in[1]))
        gin[1] = trn_mul(g, k->in[0]);
}

void trn__grad_div(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    trn_tensor *a = k->in[0], *b = k->in[1];
    /* ga = g / b, gb = -ga (a / b); 0 where g is 0 and b is 0 or NaN */
    trn_tensor *has_slope = trn_greater(trn_abs(b), trn__zeros_like(b));
    trn_tensor *none = silent(g, has_slope);
    trn_tensor *divisor = trn_where(none, trn__constant_like(b, 1.0), b);
    trn_tensor *ga = trn_div(g, divisor);
    gin[0] = ga;
    if (trn__needs_grad(b))
        gin[1] = trn_neg(trn_mul(ga, trn__factor_of(g, trn_div(a, divisor))));
}

void trn__grad_pow(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    trn_tensor *a = k->in[0], *b = k->in[1], *y = k->out;
    trn_tensor *zero = trn__zeros_like(g), *one = trn__constant_like(g, 1.0);
    /* The slope of what is not taken is made finite: its product with a
     * gradient of 0 would else be NaN in the second order. */
    if (trn__needs_grad(a)) { /* ga = g b a^(b-1), and 0 where b = 0 */
        trn_tensor *none = trn_equal(b, zero);
        trn_tensor *base = trn_where(none, one, a);
        trn_tensor *power = trn_pow(base, trn_add_scalar(b, -1.0));
        trn_tensor *slope = trn__factor_of(g, trn_mul(b, power));
        gin[0] = trn_where(none, zero, trn_mul(g, slope));
    }
    if (trn__needs_grad(b)) { /* gb = g y ln a, and 0 where y = 0 */
        trn_tensor *none = trn_equal(y, zero);
        trn_tensor *base = trn_where(none, one, a);
        trn_tensor *slope = trn__factor_of(g, trn_mul(y, trn_log(base)));
        gin[1] = trn_where(none, zero, trn_mul(g, slope));
    }
}

/* max(|a|, |b|), as a number: no gradient goes there. */
static trn_tensor *larger(trn_tensor *a, trn_tensor *b)
{
    if (a == NULL || b == NULL)
        return NULL;
    bool mode = trn__grad_mode(a->c, false);
    trn_tensor *size = trn_maximum(trn_abs(a), trn_abs(b));
    trn__grad_mode(a->c, mode);
    return size;
}

/*
 * ga = g b / (a^2 + b^2), gb = -g a / (a^2 + b^2), and 0 at (0, 0) and where an
 * input is infinite.  Both are divided by the larger magnitude m first: squares
 * neither overflow nor vanish.  The formula does not depend on m, so neither
 * does the next order: m counts as a constant.
 */
void trn__grad_atan2(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    uint32_t dtype = k->in[0]->arg.dtype;
    trn_tensor *a = trn__factor_of_input(k, 0, g),
               *b = trn__factor_of_input(k, 1, g), *gy = trn__up(g);
    trn_tensor *zero = trn__zeros_like(a), *one = trn__constant_like(a, 1.0);
    trn_tensor *inf = trn__constant_like(a, (double)INFINITY);
    trn_tensor *size = larger(a, b);
    trn_tensor *end = trn_equal(size, zero);
    end = trn_where(end, end, trn_equal(size, inf));
    trn_tensor *m = trn_where(end, one, size);
    trn_tensor *u = trn_where(end, zero, trn_div(a, m));
    trn_tensor *v = trn_where(end, zero, trn_div(b, m));
    trn_tensor *sum = trn_add(trn_mul(u, u), trn_mul(v, v));
    trn_tensor *d = trn_where(end, one, sum);
    if (trn__needs_grad(k->in[0])) {
        trn_tensor *ga = trn_div(trn_mul(gy, trn_div(v, d)), m);
        gin[0] = trn__down(ga, dtype);
    }
    if (trn__needs_grad(k->in[1])) {
        trn_tensor *gb = trn_div(trn_mul(gy, trn_div(u, d)), m);
        gin[1] = trn__down(trn_neg(gb), dtype);
    }
}

void trn__grad_maximum(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    trn_tensor *a = k->in[0], *b = k->in[1];
    trn_tensor *zero = trn__zeros_like(g);
    trn_tensor *tie = trn_equal(a, b); /* ga = g, g / 2 or 0 */
    trn_tensor *half = trn_mul_scalar(g, 0.5);
    gin[0] = trn_where(tie, half, trn_where(trn_greater(a, b), g, zero));
    gin[1] = trn_where(tie, half, trn_where(trn_greater(b, a), g, zero));
}

void trn__grad_minimum(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    trn_tensor *a = k->in[0], *b = k->in[1];
    trn_tensor *zero = trn__zeros_like(g);
    trn_tensor *tie = trn_equal(a, b); /* ga = g, g / 2 or 0 */
    trn_tensor *half = trn_mul_scalar(g, 0.5);
    gin[0] = trn_where(tie, half, trn_where(trn_greater(b, a), g, zero));
    gin[1] = trn_where(tie, half, trn_where(trn_greater(a, b), g, zero));
}

void trn__grad_where(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    trn_tensor *zero = trn__zeros_like(g);
    gin[1] = trn_where(k->in[0], g, zero);
    gin[2] = trn_where(k->in[0], zero, g);
}

void trn__grad_add_scalar(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    (void)k;
    gin[0] = g;
}

void trn__grad_mul_scalar(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    gin[0] = trn__mul_value(g, k, 0);
}

void trn__grad_cast(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    gin[0] = trn_cast(g, (trn_dtype)k->in[0]->arg.dtype);
}

void trn__grad_copy(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    (void)k;
    gin[0] = g;
}

void trn__grad_check_finite(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    (void)k;
    gin[0] = g;
}
