/* SPDX-License-Identifier: Apache-2.0
 *
 * floor, ceil, round (halves to even) and trunc of f32 and f64 lanes: exact,
 * and the sign of x is kept, so what rounds to zero from below gives -0.
 *
 * Adding 2^23 (f64: 2^52) to a smaller magnitude rounds it to an integer, to
 * even in the middle.  A larger number is an integer already, an infinity and a
 * NaN stay.
 */
#ifndef TRN_KERNELS_VMATH_ROUND_H
#define TRN_KERNELS_VMATH_ROUND_H

#include "kernels/vmath_f32.h"
#include "kernels/vmath_f64.h"

/* y with the sign of x where |x| < 2^23, else x; y has that sign or is 0. */
static inline vf round_finish_f32(vf x, vf y)
{
    vi sign = vi_and(vf_bits(x), vi_set(VMATH_SIGN_F32));
    y = vf_from_bits(vi_or(vf_bits(y), sign));
    return vf_select(vf_lt(vf_abs(x), vf_set(0x1p23f)), y, x);
}
static inline vd round_finish_f64(vd x, vd y)
{
    vl sign = vl_and(vd_bits(x), vl_set(VMATH_SIGN_F64));
    y = vd_from_bits(vl_or(vd_bits(y), sign));
    return vd_select(vd_lt(vd_abs(x), vd_set(0x1p52)), y, x);
}

static inline vf round_f32(vf x)
{
    vf big = vf_set(0x1p23f);
    return round_finish_f32(x, (vf_abs(x) + big) - big);
}
static inline vd round_f64(vd x)
{
    vd big = vd_set(0x1p52);
    return round_finish_f64(x, (vd_abs(x) + big) - big);
}

static inline vf floor_f32(vf x)
{
    vf y = round_f32(x), one = vf_set(1.0f);
    return round_finish_f32(x, vf_select(vf_lt(x, y), y - one, y));
}
static inline vd floor_f64(vd x)
{
    vd y = round_f64(x), one = vd_set(1.0);
    return round_finish_f64(x, vd_select(vd_lt(x, y), y - one, y));
}

static inline vf ceil_f32(vf x)
{
    vf y = round_f32(x), one = vf_set(1.0f);
    return round_finish_f32(x, vf_select(vf_lt(y, x), y + one, y));
}
static inline vd ceil_f64(vd x)
{
    vd y = round_f64(x), one = vd_set(1.0);
    return round_finish_f64(x, vd_select(vd_lt(y, x), y + one, y));
}

static inline vf trunc_f32(vf x)
{
    return round_finish_f32(x, floor_f32(vf_abs(x)));
}
static inline vd trunc_f64(vd x)
{
    return round_finish_f64(x, floor_f64(vd_abs(x)));
}

#endif
