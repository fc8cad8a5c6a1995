/* SPDX-License-Identifier: Apache-2.0
 *
 * What optimizers and clipping mean, by hand: where decay, dampening and eps
 * go, parameters without a gradient, norms of nothing, of too much and of what
 * is not finite; eagerly, captured and on the loop device.
 */
#include "story.h"

/* Two parameters of one element, w = 1 and b = 1, and gradients for them. */
typedef struct pair {
    trn_context *c;
    trn_module *m;
    trn_tensor *w, *b;
} pair;

static pair pair_on(trn_context *c)
{
    pair p = {.c = c, .m = trn_nn_linear(c, 1, 1)};
    p.w = trn_nn_parameter(p.m, "weight");
    p.b = trn_nn_parameter(p.m, "bias");
    trn_no_grad_begin(c);
    trn_assign(p.w, trn_full(c, TRN_F32, 0, NULL, 1.0));
    trn_assign(p.b, trn_full(c, TRN_F32, 0, NULL, 1.0));
    trn_no_grad_end(c);
    harness_ok(c);
    return p;
}

/* Gradients dw and db; has_b: b takes part. */
static void slopes(pair *p, double dw, double db, bool has_b)
{
    trn_tensor *y = total(trn_mul_scalar(p->w, dw));
    if (has_b)
        y = trn_add(y, total(trn_mul_scalar(p->b, db)));
    trn_backward(y);
}

static void step(pair *p, trn_optim *o, double dw, double db, bool has_b)
{
    trn_step_begin(p->c);
    slopes(p, dw, db, has_b);
    trn_optim_step(o);
    trn_step_end(p->c);
    harness_ok(p->c);
}

static void near(trn_tensor *t, double want)
{
    double got = (double)harness_at(t, 0);
    CHECK(fabs(got - want) <= 2e-7 * fabs(want), "%.9g, expected %.9g\n", got,
          want);
}

/* d = g + p / 4; b = b / 2 + 3 d / 4, but d at first; p -= b / 2. */
static void
sgd_decays_by_the_gradient_and_damps_from_the_second_step(void **state)
{
    (void)state;
    ON_EACH_WAY(c)
    {
        pair p = pair_on(c);
        trn_sgd_options s = TRN_SGD_INIT;
        s.learning_rate = s.momentum = 0.5;
        s.dampening = s.weight_decay = 0.25;
        trn_optim *o = trn_optim_sgd(p.m, &s);
        step(&p, o, 0.5, 0.0, false);
        harness_equal(p.w, 1, 0.625); /* d = b = 0.75 */
        step(&p, o, 0.5, 0.0, false); /* d = 0.65625, b = 0.8671875 */
        harness_equal(p.w, 1, 0.19140625);
        harness_equal(trn_optim_state(o, 0, "momentum"), 1, 0.8671875);
    }
}

/* b = 1/2, p -= (1/2 + 1/4) / 2; then b = 3/4, p -= (1/2 + 3/8) / 2. */
static void nesterov_looks_ahead(void **state)
{
    (void)state;
    ON_EACH_WAY(c)
    {
        pair p = pair_on(c);
        trn_sgd_options s = TRN_SGD_INIT;
        s.learning_rate = s.momentum = 0.5;
        s.nesterov = true;
        trn_optim *o = trn_optim_sgd(p.m, &s);
        step(&p, o, 0.5, 0.0, false);
        harness_equal(p.w, 1, 0.625);
        step(&p, o, 0.5, 0.0, false);
        harness_equal(p.w, 1, 0.1875);
    }
}

/* With equal gradients the corrected moments are g and g^2 at any step: p is
 * multiplied by 1 - lr wd, then lr g / (|g| + eps) is taken off. */
static void adamw_decays_apart_and_adds_eps_to_the_root(void **state)
{
    (void)state;
    ON_EACH_WAY(c)
    {
        pair p = pair_on(c);
        trn_adamw_options a = TRN_ADAMW_INIT;
        double want = 1.0;
        a.learning_rate = 0.125;
        a.eps = 0.5;
        a.weight_decay = 0.25;
        trn_optim *o = trn_optim_adamw(p.m, &a);
        for (int i = 0; i < 4; i++) {
            step(&p, o, 0.5, 0.0, false);
            want = want * (1 - 0.125 * 0.25) - 0.125 * 0.5;
            near(p.w, want);
        }
    }
}

static void without_a_gradient_nothing_moves_or_decays(void **state)
{
    (void)state;
    ON_EACH_WAY(c)
    {
        pair p = pair_on(c);
        trn_adamw_options a = TRN_ADAMW_INIT;
        trn_sgd_options s = TRN_SGD_INIT;
        s.momentum = s.weight_decay = a.weight_decay = 0.5;
        trn_optim *o[2] = {trn_optim_adamw(p.m, &a), trn_optim_sgd(p.m, &s)};
        for (int i = 0; i < 4; i++)
            step(&p, o[i / 2], 0.5, 0.0, false);
        harness_equal(p.b, 1, 1.0);
        harness_equal(trn_optim_state(o[0], 1, "v"), 1, 0.0);
        harness_equal(trn_optim_state(o[1], 1, "momentum"), 1, 0.0);
        assert_true(harness_at(p.w, 0) < 1);
    }
}

/* b's gradient first comes with the third step, and is b's first. */
static void a_late_parameter_counts_its_own_updates(void **state)
{
    (void)state;
    ON_EACH_WAY(c)
    {
        pair p = pair_on(c);
        trn_adamw_options a = TRN_ADAMW_INIT;
        a.learning_rate = 0.125;
        a.weight_decay = 0;
        trn_optim *o = trn_optim_adamw(p.m, &a);
        for (int i = 0; i < 5; i++)
            step(&p, o, 0.5, 0.5, i > 1);
        near(p.w, 1 - 5 * 0.125); /* lr each time: moments are corrected */
        near(p.b, 1 - 3 * 0.125);
        assert_int_equal(trn_optim_steps(o), 5);
    }
    ON_EACH_WAY(c)
    {
        pair p = pair_on(c);
        trn_sgd_options s = TRN_SGD_INIT;
        s.learning_rate = s.momentum = s.dampening = 0.5;
        trn_optim *o = trn_optim_sgd(p.m, &s);
        step(&p, o, 0.5, 0.0, false);
        step(&p, o, 0.5, 0.5, true);
        harness_equal(p.b, 1, 0.75); /* not damped: b = g */
        harness_equal(p.w, 1, 0.5);  /* b = 1/4 + 1/4 */
    }
}

/* A failed step does not age a parameter. */
static void a_failed_step_counts_nothing(void **state)
{
    (void)state;
    ON_EACH_WAY(c)
    {
        pair p = pair_on(c);
        trn_adamw_options a = TRN_ADAMW_INIT;
        a.learning_rate = 0.125;
        a.weight_decay = 0;
        trn_optim *o = trn_optim_adamw(p.m, &a);
        trn_step_begin(c);
        slopes(&p, 0.5, 0.5, true);
        trn_optim_step(o);
        assert_null(trn_matmul(p.b, p.b));
        trn_step_end(c);
        harness_error(c, TRN_ERR_SHAPE, "matmul");
        for (int i = 0; i < 2; i++)
            step(&p, o, 0.5, 0.5, true);
        near(p.b, 1 - 2 * 0.125);
        assert_int_equal(trn_optim_steps(o), 2);
    }
}

static void gradients_are_consumed_unless_they_are_kept(void **state)
{
    (void)state;
    ON_EACH_WAY(c)
    {
        pair p = pair_on(c);
        trn_optim *o = trn_optim_sgd(p.m, NULL);
        step(&p, o, 0.5, 0.25, true);
        assert_null(trn_grad_of(p.w));
        trn_optim_keep_grad(o, true);
        step(&p, o, 0.5, 0.25, true);
        step(&p, o, 0.5, 0.25, true);
        harness_equal(trn_grad_of(p.w), 1, 1.0);
        harness_equal(trn_grad_of(p.b), 1, 0.5);
        assert_int_equal(trn_optim_zero_grad(o), TRN_OK);
        assert_null(trn_grad_of(p.b));
    }
}

/* 3 and 4 have the norm 5, also where squares would overflow or vanish. */
static void clipping_is_by_the_norm_of_all_gradients(void **state)
{
    (void)state;
    static const double scale[] = {1.0, 0x1p100, 0x1p-100};
    ON_EACH_WAY(c)
    {
        for (int i = 0; i < 3; i++) {
            pair p = pair_on(c);
            trn_optim *o = trn_optim_sgd(p.m, NULL);
            harness_equal(trn_optim_clip_norm(o, 1.0), 1, 0.0);
            slopes(&p, 3 * scale[i], 4 * scale[i], true);
            trn_tensor *norm = trn_optim_clip_norm(o, 2.5 * scale[i]);
            near(norm, 5 * scale[i]);
            if (i < 2) { /* the third: 1e-6 is much more than the norm */
                near(trn_grad_of(p.w), 1.5 * scale[i]);
                near(trn_grad_of(p.b), 2.0 * scale[i]);
            }
            norm = trn_optim_clip_norm(o, 1e30 * scale[i]); /* short enough */
            harness_ok(c);
            if (i == 1)
                near(trn_grad_of(p.b), 2.0 * scale[i]);
        }
    }
}

static void a_norm_that_is_not_finite_changes_nothing(void **state)
{
    (void)state;
    static const double bad[] = {(double)INFINITY, (double)NAN};
    ON_EACH_WAY(c)
    {
        for (int i = 0; i < 2; i++) {
            pair p = pair_on(c);
            trn_optim *o = trn_optim_sgd(p.m, NULL);
            trn_optim_keep_grad(o, true);
            step(&p, o, 3.0, 4.0, true);
            float before = (float)harness_at(p.w, 0);
            trn_step_begin(c);
            slopes(&p, 0.0, bad[i], true);
            trn_optim_clip_norm(o, 1.0);
            trn_optim_step(o);
            trn_step_end(c);
            trn_sync(c);
            harness_error(c, TRN_ERR_NUMERIC, "check_finite");
            harness_equal(p.w, 1, (double)before);
            harness_equal(trn_grad_of(p.w), 1, 3.0);
            harness_equal(trn_grad_of(p.b), 1, 4.0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(sgd_decays_by_the_gradient_and_damps_from_the_second_step),
        TRN_TEST(nesterov_looks_ahead),
        TRN_TEST(adamw_decays_apart_and_adds_eps_to_the_root),
        TRN_TEST(without_a_gradient_nothing_moves_or_decays),
        TRN_TEST(a_late_parameter_counts_its_own_updates),
        TRN_TEST(a_failed_step_counts_nothing),
        TRN_TEST(gradients_are_consumed_unless_they_are_kept),
        TRN_TEST(clipping_is_by_the_norm_of_all_gradients),
        TRN_TEST(a_norm_that_is_not_finite_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
