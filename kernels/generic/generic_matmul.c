/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix product tiles of the generic set: one k-block of a 4x4 tile.
 *
 * Every element of the tile is one chain of fused multiply-adds in increasing
 * k, so its bits do not depend on the shape of the tile, and a set with another
 * tile agrees with this one.
 */
#include "kernels/fma.h"
#include "kernels/generic/generic_kernels.h"

enum {
    MR_F32 = TRN__GENERIC_MR_F32,
    NR_F32 = TRN__GENERIC_NR_F32,
    MR_F64 = TRN__GENERIC_MR_F64,
    NR_F64 = TRN__GENERIC_NR_F64,
};

/* a: [k, MR]   b: [k, NR]   c: [m, n], rows ldc apart */
void trn__generic_matmul_tile_f32(int64_t k, const float *a, const float *b,
                                  float *c, int64_t ldc, int m, int n,
                                  bool first)
{
    float sum[MR_F32][NR_F32] = {{0.0f}};
    for (int64_t p = 0; p < k; p++) {
        for (int i = 0; i < MR_F32; i++) {
            for (int j = 0; j < NR_F32; j++)
                sum[i][j] = trn__fma_f32(a[i], b[j], sum[i][j]);
        }
        a += MR_F32;
        b += NR_F32;
    }
    for (int i = 0; i < m; i++) {
        float *row = c + i * ldc;
        for (int j = 0; j < n; j++)
            row[j] = first ? sum[i][j] : row[j] + sum[i][j];
    }
}

void trn__generic_matmul_tile_f64(int64_t k, const double *a, const double *b,
                                  double *c, int64_t ldc, int m, int n,
                                  bool first)
{
    double sum[MR_F64][NR_F64] = {{0.0}};
    for (int64_t p = 0; p < k; p++) {
        for (int i = 0; i < MR_F64; i++) {
            for (int j = 0; j < NR_F64; j++)
                sum[i][j] = trn__fma_f64(a[i], b[j], sum[i][j]);
        }
        a += MR_F64;
        b += NR_F64;
    }
    for (int i = 0; i < m; i++) {
        double *row = c + i * ldc;
        for (int j = 0; j < n; j++)
            row[j] = first ? sum[i][j] : row[j] + sum[i][j];
    }
}
