/* SPDX-License-Identifier: Apache-2.0
 *
 * Zeros, infinities and NaN where rows may lose them, by XLA in both lowerings
 * and on the CPU device: all powers of awkward numbers, the largest of rows of
 * many lengths with a NaN in them, what picks and what rounds, integers at
 * their ends, gradients of ties, of points without a slope, and of nothing.
 */
#include <math.h>
#include <stdlib.h>

#include "tests/xla/xla_batch.h"

static void compare(const char *what, trn_tensor *here, trn_tensor *there)
{
    trn_dtype dtype = trn_tensor_dtype(here);
    int64_t n = trn_tensor_numel(here);
    void *want = harness_bytes_of(here, NULL);
    void *got = harness_bytes_of(there, NULL);
    for (int64_t i = 0; i < n; i++) {
        long double a = dtype_get(dtype, want, i), b = dtype_get(dtype, got, i);
        bool near = a == b || (isnan(a) && isnan(b)) ||
                    fabsl(a - b) <= 1e-6L * fabsl(a);
        CHECK(near, "%s, element %lld: %Lg, expected %Lg\n", what, (long long)i,
              b, a);
    }
    free(want);
    free(got);
}

/* The same function on both, in a step. */
static void judge(const char *what, trn_tensor *(*f)(trn_context *c, int64_t n),
                  int64_t n)
{
    const char *devices[2] = {"cpu", xla_device()};
    trn_context *c[2];
    trn_tensor *y[2];
    xla_running("%s %lld", what, (long long)n);
    for (int i = 0; i < 2; i++) {
        c[i] = xla_open(devices[i]);
        trn_step_begin(c[i]);
        y[i] = trn_keep(f(c[i], n));
        trn_step_end(c[i]);
        harness_ok(c[i]);
    }
    compare(what, y[0], y[1]);
    for (int i = 0; i < 2; i++)
        harness_close(c[i]);
}

static trn_tensor *powers(trn_context *c, int64_t n)
{
    const float big = INFINITY;
    const float base[] = {0,     -0.0f, 1,  -1,  2,    -2, 0.5f,
                          -0.5f, 3,     -3, big, -big, NAN};
    const float exponent[] = {0,    -0.0f, 1, -1, 2,   -2,   3,  -3,
                              0.5f, -0.5f, 4, -5, big, -big, NAN};
    (void)n;
    trn_tensor *a = trn_tensor_from(c, TRN_F32, 2, (int64_t[]){13, 1}, base);
    trn_tensor *b = trn_tensor_from(c, TRN_F32, 1, (int64_t[]){15}, exponent);
    return trn_pow(a, b);
}

/* Rows 0 to 2 have a NaN at their ends and in the middle, row 3 infinity. */
static trn_tensor *largest(trn_context *c, int64_t n)
{
    float *x = calloc((size_t)(4 * n), sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < 4 * n; i++)
        x[i] = (float)(i % 97);
    x[0] = x[n + n / 2] = x[3 * n - 1] = NAN;
    x[3 * n + n / 3] = INFINITY;
    trn_tensor *t = trn_tensor_from(c, TRN_F32, 2, (int64_t[]){4, n}, x);
    free(x);
    return trn_max(t, TRN_AXIS(1), false);
}

static trn_tensor *largest_of_all(trn_context *c, int64_t n)
{
    float *x = calloc((size_t)n, sizeof *x);
    assert_non_null(x);
    x[n / 2] = NAN;
    trn_tensor *t = trn_tensor_from(c, TRN_F32, 1, &n, x);
    free(x);
    return trn_max(t, TRN_ALL_AXES, false);
}

static trn_tensor *awkward(trn_context *c)
{
    const float v[8] = {0, -0.0f, 1, -1, INFINITY, -INFINITY, NAN, 3e9f};
    return trn_tensor_from(c, TRN_F32, 1, (int64_t[]){8}, v);
}

/* Rows of 8: each pair of awkward numbers, and 1 / y, where a zero shows its
 * sign. */
static trn_tensor *picked(trn_context *c, int64_t n)
{
    trn_tensor *x = awkward(c);
    trn_tensor *column = trn_reshape(x, 2, (int64_t[]){8, 1});
    trn_tensor *y = n == 0   ? trn_maximum(x, column)
                    : n == 1 ? trn_minimum(x, column)
                    : n == 2 ? trn_relu(column)
                    : n == 3 ? trn_min(trn_maximum(x, column), 1, false)
                             : trn_where(trn_greater(x, column), x, column);
    y = trn_reshape(y, 1, (int64_t[]){-1});
    trn_tensor *one = trn_full(c, TRN_F32, 0, NULL, 1.0);
    return trn_concat(2, (trn_tensor *[]){y, trn_div(one, y)}, 0);
}

static trn_tensor *integers(trn_context *c, int64_t n)
{
    const int32_t low = INT32_MIN, high = INT32_MAX;
    const int32_t a[4] = {high, low, low, -7}, b[4] = {1, 1, -1, 2};
    trn_tensor *x = trn_tensor_from(c, TRN_I32, 1, (int64_t[]){4}, a);
    trn_tensor *y = trn_tensor_from(c, TRN_I32, 1, (int64_t[]){4}, b);
    return n == 0   ? trn_add(x, y)
           : n == 1 ? trn_mul(x, y)
           : n == 2 ? trn_div(x, y)
           : n == 3 ? trn_abs(x)
                    : trn_cast(awkward(c), n == 4 ? TRN_I32 : TRN_U8);
}

/* Gradients: of where with a row that has no slope at 0 or -1 in the branch not
 * taken, of ties, of points that have a slope by decree. */
static trn_tensor *slopes(trn_context *c, int64_t n)
{
    const float v[4] = {0, -1, 4, 0};
    trn_tensor *x = trn_tensor_from(c, TRN_F32, 1, (int64_t[]){4}, v),
               *g = NULL;
    trn_set_requires_grad(x, true);
    trn_tensor *zero = trn_full(c, TRN_F32, 0, NULL, 0.0);
    trn_tensor *half = trn_full(c, TRN_F32, 0, NULL, 0.5);
    trn_tensor *y = n == 0   ? trn_log(x)
                    : n == 1 ? trn_sqrt(x)
                    : n == 2 ? trn_rsqrt(x)
                    : n == 3 ? trn_div(half, x)
                    : n == 4 ? trn_pow(x, half)
                    : n == 5 ? trn_exp(trn_div(half, trn_mul(x, x)))
                    : n == 6 ? trn_max(trn_mul(x, x), 1, false)
                    : n == 7 ? trn_min(x, 1, true)
                    : n == 8 ? trn_maximum(x, zero)
                    : n == 9 ? trn_pow(x, zero)
                             : trn_norm(trn_mul(x, zero), 1, false);
    if (n < 6)
        y = trn_where(trn_greater(x, zero), y, x);
    y = trn_sum(y, TRN_ALL_AXES, false);
    trn_grad(1, &y, 1, &x, NULL, NULL, &g);
    return g;
}

/* A product and reductions over an axis that is empty. */
static trn_tensor *nothing(trn_context *c, int64_t n)
{
    const int64_t shape[2] = {3, 0}, turned[2] = {0, 3};
    trn_tensor *x = trn_full(c, TRN_F32, 2, shape, 1.0);
    return n == 0   ? trn_sum(x, 2, false)
           : n == 1 ? trn_mean(x, 2, false)
           : n == 2 ? trn_norm(x, 2, false)
           : n == 3 ? trn_logsumexp(x, 2, false)
                    : trn_matmul(x, trn_full(c, TRN_F32, 2, turned, 1.0));
}

static void judge_all(void)
{
    judge("powers", powers, 0);
    for (int64_t n = 0; n < 5; n++) {
        judge("picked", picked, n);
        judge("nothing", nothing, n);
    }
    for (int64_t n = 0; n < 6; n++)
        judge("integers", integers, n);
    for (int64_t n = 0; n < 11; n++)
        judge("slopes", slopes, n);
    for (int64_t n = 1; n <= 40000; n = 3 * n + n % 7) {
        judge("largest of rows", largest, n);
        judge("largest of all", largest_of_all, n);
    }
}

static void awkward_values_are_those_of_the_cpu(void **state)
{
    (void)state;
    judge_all();
}

static void awkward_values_are_those_of_the_cpu_for_neuron(void **state)
{
    (void)state;
    xla_use_neuron();
    judge_all();
}

int main(int argc, char **argv)
{
    static const xla_test tests[] = {
        XLA_TEST(awkward_values_are_those_of_the_cpu),
        XLA_TEST(awkward_values_are_those_of_the_cpu_for_neuron),
    };
    return xla_main(argc, argv, (int)(sizeof tests / sizeof tests[0]), tests);
}
