/* SPDX-License-Identifier: Apache-2.0
 *
 * sin and cos of f64 lanes, with full range reduction; of an infinity they are
 * NaN.  f32 is in vmath_trig_f32.h.
 *
 * x = q pi/2 + r with |r| <= pi/4, and one of two polynomials of r.  Up to
 * 2^20, q pi/2 is subtracted in parts whose products with q are exact.  Beyond,
 * after Payne and Hanek, x/(2 pi) modulo 1 is needed: 1/(2 pi) lies in a table
 * in chunks of 26 bits, and those whose product with x is a whole number of
 * turns are left out.  The polynomials are minimax fits.
 */
#ifndef TRN_KERNELS_VMATH_TRIG_H
#define TRN_KERNELS_VMATH_TRIG_H

#include "kernels/vmath_f64.h"

#define VMATH_TWO_OVER_PI 0x1.45f306dc9c883p-1
#define VMATH_2PI_HIGH_F64 0x1.921fb54442d18p+2
#define VMATH_2PI_LOW_F64 0x1.1a62633145c07p-52

/* 1/(2 pi) = sum of trig_chunks[i] 2^(-26 (i - 1)); two zeros come first. */
static const double trig_chunks[] = {
    0x0000000, 0x0000000, 0x0a2f983, 0x1b93910, 0x1529fc2, 0x1d5f47d, 0x134ddc0,
    0x36d8a56, 0x193c439, 0x0107f94, 0x163abde, 0x2ef1586, 0x37246e3, 0x2909374,
    0x2e00649, 0x0bba827, 0x11921cf, 0x3877ac7, 0x0b129a7, 0x0fba208, 0x35f52eb,
    0x2d1213a, 0x19c7026, 0x2d17df9, 0x013991d, 0x18e60d4, 0x339f49c, 0x2117e2e,
    0x3df9283, 0x2c7fe25, 0x3ffde05, 0x2603fbc, 0x2f118b5, 0x2829b47, 0x36d367e,
    0x33c9f2c, 0x09b74f4, 0x18fd9a7, 0x25fea2d, 0x1d49eeb, 0x07ebe5f, 0x05ecf41,
    0x339f78a, 0x14a4ba9, 0x2bfb5fb, 0x047e357, 0x1085603,
};

/*
 * x less an integer, exact; |result| <= 1/2 where |x| < 2^51.  Beyond, x must
 * be positive, and the result may be an integer or up to 1.
 */
static inline vd trig_fraction(vd x)
{
    vd big = vd_set(0x1.8p52);
    return x - ((x + big) - big);
}

/*
 * s = x 2^(52 - 26 i) with i = *first = floor((E + skip) / 26), E the exponent
 * of x, so that s times trig_chunks[i + m] 2^(-26 (m + 1)), summed over m, is
 * x/(2 pi) but for whole turns.  Those before i give whole turns if s is an
 * integer: skip 0 for 53 bits of x, 29 for 24.
 */
static inline vd trig_scale(vd x, double skip, vl *first)
{
    vd big = vd_set(0x1.8p52);
    vl e = vl_shr(vl_shl(vd_bits(x), 1), 53);
    vd f = vd_from_bits(vl_or(e, vl_set(0x4330000000000000u)));
    /* 12.5 below the middle: the nearest integer is the floor, never a tie. */
    f = (f - vd_set(0x1p52)) + vd_set(skip - 1023.0 - 12.5);
    vl i = vl_sub(vd_bits(f * vd_set(1.0 / 26.0) + big), vd_bits(big));
    vl i26 = vl_add(vl_add(vl_shl(i, 4), vl_shl(i, 3)), vl_shl(i, 1));
    *first = i;
    return x * vd_from_bits(vl_shl(vl_sub(vl_set(1075), i26), 52));
}

/* Turns, |turns| < 4: the rest beside the nearest quarter, *q the quarters. */
static inline vd trig_quarters(vd turns, vl *q)
{
    vd big = vd_set(0x1.8p52);
    vd t = turns * vd_set(4.0) + big;
    *q = vd_bits(t);
    return turns - (t - big) * vd_set(0.25);
}

/* sin r (odd q) or cos r (even q, as cos takes q + 1), with the sign of q. */
static inline vd trig_choose(vd sine, vd cosine, vl q)
{
    vl odd = vl_sub(vl_set(0), vl_and(q, vl_set(1)));
    vl sign = vl_shl(vl_and(q, vl_set(2)), 62);
    return vd_from_bits(vl_xor(vd_bits(vd_select(odd, cosine, sine)), sign));
}

/* r as a pair, and the quarter turns before it. */
typedef struct trig_angle {
    vd high, low;
    vl q;
} trig_angle;

/*
 * |x| <= 2^20: pi/2 in parts of 33, 33, 33 and 53 bits.  Products of the first
 * three with n are exact and what all four omit is below 2^-130, while doubles
 * of this size come to about 2^-60 of a multiple of pi/2, not nearer.
 */
static inline trig_angle trig_reduce_small(vd x)
{
    vd big = vd_set(0x1.8p52), e1, e2;
    vd t = vd_fma(x, vd_set(VMATH_TWO_OVER_PI), big);
    vd n = t - big;
    vd a = vd_fma(n, vd_set(-0x1.921fb544p+0), x);
    a = vd_two_sum(a, n * vd_set(-0x1.0b4611a6p-34), &e1);
    a = vd_two_sum(a, n * vd_set(-0x1.3198a2ep-69), &e2);
    vd low = vd_fma(n, vd_set(-0x1.b839a252049c1p-104), e1 + e2);
    trig_angle r = {.q = vd_bits(t)};
    r.high = vd_fast_two_sum(a, low, &r.low);
    return r;
}

/* Two chunks as one number of 52 bits; weight is that of the first. */
static inline vd trig_pair(const double *chunk, vl i, double weight)
{
    vd high = vd_lookup(chunk, i) * vd_set(weight);
    return high + vd_lookup(chunk + 1, i) * vd_set(weight * 0x1p-26);
}

/*
 * x >= 2^20.  With s < 2^78 and eight chunks, the products s t0 to s t3 are
 * pairs p + e whose terms are below 2^78, 2^26, 2^-26, 2^-78 and 2^25, 2^-27,
 * 2^-79; all the others are below 2^-130, while x/(2 pi) is never nearer than
 * 2^-65 to a quarter.  Every sum is exact until the terms below 2^-78.
 */
static inline trig_angle trig_reduce_large(vd x)
{
    vl i;
    vd zero = vd_set(0.0), r0, r1, r2, r3, r4, low;
    vd s = trig_scale(x, 0.0, &i);
    vd t0 = trig_pair(trig_chunks, i, 0x1p-26);
    vd t1 = trig_pair(trig_chunks + 2, i, 0x1p-78);
    vd t2 = trig_pair(trig_chunks + 4, i, 0x1p-130);
    vd t3 = trig_pair(trig_chunks + 6, i, 0x1p-182);
    vd p0 = s * t0, p1 = s * t1, p2 = s * t2;
    vd e0 = vd_fma(s, t0, zero - p0);
    vd e1 = vd_fma(s, t1, zero - p1);
    vd e2 = vd_fma(s, t2, zero - p2);
    /* Twice: beyond 2^51 the first leaves up to 1 or an integer. */
    p0 = trig_fraction(trig_fraction(p0));
    vd t = vd_two_sum(p0, trig_fraction(e0), &r0);
    t = vd_two_sum(t, trig_fraction(p1), &r1);
    trig_angle a;
    t = trig_quarters(t, &a.q);
    vd u = vd_two_sum(e1, p2, &r2);
    u = vd_two_sum(u, r0, &r3);
    u = vd_two_sum(u, r1, &r4);
    r2 = ((r2 + r3) + r4) + vd_fma(s, t3, e2);
    t = vd_two_sum(t, u, &low);
    t = vd_fast_two_sum(t, low + r2, &low);
    /* times 2 pi */
    vd high = t * vd_set(VMATH_2PI_HIGH_F64);
    vd rest = vd_fma(t, vd_set(VMATH_2PI_HIGH_F64), zero - high);
    rest = vd_fma(t, vd_set(VMATH_2PI_LOW_F64), rest);
    rest = vd_fma(low, vd_set(VMATH_2PI_HIGH_F64), rest);
    a.high = vd_fast_two_sum(high, rest, &a.low);
    return a;
}

static inline trig_angle trig_reduce(vd x)
{
    vd a = vd_abs(x), inf = vd_from_bits(vl_set(VMATH_INF_F64));
    trig_angle r = trig_reduce_small(x);
    vl large = vl_and(vd_lt(vd_set(0x1p20), a), vd_lt(a, inf));
    if (vl_any(large)) {
        trig_angle l = trig_reduce_large(vd_select(large, a, vd_set(0x1p20)));
        /* The angle of -a is the negative one. */
        vl sign = vl_and(vd_bits(x), vl_set(VMATH_SIGN_F64));
        vl minus = vl_sub(vl_set(0), vl_shr(sign, 63));
        l.high = vd_from_bits(vl_xor(vd_bits(l.high), sign));
        l.low = vd_from_bits(vl_xor(vd_bits(l.low), sign));
        l.q = vl_sub(vl_xor(l.q, minus), minus);
        r.high = vd_select(large, l.high, r.high);
        r.low = vd_select(large, l.low, r.low);
        r.q = vl_xor(r.q, vl_and(vl_xor(r.q, l.q), large));
    }
    return r;
}

/* sin(high + low) = x + x^3 P(x^2), fit error 2^-58. */
static inline vd sin_poly_f64(vd x, vd low)
{
    vd z = x * x;
    vd p = vd_set(0x1.5d915c2e51f23p-33);
    p = vd_step(p, z, -0x1.ae5e60bdaf01ep-26);
    p = vd_step(p, z, 0x1.71de3570f4302p-19);
    p = vd_step(p, z, -0x1.a01a019c0a1ddp-13);
    p = vd_step(p, z, 0x1.111111110f841p-7);
    p = vd_step(p, z, -0x1.5555555555549p-3);
    /* cos x, to first order, is what low is multiplied by */
    low = vd_fma(z * vd_set(-0.5), low, low);
    return x + vd_fma(x * z, p, low);
}

/* cos(high + low) = 1 - x^2/2 + x^4 P(x^2) - x low, fit error 2^-64. */
static inline vd cos_poly_f64(vd x, vd low)
{
    vd z = x * x, one = vd_set(1.0);
    vd p = vd_set(-0x1.8facd053dbdc5p-37);
    p = vd_step(p, z, 0x1.1ee9e88eacfa3p-29);
    p = vd_step(p, z, -0x1.27e4f80530a63p-22);
    p = vd_step(p, z, 0x1.a01a019cab6ffp-16);
    p = vd_step(p, z, -0x1.6c16c16c1514p-10);
    p = vd_step(p, z, 0x1.555555555554cp-5);
    vd half = z * vd_set(0.5);
    vd y = one - half;
    vd rest = vd_fma(z * z, p, (one - y) - half);
    return y + vd_fma(vd_set(0.0) - x, low, rest);
}

static inline vd sin_f64(vd x)
{
    trig_angle r = trig_reduce(x);
    vd s = sin_poly_f64(r.high, r.low), c = cos_poly_f64(r.high, r.low);
    /* A small x is its sine; this keeps -0 and subnormal numbers. */
    vl small = vd_lt(vd_abs(x), vd_set(0x1p-27));
    return vd_select(small, x, trig_choose(s, c, r.q));
}

static inline vd cos_f64(vd x)
{
    trig_angle r = trig_reduce(x);
    vd s = sin_poly_f64(r.high, r.low), c = cos_poly_f64(r.high, r.low);
    return trig_choose(s, c, vl_add(r.q, vl_set(1)));
}

#endif
