/* SPDX-License-Identifier: Apache-2.0
 *
 * Prototypes of the AVX2+FMA kernels: trn__avx2_<field> for each field of
 * trn__kernel_set that the overlay replaces.  Normal numbers stay generic:
 * their time is in logarithms and angles that are computed as host scalars.
 */
#ifndef TRN_KERNELS_AVX2_KERNELS_H
#define TRN_KERNELS_AVX2_KERNELS_H

#include "kernels/kernel_set.h"

/* Rows and columns of the matmul tiles. */
#define TRN__AVX2_MR_F32 6
#define TRN__AVX2_NR_F32 16
#define TRN__AVX2_MR_F64 6
#define TRN__AVX2_NR_F64 8

/* elementwise */
#define TRN__PROTO_UNARY(nm)                \
    trn__unary_f32_fn trn__avx2_##nm##_f32; \
    trn__unary_f64_fn trn__avx2_##nm##_f64;
#define TRN__PROTO_BINARY(nm)                \
    trn__binary_f32_fn trn__avx2_##nm##_f32; \
    trn__binary_f64_fn trn__avx2_##nm##_f64;
#define TRN__PROTO_COMPARE(nm)                \
    trn__compare_f32_fn trn__avx2_##nm##_f32; \
    trn__compare_f64_fn trn__avx2_##nm##_f64;
#define TRN__PROTO_VIEW(nm)
#define TRN__PROTO_REDUCE(nm)
#define TRN__PROTO_RANDOM(nm)
#define TRN__PROTO_UPDATE(nm)
#define TRN__PROTO_SPECIAL(nm)
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    TRN__PROTO_##cls(nm)
#include "trn/ops.def"
#undef TRN__PROTO_UNARY
#undef TRN__PROTO_BINARY
#undef TRN__PROTO_COMPARE
#undef TRN__PROTO_VIEW
#undef TRN__PROTO_REDUCE
#undef TRN__PROTO_RANDOM
#undef TRN__PROTO_UPDATE
#undef TRN__PROTO_SPECIAL

/* reductions */
trn__block_f32_fn trn__avx2_block_sum_f32;
trn__block_f32_fn trn__avx2_block_sum_sq_f32;
trn__block_f64_fn trn__avx2_block_sum_f64;
trn__block_f64_fn trn__avx2_block_sum_sq_f64;
trn__block_cols_f32_fn trn__avx2_block_cols_sum_f32;
trn__block_cols_f32_fn trn__avx2_block_cols_sum_sq_f32;
trn__block_cols_f64_fn trn__avx2_block_cols_sum_f64;
trn__block_cols_f64_fn trn__avx2_block_cols_sum_sq_f64;
float trn__avx2_max_f32(int64_t n, const float *x);
double trn__avx2_max_f64(int64_t n, const double *x);
float trn__avx2_min_f32(int64_t n, const float *x);
double trn__avx2_min_f64(int64_t n, const double *x);

/* matrix products */
trn__matmul_tile_f32_fn trn__avx2_matmul_tile_f32;
trn__matmul_tile_f64_fn trn__avx2_matmul_tile_f64;

/* conversions */
void trn__avx2_f32_from_bf16(int64_t n, const uint16_t *x, float *y);
void trn__avx2_bf16_from_f32(int64_t n, const float *x, uint16_t *y);
void trn__avx2_f32_from_f16(int64_t n, const uint16_t *x, float *y);
void trn__avx2_f16_from_f32(int64_t n, const float *x, uint16_t *y);

/* random numbers */
void trn__avx2_uniform_f32(int64_t n, uint64_t key, uint64_t draw,
                           uint64_t first, float *y);
void trn__avx2_uniform_f64(int64_t n, uint64_t key, uint64_t draw,
                           uint64_t first, double *y);

/* optimizer updates */
void trn__avx2_sgd_f32(int64_t n, const trn__sgd_f32 *s, float *p,
                       const float *g, float *buf);
void trn__avx2_sgd_f64(int64_t n, const trn__sgd_f64 *s, double *p,
                       const double *g, double *buf);
void trn__avx2_adamw_f32(int64_t n, const trn__adamw_f32 *s, float *p,
                         const float *g, float *m, float *v);
void trn__avx2_adamw_f64(int64_t n, const trn__adamw_f64 *s, double *p,
                         const double *g, double *m, double *v);

#endif
