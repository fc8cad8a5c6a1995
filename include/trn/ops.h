/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops: functions of tensors.
 *
 * Common to all.  The result is a new tensor of the open step, else of the
 * context.  Shapes broadcast as NumPy's; ops on two types of elements promote
 * them (docs/ops.md has the table).  bf16 and f16 are computed in f32 and
 * rounded once.  Any dimension may be 0.  Gradients are of any order unless a
 * comment says "no gradient".  Floating-point arguments are VALUEs, rounded
 * once to the type of the computation; they have no gradient and changing them
 * never compiles anything.  An axis may be negative, counting from the end.
 *
 * Errors: NULL, and in the context TRN_ERR_ARG (NULL input, tensors of two
 * contexts, an argument out of range), TRN_ERR_SHAPE (shapes do not fit),
 * TRN_ERR_DTYPE (type not accepted), TRN_ERR_NOMEM, and what a comment adds.
 * A NULL that came from an earlier error passes through silently.
 * Threads: those of the context.
 */
#ifndef TRN_OPS_H
#define TRN_OPS_H

#include "trn/attrs.h"
#include "trn/ops_shape.h"
#include "trn/types.h"

TRN_BEGIN_DECLS

/* ---- element by element ---- */

/* y = -x                    x: numbers; integers wrap */
TRN_API trn_tensor *trn_neg(trn_tensor *x);
/* y = e^x                   x: float; exactly 0 below -87.34 (f64 -708.39) */
TRN_API trn_tensor *trn_exp(trn_tensor *x);
/* y = ln x                  x: float; ln 0 = -inf, NaN below 0 */
TRN_API trn_tensor *trn_log(trn_tensor *x);
/* y = tanh x                x: float */
TRN_API trn_tensor *trn_tanh(trn_tensor *x);
/* y = sqrt x                x: float; y'(0) = +inf, but 0 for a gradient 0 */
TRN_API trn_tensor *trn_sqrt(trn_tensor *x);
/* y = max(x, 0)             x: numbers; y'(0) = 0; NaN stays NaN */
TRN_API trn_tensor *trn_relu(trn_tensor *x);
/* y = |x|                   x: numbers; y'(0) = 0; |INT_MIN| = INT_MIN */
TRN_API trn_tensor *trn_abs(trn_tensor *x);
/* y = 1, -1 or 0, as x is   x: numbers; 0 for NaN and +0 for -0, as in PyTorch;
 * gradient 0 */
TRN_API trn_tensor *trn_sign(trn_tensor *x);
/* y = largest integer <= x  x: float; -0, infinities and NaN stay; gradient 0
 */
TRN_API trn_tensor *trn_floor(trn_tensor *x);
/* y = smallest integer >= x as trn_floor; what is in (-1, 0) gives -0 */
TRN_API trn_tensor *trn_ceil(trn_tensor *x);
/* y = nearest integer to x  as trn_floor; the even one in the middle */
TRN_API trn_tensor *trn_round(trn_tensor *x);
/* y = 1 / sqrt x            x: float, two roundings; y(+-0) = +-inf, NaN below
 * 0; y'(0) = -inf, but 0 for a gradient 0 */
TRN_API trn_tensor *trn_rsqrt(trn_tensor *x);
/* y = 1 / (1 + e^-x)        x: float; within 0.51 ulp in f32, 3 in f64; exactly
 * 0 below -87.34 (f64 -708.39), as e^x is */
TRN_API trn_tensor *trn_sigmoid(trn_tensor *x);
/* y = x sigmoid x           x: float; within 1.6 ulp in f32, 4 in f64; NaN
 * at -inf, as in PyTorch */
TRN_API trn_tensor *trn_silu(trn_tensor *x);
/* y = x / 2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))             x: float
 * Computed as x sigmoid z, z = x (1.5957691 + 0.0713548 x^2), which is the same
 * and loses nothing where x is negative: within 0.51 ulp in f32, 4 in f64; -0
 * where e^z is flushed to 0.  NaN at -inf, as in PyTorch.
 * Source: Hendrycks and Gimpel 2016. */
TRN_API trn_tensor *trn_gelu_tanh(trn_tensor *x);
/* y = x / 2 (1 + erf(x / sqrt 2))                                 x: float
 * Where x is negative nothing cancels: within 0.51 ulp in f32, 2 in f64,
 * subnormal results too.  -0 at -0, NaN at -inf, as in PyTorch.
 * Source: Hendrycks and Gimpel 2016. */
TRN_API trn_tensor *trn_gelu(trn_tensor *x);
/* y = sin x                 x: float, any size; NaN for an infinite x */
TRN_API trn_tensor *trn_sin(trn_tensor *x);
/* y = cos x                 as trn_sin */
TRN_API trn_tensor *trn_cos(trn_tensor *x);
/* y = erf x = 2 / sqrt(pi) integral from 0 to x of e^(-t^2) dt    x: float */
TRN_API trn_tensor *trn_erf(trn_tensor *x);
/* y = x without its fraction  as trn_floor; what is in (-1, 0) gives -0 */
TRN_API trn_tensor *trn_trunc(trn_tensor *x);

/* y = a + b                 integers wrap; bool: not accepted */
TRN_API trn_tensor *trn_add(trn_tensor *a, trn_tensor *b);
/* y = a - b                 integers wrap */
TRN_API trn_tensor *trn_sub(trn_tensor *a, trn_tensor *b);
/* y = a b                   integers wrap */
TRN_API trn_tensor *trn_mul(trn_tensor *a, trn_tensor *b);
/* y = a / b                 integers: toward 0, INT_MIN / -1 = INT_MIN;
 * TRN_ERR_VALUE for an integer division by zero, naming its position */
TRN_API trn_tensor *trn_div(trn_tensor *a, trn_tensor *b);
/* y = a^b                   float; 0^0 = 1, and x^0 has gradient 0 */
TRN_API trn_tensor *trn_pow(trn_tensor *a, trn_tensor *b);
/* y = angle of (b, a)       float; of a point with ordinate a and abscissa b,
 * in [-pi, pi]; zeros, infinities as C's atan2(a, b).  At (0, 0) and where an
 * input is infinite the gradient is 0 */
TRN_API trn_tensor *trn_atan2(trn_tensor *a, trn_tensor *b);
/* y = max(a, b)             IEEE 754-2019 maximum: NaN wins, -0 < +0; a tie
 * shares the gradient equally */
TRN_API trn_tensor *trn_maximum(trn_tensor *a, trn_tensor *b);
/* y = a > b                 y: bool, false for NaN; no gradient */
TRN_API trn_tensor *trn_greater(trn_tensor *a, trn_tensor *b);
/* y = (a = b)               y: bool, false for NaN; no gradient */
TRN_API trn_tensor *trn_equal(trn_tensor *a, trn_tensor *b);
/* y = min(a, b)             IEEE 754-2019 minimum: NaN wins, -0 < +0; a tie
 * shares the gradient equally */
TRN_API trn_tensor *trn_minimum(trn_tensor *a, trn_tensor *b);
/* y = a < b                 y: bool, false for NaN; no gradient */
TRN_API trn_tensor *trn_less(trn_tensor *a, trn_tensor *b);
/* y = a <= b                y: bool, false for NaN; no gradient */
TRN_API trn_tensor *trn_less_equal(trn_tensor *a, trn_tensor *b);
/* y = a >= b                y: bool, false for NaN; no gradient */
TRN_API trn_tensor *trn_greater_equal(trn_tensor *a, trn_tensor *b);
/* y = not (a = b)           y: bool, true for NaN; no gradient */
TRN_API trn_tensor *trn_not_equal(trn_tensor *a, trn_tensor *b);
/* y = a where the condition holds, else b.   condition: bool
 * The branch not taken leaks nothing, forward or backward, through rows that
 * are element by element; a product there with a factor that is infinite or NaN
 * does backward, and so do rows that combine elements (sums, softmax, matmul).
 */
TRN_API trn_tensor *trn_where(trn_tensor *condition, trn_tensor *a,
                              trn_tensor *b);
/* y = x + value             x: numbers; an integer x takes value truncated
 * (to i64, saturating) and wraps */
TRN_API trn_tensor *trn_add_scalar(trn_tensor *x, double value);
/* y = x value               x: float */
TRN_API trn_tensor *trn_mul_scalar(trn_tensor *x, double value);

/* y = x, as another type.   Float to integer truncates and saturates, NaN
 * gives 0; integers wrap; to bool: x is not 0; to a float: nearest even.
 * Gradient between float types only. */
TRN_API trn_tensor *trn_cast(trn_tensor *x, trn_dtype dtype);
/* y = x, in memory of its own, row-major */
TRN_API trn_tensor *trn_copy(trn_tensor *x);
/* y = x; TRN_ERR_NUMERIC where x is infinite or NaN, naming the position */
TRN_API trn_tensor *trn_check_finite(trn_tensor *x);

/* ---- reductions ----
 * axes: bit d for axis d, or TRN_ALL_AXES; keep_dims: reduced axes stay with
 * size 1.  f32, bf16, f16 are summed in f64 lanes in the order of
 * docs/numerics.md and rounded once. */
#define TRN_ALL_AXES 0xffffffffu
#define TRN_AXIS(d) (1u << (d))

/* y = sum of x over axes; 0 if empty.  Integers and bool: y is i64, wraps. */
TRN_API trn_tensor *trn_sum(trn_tensor *x, uint32_t axes, bool keep_dims);
/* y = mean of x over axes; NaN if empty; exact for equal elements.  Float. */
TRN_API trn_tensor *trn_mean(trn_tensor *x, uint32_t axes, bool keep_dims);
/* y = sqrt(sum of x^2 over axes), without overflow; gradient 0 at 0.  Float. */
TRN_API trn_tensor *trn_norm(trn_tensor *x, uint32_t axes, bool keep_dims);
/* y = largest x over axes; NaN wins; ties share the gradient equally.
 * TRN_ERR_SHAPE if empty.  Numbers. */
TRN_API trn_tensor *trn_max(trn_tensor *x, uint32_t axes, bool keep_dims);
/* y = smallest x over axes; else as trn_max. */
TRN_API trn_tensor *trn_min(trn_tensor *x, uint32_t axes, bool keep_dims);
/* y = sum of (x - mean x)^2 over axes / (n - correction), n: number of elements
 * reduced.   correction 0: of a population; 1: unbiased.  Exactly 0 for equal
 * elements, without overflow on the way; NaN where n <= correction.  Float.
 * TRN_ERR_ARG for a negative correction. */
TRN_API trn_tensor *trn_var(trn_tensor *x, uint32_t axes, bool keep_dims,
                            int64_t correction);
/* y = ln sum of e^x over axes, without overflow.   +inf if an element is, -inf
 * if all are or there is none; infinite elements share the gradient.  Float. */
TRN_API trn_tensor *trn_logsumexp(trn_tensor *x, uint32_t axes, bool keep_dims);
/* y = first index of the largest x along axis (a NaN is the largest), i32.
 * TRN_ERR_SHAPE if the axis is empty.  No gradient. */
TRN_API trn_tensor *trn_argmax(trn_tensor *x, int axis);

/* ---- products ---- */

/* y[.., m, n] = sum over k of a[.., m, k] b[.., k, n]; leading axes broadcast.
 * a, b: rank >= 2, numbers.  bf16: as docs/numerics.md says. */
TRN_API trn_tensor *trn_matmul(trn_tensor *a, trn_tensor *b);
/* The same with a and/or b transposed in their last two axes, without moving
 * them. */
TRN_API trn_tensor *trn_matmul_trans(trn_tensor *a, trn_tensor *b, bool trans_a,
                                     bool trans_b);

/* ---- indices (i32 or i64, always checked, negative ones refused:
 *      TRN_ERR_INDEX with position and value) ---- */

/* y[.., :] = weight[index[..], :]   weight: [V, D] float, index: [..]
 * The row padding_idx (-1: none) gets no gradient. */
TRN_API trn_tensor *trn_embedding(trn_tensor *weight, trn_tensor *index,
                                  int64_t padding_idx);
/* y[.., i, ..] = x[.., index[.., i, ..], ..] along axis.   index: x's shape
 * but along axis */
TRN_API trn_tensor *trn_gather(trn_tensor *x, int axis, trn_tensor *index);
/* y[.., j, ..] = sum of x[.., i, ..] where index[.., i, ..] = j along axis, in
 * the order of i.   x, index: one shape, x float; y: `size` along axis */
TRN_API trn_tensor *trn_scatter_add(trn_tensor *x, int axis, trn_tensor *index,
                                    int64_t size);
/* y[.., i, ..] = x[.., index[i], ..] along axis.   index: [n]; y: x's shape but
 * n along axis.  The gradient adds duplicates in the order of the indices. */
TRN_API trn_tensor *trn_index_select(trn_tensor *x, int axis,
                                     trn_tensor *index);
/* y[.., c] = 1 where index[..] = c, else 0   index: [..], y: [.., n_classes] of
 * dtype, any but bool; n_classes >= 1.  No gradient. */
TRN_API trn_tensor *trn_one_hot(trn_tensor *index, int64_t n_classes,
                                trn_dtype dtype);

/* ---- making ---- */

/* y = value everywhere.   Integers: truncated and saturated */
TRN_API trn_tensor *trn_full(trn_context *c, trn_dtype dtype, int rank,
                             const int64_t *shape, double value);

/* ---- composites ---- */

/* y = e^(x - max x) / sum of e^(x - max x) along axis.   +inf takes all, -inf
 * nothing; a row of -inf alone gives zeros, with gradients of 0 */
TRN_API trn_tensor *trn_softmax(trn_tensor *x, int axis);
/* y = x - max x - ln sum of e^(x - max x) along axis.   A row of -inf alone
 * gives -inf, with gradients of 0 */
TRN_API trn_tensor *trn_log_softmax(trn_tensor *x, int axis);

typedef struct trn_cross_entropy_options {
    uint32_t size;
    uint32_t reduction; /* trn_reduction, default TRN_REDUCE_MEAN */
    bool has_ignore_index;
    int64_t ignore_index; /* targets of this value do not count; at most 2^53 in
                             magnitude; not with probability targets */
    double label_smoothing; /* s, in [0, 1]; default 0 */
    trn_tensor *weight; /* of the classes, [C] of the logits' type; NULL: all 1;
                           borrowed for the call */
} trn_cross_entropy_options;

#define TRN_CROSS_ENTROPY_INIT                                              \
    {                                                                       \
        (uint32_t)sizeof(trn_cross_entropy_options), TRN_REDUCE_MEAN, 0, 0, \
            0.0, NULL                                                       \
    }

/*
 * y = mean over n of l[n],
 * l[n] = -sum over c of weight[c] q[n, c] log_softmax(logits)[n, c],
 * q[n, c] = (1 - s) (c = target[n]) + s / C             s: label_smoothing
 * logits: [N, C] float, target: [N] i32 or i64; y: [], or [N] for
 * TRN_REDUCE_NONE
 *
 * Probability targets: a float target [N, C] of the logits' type stands for
 * (c = target[n]); it need not add up to 1.
 *
 * The mean divides by the summed weight[target[n]] of the targets that count:
 * their number without weights.  If none counts or that sum is 0, y is 0 with
 * zero gradients.  With probability targets it divides by N (N = 0: y is 0).
 * A class with the factor weight[c] q[n, c] = 0 adds 0, also if its logit is
 * -inf.  Gradients for logits, weight and probability targets.  label_smoothing
 * is a VALUE.  options NULL: the defaults.
 * Errors: TRN_ERR_INDEX for a target outside [0, C) that is not ignored, naming
 *         position and value, for every reduction.
 * Source: PyTorch's cross_entropy, which gives NaN where y is 0 above.
 */
TRN_API trn_tensor *trn_cross_entropy(trn_tensor *logits, trn_tensor *target,
                                      const trn_cross_entropy_options *options);

/*
 * y = mean of (input - target)^2            input, target: float, broadcast
 *
 * TRN_REDUCE_SUM: the sum; TRN_REDUCE_NONE: the squares, in the shape that both
 * broadcast to.  Without elements the mean is NaN, the sum 0.
 * Errors: TRN_ERR_ARG for what is no trn_reduction.
 */
TRN_API trn_tensor *trn_mse_loss(trn_tensor *input, trn_tensor *target,
                                 trn_reduction reduction);

/* ---- writing ---- */

/*
 * x <- y, in place; y is broadcast to x and must have x's type.
 *
 * Counts as an in-place change.  If x was computed from parameters, the
 * gradient of what x is used for from now on goes to y. Errors: TRN_ERR_STATE
 * (x wraps host memory; x is a parameter and grad mode is on; x is a view in a
 * recorded computation), TRN_ERR_ARG (elements of x share memory, or x and y
 * overlap but are not the same).
 */
TRN_API trn_status trn_assign(trn_tensor *x, trn_tensor *y);

TRN_END_DECLS

#endif
