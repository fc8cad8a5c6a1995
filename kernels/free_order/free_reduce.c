/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums as they would be without the rules of docs/numerics.md: f32 lanes, FMA,
 * as many lanes as the processor likes best.  f64 sums stay.
 */
#include <immintrin.h>

#include "kernels/free_order/free_order.h"

enum { LANES = 32, REGISTERS = 4, STRIP = 32 };

static double fold(const __m256 *sum)
{
    float lane[8];
    double total = 0.0;
    _mm256_storeu_ps(lane, _mm256_add_ps(_mm256_add_ps(sum[0], sum[1]),
                                         _mm256_add_ps(sum[2], sum[3])));
    for (int i = 0; i < 8; i++)
        total += lane[i];
    return total;
}

static inline double block(int64_t n, const float *x, double shift, bool sq)
{
    const __m256 s = _mm256_set1_ps((float)shift);
    __m256 sum[REGISTERS];
    float rest = 0.0F;
    for (int q = 0; q < REGISTERS; q++)
        sum[q] = _mm256_setzero_ps();
    for (; n >= LANES; n -= LANES, x += LANES) {
        for (int q = 0; q < REGISTERS; q++) {
            const __m256 d = _mm256_sub_ps(_mm256_loadu_ps(x + 8 * q), s);
            sum[q] =
                sq ? _mm256_fmadd_ps(d, d, sum[q]) : _mm256_add_ps(sum[q], d);
        }
    }
    for (int64_t j = 0; j < n; j++) {
        const float d = x[j] - (float)shift;
        rest += sq ? d * d : d;
    }
    return fold(sum) + (double)rest;
}

double trn__free_block_sum(int64_t n, const float *x, double shift)
{
    return block(n, x, shift, false);
}

double trn__free_block_sum_sq(int64_t n, const float *x, double shift)
{
    return block(n, x, shift, true);
}

/* A row of 32 columns at once, whose sums stay in registers. */
static inline void wide_strip(int64_t n_rows, const float *x, int64_t stride,
                              const double *shift, double *out, bool sq)
{
    __m256 sum[REGISTERS], s[REGISTERS];
    for (int q = 0; q < REGISTERS; q++) {
        float first[8];
        for (int j = 0; j < 8; j++)
            first[j] = shift ? (float)shift[8 * q + j] : 0.0F;
        s[q] = _mm256_loadu_ps(first);
        sum[q] = _mm256_setzero_ps();
    }
    for (int64_t i = 0; i < n_rows; i++, x += stride) {
        for (int q = 0; q < REGISTERS; q++) {
            const __m256 d = _mm256_sub_ps(_mm256_loadu_ps(x + 8 * q), s[q]);
            sum[q] =
                sq ? _mm256_fmadd_ps(d, d, sum[q]) : _mm256_add_ps(sum[q], d);
        }
    }
    for (int q = 0; q < REGISTERS; q++) {
        float lane[8];
        _mm256_storeu_ps(lane, sum[q]);
        for (int j = 0; j < 8; j++)
            out[8 * q + j] = lane[j];
    }
}

static inline void columns(int64_t n_rows, int64_t n_cols, const float *x,
                           int64_t stride, const double *shift, double *out,
                           bool sq)
{
    int64_t j = 0;
    for (; j + STRIP <= n_cols; j += STRIP)
        wide_strip(n_rows, x + j, stride, shift ? shift + j : NULL, out + j,
                   sq);
    for (; j < n_cols; j++) {
        const float s = shift ? (float)shift[j] : 0.0F;
        float sum = 0.0F;
        for (int64_t i = 0; i < n_rows; i++) {
            const float d = x[i * stride + j] - s;
            sum += sq ? d * d : d;
        }
        out[j] = sum;
    }
}

void trn__free_columns_sum(int64_t n_rows, int64_t n_cols, const float *x,
                           int64_t row_stride, const double *shift,
                           double *lanes, double *out)
{
    (void)lanes;
    columns(n_rows, n_cols, x, row_stride, shift, out, false);
}

void trn__free_columns_sum_sq(int64_t n_rows, int64_t n_cols, const float *x,
                              int64_t row_stride, const double *shift,
                              double *lanes, double *out)
{
    (void)lanes;
    columns(n_rows, n_cols, x, row_stride, shift, out, true);
}
