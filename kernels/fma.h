/* SPDX-License-Identifier: Apache-2.0
 *
 * a*b + c with one rounding, in f32 and f64, the same bits on every machine.
 *
 * With hardware FMA (the folder's flags say so) it is the instruction.  Without
 * it, f32 is emulated: p = a*b is exact in f64; s = p + c with its exact error
 * e (TwoSum); s rounded to odd keeps enough of e for the rounding to f32 to be
 * the only one.  f64 is the C library's fma, exact by the C standard.
 */
#ifndef TRN_KERNELS_FMA_H
#define TRN_KERNELS_FMA_H

#include <stdint.h>
#include <string.h>

#if defined(__FAST_MATH__)
#error "libtrn's bits need strict arithmetic: build without -ffast-math"
#endif
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0
#error "libtrn's bits need FLT_EVAL_METHOD 0 (on x86: SSE2 arithmetic)"
#endif

static inline float trn__fma_f32_exact(float a, float b, float c)
{
    double p = (double)a * (double)b;
    double s = p + (double)c;
    double t = s - p;
    double e = (p - (s - t)) + ((double)c - t);
    uint64_t bits;
    memcpy(&bits, &s, sizeof bits);
    /* e is NaN when s is not finite: neither comparison holds then. */
    uint64_t inexact = (uint64_t)((e > 0.0) | (e < 0.0));
    uint64_t step = inexact & ~bits & 1u;
    uint64_t away = (uint64_t)(e > 0.0) ^ (bits >> 63);
    bits += step * (2u * away - 1u);
    memcpy(&s, &bits, sizeof s);
    return (float)s;
}

static inline float trn__fma_f32(float a, float b, float c)
{
#ifdef __FMA__
    return __builtin_fmaf(a, b, c);
#else
    return trn__fma_f32_exact(a, b, c);
#endif
}

static inline double trn__fma_f64(double a, double b, double c)
{
    return __builtin_fma(a, b, c);
}

#endif
