/* SPDX-License-Identifier: Apache-2.0
 *
 * a*b + c with one rounding, in f32 and f64, the same bits on every machine.
 *
 * With hardware FMA (the folder's flags say so) it is the instruction.  Without
 * it, it is emulated by rounding to odd, which keeps enough of what is lost for
 * a later rounding to be the only one.  f32: p = a*b is exact in f64; s = p + c
 * to odd, then to f32.  f64: a*b = u + l exactly; u + l + c in parts, of which
 * the small ones are added to odd (Boldo and Melquiond 2008).  That takes
 * exponents far from the ends of f64; for others it is the C library's fma,
 * exact by the C standard and 20 times slower without hardware.
 */
#ifndef TRN_KERNELS_FMA_H
#define TRN_KERNELS_FMA_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__FAST_MATH__)
#error "libtrn's bits need strict arithmetic: build without -ffast-math"
#endif
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0
#error "libtrn's bits need FLT_EVAL_METHOD 0 (on x86: SSE2 arithmetic)"
#endif

/* a + b rounded to odd: the inexact one of two neighbours that is odd. */
static inline double trn__add_to_odd_f64(double a, double b)
{
    const double s = a + b;
    const double t = s - a;
    const double e = (a - (s - t)) + (b - t);
    uint64_t bits;
    memcpy(&bits, &s, sizeof bits);
    /* e is NaN when s is not finite: neither comparison holds then. */
    const uint64_t inexact = (uint64_t)((e > 0.0) | (e < 0.0));
    const uint64_t away = (uint64_t)(e > 0.0) ^ (bits >> 63);
    bits += (inexact & ~bits & 1u) * (2u * away - 1u);
    double odd;
    memcpy(&odd, &bits, sizeof odd);
    return odd;
}

static inline float trn__fma_f32_exact(float a, float b, float c)
{
    const double p = (double)a * (double)b;
    return (float)trn__add_to_odd_f64(p, (double)c);
}

static inline float trn__fma_f32(float a, float b, float c)
{
#if defined(TRN_FREE_FMA) /* the benchmark's "rules" shows what this saves */
    return a * b + c;
#elif defined(__FMA__)
    return __builtin_fmaf(a, b, c);
#else
    return trn__fma_f32_exact(a, b, c);
#endif
}

/* The upper 26 bits of a, so that products of halves are exact. */
static inline double trn__upper_half_f64(double a)
{
    const double t = 134217729.0 * a; /* 2^27 + 1 */
    return t - (t - a);
}

static inline unsigned trn__exponent_f64(double a)
{
    uint64_t bits;
    memcpy(&bits, &a, sizeof bits);
    return (unsigned)(bits >> 52) & 0x7ffu;
}

/* Is every step of trn__fma_f64_exact exact?  a, b below 2^995 and normal, the
 * last bit of the product above 2^-1074, nothing that overflows. */
static inline bool trn__fma_f64_is_plain(double a, double b, double c)
{
    const unsigned ea = trn__exponent_f64(a), eb = trn__exponent_f64(b);
    return (ea - 1u < 2017u) & (eb - 1u < 2017u) & (ea + eb - 1076u < 1970u) &
           (trn__exponent_f64(c) < 2023u);
}

static inline double trn__fma_f64_exact(double a, double b, double c)
{
    const double a1 = trn__upper_half_f64(a), a2 = a - a1;
    const double b1 = trn__upper_half_f64(b), b2 = b - b1;
    const double u = a * b;
    const double l = ((a1 * b1 - u) + a1 * b2 + a2 * b1) + a2 * b2;
    const double t = c + l; /* c + l = t + t_lost */
    const double t_part = t - c;
    const double t_lost = (c - (t - t_part)) + (l - t_part);
    const double v = u + t; /* u + t = v + v_lost */
    const double v_part = v - u;
    const double v_lost = (u - (v - v_part)) + (t - v_part);
    return v + trn__add_to_odd_f64(t_lost, v_lost);
}

static inline double trn__fma_f64(double a, double b, double c)
{
#if defined(TRN_FREE_FMA)
    return a * b + c;
#elif defined(__FMA__)
    return __builtin_fma(a, b, c);
#else
    if (trn__fma_f64_is_plain(a, b, c))
        return trn__fma_f64_exact(a, b, c);
    /* Exact products: of zeros (relu, padding) and with infinities, NaNs. */
    const unsigned ea = trn__exponent_f64(a), eb = trn__exponent_f64(b);
    if (a == 0.0 || b == 0.0 || ea == 0x7ffu || eb == 0x7ffu)
        return a * b + c;
    return __builtin_fma(a, b, c);
#endif
}

#endif
