/* SPDX-License-Identifier: Apache-2.0
 *
 * Seeded inputs of the functions: any bit pattern, every exponent, and where
 * each function is hard or changes its way of computing.
 */
#include "math_functions.h"
#include <math.h>

double math_uniform(uint64_t *rng, double low, double high)
{
    return low + (high - low) * (double)(next_bits(rng) >> 11) * 0x1p-53;
}

double math_any(uint64_t *rng, bool f32)
{
    const uint64_t u = next_bits(rng);
    const uint32_t h = (uint32_t)u;
    double x;
    float y;
    memcpy(&x, &u, sizeof x);
    memcpy(&y, &h, sizeof y);
    return f32 ? (double)y : x;
}

/* A few ulps around x. */
static double near(uint64_t *rng, bool f32, double x)
{
    const int k = (int)(next_bits(rng) % 33) - 16;
    return x + x * k * (f32 ? 0x1p-24 : 0x1p-53);
}

void draw_exp(uint64_t *rng, bool f32, double *x, double *y)
{
    const double top = f32 ? 0x1.62e43p+6 : 0x1.62e42fefa39efp+9;
    const double low = f32 ? -87.34 : -708.39;
    *y = 0.0;
    switch (next_bits(rng) % 4) {
    case 0:
        *x = math_any(rng, f32);
        return;
    case 1:
        *x = math_uniform(rng, 1.05 * low, 1.05 * top);
        return;
    case 2:
        *x = math_uniform(rng, -2.0, 2.0);
        return;
    default:
        *x = near(rng, f32, next_bits(rng) % 2 ? top : low);
        return;
    }
}

void draw_log(uint64_t *rng, bool f32, double *x, double *y)
{
    *y = 0.0;
    switch (next_bits(rng) % 4) {
    case 0:
        *x = math_any(rng, f32);
        return;
    case 1:
        *x = near(rng, f32, 1.0);
        return;
    case 2:
        *x = math_uniform(rng, 0.3, 3.0);
        return;
    default: /* subnormal numbers and around them */
        *x = math_uniform(rng, 0.0, 4.0) * (f32 ? 0x1p-126 : 0x1p-1022);
        return;
    }
}

void draw_tanh(uint64_t *rng, bool f32, double *x, double *y)
{
    *y = 0.0;
    switch (next_bits(rng) % 4) {
    case 0:
        *x = math_any(rng, f32);
        return;
    case 1:
        *x = math_uniform(rng, -25.0, 25.0);
        return;
    case 2:
        *x = math_uniform(rng, -1.0, 1.0);
        return;
    default:
        *x = near(rng, f32, 0.5625);
        return;
    }
}

/*
 * Numbers of each format that are nearest to multiples of pi/2 for their
 * exponent, by the continued fractions of 2^e 2/pi; the first of each is the
 * nearest of all.
 */
static const double nearest_quarters[] = {
    0x1.6ac5b262ca1ffp849, 0x1.6c6cbc45dc8dep5,   0x1.b951f1572eba5p23,
    0x1.504cac51f1eafp131, 0x1.e009c53148be1p991, 0x1.4c96c11134d36p577,
    0x1.cfe482285f8edp860, 0x1.db41f3cb71d7bp680, 0x1.e7e44a78ac18cp197,
    0x1.c45cd11154dfdp295, 0x1.83009e2e9e2ebp614, 0x1.b2196364d750bp253,
    0x1.6ac5b262ca1ffp852, 0x1.b951f1572eba5p24,  0x1.504cac51f1eafp132,
};
static const double nearest_quarters_f32[] = {
    0x1.f37c8ap95, 0x1.47d0fep34, 0x1.f37c8ap96, 0x1.f9cbe2p7,
    0x1.32ede2p85, 0x1.628d4cp40, 0x1.130930p76, 0x1.47d0fep36,
};

void draw_trig(uint64_t *rng, bool f32, double *x, double *y)
{
    enum {
        N = sizeof nearest_quarters / sizeof nearest_quarters[0],
        N32 = sizeof nearest_quarters_f32 / sizeof nearest_quarters_f32[0],
    };
    *y = 0.0;
    switch (next_bits(rng) % 6) {
    case 0:
        *x = math_any(rng, f32);
        return;
    case 1:
        *x = math_uniform(rng, -7.0, 7.0);
        return;
    case 2:
        *x = math_uniform(rng, -0x1p21, 0x1p21);
        return;
    case 3: /* the number next to a multiple of pi/2, or one beside it */
        *x = near(rng, f32,
                  floor(exp(math_uniform(rng, 0.0, f32 ? 16.0 : 40.0))) *
                      0x1.921fb54442d18p0);
        return;
    case 4: /* where another reduction begins */
        *x = near(rng, f32, 0x1p20);
        return;
    default:
        *x = f32 ? nearest_quarters_f32[next_bits(rng) % N32]
                 : nearest_quarters[next_bits(rng) % N];
        if (next_bits(rng) % 2)
            *x = near(rng, f32, *x);
        *x = next_bits(rng) % 2 ? -*x : *x;
        return;
    }
}

/* Below 2, of each exponent down to the last. */
static double small_of_any_exponent(uint64_t *rng, bool f32)
{
    return ldexp(math_uniform(rng, -2.0, 2.0),
                 -(int)(next_bits(rng) % (f32 ? 150 : 1075)));
}

void draw_erf(uint64_t *rng, bool f32, double *x, double *y)
{
    *y = 0.0;
    switch (next_bits(rng) % 5) {
    case 0:
        *x = math_any(rng, f32);
        return;
    case 1:
        *x = math_uniform(rng, -6.5, 6.5);
        return;
    case 2:
        *x = math_uniform(rng, -1.2, 1.2);
        return;
    case 3:
        *x = near(rng, f32, 1.0);
        return;
    default:
        *x = small_of_any_exponent(rng, f32);
        return;
    }
}

/* Also around where the result, or the e^z of gelu_tanh, becomes 0. */
void draw_gelu(uint64_t *rng, bool f32, double *x, double *y)
{
    const double ends[] = {f32 ? 14.36 : 38.58, f32 ? 14.5 : 39.0,
                           f32 ? 9.96 : 20.4};
    *y = 0.0;
    switch (next_bits(rng) % 5) {
    case 0:
        *x = math_any(rng, f32);
        return;
    case 1:
        *x = math_uniform(rng, f32 ? -15.0 : -40.0, f32 ? 15.0 : 40.0);
        return;
    case 2:
        *x = math_uniform(rng, -2.0, 2.0);
        return;
    case 3:
        *x = -ends[next_bits(rng) % 3] + math_uniform(rng, -0.1, 0.1);
        return;
    default:
        *x = small_of_any_exponent(rng, f32);
        return;
    }
}

void draw_round(uint64_t *rng, bool f32, double *x, double *y)
{
    *y = 0.0;
    switch (next_bits(rng) % 4) {
    case 0:
        *x = math_any(rng, f32);
        return;
    case 1:
        *x = math_uniform(rng, -20.0, 20.0);
        return;
    case 2: /* halves and integers, and beside them */
        *x = near(rng, f32, 0.5 * floor(math_uniform(rng, -100.0, 100.0)));
        return;
    default: /* around the end of fractions */
        *x = ldexp(math_uniform(rng, -1.0, 1.0), f32 ? 25 : 54);
        return;
    }
}

void draw_pow(uint64_t *rng, bool f32, double *x, double *y)
{
    const double top = f32 ? 88.8 : 709.8;
    const double low = f32 ? -104.0 : -745.2;
    switch (next_bits(rng) % 5) {
    case 0:
        *x = math_any(rng, f32);
        *y = math_any(rng, f32);
        return;
    case 1: /* near 1, to large exponents */
        *x = 1.0 + math_uniform(rng, -1.0, 1.0) *
                       exp(math_uniform(rng, f32 ? -15.0 : -35.0, -1.0));
        break;
    case 2: /* any base */
        *x = fabs(math_any(rng, f32));
        break;
    case 3: /* integer exponents of numbers of either sign */
        *x = math_uniform(rng, -20.0, 20.0);
        *y = floor(math_uniform(rng, -60.0, 60.0));
        return;
    default:
        *x = math_uniform(rng, 0.0, 10.0);
        *y = math_uniform(rng, -10.0, 10.0);
        return;
    }
    /* A result anywhere in the range, and one in four at its ends. */
    double t = math_uniform(rng, low, top);
    if (next_bits(rng) % 4 == 0)
        t = (next_bits(rng) % 2 ? low : top) + math_uniform(rng, -1.0, 1.0);
    *y = t / log((double)(f32 ? (float)*x : *x));
}

void draw_atan2(uint64_t *rng, bool f32, double *x, double *y)
{
    switch (next_bits(rng) % 5) {
    case 0:
        *x = math_any(rng, f32);
        *y = math_any(rng, f32);
        return;
    case 1:
        *x = math_uniform(rng, -2.0, 2.0);
        *y = math_uniform(rng, -2.0, 2.0);
        return;
    case 2: /* numbers of like size, anywhere */
        *x = math_any(rng, f32);
        *y = *x * math_uniform(rng, -4.0, 4.0);
        return;
    case 3: /* the diagonal, and where the halving begins */
        *x = math_uniform(rng, -2.0, 2.0);
        *y =
            near(rng, f32, next_bits(rng) % 2 ? *x : *x * 0x1.a827999fcef32p-2);
        return;
    default: /* quotients of every exponent, to below the smallest number */
        *x = math_uniform(rng, -2.0, 2.0);
        *y = ldexp(math_uniform(rng, -2.0, 2.0),
                   (int)(next_bits(rng) % (f32 ? 300 : 2100)) -
                       (f32 ? 150 : 1080));
        return;
    }
}
