/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients at awkward points and the rules of the record, by hand, on each way
 * to run a step: what test_autograd.c and test_op_awkward.c have eagerly and in
 * f64, and what a program could lose.
 */
#include "special.h"
#include "story.h"

static trn_tensor *numbers(trn_context *c, int n, const double *v)
{
    float data[16];
    for (int i = 0; i < n; i++)
        data[i] = (float)v[i];
    return trn_tensor_from(c, TRN_F32, 1, (int64_t[]){n}, data);
}

static trn_tensor *leaf(trn_context *c, double a, double b)
{
    trn_tensor *x = numbers(c, 2, (double[]){a, b});
    trn_set_requires_grad(x, true);
    return x;
}

/* The gradient of x in a step that makes y of it, x having n elements. */
typedef trn_tensor *(*maker)(trn_tensor *x, int i);

static trn_tensor *gradient(trn_tensor *x, maker f, int i)
{
    trn_context *c = trn_tensor_context(x);
    trn_tensor *g = NULL;
    trn_grad_options o = TRN_GRAD_INIT;
    o.zeros = true;
    trn_step_begin(c);
    trn_tensor *y = total(f(x, i));
    trn_grad(1, &y, 1, &x, NULL, &o, &g);
    trn_keep(g);
    trn_step_end(c);
    harness_ok(c);
    return g;
}

/* ---- what is not taken ---- */

enum { N_UNTAKEN = 14 };
/* Where the row's slope is not finite. */
static const double bad_at[N_UNTAKEN] = {0,  -1, 0,  -1,   0, -1, 0,
                                         -1, 0,  -1, 1000, 0, 0,  NOT};

static trn_tensor *row_without_slope(trn_tensor *x, int i)
{
    trn_context *c = trn_tensor_context(x);
    trn_tensor *one = trn_full(c, TRN_F32, 0, NULL, 1.0);
    switch (i / 2) {
    case 0:
        return trn_log(x);
    case 1:
        return trn_sqrt(x);
    case 2:
        return trn_rsqrt(x);
    case 3: /* slopes of the base: 0^-1/2, (-1)^-1/2 */
        return trn_pow(x, trn_full(c, TRN_F32, 0, NULL, 0.5));
    case 4: /* and of the exponent */
        return trn_pow(trn_full(c, TRN_F32, 0, NULL, bad_at[i] - 0.5), x);
    case 5:
        return i == 10 ? trn_exp(x) : trn_div(one, x);
    default:
        return i == 12 ? trn_div(x, x) : trn_log(x);
    }
}

/* Element 0 takes x, element 1, where the row has no slope, as well. */
static trn_tensor *untaken(trn_tensor *x, int i)
{
    trn_context *c = trn_tensor_context(x);
    trn_tensor *yes = trn_full(c, TRN_BOOL, 0, NULL, 1.0);
    trn_tensor *y = row_without_slope(x, i);
    return trn_add(trn_where(yes, x, y),
                   trn_where(trn_not_equal(yes, yes), y, trn_mul_scalar(x, 2)));
}

static void a_branch_not_taken_leaks_no_slope(void **state)
{
    (void)state;
    ON_EACH_WAY(c)
    {
        for (int i = 0; i < N_UNTAKEN; i++) {
            trn_tensor *g = gradient(leaf(c, 2.0, bad_at[i]), untaken, i);
            CHECK(harness_at(g, 0) == 3 && harness_at(g, 1) == 3,
                  "%s, row %d: %Lg %Lg\n", captured_ways[way].name, i,
                  harness_at(g, 0), harness_at(g, 1));
        }
    }
}

static trn_tensor *angle_of(trn_tensor *x)
{
    return trn_atan2(x, x);
}

static trn_tensor *(*const rows_of_numbers[])(trn_tensor *) = {
    trn_neg,     trn_exp,       trn_log,   trn_tanh, trn_sqrt,  trn_relu,
    trn_abs,     trn_sign,      trn_floor, trn_ceil, trn_round, trn_trunc,
    trn_rsqrt,   trn_sin,       trn_cos,   trn_erf,  trn_gelu,  trn_silu,
    trn_sigmoid, trn_gelu_tanh, angle_of,
};
enum {
    N_OF_NUMBERS = (int)(sizeof rows_of_numbers / sizeof rows_of_numbers[0])
};

/* 3 x, beside a row of x that is not taken; every second time also beside that
 * one's gradient, which is not taken either. */
static trn_tensor *beside_numbers(trn_tensor *x, int i)
{
    trn_context *c = trn_tensor_context(x);
    trn_tensor *no = trn_full(c, TRN_BOOL, 0, NULL, 0.0);
    trn_tensor *y =
        trn_where(no, rows_of_numbers[i / 2](x), trn_mul_scalar(x, 3));
    trn_grad_options o = TRN_GRAD_INIT;
    o.create_graph = true;
    if (i % 2 == 0)
        return y;
    trn_tensor *g = NULL, *sum = total(y);
    trn_grad(1, &sum, 1, &x, NULL, &o, &g);
    return trn_add(trn_where(no, y, trn_mul_scalar(x, 3)),
                   trn_where(no, g, trn_full(c, TRN_F32, 0, NULL, 0.0)));
}

static void infinities_and_nan_not_taken_leak_nothing(void **state)
{
    (void)state;
    ON_EACH_WAY(c)
    {
        for (int i = 0; i < 2 * N_OF_NUMBERS; i++) {
            trn_tensor *x = numbers(c, 4, (double[]){0.5, INF, -INF, NOT});
            trn_set_requires_grad(x, true);
            trn_tensor *g = gradient(x, beside_numbers, i);
            for (int j = 0; j < 4; j++)
                CHECK(harness_at(g, j) == 3,
                      "%s, row %d, order %d: element %d is %Lg\n",
                      captured_ways[way].name, i / 2, 1 + i % 2, j,
                      harness_at(g, j));
        }
    }
}

/* A gradient that is not 0 meets the slope of the calculus. */
static trn_tensor *taken(trn_tensor *x, int i)
{
    return i == 0 ? trn_log(x) : i == 1 ? trn_sqrt(x) : trn_rsqrt(x);
}

static void a_branch_that_is_taken_has_the_slope_of_the_calculus(void **state)
{
    (void)state;
    ON_EACH_WAY(c)
    {
        harness_equal(gradient(leaf(c, 0.0, 4.0), taken, 0), 2, INF, 0.25);
        harness_equal(gradient(leaf(c, 0.0, 4.0), taken, 1), 2, INF, 0.25);
        harness_equal(gradient(leaf(c, 0.0, 4.0), taken, 2), 2, -INF, -0.0625);
    }
}

/* An infinite gradient stops at the branch not taken. */
static trn_tensor *infinite_beyond(trn_tensor *x, int i)
{
    trn_context *c = trn_tensor_context(x);
    trn_tensor *zero = numbers(c, 2, (double[]){0, 0});
    trn_tensor *first = numbers(c, 2, (double[]){1, 0});
    trn_tensor *y = trn_where(trn_greater(first, zero), x, zero);
    (void)i;
    return trn_mul(y, numbers(c, 2, (double[]){INF, INF}));
}

static void an_infinite_gradient_stops_at_the_branch_not_taken(void **state)
{
    (void)state;
    ON_EACH_WAY(c)
    harness_equal(gradient(leaf(c, 1.0, 1.0), infinite_beyond, 0), 2, INF, 0.0);
}

/* ---- points ---- */

static trn_tensor *at_point(trn_tensor *x, int i)
{
    trn_context *c = trn_tensor_context(x);
    trn_tensor *zero = numbers(c, 2, (double[]){0, 0});
    switch (i) {
    case 0:
        return trn_relu(x);
    case 1:
        return trn_abs(x);
    case 2:
        return trn_sign(x);
    case 3:
        return trn_norm(x, TRN_ALL_AXES, false);
    case 4:
        return trn_mul(trn_sqrt(x), zero);
    case 5:
        return trn_pow(x, zero);
    case 6:
        return trn_floor(x);
    case 7:
        return trn_ceil(x);
    case 8:
        return trn_trunc(x);
    default:
        return trn_round(x);
    }
}

static void slopes_at_zero_are_zero(void **state)
{
    (void)state;
    ON_EACH_WAY(c)
    {
        for (int i = 0; i < 10; i++)
            harness_equal(gradient(leaf(c, 0.0, -0.0), at_point, i), 2, 0.0,
                          0.0);
    }
}

static void powers_of_zero_are_one_with_gradient_zero(void **state)
{
    static const double x[] = {INF, -INF, NOT, -2.0, 0.0, 3.0};
    (void)state;
    ON_EACH_WAY(c)
    {
        for (int i = 0; i < 6; i += 2) {
            trn_tensor *p = leaf(c, x[i], x[i + 1]);
            harness_equal(gradient(p, at_point, 5), 2, 0.0, 0.0);
            trn_step_begin(c);
            trn_tensor *y =
                trn_keep(trn_pow(p, numbers(c, 2, (double[]){0, -0.0})));
            trn_step_end(c);
            harness_equal(y, 2, 1.0, 1.0);
        }
    }
}

/* ---- ties ---- */

static trn_tensor *tied(trn_tensor *x, int i)
{
    trn_context *c = trn_tensor_context(x);
    trn_tensor *m = trn_reshape(x, 2, (int64_t[]){2, 4});
    trn_tensor *three = trn_full(c, TRN_F32, 0, NULL, 3.0);
    switch (i) {
    case 0:
        return trn_max(m, TRN_AXIS(1), false);
    case 1:
        return trn_min(m, TRN_AXIS(1), true);
    case 2:
        return trn_max(m, TRN_ALL_AXES, false);
    case 3:
        return trn_maximum(x, three);
    case 4:
        return trn_minimum(three, x);
    default:
        return trn_maximum(x, trn_flip(x, TRN_AXIS(0)));
    }
}

static void ties_share_the_gradient_in_every_way(void **state)
{
    static const double v[8] = {3, 1, 3, 1, -0.0, 5, 0.0, 5};
    (void)state;
    ON_EACH_WAY(c)
    {
        trn_tensor *x = numbers(c, 8, v);
        trn_set_requires_grad(x, true);
        harness_equal(gradient(x, tied, 0), 8, 0.5, 0.0, 0.5, 0.0, 0.0, 0.5,
                      0.0, 0.5);
        harness_equal(gradient(x, tied, 1), 8, 0.0, 0.5, 0.0, 0.5, 0.5, 0.0,
                      0.5, 0.0);
        harness_equal(gradient(x, tied, 2), 8, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5,
                      0.0, 0.5);
        harness_equal(gradient(x, tied, 3), 8, 0.5, 0.0, 0.5, 0.0, 0.0, 1.0,
                      0.0, 1.0);
        harness_equal(gradient(x, tied, 4), 8, 0.5, 1.0, 0.5, 1.0, 1.0, 0.0,
                      1.0, 0.0);
        /* against 5 0 5 -0 1 3 1 3, each pair counted from both sides */
        harness_equal(gradient(x, tied, 5), 8, 0.0, 2.0, 0.0, 2.0, 0.0, 2.0,
                      0.0, 2.0);
    }
}

/* ---- the record ---- */

static void first_assigns_then_adds(story *s)
{
    trn_tensor *x = parameter(s->c, 2, 2.0);
    for (int i = 0; i < 3; i++) {
        trn_step_begin(s->c);
        trn_backward(total(trn_mul(x, x)));
        trn_step_end(s->c);
        say_tensor(s, trn_grad_of(x));
        if (i == 1)
            trn_zero_grad(x);
    }
    trn_tensor *g = trn_grad_of(x);
    harness_equal(g, 2, 4.0, 4.5);
}

static void gradients_accumulate_until_they_are_zeroed(void **state)
{
    (void)state;
    tell(first_assigns_then_adds, 9);
}

static void bad_walks(story *s)
{
    trn_context *c = s->c;
    trn_tensor *x = parameter(c, 2, 2.0), *w = parameter(c, 2, 1.0);
    for (int i = 0; i < 5; i++) {
        trn_step_begin(c);
        trn_tensor *y = trn_mul(x, w), *t = total(y);
        if (i == 0) { /* twice */
            trn_backward(t);
            trn_backward(t);
        } else if (i == 1) { /* no seed */
            trn_backward(y);
        } else if (i == 2) { /* changed after it was saved */
            trn_tensor *e = trn_exp(x);
            t = total(trn_mul(e, e));
            trn_no_grad_begin(c);
            trn_assign(e, w);
            trn_no_grad_end(c);
            trn_backward(t);
        } else if (i == 3) { /* no gradient by nature */
            trn_backward(total(trn_cast(trn_greater(x, w), TRN_F32)));
        } else { /* not recorded */
            trn_no_grad_begin(c);
            t = total(trn_mul(x, w));
            trn_no_grad_end(c);
            trn_backward(t);
        }
        say(s, strstr(trn_errmsg(c), i == 0   ? "retain_graph"
                                     : i == 2 ? "mul needs its input"
                                              : "trn_backward") != NULL);
        trn_step_end(c);
        say_error(s);
        say_tensor(s, trn_grad_of(x)); /* nothing has changed */
    }
    static const trn_status want[5] = {TRN_ERR_STATE, TRN_ERR_SHAPE,
                                       TRN_ERR_MODIFIED, TRN_ERR_NOGRAD,
                                       TRN_ERR_NOGRAD};
    for (int i = 0; i < 5; i++) {
        assert_true(s->said[3 * i] == 1);
        assert_true(s->said[3 * i + 1] == (double)want[i]);
        CHECK(s->said[3 * i + 2] == -1, "%d: %g\n", i, s->said[3 * i + 2]);
    }
}

static void walks_that_cannot_be_say_so_in_every_way(void **state)
{
    (void)state;
    tell(bad_walks, 15);
}

static void bad_writes(story *s)
{
    trn_context *c = s->c;
    trn_tensor *x = vector(c, 4, 1.0), *one = vector(c, 1, 5.0);
    for (int i = 0; i < 3; i++) {
        trn_step_begin(c);
        if (i == 0)
            trn_assign(trn_expand(one, 1, (int64_t[]){4}), x);
        else if (i == 1)
            trn_assign(trn_slice(x, 0, 0, 3, 1), trn_slice(x, 0, 1, 4, 1));
        else
            trn_assign(x, trn_mul(x, x)); /* all of x: as out of place */
        say_error(s);
        trn_step_end(c);
        trn_clear(c);
        say_tensor(s, x);
    }
    assert_true(s->said[0] == TRN_ERR_ARG && s->said[6] == TRN_ERR_ARG);
    harness_equal(x, 4, 1.0, 1.5625, 2.25, 3.0625);
}

static void writes_that_overlap_are_refused_in_every_way(void **state)
{
    (void)state;
    tell(bad_writes, 18);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(a_branch_not_taken_leaks_no_slope),
        TRN_TEST(infinities_and_nan_not_taken_leak_nothing),
        TRN_TEST(a_branch_that_is_taken_has_the_slope_of_the_calculus),
        TRN_TEST(an_infinite_gradient_stops_at_the_branch_not_taken),
        TRN_TEST(slopes_at_zero_are_zero),
        TRN_TEST(powers_of_zero_are_one_with_gradient_zero),
        TRN_TEST(ties_share_the_gradient_in_every_way),
        TRN_TEST(gradients_accumulate_until_they_are_zeroed),
        TRN_TEST(walks_that_cannot_be_say_so_in_every_way),
        TRN_TEST(writes_that_overlap_are_refused_in_every_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
