/* SPDX-License-Identifier: Apache-2.0
 *
 * softmax and dropout at their edges, by hand: what a mask hides, infinities,
 * the probabilities 0 and 1, and what a mask of dropout depends on.
 */
#include <math.h>

#include "harness.h"
#include "special.h"

static trn_tensor *leaf(trn_context *c, int rank, const int64_t *shape,
                        const double *data)
{
    trn_tensor *x = harness_f64(c, rank, shape, data);
    assert_int_equal(trn_set_requires_grad(x, true), TRN_OK);
    return x;
}

static void rows_that_a_mask_hides_have_zero_gradients(void **state)
{
    const double logits[6] = {-INF, -INF, -INF, 1, -INF, 1};
    trn_context *c = *state;
    trn_tensor *x = leaf(c, 2, (int64_t[]){2, 3}, logits);
    trn_tensor *v =
        harness_f64(c, 2, (int64_t[]){2, 3}, (double[]){3, 1, 2, 8, 7, 4});
    trn_tensor *y = trn_softmax(x, 1), *g = NULL, *h = NULL;
    trn_grad_options o = TRN_GRAD_INIT;
    o.create_graph = true;
    harness_equal(y, 6, 0.0, 0.0, 0.0, 0.5, 0.0, 0.5);
    y = trn_sum(trn_mul(y, v), TRN_ALL_AXES, false);
    trn_grad(1, &y, 1, &x, NULL, &o, &g);
    harness_equal(g, 6, 0.0, 0.0, 0.0, 1.0, 0.0, -1.0);
    y = trn_sum(trn_mul(g, v), TRN_ALL_AXES, false);
    trn_grad(1, &y, 1, &x, NULL, NULL, &h);
    harness_ok(c);
    harness_equal(h, 6, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
}

/* The second row counts as ever: l = -log 2 at its two finite elements. */
static void hidden_rows_of_log_softmax_have_zero_gradients(void **state)
{
    const double logits[6] = {-INF, -INF, -INF, 1, -INF, 1};
    trn_context *c = *state;
    trn_tensor *x = leaf(c, 2, (int64_t[]){2, 3}, logits);
    trn_tensor *v =
        harness_f64(c, 2, (int64_t[]){2, 3}, (double[]){3, 1, 2, 8, 0, 4});
    trn_tensor *y = trn_log_softmax(x, 1), *g = NULL, *h = NULL;
    trn_grad_options o = TRN_GRAD_INIT;
    o.create_graph = true;
    for (int i = 0; i < 3; i++)
        assert_true(harness_at(y, i) == -(long double)INFINITY);
    trn_grad(1, &y, 1, &x, &v, &o, &g);
    harness_ok(c);
    for (int i = 0; i < 3; i++)
        assert_true(harness_at(g, i) == 0);
    assert_true(fabsl(harness_at(g, 3) - 2) <= 1e-14L);
    assert_true(harness_at(g, 4) == 0);
    assert_true(fabsl(harness_at(g, 5) + 2) <= 1e-14L);
    y = trn_sum(trn_mul(g, v), TRN_ALL_AXES, false);
    trn_grad(1, &y, 1, &x, NULL, NULL, &h);
    harness_ok(c);
    for (int i = 0; i < 3; i++)
        assert_true(harness_at(h, i) == 0);
    /* -sum(v) p (v - sum(p v)) = -12 (8 - 6) / 2 and its opposite */
    assert_true(fabsl(harness_at(h, 3) + 12) <= 1e-13L);
    assert_true(fabsl(harness_at(h, 5) - 12) <= 1e-13L);
}

static void infinite_logits_share_by_their_limits(void **state)
{
    const double logits[6] = {INF, 0, INF, INF, -INF, 5};
    trn_context *c = *state;
    trn_tensor *x = leaf(c, 2, (int64_t[]){2, 3}, logits);
    trn_tensor *y = trn_softmax(x, 1), *l = trn_log_softmax(x, 1), *g = NULL;
    harness_equal(y, 6, 0.5, 0.0, 0.5, 1.0, 0.0, 0.0);
    double two = (double)harness_at(l, 0);
    assert_true(fabs(two + 0.693147180559945309417) <= 1e-15);
    assert_true(harness_at(l, 3) == 0);
    assert_true(harness_at(l, 1) == -(long double)INFINITY);
    trn_tensor *v =
        harness_f64(c, 2, (int64_t[]){2, 3}, (double[]){3, 1, 2, 8, 7, 4});
    y = trn_sum(trn_mul(y, v), TRN_ALL_AXES, false);
    trn_grad(1, &y, 1, &x, NULL, NULL, &g);
    harness_equal(g, 6, 0.25, 0.0, -0.25, 0.0, 0.0, 0.0);
    harness_ok(c);
}

static void dropout_of_all_leaves_zeros_and_of_none_the_input(void **state)
{
    trn_context *c = *state;
    trn_generator *g = trn_generator_default(c);
    trn_tensor *x = leaf(c, 1, (int64_t[]){4}, (double[]){INF, -INF, NOT, 2});
    trn_tensor *v = harness_vector(c, 4, INF, 1.0, NOT, 3.0), *gx = NULL;
    trn_tensor *y = trn_dropout(x, 1.0, g);
    harness_equal(y, 4, 0.0, 0.0, 0.0, 0.0);
    trn_grad(1, &y, 1, &x, &v, NULL, &gx);
    harness_equal(gx, 4, 0.0, 0.0, 0.0, 0.0);
    x = leaf(c, 1, (int64_t[]){4}, (double[]){INF, -INF, 0.1, 2});
    y = trn_dropout(x, 0.0, g);
    harness_equal(y, 4, INF, -INF, 0.1, 2.0);
    v = harness_vector(c, 4, 1.0, 0.3, -5.0, 3.0);
    trn_grad(1, &y, 1, &x, &v, NULL, &gx);
    harness_equal(gx, 4, 1.0, 0.3, -5.0, 3.0);
    harness_ok(c);
}

/* The mask of stream 3, draw 1, of a context with that seed. */
static void mask_of(uint64_t seed, uint64_t stream, int threads, double *mask)
{
    trn_context *c;
    trn_options o = TRN_OPTIONS_INIT;
    o.seed = seed;
    o.n_threads = threads;
    assert_int_equal(trn_open(&c, &o), TRN_OK);
    trn_generator *g = trn_generator_new(c, stream);
    trn_tensor *x = trn_full(c, TRN_F64, 1, (int64_t[]){64}, 1.0);
    trn_dropout(x, 0.5, trn_generator_default(c)); /* another stream */
    trn_dropout(x, 0.5, g);
    trn_tensor *y = trn_dropout(x, 0.5, g);
    for (int i = 0; i < 64; i++)
        mask[i] = (double)harness_at(y, i);
    assert_int_equal(trn_close(c), TRN_OK);
}

static void the_mask_depends_on_seed_stream_and_counter_only(void **state)
{
    double mask[64], other[64];
    (void)state;
    mask_of(9, 3, 1, mask);
    mask_of(9, 3, 3, other);
    assert_memory_equal(mask, other, sizeof mask);
    mask_of(10, 3, 1, other);
    assert_memory_not_equal(mask, other, sizeof mask);
    mask_of(9, 4, 1, other);
    assert_memory_not_equal(mask, other, sizeof mask);
}

static void dropout_in_evaluation_is_the_identity(void **state)
{
    trn_context *c = *state;
    trn_module *m = trn_nn_dropout(c, 0.9);
    trn_tensor *x = harness_vector(c, 4, INF, -0.5, 0.1, 2.0);
    assert_int_equal(trn_nn_train(m, false), TRN_OK);
    harness_equal(trn_nn_forward(m, x), 4, INF, -0.5, 0.1, 2.0);
    assert_int_equal(trn_generator_draws(trn_generator_default(c)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(rows_that_a_mask_hides_have_zero_gradients),
        TRN_TEST(hidden_rows_of_log_softmax_have_zero_gradients),
        TRN_TEST(infinite_logits_share_by_their_limits),
        TRN_TEST(dropout_of_all_leaves_zeros_and_of_none_the_input),
        TRN_TEST(the_mask_depends_on_seed_stream_and_counter_only),
        TRN_TEST(dropout_in_evaluation_is_the_identity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
