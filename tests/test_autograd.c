/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients: accumulation, lifetimes of the record, higher orders, regions
 * without gradient, errors.  Expected values by hand.
 */
#include <math.h>

#include "harness.h"

static trn_tensor *leaf(trn_context *c, double a, double b)
{
    trn_tensor *x = harness_vector(c, 2, a, b);
    trn_set_requires_grad(x, true);
    return x;
}

static trn_tensor *total(trn_tensor *x)
{
    return trn_sum(x, TRN_ALL_AXES, false);
}

static void the_first_gradient_is_assigned_the_next_are_added(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = leaf(c, 2.0, 3.0);
    assert_null(trn_grad_of(x));
    trn_backward(total(trn_mul(x, x)));
    harness_equal(trn_grad_of(x), 2, 4.0, 6.0);
    trn_backward(total(x));
    harness_equal(trn_grad_of(x), 2, 5.0, 7.0);
    trn_zero_grad(x);
    assert_null(trn_grad_of(x));
    trn_backward(total(x));
    harness_equal(trn_grad_of(x), 2, 1.0, 1.0);
    harness_ok(c);
}

/* x is used three times in one walk, and shares its gradient with y. */
static void gradients_of_several_uses_add_up(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = leaf(c, 2.0, 3.0), *y = leaf(c, 1.0, 1.0);
    trn_tensor *s = trn_add(trn_add(x, y), trn_mul(x, x));
    trn_backward(total(s));
    harness_equal(trn_grad_of(x), 2, 5.0, 7.0);
    harness_equal(trn_grad_of(y), 2, 1.0, 1.0);
    assert_ptr_not_equal(trn_grad_of(x), trn_grad_of(y));
    assert_int_equal(trn_assign(trn_grad_of(x), y), TRN_OK);
    harness_equal(trn_grad_of(y), 2, 1.0, 1.0);
}

static void backward_twice_needs_retain_graph(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = leaf(c, 2.0, 3.0);
    trn_tensor *y = total(trn_mul(x, x));
    assert_int_equal(trn_backward_with(y, NULL, true), TRN_OK);
    assert_int_equal(trn_backward(y), TRN_OK);
    harness_equal(trn_grad_of(x), 2, 8.0, 12.0);
    assert_int_equal(trn_backward(y), TRN_ERR_STATE);
    harness_error(c, TRN_ERR_STATE, "retain_graph");
    harness_equal(trn_grad_of(x), 2, 8.0, 12.0);
}

static void a_tensor_of_several_elements_needs_a_seed(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = leaf(c, 2.0, 3.0);
    trn_tensor *y = trn_mul(x, x);
    trn_backward(y);
    harness_error(c, TRN_ERR_SHAPE, "the output is f64[2]");
    trn_backward_with(y, harness_vector(c, 3, 1.0, 1.0, 1.0), false);
    harness_error(c, TRN_ERR_SHAPE, "the seed is f64[3]; expected f64[2]");
    trn_backward_with(y, trn_full(c, TRN_F32, 1, (int64_t[]){2}, 1.0), false);
    harness_error(c, TRN_ERR_SHAPE, "the seed is f32[2]");
    assert_null(trn_grad_of(x));
    trn_backward_with(y, harness_vector(c, 2, 10.0, 100.0), false);
    harness_equal(trn_grad_of(x), 2, 40.0, 600.0);
    assert_int_not_equal(trn_backward(NULL), TRN_OK);
}

/* f = x^5: 5 x^4, 20 x^3, 60 x^2 at 2. */
static void create_graph_reaches_the_third_order(void **state)
{
    trn_context *c = *state;
    trn_grad_options o = TRN_GRAD_INIT;
    trn_tensor *x = trn_full(c, TRN_F64, 0, NULL, 2.0), *d[3];
    trn_set_requires_grad(x, true);
    trn_tensor *y = trn_mul(trn_mul(trn_mul(x, x), trn_mul(x, x)), x);
    o.create_graph = true;
    for (int i = 0; i < 3; i++) {
        trn_grad(1, &y, 1, &x, NULL, &o, &d[i]);
        harness_ok(c);
        y = d[i];
    }
    harness_equal(d[0], 1, 80.0);
    harness_equal(d[1], 1, 160.0);
    harness_equal(d[2], 1, 240.0);
    assert_null(trn_grad_of(x));
}

/* (sqrt(x) - 1)^2 has the second derivative 1/2 at 1, where the gradient that
 * reaches sqrt is exactly 0. */
static void a_zero_gradient_still_has_a_derivative(void **state)
{
    trn_context *c = *state;
    trn_grad_options o = TRN_GRAD_INIT;
    trn_tensor *x = trn_full(c, TRN_F64, 0, NULL, 1.0), *first, *second;
    trn_set_requires_grad(x, true);
    trn_tensor *d = trn_add_scalar(trn_sqrt(x), -1.0);
    trn_tensor *y = trn_mul(d, d);
    o.create_graph = true;
    trn_grad(1, &y, 1, &x, NULL, &o, &first);
    trn_grad(1, &first, 1, &x, NULL, NULL, &second);
    harness_ok(c);
    harness_equal(first, 1, 0.0);
    harness_equal(second, 1, 0.5);
}

/* By conventions.md, and never NaN: also in the second order. */
static void derivatives_at_awkward_points_are_as_agreed(void **state)
{
    trn_context *c = *state;
    trn_grad_options o = TRN_GRAD_INIT;
    o.create_graph = true;
    o.zeros = true;
    for (int i = 0; i < 6; i++) {
        trn_tensor *x = leaf(c, 0.0, 0.0), *g, *h;
        trn_tensor *zero = harness_vector(c, 2, 0.0, 0.0);
        trn_tensor *two = harness_vector(c, 2, 2.0, 2.0);
        trn_tensor *y = i == 0   ? trn_relu(x)
                        : i == 1 ? trn_norm(x, TRN_ALL_AXES, false)
                        : i == 2 ? trn_mul(trn_sqrt(x), zero)
                        : i == 3 ? trn_pow(x, zero)
                        : i == 4
                            ? trn_pow(x, two)
                            : trn_where(trn_greater(x, zero), trn_log(x), x);
        y = total(y);
        trn_grad(1, &y, 1, &x, NULL, &o, &g);
        harness_ok(c);
        if (i < 5)
            harness_equal(g, 2, 0.0, 0.0);
        if (!trn_requires_grad(g))
            continue;
        trn_tensor *s = total(g);
        trn_grad(1, &s, 1, &x, NULL, &o, &h);
        harness_ok(c);
        long double bend = harness_at(h, 0);
        CHECK(i == 4 ? bend == 2 : bend == 0 || i == 5, "%d: %Lg\n", i, bend);
    }
    trn_tensor *x = leaf(c, 0.0, 4.0); /* sqrt'(0) = +inf as in the calculus */
    trn_backward(total(trn_sqrt(x)));
    harness_equal(trn_grad_of(x), 2, (double)INFINITY, 0.25);
}

static void ties_share_the_gradient(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = harness_vector(c, 4, 3.0, 1.0, 3.0, 3.0);
    trn_set_requires_grad(x, true);
    trn_backward(trn_max(x, TRN_ALL_AXES, false));
    harness_equal(trn_grad_of(x), 4, 1.0 / 3, 0.0, 1.0 / 3, 1.0 / 3);
    trn_tensor *a = leaf(c, 1.0, 2.0), *b = leaf(c, 1.0, 3.0);
    trn_backward(total(trn_maximum(a, b)));
    harness_equal(trn_grad_of(a), 2, 0.5, 0.0);
    harness_equal(trn_grad_of(b), 2, 0.5, 1.0);
}

static void where_leaks_nothing_from_the_branch_not_taken(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = leaf(c, -1.0, 4.0);
    trn_tensor *zero = harness_vector(c, 2, 0.0, 0.0);
    trn_tensor *y = trn_where(trn_greater(x, zero), trn_log(x), zero);
    harness_equal(trn_add(y, zero), 2, 0.0, (double)harness_at(y, 1));
    trn_tensor *nothing = leaf(c, 1.0, 2.0);
    trn_tensor *bad = harness_vector(c, 2, (double)NAN, (double)INFINITY);
    trn_backward(total(trn_where(trn_greater(nothing, zero), nothing, bad)));
    harness_equal(trn_grad_of(nothing), 2, 1.0, 1.0);
}

static void detach_and_no_grad_record_nothing(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = leaf(c, 2.0, 3.0);
    trn_tensor *y = trn_mul(x, trn_detach(x));
    trn_backward(total(y));
    harness_equal(trn_grad_of(x), 2, 2.0, 3.0);
    assert_false(trn_requires_grad(trn_detach(y)));
    trn_no_grad_begin(c);
    trn_no_grad_begin(c);
    trn_no_grad_end(c);
    assert_false(trn_requires_grad(trn_mul(x, x)));
    trn_no_grad_end(c);
    assert_true(trn_requires_grad(trn_mul(x, x)));
    trn_no_grad_end(c);
    harness_error(c, TRN_ERR_STATE, "no region is open");
}

static void a_frozen_leaf_gets_no_gradient(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = leaf(c, 2.0, 3.0), *w = leaf(c, 5.0, 7.0);
    trn_set_requires_grad(w, false);
    trn_backward(total(trn_mul(x, w)));
    harness_equal(trn_grad_of(x), 2, 5.0, 7.0);
    assert_null(trn_grad_of(w));
    trn_backward(total(trn_mul(w, w)));
    harness_error(c, TRN_ERR_NOGRAD, "trn_backward: f64[]");
    trn_set_requires_grad(trn_mul(x, w), true);
    harness_error(c, TRN_ERR_STATE, "was computed from other tensors");
    trn_set_requires_grad(trn_cast(w, TRN_I32), true);
    harness_error(c, TRN_ERR_DTYPE, "i32[2]");
}

static void a_saved_tensor_changed_in_place_is_an_error(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = leaf(c, 2.0, 3.0);
    trn_tensor *w = harness_vector(c, 2, 5.0, 7.0);
    trn_tensor *y = total(trn_mul(x, w));
    trn_assign(w, harness_vector(c, 2, 1.0, 1.0));
    harness_ok(c);
    assert_int_equal(trn_backward(y), TRN_ERR_MODIFIED);
    harness_error(c, TRN_ERR_MODIFIED, "mul needs its input 1");
    assert_null(trn_grad_of(x));
    trn_tensor *e = trn_exp(x), *z = total(e);
    trn_no_grad_begin(c);
    trn_assign(e, w);
    trn_no_grad_end(c);
    assert_int_equal(trn_backward(z), TRN_ERR_MODIFIED);
    harness_error(c, TRN_ERR_MODIFIED, "exp needs its output 0");
    trn_tensor *s = trn_add(x, w); /* saves nothing: a change does no harm */
    double data[2] = {0.0, 0.0};
    trn_tensor_write(w, data, sizeof data);
    assert_int_equal(trn_backward(total(s)), TRN_OK);
    harness_equal(trn_grad_of(x), 2, 1.0, 1.0);
}

static void an_input_without_influence_gives_null_or_zeros(void **state)
{
    trn_context *c = *state;
    trn_grad_options o = TRN_GRAD_INIT;
    trn_tensor *in[2] = {leaf(c, 2.0, 3.0), leaf(c, 1.0, 1.0)}, *g[2];
    trn_tensor *y = total(trn_mul(in[0], in[0]));
    o.retain_graph = true;
    trn_grad(1, &y, 2, in, NULL, &o, g);
    harness_ok(c);
    harness_equal(g[0], 2, 4.0, 6.0);
    assert_null(g[1]);
    o.zeros = true;
    trn_grad(1, &y, 2, in, NULL, &o, g);
    harness_equal(g[1], 2, 0.0, 0.0);
    trn_tensor *constant = harness_vector(c, 2, 1.0, 1.0);
    assert_int_equal(trn_grad(1, &y, 1, &constant, NULL, &o, g),
                     TRN_ERR_NOGRAD);
    harness_error(c, TRN_ERR_NOGRAD, "trn_grad: input 0, f64[2]");
    assert_null(g[0]);
}

/* y = (x^2)^2 with u = x^2: dy/du = 2 u; two outputs add up. */
static void gradients_reach_computed_tensors_and_add_over_outputs(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = leaf(c, 2.0, 3.0);
    trn_tensor *u = trn_mul(x, x);
    trn_tensor *y[2] = {total(trn_mul(u, u)), total(u)};
    trn_tensor *in[2] = {u, x}, *g[2];
    trn_grad(2, y, 2, in, NULL, NULL, g);
    harness_ok(c);
    harness_equal(g[0], 2, 9.0, 19.0);
    harness_equal(g[1], 2, 36.0, 114.0);
    assert_null(trn_grad_of(x));
    trn_tensor *z = trn_mul(x, x); /* the gradient of y for y is the seed */
    trn_tensor *seed = harness_vector(c, 2, 3.0, 4.0);
    trn_grad(1, &z, 1, &z, &seed, NULL, g);
    harness_ok(c);
    harness_equal(g[0], 2, 3.0, 4.0);
}

/* Neither the walk nor the freeing may recurse. */
static void a_chain_of_200000_ops_is_walked_and_freed(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = leaf(c, 1.0, 2.0);
    for (int round = 0; round < 2; round++) {
        trn_step_begin(c);
        trn_tensor *y = x;
        for (int i = 0; i < 200000; i++)
            y = trn_neg(y);
        if (round == 0)
            trn_backward(total(y));
        harness_ok(c);
        trn_step_end(c);
    }
    harness_equal(trn_grad_of(x), 2, 1.0, 1.0);
    trn_tensor *y = trn_exp(trn_mul_scalar(x, 0.0));
    for (int i = 0; i < 200000; i++) { /* only the record holds the chain */
        trn_tensor *next = trn_relu(y);
        trn_tensor_release(y);
        y = next;
    }
    harness_ok(c);
    trn_tensor_release(y);
}

/* The second term's record is freed: no leaf may have changed by then. */
static void a_walk_that_fails_changes_no_gradient(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = leaf(c, 2.0, 3.0), *w = leaf(c, 1.0, 1.0);
    trn_backward(total(trn_mul(x, w)));
    trn_tensor *early = trn_exp(w);
    trn_tensor *late = trn_mul(x, early);
    trn_tensor *y = total(trn_add(late, trn_mul(x, x)));
    trn_no_grad_begin(c);
    trn_assign(early, x);
    trn_no_grad_end(c);
    harness_ok(c);
    assert_int_equal(trn_backward(y), TRN_ERR_MODIFIED);
    harness_error(c, TRN_ERR_MODIFIED, "trn_backward");
    harness_equal(trn_grad_of(x), 2, 1.0, 1.0);
    harness_equal(trn_grad_of(w), 2, 2.0, 3.0);
}

static void assign_moves_the_history_to_its_source(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = leaf(c, 2.0, 3.0), *w = leaf(c, 5.0, 7.0);
    trn_tensor *y = trn_add_scalar(x, 1.0);
    assert_int_equal(trn_assign(y, trn_mul(w, w)), TRN_OK);
    trn_backward(total(y));
    harness_ok(c);
    assert_null(trn_grad_of(x));
    harness_equal(trn_grad_of(w), 2, 10.0, 14.0);
    trn_tensor *v = trn_add_scalar(x, 1.0);
    trn_tensor *view = trn_slice(v, 0, 0, 1, 1);
    assert_int_not_equal(trn_assign(view, trn_slice(x, 0, 0, 1, 1)), TRN_OK);
    harness_error(c, TRN_ERR_STATE, "shares memory");
}

static void the_mask_of_dropout_is_that_of_its_gradient(void **state)
{
    trn_context *c = *state;
    trn_generator *g = trn_generator_default(c);
    int64_t shape[1] = {1000};
    trn_tensor *x = trn_full(c, TRN_F64, 1, shape, 3.0);
    trn_set_requires_grad(x, true);
    trn_tensor *y = trn_dropout(x, 0.25, g);
    trn_uniform(g, TRN_F32, 0, NULL); /* later draws do not matter */
    trn_backward(total(y));
    trn_tensor *same = trn_equal(y, trn_mul_scalar(trn_grad_of(x), 3.0));
    harness_equal(trn_sum(same, TRN_ALL_AXES, false), 1, 1000.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(the_first_gradient_is_assigned_the_next_are_added),
        TRN_TEST(gradients_of_several_uses_add_up),
        TRN_TEST(backward_twice_needs_retain_graph),
        TRN_TEST(a_tensor_of_several_elements_needs_a_seed),
        TRN_TEST(create_graph_reaches_the_third_order),
        TRN_TEST(a_zero_gradient_still_has_a_derivative),
        TRN_TEST(derivatives_at_awkward_points_are_as_agreed),
        TRN_TEST(ties_share_the_gradient),
        TRN_TEST(where_leaks_nothing_from_the_branch_not_taken),
        TRN_TEST(detach_and_no_grad_record_nothing),
        TRN_TEST(a_frozen_leaf_gets_no_gradient),
        TRN_TEST(a_saved_tensor_changed_in_place_is_an_error),
        TRN_TEST(an_input_without_influence_gives_null_or_zeros),
        TRN_TEST(gradients_reach_computed_tensors_and_add_over_outputs),
        TRN_TEST(a_chain_of_200000_ops_is_walked_and_freed),
        TRN_TEST(a_walk_that_fails_changes_no_gradient),
        TRN_TEST(assign_moves_the_history_to_its_source),
        TRN_TEST(the_mask_of_dropout_is_that_of_its_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
