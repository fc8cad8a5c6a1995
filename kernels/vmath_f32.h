/* SPDX-License-Identifier: Apache-2.0
 *
 * exp, log and tanh of f32 lanes, within 2 ulp of the exact value, special
 * values as in C99 Annex F; the steps are those of vmath_f64.h, which explains
 * them.  pow is in vmath_pow.h.
 */
#ifndef TRN_KERNELS_VMATH_F32_H
#define TRN_KERNELS_VMATH_F32_H

#define VMATH_INF_F32 0x7f800000u
#define VMATH_NAN_F32 0x7fc00000u
#define VMATH_SIGN_F32 0x80000000u

/* The float nearest to ln 2 and the rest; products are taken by FMA. */
#define VMATH_LN2_HIGH_F32 0x1.62e43p-1f
#define VMATH_LN2_LOW_F32 (-0x1.05c61p-29f)

static inline vf vf_abs(vf x)
{
    return vf_from_bits(vi_and(vf_bits(x), vi_set(~VMATH_SIGN_F32)));
}

static inline vf vf_step(vf p, vf x, float c)
{
    return vf_fma(p, x, vf_set(c));
}

/* e^r for |r| <= 0.3467; error of the fit 2^-28. */
static inline vf exp_poly_f32(vf r)
{
    vf p = vf_set(0x1.6db47ep-10f);
    p = vf_step(p, r, 0x1.123b7ep-7f);
    p = vf_step(p, r, 0x1.55545ep-5f);
    p = vf_step(p, r, 0x1.55548ep-3f);
    p = vf_step(p, r, 0x1p-1f);
    return vf_fma(r * r, p, r) + vf_set(1.0f);
}

/* r = x - n ln 2; *bits is the integer n, |n| < 2^20. */
static inline vf exp_reduce_f32(vf x, vi *bits)
{
    vf big = vf_set(0x1.8p23f);
    vf t = vf_fma(x, vf_set(0x1.715476p+0f), big);
    vf n = t - big;
    *bits = vi_sub(vf_bits(t), vf_bits(big));
    vf r = vf_fma(n, vf_set(-VMATH_LN2_HIGH_F32), x);
    return vf_fma(n, vf_set(-VMATH_LN2_LOW_F32), r);
}

static inline vf exp_f32(vf x)
{
    vf a = vf_select(vf_lt(vf_set(89.0f), x), vf_set(89.0f), x);
    vi n, bias = vi_set(127);
    vf y = exp_poly_f32(exp_reduce_f32(a, &n));
    vi half = vi_sub(vi_shr(vi_add(n, vi_set(512)), 1), vi_set(256));
    vi rest = vi_sub(n, half);
    y = y * vf_from_bits(vi_shl(vi_add(half, bias), 23));
    y = y * vf_from_bits(vi_shl(vi_add(rest, bias), 23));
    return vf_select(vf_lt(x, vf_set(-87.34f)), vf_set(0.0f), y);
}

/* x = m 2^*k with sqrt(1/2) <= m < sqrt(2), for positive finite x. */
static inline vf log_split_f32(vf x, vf *k)
{
    vi small = vf_lt(x, vf_set(0x1p-126f));
    x = vf_select(small, x * vf_set(0x1p24f), x);
    vi shifted = vi_sub(vf_bits(x), vi_set(0x3f3504f3u));
    vi e = vi_shr(vi_add(shifted, vi_set(0x40000000u)), 23);
    vi m = vi_sub(vf_bits(x), vi_shl(vi_sub(e, vi_set(128)), 23));
    vf f = vf_from_bits(vi_or(e, vi_set(0x4b000000u)));
    *k = f -
         vf_select(small, vf_set(0x1p23f + 152.0f), vf_set(0x1p23f + 128.0f));
    return vf_from_bits(m);
}

/* ln m = f - f^2/2 + f^3 P(f), f = m - 1; relative error of the fit 2^-27. */
static inline vf log_f32(vf x)
{
    vf k, zero = vf_set(0.0f);
    vf inf = vf_from_bits(vi_set(VMATH_INF_F32));
    vf f = log_split_f32(x, &k) - vf_set(1.0f);
    vf p = vf_set(-0x1.38b65cp-4f);
    p = vf_step(p, f, 0x1.055b9ep-3f);
    p = vf_step(p, f, -0x1.0d8532p-3f);
    p = vf_step(p, f, 0x1.22da14p-3f);
    p = vf_step(p, f, -0x1.547246p-3f);
    p = vf_step(p, f, 0x1.99a008p-3f);
    p = vf_step(p, f, -0x1.000226p-2f);
    p = vf_step(p, f, 0x1.555554p-2f);
    p = vf_step(p, f, -0.5f);
    p = vf_fma(f * f, p, k * vf_set(VMATH_LN2_LOW_F32));
    vf y = vf_fma(k, vf_set(VMATH_LN2_HIGH_F32), f + p);
    y = vf_select(vf_lt(x, inf), y, x);
    y = vf_select(vf_eq(x, zero), zero - inf, y);
    return vf_select(vf_lt(x, zero), vf_from_bits(vi_set(VMATH_NAN_F32)), y);
}

/* |x| <= 0.5625: x + x^3 P(x^2), fit error 2^-29; beyond by exp. */
static inline vf tanh_f32(vf x)
{
    vf a = vf_abs(x);
    vf z = a * a;
    vf p = vf_set(-0x1.95940ap-8f);
    p = vf_step(p, z, 0x1.584c4p-6f);
    p = vf_step(p, z, -0x1.b90d14p-5f);
    p = vf_step(p, z, 0x1.110c8cp-3f);
    p = vf_step(p, z, -0x1.555548p-2f);
    vf near = vf_fma(a * z, p, a);
    vf b = vf_select(vf_lt(vf_set(10.0f), a), vf_set(20.0f), a + a);
    vi n;
    vf e = exp_poly_f32(exp_reduce_f32(b, &n));
    vf scale = vf_from_bits(vi_shl(vi_add(n, vi_set(127)), 23));
    e = vf_fma(e, scale, vf_set(1.0f));
    vf y = vf_set(1.0f) - vf_set(2.0f) / e;
    y = vf_select(vf_le(a, vf_set(0.5625f)), near, y);
    vi sign = vi_and(vf_bits(x), vi_set(VMATH_SIGN_F32));
    return vf_from_bits(vi_or(vf_bits(y), sign));
}

#endif
