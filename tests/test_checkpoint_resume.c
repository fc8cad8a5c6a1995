/* SPDX-License-Identifier: Apache-2.0
 *
 * A run that is stopped and goes on at moments of every kind, each time with
 * other threads, another engine, another instruction set or another way to run
 * steps, has the bits of a run in one go; so have the files on the way.
 */
#include <stdio.h>
#include <stdlib.h>

#include "checkpoint_help.h"
#include "training.h"

#ifdef TRN_HAVE_HDF5

/* ---- what is trained, where it stops ---- */

enum { PASS = TRAINING_BATCHES, N_STEPS = 3 * PASS + 9, MOST_STOPS = 10 };

typedef struct model {
    const char *name;
    trn_dtype dtype;
    bool sgd;
    int parts;
} model;

static const model models[] = {
    {"f32, AdamW", TRN_F32, false, 1},
    {"f32, SGD with momentum", TRN_F32, true, 1},
    {"f32, AdamW, 3 batches an update", TRN_F32, false, 3},
    {"f64, AdamW", TRN_F64, false, 1},
    {"f64, SGD with momentum, 3 batches an update", TRN_F64, true, 3},
    {"bf16, AdamW", TRN_BF16, false, 1},
    {"bf16, SGD with momentum", TRN_BF16, true, 1},
};
enum { N_MODELS = sizeof models / sizeof models[0] };

/* Before the first step, after it, in the middle of a pass, at its end, right
 * after that, at the end of a later one; what several batches allow of it. */
static const int stops_of_1[] = {0, 1, 5, PASS, PASS + 1, 20, 2 * PASS, 40};
static const int stops_of_3[] = {0, 3, 15, 18, 33, 3 * PASS, 3 * PASS + 3};

typedef struct stops {
    const int *at;
    int n;
} stops;

static stops stops_of(const model *m)
{
    if (m->parts == 3)
        return (stops){stops_of_3, sizeof stops_of_3 / sizeof(int)};
    return (stops){stops_of_1, sizeof stops_of_1 / sizeof(int)};
}

/* ---- how ---- */

static const training_plan settings[] = {
    {.way = EAGER, .n_threads = 1, .isa = "generic"},
    {.way = EAGER, .n_threads = 2, .engine = TRN_ENGINE_POOL, .isa = "avx2"},
    {.way = EAGER, .n_threads = 7, .engine = TRN_ENGINE_OPENMP, .isa = "avx2"},
    {.way = CAPTURED, .n_threads = 3, .engine = TRN_ENGINE_POOL},
    {.way = CAPTURED, .n_threads = 2, .engine = TRN_ENGINE_OPENMP},
    {.way = CAPTURED, .n_threads = 7, .isa = "generic"},
    {.way = LOOP, .n_threads = 1, .isa = "avx2"},
    {.way = LOOP, .n_threads = 3, .engine = TRN_ENGINE_POOL, .isa = "generic"},
};
enum { N_SETTINGS = sizeof settings / sizeof settings[0] };

static bool possible[N_SETTINGS];

/* Which settings this build and this machine have. */
static int find_settings(void)
{
    int n = 0;
    for (int i = 0; i < N_SETTINGS; i++) {
        trn_options o = captured_options(settings[i].way, NULL);
        trn_context *c;
        o.cpu_isa = settings[i].isa;
        o.engine = settings[i].engine;
        possible[i] = trn_open(&c, &o) == TRN_OK;
        n += possible[i];
        if (!possible[i])
            print_message("without setting %d: %s\n", i, trn_errmsg(c));
        trn_close(c);
    }
    return n;
}

/* A device has to store what the model has. */
static bool fits(int setting, const model *m)
{
    return possible[setting] &&
           (settings[setting].way != LOOP || m->dtype == TRN_F32);
}

static training begin(int setting, const model *m)
{
    training_plan p = settings[setting];
    p.dtype = m->dtype;
    p.sgd = m->sgd;
    p.parts = m->parts;
    return training_begin(&p);
}

static void must(bool good, training *t)
{
    CHECK(good, "%s\n", trn_errmsg(t->c));
}

/* ---- the run in one go ---- */

typedef struct whole {
    char digest[65];
    char *file[MOST_STOPS]; /* at each stop */
    size_t n[MOST_STOPS];
} whole;

static void run_whole(const model *m, whole *w)
{
    const char *path = checkpoint_path("whole.h5");
    char without[65];
    stops s = stops_of(m);
    training t = begin(0, m);
    must(training_until(&t, N_STEPS) && training_digest(&t, without), &t);
    training_end(&t);

    t = begin(0, m);
    for (int i = 0; i < s.n; i++) {
        must(training_until(&t, s.at[i]), &t);
        must(trn_checkpoint_save(t.k, path) == TRN_OK, &t);
        w->file[i] = checkpoint_bytes(path, &w->n[i]);
    }
    must(training_until(&t, N_STEPS) && training_digest(&t, w->digest), &t);
    training_end(&t);
    assert_string_equal(w->digest, without); /* saving changes nothing */
}

static void end_whole(const model *m, whole *w)
{
    for (int i = 0; i < stops_of(m).n; i++)
        free(w->file[i]);
}

/* ---- the run in parts ---- */

static int another(uint64_t *random, const model *m)
{
    int setting;
    do
        setting = (int)(harness_random(random) % N_SETTINGS);
    while (!fits(setting, m));
    return setting;
}

static void run_in_parts(const model *m, const whole *w, uint64_t *random)
{
    const char *path = checkpoint_path("parts.h5");
    stops s = stops_of(m);
    char digest[65];
    for (int i = 0; i <= s.n; i++) {
        int setting = another(random, m);
        training t = begin(setting, m);
        if (i > 0)
            must(trn_checkpoint_load(t.k, path) == TRN_OK, &t);
        must(training_until(&t, i < s.n ? s.at[i] : N_STEPS), &t);
        if (i == s.n) {
            must(training_digest(&t, digest), &t);
            assert_string_equal(digest, w->digest);
        } else {
            size_t n;
            must(trn_checkpoint_save(t.k, path) == TRN_OK, &t);
            char *file = checkpoint_bytes(path, &n);
            CHECK(n == w->n[i] && memcmp(file, w->file[i], n) == 0,
                  "%s, step %d, setting %d: another file\n", m->name, s.at[i],
                  setting);
            free(file);
        }
        training_end(&t);
    }
}

static void every_model_goes_on_with_any_setting_at_any_moment(void **state)
{
    (void)state;
    uint64_t random = 8;
    int n = find_settings();
    for (int i = 0; i < N_MODELS; i++) {
        whole w;
        run_whole(&models[i], &w);
        for (int chain = 0; chain < 4; chain++)
            run_in_parts(&models[i], &w, &random);
        end_whole(&models[i], &w);
    }
    print_message("%d models, 4 runs of each, over %d settings\n", N_MODELS, n);
}

/* From each way to each, by a loader that stands at each place of a pass. */
static void every_place_of_a_pass_can_be_gone_on_from(void **state)
{
    (void)state;
    const char *path = checkpoint_path("place.h5");
    char expected[65], digest[65];
    training t = begin(0, &models[0]);
    must(training_until(&t, N_STEPS) && training_digest(&t, expected), &t);
    training_end(&t);
    for (int stop = PASS - 1; stop <= 2 * PASS; stop++) {
        training_plan from = {.way = stop % N_WAYS};
        training_plan to = {.way = stop / N_WAYS % N_WAYS};
        t = training_begin(&from);
        must(training_until(&t, stop), &t);
        must(trn_checkpoint_save(t.k, path) == TRN_OK, &t);
        training_end(&t);
        t = training_begin(&to);
        must(trn_checkpoint_load(t.k, path) == TRN_OK, &t);
        must(training_until(&t, N_STEPS) && training_digest(&t, digest), &t);
        training_end(&t);
        assert_string_equal(digest, expected);
    }
}

/* ---- moments that are no step's end ---- */

static char *file_now(training *t, size_t *n)
{
    const char *path = checkpoint_path("now.h5");
    must(trn_checkpoint_save(t->k, path) == TRN_OK, t);
    return checkpoint_bytes(path, n);
}

static void save_now(training *t)
{
    must(trn_checkpoint_save(t->k, checkpoint_path("now.h5")) == TRN_OK, t);
}

static training load_now(int way)
{
    const training_plan p = {.way = way, .n_threads = 3};
    training t = training_begin(&p);
    must(trn_checkpoint_load(t.k, checkpoint_path("now.h5")) == TRN_OK, &t);
    return t;
}

/* To the end of the run, and of the context. */
static void end_run(training *t, char digest[65])
{
    must(training_until(t, N_STEPS) && training_digest(t, digest), t);
    training_end(t);
}

/* t goes on, and so does another run from now.h5. */
static void go_on_twice(training *t, int way)
{
    char here[65], there[65];
    end_run(t, here);
    training u = load_now(way);
    end_run(&u, there);
    assert_string_equal(here, there);
}

static void fail_a_step(training *t)
{
    trn_batch b;
    trn_step_begin(t->c);
    if (!trn_data_next(t->data, &b))
        trn_data_next(t->data, &b);
    trn_tensor *y = trn_nn_forward(t->net, b.inputs);
    trn_uniform(t->noise, TRN_F32, 0, NULL);
    trn_backward(trn_cross_entropy(y, b.targets, NULL));
    trn_optim_step(t->optim);
    trn_matmul(y, y); /* [n,8] with [n,8] */
    assert_int_equal(trn_step_end(t->c), TRN_ERR_SHAPE);
    trn_clear(t->c);
}

static void a_step_that_failed_is_not_in_the_file(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        for (int stop = PASS - 1; stop <= PASS + 1; stop++) {
            size_t n, n_after;
            training t = training_begin(&(training_plan){.way = way});
            must(training_until(&t, stop), &t);
            char *before = file_now(&t, &n);
            fail_a_step(&t);
            char *after = file_now(&t, &n_after);
            assert_int_equal(n_after, n);
            assert_memory_equal(after, before, n);
            free(before);
            free(after);
            go_on_twice(&t, (way + 1) % N_WAYS);
        }
    }
}

/* The batch was taken before its step: the step is made here with that batch,
 * there with the one that the loader hands out again. */
static void a_batch_that_no_step_has_used_comes_again(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        trn_batch b;
        training t = training_begin(&(training_plan){.way = way});
        must(training_until(&t, 9), &t);
        assert_int_equal(trn_data_next(t.data, &b), 1);
        assert_int_equal(b.index, 9);
        save_now(&t);
        must(training_step_on(&t, &b), &t);
        go_on_twice(&t, (way + 1) % N_WAYS);
    }
}

/* Passes as in most programs: the end of one is seen outside of steps. */
static void one_pass(training *t, int *n)
{
    trn_batch b;
    for (*n = 0; trn_data_next(t->data, &b) == 1; ++*n)
        must(training_step_on(t, &b), t);
    must(trn_errcode(t->c) == TRN_OK, t);
}

static void passes_go_on_before_and_after_their_end_is_seen(void **state)
{
    (void)state;
    char expected[65], digest[65];
    int n;
    training t = training_begin(&(training_plan){.way = EAGER});
    for (int pass = 0; pass < 3; pass++)
        one_pass(&t, &n);
    must(training_digest(&t, expected), &t);
    training_end(&t);
    for (int way = 0; way < N_WAYS; way++) {
        trn_batch b;
        t = training_begin(&(training_plan){.way = way});
        one_pass(&t, &n);
        save_now(&t); /* the next is a batch of pass 1 */
        training_end(&t);
        t = load_now((way + 1) % N_WAYS);
        for (int i = 0; i < PASS; i++) {
            assert_int_equal(trn_data_next(t.data, &b), 1);
            assert_int_equal(b.epoch, 1);
            must(training_step_on(&t, &b), &t);
        }
        save_now(&t); /* the next is the end of pass 1 */
        training_end(&t);
        t = load_now((way + 2) % N_WAYS);
        one_pass(&t, &n);
        assert_int_equal(n, 0);
        one_pass(&t, &n);
        assert_int_equal(n, PASS);
        must(training_digest(&t, digest), &t);
        training_end(&t);
        assert_string_equal(digest, expected);
    }
}

/* Gradients are not in the file: who saves between the batches of an update
 * goes on as a run whose gradients were set to zero there. */
static void gradients_of_batches_before_are_not_in_the_file(void **state)
{
    (void)state;
    char kept[65], zeroed[65], resumed[65];
    const training_plan p = {.way = CAPTURED, .parts = 3};
    training t = training_begin(&p);
    must(training_until(&t, 16), &t);
    save_now(&t);
    end_run(&t, kept);
    t = training_begin(&p);
    must(training_until(&t, 16), &t);
    must(trn_optim_zero_grad(t.optim) == TRN_OK, &t);
    end_run(&t, zeroed);
    t = training_begin(&p);
    must(trn_checkpoint_load(t.k, checkpoint_path("now.h5")) == TRN_OK, &t);
    end_run(&t, resumed);
    assert_string_equal(resumed, zeroed);
    assert_string_not_equal(resumed, kept);
}

int main(void)
{
    checkpoint_folder();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_goes_on_with_any_setting_at_any_moment),
        cmocka_unit_test(every_place_of_a_pass_can_be_gone_on_from),
        cmocka_unit_test(a_step_that_failed_is_not_in_the_file),
        cmocka_unit_test(a_batch_that_no_step_has_used_comes_again),
        cmocka_unit_test(passes_go_on_before_and_after_their_end_is_seen),
        cmocka_unit_test(gradients_of_batches_before_are_not_in_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else
int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(checkpoint_skips)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
