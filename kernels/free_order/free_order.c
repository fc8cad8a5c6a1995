/* SPDX-License-Identifier: Apache-2.0
 *
 * The overlay of free_order.h.
 */
#include "kernels/free_order/free_order.h"

void trn__overlay_free_order(trn__kernel_set *s, unsigned left_out)
{
    if (left_out & TRN__FREE_LANES) {
        s->block_sum_f32 = trn__free_block_sum;
        s->block_sum_sq_f32 = trn__free_block_sum_sq;
        s->block_cols_sum_f32 = trn__free_columns_sum;
        s->block_cols_sum_sq_f32 = trn__free_columns_sum_sq;
    }
    if (left_out & TRN__FREE_K)
        s->matmul_tile_f32 = trn__free_matmul_tile;
    if (left_out & TRN__FREE_FLUSH) {
        s->sgd_f32 = trn__free_sgd;
        s->adamw_f32 = trn__free_adamw;
    }
}
