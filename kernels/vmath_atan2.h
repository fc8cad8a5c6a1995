/* SPDX-License-Identifier: Apache-2.0
 *
 * atan2(y, x) of f32 and f64 lanes, the angle of the point (x, y); special
 * values as in C99 Annex F: atan2(+-0, x) is +-0 for +0 and +-pi for -0.
 *
 * The quotient q of the smaller magnitude by the larger one is in [0, 1]. Above
 * tan(pi/8) it becomes (num - den) / (num + den), whose arc tangent is pi/4
 * less; then |q| <= tan(pi/8) and atan q = q + q z P(z), z = q^2, a minimax fit
 * by the exchange algorithm on 50 digits.  The result is a multiple of pi/4
 * plus or minus that.
 */
#ifndef TRN_KERNELS_VMATH_ATAN2_H
#define TRN_KERNELS_VMATH_ATAN2_H

#include "kernels/vmath_f64.h"

/* pi/4 with three zeros at its end, and the rest: multiples up to 4 are exact.
 */
#define VMATH_PI4_HIGH_F64 0x1.921fb54442d18p-1
#define VMATH_PI4_LOW_F64 0x1.1a62633145c07p-55
#define VMATH_TAN_PI8 0x1.a827999fcef32p-2

/* The angle is k pi/4 + atan(num / den), its second term negated by `flip`. */
typedef struct atan2_parts {
    vd num, den, k;
    vl flip; /* the sign bit or nothing */
} atan2_parts;

static inline atan2_parts atan2_split(vd y, vd x)
{
    vd ax = vd_abs(x), ay = vd_abs(y), zero = vd_set(0.0), one = vd_set(1.0);
    vd inf = vd_from_bits(vl_set(VMATH_INF_F64));
    vl swap = vd_lt(ax, ay);
    vd num = vd_select(swap, ax, ay), den = vd_select(swap, ay, ax);
    /* inf / inf counts as 1, finite / inf and 0 / 0 as 0. */
    vl infinite = vd_eq(den, inf);
    vd limit = vd_select(vd_eq(num, inf), one, zero);
    num = vd_select(infinite, limit, num);
    den = vd_select(vl_or(infinite, vd_eq(den, zero)), one, den);
    vl negative = vl_sub(vl_set(0), vl_shr(vd_bits(x), 63)); /* -0 too */
    vl sign = vl_set(VMATH_SIGN_F64);
    atan2_parts a = {
        .num = num,
        .den = den,
        .flip = vl_and(vl_xor(swap, negative), sign),
    };
    vd side = vd_select(negative, vd_set(4.0), zero);
    a.k = vd_select(swap, vd_set(2.0), side);
    return a;
}

/* Where num / den is above tan(pi/8): 1 with the sign of flip is added to k. */
static inline vl atan2_halve(atan2_parts *a)
{
    vl half = vd_lt(a->den * vd_set(VMATH_TAN_PI8), a->num);
    vd one = vd_from_bits(vl_or(vd_bits(vd_set(1.0)), a->flip));
    a->k = a->k + vd_select(half, one, vd_set(0.0));
    return half;
}

/* The angle r in [0, pi] with the sign of y; NaN where one of them is. */
static inline vd atan2_finish(vd y, vd x, vd r)
{
    vl sign = vl_and(vd_bits(y), vl_set(VMATH_SIGN_F64));
    r = vd_from_bits(vl_or(vd_bits(r), sign));
    return vd_select(vl_and(vd_eq(x, x), vd_eq(y, y)), r, x + y);
}

/*
 * Of f32 values held in f64, with an error far below an f32 ulp; fit error
 * 2^-40.  No FMA.
 */
static inline vd atan2_in_f64(vd y, vd x)
{
    atan2_parts a = atan2_split(y, x);
    vl half = atan2_halve(&a);
    vd num = vd_select(half, a.num - a.den, a.num);
    vd q = num / vd_select(half, a.num + a.den, a.den);
    vd z = q * q;
    vd p = vd_set(-0x1.36a54a10b9461p-5);
    p = p * z + vd_set(0x1.1e5a15190ad33p-4);
    p = p * z + vd_set(-0x1.70823eb94571ep-4);
    p = p * z + vd_set(0x1.c6d1df025bb9cp-4);
    p = p * z + vd_set(-0x1.2490c2b168f7ap-3);
    p = p * z + vd_set(0x1.999991fa22470p-3);
    p = p * z + vd_set(-0x1.5555554edd554p-2);
    vd t = q + q * z * p;
    t = vd_from_bits(vl_xor(vd_bits(t), a.flip));
    return atan2_finish(y, x, a.k * vd_set(VMATH_PI4_HIGH_F64) + t);
}

static inline vf atan2_f32(vf y, vf x)
{
    return VF_IN_F64(atan2_in_f64, y, x);
}

/* atan q - q for |q| <= tan(pi/8), fit error 2^-62 of q. */
static inline vd atan_rest_f64(vd q)
{
    vd z = q * q;
    vd p = vd_set(0x1.e82481dc1e403p-7);
    p = vd_step(p, z, -0x1.0fce9bd26c425p-5);
    p = vd_step(p, z, 0x1.6fe320bf083b8p-5);
    p = vd_step(p, z, -0x1.ab3bb3377111bp-5);
    p = vd_step(p, z, 0x1.e167b66a764dbp-5);
    p = vd_step(p, z, -0x1.110beb5b56297p-4);
    p = vd_step(p, z, 0x1.3b1364ef7b43cp-4);
    p = vd_step(p, z, -0x1.745d145044a5cp-4);
    p = vd_step(p, z, 0x1.c71c71b458c0cp-4);
    p = vd_step(p, z, -0x1.249249246f58cp-3);
    p = vd_step(p, z, 0x1.9999999999584p-3);
    p = vd_step(p, z, -0x1.5555555555554p-2);
    return q * z * p;
}

/* num and den become pairs, and so does the quotient. */
static inline vd atan2_f64(vd y, vd x)
{
    atan2_parts a = atan2_split(y, x);
    vd zero = vd_set(0.0), e, d_low, n_low;
    /* A sum of the largest numbers would overflow, a rest of the smallest be
     * lost. */
    vl huge = vd_lt(vd_set(0x1p1000), a.den);
    vl tiny = vd_lt(a.den, vd_set(0x1p-900));
    vd scale = vd_select(huge, vd_set(0x1p-100), vd_set(1.0));
    scale = vd_select(tiny, vd_set(0x1p100), scale);
    vd num = a.num * scale, den = a.den * scale;
    vl half = atan2_halve(&a);
    vd n = zero - vd_fast_two_sum(den, zero - num, &n_low);
    vd d = vd_fast_two_sum(den, num, &d_low);
    n = vd_select(half, n, num);
    d = vd_select(half, d, den);
    n_low = vd_select(half, zero - n_low, zero);
    d_low = vd_select(half, d_low, zero);
    vd q = n / d;
    vd rest = vd_fma(zero - q, d, n) + (n_low - q * d_low);
    vd t = atan_rest_f64(q) + rest / d;
    q = vd_from_bits(vl_xor(vd_bits(q), a.flip));
    t = vd_from_bits(vl_xor(vd_bits(t), a.flip));
    vd r = vd_fast_two_sum(a.k * vd_set(VMATH_PI4_HIGH_F64), q, &e);
    r = r + (e + (a.k * vd_set(VMATH_PI4_LOW_F64) + t));
    return atan2_finish(y, x, r);
}

#endif
