/* SPDX-License-Identifier: Apache-2.0
 *
 * The elementwise rows of ops.def on one vector: <op>_f32 and <op>_f64 for each
 * UNARY, BINARY and COMPARE row.  A comparison answers a mask.  What takes a
 * polynomial or rounds is in the vmath headers.
 */
#ifndef TRN_KERNELS_ELEMENTWISE_OPS_H
#define TRN_KERNELS_ELEMENTWISE_OPS_H

#include "kernels/vmath_atan2.h"
#include "kernels/vmath_erf.h"
#include "kernels/vmath_f32.h"
#include "kernels/vmath_f64.h"
#include "kernels/vmath_gelu.h"
#include "kernels/vmath_pow.h"
#include "kernels/vmath_round.h"
#include "kernels/vmath_sigmoid.h"
#include "kernels/vmath_trig_f32.h"

static inline vf neg_f32(vf x)
{
    return vf_from_bits(vi_xor(vf_bits(x), vi_set(VMATH_SIGN_F32)));
}
static inline vd neg_f64(vd x)
{
    return vd_from_bits(vl_xor(vd_bits(x), vl_set(VMATH_SIGN_F64)));
}

static inline vf sqrt_f32(vf x)
{
    return vf_sqrt(x);
}
static inline vd sqrt_f64(vd x)
{
    return vd_sqrt(x);
}

/* Two roundings: at most 1.5 ulp.  -0 gives -infinity, as 1 / sqrt(-0) does. */
static inline vf rsqrt_f32(vf x)
{
    return vf_set(1.0f) / vf_sqrt(x);
}
static inline vd rsqrt_f64(vd x)
{
    return vd_set(1.0) / vd_sqrt(x);
}

static inline vf abs_f32(vf x)
{
    return vf_abs(x);
}
static inline vd abs_f64(vd x)
{
    return vd_abs(x);
}

/* 1, -1, and +0 where x is neither positive nor negative, also NaN (PyTorch) */
static inline vf sign_f32(vf x)
{
    vf zero = vf_set(0.0f);
    vf y = vf_select(vf_lt(zero, x), vf_set(1.0f), zero);
    return vf_select(vf_lt(x, zero), vf_set(-1.0f), y);
}
static inline vd sign_f64(vd x)
{
    vd zero = vd_set(0.0);
    vd y = vd_select(vd_lt(zero, x), vd_set(1.0), zero);
    return vd_select(vd_lt(x, zero), vd_set(-1.0), y);
}

/* NaN fails the comparison and stays; -0 gives +0. */
static inline vf relu_f32(vf x)
{
    return vf_select(vf_le(x, vf_set(0.0f)), vf_set(0.0f), x);
}
static inline vd relu_f64(vd x)
{
    return vd_select(vd_le(x, vd_set(0.0)), vd_set(0.0), x);
}

/* A subnormal number of either sign gives +0; so does -0. */
static inline vf flush_subnormal_f32(vf x)
{
    vi small = vf_lt(vf_abs(x), vf_set(0x1p-126f));
    return vf_select(small, vf_set(0.0f), x);
}
static inline vd flush_subnormal_f64(vd x)
{
    vl small = vd_lt(vd_abs(x), vd_set(0x1p-1022));
    return vd_select(small, vd_set(0.0), x);
}

static inline vf add_f32(vf a, vf b)
{
    return a + b;
}
static inline vd add_f64(vd a, vd b)
{
    return a + b;
}

static inline vf sub_f32(vf a, vf b)
{
    return a - b;
}
static inline vd sub_f64(vd a, vd b)
{
    return a - b;
}

static inline vf mul_f32(vf a, vf b)
{
    return a * b;
}
static inline vd mul_f64(vd a, vd b)
{
    return a * b;
}

static inline vf div_f32(vf a, vf b)
{
    return a / b;
}
static inline vd div_f64(vd a, vd b)
{
    return a / b;
}

/*
 * IEEE 754-2019 maximum.  Equal numbers differ at most in the sign of zero,
 * where `and` gives +0; a sum is NaN where one of the inputs is.
 */
static inline vf maximum_f32(vf a, vf b)
{
    vf same = vf_from_bits(vi_and(vf_bits(a), vf_bits(b)));
    vf y = vf_select(vf_lt(b, a), a, b);
    y = vf_select(vf_eq(a, b), same, y);
    return vf_select(vi_and(vf_eq(a, a), vf_eq(b, b)), y, a + b);
}
static inline vd maximum_f64(vd a, vd b)
{
    vd same = vd_from_bits(vl_and(vd_bits(a), vd_bits(b)));
    vd y = vd_select(vd_lt(b, a), a, b);
    y = vd_select(vd_eq(a, b), same, y);
    return vd_select(vl_and(vd_eq(a, a), vd_eq(b, b)), y, a + b);
}

/* IEEE 754-2019 minimum, as the maximum; of two zeros `or` gives -0. */
static inline vf minimum_f32(vf a, vf b)
{
    vf same = vf_from_bits(vi_or(vf_bits(a), vf_bits(b)));
    vf y = vf_select(vf_lt(a, b), a, b);
    y = vf_select(vf_eq(a, b), same, y);
    return vf_select(vi_and(vf_eq(a, a), vf_eq(b, b)), y, a + b);
}
static inline vd minimum_f64(vd a, vd b)
{
    vd same = vd_from_bits(vl_or(vd_bits(a), vd_bits(b)));
    vd y = vd_select(vd_lt(a, b), a, b);
    y = vd_select(vd_eq(a, b), same, y);
    return vd_select(vl_and(vd_eq(a, a), vd_eq(b, b)), y, a + b);
}

static inline vi greater_f32(vf a, vf b)
{
    return vf_lt(b, a);
}
static inline vl greater_f64(vd a, vd b)
{
    return vd_lt(b, a);
}

static inline vi equal_f32(vf a, vf b)
{
    return vf_eq(a, b);
}
static inline vl equal_f64(vd a, vd b)
{
    return vd_eq(a, b);
}

static inline vi less_f32(vf a, vf b)
{
    return vf_lt(a, b);
}
static inline vl less_f64(vd a, vd b)
{
    return vd_lt(a, b);
}

static inline vi less_equal_f32(vf a, vf b)
{
    return vf_le(a, b);
}
static inline vl less_equal_f64(vd a, vd b)
{
    return vd_le(a, b);
}

static inline vi greater_equal_f32(vf a, vf b)
{
    return vf_le(b, a);
}
static inline vl greater_equal_f64(vd a, vd b)
{
    return vd_le(b, a);
}

static inline vi not_equal_f32(vf a, vf b)
{
    return vi_xor(vf_eq(a, b), vi_set(~(uint32_t)0));
}
static inline vl not_equal_f64(vd a, vd b)
{
    return vl_xor(vd_eq(a, b), vl_set(~(uint64_t)0));
}

#endif
