/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels without some rules of docs/numerics.md, which the benchmark's case
 * "rules" lays over the AVX2 set to show what those rules cost.
 *
 * No library has them, only that case's own builds (TRN_FREE_ORDER), where the
 * rules can be left out at run time: two models of one build differ in nothing
 * else, while two builds differ by some percent in where their loops lie.
 */
#ifndef TRN_KERNELS_FREE_ORDER_H
#define TRN_KERNELS_FREE_ORDER_H

#include "kernels/kernel_set.h"

/* What is left out. */
enum {
    TRN__FREE_LANES = 1, /* sums have f32 lanes and FMA */
    TRN__FREE_K = 2, /* k is cut at 512; edge tiles have two chains along k */
    TRN__FREE_FLUSH = 4, /* optimizer state keeps subnormal numbers */
};

enum { TRN__FREE_KC = 512 };

/* Of the devices that are opened from now on. */
extern unsigned trn__free_order;
/* Where products cut k from now on. */
extern int64_t trn__free_kc;

void trn__overlay_free_order(trn__kernel_set *s, unsigned left_out);

double trn__free_block_sum(int64_t n, const float *x, double shift);
double trn__free_block_sum_sq(int64_t n, const float *x, double shift);
void trn__free_columns_sum(int64_t n_rows, int64_t n_cols, const float *x,
                           int64_t row_stride, const double *shift,
                           double *lanes, double *out);
void trn__free_columns_sum_sq(int64_t n_rows, int64_t n_cols, const float *x,
                              int64_t row_stride, const double *shift,
                              double *lanes, double *out);
trn__matmul_tile_f32_fn trn__free_matmul_tile;
void trn__free_sgd(int64_t n, const trn__sgd_f32 *s, float *p, const float *g,
                   float *buf);
void trn__free_adamw(int64_t n, const trn__adamw_f32 *s, float *p,
                     const float *g, float *m, float *v);

#endif
