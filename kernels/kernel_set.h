/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel set: the CPU device's inner loops for one instruction set.
 *
 * `generic` is complete; an overlay (avx2, ...) starts as its copy and replaces
 * what it does better, with the same bits.  Kernels take sizes and pointers to
 * contiguous data: no allocation, threads, failure, strides or globals.  Any n
 * (also 0) and any alignment is allowed; y may be one of the inputs, never
 * overlap one partly.
 */
#ifndef TRN_KERNELS_KERNEL_SET_H
#define TRN_KERNELS_KERNEL_SET_H

#include "trn/types.h"

typedef void trn__unary_f32_fn(int64_t n, const float *x, float *y);
typedef void trn__unary_f64_fn(int64_t n, const double *x, double *y);
typedef void trn__binary_f32_fn(int64_t n, const float *a, const float *b,
                                float *y);
typedef void trn__binary_f64_fn(int64_t n, const double *a, const double *b,
                                double *y);
typedef void trn__compare_f32_fn(int64_t n, const float *a, const float *b,
                                 uint8_t *y);
typedef void trn__compare_f64_fn(int64_t n, const double *a, const double *b,
                                 uint8_t *y);

/*
 * Block reductions, at most 4096 elements, f64 lanes i mod 16 from +0, folded
 * +8 +4 +2 +1 (reproducibility rule "reductions").  The caller adds blocks.
 *
 * sum:     sum of x - shift          (shift 0 leaves x as it is, bit for bit)
 * sum_sq:  sum of (x - shift)^2      (difference and square in f64, no FMA)
 */
typedef double trn__block_f32_fn(int64_t n, const float *x, double shift);
typedef double trn__block_f64_fn(int64_t n, const double *x, double shift);

/*
 * The same for n_cols columns at once: x is [n_rows <= 4096, n_cols] with
 * row_stride elements between rows, shift and out have n_cols elements
 * (shift NULL: none).  lanes is workspace of 16 * n_cols doubles.
 */
typedef void trn__block_cols_f32_fn(int64_t n_rows, int64_t n_cols,
                                    const float *x, int64_t row_stride,
                                    const double *shift, double *lanes,
                                    double *out);
typedef void trn__block_cols_f64_fn(int64_t n_rows, int64_t n_cols,
                                    const double *x, int64_t row_stride,
                                    const double *shift, double *lanes,
                                    double *out);

/*
 * One k-block of a matrix product on packed panels (rule "matmul").
 *
 * a: [k, mr] panel, b: [k, nr] panel, k <= 256, both padded with zeros.
 * c: m <= mr rows of n <= nr elements, row stride ldc.  Each element is one
 * FMA chain over k from +0; `first` stores it, otherwise it is added to c.
 */
typedef void trn__matmul_tile_f32_fn(int64_t k, const float *a, const float *b,
                                     float *c, int64_t ldc, int m, int n,
                                     bool first);
typedef void trn__matmul_tile_f64_fn(int64_t k, const double *a,
                                     const double *b, double *c, int64_t ldc,
                                     int m, int n, bool first);

/* VALUEs of the optimizer updates, already rounded to the compute type. */
typedef struct trn__sgd_f32 {
    float lr, weight_decay, momentum, one_minus_dampening;
    bool nesterov;
} trn__sgd_f32;
typedef struct trn__sgd_f64 {
    double lr, weight_decay, momentum, one_minus_dampening;
    bool nesterov;
} trn__sgd_f64;
typedef struct trn__adamw_f32 {
    float decay, one_minus_beta1, beta2, one_minus_beta2, step_size,
        sqrt_correction2, eps;
} trn__adamw_f32;
typedef struct trn__adamw_f64 {
    double decay, one_minus_beta1, beta2, one_minus_beta2, step_size,
        sqrt_correction2, eps;
} trn__adamw_f64;

typedef struct trn__kernel_set {
    const char *name;

/* exp_f32, exp_f64, ...: one pair of loops per UNARY, BINARY, COMPARE row */
#define TRN__FIELDS_UNARY(nm)    \
    trn__unary_f32_fn *nm##_f32; \
    trn__unary_f64_fn *nm##_f64;
#define TRN__FIELDS_BINARY(nm)    \
    trn__binary_f32_fn *nm##_f32; \
    trn__binary_f64_fn *nm##_f64;
#define TRN__FIELDS_COMPARE(nm)    \
    trn__compare_f32_fn *nm##_f32; \
    trn__compare_f64_fn *nm##_f64;
#define TRN__FIELDS_VIEW(nm)
#define TRN__FIELDS_REDUCE(nm)
#define TRN__FIELDS_RANDOM(nm)
#define TRN__FIELDS_UPDATE(nm)
#define TRN__FIELDS_SPECIAL(nm)
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    TRN__FIELDS_##cls(nm)
#include "trn/ops.def"

    /* reductions */
    trn__block_f32_fn *block_sum_f32, *block_sum_sq_f32;
    trn__block_f64_fn *block_sum_f64, *block_sum_sq_f64;
    trn__block_cols_f32_fn *block_cols_sum_f32, *block_cols_sum_sq_f32;
    trn__block_cols_f64_fn *block_cols_sum_f64, *block_cols_sum_sq_f64;
    /* IEEE 754-2019 maximum and minimum of n >= 1 elements */
    float (*max_f32)(int64_t n, const float *x);
    double (*max_f64)(int64_t n, const double *x);
    float (*min_f32)(int64_t n, const float *x);
    double (*min_f64)(int64_t n, const double *x);

    /* matrix products: tile sizes and tiles */
    int mr_f32, nr_f32, mr_f64, nr_f64;
    trn__matmul_tile_f32_fn *matmul_tile_f32;
    trn__matmul_tile_f64_fn *matmul_tile_f64;

    /* conversions to and from the 16-bit formats, round to nearest even */
    void (*f32_from_bf16)(int64_t n, const uint16_t *x, float *y);
    void (*bf16_from_f32)(int64_t n, const float *x, uint16_t *y);
    void (*f32_from_f16)(int64_t n, const uint16_t *x, float *y);
    void (*f16_from_f32)(int64_t n, const float *x, uint16_t *y);

    /* elements first .. first + n - 1 of a draw; key and draw as in philox.h */
    void (*uniform_f32)(int64_t n, uint64_t key, uint64_t draw, uint64_t first,
                        float *y);
    void (*uniform_f64)(int64_t n, uint64_t key, uint64_t draw, uint64_t first,
                        double *y);
    void (*normal_f32)(int64_t n, uint64_t key, uint64_t draw, uint64_t first,
                       float *y);
    void (*normal_f64)(int64_t n, uint64_t key, uint64_t draw, uint64_t first,
                       double *y);

    /*
     * Optimizer updates, equal to the rows' decompositions bit for bit: each
     * operation is rounded, nothing is fused.  buf NULL is plain SGD (momentum,
     * one_minus_dampening, nesterov unused).  With z(x) = flush_subnormal(x):
     *   d = g + weight_decay * p
     *   buf = z(momentum * buf + one_minus_dampening * d)
     *   p = p - lr * (buf NULL: d; nesterov: d + momentum * buf; else buf)
     *   m = z(m + one_minus_beta1 * (g - m))
     *   v = z(beta2 * v + one_minus_beta2 * (g * g))
     *   p = p * decay - step_size * m / (sqrt(v) / sqrt_correction2 + eps)
     * where (step_size * m) is formed before the division, p * decay before
     * the subtraction.
     */
    void (*sgd_f32)(int64_t n, const trn__sgd_f32 *s, float *p, const float *g,
                    float *buf);
    void (*sgd_f64)(int64_t n, const trn__sgd_f64 *s, double *p,
                    const double *g, double *buf);
    void (*adamw_f32)(int64_t n, const trn__adamw_f32 *s, float *p,
                      const float *g, float *m, float *v);
    void (*adamw_f64)(int64_t n, const trn__adamw_f64 *s, double *p,
                      const double *g, double *m, double *v);
} trn__kernel_set;

/* Fills s with the complete generic set. */
void trn__set_generic(trn__kernel_set *s);

/* Lays AVX2+FMA kernels over s; the caller has checked the CPU. */
void trn__overlay_avx2(trn__kernel_set *s);

#endif
