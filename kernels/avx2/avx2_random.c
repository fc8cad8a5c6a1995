/* SPDX-License-Identifier: Apache-2.0
 *
 * Uniform random numbers for AVX2: eight Philox blocks at once, one in each
 * 32-bit lane.
 *
 * The words then change from "word w of eight blocks" to "four words of block
 * b", which is the order of the elements.  Whatever does not fill eight whole
 * blocks, at the start or at the end, is left to the generic kernel.
 */
#include <immintrin.h>

#include "kernels/avx2/avx2_kernels.h"
#include "kernels/generic/generic_kernels.h"
#include "kernels/philox.h"

/* pair[i]: the words of block i in its low, of block i + 4 in its high half */
typedef struct blocks8 {
    __m256i pair[4];
} blocks8;

static inline __m256i splat(uint64_t word)
{
    return _mm256_set1_epi32((int32_t)(uint32_t)word);
}

/* Both halves of the products of eight lanes; the multiplier reads even ones */
static inline void multiply(__m256i x, __m256i m, __m256i *high, __m256i *low)
{
    const __m256i even = _mm256_mul_epu32(x, m);
    const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), m);
    *high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    *low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}

static inline __m256i xor3(__m256i a, __m256i b, __m256i c)
{
    return _mm256_xor_si256(_mm256_xor_si256(a, b), c);
}

static inline blocks8 philox8(uint64_t key, uint64_t draw, uint64_t block)
{
    /* Lane i is block + i; where that wraps in 32 bits, the high word is one
     * more: a comparison gives -1, and with the top bits flipped it is one of
     * unsigned numbers. */
    const __m256i top = splat(0x80000000u);
    const __m256i base = splat(block);
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256i c0 = _mm256_add_epi32(base, lane);
    const __m256i wrapped = _mm256_cmpgt_epi32(_mm256_xor_si256(base, top),
                                               _mm256_xor_si256(c0, top));
    __m256i c1 = _mm256_sub_epi32(splat(block >> 32), wrapped);
    __m256i c2 = splat(draw);
    __m256i c3 = splat(draw >> 32);
    __m256i k0 = splat(key);
    __m256i k1 = splat(key >> 32);
    const __m256i m0 = splat(TRN__PHILOX_M0);
    const __m256i m1 = splat(TRN__PHILOX_M1);
    for (int round = 0; round < TRN__PHILOX_ROUNDS; round++) {
        __m256i high0, low0, high1, low1;
        multiply(c0, m0, &high0, &low0);
        multiply(c2, m1, &high1, &low1);
        c0 = xor3(high1, c1, k0);
        c1 = low1;
        c2 = xor3(high0, c3, k1);
        c3 = low0;
        k0 = _mm256_add_epi32(k0, splat(TRN__PHILOX_W0));
        k1 = _mm256_add_epi32(k1, splat(TRN__PHILOX_W1));
    }
    /* Transposition of 4x4 words in each half of the registers. */
    const __m256i s0 = _mm256_unpacklo_epi32(c0, c1);
    const __m256i s1 = _mm256_unpacklo_epi32(c2, c3);
    const __m256i s2 = _mm256_unpackhi_epi32(c0, c1);
    const __m256i s3 = _mm256_unpackhi_epi32(c2, c3);
    return (blocks8){{
        _mm256_unpacklo_epi64(s0, s1),
        _mm256_unpackhi_epi64(s0, s1),
        _mm256_unpacklo_epi64(s2, s3),
        _mm256_unpackhi_epi64(s2, s3),
    }};
}

/* How many of n elements come before the next multiple of `each`. */
static int64_t head_length(int64_t n, uint64_t first, uint64_t each)
{
    const int64_t head = (int64_t)((each - first % each) % each);
    return head < n ? head : n;
}

void trn__avx2_uniform_f32(int64_t n, uint64_t key, uint64_t draw,
                           uint64_t first, float *y)
{
    int64_t i = head_length(n, first, 4);
    trn__generic_uniform_f32(i, key, draw, first, y);
    for (; i + 32 <= n; i += 32) {
        const blocks8 b = philox8(key, draw, (first + (uint64_t)i) / 4);
        for (int j = 0; j < 4; j++) {
            const __m256 u = _mm256_mul_ps(
                _mm256_cvtepi32_ps(_mm256_srli_epi32(b.pair[j], 8)),
                _mm256_set1_ps(0x1p-24f));
            _mm_storeu_ps(y + i + 4 * j, _mm256_castps256_ps128(u));
            _mm_storeu_ps(y + i + 4 * j + 16, _mm256_extractf128_ps(u, 1));
        }
    }
    trn__generic_uniform_f32(n - i, key, draw, first + (uint64_t)i, y + i);
}

/* Integers below 2^52 as f64: their bits in the mantissa of 2^52. */
static inline __m256d to_f64(__m256i x)
{
    const __m256d magic = _mm256_set1_pd(0x1p52);
    return _mm256_sub_pd(
        _mm256_castsi256_pd(_mm256_or_si256(x, _mm256_castpd_si256(magic))),
        magic);
}

void trn__avx2_uniform_f64(int64_t n, uint64_t key, uint64_t draw,
                           uint64_t first, double *y)
{
    const __m256i word = _mm256_set1_epi64x(0xffffffff);
    int64_t i = head_length(n, first, 2);
    trn__generic_uniform_f64(i, key, draw, first, y);
    for (; i + 16 <= n; i += 16) {
        const blocks8 b = philox8(key, draw, (first + (uint64_t)i) / 2);
        for (int j = 0; j < 4; j++) {
            /* The two parts have 53 bits together: their sum is exact. */
            const __m256d a = to_f64(_mm256_and_si256(b.pair[j], word));
            const __m256d c = to_f64(_mm256_srli_epi64(b.pair[j], 32 + 11));
            const __m256d u =
                _mm256_add_pd(_mm256_mul_pd(a, _mm256_set1_pd(0x1p-32)),
                              _mm256_mul_pd(c, _mm256_set1_pd(0x1p-53)));
            _mm_storeu_pd(y + i + 2 * j, _mm256_castpd256_pd128(u));
            _mm_storeu_pd(y + i + 2 * j + 8, _mm256_extractf128_pd(u, 1));
        }
    }
    trn__generic_uniform_f64(n - i, key, draw, first + (uint64_t)i, y + i);
}
