/* SPDX-License-Identifier: Apache-2.0
 *
 * gelu of f32 and f64 lanes: x Phi(x) = x/2 (1 + erf(x / sqrt 2)), NaN at -inf.
 *
 * With a = |x|, r = a Phi(-a) is the result's magnitude where x is negative,
 * and a - r is the result elsewhere, so nothing cancels.  Phi(-a) is
 * e^(-a^2/2) P(t) / (1 + c a), t = (a - k) / (a + k) and c = sqrt(2/pi): P is
 * smooth, between 0.3 and 0.5, and flat at a = 0.  It interpolates at the
 * Chebyshev nodes of the interval on which the result is not 0 or x, on 60
 * digits; its coefficients are then rounded to f64.
 */
#ifndef TRN_KERNELS_VMATH_GELU_H
#define TRN_KERNELS_VMATH_GELU_H

#include "kernels/vmath_pow.h"

#define VMATH_GELU_C 0x1.9884533d43651p-1 /* sqrt(2/pi) */

/* r = a Phi(-a) becomes gelu x, with the sign of x, also where it is zero. */
static inline vd gelu_finish(vd x, vd a, vd r)
{
    vd zero = vd_set(0.0);
    vl sign = vl_set(VMATH_SIGN_F64);
    vd inf = vd_from_bits(vl_set(VMATH_INF_F64));
    vd y = vd_select(vd_lt(x, zero), r, a - r);
    y = vd_from_bits(vl_or(vd_bits(y), vl_and(vd_bits(x), sign)));
    return vd_select(vd_eq(x, zero - inf), x - x, y);
}

/*
 * Of f32 values held in f64, with an error far below an f32 ulp: a^2 is exact
 * and the fit's error 2^-38.  Below -14.5 the result rounds to -0.  No FMA.
 */
static inline vd gelu_in_f64(vd x)
{
    vd a = vd_abs(x), end = vd_set(14.5), k = vd_set(4.5);
    vd b = vd_select(vd_lt(end, a), end, a);
    vd t = (b - k) / (b + k);
    vd p = vd_set(-0x1.0f2f3100b1e44p-18);
    p = p * t + vd_set(-0x1.6a37d7d4cd464p-17);
    p = p * t + vd_set(0x1.af6def9ac0c41p-16);
    p = p * t + vd_set(0x1.ee59531a3a900p-15);
    p = p * t + vd_set(-0x1.12340f65cc983p-12);
    p = p * t + vd_set(0x1.2750cecde77f8p-15);
    p = p * t + vd_set(0x1.1445fe6e710c3p-9);
    p = p * t + vd_set(-0x1.f1bdf926135c4p-8);
    p = p * t + vd_set(0x1.e46a5b73e765cp-7);
    p = p * t + vd_set(-0x1.06fae63378a8ap-6);
    p = p * t + vd_set(-0x1.4153c447b7c06p-11);
    p = p * t + vd_set(0x1.63c4200a24ac7p-5);
    p = p * t + vd_set(-0x1.b5cc1bdc66ef3p-4);
    p = p * t + vd_set(0x1.8ea198e925f87p-2);
    vd q = p / (b * vd_set(VMATH_GELU_C) + vd_set(1.0));
    /* e^(-b^2/2) as a power of 2: log2(e) / 2 */
    vd e = exp2_in_f64(b * b * vd_set(-0x1.71547652b82fep-1));
    return gelu_finish(x, a, b * q * e);
}

static inline vf gelu_f32(vf x)
{
    return VF_IN_F64_UNARY(gelu_in_f64, x);
}

/*
 * P(t) for 0 <= a <= 39 as result + *low, fit error 2^-58; the last coefficient
 * is a pair, and the larger summand.
 */
static inline vd gelu_poly_f64(vd a, vd *low)
{
    vd k = vd_set(5.0);
    vd t = (a - k) / (a + k);
    vd p = vd_set(-0x1.f1a9f3668d697p-33);
    p = vd_step(p, t, -0x1.98d8325687c44p-35);
    p = vd_step(p, t, 0x1.c9b5b4edcccc8p-29);
    p = vd_step(p, t, 0x1.5ca23141b858bp-29);
    p = vd_step(p, t, -0x1.9991e1f6a69e2p-26);
    p = vd_step(p, t, -0x1.7d6c587d1e564p-26);
    p = vd_step(p, t, 0x1.40cb8eddd2edep-23);
    p = vd_step(p, t, 0x1.f5f396d9bfc90p-24);
    p = vd_step(p, t, -0x1.0b02cc834c844p-20);
    p = vd_step(p, t, -0x1.9cd545e3bf7fbp-23);
    p = vd_step(p, t, 0x1.d3e88fbbe19cap-18);
    p = vd_step(p, t, -0x1.b7c5383142869p-18);
    p = vd_step(p, t, -0x1.652ca28995061p-15);
    p = vd_step(p, t, 0x1.177bdd64d2791p-13);
    p = vd_step(p, t, 0x1.17cfff019a68dp-15);
    p = vd_step(p, t, -0x1.52ef93bda2093p-10);
    p = vd_step(p, t, 0x1.3586d51db98d1p-8);
    p = vd_step(p, t, -0x1.5115271568eb0p-7);
    p = vd_step(p, t, 0x1.e673d9976e349p-7);
    p = vd_step(p, t, -0x1.7550b7eae152ep-7);
    p = vd_step(p, t, -0x1.122ccea2ca85ep-7);
    p = vd_step(p, t, 0x1.8b005f35040bfp-5);
    p = vd_step(p, t, -0x1.a1f7fc8a83c1bp-4);
    vd sum = vd_fast_two_sum(vd_set(0x1.88fe64be84c1bp-2), p * t, low);
    *low = *low + vd_set(0x1.ca91688eb8e17p-56);
    return sum;
}

/* a P(t) / (1 + c a) as result + *low. */
static inline vd gelu_factor_f64(vd a, vd *low)
{
    vd p_low, zero = vd_set(0.0), one = vd_set(1.0), c = vd_set(VMATH_GELU_C);
    vd p = gelu_poly_f64(a, &p_low);
    vd num = a * p;
    vd num_low = vd_fma(a, p_low, vd_fma(a, p, zero - num));
    vd den = vd_fma(a, c, one);
    vd den_low = vd_fma(a, c, one - den);
    vd inverse = one / den;
    vd q = num * inverse;
    vd rest = vd_fma(zero - q, den, num) + (num_low - q * den_low);
    *low = rest * inverse;
    return q;
}

/* a^2/2 is a pair.  Subnormal results are rounded once; below -39 it is -0. */
static inline vd gelu_f64(vd x)
{
    vd a = vd_abs(x), end = vd_set(39.0), half = vd_set(0.5);
    vd b = vd_select(vd_lt(end, a), end, a);
    vd square = b * b;
    vd low = vd_fma(b, b, vd_set(0.0) - square);
    vd u = square * vd_set(-0.5);
    vl bits;
    vd n = exp_round_f64(u, &bits);
    vd r = vd_fma(n, vd_set(-VMATH_LN2_HIGH_F64), u);
    r = vd_fma(n, vd_set(-VMATH_LN2_LOW_F64), r) - low * half;
    vd q_low, q = gelu_factor_f64(b, &q_low);
    vd e = exp_rest_f64(r); /* and 1 */
    vd y = q + vd_fma(q, e, vd_fma(q_low, e, q_low));
    return gelu_finish(x, a, exp_scale_f64(y, bits));
}

#endif
