/* SPDX-License-Identifier: Apache-2.0
 *
 * The vector layer, one lane wide, in plain C.
 *
 * Kernels are written once over the types vf (f32 lanes), vi (their 32-bit
 * integers and masks), vd (f64 lanes) and vl (their 64-bit integers and masks)
 * and are compiled against one vec_<set>.h.  + - * / are the operators of the
 * compiler; everything else is a function below.  A mask is all ones or all
 * zeros in each lane.  Every operation is exact or rounded once, so the bits
 * do not depend on the width.
 */
#ifndef TRN_KERNELS_VEC_GENERIC_H
#define TRN_KERNELS_VEC_GENERIC_H

#include <stdbool.h>
#include "kernels/fma.h"

typedef float vf;
typedef uint32_t vi;
typedef double vd;
typedef uint64_t vl;

#define VF_LANES 1
#define VD_LANES 1

/* op over f64 lanes, applied to f32 lanes and rounded once. */
#define VF_IN_F64(op, a, b) ((vf)op((vd)(a), (vd)(b)))
#define VF_IN_F64_UNARY(op, a) ((vf)op((vd)(a)))

/* ---- f32 ---- */
static inline vf vf_set(float x)
{
    return x;
}
static inline vf vf_load(const float *p)
{
    return *p;
}
static inline void vf_store(float *p, vf x)
{
    *p = x;
}
/* The first n < VF_LANES lanes; the others are 0. */
static inline vf vf_load_tail(const float *p, int64_t n)
{
    return n > 0 ? *p : 0.0f;
}
static inline void vf_store_tail(float *p, int64_t n, vf x)
{
    if (n > 0)
        *p = x;
}
/* Bytes 0 or 1 of the first n <= VF_LANES lanes of a mask. */
static inline void vi_store_bool(uint8_t *p, int64_t n, vi m)
{
    if (n > 0)
        *p = (uint8_t)(m & 1u);
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return trn__fma_f32(a, b, c);
}
static inline vf vf_sqrt(vf x)
{
    return __builtin_sqrtf(x);
}
static inline vi vf_bits(vf x)
{
    vi y;
    memcpy(&y, &x, sizeof y);
    return y;
}
static inline vf vf_from_bits(vi x)
{
    vf y;
    memcpy(&y, &x, sizeof y);
    return y;
}
static inline vi vf_lt(vf a, vf b)
{
    return a < b ? ~(vi)0 : 0;
}
static inline vi vf_le(vf a, vf b)
{
    return a <= b ? ~(vi)0 : 0;
}
static inline vi vf_eq(vf a, vf b)
{
    return a == b ? ~(vi)0 : 0;
}
static inline vf vf_select(vi m, vf a, vf b)
{
    return m ? a : b;
}
static inline vi vi_set(uint32_t x)
{
    return x;
}
static inline vi vi_add(vi a, vi b)
{
    return a + b;
}
static inline vi vi_sub(vi a, vi b)
{
    return a - b;
}
static inline vi vi_and(vi a, vi b)
{
    return a & b;
}
static inline vi vi_or(vi a, vi b)
{
    return a | b;
}
static inline vi vi_xor(vi a, vi b)
{
    return a ^ b;
}
static inline vi vi_shl(vi a, int n)
{
    return a << n;
}
static inline vi vi_shr(vi a, int n)
{
    return a >> n;
}

/* ---- f64 ---- */
static inline vd vd_set(double x)
{
    return x;
}
static inline vd vd_load(const double *p)
{
    return *p;
}
static inline void vd_store(double *p, vd x)
{
    *p = x;
}
static inline vd vd_load_tail(const double *p, int64_t n)
{
    return n > 0 ? *p : 0.0;
}
static inline void vd_store_tail(double *p, int64_t n, vd x)
{
    if (n > 0)
        *p = x;
}
static inline void vl_store_bool(uint8_t *p, int64_t n, vl m)
{
    if (n > 0)
        *p = (uint8_t)(m & 1u);
}
static inline vd vd_fma(vd a, vd b, vd c)
{
    return trn__fma_f64(a, b, c);
}
static inline vd vd_sqrt(vd x)
{
    return __builtin_sqrt(x);
}
static inline vl vd_bits(vd x)
{
    vl y;
    memcpy(&y, &x, sizeof y);
    return y;
}
static inline vd vd_from_bits(vl x)
{
    vd y;
    memcpy(&y, &x, sizeof y);
    return y;
}
static inline vl vd_lt(vd a, vd b)
{
    return a < b ? ~(vl)0 : 0;
}
static inline vl vd_le(vd a, vd b)
{
    return a <= b ? ~(vl)0 : 0;
}
static inline vl vd_eq(vd a, vd b)
{
    return a == b ? ~(vl)0 : 0;
}
static inline vd vd_select(vl m, vd a, vd b)
{
    return m ? a : b;
}
static inline vl vl_set(uint64_t x)
{
    return x;
}
static inline vl vl_add(vl a, vl b)
{
    return a + b;
}
static inline vl vl_sub(vl a, vl b)
{
    return a - b;
}
static inline vl vl_and(vl a, vl b)
{
    return a & b;
}
static inline vl vl_or(vl a, vl b)
{
    return a | b;
}
static inline vl vl_xor(vl a, vl b)
{
    return a ^ b;
}
static inline vl vl_shl(vl a, int n)
{
    return a << n;
}
static inline vl vl_shr(vl a, int n)
{
    return a >> n;
}
/* Is a lane of the mask set?  For skipping what no lane needs, only. */
static inline bool vl_any(vl m)
{
    return m != 0;
}
/* table[index], lane by lane. */
static inline vd vd_lookup(const double *table, vl index)
{
    return table[index];
}

#endif
