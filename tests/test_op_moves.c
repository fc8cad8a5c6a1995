/* SPDX-License-Identifier: Apache-2.0
 *
 * concat, stack, flip, index_select, one_hot: values by hand, promotion, many
 * parts, duplicates, and what they say to bad calls; eagerly, captured and on
 * the loop device.
 */
#include <math.h>

#include "libtrn/ops/op_table.h"
#include "story.h"

/* At most 64 elements; the loop device has no f64. */
static trn_tensor *f32(trn_context *c, int rank, const int64_t *shape,
                       const double *data)
{
    float copy[64];
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= shape[d];
    for (int64_t i = 0; i < n; i++)
        copy[i] = (float)data[i];
    return trn_tensor_from(c, TRN_F32, rank, shape, copy);
}

static trn_tensor *matrix(trn_context *c, int64_t rows, int64_t columns,
                          double first)
{
    double data[64];
    for (int i = 0; i < rows * columns; i++)
        data[i] = first + i;
    return f32(c, 2, (int64_t[]){rows, columns}, data);
}

/* ---- concat and stack ---- */

static void parts_stand_one_after_the_other(void **state)
{
    trn_context *c = *state;
    trn_tensor *in[3] = {matrix(c, 2, 1, 1), matrix(c, 2, 0, 0),
                         matrix(c, 2, 2, 10)};
    trn_tensor *y = trn_concat(3, in, -1);
    assert_int_equal(trn_tensor_dim(y, 1), 3);
    harness_equal(y, 6, 1.0, 10.0, 11.0, 2.0, 12.0, 13.0);
    in[1] = matrix(c, 1, 1, 20);
    y = trn_concat(2, in, 0);
    assert_int_equal(trn_tensor_dim(y, 0), 3);
    harness_equal(y, 3, 1.0, 2.0, 20.0);
    y = trn_concat(1, in, 0);
    assert_ptr_not_equal(y, in[0]);
    harness_equal(y, 2, 1.0, 2.0);
    harness_ok(c);
}

/* Seven parts of different lengths, and their gradients. */
static void any_number_of_parts_is_joined(void **state)
{
    trn_context *c = *state;
    trn_tensor *in[7], *g[7];
    double value = 0;
    for (int i = 0; i < 7; i++) {
        int64_t n = (i * 3) % 4;
        double data[4];
        for (int j = 0; j < n; j++)
            data[j] = value++;
        in[i] = harness_f64(c, 1, &n, data);
        trn_set_requires_grad(in[i], true);
    }
    trn_tensor *y = trn_concat(7, in, 0);
    int64_t n = trn_tensor_numel(y);
    assert_int_equal(n, 11);
    for (int64_t i = 0; i < n; i++)
        assert_true(harness_at(y, i) == (long double)i);
    trn_tensor *s = trn_sum(trn_mul(y, y), TRN_ALL_AXES, false);
    assert_int_equal(trn_grad(1, &s, 7, in, NULL, NULL, g), TRN_OK);
    for (int i = 0; i < 7; i++) {
        assert_int_equal(trn_tensor_numel(g[i]), trn_tensor_numel(in[i]));
        for (int64_t j = 0; j < trn_tensor_numel(g[i]); j++)
            assert_true(harness_at(g[i], j) == 2 * harness_at(in[i], j));
    }
}

static void a_tensor_may_be_there_twice(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = harness_vector(c, 2, 3.0, 5.0), *g;
    trn_set_requires_grad(x, true);
    trn_tensor *y = trn_concat(3, (trn_tensor *[]){x, x, x}, 0);
    trn_tensor *v = harness_vector(c, 6, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0);
    assert_int_equal(trn_grad(1, &y, 1, &x, &v, NULL, &g), TRN_OK);
    harness_equal(g, 2, 21.0, 42.0);
}

/* Zeros keep their sign, NaN and infinities their places. */
static void nothing_happens_to_the_values(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = harness_vector(c, 3, -0.0, (double)INFINITY, (double)NAN);
    trn_tensor *y = trn_concat(2, (trn_tensor *[]){x, x}, 0);
    for (int i = 0; i < 6; i += 3) {
        assert_true(signbit(harness_at(y, i)) != 0);
        assert_true(isinf(harness_at(y, i + 1)));
        assert_true(isnan(harness_at(y, i + 2)));
    }
}

static void types_of_the_parts_are_promoted(void **state)
{
    static const trn_dtype table[][4] = {
        {TRN_BOOL, TRN_BOOL, TRN_BOOL, TRN_BOOL},
        {TRN_BOOL, TRN_U8, TRN_I32, TRN_I32},
        {TRN_I32, TRN_U32, TRN_U8, TRN_I64},
        {TRN_F16, TRN_I64, TRN_BF16, TRN_F32},
        {TRN_BF16, TRN_I32, TRN_BF16, TRN_BF16},
        {TRN_F32, TRN_F64, TRN_F16, TRN_F64},
    };
    trn_context *c = *state;
    int64_t one = 1;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        trn_tensor *in[3];
        for (int j = 0; j < 3; j++)
            in[j] = trn_full(c, table[i][j], 1, &one, 1.0);
        trn_tensor *y = trn_concat(3, in, 0), *z = trn_stack(3, in, 1);
        harness_ok(c);
        assert_int_equal(trn_tensor_dtype(y), table[i][3]);
        assert_int_equal(trn_tensor_dtype(z), table[i][3]);
        harness_equal(y, 3, 1.0, 1.0, 1.0);
    }
}

static void stack_makes_an_axis(void **state)
{
    trn_context *c = *state;
    trn_tensor *in[3] = {matrix(c, 1, 2, 1), matrix(c, 1, 2, 3),
                         matrix(c, 1, 2, 5)};
    trn_tensor *y = trn_stack(3, in, 0);
    assert_int_equal(trn_tensor_dim(y, 0), 3);
    harness_equal(y, 6, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0);
    y = trn_stack(3, in, -1);
    assert_int_equal(trn_tensor_rank(y), 3);
    assert_int_equal(trn_tensor_dim(y, 2), 3);
    harness_equal(y, 6, 1.0, 3.0, 5.0, 2.0, 4.0, 6.0);
    y = trn_stack(3, in, 1);
    assert_int_equal(trn_tensor_dim(y, 1), 3);
    harness_equal(y, 6, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0);
    y = trn_stack(1, in, 2);
    assert_int_equal(trn_tensor_dim(y, 2), 1);
    trn_tensor *numbers[2] = {trn_full(c, TRN_F32, 0, NULL, 7.0),
                              trn_full(c, TRN_F32, 0, NULL, 8.0)};
    harness_equal(trn_stack(2, numbers, 0), 2, 7.0, 8.0);
    trn_tensor *none = trn_stack(
        2, (trn_tensor *[]){matrix(c, 0, 3, 0), matrix(c, 0, 3, 0)}, 1);
    assert_int_equal(trn_tensor_dim(none, 1), 2);
    assert_int_equal(trn_tensor_numel(none), 0);
}

static void bad_parts_are_told_by_number(void **state)
{
    trn_context *c = *state;
    trn_tensor *a = matrix(c, 2, 3, 0), *b = matrix(c, 2, 4, 0);
    trn_tensor *one = trn_full(c, TRN_F32, 0, NULL, 1.0);
    assert_null(trn_concat(0, &a, 0));
    assert_null(trn_concat(2, NULL, 0));
    assert_null(trn_concat(2, (trn_tensor *[]){NULL, NULL}, 0));
    harness_ok(c);
    assert_null(trn_concat(3, (trn_tensor *[]){a, a, NULL}, 0));
    harness_error(c, TRN_ERR_ARG, "concat: input 2 is NULL");
    assert_null(trn_concat(3, (trn_tensor *[]){a, a, b}, 0));
    harness_error(c, TRN_ERR_SHAPE,
                  "concat: input 0 is f32[2,3], input 2 is f32[2,4]; expected "
                  "equal shapes but along axis");
    assert_null(trn_concat(2, (trn_tensor *[]){a, one}, 0));
    harness_error(c, TRN_ERR_SHAPE, "input 1 is f32[]");
    assert_null(trn_concat(2, (trn_tensor *[]){one, one}, 0));
    harness_error(c, TRN_ERR_ARG, "concat: axis is 0");
    assert_null(trn_concat(2, (trn_tensor *[]){a, a}, 2));
    harness_error(c, TRN_ERR_ARG, "concat: axis is 2");
    assert_null(trn_stack(2, (trn_tensor *[]){a, b}, 0));
    harness_error(c, TRN_ERR_SHAPE, "stack: input 0 is f32[2,3], input 1 is");
    assert_null(trn_stack(2, (trn_tensor *[]){a, a}, 3));
    harness_error(c, TRN_ERR_ARG, "stack: axis is 3; expected one of [-3, 3)");
    assert_null(trn_stack(2, (trn_tensor *[]){a, a}, -4));
    harness_error(c, TRN_ERR_ARG, "stack: axis is -4");
    trn_tensor *deep =
        trn_reshape(one, 8, (int64_t[8]){1, 1, 1, 1, 1, 1, 1, 1});
    assert_null(trn_stack(1, &deep, 0));
    harness_error(c, TRN_ERR_SHAPE, "expected a rank below 8");
    trn_tensor *long_one =
        trn_expand(trn_cast(one, TRN_U8), 1, (int64_t[]){INT64_MAX - 1});
    assert_null(trn_concat(2, (trn_tensor *[]){long_one, long_one}, 0));
    harness_error(c, TRN_ERR_ARG, "concat: the size of axis 0 overflows");
}

/* ---- flip ---- */

static void flip_turns_the_axes_of_its_mask(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = matrix(c, 2, 3, 1);
    harness_equal(trn_flip(x, TRN_AXIS(0)), 6, 4.0, 5.0, 6.0, 1.0, 2.0, 3.0);
    harness_equal(trn_flip(x, TRN_AXIS(1)), 6, 3.0, 2.0, 1.0, 6.0, 5.0, 4.0);
    harness_equal(trn_flip(x, TRN_ALL_AXES), 6, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0);
    trn_tensor *same = trn_flip(x, 0);
    assert_ptr_not_equal(same, x);
    harness_equal(same, 6, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0);
    harness_equal(trn_flip(trn_full(c, TRN_F32, 0, NULL, 2.0), TRN_ALL_AXES), 1,
                  2.0);
    assert_null(trn_flip(x, TRN_AXIS(2)));
    harness_error(c, TRN_ERR_ARG,
                  "flip: axes 0x4 name an axis that f32[2,3] does not have");
    assert_null(trn_flip(NULL, 0));
    harness_ok(c);
}

/* ---- index_select ---- */

/* 2^24 + 1 + 1 is 2^24 in f32, and 1 + 1 + 2^24 is not. */
static void duplicates_add_up_in_the_order_of_the_indices(void **state)
{
    trn_context *c = *state;
    trn_tensor *g, *x = f32(c, 1, (int64_t[]){2}, (double[]){0, 0});
    trn_set_requires_grad(x, true);
    trn_tensor *i =
        harness_i32(c, 1, (int64_t[]){6}, (int[]){0, 1, 1, 0, 0, 1});
    trn_tensor *y = trn_index_select(x, 0, i);
    trn_tensor *v =
        f32(c, 1, (int64_t[]){6}, (double[]){16777216, 1, 1, 1, 1, 16777216});
    assert_int_equal(trn_grad(1, &y, 1, &x, &v, NULL, &g), TRN_OK);
    harness_equal(g, 2, 16777216.0, 16777218.0);
}

static void integers_are_selected_too(void **state)
{
    trn_context *c = *state;
    trn_tensor *i = harness_i32(c, 1, (int64_t[]){3}, (int[]){2, 0, 2});
    for (int t = 0; t < 5; t++) {
        static const trn_dtype types[] = {TRN_I64, TRN_I32, TRN_U32, TRN_U8,
                                          TRN_BF16};
        trn_tensor *x = trn_cast(matrix(c, 2, 3, 1), types[t]);
        trn_tensor *y = trn_index_select(x, 1, i);
        assert_int_equal(trn_tensor_dtype(y), types[t]);
        harness_equal(y, 6, 3.0, 1.0, 3.0, 6.0, 4.0, 6.0);
        harness_equal(trn_index_select(x, -1, trn_cast(i, TRN_I64)), 6, 3.0,
                      1.0, 3.0, 6.0, 4.0, 6.0);
    }
}

/* The position is that in the index, not in what is selected. */
static void a_bad_index_is_told_as_it_was_given(void **state)
{
    static const trn_dtype types[] = {TRN_F32, TRN_I32, TRN_BOOL};
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        trn_context *c = captured_open(way, NULL);
        trn_tensor *i = harness_i32(c, 1, (int64_t[]){4}, (int[]){0, 2, 3, -1});
        for (int t = 0; t < 3; t++) {
            for (int axis = 0; axis < 2; axis++) {
                trn_step_begin(c);
                trn_tensor *x = trn_transpose(
                    trn_cast(matrix(c, 3, 5, 1), types[t]), 0, axis);
                trn_keep(trn_index_select(x, axis, i));
                trn_step_end(c);
                trn_sync(c);
                harness_error(c, TRN_ERR_INDEX,
                              "index_select: index 3 at position 2; expected 0 "
                              "to 2");
            }
        }
        trn_step_begin(c);
        trn_keep(trn_one_hot(trn_slice(i, 0, 2, 4, 1), 4, TRN_I32));
        trn_step_end(c);
        trn_sync(c);
        harness_error(c, TRN_ERR_INDEX,
                      "one_hot: index -1 at position 1; expected 0 to 3");
        captured_close(c);
    }
}

static void decomposed(trn_context *c, uint32_t op, trn_tensor *x,
                       trn_tensor *index, const void *at, uint32_t size)
{
    trn__call k = trn__call_of(op, x, index, at, size);
    k.c = c;
    assert_null(trn__ops[op].decompose(&k));
}

static void decompositions_tell_the_same_position(void **state)
{
    trn_context *c = *state;
    const trn_axis_attrs axis = {.axis = 1};
    const trn_one_hot_attrs classes = {.n_classes = 3, .dtype = TRN_U8};
    trn_tensor *i = harness_i32(c, 1, (int64_t[]){3}, (int[]){2, 0, 4});
    trn_tensor *x = matrix(c, 5, 3, 1);
    decomposed(c, TRN_OP_index_select, x, i, &axis, sizeof axis);
    harness_error(c, TRN_ERR_INDEX, "index 4 at position 2; expected 0 to 2");
    decomposed(c, TRN_OP_index_select, trn_cast(x, TRN_I64), i, &axis,
               sizeof axis);
    harness_error(c, TRN_ERR_INDEX, "index 4 at position 2; expected 0 to 2");
    decomposed(c, TRN_OP_one_hot, i, NULL, &classes, sizeof classes);
    harness_error(c, TRN_ERR_INDEX, "index 4 at position 2; expected 0 to 2");
}

static void nothing_to_select_from_is_an_index_error(void **state)
{
    trn_context *c = *state;
    trn_tensor *i = harness_i32(c, 1, (int64_t[]){1}, (int[]){0});
    trn_tensor *none = harness_i32(c, 1, (int64_t[]){0}, NULL);
    trn_tensor *empty = matrix(c, 0, 3, 0);
    assert_null(trn_index_select(empty, 0, i));
    harness_error(c, TRN_ERR_INDEX, "index 0 at position 0");
    assert_null(
        trn_index_select(matrix(c, 3, 0, 0), 0, trn_add_scalar(i, 3.0)));
    harness_error(c, TRN_ERR_INDEX, "index 3 at position 0");
    trn_tensor *y = trn_index_select(empty, 0, none);
    harness_ok(c);
    assert_int_equal(trn_tensor_dim(y, 0), 0);
    assert_int_equal(trn_tensor_dim(trn_one_hot(none, 4, TRN_F32), 1), 4);
}

static void wrong_arguments_are_refused(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = matrix(c, 2, 3, 1), *one = trn_full(c, TRN_I32, 0, NULL, 0);
    trn_tensor *i = harness_i32(c, 1, (int64_t[]){1}, (int[]){0});
    assert_null(trn_index_select(x, 0, one));
    harness_error(c, TRN_ERR_SHAPE,
                  "index_select: x is f32[2,3], index is i32[]; expected an "
                  "index of rank 1");
    assert_null(trn_index_select(x, 2, i));
    harness_error(c, TRN_ERR_ARG, "index_select: axis is 2");
    assert_null(trn_index_select(trn_cast(one, TRN_F32), 0, i));
    harness_error(c, TRN_ERR_ARG, "index_select: axis is 0");
    assert_null(trn_index_select(x, 0, trn_cast(i, TRN_U8)));
    harness_error(c, TRN_ERR_DTYPE, "expected i32 or i64");
    assert_null(trn_one_hot(i, 0, TRN_F32));
    harness_error(c, TRN_ERR_ARG, "one_hot: n_classes is 0");
    assert_null(trn_one_hot(i, 3, TRN_BOOL));
    harness_error(c, TRN_ERR_DTYPE, "one_hot: dtype is bool");
    assert_null(trn_one_hot(i, 3, (trn_dtype)77));
    harness_error(c, TRN_ERR_DTYPE, "one_hot: dtype is ");
    assert_null(trn_one_hot(x, 3, TRN_F32));
    harness_error(c, TRN_ERR_DTYPE, "one_hot: index input 0 is f32[2,3]");
    assert_null(trn_one_hot(i, INT64_MAX, TRN_F32));
    harness_error(c, TRN_ERR_ARG, "one_hot: the size overflows");
}

static void one_hot_has_the_type_that_is_asked_for(void **state)
{
    static const trn_dtype types[] = {TRN_F64, TRN_F32, TRN_BF16, TRN_F16,
                                      TRN_I64, TRN_I32, TRN_U32,  TRN_U8};
    trn_context *c = *state;
    trn_tensor *i = harness_i32(c, 1, (int64_t[]){2}, (int[]){2, 0});
    for (int t = 0; t < 8; t++) {
        trn_one_hot_attrs at = {.n_classes = 3, .dtype = (int32_t)types[t]};
        trn__call k = trn__call_of(TRN_OP_one_hot, i, NULL, &at, sizeof at);
        k.c = c;
        trn_tensor *y = trn_one_hot(i, 3, types[t]);
        trn_tensor *z = trn__decompose_one_hot(&k);
        harness_ok(c);
        assert_int_equal(trn_tensor_dtype(y), types[t]);
        assert_int_equal(trn_tensor_dtype(z), types[t]);
        harness_equal(y, 6, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0);
        harness_equal(z, 6, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0);
    }
}

/* ---- all of them in steps ---- */

static void moved_about(story *s)
{
    trn_tensor *p = parameter(s->c, 4, 1.0), *q = parameter(s->c, 3, -2.0);
    trn_tensor *i =
        trn_keep(harness_i32(s->c, 1, (int64_t[]){5}, (int[]){6, 0, 3, 6, 6}));
    for (int k = 0; k < 3; k++) {
        trn_step_begin(s->c);
        trn_tensor *both = trn_concat(3, (trn_tensor *[]){p, q, p}, 0);
        trn_tensor *y = trn_index_select(trn_flip(both, TRN_ALL_AXES), 0, i);
        trn_tensor *z = trn_stack(2, (trn_tensor *[]){y, trn_tanh(y)}, 1);
        trn_tensor *hot = trn_one_hot(
            trn_index_select(i, 0, trn_slice(i, 0, 1, 3, 1)), 7, TRN_F32);
        trn_backward(trn_add(total(trn_mul(z, z)), total(hot)));
        trn_keep(z);
        trn_keep(hot);
        trn_step_end(s->c);
        say_tensor(s, z);
        say_tensor(s, hot);
        say_tensor(s, trn_grad_of(p));
        say_tensor(s, trn_grad_of(q));
        trn_zero_grad(p);
        trn_zero_grad(q);
    }
}

static void steps_have_equal_bits_in_all_ways(void **state)
{
    (void)state;
    tell(moved_about, 105);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(parts_stand_one_after_the_other),
        TRN_TEST(any_number_of_parts_is_joined),
        TRN_TEST(a_tensor_may_be_there_twice),
        TRN_TEST(nothing_happens_to_the_values),
        TRN_TEST(types_of_the_parts_are_promoted),
        TRN_TEST(stack_makes_an_axis),
        TRN_TEST(bad_parts_are_told_by_number),
        TRN_TEST(flip_turns_the_axes_of_its_mask),
        TRN_TEST(duplicates_add_up_in_the_order_of_the_indices),
        TRN_TEST(integers_are_selected_too),
        TRN_TEST(a_bad_index_is_told_as_it_was_given),
        TRN_TEST(decompositions_tell_the_same_position),
        TRN_TEST(nothing_to_select_from_is_an_index_error),
        TRN_TEST(wrong_arguments_are_refused),
        TRN_TEST(one_hot_has_the_type_that_is_asked_for),
        TRN_TEST(steps_have_equal_bits_in_all_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
