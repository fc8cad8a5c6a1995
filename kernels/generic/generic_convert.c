/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversions between f32 and the 16-bit formats, for any processor.
 */
#include "kernels/convert.h"
#include "kernels/generic/generic_kernels.h"

void trn__generic_f32_from_bf16(int64_t n, const uint16_t *x, float *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = trn__bf16_to_f32(x[i]);
}

void trn__generic_bf16_from_f32(int64_t n, const float *x, uint16_t *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = trn__f32_to_bf16(x[i]);
}

void trn__generic_f32_from_f16(int64_t n, const uint16_t *x, float *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = trn__f16_to_f32(x[i]);
}

void trn__generic_f16_from_f32(int64_t n, const float *x, uint16_t *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = trn__f32_to_f16(x[i]);
}
