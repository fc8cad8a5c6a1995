/* SPDX-License-Identifier: Apache-2.0
 *
 * Zeros, infinities and NaN where rows may lose them, by XLA in both lowerings
 * and on the CPU device: all powers of awkward numbers, the largest of rows of
 * many lengths with a NaN in them.
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

static void judge_all(void)
{
    judge("powers", powers, 0);
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
