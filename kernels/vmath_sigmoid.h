/* SPDX-License-Identifier: Apache-2.0
 *
 * sigmoid, silu and gelu_tanh of f32 and f64 lanes.  All three are 0 where e^x,
 * or e^z of gelu_tanh, is flushed to 0.
 */
#ifndef TRN_KERNELS_VMATH_SIGMOID_H
#define TRN_KERNELS_VMATH_SIGMOID_H

#include "kernels/vmath_f32.h"
#include "kernels/vmath_pow.h"

/* 2 sqrt(2/pi), and that times 0.044715, each with the rest of its digits. */
#define VMATH_GELU_1 0x1.9884533d43651p+0
#define VMATH_GELU_1_LOW -0x1.cbc0d30ebfd15p-54
#define VMATH_GELU_3 0x1.2444f2a4d8b4bp-4
#define VMATH_GELU_3_LOW -0x1.6c843a29d1c70p-61

/* e = e^-|x|;  1 / (1 + e), or e / (1 + e) where x < 0 */
static inline vd sigmoid_of(vd x, vd e)
{
    vd one = vd_set(1.0);
    return vd_select(vd_lt(x, vd_set(0.0)), e, one) / (e + one);
}

/* Of f32 values held in f64, with an error far below an f32 ulp.  No FMA. */
static inline vd sigmoid_in_f64(vd x)
{
    vd t = vd_abs(x) * vd_set(-0x1.71547652b82fep+0), least = vd_set(-200.0);
    vd e = exp2_in_f64(vd_select(vd_lt(t, least), least, t));
    vl flushed = vd_lt(x, vd_set((double)-87.34f));
    return vd_select(flushed, vd_set(0.0), sigmoid_of(x, e));
}
static inline vf sigmoid_f32(vf x)
{
    return VF_IN_F64_UNARY(sigmoid_in_f64, x);
}
static inline vd sigmoid_f64(vd x)
{
    vl sign = vl_set(VMATH_SIGN_F64);
    return sigmoid_of(x, exp_f64(vd_from_bits(vl_or(vd_bits(x), sign))));
}

/* A composite: the steps of its decomposition. */
static inline vf silu_f32(vf x)
{
    return x * sigmoid_f32(x);
}
static inline vd silu_f64(vd x)
{
    return x * sigmoid_f64(x);
}

/* x sigmoid(z), z = x (VMATH_GELU_1 + VMATH_GELU_3 x^2), of f32 values held in
 * f64.  No FMA. */
static inline vd gelu_tanh_in_f64(vd x)
{
    vd factor = x * x * vd_set(VMATH_GELU_3) + vd_set(VMATH_GELU_1);
    return x * sigmoid_in_f64(x * factor);
}
static inline vf gelu_tanh_f32(vf x)
{
    return VF_IN_F64_UNARY(gelu_tanh_in_f64, x);
}

/* z of gelu_tanh as result + *low, for 0 <= a <= 24: e^-z has |z| times its
 * relative error. */
static inline vd gelu_tanh_exponent(vd a, vd *low)
{
    vd zero = vd_set(0.0), c = vd_set(VMATH_GELU_3);
    vd square = a * a;
    vd square_low = vd_fma(a, a, zero - square);
    vd cubic = square * c;
    vd cubic_low = vd_fma(square, c, zero - cubic);
    cubic_low = vd_fma(square_low, c, cubic_low);
    cubic_low = vd_fma(square, vd_set(VMATH_GELU_3_LOW), cubic_low);
    vd w_low, w = vd_two_sum(vd_set(VMATH_GELU_1), cubic, &w_low);
    w_low = w_low + (cubic_low + vd_set(VMATH_GELU_1_LOW));
    vd z = a * w;
    *low = vd_fma(a, w_low, vd_fma(a, w, zero - z));
    return z;
}

static inline vd gelu_tanh_f64(vd x)
{
    vd a = vd_abs(x), end = vd_set(24.0), zero = vd_set(0.0);
    vd low, z = gelu_tanh_exponent(vd_select(vd_lt(end, a), end, a), &low);
    vl bits;
    vd n = exp_round_f64(zero - z, &bits);
    vd r = vd_fma(n, vd_set(-VMATH_LN2_HIGH_F64), zero - z);
    r = vd_fma(n, vd_set(-VMATH_LN2_LOW_F64), r) - low;
    vd e = exp_scale_f64(exp_poly_f64(r), bits);
    e = vd_select(vd_lt(vd_set(708.39), z), zero, e);
    return x * sigmoid_of(x, e);
}

#endif
