/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of sigmoid, silu, gelu_tanh and gelu; silu's decomposition.
 *
 * bf16 and f16 are computed in f32, gradients too.
 */
#include "libtrn/ops/op_table.h"

trn_tensor *trn__decompose_silu(const trn__call *k)
{
    trn_tensor *x = trn__up(k->in[0]);
    return trn__down(trn_mul(x, trn_sigmoid(x)), k->in[0]->arg.dtype);
}

/* 2 sqrt(2/pi), and that times 0.044715; kernels/vmath_sigmoid.h has them
 * too. */
#define GELU_1 1.5957691216057308
#define GELU_3 0.07135481627260025

/* z = x (GELU_1 + GELU_3 x^2) */
static trn_tensor *inner(trn_tensor *x)
{
    trn_tensor *cubic = trn_mul_scalar(trn_mul(x, x), GELU_3);
    return trn_mul(x, trn_add_scalar(cubic, GELU_1));
}

/* x, or `end` with its sign where it is larger: there the slope is 0 or 1, and
 * powers of x might be infinite. */
static trn_tensor *clamped(trn_tensor *x, double end)
{
    trn_tensor *high = trn__constant_like(x, end);
    trn_tensor *above = trn_greater(x, trn__zeros_like(x));
    trn_tensor *edge = trn_where(above, high, trn__constant_like(x, -end));
    return trn_where(trn_greater(trn_abs(x), high), edge, x);
}

/* 1 - s */
static trn_tensor *rest_of(trn_tensor *s)
{
    return trn_add_scalar(trn_neg(s), 1.0);
}

/* Phi(x): y / x below -1, which does not cancel, else (1 + erf) / 2. */
static trn_tensor *normal_cdf(trn_tensor *x)
{
    trn_tensor *edge = trn__constant_like(x, -1.0);
    trn_tensor *low = trn_less(x, edge);
    trn_tensor *below = trn_where(low, x, edge);
    trn_tensor *above = trn_where(low, trn__zeros_like(x), x);
    trn_tensor *e = trn_erf(trn_mul_scalar(above, 0.7071067811865476));
    trn_tensor *half = trn_mul_scalar(trn_add_scalar(e, 1.0), 0.5);
    return trn_where(low, trn_div(trn_gelu(below), below), half);
}

void trn__grad_gelu(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    /* gx = g (Phi(x) + x phi(x)), phi = e^(-x^2/2) / sqrt(2 pi).  Far from 0
     * the second term is 0; x^2 might be infinite. */
    trn_tensor *x = trn__factor_of_input(k, 0, g);
    trn_tensor *far = trn_greater(trn_abs(x), trn__constant_like(x, 100.0));
    trn_tensor *near = trn_where(far, trn__zeros_like(x), x);
    trn_tensor *bell = trn_exp(trn_mul_scalar(trn_mul(near, near), -0.5));
    trn_tensor *phi = trn_mul_scalar(bell, 0.3989422804014327);
    trn_tensor *slope = trn_add(normal_cdf(x), trn_mul(near, phi));
    gin[0] = trn__down(trn_mul(trn__up(g), slope), k->in[0]->arg.dtype);
}

void trn__grad_sigmoid(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    /* gx = g y (1 - y) */
    trn_tensor *y = trn__factor_of(g, trn__up(k->out));
    trn_tensor *slope = trn_mul(y, rest_of(y));
    gin[0] = trn__down(trn_mul(trn__up(g), slope), k->in[0]->arg.dtype);
}

void trn__grad_silu(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    /* gx = g s (1 + x (1 - s)) */
    trn_tensor *x = clamped(trn__factor_of_input(k, 0, g), 1000.0);
    trn_tensor *s = trn_sigmoid(x);
    trn_tensor *rest = trn_sigmoid(trn_neg(x)); /* 1 - s, which cancels */
    trn_tensor *slope = trn_mul(s, trn_add_scalar(trn_mul(x, rest), 1.0));
    gin[0] = trn__down(trn_mul(trn__up(g), slope), k->in[0]->arg.dtype);
}

void trn__grad_gelu_tanh(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    /* gx = g (s + x s (1 - s) z'), z' = GELU_1 + 3 GELU_3 x^2 */
    trn_tensor *x = clamped(trn__factor_of_input(k, 0, g), 100.0);
    trn_tensor *z = inner(x);
    trn_tensor *s = trn_sigmoid(z), *rest = trn_sigmoid(trn_neg(z)); /* 1 - s */
    trn_tensor *square = trn_mul_scalar(trn_mul(x, x), 3 * GELU_3);
    trn_tensor *steep = trn_mul(x, trn_add_scalar(square, GELU_1));
    trn_tensor *slope = trn_add(s, trn_mul(steep, trn_mul(s, rest)));
    gin[0] = trn__down(trn_mul(trn__up(g), slope), k->in[0]->arg.dtype);
}
