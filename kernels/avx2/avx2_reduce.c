/* SPDX-License-Identifier: Apache-2.0
 *
 * Block reductions for AVX2: the lanes of generic_reduce.c in registers.
 *
 * Sixteen f64 lanes are four registers; register q holds the lanes 4q to 4q+3.
 * The sums of columns keep their lanes in memory, but walk through the columns
 * in strips whose lanes stay in the first-level cache.
 */
#include <immintrin.h>

#include "kernels/avx2/avx2_kernels.h"
#include "kernels/generic/generic_kernels.h"

enum { LANES = 16, STRIP = 64 };

typedef struct lanes16 {
    __m256d q[4];
} lanes16;

/* d[q] = x[4q .. 4q+3] - shift, in f64 */
static inline lanes16 difference_f32(const float *x, __m256d shift)
{
    return (lanes16){{
        _mm256_sub_pd(_mm256_cvtps_pd(_mm_loadu_ps(x)), shift),
        _mm256_sub_pd(_mm256_cvtps_pd(_mm_loadu_ps(x + 4)), shift),
        _mm256_sub_pd(_mm256_cvtps_pd(_mm_loadu_ps(x + 8)), shift),
        _mm256_sub_pd(_mm256_cvtps_pd(_mm_loadu_ps(x + 12)), shift),
    }};
}

static inline lanes16 difference_f64(const double *x, __m256d shift)
{
    return (lanes16){{
        _mm256_sub_pd(_mm256_loadu_pd(x), shift),
        _mm256_sub_pd(_mm256_loadu_pd(x + 4), shift),
        _mm256_sub_pd(_mm256_loadu_pd(x + 8), shift),
        _mm256_sub_pd(_mm256_loadu_pd(x + 12), shift),
    }};
}

static inline lanes16 zero_lanes(void)
{
    const __m256d zero = _mm256_setzero_pd();
    return (lanes16){{zero, zero, zero, zero}};
}

static inline void add(lanes16 *sum, lanes16 d)
{
    sum->q[0] = _mm256_add_pd(sum->q[0], d.q[0]);
    sum->q[1] = _mm256_add_pd(sum->q[1], d.q[1]);
    sum->q[2] = _mm256_add_pd(sum->q[2], d.q[2]);
    sum->q[3] = _mm256_add_pd(sum->q[3], d.q[3]);
}

static inline lanes16 square(lanes16 d)
{
    return (lanes16){{
        _mm256_mul_pd(d.q[0], d.q[0]),
        _mm256_mul_pd(d.q[1], d.q[1]),
        _mm256_mul_pd(d.q[2], d.q[2]),
        _mm256_mul_pd(d.q[3], d.q[3]),
    }};
}

/* The last n < 16 differences arrive in rest; absent lanes stay untouched. */
static double finish(lanes16 sum, int64_t n, const double *rest)
{
    double lane[LANES];
    _mm256_storeu_pd(lane, sum.q[0]);
    _mm256_storeu_pd(lane + 4, sum.q[1]);
    _mm256_storeu_pd(lane + 8, sum.q[2]);
    _mm256_storeu_pd(lane + 12, sum.q[3]);
    for (int64_t j = 0; j < n; j++)
        lane[j] += rest[j];
    for (int half = LANES / 2; half > 0; half /= 2) {
        for (int j = 0; j < half; j++)
            lane[j] += lane[j + half];
    }
    return lane[0];
}

double trn__avx2_block_sum_f32(int64_t n, const float *x, double shift)
{
    const __m256d s = _mm256_set1_pd(shift);
    lanes16 sum = zero_lanes();
    double rest[LANES];
    for (; n >= LANES; n -= LANES, x += LANES)
        add(&sum, difference_f32(x, s));
    for (int64_t j = 0; j < n; j++)
        rest[j] = (double)x[j] - shift;
    return finish(sum, n, rest);
}

double trn__avx2_block_sum_f64(int64_t n, const double *x, double shift)
{
    const __m256d s = _mm256_set1_pd(shift);
    lanes16 sum = zero_lanes();
    double rest[LANES];
    for (; n >= LANES; n -= LANES, x += LANES)
        add(&sum, difference_f64(x, s));
    for (int64_t j = 0; j < n; j++)
        rest[j] = x[j] - shift;
    return finish(sum, n, rest);
}

double trn__avx2_block_sum_sq_f32(int64_t n, const float *x, double shift)
{
    const __m256d s = _mm256_set1_pd(shift);
    lanes16 sum = zero_lanes();
    double rest[LANES];
    for (; n >= LANES; n -= LANES, x += LANES)
        add(&sum, square(difference_f32(x, s)));
    for (int64_t j = 0; j < n; j++) {
        const double d = (double)x[j] - shift;
        rest[j] = d * d;
    }
    return finish(sum, n, rest);
}

double trn__avx2_block_sum_sq_f64(int64_t n, const double *x, double shift)
{
    const __m256d s = _mm256_set1_pd(shift);
    lanes16 sum = zero_lanes();
    double rest[LANES];
    for (; n >= LANES; n -= LANES, x += LANES)
        add(&sum, square(difference_f64(x, s)));
    for (int64_t j = 0; j < n; j++) {
        const double d = x[j] - shift;
        rest[j] = d * d;
    }
    return finish(sum, n, rest);
}

/* lane: [16, width], out: [width], both of a strip of columns */
static void fold_strip(int64_t width, double *lane, double *out)
{
    for (int64_t half = LANES / 2; half > 1; half /= 2) {
        for (int64_t j = 0; j < half * width; j++)
            lane[j] += lane[j + half * width];
    }
    for (int64_t j = 0; j < width; j++)
        out[j] = lane[j] + lane[j + width];
}

/*
 * The loops of a strip; sq is a constant where they are inlined.  Four columns
 * are one register, and what is left of the width goes one by one.
 */
static inline void strip_f32(int64_t n_rows, int64_t width, const float *x,
                             int64_t row_stride, const double *shift,
                             double *lanes, bool sq)
{
    for (int64_t i = 0; i < LANES * width; i++)
        lanes[i] = 0.0;
    for (int64_t i = 0; i < n_rows; i++, x += row_stride) {
        double *lane = lanes + i % LANES * width;
        int64_t j = 0;
        for (; j + 4 <= width; j += 4) {
            __m256d d = _mm256_cvtps_pd(_mm_loadu_ps(x + j));
            if (shift)
                d = _mm256_sub_pd(d, _mm256_loadu_pd(shift + j));
            if (sq)
                d = _mm256_mul_pd(d, d);
            d = _mm256_add_pd(_mm256_loadu_pd(lane + j), d);
            _mm256_storeu_pd(lane + j, d);
        }
        for (; j < width; j++) {
            const double d = (double)x[j] - (shift ? shift[j] : 0.0);
            lane[j] += sq ? d * d : d;
        }
    }
}

static inline void strip_f64(int64_t n_rows, int64_t width, const double *x,
                             int64_t row_stride, const double *shift,
                             double *lanes, bool sq)
{
    for (int64_t i = 0; i < LANES * width; i++)
        lanes[i] = 0.0;
    for (int64_t i = 0; i < n_rows; i++, x += row_stride) {
        double *lane = lanes + i % LANES * width;
        int64_t j = 0;
        for (; j + 4 <= width; j += 4) {
            __m256d d = _mm256_loadu_pd(x + j);
            if (shift)
                d = _mm256_sub_pd(d, _mm256_loadu_pd(shift + j));
            if (sq)
                d = _mm256_mul_pd(d, d);
            d = _mm256_add_pd(_mm256_loadu_pd(lane + j), d);
            _mm256_storeu_pd(lane + j, d);
        }
        for (; j < width; j++) {
            const double d = x[j] - (shift ? shift[j] : 0.0);
            lane[j] += sq ? d * d : d;
        }
    }
}

static int64_t strip_width(int64_t n_cols, int64_t first)
{
    return n_cols - first < STRIP ? n_cols - first : STRIP;
}

void trn__avx2_block_cols_sum_f32(int64_t n_rows, int64_t n_cols,
                                  const float *x, int64_t row_stride,
                                  const double *shift, double *lanes,
                                  double *out)
{
    for (int64_t j = 0; j < n_cols; j += STRIP) {
        const int64_t width = strip_width(n_cols, j);
        strip_f32(n_rows, width, x + j, row_stride, shift ? shift + j : NULL,
                  lanes, false);
        fold_strip(width, lanes, out + j);
    }
}

void trn__avx2_block_cols_sum_f64(int64_t n_rows, int64_t n_cols,
                                  const double *x, int64_t row_stride,
                                  const double *shift, double *lanes,
                                  double *out)
{
    for (int64_t j = 0; j < n_cols; j += STRIP) {
        const int64_t width = strip_width(n_cols, j);
        strip_f64(n_rows, width, x + j, row_stride, shift ? shift + j : NULL,
                  lanes, false);
        fold_strip(width, lanes, out + j);
    }
}

void trn__avx2_block_cols_sum_sq_f32(int64_t n_rows, int64_t n_cols,
                                     const float *x, int64_t row_stride,
                                     const double *shift, double *lanes,
                                     double *out)
{
    for (int64_t j = 0; j < n_cols; j += STRIP) {
        const int64_t width = strip_width(n_cols, j);
        strip_f32(n_rows, width, x + j, row_stride, shift ? shift + j : NULL,
                  lanes, true);
        fold_strip(width, lanes, out + j);
    }
}

void trn__avx2_block_cols_sum_sq_f64(int64_t n_rows, int64_t n_cols,
                                     const double *x, int64_t row_stride,
                                     const double *shift, double *lanes,
                                     double *out)
{
    for (int64_t j = 0; j < n_cols; j += STRIP) {
        const int64_t width = strip_width(n_cols, j);
        strip_f64(n_rows, width, x + j, row_stride, shift ? shift + j : NULL,
                  lanes, true);
        fold_strip(width, lanes, out + j);
    }
}

/*
 * The instruction gives its second operand when both are zeros or one is NaN.
 * Taken both ways round, the AND of the results is +0 if either zero is, and
 * any other maximum as it is; NaNs are noted apart.
 */
static inline __m256 max_f32(__m256 a, __m256 b)
{
    return _mm256_and_ps(_mm256_max_ps(a, b), _mm256_max_ps(b, a));
}

static inline __m256d max_f64(__m256d a, __m256d b)
{
    return _mm256_and_pd(_mm256_max_pd(a, b), _mm256_max_pd(b, a));
}

/* Likewise, where the OR is -0 if either zero is. */
static inline __m256 min_f32(__m256 a, __m256 b)
{
    return _mm256_or_ps(_mm256_min_ps(a, b), _mm256_min_ps(b, a));
}

static inline __m256d min_f64(__m256d a, __m256d b)
{
    return _mm256_or_pd(_mm256_min_pd(a, b), _mm256_min_pd(b, a));
}

float trn__avx2_max_f32(int64_t n, const float *x)
{
    if (n < 16)
        return trn__generic_max_f32(n, x);
    __m256 m0 = _mm256_loadu_ps(x);
    __m256 m1 = _mm256_loadu_ps(x + 8);
    __m256 nan = _mm256_setzero_ps();
    for (int64_t i = 0; i < n; i += 16) {
        /* The last step overlaps the one before it, which changes nothing. */
        const float *at = x + (i + 16 <= n ? i : n - 16);
        const __m256 a = _mm256_loadu_ps(at);
        const __m256 b = _mm256_loadu_ps(at + 8);
        nan = _mm256_or_ps(nan, _mm256_cmp_ps(a, b, _CMP_UNORD_Q));
        m0 = max_f32(m0, a);
        m1 = max_f32(m1, b);
    }
    if (_mm256_movemask_ps(nan))
        return __builtin_nanf("");
    float rest[8];
    _mm256_storeu_ps(rest, max_f32(m0, m1));
    return trn__generic_max_f32(8, rest);
}

double trn__avx2_max_f64(int64_t n, const double *x)
{
    if (n < 8)
        return trn__generic_max_f64(n, x);
    __m256d m0 = _mm256_loadu_pd(x);
    __m256d m1 = _mm256_loadu_pd(x + 4);
    __m256d nan = _mm256_setzero_pd();
    for (int64_t i = 0; i < n; i += 8) {
        const double *at = x + (i + 8 <= n ? i : n - 8);
        const __m256d a = _mm256_loadu_pd(at);
        const __m256d b = _mm256_loadu_pd(at + 4);
        nan = _mm256_or_pd(nan, _mm256_cmp_pd(a, b, _CMP_UNORD_Q));
        m0 = max_f64(m0, a);
        m1 = max_f64(m1, b);
    }
    if (_mm256_movemask_pd(nan))
        return __builtin_nan("");
    double rest[4];
    _mm256_storeu_pd(rest, max_f64(m0, m1));
    return trn__generic_max_f64(4, rest);
}

float trn__avx2_min_f32(int64_t n, const float *x)
{
    if (n < 16)
        return trn__generic_min_f32(n, x);
    __m256 m0 = _mm256_loadu_ps(x);
    __m256 m1 = _mm256_loadu_ps(x + 8);
    __m256 nan = _mm256_setzero_ps();
    for (int64_t i = 0; i < n; i += 16) {
        /* The last step overlaps the one before it, which changes nothing. */
        const float *at = x + (i + 16 <= n ? i : n - 16);
        const __m256 a = _mm256_loadu_ps(at);
        const __m256 b = _mm256_loadu_ps(at + 8);
        nan = _mm256_or_ps(nan, _mm256_cmp_ps(a, b, _CMP_UNORD_Q));
        m0 = min_f32(m0, a);
        m1 = min_f32(m1, b);
    }
    if (_mm256_movemask_ps(nan))
        return __builtin_nanf("");
    float rest[8];
    _mm256_storeu_ps(rest, min_f32(m0, m1));
    return trn__generic_min_f32(8, rest);
}

double trn__avx2_min_f64(int64_t n, const double *x)
{
    if (n < 8)
        return trn__generic_min_f64(n, x);
    __m256d m0 = _mm256_loadu_pd(x);
    __m256d m1 = _mm256_loadu_pd(x + 4);
    __m256d nan = _mm256_setzero_pd();
    for (int64_t i = 0; i < n; i += 8) {
        const double *at = x + (i + 8 <= n ? i : n - 8);
        const __m256d a = _mm256_loadu_pd(at);
        const __m256d b = _mm256_loadu_pd(at + 4);
        nan = _mm256_or_pd(nan, _mm256_cmp_pd(a, b, _CMP_UNORD_Q));
        m0 = min_f64(m0, a);
        m1 = min_f64(m1, b);
    }
    if (_mm256_movemask_pd(nan))
        return __builtin_nan("");
    double rest[4];
    _mm256_storeu_pd(rest, min_f64(m0, m1));
    return trn__generic_min_f64(4, rest);
}
