/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversions of one element between f32, f64 and the 16-bit formats.
 *
 * Rounding is to nearest, ties to even; subnormals are kept, overflow gives an
 * infinity, a NaN stays a NaN and becomes quiet.  Integer arithmetic on the bit
 * patterns does it, so no instruction set and no flag of the processor matters.
 */
#ifndef TRN_KERNELS_CONVERT_H
#define TRN_KERNELS_CONVERT_H

#include <stdint.h>
#include <string.h>

static inline uint32_t trn__bits_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float trn__f32_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* bf16 is the upper half of an f32. */
static inline float trn__bf16_to_f32(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    const uint32_t quiet = (bits & 0x7fffffffu) > 0x7f800000u ? 0x400000u : 0u;
    return trn__f32_of_bits(bits | quiet);
}

static inline uint16_t trn__f32_to_bf16(float x)
{
    const uint32_t bits = trn__bits_f32(x);
    /* A carry out of the mantissa raises the exponent, up to infinity. */
    const uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    const uint32_t nan = bits | 0x400000u;
    return (uint16_t)(((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded) >>
                      16);
}

/* f16: sign, 5 bits of exponent (bias 15), 10 bits of mantissa. */
static inline float trn__f16_to_f32(uint16_t x)
{
    const uint32_t sign = (uint32_t)(x & 0x8000u) << 16;
    const uint32_t rest = (uint32_t)(x & 0x7fffu) << 13;
    uint32_t bits = rest + ((127u - 15u) << 23);
    if (rest > 0x0f800000u)
        bits = rest | 0x7fc00000u;
    else if (rest == 0x0f800000u)
        bits = 0x7f800000u;
    else if (rest < 0x00800000u) /* zero or subnormal: a multiple of 2^-24 */
        bits = trn__bits_f32((float)(int32_t)(x & 0x3ffu) * 0x1p-24f);
    return trn__f32_of_bits(sign | bits);
}

static inline uint16_t trn__f32_to_f16(float x)
{
    const uint32_t bits = trn__bits_f32(x);
    const uint32_t sign = bits >> 16 & 0x8000u;
    const uint32_t size = bits & 0x7fffffffu;
    /* The usual case; above the largest f16 the carry reaches infinity. */
    uint32_t half =
        (size - ((127u - 15u) << 23) + 0xfffu + (size >> 13 & 1u)) >> 13;
    if (size > 0x7f800000u)
        half = 0x7e00u | (size >> 13 & 0x3ffu);
    else if (size >= 0x47800000u) /* 2^16 */
        half = 0x7c00u;
    else if (size < 0x38800000u) /* 2^-14: adding 1/2 rounds to 2^-24 */
        half = trn__bits_f32(trn__f32_of_bits(size) + 0.5f) - 0x3f000000u;
    return (uint16_t)(sign | half);
}

/*
 * f64 to f32 with rounding to odd: of the two neighbours of an inexact value
 * the one whose last bit is 1.  A second rounding to at most 22 bits then gives
 * what one rounding of x would have given.
 */
static inline float trn__f64_to_f32_odd(double x)
{
    const float y = (float)x;
    const double back = (double)y;
    uint32_t bits = trn__bits_f32(y);
    if (back != x && x == x && (bits & 1u) == 0) {
        const double size = x < 0 ? -x : x;
        const double got = back < 0 ? -back : back;
        bits += size > got ? 1u : UINT32_MAX; /* from an infinity: largest */
    }
    return trn__f32_of_bits(bits);
}

#endif
