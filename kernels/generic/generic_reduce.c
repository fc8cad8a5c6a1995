/* SPDX-License-Identifier: Apache-2.0
 *
 * Block reductions of the generic set: sums, sums of squares, maxima, minima.
 *
 * Element i goes to lane i mod 16, each lane adds in f64 in increasing i, and
 * the lanes are folded +8, +4, +2, +1.  The order is fixed by the index alone:
 * sixteen lanes are what the widest instruction set wants, and a narrower one
 * walks through the same sixteen.
 */
#include "kernels/generic/generic_kernels.h"

enum { LANES = 16 };

static double fold(double *lane)
{
    for (int half = LANES / 2; half > 0; half /= 2) {
        for (int j = 0; j < half; j++)
            lane[j] += lane[j + half];
    }
    return lane[0];
}

double trn__generic_block_sum_f32(int64_t n, const float *x, double shift)
{
    double lane[LANES] = {0.0};
    for (int64_t i = 0; i < n; i++)
        lane[i % LANES] += (double)x[i] - shift;
    return fold(lane);
}

double trn__generic_block_sum_f64(int64_t n, const double *x, double shift)
{
    double lane[LANES] = {0.0};
    for (int64_t i = 0; i < n; i++)
        lane[i % LANES] += x[i] - shift;
    return fold(lane);
}

double trn__generic_block_sum_sq_f32(int64_t n, const float *x, double shift)
{
    double lane[LANES] = {0.0};
    for (int64_t i = 0; i < n; i++) {
        const double d = (double)x[i] - shift;
        lane[i % LANES] += d * d;
    }
    return fold(lane);
}

double trn__generic_block_sum_sq_f64(int64_t n, const double *x, double shift)
{
    double lane[LANES] = {0.0};
    for (int64_t i = 0; i < n; i++) {
        const double d = x[i] - shift;
        lane[i % LANES] += d * d;
    }
    return fold(lane);
}

/* lanes: [16, n_cols]; the rows of x take turns on its rows. */
static void clear_lanes(int64_t n_cols, double *lanes)
{
    for (int64_t i = 0; i < LANES * n_cols; i++)
        lanes[i] = 0.0;
}

static void fold_columns(int64_t n_cols, double *lanes, double *out)
{
    for (int64_t half = LANES / 2; half > 0; half /= 2) {
        for (int64_t j = 0; j < half * n_cols; j++)
            lanes[j] += lanes[j + half * n_cols];
    }
    for (int64_t j = 0; j < n_cols; j++)
        out[j] = lanes[j];
}

void trn__generic_block_cols_sum_f32(int64_t n_rows, int64_t n_cols,
                                     const float *x, int64_t row_stride,
                                     const double *shift, double *lanes,
                                     double *out)
{
    clear_lanes(n_cols, lanes);
    for (int64_t i = 0; i < n_rows; i++) {
        const float *row = x + i * row_stride;
        double *lane = lanes + i % LANES * n_cols;
        for (int64_t j = 0; j < n_cols; j++)
            lane[j] += (double)row[j] - (shift ? shift[j] : 0.0);
    }
    fold_columns(n_cols, lanes, out);
}

void trn__generic_block_cols_sum_f64(int64_t n_rows, int64_t n_cols,
                                     const double *x, int64_t row_stride,
                                     const double *shift, double *lanes,
                                     double *out)
{
    clear_lanes(n_cols, lanes);
    for (int64_t i = 0; i < n_rows; i++) {
        const double *row = x + i * row_stride;
        double *lane = lanes + i % LANES * n_cols;
        for (int64_t j = 0; j < n_cols; j++)
            lane[j] += row[j] - (shift ? shift[j] : 0.0);
    }
    fold_columns(n_cols, lanes, out);
}

void trn__generic_block_cols_sum_sq_f32(int64_t n_rows, int64_t n_cols,
                                        const float *x, int64_t row_stride,
                                        const double *shift, double *lanes,
                                        double *out)
{
    clear_lanes(n_cols, lanes);
    for (int64_t i = 0; i < n_rows; i++) {
        const float *row = x + i * row_stride;
        double *lane = lanes + i % LANES * n_cols;
        for (int64_t j = 0; j < n_cols; j++) {
            const double d = (double)row[j] - (shift ? shift[j] : 0.0);
            lane[j] += d * d;
        }
    }
    fold_columns(n_cols, lanes, out);
}

void trn__generic_block_cols_sum_sq_f64(int64_t n_rows, int64_t n_cols,
                                        const double *x, int64_t row_stride,
                                        const double *shift, double *lanes,
                                        double *out)
{
    clear_lanes(n_cols, lanes);
    for (int64_t i = 0; i < n_rows; i++) {
        const double *row = x + i * row_stride;
        double *lane = lanes + i % LANES * n_cols;
        for (int64_t j = 0; j < n_cols; j++) {
            const double d = row[j] - (shift ? shift[j] : 0.0);
            lane[j] += d * d;
        }
    }
    fold_columns(n_cols, lanes, out);
}

/*
 * IEEE 754-2019 maximum and minimum.  Which NaN comes out is not promised, so
 * it is always the same one; of two zeros the positive one is larger.
 */
float trn__generic_max_f32(int64_t n, const float *x)
{
    float best = x[0];
    for (int64_t i = 0; i < n; i++) {
        if (x[i] != x[i])
            return __builtin_nanf("");
        if (x[i] > best ||
            (x[i] == 0.0f && best == 0.0f && __builtin_signbit(best)))
            best = x[i];
    }
    return best;
}

double trn__generic_max_f64(int64_t n, const double *x)
{
    double best = x[0];
    for (int64_t i = 0; i < n; i++) {
        if (x[i] != x[i])
            return __builtin_nan("");
        if (x[i] > best ||
            (x[i] == 0.0 && best == 0.0 && __builtin_signbit(best)))
            best = x[i];
    }
    return best;
}

float trn__generic_min_f32(int64_t n, const float *x)
{
    float best = x[0];
    for (int64_t i = 0; i < n; i++) {
        if (x[i] != x[i])
            return __builtin_nanf("");
        if (x[i] < best ||
            (x[i] == 0.0f && best == 0.0f && __builtin_signbit(x[i])))
            best = x[i];
    }
    return best;
}

double trn__generic_min_f64(int64_t n, const double *x)
{
    double best = x[0];
    for (int64_t i = 0; i < n; i++) {
        if (x[i] != x[i])
            return __builtin_nan("");
        if (x[i] < best ||
            (x[i] == 0.0 && best == 0.0 && __builtin_signbit(x[i])))
            best = x[i];
    }
    return best;
}
