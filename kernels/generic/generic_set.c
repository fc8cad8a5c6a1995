/* SPDX-License-Identifier: Apache-2.0
 *
 * The generic kernel set: complete, plain C.  Elementwise fields are filled by
 * an expansion of ops.def, the others by name; the tests find a forgotten one
 * as a NULL.
 */
#include "kernels/generic/generic_kernels.h"

static const trn__kernel_set generic_set = {
#ifdef __FMA__ /* the user's flags: hardware FMA, the same bits */
    .name = "generic+fma",
#else
    .name = "generic",
#endif

#define FIELD(f) .f = trn__generic_##f,
#define FIELD_UNARY(nm) FIELD(nm##_f32) FIELD(nm##_f64)
#define FIELD_BINARY(nm) FIELD(nm##_f32) FIELD(nm##_f64)
#define FIELD_COMPARE(nm) FIELD(nm##_f32) FIELD(nm##_f64)
#define FIELD_VIEW(nm)
#define FIELD_REDUCE(nm)
#define FIELD_RANDOM(nm)
#define FIELD_UPDATE(nm)
#define FIELD_SPECIAL(nm)
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    FIELD_##cls(nm)
#include "trn/ops.def"

    .mr_f32 = TRN__GENERIC_MR_F32,
    .nr_f32 = TRN__GENERIC_NR_F32,
    .mr_f64 = TRN__GENERIC_MR_F64,
    .nr_f64 = TRN__GENERIC_NR_F64,
    .block_sum_f32 = trn__generic_block_sum_f32,
    .block_sum_sq_f32 = trn__generic_block_sum_sq_f32,
    .block_sum_f64 = trn__generic_block_sum_f64,
    .block_sum_sq_f64 = trn__generic_block_sum_sq_f64,
    .block_cols_sum_f32 = trn__generic_block_cols_sum_f32,
    .block_cols_sum_sq_f32 = trn__generic_block_cols_sum_sq_f32,
    .block_cols_sum_f64 = trn__generic_block_cols_sum_f64,
    .block_cols_sum_sq_f64 = trn__generic_block_cols_sum_sq_f64,
    .max_f32 = trn__generic_max_f32,
    .max_f64 = trn__generic_max_f64,
    .min_f32 = trn__generic_min_f32,
    .min_f64 = trn__generic_min_f64,
    .matmul_tile_f32 = trn__generic_matmul_tile_f32,
    .matmul_tile_f64 = trn__generic_matmul_tile_f64,
    .f32_from_bf16 = trn__generic_f32_from_bf16,
    .bf16_from_f32 = trn__generic_bf16_from_f32,
    .f32_from_f16 = trn__generic_f32_from_f16,
    .f16_from_f32 = trn__generic_f16_from_f32,
    .uniform_f32 = trn__generic_uniform_f32,
    .uniform_f64 = trn__generic_uniform_f64,
    .normal_f32 = trn__generic_normal_f32,
    .normal_f64 = trn__generic_normal_f64,
    .sgd_f32 = trn__generic_sgd_f32,
    .sgd_f64 = trn__generic_sgd_f64,
    .adamw_f32 = trn__generic_adamw_f32,
    .adamw_f64 = trn__generic_adamw_f64,
};

void trn__set_generic(trn__kernel_set *s)
{
    *s = generic_set;
}
