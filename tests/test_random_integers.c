/* SPDX-License-Identifier: Apache-2.0
 *
 * randint and permutation: which numbers they are, that none is likelier than
 * another, what bad calls say; eagerly, captured and on the loop device.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/philox.h"
#include "libtrn/ops/randoms.h"
#include "story.h"

/* ---- the stated method, as a literal loop over published blocks ---- */

static uint64_t word64(uint64_t key, uint64_t draw, uint64_t block, int first)
{
    const trn__philox_block counter = {{(uint32_t)block,
                                        (uint32_t)(block >> 32), (uint32_t)draw,
                                        (uint32_t)(draw >> 32)}};
    const trn__philox_block b = trn__philox(key, counter);
    return b.w[first] + UINT64_C(0x100000000) * b.w[first + 1];
}

/* The largest multiple of n below 2^64, by counting down from 2^64 - 1. */
static uint64_t multiple(uint64_t n)
{
    uint64_t left = UINT64_MAX;
    while (left % n != 0)
        left--;
    return left;
}

/* n such that a good part of the numbers is thrown away */
static const int64_t wide_low = INT64_C(-4611686018427387904);
static const int64_t wide_high = INT64_C(4611686018427387905) + 100;

static void randint_is_the_stated_loop(void **state)
{
    static const struct {
        trn_dtype dtype;
        int64_t low, high;
    } ranges[] = {
        {TRN_I32, 0, 10},
        {TRN_I32, -3, 4},
        {TRN_I32, INT32_MIN, (int64_t)INT32_MAX + 1},
        {TRN_I64, 0, 1000},
        {TRN_I64, wide_low, wide_high},
    };
    trn_context *c = *state;
    trn_generator *g = trn_generator_new(c, 17);
    int64_t shape[2] = {19, 13};
    int later = 0;
    for (size_t q = 0; q < sizeof ranges / sizeof ranges[0]; q++) {
        const uint64_t n = (uint64_t)ranges[q].high - (uint64_t)ranges[q].low;
        const uint64_t limit = n > UINT64_MAX / 2 ? n
                               : n < 2000         ? multiple(n)
                                                  : UINT64_MAX - n + 1;
        trn_tensor *y = trn_randint(g, ranges[q].dtype, ranges[q].low,
                                    ranges[q].high, 2, shape);
        harness_ok(c);
        for (uint64_t i = 0; i < 19 * 13; i++) {
            uint64_t t = 0, x;
            for (;; t++) {
                const uint64_t block = i / 2 + t * UINT64_C(0x1000000000000);
                x = word64(g->key, q, block, (int)(i % 2) * 2);
                if (x < limit)
                    break;
            }
            later += t > 0;
            const long double want =
                (long double)ranges[q].low + (long double)(x % n);
            CHECK(harness_at(y, (int64_t)i) == want,
                  "range %d, element %d: %Lg, expected %Lg\n", (int)q, (int)i,
                  harness_at(y, (int64_t)i), want);
        }
    }
    assert_int_equal(trn_generator_draws(g), 5);
    assert_true(later > 50); /* half of the widest range's first attempts */
}

static void permutation_is_the_stated_loop(void **state)
{
    trn_context *c = *state;
    trn_generator *g = trn_generator_new(c, 18);
    for (uint64_t draw = 0; draw < 4; draw++) {
        const int n = (int)(40 + draw);
        int64_t want[48], order[48];
        uint64_t block = 0;
        for (int i = 0; i < n; i++)
            want[i] = i;
        for (int i = n - 1; i > 0; i--) {
            const uint64_t below = (uint64_t)i + 1;
            uint64_t x = word64(g->key, draw, block++, 0);
            while (x >= multiple(below))
                x = word64(g->key, draw, block++, 0);
            const int64_t t = want[i];
            want[i] = want[x % below];
            want[x % below] = t;
        }
        trn_tensor *y = trn_permutation(g, draw % 2 ? TRN_I64 : TRN_I32, n);
        for (int i = 0; i < n; i++)
            assert_true(harness_at(y, i) == (long double)want[i]);
        trn__permutation(g, draw, n, order); /* a loader's */
        for (int i = 0; i < n; i++)
            assert_true(order[i] == want[i]);
    }
    assert_int_equal(trn_generator_draws(g), 4);
}

static void the_limit_is_a_multiple_below_two_to_the_64(void **state)
{
    static const uint64_t some[] = {1, 2, 3, 10, 641, 65536, 999983};
    (void)state;
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        assert_true(trn__philox_limit(some[i]) == multiple(some[i]));
    assert_true(trn__philox_limit(UINT64_C(1) << 63) == UINT64_C(1) << 63);
    assert_true(trn__philox_limit((UINT64_C(1) << 63) + 5) ==
                (UINT64_C(1) << 63) + 5);
    assert_true(trn__philox_limit(UINT64_MAX) == UINT64_MAX);
}

/* ---- distribution ---- */

/* chi^2 of n cells has mean n - 1 and variance 2 (n - 1): 5 deviations. */
static void every_integer_is_as_likely(void **state)
{
    trn_context *c = *state;
    trn_generator *g = trn_generator_new(c, 19);
    int64_t shape = 100000, low = INT64_MAX, high = INT64_MIN;
    for (int n = 2; n < 60; n += 19) {
        double seen[64] = {0}, chi = 0;
        trn_tensor *y = trn_randint(g, TRN_I32, -5, n - 5, 1, &shape);
        int32_t *data = harness_bytes_of(y, NULL);
        for (int64_t i = 0; i < shape; i++) {
            assert_in_range(data[i] + 5, 0, n - 1);
            seen[data[i] + 5]++;
        }
        free(data);
        for (int k = 0; k < n; k++) {
            const double want = (double)shape / n;
            chi += (seen[k] - want) * (seen[k] - want) / want;
        }
        CHECK(fabs(chi - (n - 1)) < 5 * sqrt(2.0 * (n - 1)),
              "%d cells: chi^2 is %g\n", n, chi);
    }
    trn_tensor *y = trn_randint(g, TRN_I64, wide_low, wide_high, 1, &shape);
    int64_t *wide = harness_bytes_of(y, NULL);
    for (int64_t i = 0; i < shape; i++) {
        low = wide[i] < low ? wide[i] : low;
        high = wide[i] > high ? wide[i] : high;
    }
    free(wide);
    assert_true(low >= wide_low && low < wide_low + (INT64_C(1) << 50));
    assert_true(high < wide_high && high > wide_high - (INT64_C(1) << 50));
}

/* All 24 orders of four, 24,000 times. */
static void every_order_is_as_likely(void **state)
{
    trn_context *c = *state;
    trn_generator *g = trn_generator_new(c, 20);
    double seen[256] = {0}, chi = 0;
    int orders = 0;
    for (int i = 0; i < 24000; i++) {
        trn_tensor *y = trn_permutation(g, TRN_I32, 4);
        int32_t *p = harness_bytes_of(y, NULL);
        assert_int_equal(1 << p[0] | 1 << p[1] | 1 << p[2] | 1 << p[3], 15);
        seen[p[0] * 64 + p[1] * 16 + p[2] * 4 + p[3]]++;
        free(p);
        trn_tensor_release(y);
    }
    for (int k = 0; k < 256; k++) {
        orders += seen[k] > 0;
        if (seen[k] > 0)
            chi += (seen[k] - 1000) * (seen[k] - 1000) / 1000;
    }
    assert_int_equal(orders, 24);
    CHECK(fabs(chi - 23) < 5 * sqrt(46.0), "chi^2 is %g\n", chi);
}

/* ---- arguments ---- */

static void i32_is_the_default_and_i64_is_accepted(void **state)
{
    trn_context *c = *state;
    trn_generator *g = trn_generator_default(c);
    int64_t n = 3;
    assert_int_equal(
        trn_tensor_dtype(trn_randint(g, (trn_dtype)0, 0, 9, 1, &n)), TRN_I32);
    assert_int_equal(trn_tensor_dtype(trn_randint(g, TRN_I64, 0, 9, 1, &n)),
                     TRN_I64);
    assert_int_equal(trn_tensor_dtype(trn_permutation(g, (trn_dtype)0, 3)),
                     TRN_I32);
    assert_int_equal(trn_tensor_dtype(trn_permutation(g, TRN_I64, 3)), TRN_I64);
    harness_equal(trn_randint(g, TRN_I32, -4, -3, 0, NULL), 1, -4.0);
    harness_equal(trn_permutation(g, TRN_I32, 1), 1, 0.0);
    int64_t none[2] = {0, 5};
    assert_int_equal(trn_tensor_numel(trn_randint(g, TRN_I32, 0, 2, 2, none)),
                     0);
    assert_int_equal(trn_tensor_numel(trn_permutation(g, TRN_I32, 0)), 0);
    assert_int_equal(trn_generator_draws(g), 8);
    assert_false(trn_requires_grad(trn_permutation(g, TRN_I32, 2)));
    harness_ok(c);
}

static void bad_ranges_are_refused_and_draw_nothing(void **state)
{
    trn_context *c = *state;
    trn_generator *g = trn_generator_default(c);
    int64_t n = 3, none = 0;
    assert_null(trn_randint(NULL, TRN_I32, 0, 9, 1, &n));
    assert_null(trn_permutation(NULL, TRN_I32, 3));
    harness_ok(c);
    assert_null(trn_randint(g, TRN_F32, 0, 9, 1, &n));
    harness_error(c, TRN_ERR_DTYPE,
                  "randint: dtype is f32; expected i32 or i64");
    assert_null(trn_randint(g, TRN_U8, 0, 9, 1, &n));
    harness_error(c, TRN_ERR_DTYPE, "randint: dtype is u8");
    assert_null(trn_permutation(g, TRN_BOOL, 2));
    harness_error(c, TRN_ERR_DTYPE, "permutation: dtype is bool");
    assert_null(trn_randint(g, TRN_I32, 4, 4, 1, &none));
    harness_error(c, TRN_ERR_ARG,
                  "randint: low is 4, high is 4; expected low < high");
    assert_null(trn_randint(g, TRN_I64, INT64_MAX, INT64_MIN, 1, &n));
    harness_error(c, TRN_ERR_ARG, "expected low < high");
    assert_null(trn_randint(g, TRN_I32, 0, INT64_C(2147483649), 1, &n));
    harness_error(c, TRN_ERR_ARG, "[0, 2147483649) does not fit i32");
    assert_null(trn_randint(g, TRN_I32, INT64_C(-2147483649), 0, 1, &n));
    harness_error(c, TRN_ERR_ARG, "does not fit i32");
    assert_null(trn_randint(g, TRN_I32, 0, 2, 1, (int64_t[]){-1}));
    harness_error(c, TRN_ERR_ARG, "randint: dimension 0 is -1");
    assert_null(trn_randint(g, TRN_I32, 0, 2, 1, NULL));
    harness_error(c, TRN_ERR_ARG, "randint: shape is NULL");
    assert_null(trn_randint(g, TRN_I32, 0, 2, 1, (int64_t[]){INT64_MAX}));
    harness_error(c, TRN_ERR_ARG, "randint: the size overflows");
    assert_null(trn_permutation(g, TRN_I32, -1));
    harness_error(c, TRN_ERR_ARG, "permutation: n is -1; expected 0 or more");
    assert_null(trn_permutation(g, TRN_I32, INT64_C(2147483649)));
    harness_error(c, TRN_ERR_ARG, "2147483648 at most for i32");
    assert_null(trn_permutation(g, TRN_I64, INT64_MAX));
    harness_error(c, TRN_ERR_ARG, "permutation: the size overflows");
    assert_int_equal(trn_generator_draws(g), 0);
}

/* ---- steps ---- */

static void drawn_in_steps(story *s)
{
    trn_generator *g = trn_generator_new(s->c, 3);
    int64_t n = 5;
    for (int i = 0; i < 4; i++) {
        trn_step_begin(s->c);
        trn_tensor *a = trn_randint(g, TRN_I32, -2, 11 + i / 2, 1, &n);
        trn_tensor *b = trn_permutation(g, TRN_I32, 6);
        trn_tensor *x = trn_keep(trn_cast(a, TRN_F32));
        trn_tensor *y = trn_keep(trn_cast(b, TRN_F32));
        trn_step_end(s->c);
        say_tensor(s, x);
        say_tensor(s, y);
        say(s, (double)trn_generator_draws(g));
    }
}

static void draws_of_steps_are_equal_in_all_ways(void **state)
{
    (void)state;
    tell(drawn_in_steps, 50);
}

/* A step that fails takes its draws back. */
static void a_failed_step_gives_its_draws_back(void **state)
{
    trn_context *c = *state;
    trn_generator *g = trn_generator_default(c);
    trn_step_begin(c);
    trn_permutation(g, TRN_I32, 3);
    trn_randint(g, TRN_I32, 1, 0, 0, NULL);
    trn_step_end(c);
    harness_error(c, TRN_ERR_ARG, "randint");
    assert_int_equal(trn_generator_draws(g), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(randint_is_the_stated_loop),
        TRN_TEST(permutation_is_the_stated_loop),
        TRN_TEST(the_limit_is_a_multiple_below_two_to_the_64),
        TRN_TEST(every_integer_is_as_likely),
        TRN_TEST(every_order_is_as_likely),
        TRN_TEST(i32_is_the_default_and_i64_is_accepted),
        TRN_TEST(bad_ranges_are_refused_and_draw_nothing),
        TRN_TEST(draws_of_steps_are_equal_in_all_ways),
        TRN_TEST(a_failed_step_gives_its_draws_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
