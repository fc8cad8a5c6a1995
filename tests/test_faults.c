/* SPDX-License-Identifier: Apache-2.0
 *
 * Each entry of the loop device made to fail at each of its calls, and each
 * allocation of a captured step: the error is told, nothing leaks, and after
 * trn_clear() the failed step repeated gives the bits of a run without it.
 *
 * A run without failures counts nothing to fail at: a loop over n ends at the
 * first n that the run does not reach, so no call is left out.
 */
#define _GNU_SOURCE /* readlink */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "captured.h"

typedef uint64_t counter_fn(const char *name);

/* The device's counter of faults that came about. */
static uint64_t faults(void)
{
    static counter_fn *counter;
    if (counter == NULL) {
        char path[4096];
        ssize_t n = readlink("/proc/self/exe", path, sizeof path - 40);
        assert_true(n > 0);
        path[n] = '\0';
        *strrchr(path, '/') = '\0';
        char *end = strrchr(path, '/');
        snprintf(end, sizeof path - (size_t)(end - path), "%s", "/trn-loop.so");
        void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        CHECK(object != NULL, "%s\n", dlerror());
        void *symbol = dlsym(object, "trn_loop_counter");
        assert_non_null(symbol);
        memcpy(&counter, &symbol, sizeof counter);
    }
    return counter("faults");
}

#define N_STEPS 4 /* the last one has a smaller batch */

/* What a run met. */
typedef struct story {
    trn_status status; /* of the first error */
    char message[200];
    bool in_setup, lost;
    char digest[65];
} story;

static void note(trn_context *c, story *s)
{
    if (s->status == TRN_OK) {
        s->status = trn_errcode(c);
        snprintf(s->message, sizeof s->message, "%s", trn_errmsg(c));
    }
    s->lost |= trn_errcode(c) == TRN_ERR_LOST;
    trn_clear(c);
}

/* Trains up to step `until`, repeating what fails; false: values are lost. */
static bool train_until(captured_net *m, int until, story *s)
{
    for (int tries = 0; trn_step_index(m->c) < until; tries++) {
        CHECK(tries < 20, "does not go on: %s\n", s->message);
        captured_train(m);
        bool bad = isnan(trn_step_loss(m->c));
        assert_int_equal(bad, trn_errcode(m->c) != TRN_OK);
        if (bad)
            note(m->c, s);
        if (s->lost)
            return false;
    }
    return true;
}

static story run_with(const char *entry, int n)
{
    story s = {0};
    char device[80];
    trn_context *c;
    snprintf(device, sizeof device, "loop:strict,fail=%s@%d", entry, n);
    trn_options o = captured_options(LOOP, n == 0 ? NULL : device);
    if (trn_open(&c, &o) != TRN_OK) {
        s.in_setup = true;
        note(c, &s);
        captured_close(c);
        return s;
    }
    captured_net m = captured_build(c, 20, 6);
    trn_sync(c);
    if (trn_errcode(c) != TRN_OK) { /* a second try must work */
        s.in_setup = true;
        note(c, &s);
        m = captured_build(c, 20, 6);
        harness_ok(c);
    }
    if (train_until(&m, N_STEPS, &s)) {
        if (trn_digest(m.net, s.digest) != TRN_OK) {
            note(c, &s);
            trn_digest(m.net, s.digest);
        }
        harness_ok(c);
    }
    captured_close(c);
    return s;
}

/* Does a device's failure with that entry make sense as `s`? */
static void check_story(const char *entry, int n, const story *s,
                        const char *digest)
{
    if (strcmp(entry, "supports") == 0 && s->status == TRN_OK) {
        assert_string_equal(s->digest, digest); /* a composite in its parts */
        return;
    }
    bool refused =
        strcmp(entry, "supports") == 0 && s->status == TRN_ERR_UNSUPPORTED;
    CHECK(refused || s->status == TRN_ERR_DEVICE ||
              (s->status == TRN_ERR_NOMEM && strcmp(entry, "alloc") == 0),
          "%s@%d: %s: %s\n", entry, n, trn_status_name(s->status), s->message);
    CHECK(strlen(s->message) > 10 && strstr(s->message, ": ") != NULL,
          "%s@%d: %s\n", entry, n, s->message);
    if (s->lost)
        assert_string_equal(entry, "lost");
    else if (!s->in_setup)
        CHECK(strcmp(s->digest, digest) == 0, "%s@%d: other bits\n", entry, n);
}

static void each_entry_may_fail_at_each_call(void **state)
{
    (void)state;
    static const char *const entries[] = {
        "open",    "alloc", "write", "read",     "compile",
        "execute", "wait",  "lost",  "supports", "poll"};
    story good = run_with("", 0);
    assert_int_equal(good.status, TRN_OK);
    for (size_t e = 0; e < sizeof entries / sizeof entries[0]; e++) {
        int n = 0, n_setup = 0, n_lost = 0;
        for (;;) {
            uint64_t before = faults();
            story s = run_with(entries[e], n + 1);
            if (faults() == before)
                break;
            n++;
            check_story(entries[e], n, &s, good.digest);
            n_setup += s.in_setup;
            n_lost += s.lost;
        }
        print_message("%-8s %4d points of failure, %d before training, %d with "
                      "lost values\n",
                      entries[e], n, n_setup, n_lost);
        /* The core waits, so it has no use for poll. */
        assert_true((n > 0) == (strcmp(entries[e], "poll") != 0));
        assert_true((n_lost > 0) == (strcmp(entries[e], "lost") == 0));
    }
}

static void a_lost_parameter_says_so_until_it_is_written(void **state)
{
    (void)state;
    trn_context *c = captured_open(LOOP, "loop:strict");
    captured_net m = captured_build(c, 20, 6);
    trn_sync(c);
    int setup = (int)captured_info(c).replays;
    captured_close(c);
    char device[64], digest[65];
    snprintf(device, sizeof device, "loop:strict,fail=lost@%d", setup + 2);
    c = captured_open(LOOP, device);
    m = captured_build(c, 20, 6);
    assert_true(captured_train_steps(&m, 2));
    assert_int_equal(trn_sync(c), TRN_ERR_DEVICE);
    trn_clear(c);
    assert_int_equal(trn_step_index(c), 1);
    float values[64];
    for (int64_t i = 0; i < trn_nn_parameter_count(m.net); i++) {
        trn_tensor *t = trn_nn_parameter_at(m.net, i);
        size_t bytes = (size_t)trn_tensor_numel(t) * sizeof *values;
        for (int64_t k = 0; k < trn_tensor_numel(t) && k < 64; k++)
            values[k] = 0.5f;
        assert_in_range(bytes, 1, sizeof values * 2);
        assert_int_equal(trn_tensor_read(t, values, bytes), TRN_ERR_LOST);
        harness_error(c, TRN_ERR_LOST, "checkpoint");
    }
    assert_int_equal(trn_digest(m.net, digest), TRN_ERR_LOST);
    trn_clear(c);
    assert_false(captured_train(&m));
    harness_error(c, TRN_ERR_LOST, "checkpoint");
    trn_tensor *bias = trn_nn_parameter(m.net, "5.bias");
    for (int k = 0; k < 7; k++)
        values[k] = 0.5f;
    assert_int_equal(trn_tensor_write(bias, values, 28), TRN_OK);
    harness_equal(bias, 7, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5);
    captured_close(c);
}

/* ---- allocations ---- */

/* Fails allocation n of step `at`; false if that step makes fewer. */
static bool fail_allocation(int way, int at, int64_t n, bool ever,
                            const char *digest)
{
    char got[65];
    story s = {0};
    trn_context *c = captured_open(way, NULL);
    captured_net m = captured_build(c, 20, 6);
    assert_true(captured_train_steps(&m, at));
    assert_int_equal(trn_sync(c), TRN_OK);
    trn_memory_trim(c);
    captured_fail_at(n, ever);
    captured_train(&m);
    trn_sync(c);
    bool reached = captured_failed();
    captured_fail_at(0, false);
    if (trn_errcode(c) != TRN_OK) {
        CHECK(reached && trn_errcode(c) == TRN_ERR_NOMEM,
              "%s, step %d, allocation %d: %s\n", captured_ways[way].name, at,
              (int)n, trn_errmsg(c));
        assert_int_equal(trn_step_begin(c), TRN_ERR_NOMEM); /* it sticks */
        trn_clear(c);
        assert_int_equal(trn_step_index(c), at);
    }
    CHECK(train_until(&m, N_STEPS, &s) && s.status == TRN_OK,
          "%s, step %d, allocation %d: %s\n", captured_ways[way].name, at,
          (int)n, s.message);
    captured_digest(m.net, got);
    CHECK(strcmp(got, digest) == 0, "%s, step %d, allocation %d: other bits\n",
          captured_ways[way].name, at, (int)n);
    captured_close(c);
    return reached;
}

static void each_allocation_of_a_step_may_fail(void **state)
{
    (void)state;
    story good = run_with("", 0);
    /* traced; matched; with a smaller batch, so traced from its start */
    static const int steps[] = {0, 1, 3};
    for (int way = CAPTURED; way <= LOOP; way++) {
        for (int k = 0; k < 3; k++) {
            int64_t n[2] = {0, 0};
            for (int ever = 0; ever < 2; ever++) {
                while (fail_allocation(way, steps[k], n[ever] + 1, ever,
                                       good.digest))
                    n[ever]++;
            }
            print_message("%-8s step %d: %d allocations\n",
                          captured_ways[way].name, steps[k], (int)n[0]);
            assert_true(n[0] > 0 && n[1] > 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_entry_may_fail_at_each_call),
        cmocka_unit_test(a_lost_parameter_says_so_until_it_is_written),
        cmocka_unit_test(each_allocation_of_a_step_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
