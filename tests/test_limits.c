/* SPDX-License-Identifier: Apache-2.0
 *
 * trn_cancel, deadlines, the progress hook and the memory limit: work ends
 * soon, as a whole, and goes on later with the same bits; on each way to run
 * steps.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#include "captured.h"

enum { SAMPLES = 16, BATCH = 4, STEPS = 12, MANY = 1000000 };

/* The state after STEPS steps that nothing disturbs. */
static uint64_t undisturbed(int way)
{
    trn_context *c = captured_open(way, NULL);
    captured_net m = captured_build(c, SAMPLES, BATCH);
    assert_true(captured_train_steps(&m, STEPS));
    uint64_t state = captured_state(&m);
    captured_close(c);
    return state;
}

/* Trains on to STEPS steps and closes; with what came before, they are the
 * same. */
static void goes_on_as_if_nothing_had_been(captured_net *m, int way)
{
    const int done = (int)trn_step_index(m->c);
    assert_true(done <= STEPS);
    assert_true(captured_train_steps(m, STEPS - done));
    const uint64_t state = captured_state(m);
    captured_close(m->c);
    assert_true(state == undisturbed(way));
}

/* ---- trn_cancel ---- */

/* Step 4, part by part, cancelled before part `at`; false: it has fewer. */
static bool step_cancelled_at(captured_net *m, int at)
{
    trn_context *c = m->c;
    int part = 0;
#define BEFORE_NEXT        \
    do {                   \
        if (part++ == at)  \
            trn_cancel(c); \
    } while (0)
    trn_batch b;
    BEFORE_NEXT;
    if (!trn_data_next(m->data, &b))
        trn_data_next(m->data, &b); /* of the next pass */
    BEFORE_NEXT;
    trn_step_begin(c);
    BEFORE_NEXT;
    trn_tensor *logits = trn_nn_forward(m->net, b.inputs);
    BEFORE_NEXT;
    trn_tensor *loss = trn_cross_entropy(logits, b.targets, NULL);
    BEFORE_NEXT;
    trn_backward(loss);
    BEFORE_NEXT;
    trn_optim_clip_norm(m->optim, 1.0);
    BEFORE_NEXT;
    trn_optim_step(m->optim);
    BEFORE_NEXT;
    trn_step_end(c);
#undef BEFORE_NEXT
    return at < part;
}

static void a_step_that_is_cancelled_anywhere_has_not_happened(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        trn_context *c = captured_open(way, NULL);
        captured_net m = captured_build(c, SAMPLES, BATCH);
        assert_true(captured_train_steps(&m, 3));
        const uint64_t before = captured_state(&m);
        int at = 0;
        for (; step_cancelled_at(&m, at); at++) {
            harness_error(c, TRN_ERR_CANCELLED, "cancelled by trn_cancel");
            assert_true(captured_state(&m) == before);
        }
        assert_int_equal(at, 8);
        assert_int_equal(trn_step_index(c), 4); /* the last try went through */
        goes_on_as_if_nothing_had_been(&m, way);
    }
}

static void *cancel_soon(void *arg)
{
    const struct timespec ms20 = {.tv_nsec = 20000000};
    nanosleep(&ms20, NULL);
    trn_cancel(arg);
    return NULL;
}

static void another_thread_ends_a_loop(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        trn_context *c = captured_open(way, NULL);
        captured_net m = captured_build(c, SAMPLES, BATCH);
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, cancel_soon, c), 0);
        assert_false(captured_train_steps(&m, MANY));
        pthread_join(thread, NULL);
        harness_error(c, TRN_ERR_CANCELLED, "cancelled by trn_cancel");
        const int64_t steps = trn_step_index(c);
        const uint64_t stopped = captured_state(&m);
        captured_close(c);

        c = captured_open(way, NULL);
        m = captured_build(c, SAMPLES, BATCH);
        assert_true(captured_train_steps(&m, (int)steps));
        assert_true(captured_state(&m) == stopped);
        captured_close(c);
    }
}

static trn_context *signalled;

static void on_alarm(int number)
{
    (void)number;
    trn_cancel(signalled);
}

static void a_signal_handler_ends_a_loop(void **state)
{
    (void)state;
    struct sigaction act = {.sa_handler = on_alarm}, old;
    const struct itimerval ms20 = {.it_value = {.tv_usec = 20000}};
    trn_context *c = captured_open(CAPTURED, NULL);
    captured_net m = captured_build(c, SAMPLES, BATCH);
    signalled = c;
    sigaction(SIGALRM, &act, &old);
    setitimer(ITIMER_REAL, &ms20, NULL);
    assert_false(captured_train_steps(&m, MANY));
    sigaction(SIGALRM, &old, NULL);
    harness_error(c, TRN_ERR_CANCELLED, "cancelled");
    assert_true(captured_train(&m));
    captured_close(c);
}

static void what_no_call_has_met_is_forgotten_with_the_error(void **state)
{
    (void)state;
    trn_context *c = captured_open(EAGER, NULL);
    captured_net m = captured_build(c, SAMPLES, BATCH);
    trn_cancel(NULL);
    trn_cancel(c);
    trn_cancel(c);
    assert_int_equal(trn_errcode(c), TRN_OK);
    assert_int_equal(trn_step_begin(c), TRN_ERR_CANCELLED);
    trn_cancel(c);
    trn_clear(c);
    assert_true(captured_train(&m));
    trn_cancel(c);
    double loss = trn_step_loss(c); /* reading goes on */
    assert_true(isfinite(loss));
    trn_batch b;
    assert_int_equal(trn_data_next(m.data, &b), 0);
    harness_error(c, TRN_ERR_CANCELLED, "cancelled");
    captured_close(c);
}

/* ---- deadlines ---- */

static void a_deadline_ends_a_loop_until_another_is_set(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        trn_context *c = captured_open(way, NULL);
        captured_net m = captured_build(c, SAMPLES, BATCH);
        assert_true(captured_train_steps(&m, 2));
        assert_int_equal(trn_set_deadline(c, 1e-9), TRN_OK);
        assert_false(captured_train(&m));
        harness_error(c, TRN_ERR_DEADLINE, "the deadline passed ");
        assert_false(captured_train(&m));
        assert_int_equal(trn_errcode(c), TRN_ERR_DEADLINE);
        assert_int_equal(trn_set_deadline(c, 0.0), TRN_OK);
        assert_int_equal(trn_errcode(c), TRN_ERR_DEADLINE); /* still told */
        trn_clear(c);
        assert_int_equal(trn_step_index(c), 2);
        assert_int_equal(trn_set_deadline(c, 1e6), TRN_OK);
        goes_on_as_if_nothing_had_been(&m, way);
    }
}

static void the_deadline_of_the_options_counts_from_the_opening(void **state)
{
    (void)state;
    trn_options o = captured_options(EAGER, NULL);
    trn_context *c;
    o.deadline = 0.02;
    assert_int_equal(trn_open(&c, &o), TRN_OK);
    captured_net m = captured_build(c, SAMPLES, BATCH);
    assert_false(captured_train_steps(&m, MANY));
    harness_error(c, TRN_ERR_DEADLINE, "expected trn_set_deadline()");
    captured_close(c);
}

static void times_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    trn_options o = captured_options(EAGER, NULL);
    trn_context *c;
    o.deadline = -1.0;
    assert_int_equal(trn_open(&c, &o), TRN_ERR_ARG);
    assert_non_null(strstr(trn_errmsg(c), "deadline is negative or NaN"));
    captured_close(c);
    o.deadline = 0.0;
    o.progress_interval = (double)NAN;
    assert_int_equal(trn_open(&c, &o), TRN_ERR_ARG);
    assert_non_null(strstr(trn_errmsg(c), "progress_interval is negative"));
    captured_close(c);
    c = captured_open(EAGER, NULL);
    assert_int_equal(trn_set_deadline(c, (double)NAN), TRN_ERR_ARG);
    harness_error(c, TRN_ERR_ARG, "trn_set_deadline: ");
    assert_int_equal(trn_set_deadline(c, (double)INFINITY), TRN_OK);
    assert_int_equal(trn_set_deadline(NULL, 1.0), TRN_ERR_NOMEM);
    captured_close(c);
}

/* ---- the progress hook ---- */

typedef struct told {
    int calls, end_after;
    trn_progress last;
    bool sound;
} told;

static bool on_progress(void *user, const trn_progress *p)
{
    told *t = user;
    t->sound = t->sound && p->size == sizeof *p && p->steps >= t->last.steps &&
               p->seconds > t->last.seconds && p->bytes_in_use > 0;
    t->last = *p;
    return ++t->calls < t->end_after;
}

static void the_hook_is_told_and_may_cancel(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        trn_options o = captured_options(way, NULL);
        told t = {.end_after = 5, .sound = true};
        trn_context *c;
        o.progress = on_progress;
        o.progress_user = &t;
        o.progress_interval = 1e-3;
        assert_int_equal(trn_open(&c, &o), TRN_OK);
        captured_net m = captured_build(c, SAMPLES, BATCH);
        assert_false(captured_train_steps(&m, MANY));
        harness_error(c, TRN_ERR_CANCELLED, "or the progress hook");
        assert_true(t.sound);
        assert_int_equal(t.calls, 5);
        assert_int_equal(t.last.steps, trn_step_index(c));
        assert_true(t.last.seconds >= 5e-3);
        captured_close(c);
    }
}

/* ---- memory ---- */

static int64_t most_held;

static void *watching_alloc(void *user, size_t bytes)
{
    int64_t *held = user;
    *held += (int64_t)bytes;
    most_held = *held > most_held ? *held : most_held;
    return malloc(bytes);
}

static void watching_free(void *user, void *memory, size_t bytes)
{
    *(int64_t *)user -= (int64_t)bytes;
    free(memory);
}

/* Blocks have heads, and a context is more than its blocks. */
enum { LIMIT = 4 << 20, BESIDE = 1 << 20 };

static void no_more_than_the_limit_is_held(void **state)
{
    (void)state;
    for (int way = 0; way < LOOP; way++) {
        trn_options o = captured_options(way, NULL);
        int64_t held = 0;
        trn_context *c;
        o.alloc = watching_alloc;
        o.free = watching_free;
        o.memory_user = &held;
        o.memory_limit = LIMIT;
        most_held = 0;
        assert_int_equal(trn_open(&c, &o), TRN_OK);
        captured_net m = captured_build(c, SAMPLES, BATCH);
        assert_true(captured_train_steps(&m, 2));
        const uint64_t before = captured_state(&m);

        trn_step_begin(c);
        trn_backward(captured_loss(&m));
        trn_optim_step(m.optim);
        const int64_t shape[] = {2 * LIMIT / 4};
        trn_tensor *large = trn_full(c, TRN_F32, 1, shape, 1.0);
        trn_keep(trn_add(large, large));
        assert_int_equal(trn_step_end(c), TRN_ERR_NOMEM);
        harness_error(c, TRN_ERR_NOMEM, "memory_limit is 4194304");
        assert_true(captured_state(&m) == before);

        for (int i = 1; i <= 8; i++) { /* of many sizes, so caches are left */
            const int64_t one[] = {LIMIT / 4 / 2 - 65536 * i};
            trn_tensor *t = trn_full(c, TRN_F32, 1, one, 1.0);
            harness_ok(c);
            trn_tensor_release(t);
        }
        assert_true(captured_train_steps(&m, STEPS - 2));
        const uint64_t after = captured_state(&m);
        assert_int_equal(trn_close(c), TRN_OK);
        assert_int_equal(held, 0);
        assert_true(most_held <= LIMIT + BESIDE);
        assert_true(after == undisturbed(way));
    }
}

static void a_limit_below_what_a_context_needs_is_no_context(void **state)
{
    (void)state;
    trn_options o = captured_options(EAGER, NULL);
    trn_context *c;
    o.memory_limit = 64;
    assert_int_equal(trn_open(&c, &o), TRN_ERR_NOMEM);
    assert_non_null(strstr(trn_errmsg(c), "memory"));
    captured_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_that_is_cancelled_anywhere_has_not_happened),
        cmocka_unit_test(another_thread_ends_a_loop),
        cmocka_unit_test(a_signal_handler_ends_a_loop),
        cmocka_unit_test(what_no_call_has_met_is_forgotten_with_the_error),
        cmocka_unit_test(a_deadline_ends_a_loop_until_another_is_set),
        cmocka_unit_test(the_deadline_of_the_options_counts_from_the_opening),
        cmocka_unit_test(times_that_make_no_sense_are_refused),
        cmocka_unit_test(the_hook_is_told_and_may_cancel),
        cmocka_unit_test(no_more_than_the_limit_is_held),
        cmocka_unit_test(a_limit_below_what_a_context_needs_is_no_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
