/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of numbers: seeded draws over any range or any bit pattern, and
 * bits in which each NaN is the same.
 */
#ifndef TRN_TESTS_DRAWS_H
#define TRN_TESTS_DRAWS_H

#include "kernel_sets.h"
#include <math.h>

/* Each test sets it first, so that its inputs do not depend on the others. */
static uint64_t rng;

static inline double uniform(double low, double high)
{
    return low + (high - low) * (double)(next_bits(&rng) >> 11) * 0x1p-53;
}

/* Any bit pattern: every exponent, subnormal numbers, infinities, NaN. */
static inline double any_bits(bool f32)
{
    uint64_t u = next_bits(&rng);
    uint32_t h = (uint32_t)u;
    double x;
    float y;
    memcpy(&x, &u, sizeof x);
    memcpy(&y, &h, sizeof y);
    return f32 ? (double)y : x;
}

static inline uint64_t canonical(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return isnan(x) ? UINT64_C(0x7ff8000000000000) : u;
}

#endif
