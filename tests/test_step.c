/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps: what they make ends with them, and one that fails has not happened.
 */
#include <math.h>

#include "harness.h"

static void fail_something(trn_context *c)
{
    trn_add(harness_vector(c, 2, 1.0, 2.0),
            harness_vector(c, 3, 1.0, 2.0, 3.0));
    assert_int_equal(trn_errcode(c), TRN_ERR_SHAPE);
}

static void end_and_clear(trn_context *c)
{
    assert_int_equal(trn_step_end(c), TRN_ERR_SHAPE);
    trn_clear(c);
}

static void steps_do_not_nest_and_count_when_they_succeed(void **state)
{
    trn_context *c = *state;
    assert_int_equal(trn_step_index(c), 0);
    assert_int_equal(trn_step_begin(c), TRN_OK);
    assert_int_equal(trn_step_begin(c), TRN_ERR_STATE);
    harness_error(c, TRN_ERR_STATE, "trn_step_begin: a step is open");
    assert_int_equal(trn_step_end(c), TRN_OK);
    assert_int_equal(trn_step_index(c), 1);
    assert_int_equal(trn_step_end(c), TRN_ERR_STATE);
    harness_error(c, TRN_ERR_STATE, "trn_step_end: no step is open");
    trn_step_begin(c);
    fail_something(c);
    end_and_clear(c);
    assert_int_equal(trn_step_index(c), 1);
    fail_something(c);
    assert_int_equal(trn_step_begin(c), TRN_ERR_SHAPE);
    trn_clear(c);
}

static void what_a_failed_step_wrote_is_put_back(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = harness_vector(c, 4, 1.0, 2.0, 3.0, 4.0);
    trn_tensor *half = trn_slice(x, 0, 0, 2, 1);
    trn_step_begin(c);
    trn_assign(x, harness_vector(c, 1, 9.0));
    trn_assign(half, harness_vector(c, 2, 7.0, 8.0));
    double data[4] = {0};
    trn_tensor_write(x, data, sizeof data);
    harness_equal(x, 4, 0.0, 0.0, 0.0, 0.0);
    fail_something(c);
    end_and_clear(c);
    harness_equal(x, 4, 1.0, 2.0, 3.0, 4.0);
    harness_equal(half, 2, 1.0, 2.0);
    trn_step_begin(c);
    trn_assign(half, harness_vector(c, 2, 7.0, 8.0));
    assert_int_equal(trn_step_end(c), TRN_OK);
    harness_equal(x, 4, 7.0, 8.0, 3.0, 4.0);
}

/* A tensor that the step made and kept stays; its values are the step's. */
static void a_kept_tensor_survives_a_failed_step(void **state)
{
    trn_context *c = *state;
    trn_step_begin(c);
    trn_tensor *x = trn_keep(harness_vector(c, 1, 1.0));
    trn_assign(x, harness_vector(c, 1, 5.0));
    fail_something(c);
    end_and_clear(c);
    harness_equal(x, 1, 5.0);
}

static void gradients_of_a_failed_step_are_put_back(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = harness_vector(c, 2, 2.0, 3.0);
    trn_tensor *y = harness_vector(c, 2, 1.0, 1.0);
    trn_set_requires_grad(x, true);
    trn_set_requires_grad(y, true);
    trn_backward(trn_sum(trn_mul(x, x), TRN_ALL_AXES, false));
    for (int i = 0; i < 2; i++) {
        trn_step_begin(c);
        trn_backward(trn_sum(trn_mul(x, y), TRN_ALL_AXES, false));
        trn_backward(trn_sum(trn_mul(x, y), TRN_ALL_AXES, false));
        harness_equal(trn_grad_of(x), 2, 6.0, 8.0);
        harness_equal(trn_grad_of(y), 2, 4.0, 6.0);
        trn_zero_grad(x);
        assert_null(trn_grad_of(x));
        fail_something(c);
        end_and_clear(c);
        harness_equal(trn_grad_of(x), 2, 4.0, 6.0);
        assert_null(trn_grad_of(y));
    }
    trn_step_begin(c);
    trn_backward(trn_sum(trn_mul(x, y), TRN_ALL_AXES, false));
    assert_int_equal(trn_step_end(c), TRN_OK);
    harness_equal(trn_grad_of(x), 2, 5.0, 7.0);
    harness_equal(trn_grad_of(y), 2, 2.0, 3.0);
}

static void draws_of_a_failed_step_are_taken_back(void **state)
{
    trn_context *c = *state;
    trn_generator *g = trn_generator_new(c, 3);
    double first[3], again[3];
    int64_t shape[1] = {3};
    trn_uniform(g, TRN_F64, 1, shape);
    trn_step_begin(c);
    trn_tensor_read(trn_uniform(g, TRN_F64, 1, shape), first, sizeof first);
    trn_normal(g, TRN_F32, 1, shape);
    assert_int_equal(trn_generator_draws(g), 3);
    fail_something(c);
    end_and_clear(c);
    assert_int_equal(trn_generator_draws(g), 1);
    trn_step_begin(c);
    trn_tensor_read(trn_uniform(g, TRN_F64, 1, shape), again, sizeof again);
    assert_int_equal(trn_step_end(c), TRN_OK);
    assert_memory_equal(first, again, sizeof first);
    assert_int_equal(trn_generator_draws(g), 2);
}

static void the_loss_is_the_last_root_of_backward(void **state)
{
    trn_context *c = *state;
    assert_true(isnan(trn_step_loss(c)));
    trn_tensor *x = harness_vector(c, 2, 2.0, 3.0);
    trn_set_requires_grad(x, true);
    trn_step_begin(c);
    trn_backward(trn_sum(trn_mul(x, x), TRN_ALL_AXES, false));
    trn_backward(trn_sum(x, TRN_ALL_AXES, false));
    assert_true(trn_step_loss(c) == 5.0);
    trn_step_end(c);
    assert_true(trn_step_loss(c) == 5.0);
    trn_backward_with(trn_mul(x, x), x, false);
    assert_true(trn_step_loss(c) == 4.0);
    fail_something(c);
    assert_true(isnan(trn_step_loss(c)));
    trn_clear(c);
    assert_true(trn_step_loss(c) == 4.0);
}

/* The message of the first error stays; nothing runs after it. */
static void the_first_error_of_a_step_is_returned_at_its_end(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = harness_vector(c, 2, 2.0, 3.0);
    trn_step_begin(c);
    fail_something(c);
    trn_matmul(x, x);
    assert_int_equal(trn_assign(x, x), TRN_ERR_SHAPE);
    assert_int_equal(trn_backward(x), TRN_ERR_SHAPE);
    assert_null(trn_keep(x));
    assert_int_equal(trn_step_end(c), TRN_ERR_SHAPE);
    harness_error(c, TRN_ERR_SHAPE, "add: shapes do not broadcast");
    harness_equal(x, 2, 2.0, 3.0);
}

static void closing_inside_a_step_frees_everything(void **state)
{
    trn_context *c = harness_open(NULL, 1, TRN_ENGINE_POOL);
    (void)state;
    trn_tensor *x = harness_vector(c, 2, 2.0, 3.0);
    trn_set_requires_grad(x, true);
    trn_step_begin(c);
    trn_tensor *y = trn_mul(x, x);
    trn_tensor_retain(y);
    trn_backward(trn_sum(y, TRN_ALL_AXES, false));
    trn_assign(harness_vector(c, 1, 0.0), harness_vector(c, 1, 1.0));
    harness_close(c); /* teardown counts the bytes */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(steps_do_not_nest_and_count_when_they_succeed),
        TRN_TEST(what_a_failed_step_wrote_is_put_back),
        TRN_TEST(a_kept_tensor_survives_a_failed_step),
        TRN_TEST(gradients_of_a_failed_step_are_put_back),
        TRN_TEST(draws_of_a_failed_step_are_taken_back),
        TRN_TEST(the_loss_is_the_last_root_of_backward),
        TRN_TEST(the_first_error_of_a_step_is_returned_at_its_end),
        TRN_TEST(closing_inside_a_step_frees_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
