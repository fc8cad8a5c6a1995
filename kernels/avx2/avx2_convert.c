/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversions between f32 and the 16-bit formats for AVX2 with F16C.
 *
 * The f16 instructions round to nearest even by their operand, keep subnormals
 * whatever the processor's flags say, and agree with convert.h on every input.
 * For bf16 the loops of convert.h are short enough for the vectoriser.
 */
#include <immintrin.h>

#include "kernels/avx2/avx2_kernels.h"
#include "kernels/convert.h"

void trn__avx2_f32_from_bf16(int64_t n, const uint16_t *x, float *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = trn__bf16_to_f32(x[i]);
}

void trn__avx2_bf16_from_f32(int64_t n, const float *x, uint16_t *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = trn__f32_to_bf16(x[i]);
}

void trn__avx2_f32_from_f16(int64_t n, const uint16_t *x, float *y)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i h;
        memcpy(&h, x + i, sizeof h);
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(h));
    }
    for (; i < n; i++)
        y[i] = trn__f16_to_f32(x[i]);
}

void trn__avx2_f16_from_f32(int64_t n, const float *x, uint16_t *y)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m128i h =
            _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT);
        memcpy(y + i, &h, sizeof h);
    }
    for (; i < n; i++)
        y[i] = trn__f32_to_f16(x[i]);
}
