/* SPDX-License-Identifier: Apache-2.0
 *
 * The AVX2 tile of the f32 matrix product: 6 rows of 16 columns.
 *
 * Twelve accumulators hide the latency of the FMA units (4 cycles on 2 ports
 * need 8), two registers hold a row of b and two the broadcast elements of a:
 * all sixteen are in use.  The inner loop never knows about edges: the panels
 * are padded with zeros, and an edge tile leaves through a small array.
 */
#include <immintrin.h>

#include "kernels/avx2/avx2_kernels.h"

enum { MR = TRN__AVX2_MR_F32, NR = TRN__AVX2_NR_F32 };

/* One row of the tile: c += a[i] * (b0, b1), each lane with one rounding. */
#define ROW(i)                                         \
    do {                                               \
        const __m256 x = _mm256_broadcast_ss(a + (i)); \
        c##i##0 = _mm256_fmadd_ps(x, b0, c##i##0);     \
        c##i##1 = _mm256_fmadd_ps(x, b1, c##i##1);     \
    } while (0)

#define DECLARE(i)                        \
    __m256 c##i##0 = _mm256_setzero_ps(); \
    __m256 c##i##1 = _mm256_setzero_ps()

#define STORE(i)                                                        \
    do {                                                                \
        float *row = c + (i)*ldc;                                       \
        if (!first) {                                                   \
            c##i##0 = _mm256_add_ps(_mm256_loadu_ps(row), c##i##0);     \
            c##i##1 = _mm256_add_ps(_mm256_loadu_ps(row + 8), c##i##1); \
        }                                                               \
        _mm256_storeu_ps(row, c##i##0);                                 \
        _mm256_storeu_ps(row + 8, c##i##1);                             \
    } while (0)

static void full_tile(int64_t k, const float *a, const float *b, float *c,
                      int64_t ldc, bool first)
{
    DECLARE(0);
    DECLARE(1);
    DECLARE(2);
    DECLARE(3);
    DECLARE(4);
    DECLARE(5);
    for (int64_t p = 0; p < k; p++) {
        const __m256 b0 = _mm256_loadu_ps(b);
        const __m256 b1 = _mm256_loadu_ps(b + 8);
        ROW(0);
        ROW(1);
        ROW(2);
        ROW(3);
        ROW(4);
        ROW(5);
        a += MR;
        b += NR;
    }
    STORE(0);
    STORE(1);
    STORE(2);
    STORE(3);
    STORE(4);
    STORE(5);
}

void trn__avx2_matmul_tile_f32(int64_t k, const float *a, const float *b,
                               float *c, int64_t ldc, int m, int n, bool first)
{
    if (m == MR && n == NR) {
        full_tile(k, a, b, c, ldc, first);
        return;
    }
    float tile[MR * NR];
    full_tile(k, a, b, tile, NR, true);
    for (int i = 0; i < m; i++) {
        float *row = c + i * ldc;
        for (int j = 0; j < n; j++)
            row[j] = first ? tile[i * NR + j] : row[j] + tile[i * NR + j];
    }
}
