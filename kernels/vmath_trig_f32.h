/* SPDX-License-Identifier: Apache-2.0
 *
 * sin and cos of f32 lanes, with the reduction of vmath_trig.h, by plain f64
 * arithmetic: no FMA, and an error far below an f32 ulp.
 */
#ifndef TRN_KERNELS_VMATH_TRIG_F32_H
#define TRN_KERNELS_VMATH_TRIG_F32_H

#include "kernels/vmath_trig.h"

/*
 * An f32 x of at least 2^20: s has 24 bits, so its products with chunks are
 * exact.  Where x is nearest to a multiple of pi/2, r is above 2^-33; what five
 * chunks omit is below 2^-81.
 */
static inline vd trig_reduce_large_in_f64(vd x, vl *q)
{
    vl i;
    vd e, s = trig_scale(x, 29.0, &i);
    vd p0 = s * (vd_lookup(trig_chunks, i) * vd_set(0x1p-26));
    vd p1 = s * (vd_lookup(trig_chunks + 1, i) * vd_set(0x1p-52));
    vd p2 = s * (vd_lookup(trig_chunks + 2, i) * vd_set(0x1p-78));
    vd p3 = s * (vd_lookup(trig_chunks + 3, i) * vd_set(0x1p-104));
    vd p4 = s * (vd_lookup(trig_chunks + 4, i) * vd_set(0x1p-130));
    vd t = trig_fraction(p0) + trig_fraction(p1); /* multiples of 2^-52 */
    t = trig_quarters(vd_two_sum(t, p2, &e), q);
    return (t + (e + (p3 + p4))) * vd_set(VMATH_2PI_HIGH_F64);
}

/* r for an f32 x; up to 2^20 pi/2 has two parts, the first of 33 bits. */
static inline vd trig_reduce_in_f64(vd x, vl *q)
{
    vd a = vd_abs(x), big = vd_set(0x1.8p52);
    vd inf = vd_from_bits(vl_set(VMATH_INF_F64));
    vd t = x * vd_set(VMATH_TWO_OVER_PI) + big;
    vd n = t - big;
    vd r =
        (x - n * vd_set(0x1.921fb544p+0)) - n * vd_set(0x1.0b4611a626331p-34);
    *q = vd_bits(t);
    vl large = vl_and(vd_lt(vd_set(0x1p20), a), vd_lt(a, inf));
    if (vl_any(large)) {
        vl q_large;
        vd y = vd_select(large, x, vd_set(0x1p20));
        r = vd_select(large, trig_reduce_large_in_f64(y, &q_large), r);
        *q = vl_xor(*q, vl_and(vl_xor(*q, q_large), large));
    }
    return r;
}

/* sin r = r (1 + z P(z)), cos r = 1 + z Q(z), z = r^2: 2^-37 and 2^-43. */
static inline vd trig_in_f64(vd r, vl q)
{
    vd z = r * r, one = vd_set(1.0);
    vd s = vd_set(0x1.6cd0a55b20004p-19);
    s = s * z + vd_set(-0x1.a00f79ba4b033p-13);
    s = s * z + vd_set(0x1.11110863aabe7p-7);
    s = s * z + vd_set(-0x1.5555554c68989p-3);
    vd c = vd_set(-0x1.23c86c534804ap-22);
    c = c * z + vd_set(0x1.a00eb3c809090p-16);
    c = c * z + vd_set(-0x1.6c16b33d9a251p-10);
    c = c * z + vd_set(0x1.55555545b4af4p-5);
    c = c * z + vd_set(-0x1.ffffffffe96d4p-2);
    return trig_choose(r * (one + z * s), one + z * c, q);
}

static inline vd sin_in_f64(vd x)
{
    vl q;
    vd r = trig_reduce_in_f64(x, &q);
    return trig_in_f64(r, q);
}

static inline vd cos_in_f64(vd x)
{
    vl q;
    vd r = trig_reduce_in_f64(x, &q);
    return trig_in_f64(r, vl_add(q, vl_set(1)));
}

static inline vf sin_f32(vf x)
{
    return VF_IN_F64_UNARY(sin_in_f64, x);
}

static inline vf cos_f32(vf x)
{
    return VF_IN_F64_UNARY(cos_in_f64, x);
}

#endif
