/* SPDX-License-Identifier: Apache-2.0
 *
 * Bad arguments of single ops, and the answers of conventions.md: axes,
 * indices, sizes near 2^63, empty reductions, integer division.
 */
#include <math.h>

#include "harness.h"

static trn_tensor *zeros(trn_context *c, int rank, const int64_t *shape)
{
    return trn_tensor_zeros(c, TRN_F32, rank, shape);
}

static void an_axis_out_of_range_is_told_with_the_shape(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = zeros(c, 2, (int64_t[]){3, 4});
    trn_tensor *i = trn_cast(x, TRN_I32);
#define BAD_AXIS(call, text)                 \
    do {                                     \
        assert_null(call);                   \
        harness_error(c, TRN_ERR_ARG, text); \
    } while (0)
    BAD_AXIS(trn_argmax(x, 2), "argmax: axis is 2; expected one of [-2, 2) "
                               "for f32[3,4]");
    BAD_AXIS(trn_softmax(x, -3), "softmax: axis is -3");
    BAD_AXIS(trn_log_softmax(x, 7), "log_softmax: axis is 7");
    BAD_AXIS(trn_gather(x, 2, i), "gather: axis is 2");
    BAD_AXIS(trn_scatter_add(x, -9, i, 1), "scatter_add: axis is -9");
    BAD_AXIS(trn_slice(x, 2, 0, 1, 1), "slice: axis is 2");
    BAD_AXIS(trn_pad(x, 2, 0, 1, 1), "pad: axis is 2");
    BAD_AXIS(trn_transpose(x, 0, 2), "transpose: axis is 2");
    BAD_AXIS(trn_sum(x, TRN_AXIS(2), false), "sum: axes 0x4");
    BAD_AXIS(trn_mean(x, TRN_AXIS(31), false), "mean: axes");
    BAD_AXIS(trn_softmax(trn_full(c, TRN_F32, 0, NULL, 0.0), 0),
             "softmax: axis is 0");
}

static void bad_shape_arguments_are_refused(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = zeros(c, 2, (int64_t[]){3, 4});
    assert_null(trn_reshape(x, 2, (int64_t[]){5, 2}));
    harness_error(c, TRN_ERR_SHAPE, "reshape: f32[3,4] has 12 elements");
    assert_null(trn_reshape(x, 2, (int64_t[]){5, -1}));
    harness_error(c, TRN_ERR_SHAPE, "reshape: f32[3,4]");
    assert_null(trn_reshape(x, 2, (int64_t[]){-1, -1}));
    harness_error(c, TRN_ERR_ARG, "reshape: dimension 1 is -1");
    assert_null(trn_reshape(x, 9, (int64_t[9]){1, 1, 1, 1, 1, 1, 1, 3, 4}));
    harness_error(c, TRN_ERR_ARG, "reshape: rank is 9");
    assert_null(trn_permute(x, (int[]){0, 0}));
    harness_error(c, TRN_ERR_ARG, "permute: perm[1] is 0");
    assert_null(trn_permute(x, (int[]){0, 2}));
    harness_error(c, TRN_ERR_ARG, "permute: perm[1] is 2");
    assert_null(trn_permute(x, NULL));
    harness_error(c, TRN_ERR_ARG, "permute: perm is NULL");
    assert_null(trn_expand(x, 2, (int64_t[]){6, 4}));
    harness_error(c, TRN_ERR_SHAPE,
                  "expand: f32[3,4] does not broadcast to "
                  "f32[6,4]");
    assert_null(trn_expand(x, 1, (int64_t[]){4}));
    harness_error(c, TRN_ERR_SHAPE, "expand");
    assert_null(trn_expand(x, -1, NULL));
    harness_error(c, TRN_ERR_ARG, "expand: rank is -1");
    assert_null(trn_slice(x, 0, 0, 3, 0));
    harness_error(c, TRN_ERR_ARG, "slice: step is 0");
    assert_null(trn_pad(x, 0, -1, 0, 0));
    harness_error(c, TRN_ERR_ARG, "pad: before -1");
}

static void sizes_that_overflow_are_refused_before_allocation(void **state)
{
    trn_context *c = *state;
    const int64_t big = INT64_C(1) << 31;
    assert_null(zeros(c, 2, (int64_t[]){big, big}));
    harness_error(c, TRN_ERR_ARG, "overflows");
    assert_null(zeros(c, 3, (int64_t[]){big, big, 0}));
    harness_error(c, TRN_ERR_ARG, "overflows");
    assert_null(zeros(c, 1, (int64_t[]){INT64_MAX}));
    harness_error(c, TRN_ERR_ARG, "overflows");
    assert_null(zeros(c, 2, (int64_t[]){2, -1}));
    harness_error(c, TRN_ERR_ARG, "dimension 1 is -1");
    assert_null(zeros(c, 9, (int64_t[9]){1, 1, 1, 1, 1, 1, 1, 1, 1}));
    harness_error(c, TRN_ERR_ARG, "rank is 9");
    assert_null(zeros(c, 2, NULL));
    harness_error(c, TRN_ERR_ARG, "shape is NULL");
    trn_tensor *one = trn_full(c, TRN_F32, 2, (int64_t[]){1, 1}, 1.0);
    trn_tensor *tall = trn_expand(one, 2, (int64_t[]){big, 1});
    trn_tensor *wide = trn_expand(one, 2, (int64_t[]){1, big});
    harness_ok(c);
    assert_null(trn_add(tall, wide));
    harness_error(c, TRN_ERR_ARG, "add: the size overflows");
    assert_null(trn_matmul(tall, wide));
    harness_error(c, TRN_ERR_ARG, "matmul: the size overflows");
    assert_null(trn_expand(tall, 2, (int64_t[]){big, big}));
    harness_error(c, TRN_ERR_ARG, "expand: the size overflows");
    assert_null(trn_pad(one, 0, INT64_MAX, INT64_MAX, 0));
    harness_error(c, TRN_ERR_ARG, "pad: the size of axis 0 overflows");
    assert_null(trn_pad(tall, 0, 0, 0, INT64_MAX / 2));
    harness_error(c, TRN_ERR_ARG, "pad: the size of axis 0 overflows");
    assert_null(trn_argmax(trn_expand(one, 2, (int64_t[]){1, big}), 1));
    harness_error(c, TRN_ERR_SHAPE, "argmax: axis 1");
    trn_tensor *index =
        trn_expand(trn_cast(one, TRN_I32), 2, (int64_t[]){big, 1 << 20});
    trn_tensor *weight = trn_expand(one, 2, (int64_t[]){2, 1 << 20});
    assert_null(trn_embedding(weight, index, -1));
    harness_error(c, TRN_ERR_ARG, "embedding: the size overflows");
    assert_null(trn_reshape(one, 3, (int64_t[]){big, big, big}));
    harness_error(c, TRN_ERR_ARG, "reshape");
}

static void a_size_beyond_memory_is_out_of_memory(void **state)
{
    trn_context *c = *state;
    assert_null(zeros(c, 1, (int64_t[]){INT64_C(1) << 58}));
    harness_error(c, TRN_ERR_NOMEM, "bytes were asked for");
    assert_non_null(zeros(c, 1, (int64_t[]){4}));
}

/* The first bad index in row-major order is told, of either type and sign. */
static void a_bad_index_is_told_with_position_and_value(void **state)
{
    trn_context *c = *state;
    trn_tensor *w = zeros(c, 2, (int64_t[]){5, 3});
    trn_tensor *i = harness_i32(c, 1, (int64_t[]){4}, (int[]){0, 4, 5, -1});
    trn_tensor *wide = trn_cast(i, TRN_I64);
    trn_tensor *column = trn_reshape(i, 2, (int64_t[]){4, 1});
    assert_null(trn_embedding(w, i, -1));
    harness_error(c, TRN_ERR_INDEX,
                  "embedding: index 5 at position 2; expected 0 to 4");
    assert_null(trn_embedding(w, wide, -1));
    harness_error(c, TRN_ERR_INDEX, "index 5 at position 2");
    assert_null(trn_embedding(w, trn_slice(i, 0, 3, 4, 1), -1));
    harness_error(c, TRN_ERR_INDEX, "index -1 at position 0");
    trn_tensor *x = zeros(c, 2, (int64_t[]){5, 1});
    assert_null(trn_gather(x, 0, column));
    harness_error(c, TRN_ERR_INDEX, "gather: index 5 at position 2");
    trn_tensor *y = zeros(c, 1, (int64_t[]){4});
    assert_null(trn_scatter_add(y, 0, i, 4));
    harness_error(c, TRN_ERR_INDEX,
                  "scatter_add: index 4 at position 1; expected 0 to 3");
    assert_null(trn_embedding(w, i, 5));
    harness_error(c, TRN_ERR_ARG, "embedding: padding_idx is 5");
    assert_null(trn_scatter_add(y, 0, i, -1));
    harness_error(c, TRN_ERR_ARG, "scatter_add: dimension 0 is -1");
    trn_tensor *none = zeros(c, 2, (int64_t[]){0, 3});
    assert_null(trn_embedding(none, i, -1));
    harness_error(c, TRN_ERR_INDEX, "index 0 at position 0");
}

static void a_bad_target_is_told_for_every_reduction(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = zeros(c, 2, (int64_t[]){3, 4});
    trn_tensor *t = harness_i32(c, 1, (int64_t[]){3}, (int[]){3, -100, 4});
    trn_cross_entropy_options o = TRN_CROSS_ENTROPY_INIT;
    for (uint32_t r = 0; r < 3; r++) {
        o.reduction = r;
        o.has_ignore_index = false;
        assert_null(trn_cross_entropy(x, t, &o));
        harness_error(c, TRN_ERR_INDEX,
                      "cross_entropy: index -100 at position 1; expected 0 "
                      "to 3");
        o.has_ignore_index = true;
        o.ignore_index = -100;
        assert_null(trn_cross_entropy(x, t, &o));
        harness_error(c, TRN_ERR_INDEX, "index 4 at position 2");
    }
    o.reduction = 3;
    assert_null(trn_cross_entropy(x, t, &o));
    harness_error(c, TRN_ERR_ARG, "cross_entropy: reduction is 3");
    o.size = 1;
    assert_null(trn_cross_entropy(x, t, &o));
    harness_error(c, TRN_ERR_ARG, "options.size is 1");
}

static void integer_division_by_zero_is_told_with_its_position(void **state)
{
    trn_context *c = *state;
    trn_tensor *a = harness_i32(c, 1, (int64_t[]){4}, (int[]){1, 2, 3, 4});
    trn_tensor *b = harness_i32(c, 1, (int64_t[]){4}, (int[]){1, 2, 0, 0});
    assert_null(trn_div(a, b));
    harness_error(c, TRN_ERR_VALUE,
                  "div: integer division by zero at position 2");
    trn_tensor *low = trn_full(c, TRN_I32, 0, NULL, -2147483648.0);
    harness_equal(trn_div(low, trn_full(c, TRN_I32, 0, NULL, -1.0)), 1,
                  -2147483648.0);
}

static void the_largest_of_nothing_is_an_error(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = zeros(c, 2, (int64_t[]){3, 0});
    assert_null(trn_max(x, TRN_AXIS(1), false));
    harness_error(c, TRN_ERR_SHAPE,
                  "max: nothing to take the largest of in "
                  "f32[3,0]");
    assert_null(trn_max(x, TRN_ALL_AXES, true));
    harness_error(c, TRN_ERR_SHAPE, "max");
    assert_null(trn_argmax(x, 1));
    harness_error(c, TRN_ERR_SHAPE, "argmax: axis 1 of f32[3,0]");
    assert_int_equal(trn_tensor_numel(trn_max(x, TRN_AXIS(0), false)), 0);
}

static void a_value_that_is_not_finite_is_found(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = harness_vector(c, 3, 1.0, (double)INFINITY, (double)NAN);
    assert_null(trn_check_finite(x));
    harness_error(c, TRN_ERR_NUMERIC, "check_finite: the value at position 1");
    assert_null(trn_check_finite(trn_slice(x, 0, 2, 3, 1)));
    harness_error(c, TRN_ERR_NUMERIC, "position 0");
}

static void dropout_wants_a_probability_and_its_own_generator(void **state)
{
    trn_context *c = *state;
    trn_context *other = harness_open(NULL, 1, TRN_ENGINE_POOL);
    trn_tensor *x = zeros(c, 1, (int64_t[]){4});
    trn_generator *g = trn_generator_default(c);
    assert_null(trn_dropout(x, 1.5, g));
    harness_error(c, TRN_ERR_ARG, "dropout: p is 1.5");
    assert_null(trn_dropout(x, -0.1, g));
    harness_error(c, TRN_ERR_ARG, "dropout: p is -0.1");
    assert_null(trn_dropout(x, (double)NAN, g));
    harness_error(c, TRN_ERR_ARG, "dropout: p is ");
    assert_null(trn_dropout(x, 0.5, NULL));
    harness_error(c, TRN_ERR_ARG, "dropout");
    assert_null(trn_dropout(x, 0.5, trn_generator_default(other)));
    harness_error(c, TRN_ERR_ARG, "dropout");
    assert_int_equal(trn_generator_draws(g), 0);
    assert_null(trn_uniform(g, TRN_I32, 0, NULL));
    harness_error(c, TRN_ERR_DTYPE, "uniform: dtype is i32");
    harness_close(other);
}

static void matmul_names_shapes_and_the_error_sticks(void **state)
{
    trn_context *c = *state;
    trn_tensor *a = zeros(c, 2, (int64_t[]){64, 784});
    trn_tensor *b = zeros(c, 2, (int64_t[]){700, 128});
    assert_null(trn_matmul(a, b));
    assert_null(trn_relu(a));
    harness_error(c, TRN_ERR_SHAPE, "a is f32[64,784], b is f32[700,128]");
    assert_non_null(trn_relu(a));
    assert_null(trn_matmul(a, zeros(c, 1, (int64_t[]){784})));
    harness_error(c, TRN_ERR_SHAPE, "b is f32[784]");
    assert_null(trn_matmul(zeros(c, 3, (int64_t[]){2, 3, 4}),
                           zeros(c, 3, (int64_t[]){3, 4, 5})));
    harness_error(c, TRN_ERR_SHAPE, "leading dimensions do not broadcast");
}

static void assign_refuses_what_it_cannot_write(void **state)
{
    static const double outside[2] = {1.0, 2.0};
    trn_context *c = *state;
    trn_tensor *x = harness_vector(c, 4, 1.0, 2.0, 3.0, 4.0);
    trn_tensor *one = harness_vector(c, 1, 5.0);
    assert_int_not_equal(trn_assign(trn_expand(one, 1, (int64_t[]){4}), x),
                         TRN_OK);
    harness_error(c, TRN_ERR_ARG, "share memory");
    assert_int_not_equal(
        trn_assign(trn_slice(x, 0, 0, 3, 1), trn_slice(x, 0, 1, 4, 1)), TRN_OK);
    harness_error(c, TRN_ERR_ARG, "overlap");
    assert_int_not_equal(trn_assign(x, trn_cast(x, TRN_F32)), TRN_OK);
    harness_error(c, TRN_ERR_DTYPE, "x is f64[4], y is f32[4]");
    trn_tensor *w =
        trn_tensor_wrap(c, TRN_F64, 1, (int64_t[]){2}, outside, NULL, NULL);
    assert_int_not_equal(trn_assign(w, one), TRN_OK);
    harness_error(c, TRN_ERR_STATE, "wraps the caller's memory");
    trn_set_requires_grad(one, true);
    assert_int_not_equal(trn_assign(one, trn_slice(x, 0, 0, 1, 1)), TRN_OK);
    harness_error(c, TRN_ERR_STATE, "trn_no_grad_begin()");
    harness_equal(x, 4, 1.0, 2.0, 3.0, 4.0);
    assert_int_equal(trn_assign(x, x), TRN_OK); /* full self-aliasing */
    harness_equal(x, 4, 1.0, 2.0, 3.0, 4.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(an_axis_out_of_range_is_told_with_the_shape),
        TRN_TEST(bad_shape_arguments_are_refused),
        TRN_TEST(sizes_that_overflow_are_refused_before_allocation),
        TRN_TEST(a_size_beyond_memory_is_out_of_memory),
        TRN_TEST(a_bad_index_is_told_with_position_and_value),
        TRN_TEST(a_bad_target_is_told_for_every_reduction),
        TRN_TEST(integer_division_by_zero_is_told_with_its_position),
        TRN_TEST(the_largest_of_nothing_is_an_error),
        TRN_TEST(a_value_that_is_not_finite_is_found),
        TRN_TEST(dropout_wants_a_probability_and_its_own_generator),
        TRN_TEST(matmul_names_shapes_and_the_error_sticks),
        TRN_TEST(assign_refuses_what_it_cannot_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
