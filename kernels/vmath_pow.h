/* SPDX-License-Identifier: Apache-2.0
 *
 * pow: f64 lanes within 4 ulp (needs vmath_f64.h), f32 lanes within 1 ulp by
 * plain f64 arithmetic, which is fast also where FMA is emulated.  Special
 * values as in C99 Annex F.
 */
#ifndef TRN_KERNELS_VMATH_POW_H
#define TRN_KERNELS_VMATH_POW_H

#include "kernels/vmath_f64.h"

/* Is the non-negative a an integer?  From 2^52 on each number is. */
static inline vl pow_is_integer(vd a)
{
    vd big = vd_set(0x1p52);
    return vl_or(vd_le(big, a), vd_eq((a + big) - big, a));
}

/*
 * x^y from r = |x|^y, which is right for 0 and infinity unless it is NaN:
 * signs, negative bases, 1^y, x^0, (-1)^inf and NaN.
 */
static inline vd pow_special(vd x, vd y, vd r)
{
    vd one = vd_set(1.0), zero = vd_set(0.0);
    vd inf = vd_from_bits(vl_set(VMATH_INF_F64));
    vd ax = vd_abs(x), ay = vd_abs(y);
    vl integer = pow_is_integer(ay);
    vl even = pow_is_integer(ay * vd_set(0.5));
    /* A number whose half is an integer is one, but for rounding to 0. */
    vl odd = vl_xor(integer, vl_and(integer, even));
    vl sign = vl_and(vl_set(VMATH_SIGN_F64), vd_bits(x));
    r = vd_from_bits(vl_xor(vd_bits(r), vl_and(sign, odd)));
    vl negative = vl_and(vd_lt(x, zero), vd_lt(ax, inf));
    vd root = vd_select(integer, r, vd_from_bits(vl_set(VMATH_NAN_F64)));
    r = vd_select(negative, root, r);
    r = vd_select(vl_and(vd_eq(ax, one), vd_eq(ay, inf)), one, r);
    r = vd_select(vl_and(vd_eq(x, x), vd_eq(y, y)), r, x + y);
    return vd_select(vl_or(vd_eq(x, one), vd_eq(y, zero)), one, r);
}

/*
 * ln a = result + *low, relative error about 2^-64, for positive finite a.
 *
 * With u = 2 f / (2 + f), f = m - 1 and w = u^2:
 * ln m = u (1 + w/12 + w^2 P(w)); u and w/12 are pairs, w^2 P is below 2^-12
 * and one number is enough.  The error of the fit is 2^-73.
 */
static inline vd pow_log(vd a, vd *low)
{
    vd k, one = vd_set(1.0);
    vd m = log_split_f64(a, &k);
    vd f = m - one, d = m + one;
    vd d_low = m - (d - one);
    vd inverse = one / d;
    vd s = f * inverse;
    vd s_low = (vd_fma(vd_set(0.0) - s, d, f) - s * d_low) * inverse;
    vd u = s + s, u_low = s_low + s_low;
    vd w = u * u;
    vd w_low = vd_fma(u, u, vd_set(0.0) - w) + (u + u) * u_low;
    vd p = vd_set(0x1.eb11b503d5a0ap-23);
    p = vd_step(p, w, 0x1.de335eb4e5a6dp-21);
    p = vd_step(p, w, 0x1.1120b6144667bp-18);
    p = vd_step(p, w, 0x1.3b1362b3082a8p-16);
    p = vd_step(p, w, 0x1.745d18325e106p-14);
    p = vd_step(p, w, 0x1.c71c71c580511p-12);
    p = vd_step(p, w, 0x1.2492492493036p-9);
    p = vd_step(p, w, 0x1.9999999999996p-7);
    /* q = w/12 + w^2 p, v = u q */
    vd c = vd_set(0x1.5555555555555p-4);
    vd q = c * w;
    vd q_low = vd_fma(c, w, vd_set(0.0) - q);
    q_low = vd_fma(vd_set(0x1.5555555555555p-58), w, q_low);
    q_low = vd_fma(c, w_low, q_low);
    q_low = vd_fma(w * w, p, q_low);
    vd v = u * q;
    vd v_low = vd_fma(u, q, vd_set(0.0) - v);
    v_low = vd_fma(u, q_low, v_low);
    v_low = vd_fma(u_low, q, v_low);
    vd g_low, h_low;
    vd g = vd_fast_two_sum(u, v, &g_low);
    g_low = g_low + (u_low + v_low);
    vd h = vd_fast_two_sum(k * vd_set(VMATH_LN2_HIGH_F64), g, &h_low);
    h_low = h_low + vd_fma(k, vd_set(VMATH_LN2_LOW_F64), g_low);
    return vd_fast_two_sum(h, h_low, low);
}

static inline vd pow_f64(vd x, vd y)
{
    vd a = vd_abs(x), zero = vd_set(0.0);
    vd inf = vd_from_bits(vl_set(VMATH_INF_F64));
    vd log_low;
    vd log_high = pow_log(a, &log_low);
    log_high = vd_select(vd_lt(a, inf), log_high, inf);
    log_high = vd_select(vd_eq(a, zero), zero - inf, log_high);
    vd t = y * log_high;
    vd t_low = vd_fma(y, log_high, zero - t) + y * log_low;
    /* Beyond 800 the result is infinite or 0; t_low may be NaN there. */
    vd limit = vd_set(800.0);
    t_low = vd_select(vd_le(vd_abs(t), limit), t_low, zero);
    t = vd_select(vd_lt(limit, t), limit, t);
    t = vd_select(vd_lt(t, zero - limit), zero - limit, t);
    vl bits;
    vd n = exp_round_f64(t, &bits);
    vd r = vd_fma(n, vd_set(-VMATH_LN2_HIGH_F64), t);
    r = r + vd_fma(n, vd_set(-VMATH_LN2_LOW_F64), t_low);
    return pow_special(x, y, exp_scale_f64(exp_poly_f64(r), bits));
}

/* 2^t for |t| <= 200, as 2^r 2^n, 2^r = 1 + r Q(r), fit error 2^-34.  No FMA.
 */
static inline vd exp2_in_f64(vd t)
{
    vd one = vd_set(1.0), big = vd_set(0x1.8p52);
    vd n = t + big;
    vd r = t - (n - big);
    vd q = vd_set(0x1.00f25306c2f6bp-16);
    q = q * r + vd_set(0x1.445fc8c9226b6p-13);
    q = q * r + vd_set(0x1.5d8721d03607bp-10);
    q = q * r + vd_set(0x1.3b29ef67736a8p-7);
    q = q * r + vd_set(0x1.c6b08df611599p-5);
    q = q * r + vd_set(0x1.ebfbe07c4aa97p-3);
    q = q * r + vd_set(0x1.62e42fef7a9acp-1);
    vl bits = vl_add(vl_sub(vd_bits(n), vd_bits(big)), vl_set(1023));
    return (q * r + one) * vd_from_bits(vl_shl(bits, 52));
}

/*
 * x^y of f32 values held in f64, with an error far below an f32 ulp:
 * 2^(y log2 x), ln m = 2s + s z P(z) as in log_f64 (fit error 2^-43).  No FMA.
 */
static inline vd pow_f32_in_f64(vd x, vd y)
{
    vd a = vd_abs(x), k, one = vd_set(1.0), zero = vd_set(0.0);
    vd inf = vd_from_bits(vl_set(VMATH_INF_F64));
    vd f = log_split_f64(a, &k) - one;
    vd s = f / (f + vd_set(2.0));
    vd z = s * s;
    vd p = vd_set(0x1.911577fbee68bp-3);
    p = p * z + vd_set(0x1.c62b1605482bfp-3);
    p = p * z + vd_set(0x1.249411eab4c19p-2);
    p = p * z + vd_set(0x1.999996a950bfp-2);
    p = p * z + vd_set(0x1.555555561e41cp-1);
    p = s * (p * z + vd_set(2.0));
    vd l = k + p * vd_set(0x1.71547652b82fep+0);
    l = vd_select(vd_lt(a, inf), l, inf);
    l = vd_select(vd_eq(a, zero), zero - inf, l);
    vd t = y * l, limit = vd_set(200.0);
    t = vd_select(vd_lt(limit, t), limit, t);
    t = vd_select(vd_lt(t, zero - limit), zero - limit, t);
    return pow_special(x, y, exp2_in_f64(t));
}

static inline vf pow_f32(vf x, vf y)
{
    return VF_IN_F64(pow_f32_in_f64, x, y);
}

#endif
