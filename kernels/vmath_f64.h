/* SPDX-License-Identifier: Apache-2.0
 *
 * exp, log, tanh and pow of f64 lanes, within 4 ulp of the exact value, special
 * values as in C99 Annex F.
 *
 * Written over the vector layer (include vec_<set>.h first), without branches:
 * the same steps for every lane and width, so the same bits.  Polynomials are
 * minimax fits; each states its interval and error.
 */
#ifndef TRN_KERNELS_VMATH_F64_H
#define TRN_KERNELS_VMATH_F64_H

#define VMATH_INF_F64 0x7ff0000000000000u
#define VMATH_NAN_F64 0x7ff8000000000000u
#define VMATH_SIGN_F64 0x8000000000000000u

/* ln 2 as 42 bits, whose products with exponents are exact, and the rest. */
#define VMATH_LN2_HIGH_F64 0x1.62e42fefa38p-1
#define VMATH_LN2_LOW_F64 0x1.ef35793c7673p-45

static inline vd vd_abs(vd x)
{
    return vd_from_bits(vl_and(vd_bits(x), vl_set(~VMATH_SIGN_F64)));
}

/* One step of Horner's scheme: p x + c. */
static inline vd vd_step(vd p, vd x, double c)
{
    return vd_fma(p, x, vd_set(c));
}

/* a + b = sum + *error exactly, where |a| >= |b| or a = 0. */
static inline vd vd_fast_two_sum(vd a, vd b, vd *error)
{
    vd sum = a + b;
    *error = b - (sum - a);
    return sum;
}

/* The same, whichever is larger. */
static inline vd vd_two_sum(vd a, vd b, vd *error)
{
    vd sum = a + b, t = sum - a;
    *error = (a - (sum - t)) + (b - t);
    return sum;
}

/* e^r - 1 for |r| <= 0.3467; error of the fit 2^-58, of e^r. */
static inline vd exp_rest_f64(vd r)
{
    vd p = vd_set(0x1.af85aa0afe206p-26);
    p = vd_step(p, r, 0x1.28b064bc89f8fp-22);
    p = vd_step(p, r, 0x1.71dddfb5b13c3p-19);
    p = vd_step(p, r, 0x1.a0199676984dcp-16);
    p = vd_step(p, r, 0x1.a01a01baec85ep-13);
    p = vd_step(p, r, 0x1.6c16c185b1caap-10);
    p = vd_step(p, r, 0x1.111111110d61ap-7);
    p = vd_step(p, r, 0x1.5555555550001p-5);
    p = vd_step(p, r, 0x1.5555555555561p-3);
    p = vd_step(p, r, 0x1.000000000000cp-1);
    return vd_fma(r * r, p, r);
}
static inline vd exp_poly_f64(vd r)
{
    return exp_rest_f64(r) + vd_set(1.0);
}

/*
 * n = x / ln 2 rounded to an integer, for |x| < 2^20; *bits is n as an integer.
 * Adding 1.5 * 2^52 leaves n in the lowest bits of the sum.
 */
static inline vd exp_round_f64(vd x, vl *bits)
{
    vd big = vd_set(0x1.8p52);
    vd t = vd_fma(x, vd_set(0x1.71547652b82fep+0), big);
    *bits = vl_sub(vd_bits(t), vd_bits(big));
    return t - big;
}

/*
 * y 2^n, rounded once, for 0.5 < y < 2 and |n| < 2040.  In two factors, since
 * 2^n itself may be no normal number; the first product is exact.
 */
static inline vd exp_scale_f64(vd y, vl n)
{
    vl half = vl_sub(vl_shr(vl_add(n, vl_set(4096)), 1), vl_set(2048));
    vl rest = vl_sub(n, half);
    vl bias = vl_set(1023);
    y = y * vd_from_bits(vl_shl(vl_add(half, bias), 52));
    return y * vd_from_bits(vl_shl(vl_add(rest, bias), 52));
}

static inline vd exp_f64(vd x)
{
    /* 710 overflows; NaN fails the comparison and stays. */
    vd a = vd_select(vd_lt(vd_set(710.0), x), vd_set(710.0), x);
    vl bits;
    vd n = exp_round_f64(a, &bits);
    vd r = vd_fma(n, vd_set(-VMATH_LN2_HIGH_F64), a);
    r = vd_fma(n, vd_set(-VMATH_LN2_LOW_F64), r);
    vd y = exp_scale_f64(exp_poly_f64(r), bits);
    return vd_select(vd_lt(x, vd_set(-708.39)), vd_set(0.0), y);
}

/*
 * x = m 2^*k with sqrt(1/2) <= m < sqrt(2), for positive finite x.  Subnormal
 * numbers are scaled first.
 */
static inline vd log_split_f64(vd x, vd *k)
{
    vl small = vd_lt(x, vd_set(0x1p-1022));
    x = vd_select(small, x * vd_set(0x1p54), x);
    vl shifted = vl_sub(vd_bits(x), vl_set(0x3fe6a09e667f3bcdu));
    /* The bias keeps the exponent positive: it moves by a logical shift. */
    vl e = vl_shr(vl_add(shifted, vl_set(0x4000000000000000u)), 52);
    vl m = vl_sub(vd_bits(x), vl_shl(vl_sub(e, vl_set(1024)), 52));
    vd f = vd_from_bits(vl_or(e, vl_set(0x4330000000000000u)));
    *k = f - vd_select(small, vd_set(0x1p52 + 1078.0), vd_set(0x1p52 + 1024.0));
    return vd_from_bits(m);
}

/* log where x is 0, negative, infinite or NaN; y elsewhere. */
static inline vd log_special_f64(vd x, vd y)
{
    vd inf = vd_from_bits(vl_set(VMATH_INF_F64));
    vd zero = vd_set(0.0);
    y = vd_select(vd_lt(x, inf), y, x);
    y = vd_select(vd_eq(x, zero), zero - inf, y);
    return vd_select(vd_lt(x, zero), vd_from_bits(vl_set(VMATH_NAN_F64)), y);
}

/*
 * ln m = 2s + s z P(z) with s = f / (2 + f), f = m - 1, z = s^2; fit error
 * 2^-58.  2s = f - s f keeps the exact f as the leading term.
 */
static inline vd log_f64(vd x)
{
    vd k;
    vd f = log_split_f64(x, &k) - vd_set(1.0);
    vd s = f / (f + vd_set(2.0));
    vd z = s * s;
    vd p = vd_set(0x1.2f06169663d1p-3);
    p = vd_step(p, z, 0x1.39a1a9eab3397p-3);
    p = vd_step(p, z, 0x1.74663f84d13e8p-3);
    p = vd_step(p, z, 0x1.c71c520698c53p-3);
    p = vd_step(p, z, 0x1.24924941f4445p-2);
    p = vd_step(p, z, 0x1.999999997fd85p-2);
    p = vd_step(p, z, 0x1.5555555555592p-1);
    vd half = f * f * vd_set(0.5);
    vd t = vd_fma(s, vd_fma(z, p, half), k * vd_set(VMATH_LN2_LOW_F64));
    vd y = vd_fma(k, vd_set(VMATH_LN2_HIGH_F64), f - (half - t));
    return log_special_f64(x, y);
}

/*
 * |x| <= 0.5625: x + x^3 P(x^2), fit error 2^-59.9.  Beyond, 1 - 2/(e^2|x| + 1)
 * loses nothing, since the quotient is below 1/2.
 */
static inline vd tanh_f64(vd x)
{
    vd a = vd_abs(x);
    vd z = a * a;
    vd p = vd_set(-0x1.3d9f4d4059d99p-16);
    p = vd_step(p, z, 0x1.59a6167529ba3p-14);
    p = vd_step(p, z, -0x1.e81de486b633fp-13);
    p = vd_step(p, z, 0x1.3462b5de104fbp-11);
    p = vd_step(p, z, -0x1.7d8bda011f814p-10);
    p = vd_step(p, z, 0x1.d6d24d47e0d96p-9);
    p = vd_step(p, z, -0x1.226e2d296eaa8p-7);
    p = vd_step(p, z, 0x1.664f484aa143ep-6);
    p = vd_step(p, z, -0x1.ba1ba1b93c2e4p-5);
    p = vd_step(p, z, 0x1.111111111032fp-3);
    p = vd_step(p, z, -0x1.555555555554cp-2);
    vd near = vd_fma(a * z, p, a);
    vd b = vd_select(vd_lt(vd_set(22.0), a), vd_set(44.0), a + a);
    vl bits;
    vd n = exp_round_f64(b, &bits);
    vd r = vd_fma(n, vd_set(-VMATH_LN2_HIGH_F64), b);
    r = vd_fma(n, vd_set(-VMATH_LN2_LOW_F64), r);
    vd scale = vd_from_bits(vl_shl(vl_add(bits, vl_set(1023)), 52));
    vd e = vd_fma(exp_poly_f64(r), scale, vd_set(1.0));
    vd y = vd_set(1.0) - vd_set(2.0) / e;
    y = vd_select(vd_le(a, vd_set(0.5625)), near, y);
    vl sign = vl_and(vd_bits(x), vl_set(VMATH_SIGN_F64));
    return vd_from_bits(vl_or(vd_bits(y), sign));
}

#endif
