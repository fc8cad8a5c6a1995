/* SPDX-License-Identifier: Apache-2.0
 *
 * sigmoid, silu and gelu_tanh of f32 and f64 lanes: the steps of the
 * decompositions in libtrn/ops/activation.c, each rounded.
 */
#ifndef TRN_KERNELS_VMATH_SIGMOID_H
#define TRN_KERNELS_VMATH_SIGMOID_H

#include "kernels/vmath_f32.h"
#include "kernels/vmath_f64.h"

/* 2 sqrt(2/pi), and that times 0.044715. */
#define VMATH_GELU_1 1.5957691216057308
#define VMATH_GELU_3 0.07135481627260025

/* e = e^-|x|;  1 / (1 + e), or e / (1 + e) where x < 0 */
static inline vf sigmoid_f32(vf x)
{
    vf one = vf_set(1.0f);
    vi sign = vi_set(VMATH_SIGN_F32);
    vf e = exp_f32(vf_from_bits(vi_or(vf_bits(x), sign)));
    return vf_select(vf_lt(x, vf_set(0.0f)), e, one) / (e + one);
}
static inline vd sigmoid_f64(vd x)
{
    vd one = vd_set(1.0);
    vl sign = vl_set(VMATH_SIGN_F64);
    vd e = exp_f64(vd_from_bits(vl_or(vd_bits(x), sign)));
    return vd_select(vd_lt(x, vd_set(0.0)), e, one) / (e + one);
}

static inline vf silu_f32(vf x)
{
    return x * sigmoid_f32(x);
}
static inline vd silu_f64(vd x)
{
    return x * sigmoid_f64(x);
}

/* x sigmoid(x (VMATH_GELU_1 + VMATH_GELU_3 x^2)) */
static inline vf gelu_tanh_f32(vf x)
{
    vf factor = x * x * vf_set((float)VMATH_GELU_3);
    return x * sigmoid_f32(x * (factor + vf_set((float)VMATH_GELU_1)));
}
static inline vd gelu_tanh_f64(vd x)
{
    vd factor = x * x * vd_set(VMATH_GELU_3);
    return x * sigmoid_f64(x * (factor + vd_set(VMATH_GELU_1)));
}

#endif
