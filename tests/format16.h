/* SPDX-License-Identifier: Apache-2.0
 *
 * The 16-bit formats by their definition, for tests of conversions: a table of
 * all their numbers, built with ldexp, and the nearest one to a number, found
 * by comparing values.  No bits of f32 are touched.
 */
#ifndef TRN_TESTS_FORMAT16_H
#define TRN_TESTS_FORMAT16_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include "trn/types.h"

/* A 16-bit format: its finite sizes in order, then 2^(largest exponent + 1). */
typedef struct format16 {
    trn_dtype dtype;
    uint32_t mantissa_bits;
    int lowest_exponent; /* of the smallest subnormal */
    uint32_t infinity;
    double size[0x7f81];
} format16;

static format16 bf16 = {
    .dtype = TRN_BF16,
    .mantissa_bits = 7,
    .lowest_exponent = -133,
    .infinity = 0x7f80,
};
static format16 f16 = {
    .dtype = TRN_F16,
    .mantissa_bits = 10,
    .lowest_exponent = -24,
    .infinity = 0x7c00,
};

static inline void fill_sizes(format16 *f)
{
    const uint32_t one = 1u << f->mantissa_bits;
    for (uint32_t i = 0; i <= f->infinity; i++) {
        const int exponent = (int)(i >> f->mantissa_bits);
        const uint32_t fraction = i & (one - 1);
        if (exponent == 0)
            f->size[i] = ldexp(fraction, f->lowest_exponent);
        else
            f->size[i] =
                ldexp(one + fraction, f->lowest_exponent + exponent - 1);
    }
}

/* The place whose size is the last one not above; f->infinity for larger. */
static inline uint32_t place16(const format16 *f, long double size)
{
    uint32_t low = 0, high = f->infinity; /* size[low] <= size < size[high] */
    if (size >= (long double)f->size[f->infinity])
        return f->infinity;
    while (high - low > 1) {
        const uint32_t mid = (low + high) / 2;
        if (size < (long double)f->size[mid])
            high = mid;
        else
            low = mid;
    }
    return low;
}

/* The nearest of all numbers of the format, ties to the even pattern */
static inline uint16_t nearest(const format16 *f, long double x)
{
    const uint32_t sign = signbit(x) ? 0x8000u : 0u;
    const long double size = fabsl(x);
    if (isnan(x))
        return (uint16_t)(sign | f->infinity | 1u);
    const uint32_t low = place16(f, size);
    if (low == f->infinity)
        return (uint16_t)(sign | low);
    const long double middle =
        ((long double)f->size[low] + (long double)f->size[low + 1]) / 2;
    const bool up = size > middle || (size == middle && (low & 1u));
    return (uint16_t)(sign | (up ? low + 1 : low));
}

static inline bool is_nan16(const format16 *f, uint16_t x)
{
    return (x & 0x7fffu) > f->infinity;
}

/* Equal, or both a NaN; one that came out of a conversion is quiet. */
static inline bool same16(const format16 *f, uint16_t got, uint16_t want)
{
    if (is_nan16(f, want))
        return is_nan16(f, got) &&
               ((uint32_t)got >> (f->mantissa_bits - 1) & 1u);
    return got == want;
}

#endif
