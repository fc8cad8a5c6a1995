/* SPDX-License-Identifier: Apache-2.0
 *
 * Host scalars: exp, log, pow and tanh by the f64 kernels of one lane, floor,
 * and sin and cos.
 *
 * sin and cos reduce x to q pi/2 + r, r in two numbers, |r| <= pi/4, and take
 * one of two polynomials.
 */
#include "kernels/scalar.h"
#include <stdbool.h>
#include "kernels/vec_generic.h"
#include "kernels/vmath_pow.h"

double trn__exp(double x)
{
    return exp_f64(x);
}

double trn__log(double x)
{
    return log_f64(x);
}

double trn__pow(double x, double y)
{
    return pow_f64(x, y);
}

double trn__tanh(double x)
{
    return tanh_f64(x);
}

double trn__sqrt(double x)
{
    return vd_sqrt(x);
}

double trn__floor(double x)
{
    double big = 0x1p52, a = vd_abs(x);
    if (!(a < big) || a == 0.0)
        return x;
    double y = (a + big) - big;
    y = x < 0.0 ? -y : y;
    if (y > x)
        y -= 1.0;
    /* What is in (0, 1) gives +0. */
    return y == 0.0 ? 0.0 : y;
}

/* An angle: high + low in [-pi/4, pi/4], and the quarter turns before it. */
typedef struct angle {
    double high, low;
    uint32_t quarters;
} angle;

/* a + b = sum + *error exactly. */
static double two_sum(double a, double b, double *error)
{
    double sum = a + b, t = sum - a;
    *error = (a - (sum - t)) + (b - t);
    return sum;
}

/*
 * |x| <= 2^20: pi/2 in parts of 33, 33, 33 and 53 bits.  Products of the first
 * three with n are exact and what all four omit is below 2^-130, while doubles
 * of this size come to about 2^-60 of a multiple of pi/2, not nearer.
 */
static angle reduce_small(double x)
{
    double t = trn__fma_f64(x, 0x1.45f306dc9c883p-1, 0x1.8p52);
    double n = t - 0x1.8p52, e1, e2, low;
    double a = trn__fma_f64(-n, 0x1.921fb544p+0, x);
    a = two_sum(a, -n * 0x1.0b4611a6p-34, &e1);
    a = two_sum(a, -n * 0x1.3198a2ep-69, &e2);
    low = trn__fma_f64(-n, 0x1.b839a252049c1p-104, e1 + e2);
    angle r = {.quarters = (uint32_t)vd_bits(t)};
    r.high = vd_fast_two_sum(a, low, &r.low);
    return r;
}

/* 2/pi after two words of zeros, 32 bits a word, from the highest. */
static const uint32_t two_over_pi[] = {
    0x00000000, 0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0,
    0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0,
    0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5, 0x2ebb4484,
    0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b,
    0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7,
    0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea,
    0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab, 0xf0cfbc20, 0x9af4361d,
};

enum { N_WORDS = 8 };

/*
 * v = m times the N_WORDS words at w, modulo 2^256; v[0] is the highest word.
 */
static void multiply_words(uint64_t m, const uint32_t *w, uint32_t *v)
{
    uint64_t m_low = m & 0xffffffffu, m_high = m >> 32;
    uint64_t carry_low = 0, carry_high = 0, previous = 0;
    for (int j = N_WORDS - 1; j >= 0; j--) {
        /* v_j = m_low w_j + m_high w_(j+1), each row with its own carry */
        uint64_t low = m_low * w[j] + carry_low;
        uint64_t sum = (low & 0xffffffffu) + previous;
        carry_low = low >> 32;
        v[j] = (uint32_t)sum;
        uint64_t high = m_high * w[j] + carry_high + (sum >> 32);
        previous = high & 0xffffffffu;
        carry_high = high >> 32;
    }
}

/* v shifted left by 0 <= n < 32 bits. */
static void shift_words(uint32_t *v, int n)
{
    for (int j = 0; j < N_WORDS; j++) {
        uint64_t next = j + 1 < N_WORDS ? v[j + 1] : 0;
        v[j] = (uint32_t)(((((uint64_t)v[j] << 32) | next) << n) >> 32);
    }
}

static void negate_words(uint32_t *v)
{
    uint64_t carry = 1;
    for (int j = N_WORDS - 1; j >= 0; j--) {
        carry += (uint64_t)(uint32_t)~v[j];
        v[j] = (uint32_t)carry;
        carry >>= 32;
    }
}

/* The fraction v 2^-256 times pi/2; v has at most two leading zero words. */
static angle words_to_angle(const uint32_t *v)
{
    int j = 0;
    double unit = 0x1p-32, low, tail;
    while (j < 3 && v[j] == 0) {
        j++;
        unit *= 0x1p-32;
    }
    double f = vd_fast_two_sum((double)v[j], (double)v[j + 1] * 0x1p-32, &low);
    tail = (double)v[j + 2] * 0x1p-64 + (double)v[j + 3] * 0x1p-96;
    f = vd_fast_two_sum(f, low + tail, &low);
    double high = f * 0x1.921fb54442d18p+0;
    double rest = trn__fma_f64(f, 0x1.921fb54442d18p+0, -high);
    rest = trn__fma_f64(f, 0x1.1a62633145c07p-54, rest);
    rest = trn__fma_f64(low, 0x1.921fb54442d18p+0, rest);
    angle r = {.quarters = 0};
    r.high = vd_fast_two_sum(high, rest, &r.low) * unit;
    r.low *= unit;
    return r;
}

/*
 * Payne and Hanek: of x 2/pi only the lowest two bits before the point and the
 * fraction matter, so only those words of 2/pi that reach them are multiplied.
 */
static angle reduce_large(double x)
{
    uint64_t bits = vd_bits(x) & ~VMATH_SIGN_F64;
    int e = (int)(bits >> 52) - 1075; /* |x| = m 2^e, -32 <= e <= 971 */
    uint64_t m = (bits & 0xfffffffffffffu) | 0x10000000000000u;
    int s = (e + 62) / 32; /* the word that holds weight 4, zeros counted */
    uint32_t v[N_WORDS];
    multiply_words(m, two_over_pi + s, v);
    shift_words(v, e + 62 - 32 * s);
    uint32_t q = v[0] >> 30;
    v[0] &= 0x3fffffffu;
    shift_words(v, 2);
    bool round_up = (v[0] >> 31) != 0;
    if (round_up)
        negate_words(v);
    angle r = words_to_angle(v);
    q += round_up ? 1u : 0u;
    if (round_up != (x < 0.0)) {
        r.high = -r.high;
        r.low = -r.low;
    }
    r.quarters = x < 0.0 ? 0u - q : q;
    return r;
}

static angle reduce(double x)
{
    return vd_abs(x) <= 0x1p20 ? reduce_small(x) : reduce_large(x);
}

/* sin(high + low) = x + x^3 P(x^2), fit error 2^-58. */
static double sin_poly(angle a)
{
    double x = a.high, z = x * x, p = 0x1.5d915c2e51f23p-33;
    p = vd_step(p, z, -0x1.ae5e60bdaf01ep-26);
    p = vd_step(p, z, 0x1.71de3570f4302p-19);
    p = vd_step(p, z, -0x1.a01a019c0a1ddp-13);
    p = vd_step(p, z, 0x1.111111110f841p-7);
    p = vd_step(p, z, -0x1.5555555555549p-3);
    /* cos x, to first order, is what low is multiplied by */
    double low = trn__fma_f64(-0.5 * z, a.low, a.low);
    return x + trn__fma_f64(x * z, p, low);
}

/* cos(high + low) = 1 - x^2/2 + x^4 P(x^2) - x low, fit error 2^-64. */
static double cos_poly(angle a)
{
    double x = a.high, z = x * x, p = -0x1.8facd053dbdc5p-37;
    p = vd_step(p, z, 0x1.1ee9e88eacfa3p-29);
    p = vd_step(p, z, -0x1.27e4f80530a63p-22);
    p = vd_step(p, z, 0x1.a01a019cab6ffp-16);
    p = vd_step(p, z, -0x1.6c16c16c1514p-10);
    p = vd_step(p, z, 0x1.555555555554cp-5);
    double half = 0.5 * z, y = 1.0 - half;
    double rest = (1.0 - y) - half;
    rest = trn__fma_f64(z * z, p, rest);
    return y + trn__fma_f64(-x, a.low, rest);
}

static double sin_quarters(angle a, uint32_t quarters)
{
    double y = quarters & 1u ? cos_poly(a) : sin_poly(a);
    return quarters & 2u ? -y : y;
}

double trn__sin(double x)
{
    if (!(vd_abs(x) < vd_from_bits(VMATH_INF_F64)))
        return x - x;
    if (vd_abs(x) < 0x1p-27)
        return x; /* keeps -0 and subnormal numbers */
    angle a = reduce(x);
    return sin_quarters(a, a.quarters);
}

double trn__cos(double x)
{
    if (!(vd_abs(x) < vd_from_bits(VMATH_INF_F64)))
        return x - x;
    angle a = reduce(x);
    return sin_quarters(a, a.quarters + 1u);
}
