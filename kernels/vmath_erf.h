/* SPDX-License-Identifier: Apache-2.0
 *
 * erf of f32 and f64 lanes: odd, +-1 at the infinities, NaN stays.
 *
 * With a = |x|: below 1, erf a = a + a P(a^2).  From there on erf a =
 * 1 - e^-T(a), where T is a polynomial fit of -ln erfc, which is smooth and
 * near a^2.  An error of T counts erfc a / erf a times, 0.19 at a = 1 and less
 * beyond, so the fit is weighted by that and loosens where erf tends to 1.
 * Both are minimax fits by the exchange algorithm on 50 digits, their
 * coefficients then rounded to f64.
 */
#ifndef TRN_KERNELS_VMATH_ERF_H
#define TRN_KERNELS_VMATH_ERF_H

#include "kernels/vmath_pow.h"

/* y, which is erf |x|, with the sign of x. */
static inline vd erf_finish(vd x, vd y)
{
    vl sign = vl_and(vd_bits(x), vl_set(VMATH_SIGN_F64));
    return vd_from_bits(vl_or(vd_bits(y), sign));
}

/*
 * erf of f32 values held in f64, with an error far below an f32 ulp.  No FMA.
 * T is in bits (log2), up to 4, whose erf rounds to 1.  Fit errors, relative to
 * erf: P 2^-34, T 2^-35.
 */
static inline vd erf_in_f64(vd x)
{
    vd a = vd_abs(x), z = a * a, one = vd_set(1.0), four = vd_set(4.0);
    vd p = vd_set(-0x1.4383dd2b1cb41p-17);
    p = p * z + vd_set(0x1.d8267f0c44793p-14);
    p = p * z + vd_set(-0x1.bcbe96f762869p-11);
    p = p * z + vd_set(0x1.5628ed9a00dbcp-8);
    p = p * z + vd_set(-0x1.b829a79dc8c15p-6);
    p = p * z + vd_set(0x1.ce2f079859dffp-4);
    p = p * z + vd_set(-0x1.8127465fb8b48p-2);
    p = p * z + vd_set(0x1.06eba82003f54p-3);
    vd near = a + a * p;
    vd b = vd_select(vd_lt(four, a), four, a);
    vd t = vd_set(-0x1.48900ff57837ap-22);
    t = t * b + vd_set(0x1.2b95605648230p-15);
    t = t * b + vd_set(-0x1.5c35c4b2f8510p-11);
    t = t * b + vd_set(0x1.93c8540c21d6cp-8);
    t = t * b + vd_set(-0x1.2b967da5655e7p-5);
    t = t * b + vd_set(0x1.40e4b48d20caep-3);
    t = t * b + vd_set(0x1.d39ec80a8c09ap-1);
    t = t * b + vd_set(0x1.a1369be4ec0ebp+0);
    t = t * b + vd_set(-0x1.31ae66a05302fp-12);
    vd far = one - exp2_in_f64(vd_set(0.0) - t);
    return erf_finish(x, vd_select(vd_lt(a, one), near, far));
}

static inline vf erf_f32(vf x)
{
    return VF_IN_F64_UNARY(erf_in_f64, x);
}

/* a + a P(a^2) for 0 <= a <= 1, fit error 2^-56. */
static inline vd erf_near_f64(vd a)
{
    vd z = a * a;
    vd p = vd_set(-0x1.9170cf078f687p-32);
    p = vd_step(p, z, 0x1.502bd7639b982p-29);
    p = vd_step(p, z, -0x1.143d4b1206981p-27);
    p = vd_step(p, z, 0x1.c3a8664977d5ep-26);
    p = vd_step(p, z, -0x1.7a47280e80a70p-23);
    p = vd_step(p, z, 0x1.bc5d5be95cb86p-20);
    p = vd_step(p, z, -0x1.f4fa214f59383p-17);
    p = vd_step(p, z, 0x1.f9a4dec0a47d9p-14);
    p = vd_step(p, z, -0x1.c02dc0bdc5030p-11);
    p = vd_step(p, z, 0x1.565bcd4b22722p-8);
    p = vd_step(p, z, -0x1.b82ce313e1aa1p-6);
    p = vd_step(p, z, 0x1.ce2f21a046ba4p-4);
    p = vd_step(p, z, -0x1.812746b037a31p-2);
    p = vd_step(p, z, 0x1.06eba8214db69p-3);
    return vd_fma(a, p, a);
}

/*
 * -ln erfc a for 1 <= a <= 6 as a polynomial of a - 1.5, which is exact and
 * keeps the coefficients small; fit error 2^-57, relative to erf.
 */
static inline vd erf_tail_f64(vd a)
{
    vd u = a - vd_set(1.5);
    vd t = vd_set(0x1.91b4652ea3183p-43);
    t = vd_step(t, u, -0x1.0e8f414117841p-38);
    t = vd_step(t, u, 0x1.4efdf17bfae61p-35);
    t = vd_step(t, u, -0x1.fa080ca96f121p-33);
    t = vd_step(t, u, 0x1.ff320becc1591p-31);
    t = vd_step(t, u, -0x1.467d5e2e39efdp-29);
    t = vd_step(t, u, 0x1.2deb40a6b8991p-30);
    t = vd_step(t, u, 0x1.de5b4ba5f1ff4p-26);
    t = vd_step(t, u, -0x1.9d99934ec81ccp-23);
    t = vd_step(t, u, 0x1.b79284a204fc5p-21);
    t = vd_step(t, u, -0x1.3e3583a00b933p-19);
    t = vd_step(t, u, 0x1.63408a369a729p-19);
    t = vd_step(t, u, 0x1.790bc25dd7f1dp-16);
    t = vd_step(t, u, -0x1.c4e86a9f4b7b3p-13);
    t = vd_step(t, u, 0x1.499262369bd18p-10);
    t = vd_step(t, u, -0x1.89a87b490002fp-8);
    t = vd_step(t, u, 0x1.a71a4bde01701p-6);
    t = vd_step(t, u, 0x1.c90827462a17ap-1);
    t = vd_step(t, u, 0x1.c1206279e92bdp+1);
    return vd_step(t, u, 0x1.b137096b18e96p+1);
}

static inline vd erf_f64(vd x)
{
    vd a = vd_abs(x), one = vd_set(1.0), six = vd_set(6.0);
    /* erf 6 rounds to 1; NaN fails the comparison and stays. */
    vd t = vd_set(0.0) - erf_tail_f64(vd_select(vd_lt(six, a), six, a));
    vl bits;
    vd n = exp_round_f64(t, &bits);
    vd r = vd_fma(n, vd_set(-VMATH_LN2_HIGH_F64), t);
    r = vd_fma(n, vd_set(-VMATH_LN2_LOW_F64), r);
    vd scale = vd_from_bits(vl_shl(vl_add(bits, vl_set(1023)), 52));
    vd far = one - exp_poly_f64(r) * scale;
    return erf_finish(x, vd_select(vd_lt(a, one), erf_near_f64(a), far));
}

#endif
