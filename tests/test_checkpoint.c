/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints: what is saved comes back, bit by bit, and a run goes on as if it
 * had not ended.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "checkpoint_help.h"

#define SKIP_WITHOUT_HDF5       \
    (void)state;                \
    if (!checkpoint_possible()) \
    skip()

/* ---- going on ---- */

enum {
    N_STEPS = 17,
    BREAK = 7,
    SAMPLES = 22,
    BATCH = 5
}; /* 5 batches a pass */

static void train(captured_net *m, int from, int to, double *losses)
{
    for (int i = from; i < to; i++) {
        CHECK(captured_train(m), "%s\n", trn_errmsg(m->c));
        losses[i] = trn_step_loss(m->c);
    }
}

static void run_whole(double *losses, char digest[65])
{
    trn_context *c = captured_open(EAGER, NULL);
    captured_net m = captured_build(c, SAMPLES, BATCH);
    train(&m, 0, N_STEPS, losses);
    captured_digest(m.net, digest);
    captured_close(c);
}

static void a_run_goes_on_with_the_same_bits_on_every_way(void **state)
{
    SKIP_WITHOUT_HDF5;
    double whole[N_STEPS], parts[N_STEPS];
    char expected[65], digest[65];
    const char *path = checkpoint_path("run.h5");
    run_whole(whole, expected);
    for (int first = 0; first < N_WAYS; first++) {
        for (int then = 0; then < N_WAYS; then++) {
            trn_context *c = captured_open(first, NULL);
            captured_net m = captured_build(c, SAMPLES, BATCH);
            train(&m, 0, BREAK, parts);
            assert_int_equal(trn_checkpoint_save(checkpoint_of(&m), path), 0);
            captured_close(c);

            c = captured_open(then, NULL);
            m = captured_build(c, SAMPLES, BATCH);
            CHECK(trn_checkpoint_load(checkpoint_of(&m), path) == TRN_OK,
                  "%s\n", trn_errmsg(c));
            assert_int_equal(trn_step_index(c), BREAK);
            assert_int_equal(trn_optim_steps(m.optim), BREAK);
            train(&m, BREAK, N_STEPS, parts);
            assert_string_equal(captured_digest(m.net, digest), expected);
            assert_memory_equal(whole, parts, sizeof whole);
            captured_close(c);
        }
    }
}

static void a_running_program_goes_back_to_its_checkpoint(void **state)
{
    SKIP_WITHOUT_HDF5;
    const char *path = checkpoint_path("back.h5");
    ON_EACH_WAY(c)
    {
        double first[N_STEPS], again[N_STEPS];
        captured_net m = captured_build(c, SAMPLES, BATCH);
        trn_checkpoint *k = checkpoint_of(&m);
        train(&m, 0, BREAK, first);
        trn_checkpoint_save(k, path);
        uint64_t then = captured_state(&m);
        train(&m, BREAK, N_STEPS, first);
        trn_checkpoint_load(k, path);
        harness_ok(c);
        assert_true(captured_state(&m) == then);
        train(&m, BREAK, N_STEPS, again);
        assert_memory_equal(first + BREAK, again + BREAK,
                            (N_STEPS - BREAK) * sizeof first[0]);
    }
}

static void the_same_state_is_the_same_file_on_every_way(void **state)
{
    SKIP_WITHOUT_HDF5;
    double losses[N_STEPS];
    char *bytes[N_WAYS];
    size_t n[N_WAYS];
    ON_EACH_WAY(c)
    {
        const char *path = checkpoint_path("same.h5");
        captured_net m = captured_build(c, SAMPLES, BATCH);
        trn_checkpoint *k = checkpoint_of(&m);
        trn_checkpoint_set_text(k, "note", "for all of them");
        train(&m, 0, BREAK, losses);
        trn_checkpoint_save(k, path);
        harness_ok(c);
        bytes[way] = checkpoint_bytes(path, &n[way]);
    }
    for (int way = 1; way < N_WAYS; way++) {
        assert_int_equal(n[way], n[0]);
        assert_memory_equal(bytes[way], bytes[0], n[0]);
    }
    for (int way = 0; way < N_WAYS; way++)
        free(bytes[way]);
}

/* ---- tensors ---- */

static void every_type_and_every_bit_pattern_comes_back(void **state)
{
    SKIP_WITHOUT_HDF5;
    static const trn_dtype types[] = {TRN_F64, TRN_F32, TRN_BF16,
                                      TRN_F16, TRN_I64, TRN_I32,
                                      TRN_U32, TRN_U8,  TRN_BOOL};
    enum { N_TYPES = sizeof types / sizeof types[0], N = 4096 };
    static uint64_t in[N], out[N];
    trn_context *c = *state;
    const char *path = checkpoint_path("types.h5");
    trn_checkpoint *k = trn_checkpoint_new(c);
    trn_tensor *t[N_TYPES];
    for (int i = 0; i < N_TYPES; i++) {
        uint64_t random = (uint64_t)i;
        for (int j = 0; j < N; j++) /* NaNs of all kinds are among them */
            in[j] = types[i] == TRN_BOOL ? 0x0100010001000101
                                         : harness_random(&random);
        t[i] = trn_tensor_from(c, types[i], 2, (int64_t[]){N / 64, 64}, in);
        harness_ok(c);
        trn_checkpoint_tensor(k, trn_dtype_name(types[i]), t[i]);
    }
    trn_checkpoint_save(k, path);
    harness_ok(c);
    memset(out, 0, sizeof out);
    for (int i = 0; i < N_TYPES; i++)
        trn_tensor_write(t[i], out, N * trn_dtype_size(types[i]));
    trn_checkpoint_load(k, path);
    harness_ok(c);
    for (int i = 0; i < N_TYPES; i++) {
        uint64_t random = (uint64_t)i;
        for (int j = 0; j < N; j++)
            in[j] = types[i] == TRN_BOOL ? 0x0100010001000101
                                         : harness_random(&random);
        size_t bytes = N * trn_dtype_size(types[i]);
        trn_tensor_read(t[i], out, bytes);
        assert_memory_equal(in, out, bytes);
    }
}

static void every_rank_and_empty_tensors_come_back(void **state)
{
    SKIP_WITHOUT_HDF5;
    trn_context *c = *state;
    const char *path = checkpoint_path("ranks.h5");
    static const int64_t shape[8] = {2, 1, 3, 1, 2, 1, 1, 2};
    static const int64_t empty[3] = {4, 0, 5};
    trn_checkpoint *k = trn_checkpoint_new(c);
    trn_tensor *t[9];
    char name[24];
    for (int rank = 0; rank <= 8; rank++) {
        t[rank] = trn_full(c, TRN_F32, rank, shape, rank + 0.5);
        snprintf(name, sizeof name, "r%d", rank);
        trn_checkpoint_tensor(k, name, t[rank]);
    }
    trn_checkpoint_tensor(k, "empty", trn_tensor_zeros(c, TRN_BF16, 3, empty));
    trn_checkpoint_tensor(k, "none",
                          trn_tensor_zeros(c, TRN_I64, 1, empty + 1));
    trn_checkpoint_save(k, path);
    for (int rank = 0; rank <= 8; rank++)
        trn_assign(t[rank], trn_full(c, TRN_F32, rank, shape, -1.0));
    trn_checkpoint_load(k, path);
    harness_ok(c);
    for (int rank = 0; rank <= 8; rank++) {
        for (int64_t i = 0; i < trn_tensor_numel(t[rank]); i++)
            assert_true(harness_at(t[rank], i) == (long double)rank + 0.5L);
    }
}

static void the_list_holds_its_tensors(void **state)
{
    SKIP_WITHOUT_HDF5;
    ON_EACH_WAY(c)
    {
        const char *path = checkpoint_path("held.h5");
        trn_checkpoint *k = trn_checkpoint_new(c);
        trn_tensor *outside = trn_full(c, TRN_F32, 0, NULL, 1.0);
        trn_checkpoint_tensor(k, "outside", outside);
        trn_step_begin(c);
        trn_tensor *inside = trn_add_scalar(outside, 1.0);
        trn_checkpoint_tensor(k, "inside", inside);
        trn_step_end(c);
        trn_tensor_release(outside);
        trn_checkpoint_save(k, path);
        trn_assign(inside, trn_full(c, TRN_F32, 0, NULL, 0.0));
        trn_checkpoint_load(k, path);
        harness_ok(c);
        assert_true(trn_tensor_item(inside) == 2.0);
        assert_true(trn_tensor_item(outside) == 1.0);
    }
}

/* ---- names and texts ---- */

static const char *const odd_names[] = {
    "a/b",
    ".",
    "..",
    "%",
    "%2F",
    "a%2Fb",
    " ",
    "\n",
    "\x80\xFF",
    "\xC3\xA4",
    "\xED\xA0\x80",
    "/",
    "//",
    "a\\b",
    "\x7F",
    "context",
    "0.w",
    "e\xCC\x81",
    "\xF0\x9F\x90\x8C",
};

static void any_name_can_be_had_and_none_is_taken_for_another(void **state)
{
    SKIP_WITHOUT_HDF5;
    enum { N_NAMES = sizeof odd_names / sizeof odd_names[0] };
    trn_context *c = *state;
    const char *path = checkpoint_path("names.h5");
    trn_checkpoint *k = trn_checkpoint_new(c);
    trn_module *m = trn_nn_linear(c, 2, 2);
    trn_tensor *t[N_NAMES + 1];
    static char name[5001];
    memset(name, 'n', 5000);
    for (int i = 0; i <= N_NAMES; i++) {
        const char *own = i == N_NAMES ? name : odd_names[i];
        t[i] = trn_full(c, TRN_F64, 0, NULL, i);
        trn_checkpoint_tensor(k, own, t[i]);
        trn_checkpoint_set_text(k, own, own[0] == '\x80' ? "high" : "text");
        if (strchr(own, '.') == NULL && i < N_NAMES)
            trn_nn_add_parameter(m, own, trn_full(c, TRN_F32, 0, NULL, i));
    }
    trn_checkpoint_module(k, "..", m);
    trn_checkpoint_save(k, path);
    harness_ok(c);
    for (int i = 0; i <= N_NAMES; i++)
        trn_assign(t[i], trn_full(c, TRN_F64, 0, NULL, -1.0));
    trn_checkpoint_set_text(k, "%", NULL);
    trn_checkpoint_set_text(k, "other", "is not in the file");
    trn_checkpoint_load(k, path);
    harness_ok(c);
    for (int i = 0; i <= N_NAMES; i++)
        assert_true(trn_tensor_item(t[i]) == i);
    for (int i = 0; i < N_NAMES; i++)
        assert_string_equal(trn_checkpoint_text(k, odd_names[i]),
                            odd_names[i][0] == '\x80' ? "high" : "text");
    assert_string_equal(trn_checkpoint_text(k, name), "text");
    assert_null(trn_checkpoint_text(k, "other"));
}

static void texts_come_back(void **state)
{
    SKIP_WITHOUT_HDF5;
    trn_context *c = *state;
    const char *path = checkpoint_path("texts.h5");
    trn_checkpoint *k = trn_checkpoint_new(c), *other = trn_checkpoint_new(c);
    static char large[100001];
    memset(large, 'x', 100000);
    trn_checkpoint_set_text(k, "large", large);
    trn_checkpoint_set_text(k, "empty", "");
    trn_checkpoint_set_text(k, "twice", "first");
    trn_checkpoint_set_text(k, "twice", "second");
    trn_checkpoint_save(k, path);
    trn_checkpoint_load(other, path);
    harness_ok(c);
    assert_string_equal(trn_checkpoint_text(other, "large"), large);
    assert_string_equal(trn_checkpoint_text(other, "empty"), "");
    assert_string_equal(trn_checkpoint_text(other, "twice"), "second");
    assert_null(trn_checkpoint_text(other, "third"));
    trn_checkpoint_set_text(k, "bad", "\xFF");
    harness_error(c, TRN_ERR_ARG, "not UTF-8");
    trn_checkpoint_set_text(k, "", "text");
    harness_error(c, TRN_ERR_ARG, "the key is \"\"");
}

/* ---- several threads ---- */

static void *save_and_load_often(void *user)
{
    const char *path = user;
    trn_context *c;
    trn_options o = TRN_OPTIONS_INIT;
    intptr_t bad = 0;
    o.n_threads = 1;
    trn_open(&c, &o);
    trn_tensor *t = trn_full(c, TRN_F32, 1, (int64_t[]){5000}, 1.0);
    trn_checkpoint *k = trn_checkpoint_new(c);
    trn_checkpoint_tensor(k, "t", t);
    for (int i = 0; i < 20; i++) {
        trn_checkpoint_save(k, path);
        trn_checkpoint_load(k, path);
        bad += trn_errcode(c) != TRN_OK;
        if (bad == 1)
            print_error("%s\n", trn_errmsg(c));
    }
    trn_clear(c);
    trn_close(c);
    return (void *)bad;
}

/* Also where all of them write one file: a process locks nothing against its
 * own threads. */
static void several_threads_save_and_load_at_once(void **state)
{
    SKIP_WITHOUT_HDF5;
    enum { N_THREADS = 4 };
    char path[N_THREADS][400];
    pthread_t thread[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        snprintf(path[i], sizeof path[i], "%s",
                 checkpoint_path(i == 0 ? "own.h5" : "shared.h5"));
        assert_int_equal(
            pthread_create(&thread[i], NULL, save_and_load_often, path[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        void *bad;
        pthread_join(thread[i], &bad);
        assert_null(bad);
    }
}

static void gradients_are_not_part_of_it_which_saving_says(void **state)
{
    SKIP_WITHOUT_HDF5;
    trn_context *c = *state;
    const char *path = checkpoint_path("gradients.h5");
    trn_module *m = trn_nn_linear(c, 2, 2);
    trn_tensor *weight = trn_nn_parameter(m, "weight");
    trn_checkpoint *k = trn_checkpoint_new(c);
    trn_checkpoint_module(k, "m", m);
    trn_checkpoint_save(k, path);
    assert_null(strstr(harness_log(), "gradients"));
    trn_backward(trn_sum(weight, TRN_ALL_AXES, false));
    trn_checkpoint_save(k, path);
    harness_ok(c);
    assert_non_null(strstr(harness_log(), "1 tensors have gradients"));
    assert_non_null(trn_grad_of(weight));
    trn_checkpoint_load(k, path);
    harness_ok(c);
    assert_null(trn_grad_of(weight));
}

/* ---- what the calls refuse ---- */

static void wrong_arguments_are_refused(void **state)
{
    trn_context *c = *state, *c2 = harness_open(NULL, 1, TRN_ENGINE_AUTO);
    trn_checkpoint *k = trn_checkpoint_new(c);
    trn_module *m = trn_nn_linear(c, 2, 2);
    assert_int_equal(trn_checkpoint_module(NULL, "m", m), TRN_ERR_ARG);
    trn_checkpoint_module(k, "m", NULL);
    harness_error(c, TRN_ERR_ARG, "\"m\" is NULL");
    trn_checkpoint_module(k, "m", trn_nn_linear(c2, 2, 2));
    harness_error(c, TRN_ERR_ARG, "another context's");
    trn_checkpoint_module(k, "", m);
    harness_error(c, TRN_ERR_ARG, "the name is \"\"");
    trn_checkpoint_module(k, NULL, m);
    harness_error(c, TRN_ERR_ARG, "the name is NULL");
    trn_checkpoint_module(k, "m", m);
    trn_checkpoint_module(k, "m", m);
    harness_error(c, TRN_ERR_ARG, "\"m\" is taken");
    trn_tensor *t = trn_tensor_zeros(c, TRN_F32, 2, (int64_t[]){2, 3});
    trn_checkpoint_tensor(k, "t", trn_transpose(t, 0, 1));
    harness_error(c, TRN_ERR_ARG, "strided");
    trn_checkpoint_save(k, NULL);
    harness_error(c, TRN_ERR_ARG, "the path is NULL");
    trn_checkpoint_load(k, "");
    harness_error(c, TRN_ERR_ARG, "the path is \"\"");
    harness_close(c2);
}

static void inside_a_step_nothing_is_saved_or_loaded(void **state)
{
    trn_context *c = *state;
    trn_checkpoint *k = trn_checkpoint_new(c);
    trn_step_begin(c);
    trn_checkpoint_save(k, checkpoint_path("step.h5"));
    harness_error(c, TRN_ERR_STATE, "a step is open");
    trn_checkpoint_load(k, checkpoint_path("step.h5"));
    harness_error(c, TRN_ERR_STATE, "a step is open");
    trn_step_end(c);
    assert_int_equal(checkpoint_files(), 0);
}

#ifndef TRN_HAVE_HDF5
static void a_build_without_hdf5_says_what_it_lacks(void **state)
{
    trn_context *c = *state;
    trn_checkpoint *k = trn_checkpoint_new(c);
    trn_checkpoint_save(k, checkpoint_path("none.h5"));
    harness_error(c, TRN_ERR_UNSUPPORTED, "no HDF5");
    assert_int_equal(checkpoint_files(), 0);
}
#endif

int main(void)
{
    checkpoint_folder();
    const struct CMUnitTest tests[] = {
        TRN_TEST(inside_a_step_nothing_is_saved_or_loaded),
        cmocka_unit_test(a_run_goes_on_with_the_same_bits_on_every_way),
        cmocka_unit_test(a_running_program_goes_back_to_its_checkpoint),
        cmocka_unit_test(the_same_state_is_the_same_file_on_every_way),
        TRN_TEST(every_type_and_every_bit_pattern_comes_back),
        TRN_TEST(every_rank_and_empty_tensors_come_back),
        cmocka_unit_test(the_list_holds_its_tensors),
        TRN_TEST(any_name_can_be_had_and_none_is_taken_for_another),
        TRN_TEST(texts_come_back),
        cmocka_unit_test(several_threads_save_and_load_at_once),
        TRN_TEST(gradients_are_not_part_of_it_which_saving_says),
        TRN_TEST(wrong_arguments_are_refused),
#ifndef TRN_HAVE_HDF5
        TRN_TEST(a_build_without_hdf5_says_what_it_lacks),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
