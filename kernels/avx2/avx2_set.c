/* SPDX-License-Identifier: Apache-2.0
 *
 * The AVX2+FMA overlay: replaces every kernel of the generic set but the
 * normal random numbers.  The elementwise part is an expansion of ops.def.
 */
#include "kernels/avx2/avx2_kernels.h"

#define SET_UNARY(nm)                   \
    s->nm##_f32 = trn__avx2_##nm##_f32; \
    s->nm##_f64 = trn__avx2_##nm##_f64;
#define SET_BINARY(nm) SET_UNARY(nm)
#define SET_COMPARE(nm) SET_UNARY(nm)
#define SET_VIEW(nm)
#define SET_REDUCE(nm)
#define SET_RANDOM(nm)
#define SET_UPDATE(nm)
#define SET_SPECIAL(nm)

static void overlay_elementwise(trn__kernel_set *s)
{
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    SET_##cls(nm)
#include "trn/ops.def"
}

void trn__overlay_avx2(trn__kernel_set *s)
{
    s->name = "avx2";
    overlay_elementwise(s);
    s->mr_f32 = TRN__AVX2_MR_F32;
    s->nr_f32 = TRN__AVX2_NR_F32;
    s->mr_f64 = TRN__AVX2_MR_F64;
    s->nr_f64 = TRN__AVX2_NR_F64;
    s->block_sum_f32 = trn__avx2_block_sum_f32;
    s->block_sum_sq_f32 = trn__avx2_block_sum_sq_f32;
    s->block_sum_f64 = trn__avx2_block_sum_f64;
    s->block_sum_sq_f64 = trn__avx2_block_sum_sq_f64;
    s->block_cols_sum_f32 = trn__avx2_block_cols_sum_f32;
    s->block_cols_sum_sq_f32 = trn__avx2_block_cols_sum_sq_f32;
    s->block_cols_sum_f64 = trn__avx2_block_cols_sum_f64;
    s->block_cols_sum_sq_f64 = trn__avx2_block_cols_sum_sq_f64;
    s->max_f32 = trn__avx2_max_f32;
    s->max_f64 = trn__avx2_max_f64;
    s->min_f32 = trn__avx2_min_f32;
    s->min_f64 = trn__avx2_min_f64;
    s->matmul_tile_f32 = trn__avx2_matmul_tile_f32;
    s->matmul_tile_f64 = trn__avx2_matmul_tile_f64;
    s->f32_from_bf16 = trn__avx2_f32_from_bf16;
    s->bf16_from_f32 = trn__avx2_bf16_from_f32;
    s->f32_from_f16 = trn__avx2_f32_from_f16;
    s->f16_from_f32 = trn__avx2_f16_from_f32;
    s->uniform_f32 = trn__avx2_uniform_f32;
    s->uniform_f64 = trn__avx2_uniform_f64;
    s->sgd_f32 = trn__avx2_sgd_f32;
    s->sgd_f64 = trn__avx2_sgd_f64;
    s->adamw_f32 = trn__avx2_adamw_f32;
    s->adamw_f64 = trn__avx2_adamw_f64;
}
