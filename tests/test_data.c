/* SPDX-License-Identifier: Apache-2.0
 *
 * Loaders: order, batches, position under failing steps, memory, arguments.
 *
 * Sample i has the input {i, -i} and the target i, so that a batch shows which
 * samples it is made of.
 */
#include "harness.h"

enum { MAX_SAMPLES = 100 };

static trn_context *open_seed(uint64_t seed)
{
    trn_options o = TRN_OPTIONS_INIT;
    o.n_threads = 1;
    o.seed = seed;
    trn_context *c;
    assert_int_equal(trn_open(&c, &o), TRN_OK);
    return c;
}

static trn_loader *loader_of(trn_context *c, int64_t n, int64_t batch_size,
                             const trn_loader_options *options)
{
    float x[2 * MAX_SAMPLES];
    int32_t y[MAX_SAMPLES];
    for (int32_t i = 0; i < n; i++) {
        x[2 * i] = (float)i;
        x[2 * i + 1] = -(float)i;
        y[i] = i;
    }
    trn_tensor *in = trn_tensor_from(c, TRN_F32, 2, (int64_t[]){n, 2}, x);
    trn_tensor *out = trn_tensor_from(c, TRN_I32, 1, (int64_t[]){n}, y);
    trn_loader *l = trn_data_tensors(c, in, out, batch_size, options);
    trn_tensor_release(in);
    trn_tensor_release(out);
    return l;
}

/* Numbers of the samples of a batch, from both of its tensors. */
static void samples_of(const trn_batch *b, int32_t *samples)
{
    float x[2 * MAX_SAMPLES];
    size_t n = (size_t)b->size;
    assert_int_equal(trn_tensor_dim(b->inputs, 0), b->size);
    assert_int_equal(trn_tensor_read(b->inputs, x, 2 * n * sizeof *x), TRN_OK);
    assert_int_equal(trn_tensor_read(b->targets, samples, n * sizeof *samples),
                     TRN_OK);
    for (size_t i = 0; i < n; i++) {
        assert_true(x[2 * i] == (float)samples[i]);
        assert_true(x[2 * i + 1] == -(float)samples[i]);
    }
}

/* The samples of the rest of a pass, in order; returns how many. */
static int64_t read_pass(trn_loader *l, int32_t *samples)
{
    trn_batch b;
    int64_t n = 0;
    while (trn_data_next(l, &b)) {
        samples_of(&b, samples + n);
        n += b.size;
    }
    assert_null(b.inputs);
    return n;
}

static void check_next(trn_loader *l, int64_t epoch, int64_t index)
{
    trn_batch b;
    assert_int_equal(trn_data_next(l, &b), 1);
    assert_int_equal(b.epoch, epoch);
    assert_int_equal(b.index, index);
}

static void fail_step(trn_context *c)
{
    trn_tensor_zeros(c, TRN_F32, -1, NULL);
    assert_int_equal(trn_step_end(c), TRN_ERR_ARG);
    trn_clear(c);
}

/* ---- order ---- */

static void a_pass_has_each_sample_once_and_its_own_order(void **state)
{
    trn_loader *l = loader_of(*state, 23, 5, NULL);
    int32_t samples[3][MAX_SAMPLES];
    for (int epoch = 0; epoch < 3; epoch++) {
        bool seen[23] = {false};
        assert_int_equal(read_pass(l, samples[epoch]), 23);
        for (int i = 0; i < 23; i++) {
            assert_false(seen[samples[epoch][i]]);
            seen[samples[epoch][i]] = true;
        }
    }
    assert_memory_not_equal(samples[0], samples[1], 23 * 4);
    assert_memory_not_equal(samples[1], samples[2], 23 * 4);
}

static void seed_and_stream_alone_make_the_order(void **state)
{
    trn_context *others[] = {open_seed(0), open_seed(8)};
    int32_t a[MAX_SAMPLES], b[MAX_SAMPLES];
    trn_generator_new(others[0], 3);
    assert_int_equal(read_pass(loader_of(*state, 23, 5, NULL), a), 23);
    read_pass(loader_of(others[0], 23, 4, NULL), b);
    assert_memory_equal(a, b, 23 * 4);
    read_pass(loader_of(others[1], 23, 5, NULL), b);
    assert_memory_not_equal(a, b, 23 * 4);
    trn_loader_options o = TRN_LOADER_INIT;
    o.stream = 1;
    read_pass(loader_of(*state, 23, 5, &o), b);
    assert_memory_not_equal(a, b, 23 * 4);
    assert_int_equal(trn_close(others[0]), TRN_OK);
    assert_int_equal(trn_close(others[1]), TRN_OK);
}

static void without_shuffling_samples_come_as_they_are(void **state)
{
    trn_loader_options o = TRN_LOADER_INIT;
    int32_t samples[MAX_SAMPLES];
    o.shuffle = false;
    trn_loader *l = loader_of(*state, 7, 3, &o);
    for (int epoch = 0; epoch < 2; epoch++) {
        assert_int_equal(read_pass(l, samples), 7);
        for (int i = 0; i < 7; i++)
            assert_int_equal(samples[i], i);
    }
}

static void first_and_count_choose_samples(void **state)
{
    trn_loader_options o = TRN_LOADER_INIT;
    int32_t samples[MAX_SAMPLES];
    o.shuffle = false;
    o.first = 4;
    o.count = 3;
    trn_loader *l = loader_of(*state, 9, 2, &o);
    assert_int_equal(trn_data_samples(l), 3);
    assert_int_equal(read_pass(l, samples), 3);
    assert_memory_equal(samples, ((int32_t[]){4, 5, 6}), 12);
    o.count = -1;
    assert_int_equal(read_pass(loader_of(*state, 9, 2, &o), samples), 5);
    assert_memory_equal(samples, ((int32_t[]){4, 5, 6, 7, 8}), 20);
}

/* ---- batches ---- */

static void the_last_batch_is_smaller_or_left_out(void **state)
{
    trn_loader_options o = TRN_LOADER_INIT;
    trn_loader *l = loader_of(*state, 8, 3, NULL);
    trn_batch b;
    assert_int_equal(trn_data_batches(l), 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(trn_data_next(l, &b), 1);
        assert_int_equal(b.size, i < 2 ? 3 : 2);
        assert_int_equal(b.index, i);
    }
    assert_int_equal(trn_data_next(l, &b), 0);
    o.drop_last = true;
    l = loader_of(*state, 8, 3, &o);
    int32_t samples[MAX_SAMPLES];
    assert_int_equal(trn_data_batches(l), 2);
    assert_int_equal(read_pass(l, samples), 6);
    l = loader_of(*state, 8, 9, &o);
    assert_int_equal(trn_data_batches(l), 0);
    assert_int_equal(trn_data_next(l, &b), 0);
    l = loader_of(*state, 8, INT64_MAX, NULL);
    assert_int_equal(read_pass(l, samples), 8);
}

static void the_end_is_told_once_and_then_comes_the_next_pass(void **state)
{
    trn_loader *l = loader_of(*state, 4, 2, NULL);
    trn_batch b = {.size = 99};
    for (int epoch = 0; epoch < 4; epoch++) {
        check_next(l, epoch, 0);
        check_next(l, epoch, 1);
        b.size = 99;
        assert_int_equal(trn_data_next(l, &b), 0);
        assert_int_equal(b.size, 0);
    }
}

static void a_batch_lasts_until_the_second_next_call(void **state)
{
    trn_loader *l = loader_of(*state, 3, 5, NULL); /* one small batch a pass */
    trn_batch a, b;
    int32_t before[3], after[3];
    assert_int_equal(trn_data_next(l, &a), 1);
    samples_of(&a, before);
    assert_int_equal(trn_data_seek(l, 5, 0), TRN_OK);
    assert_int_equal(trn_data_next(l, &b), 1);
    samples_of(&a, after);
    assert_memory_equal(before, after, sizeof before);
}

static void held_batches_and_views_of_them_are_not_overwritten(void **state)
{
    trn_context *c = *state;
    trn_loader *l = loader_of(c, 40, 2, NULL);
    trn_batch b;
    float x[4], y[4];
    assert_int_equal(trn_data_next(l, &b), 1);
    trn_tensor *held = trn_tensor_retain(b.inputs);
    assert_int_equal(trn_tensor_read(held, x, sizeof x), TRN_OK);
    assert_int_equal(trn_data_next(l, &b), 1);
    trn_tensor *view = trn_reshape(b.inputs, 1, (int64_t[]){4});
    assert_int_equal(trn_tensor_read(view, y, sizeof y), TRN_OK);
    for (int i = 0; i < 10; i++)
        assert_int_equal(trn_data_next(l, &b), 1);
    float now[4];
    assert_int_equal(trn_tensor_read(held, now, sizeof now), TRN_OK);
    assert_memory_equal(now, x, sizeof x);
    assert_int_equal(trn_tensor_read(view, now, sizeof now), TRN_OK);
    assert_memory_equal(now, y, sizeof y);
    trn_tensor_release(held);
    trn_tensor_release(view);
}

static void what_a_user_does_to_a_batch_ends_with_it(void **state)
{
    trn_context *c = *state;
    trn_loader *l = loader_of(c, 40, 2, NULL);
    trn_batch b;
    for (int i = 0; i < 8; i++) {
        int32_t samples[2];
        assert_int_equal(trn_step_begin(c), TRN_OK);
        assert_int_equal(trn_data_next(l, &b), 1);
        samples_of(&b, samples);
        assert_false(trn_requires_grad(b.inputs));
        trn_set_requires_grad(b.inputs, true);
        trn_tensor_map(b.targets);
        assert_int_equal(trn_step_end(c), TRN_OK);
    }
}

static void any_type_and_empty_samples_are_loaded(void **state)
{
    trn_context *c = *state;
    static const uint16_t halves[4] = {0x3f80, 0x4000, 0x7fc1, 0xffff};
    trn_loader_options o = TRN_LOADER_INIT;
    trn_batch b;
    uint16_t got[2];
    o.shuffle = false;
    trn_loader *l = trn_data_tensors(
        c, trn_tensor_from(c, TRN_BF16, 1, (int64_t[]){4}, halves),
        trn_tensor_zeros(c, TRN_F32, 2, (int64_t[]){4, 0}), 2, &o);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(trn_data_next(l, &b), 1);
        assert_int_equal(trn_tensor_read(b.inputs, got, sizeof got), TRN_OK);
        assert_memory_equal(got, halves + 2 * i, sizeof got);
        assert_int_equal(trn_tensor_dim(b.targets, 1), 0);
    }
    l = trn_data_tensors(c, trn_tensor_zeros(c, TRN_F32, 2, (int64_t[]){0, 3}),
                         trn_tensor_zeros(c, TRN_I32, 1, (int64_t[]){0}), 2,
                         NULL);
    assert_int_equal(trn_data_batches(l), 0);
    assert_int_equal(trn_data_next(l, &b), 0);
    assert_int_equal(trn_errcode(c), TRN_OK);
}

/* ---- position ---- */

static void a_pending_error_gives_no_batch_and_moves_nothing(void **state)
{
    trn_context *c = *state;
    trn_loader *l = loader_of(c, 8, 3, NULL);
    trn_batch b = {.size = 99};
    check_next(l, 0, 0);
    trn_tensor_zeros(c, TRN_F32, -1, NULL);
    assert_int_equal(trn_data_next(l, &b), 0);
    assert_null(b.inputs);
    assert_int_equal(b.size, 0);
    assert_int_equal(trn_data_seek(l, 3, 0), TRN_ERR_ARG);
    trn_clear(c);
    check_next(l, 0, 1);
    assert_int_equal(trn_data_next(l, NULL), 0);
    harness_error(c, TRN_ERR_ARG, "out is NULL");
    check_next(l, 0, 2);
    assert_int_equal(trn_data_next(NULL, &b), 0);
}

static void a_failing_step_hands_its_batch_out_again(void **state)
{
    trn_context *c = *state;
    trn_loader *l = loader_of(c, 8, 3, NULL);
    trn_batch b;
    int32_t first[3] = {0}, again[3] = {0};
    check_next(l, 0, 0);
    assert_int_equal(trn_step_begin(c), TRN_OK);
    assert_int_equal(trn_step_end(c), TRN_OK);
    assert_int_equal(trn_data_next(l, &b), 1);
    samples_of(&b, first);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(trn_step_begin(c), TRN_OK);
        fail_step(c);
        assert_int_equal(trn_data_next(l, &b), 1);
        assert_int_equal(b.index, 1);
        samples_of(&b, again);
        assert_memory_equal(first, again, sizeof first);
    }
    assert_int_equal(trn_step_begin(c), TRN_OK);
    assert_int_equal(trn_step_end(c), TRN_OK);
    check_next(l, 0, 2);
}

static void all_batches_asked_for_in_a_failing_step_come_again(void **state)
{
    trn_context *c = *state;
    trn_loader *l = loader_of(c, 8, 3, NULL);
    trn_batch b;
    int32_t first[3] = {0}, again[3] = {0};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(trn_step_begin(c), TRN_OK);
        assert_int_equal(trn_data_next(l, &b), 1);
        samples_of(&b, i == 0 ? first : again);
        check_next(l, 0, 1);
        check_next(l, 0, 2);
        assert_int_equal(trn_data_next(l, &b), 0);
        check_next(l, 1, 0); /* the order of pass 0 must be made again */
        if (i == 0)
            fail_step(c);
        else
            assert_int_equal(trn_step_end(c), TRN_OK);
    }
    assert_memory_equal(first, again, sizeof first);
    check_next(l, 1, 1);
}

static void a_finished_pass_is_not_touched_by_later_steps(void **state)
{
    trn_context *c = *state;
    trn_loader *l = loader_of(c, 4, 2, NULL);
    int32_t samples[MAX_SAMPLES];
    read_pass(l, samples); /* as an evaluation does, without steps */
    assert_int_equal(trn_step_begin(c), TRN_OK);
    fail_step(c);
    check_next(l, 1, 0);
}

static void seek_goes_to_any_batch_of_any_pass(void **state)
{
    trn_context *c = *state;
    trn_loader *l = loader_of(c, 8, 3, NULL);
    int32_t samples[4][MAX_SAMPLES], again[MAX_SAMPLES];
    trn_batch b;
    for (int epoch = 0; epoch < 4; epoch++)
        read_pass(l, samples[epoch]);
    for (int epoch = 3; epoch >= 0; epoch--) {
        assert_int_equal(trn_data_seek(l, epoch, 1), TRN_OK);
        assert_int_equal(read_pass(l, again), 5);
        assert_memory_equal(samples[epoch] + 3, again, 5 * 4);
    }
    assert_int_equal(trn_data_seek(l, 2, 3), TRN_OK);
    assert_int_equal(trn_data_next(l, &b), 0);
    check_next(l, 3, 0);
    assert_int_equal(trn_data_seek(l, 6, 2), TRN_OK);
    assert_int_equal(trn_step_begin(c), TRN_OK);
    fail_step(c);
    check_next(l, 6, 2);
}

static void seek_refuses_what_is_not_there(void **state)
{
    trn_context *c = *state;
    trn_loader *l = loader_of(c, 8, 3, NULL);
    static const int64_t bad[][2] = {
        {-1, 0}, {0, -1}, {0, 4}, {INT64_MAX, 0}, {INT64_MAX / 4, 4},
    };
    check_next(l, 0, 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(trn_data_seek(l, bad[i][0], bad[i][1]), TRN_ERR_ARG);
        harness_error(c, TRN_ERR_ARG, "trn_data_seek: epoch is ");
    }
    check_next(l, 0, 1);
    assert_int_equal(trn_data_seek(NULL, 0, 0), TRN_ERR_ARG);
}

/* ---- memory ---- */

static void a_thousand_batches_take_no_memory(void **state)
{
    trn_context *c = *state;
    trn_loader *l = loader_of(c, 50, 7, NULL);
    trn_memory_info before = TRN_MEMORY_INFO_INIT, after = before;
    trn_batch b;
    for (int i = -30; i < 1000; i++) {
        if (i == 0) /* the first steps' own blocks are in the cache by now */
            assert_int_equal(trn_memory(c, &before), TRN_OK);
        bool step = i % 3 == 0;
        if (step)
            trn_step_begin(c);
        trn_data_next(l, &b);
        if (step)
            assert_int_equal(trn_step_end(c), TRN_OK);
    }
    assert_int_equal(trn_memory(c, &after), TRN_OK);
    assert_int_equal(after.bytes_in_use, before.bytes_in_use);
    assert_int_equal(after.blocks_in_use, before.blocks_in_use);
#ifndef TRN_CHECK /* which gives every block back at once */
    assert_int_equal(after.blocks_asked, before.blocks_asked);
#endif
    assert_int_equal(after.bytes_peak, before.bytes_peak);
}

static void every_allocation_may_fail(void **state)
{
    trn_context *c = *state;
    trn_loader_options o = TRN_LOADER_INIT;
    o.first = 1;
    int n_failed = 0;
    for (int64_t k = 0;; k++) {
        trn_tensor *x = trn_tensor_zeros(c, TRN_F32, 1, (int64_t[]){11});
        trn_memory_trim(c);
        harness_fail_after(k);
        trn_loader *l = trn_data_tensors(c, x, x, 3, &o);
        trn_text *t = trn_text_from(c, "some text", 9, NULL);
        trn_loader *m = trn_data_text(c, t, 2, 4, NULL);
        harness_fail_after(-1);
        if (trn_errcode(c) == TRN_OK) {
            trn_batch b;
            assert_int_equal(trn_data_next(l, &b), 1);
            assert_int_equal(trn_data_next(m, &b), 1);
            break;
        }
        harness_error(c, TRN_ERR_NOMEM, "out of memory");
        assert_true(l == NULL || t == NULL || m == NULL);
        n_failed++;
    }
    assert_true(n_failed > 20);
}

/* ---- bad arguments ---- */

static void bad_arguments_are_named(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = trn_tensor_zeros(c, TRN_F32, 2, (int64_t[]){5, 2});
    trn_tensor *y = trn_tensor_zeros(c, TRN_I32, 1, (int64_t[]){4});
    trn_loader_options o = TRN_LOADER_INIT;
    assert_null(trn_data_tensors(c, x, x, 0, NULL));
    harness_error(c, TRN_ERR_ARG, "batch_size is 0; expected 1 or more");
    assert_null(trn_data_tensors(c, x, NULL, 1, NULL));
    harness_error(c, TRN_ERR_ARG, "targets is NULL");
    assert_null(trn_data_tensors(c, x, y, 1, NULL));
    harness_error(c, TRN_ERR_SHAPE, "inputs are f32[5,2], targets are i32[4]");
    assert_null(
        trn_data_tensors(c, x, trn_tensor_scalar(c, TRN_F32, 0), 1, NULL));
    harness_error(c, TRN_ERR_SHAPE, "along the first axis");
    o.size = 4;
    assert_null(trn_data_tensors(c, x, x, 1, &o));
    harness_error(c, TRN_ERR_ARG, "options.size is 4");
    o = (trn_loader_options)TRN_LOADER_INIT;
    o.first = 6;
    assert_null(trn_data_tensors(c, x, x, 1, &o));
    harness_error(c, TRN_ERR_ARG, "options.first is 6; expected 0 to 5");
    o.first = 2;
    for (int i = 0; i < 3; i++) {
        o.count = (int64_t[]){4, -2, INT64_MAX}[i];
        assert_null(trn_data_tensors(c, x, x, 1, &o));
        harness_error(c, TRN_ERR_ARG, "expected 0 to 3 from sample 2 of 5");
    }
    assert_null(trn_data_tensors(NULL, x, x, 1, NULL));
    assert_int_equal(trn_data_samples(NULL), 0);
    assert_int_equal(trn_data_batches(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(a_pass_has_each_sample_once_and_its_own_order),
        TRN_TEST(seed_and_stream_alone_make_the_order),
        TRN_TEST(without_shuffling_samples_come_as_they_are),
        TRN_TEST(first_and_count_choose_samples),
        TRN_TEST(the_last_batch_is_smaller_or_left_out),
        TRN_TEST(the_end_is_told_once_and_then_comes_the_next_pass),
        TRN_TEST(a_batch_lasts_until_the_second_next_call),
        TRN_TEST(held_batches_and_views_of_them_are_not_overwritten),
        TRN_TEST(what_a_user_does_to_a_batch_ends_with_it),
        TRN_TEST(any_type_and_empty_samples_are_loaded),
        TRN_TEST(a_pending_error_gives_no_batch_and_moves_nothing),
        TRN_TEST(a_failing_step_hands_its_batch_out_again),
        TRN_TEST(all_batches_asked_for_in_a_failing_step_come_again),
        TRN_TEST(a_finished_pass_is_not_touched_by_later_steps),
        TRN_TEST(seek_goes_to_any_batch_of_any_pass),
        TRN_TEST(seek_refuses_what_is_not_there),
        TRN_TEST(a_thousand_batches_take_no_memory),
        TRN_TEST(every_allocation_may_fail),
        TRN_TEST(bad_arguments_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
