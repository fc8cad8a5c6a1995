/* SPDX-License-Identifier: Apache-2.0
 *
 * Awkward points of rows, by hand, as docs/ops.md has them: values and
 * gradients at 0, at ties, at infinities and NaN, of nothing, and in ranges
 * where a careless formula overflows.
 */
#include <float.h>
#include <math.h>

#include "harness.h"
#include "special.h"

/* The gradient of x for the seed v. */
static trn_tensor *gradient(trn_tensor *y, trn_tensor *x, trn_tensor *v)
{
    trn_tensor *g = NULL;
    trn_context *c = trn_tensor_context(y);
    assert_int_equal(trn_grad(1, &y, 1, &x, &v, NULL, &g), TRN_OK);
    harness_ok(c);
    return g;
}

static trn_tensor *leaf(trn_tensor *x)
{
    trn_set_requires_grad(x, true);
    return x;
}

static void signs_and_magnitudes_at_zero_and_nan(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = leaf(harness_vector(c, 5, -2.0, -0.0, 0.0, 3.0, NOT));
    trn_tensor *v = harness_vector(c, 5, 1.0, 1.0, 1.0, 1.0, 1.0);
    harness_equal(trn_abs(x), 5, 2.0, 0.0, 0.0, 3.0, NOT);
    assert_false(signbit(harness_at(trn_abs(x), 1)));
    harness_equal(trn_sign(x), 5, -1.0, 0.0, 0.0, 1.0, 0.0);
    assert_false(signbit(harness_at(trn_sign(x), 1)));
    harness_equal(gradient(trn_abs(x), x, v), 5, -1.0, 0.0, 0.0, 1.0, 0.0);
    harness_equal(gradient(trn_sign(x), x, v), 5, 0.0, 0.0, 0.0, 0.0, 0.0);
    const int64_t shape[1] = {3};
    trn_tensor *i = harness_i32(c, 1, shape, (int32_t[]){INT32_MIN, -7, 7});
    harness_equal(trn_abs(i), 3, (double)INT32_MIN, 7.0, 7.0);
    harness_equal(trn_sign(i), 3, -1.0, -1.0, 1.0);
    harness_ok(c);
}

/* Eagerly and in a step: -0 + 0 is +0, -0 * 1 is -0. */
static void zero_is_added_and_one_multiplied(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = harness_vector(c, 2, -0.0, 0.0);
    for (int step = 0; step < 2; step++) {
        if (step)
            trn_step_begin(c);
        trn_tensor *sum = trn_keep(trn_add_scalar(x, 0.0));
        trn_tensor *product = trn_keep(trn_mul_scalar(x, 1.0));
        if (step)
            assert_int_equal(trn_step_end(c), TRN_OK);
        assert_false(signbit(harness_at(sum, 0)));
        assert_true(signbit(harness_at(product, 0)));
    }
}

static void halves_are_rounded_to_the_even_integer(void **state)
{
    trn_context *c = *state;
    trn_tensor *x =
        leaf(harness_vector(c, 8, -2.5, -1.5, -0.5, -0.2, 0.5, 1.5, 2.5, INF));
    trn_tensor *v =
        harness_vector(c, 8, INF, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0);
    harness_equal(trn_round(x), 8, -2.0, -2.0, 0.0, 0.0, 0.0, 2.0, 2.0, INF);
    harness_equal(trn_floor(x), 8, -3.0, -2.0, -1.0, -1.0, 0.0, 1.0, 2.0, INF);
    harness_equal(trn_ceil(x), 8, -2.0, -1.0, 0.0, 0.0, 1.0, 2.0, 3.0, INF);
    assert_true(signbit(harness_at(trn_round(x), 3)));
    assert_true(signbit(harness_at(trn_ceil(x), 3)));
    trn_tensor *y[3] = {trn_round(x), trn_floor(x), trn_ceil(x)};
    for (int i = 0; i < 3; i++) /* 0, also for an infinite seed */
        harness_equal(gradient(y[i], x, v), 8, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
                      0.0, 0.0);
}

static void rsqrt_has_an_infinite_slope_but_no_nan(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = leaf(harness_vector(c, 4, 0.0, 0.0, 4.0, INF));
    trn_tensor *v = harness_vector(c, 4, 0.0, 1.0, 16.0, 1.0);
    trn_tensor *y = trn_rsqrt(x);
    harness_equal(y, 4, INF, INF, 0.5, 0.0);
    harness_equal(gradient(y, x, v), 4, 0.0, -INF, -1.0, 0.0);
    harness_equal(trn_rsqrt(harness_vector(c, 2, -0.0, -1.0)), 2, -INF, NOT);
}

static void comparisons_with_nan_are_false_but_for_not_equal(void **state)
{
    trn_context *c = *state;
    trn_tensor *a = harness_vector(c, 4, NOT, 1.0, NOT, -0.0);
    trn_tensor *b = harness_vector(c, 4, 1.0, NOT, NOT, 0.0);
    harness_equal(trn_less(a, b), 4, 0.0, 0.0, 0.0, 0.0);
    harness_equal(trn_less_equal(a, b), 4, 0.0, 0.0, 0.0, 1.0);
    harness_equal(trn_greater_equal(a, b), 4, 0.0, 0.0, 0.0, 1.0);
    harness_equal(trn_not_equal(a, b), 4, 1.0, 1.0, 1.0, 0.0);
    trn_tensor *t = trn_cast(b, TRN_BOOL), *f = trn_equal(a, a);
    harness_equal(trn_not_equal(t, f), 4, 1.0, 0.0, 1.0, 1.0);
    assert_null(trn_less(t, f));
    harness_error(c, TRN_ERR_DTYPE, "less: both inputs are bool");
}

static void minima_let_nan_win_and_share_gradients(void **state)
{
    trn_context *c = *state;
    trn_tensor *a = leaf(harness_vector(c, 4, 1.0, 2.0, NOT, -0.0));
    trn_tensor *b = leaf(harness_vector(c, 4, 1.0, 1.0, 1.0, 0.0));
    trn_tensor *v = harness_vector(c, 4, 8.0, 8.0, 0.0, 8.0);
    trn_tensor *y = trn_minimum(a, b);
    harness_equal(y, 4, 1.0, 1.0, NOT, 0.0);
    assert_true(signbit(harness_at(y, 3)));
    harness_equal(gradient(y, a, v), 4, 4.0, 0.0, 0.0, 4.0);
    y = trn_minimum(a, b);
    harness_equal(gradient(y, b, v), 4, 4.0, 8.0, 0.0, 4.0);
    trn_tensor *x = leaf(harness_vector(c, 4, 3.0, 1.0, 1.0, 1.0));
    trn_tensor *seed = trn_tensor_scalar(c, TRN_F64, 6.0);
    harness_equal(gradient(trn_min(x, TRN_ALL_AXES, false), x, seed), 4, 0.0,
                  2.0, 2.0, 2.0);
    harness_equal(trn_min(a, TRN_ALL_AXES, false), 1, NOT);
    assert_null(
        trn_min(trn_tensor_zeros(c, TRN_F32, 1, (int64_t[]){0}), 1, false));
    harness_error(c, TRN_ERR_SHAPE,
                  "min: nothing to take the smallest of in f32[0]");
}

static void variance_neither_cancels_nor_overflows(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = harness_vector(c, 3, 1e9 + 1, 1e9 + 2, 1e9 + 3);
    harness_equal(trn_var(x, TRN_ALL_AXES, false, 1), 1, 1.0);
    trn_tensor *equal = trn_full(c, TRN_F32, 2, (int64_t[]){7, 999}, 0.1);
    harness_equal(trn_var(equal, TRN_ALL_AXES, false, 0), 1, 0.0);
    harness_equal(trn_var(trn_mul_scalar(equal, 1e38), 3, false, 0), 1, 0.0);
    /* Squares beyond f32; in f64 a sum of squares beyond it, near its end */
    trn_tensor *wide = harness_vector(c, 4, 1e19, -1e19, 1e19, -1e19);
    harness_equal(
        trn_cast(trn_var(trn_cast(wide, TRN_F32), 1, false, 0), TRN_F64), 1,
        (double)(float)((double)1e19f * (double)1e19f));
    const double most = 0x1p511;
    trn_tensor *end = harness_vector(c, 8, most, -most, most, -most, most,
                                     -most, most, -most);
    harness_equal(trn_var(end, 1, false, 0), 1, 0x1p1022);
    trn_tensor *huge = trn_full(c, TRN_F64, 1, (int64_t[]){5}, DBL_MAX);
    harness_equal(trn_var(huge, 1, false, 0), 1, 0.0);
    harness_equal(trn_var(harness_vector(c, 2, INF, 1.0), 1, false, 0), 1, NOT);
}

/* One element that is read more often than 32 bits can count: some seconds, and
 * many with sanitizers, which get what a signed count cannot hold. */
#ifdef TRN_CHECK
#define BEYOND 31
#else
#define BEYOND 32
#endif

static void elements_are_counted_in_64_bits(void **state)
{
    trn_context *c = *state;
    const int64_t n = (INT64_C(1) << BEYOND) + 2;
    trn_tensor *x = trn_expand(trn_full(c, TRN_F64, 1, (int64_t[]){1}, 1.0), 1,
                               (int64_t[]){n});
    assert_int_equal(trn_tensor_numel(x), n);
    harness_equal(trn_sum(x, TRN_ALL_AXES, false), 1, (double)n);
}

static void variance_of_too_few_is_nan(void **state)
{
    trn_context *c = *state;
    trn_tensor *one = harness_vector(c, 1, 3.0);
    trn_tensor *none = trn_tensor_zeros(c, TRN_F64, 2, (int64_t[]){2, 0});
    harness_equal(trn_var(one, 1, false, 0), 1, 0.0);
    harness_equal(trn_var(one, 1, false, 1), 1, NOT);
    harness_equal(trn_var(none, TRN_AXIS(1), false, 0), 2, NOT, NOT);
    assert_null(trn_var(one, 1, false, -1));
    harness_error(c, TRN_ERR_ARG, "var: correction is -1");
    assert_null(trn_var(one, 2, false, 0));
    harness_error(c, TRN_ERR_ARG, "var: axes 0x2");
    assert_null(trn_var(trn_cast(one, TRN_I32), 1, false, 0));
    harness_error(c, TRN_ERR_DTYPE, "var: input 0 is i32[1]");
}

static void logsumexp_goes_by_limits(void **state)
{
    trn_context *c = *state;
    trn_tensor *v = trn_tensor_scalar(c, TRN_F64, 6.0);
    trn_tensor *x = leaf(harness_vector(c, 2, 1e4, 1e4));
    trn_tensor *y = trn_logsumexp(x, TRN_ALL_AXES, false);
    harness_equal(y, 1, 0x1.38858b90bfbe9p+13); /* 10000 + ln 2 */
    harness_equal(trn_logsumexp(harness_vector(c, 2, -1e4, -2e4), 1, false), 1,
                  -1e4);
    x = leaf(harness_vector(c, 4, INF, 1.0, INF, -INF));
    y = trn_logsumexp(x, TRN_ALL_AXES, false);
    harness_equal(y, 1, INF);
    harness_equal(gradient(y, x, v), 4, 3.0, 0.0, 3.0, 0.0);
    x = leaf(harness_vector(c, 2, -INF, -INF));
    y = trn_logsumexp(x, TRN_ALL_AXES, false);
    harness_equal(y, 1, -INF);
    harness_equal(gradient(y, x, v), 2, 0.0, 0.0);
    trn_tensor *none = trn_tensor_zeros(c, TRN_F64, 1, (int64_t[]){0});
    harness_equal(trn_logsumexp(none, 1, false), 1, -INF);
    harness_equal(trn_logsumexp(harness_vector(c, 2, NOT, INF), 1, false), 1,
                  NOT);
}

static void activations_at_the_ends_of_the_range(void **state)
{
    trn_context *c = *state;
    trn_tensor *x =
        leaf(harness_vector(c, 6, 0.0, INF, -800.0, 800.0, -1e300, 1e300));
    trn_tensor *v = harness_vector(c, 6, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0);
    harness_equal(trn_sigmoid(x), 6, 0.5, 1.0, 0.0, 1.0, 0.0, 1.0);
    harness_equal(trn_silu(x), 6, 0.0, INF, 0.0, 800.0, 0.0, 1e300);
    harness_equal(trn_gelu_tanh(x), 6, 0.0, INF, 0.0, 800.0, 0.0, 1e300);
    harness_equal(gradient(trn_sigmoid(x), x, v), 6, 0.25, 0.0, 0.0, 0.0, 0.0,
                  0.0);
    trn_tensor *far = leaf(harness_vector(c, 4, -1e300, -800.0, 800.0, 1e300));
    trn_tensor *one = harness_vector(c, 4, 1.0, 1.0, 1.0, 1.0);
    harness_equal(gradient(trn_gelu_tanh(far), far, one), 4, 0.0, 0.0, 1.0,
                  1.0);
    harness_equal(gradient(trn_silu(far), far, one), 4, 0.0, 0.0, 1.0, 1.0);
    trn_tensor *low = harness_vector(c, 2, -INF, NOT);
    harness_equal(trn_sigmoid(low), 2, 0.0, NOT);
    harness_equal(trn_silu(low), 2, NOT, NOT); /* as PyTorch */
    harness_equal(trn_gelu_tanh(low), 2, NOT, NOT);
}

static long double exact(int k, long double x, long double *exponent)
{
    long double root = sqrtl(2 / 3.14159265358979323846L);
    long double u = k < 2 ? x / 2 : root * (x + 0.044715L * x * x * x);
    long double s = 1 / (1 + expl(-2 * u));
    *exponent = 2 * u;
    return k == 0 ? s : x * s;
}

/* The bounds of trn/ops.h, but next to where e^z becomes 0. */
static void activations_are_within_their_ulps(void **state)
{
    static const double ulps[2][3] = {{3, 4, 4}, {0.51, 1.6, 0.51}};
    static double x[20000], y[20000];
    static trn_tensor *(*const rows[])(trn_tensor *) = {trn_sigmoid, trn_silu,
                                                        trn_gelu_tanh};
    trn_context *c = *state;
    const int64_t n = (int64_t)(sizeof x / sizeof x[0]);
    uint64_t seed = 11;
    for (int k = 0; k < 6; k++) {
        trn_dtype dtype = k < 3 ? TRN_F64 : TRN_F32;
        double end = dtype == TRN_F64 ? 708.0 : 87.0;
        for (int64_t i = 0; i < n; i++) {
            double size = exp(harness_uniform(&seed, -20.0, 6.5));
            x[i] = (double)dtype_round(dtype, i % 2 ? size : -size);
        }
        trn_tensor *t = trn_cast(harness_f64(c, 1, &n, x), dtype);
        t = trn_cast(rows[k % 3](t), TRN_F64);
        harness_ok(c);
        assert_int_equal(trn_tensor_read(t, y, sizeof y), TRN_OK);
        for (int64_t i = 0; i < n; i++) {
            long double z, want = exact(k % 3, (long double)x[i], &z);
            double bound = ulps[k / 3][k % 3];
            if (dtype == TRN_F64) /* z's rounding in the expected value */
                bound += fabs((double)z) / 256;
            long double off = fabsl((long double)y[i] - want);
            CHECK(z < -(long double)end ||
                      off <= bound * dtype_ulp(dtype, want),
                  "row %d of %s at %a: %a, %.3Lg ulp\n", k % 3,
                  trn_dtype_name(dtype), x[i], y[i],
                  off / dtype_ulp(dtype, want));
        }
    }
}

/* The n elements of t are these but for a relative error. */
static void within(trn_tensor *t, int n, double relative, ...)
{
    va_list want;
    va_start(want, relative);
    harness_ok(trn_tensor_context(t));
    assert_int_equal(trn_tensor_numel(t), n);
    for (int i = 0; i < n; i++) {
        const double w = va_arg(want, double), got = (double)harness_at(t, i);
        CHECK(got == w || fabs(got - w) <= relative * fabs(w),
              "element %d is %.17g, expected %.17g\n", i, got, w);
    }
    va_end(want);
}

static void angles_at_zeros_and_infinities(void **state)
{
    trn_context *c = *state;
    const double pi = 3.14159265358979323846;
    trn_tensor *a = leaf(harness_vector(c, 6, 0.0, -0.0, 0.0, INF, INF, NOT));
    trn_tensor *b = leaf(harness_vector(c, 6, 0.0, -0.0, -2.0, INF, 1.0, INF));
    trn_tensor *v = harness_vector(c, 6, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0);
    trn_tensor *y = trn_atan2(a, b);
    harness_equal(y, 6, 0.0, -pi, pi, pi / 4, pi / 2, NOT);
    assert_false(signbit(harness_at(y, 0)));
    harness_equal(gradient(trn_atan2(a, b), a, v), 6, 0.0, 0.0, -0.5, 0.0, 0.0,
                  NOT);
    harness_equal(gradient(trn_atan2(a, b), b, v), 6, 0.0, 0.0, 0.0, 0.0, 0.0,
                  NOT);
    /* Squares would overflow or vanish, and 1 / a does not fit. */
    a = leaf(harness_vector(c, 4, 3e200, 3e-200, -4e200, 5e-324));
    b = leaf(harness_vector(c, 4, 4e200, 4e-200, 3e200, 0.0));
    v = harness_vector(c, 4, 1e200, 1e-200, 1e200, 0.5);
    within(gradient(trn_atan2(a, b), a, v), 4, 1e-15, 0.16, 0.16, 0.12, 0.0);
    within(gradient(trn_atan2(a, b), b, v), 4, 1e-15, -0.12, -0.12, 0.16, -INF);
    trn_tensor *x = leaf(harness_vector(c, 3, INF, -INF, NOT));
    harness_equal(trn_sin(x), 3, NOT, NOT, NOT);
    harness_equal(trn_cos(x), 3, NOT, NOT, NOT);
    harness_equal(trn_erf(x), 3, 1.0, -1.0, NOT);
    harness_equal(trn_trunc(x), 3, INF, -INF, NOT);
    x = harness_vector(c, 4, -0.0, -0.7, 0.7, -1.7);
    harness_equal(trn_trunc(x), 4, 0.0, 0.0, 0.0, -1.0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(signbit(harness_at(trn_trunc(x), i)) != 0, i < 2);
    assert_true(signbit(harness_at(trn_sin(x), 0)));
    assert_true(signbit(harness_at(trn_erf(x), 0)));
    assert_true(signbit(harness_at(trn_gelu(x), 0)));
}

/* The second derivative of f, element by element, for seeds v and v. */
static trn_tensor *second(trn_tensor *(*f)(trn_tensor *), trn_tensor *x,
                          trn_tensor *v)
{
    trn_tensor *g = NULL, *y = f(x);
    trn_grad_options o = TRN_GRAD_INIT;
    o.create_graph = true;
    assert_int_equal(trn_grad(1, &y, 1, &x, &v, &o, &g), TRN_OK);
    return gradient(g, x, v);
}

/* gelu' = Phi + x phi and gelu'' = (2 - x^2) phi, on 30 digits. */
static void tails_keep_their_digits_in_each_order(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = leaf(harness_vector(c, 4, -INF, INF, -1e300, 1e300));
    trn_tensor *v = harness_vector(c, 4, 1.0, 1.0, 1.0, 1.0);
    harness_equal(gradient(trn_erf(x), x, v), 4, 0.0, 0.0, 0.0, 0.0);
    harness_equal(second(trn_erf, x, v), 4, 0.0, 0.0, 0.0, 0.0);
    x = leaf(harness_vector(c, 4, -1e300, -40.0, INF, 1e300));
    harness_equal(trn_gelu(x), 4, 0.0, 0.0, INF, 1e300);
    harness_equal(gradient(trn_gelu(x), x, v), 4, 0.0, 0.0, 1.0, 1.0);
    harness_equal(second(trn_gelu, x, v), 4, 0.0, 0.0, 0.0, 0.0);
    x = leaf(harness_vector(c, 4, -INF, -1e300, INF, 1e20));
    for (int i = 0; i < 2; i++) {
        trn_tensor *(*const row)(trn_tensor *) = i ? trn_silu : trn_gelu_tanh;
        harness_equal(gradient(row(x), x, v), 4, 0.0, 0.0, 1.0, 1.0);
        harness_equal(second(row, x, v), 4, 0.0, 0.0, 0.0, 0.0);
    }
    harness_equal(trn_gelu(harness_vector(c, 2, -INF, NOT)), 2, NOT, NOT);
    x = leaf(harness_vector(c, 3, -10.0, -20.0, -36.0));
    v = harness_vector(c, 3, 1.0, 1.0, 1.0);
    within(trn_gelu(x), 3, 4e-16, -7.619853024160526066e-23,
           -5.5072482372124673902e-88, -1.5057446636870219994e-282);
    /* x^2 / 2 is rounded there: half an ulp of 648 is 6e-14. */
    within(gradient(trn_gelu(x), x, v), 3, 1e-13, -7.6184000964648140857e-22,
           -1.1014360483133464042e-86, -5.420674359367623393e-281);
    within(second(trn_gelu, x, v), 3, 2e-13, -7.5407066541722909594e-21,
           -2.1973374481395857495e-85, -1.9499347046007906542e-279);
}

static void mse_loss_of_nothing_and_of_other_shapes(void **state)
{
    trn_context *c = *state;
    trn_tensor *a = leaf(harness_vector(c, 2, 1.0, 4.0));
    trn_tensor *b = trn_tensor_scalar(c, TRN_F64, 2.0);
    trn_tensor *y = trn_mse_loss(a, b, TRN_REDUCE_MEAN);
    harness_equal(y, 1, 2.5);
    trn_tensor *v = trn_tensor_scalar(c, TRN_F64, 1.0);
    harness_equal(gradient(y, a, v), 2, -1.0, 2.0);
    harness_equal(trn_mse_loss(a, b, TRN_REDUCE_NONE), 2, 1.0, 4.0);
    harness_equal(trn_mse_loss(a, trn_cast(b, TRN_I32), TRN_REDUCE_SUM), 1,
                  5.0);
    trn_tensor *none = trn_tensor_zeros(c, TRN_F64, 1, (int64_t[]){0});
    harness_equal(trn_mse_loss(none, none, TRN_REDUCE_MEAN), 1, NOT);
    harness_equal(trn_mse_loss(none, none, TRN_REDUCE_SUM), 1, 0.0);
    assert_null(trn_mse_loss(a, b, (trn_reduction)7));
    harness_error(c, TRN_ERR_ARG, "mse_loss: reduction is 7");
    assert_null(
        trn_mse_loss(a, harness_vector(c, 3, 1.0, 1.0, 1.0), TRN_REDUCE_MEAN));
    harness_error(c, TRN_ERR_SHAPE, "mse_loss: shapes do not broadcast");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(signs_and_magnitudes_at_zero_and_nan),
        TRN_TEST(zero_is_added_and_one_multiplied),
        TRN_TEST(halves_are_rounded_to_the_even_integer),
        TRN_TEST(rsqrt_has_an_infinite_slope_but_no_nan),
        TRN_TEST(comparisons_with_nan_are_false_but_for_not_equal),
        TRN_TEST(minima_let_nan_win_and_share_gradients),
        TRN_TEST(variance_neither_cancels_nor_overflows),
        TRN_TEST(elements_are_counted_in_64_bits),
        TRN_TEST(variance_of_too_few_is_nan),
        TRN_TEST(logsumexp_goes_by_limits),
        TRN_TEST(activations_at_the_ends_of_the_range),
        TRN_TEST(activations_are_within_their_ulps),
        TRN_TEST(angles_at_zeros_and_infinities),
        TRN_TEST(tails_keep_their_digits_in_each_order),
        TRN_TEST(mse_loss_of_nothing_and_of_other_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
