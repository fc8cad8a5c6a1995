/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors: data in and out, wrapped memory, references and steps, versions,
 * and memory that does not grow.
 */
#include <stdlib.h>

#include "harness.h"

static void data_is_written_and_read_back(void **state)
{
    trn_context *c = *state;
    const double data[6] = {1, 2, 3, 4, 5, 6};
    double back[6] = {0};
    trn_tensor *x = harness_f64(c, 2, (int64_t[]){2, 3}, data);
    assert_int_equal(trn_tensor_rank(x), 2);
    assert_int_equal(trn_tensor_dim(x, -1), 3);
    assert_int_equal(trn_tensor_dim(x, 2), 0);
    assert_int_equal(trn_tensor_stride(x, 0), 3);
    assert_int_equal(trn_tensor_numel(x), 6);
    assert_true(trn_tensor_is_contiguous(x));
    assert_ptr_equal(trn_tensor_context(x), c);
    assert_int_equal(trn_tensor_read(x, back, sizeof back), TRN_OK);
    assert_memory_equal(back, data, sizeof back);
    assert_int_equal(trn_tensor_write(x, back, sizeof back - 8), TRN_ERR_ARG);
    harness_error(c, TRN_ERR_ARG,
                  "40 bytes were given; expected 48 for "
                  "f64[2,3]");
    assert_int_equal(trn_tensor_read(x, NULL, sizeof back), TRN_ERR_ARG);
    harness_error(c, TRN_ERR_ARG, "data is NULL");
    assert_null(trn_tensor_from(c, TRN_F64, 1, (int64_t[]){3}, NULL));
    harness_error(c, TRN_ERR_ARG, "trn_tensor_from: data is NULL");
    assert_null(trn_tensor_from(c, (trn_dtype)77, 0, NULL, data));
    harness_error(c, TRN_ERR_DTYPE, "dtype is 77");
    assert_non_null(trn_tensor_from(c, TRN_F64, 1, (int64_t[]){0}, NULL));
}

static void strided_tensors_are_read_and_written_in_logical_order(void **state)
{
    trn_context *c = *state;
    const double data[6] = {1, 2, 3, 4, 5, 6}, news[2] = {20, 50};
    trn_tensor *x = harness_f64(c, 2, (int64_t[]){2, 3}, data);
    trn_tensor *t = trn_transpose(x, 0, 1);
    assert_false(trn_tensor_is_contiguous(t));
    harness_equal(t, 6, 1.0, 4.0, 2.0, 5.0, 3.0, 6.0);
    trn_tensor *column = trn_slice(x, 1, 1, 2, 1);
    trn_tensor_write(column, news, sizeof news);
    harness_ok(c);
    harness_equal(x, 6, 1.0, 20.0, 3.0, 4.0, 50.0, 6.0);
    const double *map = trn_tensor_map(t);
    assert_non_null(map);
    assert_true(map[1] == 4.0 && map[2] == 20.0);
    assert_null(trn_tensor_map(t));
    harness_error(c, TRN_ERR_STATE, "is mapped");
    trn_tensor_unmap(t);
    map = trn_tensor_map(x);
    assert_non_null(map);
    assert_true(map[1] == 20.0);
    trn_tensor_unmap(x);
    trn_tensor *wide = trn_expand(column, 2, (int64_t[]){2, 4});
    double eight[8] = {0};
    assert_int_not_equal(trn_tensor_write(wide, eight, sizeof eight), TRN_OK);
    harness_error(c, TRN_ERR_ARG, "share memory");
}

static int releases;
static void *released_data;

static void count_release(void *user, void *data)
{
    releases += user == &releases;
    released_data = data;
}

static void wrapped_memory_is_read_not_written_and_released_once(void **state)
{
    static const float data[4] = {1.0f, 2.0f, 3.0f, 4.0f};
    trn_context *c = *state;
    int64_t shape[2] = {2, 2};
    releases = 0;
    trn_step_begin(c);
    trn_tensor *x =
        trn_tensor_wrap(c, TRN_F32, 2, shape, data, count_release, &releases);
    trn_tensor *view = trn_keep(trn_transpose(x, 0, 1));
    harness_equal(trn_neg(x), 4, -1.0, -2.0, -3.0, -4.0);
    assert_int_equal(trn_tensor_write(x, data, sizeof data), TRN_ERR_STATE);
    harness_error(c, TRN_ERR_STATE, "wraps the caller's memory");
    trn_step_end(c);
    assert_int_equal(releases, 0);
    harness_equal(view, 4, 1.0, 3.0, 2.0, 4.0);
    trn_tensor_release(view);
    assert_int_equal(releases, 1);
    assert_ptr_equal(released_data, data);
    assert_null(trn_tensor_wrap(c, TRN_F32, 1, shape, (const char *)data + 1,
                                count_release, &releases));
    harness_error(c, TRN_ERR_ARG, "not aligned to 4 bytes");
    assert_null(
        trn_tensor_wrap(c, TRN_F32, 9, shape, data, count_release, &releases));
    harness_error(c, TRN_ERR_ARG, "rank is 9");
    assert_int_equal(releases, 1);
}

static void closing_releases_wrapped_memory(void **state)
{
    static const float data[1] = {1.0f};
    trn_context *c = harness_open(NULL, 1, TRN_ENGINE_POOL);
    (void)state;
    releases = 0;
    trn_tensor_wrap(c, TRN_F32, 0, NULL, data, count_release, &releases);
    harness_close(c);
    assert_int_equal(releases, 1);
}

static void keep_and_retain_outlive_the_step(void **state)
{
    trn_context *c = *state;
    trn_step_begin(c);
    trn_tensor *a = trn_keep(harness_vector(c, 1, 1.0));
    trn_tensor *b = trn_tensor_retain(harness_vector(c, 1, 2.0));
    trn_tensor *sum = trn_keep(trn_add(a, b));
    trn_step_end(c);
    trn_step_begin(c);
    harness_equal(a, 1, 1.0);
    harness_equal(b, 1, 2.0);
    harness_equal(sum, 1, 3.0);
    trn_step_end(c);
    trn_tensor_retain(a);
    trn_tensor_release(a);
    harness_equal(a, 1, 1.0);
    trn_tensor_release(a);
    trn_tensor_release(b);
    trn_tensor_release(NULL);
    assert_null(trn_keep(NULL));
    assert_null(trn_tensor_retain(NULL));
    harness_ok(c);
}

static void a_handle_that_outlived_its_step_is_reported(void **state)
{
#ifdef TRN_CHECK
    trn_context *c = *state;
    trn_step_begin(c);
    trn_tensor *x = harness_vector(c, 1, 1.0);
    trn_step_end(c);
    assert_null(trn_neg(x));
    harness_error(c, TRN_ERR_STALE, "neg: a tensor is used after its step");
    double v;
    assert_int_equal(trn_tensor_read(x, &v, sizeof v), TRN_ERR_STALE);
    harness_error(c, TRN_ERR_STALE, "trn_tensor_read");
#else
    (void)state;
    print_message("stale handles are found by check builds only (SAN=...)\n");
    skip();
#endif
}

static void versions_count_changes_of_shared_memory(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = harness_vector(c, 2, 1.0, 2.0);
    trn_tensor *view = trn_slice(x, 0, 0, 1, 1), *copy = trn_copy(x);
    uint64_t v = trn_tensor_version(x);
    double data[2] = {5, 6};
    trn_tensor_write(x, data, sizeof data);
    assert_int_equal(trn_tensor_version(x), v + 1);
    assert_int_equal(trn_tensor_version(view), v + 1);
    trn_assign(view, trn_slice(copy, 0, 1, 2, 1));
    assert_int_equal(trn_tensor_version(x), v + 2);
    assert_int_equal(trn_tensor_version(copy), 0);
    trn_neg(x);
    assert_int_equal(trn_tensor_version(x), v + 2);
    harness_ok(c);
}

static void describe_cuts_to_the_size_of_the_text(void **state)
{
    trn_context *c = *state;
    char text[64], small[6];
    trn_tensor *x = trn_tensor_zeros(c, TRN_BF16, 2, (int64_t[]){64, 784});
    assert_string_equal(trn_tensor_describe(x, text, sizeof text),
                        "bf16[64,784]");
    assert_string_equal(trn_tensor_describe(x, small, sizeof small), "bf16[");
    x = trn_tensor_scalar(c, TRN_F32, 2.5);
    assert_string_equal(trn_tensor_describe(x, text, sizeof text), "f32[]");
    assert_true(trn_tensor_item(x) == 2.5);
    trn_tensor_item(trn_tensor_zeros(c, TRN_F32, 1, (int64_t[]){2}));
    harness_error(c, TRN_ERR_SHAPE, "f32[2]");
}

static void questions_about_null_answer_zero(void **state)
{
    (void)state;
    assert_int_equal(trn_tensor_rank(NULL), 0);
    assert_int_equal(trn_tensor_dim(NULL, 0), 0);
    assert_int_equal(trn_tensor_numel(NULL), 0);
    assert_int_equal(trn_tensor_version(NULL), 0);
    assert_null(trn_tensor_context(NULL));
    assert_false(trn_requires_grad(NULL));
    assert_null(trn_grad_of(NULL));
}

/* One step of a small regression by hand. */
static void train_once(trn_context *c, trn_tensor *w, trn_tensor *b)
{
    trn_step_begin(c);
    trn_tensor *x =
        trn_normal(trn_generator_default(c), TRN_F32, 2, (int64_t[]){8, 5});
    trn_tensor *y = trn_add(trn_matmul(x, w), b);
    trn_tensor *p = trn_softmax(y, 1);
    trn_backward_with(trn_sum(p, TRN_ALL_AXES, false), NULL, true);
    trn_backward(trn_mean(trn_mul(trn_tanh(y), y), TRN_ALL_AXES, false));
    trn_no_grad_begin(c);
    trn_assign(w, trn_sub(w, trn_mul_scalar(trn_grad_of(w), 0.1)));
    trn_assign(b, trn_sub(b, trn_mul_scalar(trn_grad_of(b), 0.1)));
    trn_no_grad_end(c);
    trn_zero_grad(w);
    trn_zero_grad(b);
    assert_int_equal(trn_step_end(c), TRN_OK);
}

static void memory_is_the_same_at_steps_100_and_1000(void **state)
{
    trn_context *c = *state;
    trn_tensor *w = trn_full(c, TRN_F32, 2, (int64_t[]){5, 3}, 0.1);
    trn_tensor *b = trn_full(c, TRN_F32, 1, (int64_t[]){3}, 0.1);
    trn_memory_info early = TRN_MEMORY_INFO_INIT, late = TRN_MEMORY_INFO_INIT;
    trn_set_requires_grad(w, true);
    trn_set_requires_grad(b, true);
    for (int i = 1; i <= 1000; i++) {
        train_once(c, w, b);
        if (i == 100)
            trn_memory(c, &early);
    }
    trn_memory(c, &late);
    assert_int_equal(trn_step_index(c), 1000);
    assert_int_equal(early.bytes_in_use, late.bytes_in_use);
    assert_int_equal(early.blocks_in_use, late.blocks_in_use);
    assert_int_equal(early.bytes_peak, late.bytes_peak);
#ifndef TRN_CHECK /* those cache nothing */
    assert_int_equal(early.bytes_cached, late.bytes_cached);
    assert_int_equal(early.blocks_asked, late.blocks_asked);
#endif
    trn_memory_trim(c);
    trn_memory(c, &late);
    assert_int_equal(late.bytes_cached, 0);
}

/* The same without steps, where tensors are released by hand; 1000 rounds fill
 * the queue of freed tensors that check builds keep. */
static void memory_is_stable_outside_of_steps(void **state)
{
    trn_context *c = *state;
    trn_memory_info early = TRN_MEMORY_INFO_INIT, late = TRN_MEMORY_INFO_INIT;
    trn_tensor *x = harness_vector(c, 2, 1.0, 2.0);
    trn_set_requires_grad(x, true);
    for (int i = 1; i <= 1500; i++) {
        trn_tensor *y = trn_mul(x, x);
        trn_tensor *s = trn_sum(y, TRN_ALL_AXES, false);
        trn_backward(s);
        trn_tensor_release(y);
        trn_tensor_release(s);
        trn_no_grad_begin(c);
        trn_tensor *one = trn_full(c, TRN_F64, 0, NULL, 1.0);
        trn_assign(x, one);
        trn_tensor_release(one);
        trn_no_grad_end(c);
        trn_memory(c, i == 1000 ? &early : &late);
    }
    harness_ok(c);
    assert_int_equal(early.bytes_in_use, late.bytes_in_use);
    assert_int_equal(early.blocks_in_use, late.blocks_in_use);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(data_is_written_and_read_back),
        TRN_TEST(strided_tensors_are_read_and_written_in_logical_order),
        TRN_TEST(wrapped_memory_is_read_not_written_and_released_once),
        TRN_TEST(closing_releases_wrapped_memory),
        TRN_TEST(keep_and_retain_outlive_the_step),
        TRN_TEST(a_handle_that_outlived_its_step_is_reported),
        TRN_TEST(versions_count_changes_of_shared_memory),
        TRN_TEST(describe_cuts_to_the_size_of_the_text),
        TRN_TEST(questions_about_null_answer_zero),
        TRN_TEST(memory_is_the_same_at_steps_100_and_1000),
        TRN_TEST(memory_is_stable_outside_of_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
