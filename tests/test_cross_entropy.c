/* SPDX-License-Identifier: Apache-2.0
 *
 * cross_entropy with all its options, by hand.
 *
 * With the logits (ln 2, 0, 0) the probabilities are 1/2, 1/4, 1/4, so every
 * loss is a multiple of ln 2.
 */
#include <math.h>
#include <stdio.h>

#include "captured.h"
#include "special.h"

static const double LN2 = 0.693147180559945309417232121458;

#define ROWS(n) \
    (int64_t[]) \
    {           \
        n, 3    \
    }
#define OPTIONS(...)                                                     \
    (trn_cross_entropy_options)                                          \
    {                                                                    \
        .size = (uint32_t)sizeof(trn_cross_entropy_options), __VA_ARGS__ \
    }

static trn_tensor *leaf(trn_context *c, int rank, const int64_t *shape,
                        const double *data)
{
    trn_tensor *x = harness_f64(c, rank, shape, data);
    assert_int_equal(trn_set_requires_grad(x, true), TRN_OK);
    return x;
}

/* n rows of the logits (ln 2, 0, 0), at most 3. */
static trn_tensor *halves(trn_context *c, int64_t n)
{
    const double x[9] = {LN2, 0, 0, LN2, 0, 0, LN2, 0, 0};
    return leaf(c, 2, ROWS(n), x);
}

static trn_tensor *weights(trn_context *c)
{
    return leaf(c, 1, (int64_t[]){3}, (double[]){1, 2, 4});
}

static trn_tensor *indices(trn_context *c, int64_t n, const int32_t *t)
{
    return harness_i32(c, 1, &n, t);
}

/* t has these n values times `unit`. */
static void near(trn_tensor *t, int n, const double *want, double unit)
{
    assert_non_null(t);
    assert_int_equal(trn_tensor_numel(t), n);
    for (int i = 0; i < n; i++) {
        double found = (double)harness_at(t, i);
        CHECK(fabs(found - want[i] * unit) <= 1e-14,
              "element %d is %.17g, expected %.17g\n", i, found,
              want[i] * unit);
    }
}

#define NEAR(t, n, unit, ...) near(t, n, (double[]){__VA_ARGS__}, unit)

static trn_tensor *gradient(trn_tensor *y, trn_tensor *x)
{
    trn_tensor *g = NULL;
    trn_grad_options o = TRN_GRAD_INIT;
    o.retain_graph = true;
    trn_grad(1, &y, 1, &x, NULL, &o, &g);
    return g;
}

/* ---- formulas ---- */

static void smoothing_spreads_the_target_over_all_classes(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = halves(c, 2), *t = indices(c, 2, (int32_t[]){0, 2});
    trn_cross_entropy_options o = OPTIONS(.label_smoothing = 0.3);
    NEAR(trn_cross_entropy(x, t, &o), 1, LN2, 1.55);
    o.reduction = TRN_REDUCE_SUM;
    NEAR(trn_cross_entropy(x, t, &o), 1, LN2, 3.1);
    o.reduction = TRN_REDUCE_NONE;
    NEAR(trn_cross_entropy(x, t, &o), 2, LN2, 1.2, 1.9);
    o.label_smoothing = 1.0;
    NEAR(trn_cross_entropy(x, t, &o), 2, LN2, 5.0 / 3, 5.0 / 3);
    harness_ok(c);
}

static void weights_count_in_the_sum_and_in_what_it_is_divided_by(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = halves(c, 2), *t = indices(c, 2, (int32_t[]){0, 2});
    trn_cross_entropy_options o = OPTIONS(.weight = weights(c));
    NEAR(trn_cross_entropy(x, t, &o), 1, LN2, 9.0 / 5);
    o.reduction = TRN_REDUCE_SUM;
    NEAR(trn_cross_entropy(x, t, &o), 1, LN2, 9.0);
    o.reduction = TRN_REDUCE_NONE;
    NEAR(trn_cross_entropy(x, t, &o), 2, LN2, 1.0, 8.0);
    o.label_smoothing = 0.3;
    NEAR(trn_cross_entropy(x, t, &o), 2, LN2, 2.0, 6.9);
    o.reduction = TRN_REDUCE_MEAN;
    NEAR(trn_cross_entropy(x, t, &o), 1, LN2, 1.78);
    harness_ok(c);
}

static void gradients_are_those_of_the_formula(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = halves(c, 2), *t = indices(c, 2, (int32_t[]){0, 2});
    trn_cross_entropy_options o =
        OPTIONS(.reduction = TRN_REDUCE_SUM, .label_smoothing = 0.3,
                .weight = weights(c));
    trn_tensor *y = trn_cross_entropy(x, t, &o);
    NEAR(gradient(y, x), 6, 1.0, -0.1, 0.15, -0.05, 1.65, 0.675, -2.325);
    NEAR(gradient(y, o.weight), 3, LN2, 0.9, 0.4, 1.8);
    o.reduction = TRN_REDUCE_MEAN;
    y = trn_cross_entropy(x, t, &o);
    NEAR(gradient(y, x), 6, 0.2, -0.1, 0.15, -0.05, 1.65, 0.675, -2.325);
    NEAR(gradient(y, o.weight), 3, LN2, -0.176, 0.08, 0.004);
    harness_ok(c);
}

static void probabilities_are_divided_by_the_number_of_rows(void **state)
{
    static const double target[6] = {0.5, 0.25, 0.25, 0, 0, 1};
    trn_context *c = *state;
    trn_tensor *x = halves(c, 2), *t = leaf(c, 2, ROWS(2), target);
    trn_cross_entropy_options o = OPTIONS(.label_smoothing = 0.0);
    NEAR(trn_cross_entropy(x, t, NULL), 1, LN2, 1.75);
    o.weight = weights(c);
    trn_tensor *y = trn_cross_entropy(x, t, &o);
    NEAR(y, 1, LN2, 5.75);
    NEAR(gradient(y, t), 6, LN2, 0.5, 2, 4, 0.5, 2, 4);
    NEAR(gradient(y, o.weight), 3, LN2, 0.25, 0.25, 1.25);
    /* p sum f - f with f = (0.5, 0.5, 1) and (0, 0, 4) */
    NEAR(gradient(y, x), 6, 0.5, 0.5, 0, -0.5, 2, 1, -3);
    o.reduction = TRN_REDUCE_SUM;
    NEAR(trn_cross_entropy(x, t, &o), 1, LN2, 11.5);
    o.reduction = TRN_REDUCE_NONE;
    o.label_smoothing = 0.3;
    y = trn_cross_entropy(x, t, &o);
    NEAR(y, 2, LN2, 3.75, 6.9);
    harness_ok(c);
}

/* Both ways to say the same target, and smoothing as a target. */
static void one_hot_probabilities_equal_indices(void **state)
{
    static const double hot[6] = {0, 1, 0, 0, 0, 1};
    static const double smooth[6] = {0.1, 0.8, 0.1, 0.1, 0.1, 0.8};
    static const double logits[6] = {0.3, -2, 5, 7, 0.01, -1};
    trn_context *c = *state;
    trn_tensor *x = leaf(c, 2, ROWS(2), logits);
    trn_tensor *t = indices(c, 2, (int32_t[]){1, 2});
    trn_cross_entropy_options o = OPTIONS(.reduction = TRN_REDUCE_NONE);
    for (int i = 0; i < 4; i++) {
        o.weight = i & 1 ? weights(c) : NULL;
        o.label_smoothing = i & 2 ? 0.3 : 0.0;
        trn_tensor *y = trn_cross_entropy(x, t, &o);
        trn_tensor *z =
            trn_cross_entropy(x, harness_f64(c, 2, ROWS(2), hot), &o);
        if (i & 2) {
            o.label_smoothing = 0.0;
            z = trn_cross_entropy(x, harness_f64(c, 2, ROWS(2), smooth), &o);
        }
        harness_ok(c);
        near(z, 2,
             (double[]){(double)harness_at(y, 0), (double)harness_at(y, 1)},
             1.0);
    }
}

/* ---- what does not count ---- */

static void ignored_rows_leak_nothing(void **state)
{
    const double logits[9] = {LN2, 0, 0, NOT, INF, -INF, LN2, 0, 0};
    trn_context *c = *state;
    trn_tensor *x = leaf(c, 2, ROWS(3), logits), *h = NULL;
    trn_tensor *t = indices(c, 3, (int32_t[]){0, -7, 2});
    trn_cross_entropy_options o =
        OPTIONS(.has_ignore_index = true, .ignore_index = -7,
                .label_smoothing = 0.3, .weight = weights(c));
    trn_grad_options second = TRN_GRAD_INIT;
    second.create_graph = true;
    trn_tensor *y = trn_cross_entropy(x, t, &o), *gx = NULL;
    NEAR(y, 1, LN2, 1.78);
    NEAR(gradient(y, x), 9, 0.2, -0.1, 0.15, -0.05, 0, 0, 0, 1.65, 0.675,
         -2.325);
    NEAR(gradient(y, o.weight), 3, LN2, -0.176, 0.08, 0.004);
    trn_grad(1, &y, 1, &x, NULL, &second, &gx);
    y = trn_sum(trn_mul(gx, gx), TRN_ALL_AXES, false);
    trn_grad(1, &y, 1, &x, NULL, NULL, &h);
    harness_ok(c);
    for (int i = 0; i < 9; i++) {
        assert_true(isfinite((double)harness_at(h, i)));
        assert_true(i / 3 != 1 || harness_at(h, i) == 0);
    }
    o.reduction = TRN_REDUCE_NONE;
    NEAR(trn_cross_entropy(x, t, &o), 3, LN2, 2.0, 0.0, 6.9);
}

static void where_nothing_counts_loss_and_gradients_are_zero(void **state)
{
    trn_context *c = *state;
    const int64_t empty[2] = {0, 3};
    trn_tensor *x = halves(c, 2), *none = leaf(c, 2, empty, NULL);
    trn_tensor *no_target = indices(c, 0, NULL);
    trn_tensor *no_weight = leaf(c, 1, (int64_t[]){3}, (double[]){0, 0, 1});
    trn_cross_entropy_options o = OPTIONS(.has_ignore_index = true);
    for (int i = 0; i < 3; i++) {
        o.label_smoothing = i == 0 ? 0.0 : 0.25;
        o.weight = i == 2 ? weights(c) : NULL;
        trn_tensor *t = indices(c, 2, (int32_t[]){0, 0});
        trn_tensor *y = trn_cross_entropy(x, t, &o);
        harness_equal(y, 1, 0.0);
        harness_equal(gradient(y, x), 6, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
        y = trn_cross_entropy(none, no_target, &o);
        harness_equal(y, 1, 0.0);
        assert_int_equal(trn_tensor_numel(gradient(y, none)), 0);
        if (i == 2)
            harness_equal(gradient(y, o.weight), 3, 0.0, 0.0, 0.0);
    }
    o = OPTIONS(.label_smoothing = 0.25, .weight = no_weight);
    trn_tensor *y = trn_cross_entropy(x, indices(c, 2, (int32_t[]){0, 1}), &o);
    harness_equal(y, 1, 0.0); /* the summed weight is 0 */
    harness_equal(gradient(y, x), 6, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    harness_equal(gradient(y, no_weight), 3, 0.0, 0.0, 0.0);
    y = trn_cross_entropy(none, leaf(c, 2, empty, NULL), NULL);
    harness_equal(y, 1, 0.0);
    assert_int_equal(trn_tensor_numel(gradient(y, none)), 0);
    harness_ok(c);
}

static void a_hidden_class_adds_nothing_unless_asked_for(void **state)
{
    const double logits[3] = {0, -INF, 0}, infinite[3] = {0, INF, 0};
    trn_context *c = *state;
    trn_tensor *x = leaf(c, 2, ROWS(1), logits);
    trn_tensor *soft = leaf(c, 2, ROWS(1), (double[]){0.5, 0, 0.5});
    trn_tensor *w = leaf(c, 1, (int64_t[]){3}, (double[]){1, 0, 1});
    trn_tensor *first = indices(c, 1, (int32_t[]){0});
    trn_tensor *y = trn_cross_entropy(x, soft, NULL);
    NEAR(y, 1, LN2, 1.0);
    NEAR(gradient(y, x), 3, 1.0, 0, 0, 0);
    NEAR(gradient(y, soft), 3, LN2, 1, 0, 1);
    trn_cross_entropy_options o =
        OPTIONS(.reduction = TRN_REDUCE_SUM, .weight = weights(c));
    y = trn_cross_entropy(x, first, &o);
    NEAR(y, 1, LN2, 1.0);
    NEAR(gradient(y, x), 3, 1.0, -0.5, 0, 0.5);
    NEAR(gradient(y, o.weight), 3, LN2, 1, 0, 0);
    o.label_smoothing = 0.3;
    harness_equal(trn_cross_entropy(x, first, &o), 1, INF);
    o.weight = w;
    NEAR(trn_cross_entropy(x, first, &o), 1, LN2, 0.9);
    o = OPTIONS(.weight = weights(c));
    trn_tensor *hidden = indices(c, 1, (int32_t[]){1});
    harness_equal(trn_cross_entropy(x, hidden, &o), 1, INF);
    x = leaf(c, 2, ROWS(1), infinite);
    assert_true(harness_at(trn_cross_entropy(x, hidden, &o), 0) == 0);
    harness_equal(trn_cross_entropy(x, first, &o), 1, INF);
    harness_ok(c);
}

/* ---- range ---- */

/* One row (a, -a) with a = 1e4: the losses are 0, 2 a, and with s = 1/2 they
 * are a / 2, 3 a / 2; each type holds these numbers. */
static void large_logits_are_exact(void **state)
{
    static const trn_dtype types[] = {TRN_F64, TRN_F32, TRN_BF16, TRN_F16};
    trn_context *c = *state;
    for (int d = 0; d < 4; d++) {
        const int64_t shape[2] = {1, 2};
        double a = (double)dtype_round(types[d], 1e4L);
        trn_tensor *x =
            trn_cast(leaf(c, 2, shape, (double[]){a, -a}), types[d]);
        for (int32_t t = 0; t < 2; t++) {
            trn_tensor *at = indices(c, 1, &t);
            trn_tensor *hot = trn_cast(
                leaf(c, 2, shape, (double[]){t == 0, t == 1}), types[d]);
            trn_cross_entropy_options o = OPTIONS(.label_smoothing = 0.0);
            harness_equal(trn_cross_entropy(x, at, &o), 1, 2 * a * t);
            harness_equal(trn_cross_entropy(x, hot, &o), 1, 2 * a * t);
            o.label_smoothing = 0.5;
            harness_equal(trn_cross_entropy(x, at, &o), 1, a / 2 + a * t);
            harness_equal(trn_cross_entropy(x, hot, &o), 1, a / 2 + a * t);
        }
    }
    harness_ok(c);
}

/* ---- errors ---- */

static void a_bad_target_is_told_with_every_option(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = halves(c, 3), *w = weights(c);
    trn_tensor *t = indices(c, 3, (int32_t[]){2, -100, 3});
    for (uint32_t i = 0; i < 12; i++) {
        trn_cross_entropy_options o =
            OPTIONS(.reduction = i % 3, .label_smoothing = i < 6 ? 0.1 : 0.0,
                    .weight = i < 6 && i % 2 ? NULL : w);
        trn_tensor *target = i % 2 ? t : trn_cast(t, TRN_I64);
        assert_null(trn_cross_entropy(x, target, &o));
        harness_error(c, TRN_ERR_INDEX,
                      "cross_entropy_weighted: index -100 at position 1; "
                      "expected 0 to 2");
        o.has_ignore_index = true;
        o.ignore_index = -100;
        assert_null(trn_cross_entropy(x, target, &o));
        harness_error(c, TRN_ERR_INDEX,
                      "cross_entropy_weighted: index 3 at position 2");
    }
}

static void options_that_do_not_fit_are_refused(void **state)
{
    static const double bad[] = {-0.1, 1.5, (double)NAN};
    trn_context *c = *state;
    trn_tensor *x = halves(c, 2), *t = indices(c, 2, (int32_t[]){0, 2});
    trn_tensor *four = trn_full(c, TRN_F64, 1, (int64_t[]){4}, 1.0);
    trn_tensor *floats = trn_full(c, TRN_F32, 1, (int64_t[]){3}, 1.0);
    trn_cross_entropy_options o = OPTIONS(.label_smoothing = 0.0);
    for (int i = 0; i < 3; i++) {
        o.label_smoothing = bad[i];
        assert_null(trn_cross_entropy(x, t, &o));
        harness_error(c, TRN_ERR_ARG, "cross_entropy: label_smoothing is ");
    }
    o = OPTIONS(.weight = four);
    assert_null(trn_cross_entropy(x, t, &o));
    harness_error(c, TRN_ERR_SHAPE, "weight is f64[4]; expected logits [N,C]");
    o.weight = floats;
    assert_null(trn_cross_entropy(x, t, &o));
    harness_error(c, TRN_ERR_DTYPE, "weight is f32[3]; expected one type");
    o.weight = t;
    assert_null(trn_cross_entropy(x, t, &o));
    harness_error(c, TRN_ERR_DTYPE, "input 2 is i32[2]");
    o = OPTIONS(.label_smoothing = 0.1, .reduction = 3);
    assert_null(trn_cross_entropy(x, t, &o));
    harness_error(c, TRN_ERR_ARG, "reduction is 3");
    assert_null(trn_cross_entropy(x, x, &o));
    harness_error(c, TRN_ERR_ARG, "soft_cross_entropy: reduction is 3");
    o = OPTIONS(.has_ignore_index = true);
    assert_null(trn_cross_entropy(x, halves(c, 2), &o));
    harness_error(c, TRN_ERR_ARG, "ignore_index is given, target is f64[2,3]");
    o = OPTIONS(.has_ignore_index = true, .weight = weights(c));
    o.ignore_index = INT64_MAX; /* an i32 is never that, an i64 may be */
    NEAR(trn_cross_entropy(x, t, &o), 1, LN2, 9.0 / 5);
    assert_null(trn_cross_entropy(x, trn_cast(t, TRN_I64), &o));
    harness_error(c, TRN_ERR_ARG, "ignore_index is 9223372036854775807");
    assert_null(trn_cross_entropy(x, halves(c, 3), NULL));
    harness_error(c, TRN_ERR_SHAPE, "target is f64[3,3]");
    assert_null(trn_cross_entropy(x, trn_cast(halves(c, 2), TRN_F32), NULL));
    harness_error(c, TRN_ERR_DTYPE, "target is f32[2,3]; expected one type");
    trn_tensor *hollow = trn_full(c, TRN_F64, 2, (int64_t[]){2, 0}, 0.0);
    o = OPTIONS(.label_smoothing = 0.1);
    assert_null(trn_cross_entropy(hollow, t, &o));
    harness_error(c, TRN_ERR_SHAPE, "expected at least one class");
}

/* ---- steps ---- */

typedef struct losses {
    double y[4], g[4];
} losses;

/* Four losses and a norm of their gradients, each in a step of its own. */
static losses run(trn_context *c, double smoothing)
{
    static const float logits[6] = {0.3f, -2, 5, 7, 0.01f, -1};
    static const float shares[6] = {0.5f, 0.1f, 0.4f, 0, 0.3f, 0.7f};
    static const float of_class[3] = {1, 2, 4};
    losses r;
    trn_tensor *x = trn_tensor_from(c, TRN_F32, 2, ROWS(2), logits);
    trn_tensor *soft = trn_tensor_from(c, TRN_F32, 2, ROWS(2), shares);
    trn_tensor *w = trn_tensor_from(c, TRN_F32, 1, (int64_t[]){3}, of_class);
    trn_tensor *t = indices(c, 2, (int32_t[]){0, 2});
    for (int i = 0; i < 4; i++) {
        trn_cross_entropy_options o =
            OPTIONS(.label_smoothing = smoothing, .weight = i & 1 ? w : NULL,
                    .has_ignore_index = i == 1);
        trn_step_begin(c);
        trn_tensor *leaves[3] = {trn_copy(x), trn_copy(w), trn_copy(soft)};
        trn_tensor *g[3];
        for (int j = 0; j < 3; j++)
            trn_set_requires_grad(leaves[j], true);
        o.weight = o.weight == NULL ? NULL : leaves[1];
        trn_tensor *y = trn_cross_entropy(leaves[0], i & 2 ? leaves[2] : t, &o);
        trn_grad_options zeros = TRN_GRAD_INIT;
        zeros.zeros = true;
        trn_grad(1, &y, 3, leaves, NULL, &zeros, g);
        trn_tensor *sum =
            trn_sum(trn_norm(g[0], TRN_AXIS(0), false), TRN_ALL_AXES, false);
        for (int j = 1; j < 3; j++)
            sum = trn_add(sum, trn_norm(g[j], TRN_ALL_AXES, false));
        y = trn_keep(trn_detach(y));
        sum = trn_keep(trn_detach(sum));
        trn_step_end(c);
        r.y[i] = trn_tensor_item(y);
        r.g[i] = trn_tensor_item(sum);
        harness_ok(c);
        trn_tensor_release(y);
        trn_tensor_release(sum);
    }
    return r;
}

static void all_ways_to_run_a_step_give_the_same_bits(void **state)
{
    losses want = {{0}, {0}};
    (void)state;
    for (int way = EAGER; way <= LOOP; way++) {
        for (int lacks = 0; lacks < (way == LOOP ? 2 : 1); lacks++) {
            trn_context *c =
                captured_open(way, lacks ? "loop:lacks=composites" : NULL);
            losses got = run(c, 0.2);
            want = way == EAGER ? got : want;
            assert_memory_equal(&got, &want, sizeof got);
            captured_close(c);
        }
    }
}

static void a_smoothing_that_varies_compiles_nothing(void **state)
{
    (void)state;
    for (int way = CAPTURED; way <= LOOP; way++) {
        trn_context *c = captured_open(way, NULL);
        losses first = run(c, 0.1);
        trn_capture_info before = captured_info(c);
        losses second = run(c, 0.2);
        assert_int_equal(captured_info(c).compilations, before.compilations);
        assert_true(first.y[0] != second.y[0]);
        captured_close(c);
    }
}

/* Less than one vector of the classes' weights; check builds keep handles. */
static void outside_of_steps_nothing_piles_up(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = trn_full(c, TRN_F64, 2, (int64_t[]){1, 60000}, 0.5);
    trn_tensor *t = indices(c, 1, (int32_t[]){1});
    trn_cross_entropy_options o = OPTIONS(.label_smoothing = 0.1);
    trn_memory_info before = TRN_MEMORY_INFO_INIT;
    trn_memory_info after = TRN_MEMORY_INFO_INIT;
    assert_int_equal(trn_memory(c, &before), TRN_OK);
    for (int i = 0; i < 10; i++)
        trn_tensor_release(trn_cross_entropy(x, t, &o));
    harness_ok(c);
    assert_int_equal(trn_memory(c, &after), TRN_OK);
    assert_true(after.bytes_in_use < before.bytes_in_use + 8 * 60000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(smoothing_spreads_the_target_over_all_classes),
        TRN_TEST(weights_count_in_the_sum_and_in_what_it_is_divided_by),
        TRN_TEST(gradients_are_those_of_the_formula),
        TRN_TEST(probabilities_are_divided_by_the_number_of_rows),
        TRN_TEST(one_hot_probabilities_equal_indices),
        TRN_TEST(ignored_rows_leak_nothing),
        TRN_TEST(where_nothing_counts_loss_and_gradients_are_zero),
        TRN_TEST(a_hidden_class_adds_nothing_unless_asked_for),
        TRN_TEST(large_logits_are_exact),
        TRN_TEST(a_bad_target_is_told_with_every_option),
        TRN_TEST(options_that_do_not_fit_are_refused),
        cmocka_unit_test(all_ways_to_run_a_step_give_the_same_bits),
        cmocka_unit_test(a_smoothing_that_varies_compiles_nothing),
        TRN_TEST(outside_of_steps_nothing_piles_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
