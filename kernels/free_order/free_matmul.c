/* SPDX-License-Identifier: Apache-2.0
 *
 * The f32 tile of the matrix product when k may be added in any order.
 *
 * A full tile is that of the rules: its twelve chains keep both FMA units busy.
 * An edge tile of up to three rows takes half as many registers for two chains
 * along k, one for even and one for odd places, and half the time.
 */
#include <immintrin.h>

#include "kernels/avx2/avx2_kernels.h"
#include "kernels/free_order/free_order.h"

enum { MR = TRN__AVX2_MR_F32, NR = TRN__AVX2_NR_F32, ROWS = 3 };

/* One place of k: sum += a[i] * (b0, b1) for each row. */
static inline void place(const float *a, const float *b, __m256 sum[ROWS][2])
{
    const __m256 b0 = _mm256_loadu_ps(b), b1 = _mm256_loadu_ps(b + 8);
    for (int i = 0; i < ROWS; i++) {
        const __m256 x = _mm256_broadcast_ss(a + i);
        sum[i][0] = _mm256_fmadd_ps(x, b0, sum[i][0]);
        sum[i][1] = _mm256_fmadd_ps(x, b1, sum[i][1]);
    }
}

static void two_chains(int64_t k, const float *a, const float *b, float *y)
{
    __m256 even[ROWS][2], odd[ROWS][2];
    for (int i = 0; i < ROWS; i++)
        for (int h = 0; h < 2; h++)
            even[i][h] = odd[i][h] = _mm256_setzero_ps();
    int64_t p = 0;
    for (; p + 2 <= k; p += 2, a += 2 * MR, b += 2 * NR) {
        place(a, b, even);
        place(a + MR, b + NR, odd);
    }
    if (p < k)
        place(a, b, even);
    for (int i = 0; i < ROWS; i++)
        for (int h = 0; h < 2; h++)
            _mm256_storeu_ps(y + i * NR + 8 * h,
                             _mm256_add_ps(even[i][h], odd[i][h]));
}

void trn__free_matmul_tile(int64_t k, const float *a, const float *b, float *c,
                           int64_t ldc, int m, int n, bool first)
{
    float tile[ROWS * NR];
    if (m > ROWS) {
        trn__avx2_matmul_tile_f32(k, a, b, c, ldc, m, n, first);
        return;
    }
    two_chains(k, a, b, tile);
    for (int i = 0; i < m; i++) {
        float *row = c + i * ldc;
        for (int j = 0; j < n; j++)
            row[j] = first ? tile[i * NR + j] : row[j] + tile[i * NR + j];
    }
}
