/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals and forks of the program: trn_cancel from a handler in the middle of
 * anything, storms of signals while files are read, children that only exec or
 * end, and children that go on with a context.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "captured.h"
#include "tests/host_setup.h"
#include "tests/host_state.h"

/* ---- timers ---- */

static void set_timer(void (*handler)(int), int flags, int first, int again)
{
    struct sigaction act = {.sa_handler = handler, .sa_flags = flags};
    const struct itimerval when = {.it_value = {.tv_usec = first},
                                   .it_interval = {.tv_usec = again}};
    sigemptyset(&act.sa_mask);
    assert_int_equal(sigaction(SIGALRM, &act, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &when, NULL), 0);
}

static void stop_timer(void)
{
    const struct itimerval never = {.it_value = {.tv_usec = 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    signal(SIGALRM, SIG_DFL);
}

/* ---- trn_cancel ---- */

static trn_context *_Atomic to_cancel;
static _Atomic int n_alarms;

static void on_alarm(int number)
{
    const int before = errno;
    (void)number;
    n_alarms++;
    trn_cancel(to_cancel);
    errno = before;
}

/* Sanitizers make a signal as dear as a step. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { STEPS = 10, CANCELLED = 6, STORM = 5000 };
#else
enum { STEPS = 40, CANCELLED = 30, STORM = 100 };
#endif

/* The state after STEPS steps that nothing disturbs. */
static uint64_t undisturbed(int way)
{
    trn_context *c = captured_open(way, NULL);
    captured_net m = captured_build(c, 20, 6);
    assert_true(captured_train_steps(&m, STEPS));
    const uint64_t state = captured_state(&m);
    captured_close(c);
    return state;
}

/* A step that a signal met has not happened; repeated, it is as it would have
 * been.  The delay varies, so that all parts of a step are met; the next signal
 * comes after a step that succeeded. */
static void a_handler_may_cancel_anywhere_in_a_step(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        const uint64_t want = undisturbed(way);
        int n_cancelled = 0;
        for (int round = 0; n_cancelled < CANCELLED; round++) {
            trn_context *c = captured_open(way, NULL);
            captured_net m = captured_build(c, 20, 6);
            assert_in_range(round, 0, 1000);
            to_cancel = c;
            for (int k = 0; trn_step_index(c) < STEPS; k++) {
                const int delay = 20 + 37 * ((round + k) % 50);
                set_timer(on_alarm, SA_RESTART, delay, 0);
                while (trn_step_index(c) < STEPS && captured_train(&m))
                    ;
                if (trn_errcode(c) == TRN_OK)
                    break;
                harness_error(c, TRN_ERR_CANCELLED, "cancelled by trn_cancel");
                n_cancelled++;
                if (!captured_train(&m)) /* in flight when it came */
                    harness_error(c, TRN_ERR_CANCELLED, "cancelled");
            }
            stop_timer();
            to_cancel = NULL;
            trn_sync(c);
            trn_clear(c); /* of one that came last */
            while (trn_step_index(c) < STEPS)
                assert_true(captured_train(&m));
            assert_true(captured_state(&m) == want);
            captured_close(c);
        }
    }
}

/* ---- storms ---- */

static void count_alarm(int number)
{
    (void)number;
    n_alarms++;
}

/* Alarms all the time, SIGCHLD too; none of their handlers has SA_RESTART, so
 * each system call that waits ends early. */
static void a_storm_of_signals_changes_no_bit(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
            struct sigaction act = {.sa_handler = count_alarm}, before;
            host_job j = job_of_way(way, n_threads, 0);
            const char *want = alone(way, 0);
            n_alarms = 0;
            sigemptyset(&act.sa_mask);
            sigaction(SIGCHLD, &act, &before);
            set_timer(count_alarm, 0, STORM / 2, STORM);
            const bool good = host_job_run(&j);
            stop_timer();
            sigaction(SIGCHLD, &before, NULL);
            CHECK(good, "%s: %s\n", captured_ways[way].name, j.said);
            assert_string_equal(j.digest, want);
            assert_true(n_alarms > 10);
        }
    }
}

/* ---- reads that wait ---- */

/* Writes the file's bytes into a pipe, little by little, each piece behind a
 * signal to the reader. */
typedef struct feeder {
    const char *pipe;
    const char *bytes;
    size_t n;
    pthread_t reader;
    int n_signals;
} feeder;

static void *feed(void *arg)
{
    feeder *f = arg;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    for (int i = 0; i < 3; i++) { /* while it waits in open */
        usleep(2000);
        f->n_signals += pthread_kill(f->reader, SIGUSR1) == 0;
    }
    const int fd = open(f->pipe, O_WRONLY);
    for (size_t at = 0; at < f->n;) {
        const size_t piece = f->n - at < 1000 ? f->n - at : 1000;
        usleep(1000);
        f->n_signals += pthread_kill(f->reader, SIGUSR1) == 0;
        usleep(1000);
        const ssize_t n = write(fd, f->bytes + at, piece);
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    close(fd);
    return NULL;
}

static char *bytes_of(const char *name, size_t *n)
{
    static char bytes[1 << 16];
    char path[120];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    *n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    return bytes;
}

static void start_feeding(feeder *f, pthread_t *thread, const char *name,
                          const char *path)
{
    *f = (feeder){.pipe = path, .reader = pthread_self()};
    f->bytes = bytes_of(name, &f->n);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pthread_create(thread, NULL, feed, f), 0);
}

static void stop_feeding(const feeder *f, pthread_t thread)
{
    pthread_join(thread, NULL);
    unlink(f->pipe);
    assert_true(f->n_signals > 3);
}

static void reads_go_on_after_signals(void **state)
{
    struct sigaction act = {.sa_handler = count_alarm};
    char pipe[120], other[120], plain[65];
    trn_context *c = *state;
    feeder f;
    pthread_t thread;
    sigemptyset(&act.sa_mask);
    sigaction(SIGUSR1, &act, NULL); /* without SA_RESTART */
    snprintf(pipe, sizeof pipe, "%s/pipe", folder);

    snprintf(other, sizeof other, "%s/text", folder);
    trn_text *t = trn_text_read(c, 1, (const char *[]){other}, NULL);
    snprintf(plain, sizeof plain, "%s", trn_text_sha256(t));
    n_alarms = 0;
    start_feeding(&f, &thread, "text", pipe);
    t = trn_text_read(c, 1, (const char *[]){pipe}, NULL);
    stop_feeding(&f, thread);
    harness_ok(c);
    assert_string_equal(trn_text_sha256(t), plain);

    snprintf(other, sizeof other, "%s/labels.gz", folder);
    start_feeding(&f, &thread, "images", pipe);
    trn_loader *data = trn_data_idx(c, pipe, other, 4, NULL);
    stop_feeding(&f, thread);
    harness_ok(c);
    assert_int_equal(trn_data_samples(data), 48);

    snprintf(other, sizeof other, "%s/images", folder);
    start_feeding(&f, &thread, "labels.gz", pipe);
    data = trn_data_idx(c, other, pipe, 4, NULL);
    stop_feeding(&f, thread);
    harness_ok(c);
    assert_int_equal(trn_data_samples(data), 48);
    signal(SIGUSR1, SIG_DFL);
    assert_true(n_alarms > 10);
}

/* ---- forks ---- */

static bool ends_well(pid_t child)
{
    int status = -1;
    return waitpid(child, &status, 0) == child && status == 0;
}

/* In the middle of everything, for each 20th call. */
static void fork_and_end(void *user, const char *call)
{
    int *n = user;
    (void)call;
    if (n[0]++ % 20 != 0)
        return;
    const pid_t child = fork();
    if (child == 0) {
        if (n[0] % 40 == 1)
            execl("/bin/sh", "sh", "-c", "exit 0", (char *)NULL);
        _exit(0);
    }
    n[1] += child > 0 && ends_well(child);
    n[2]++;
}

static void children_that_exec_or_end_disturb_nothing(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        int n[3] = {0, 0, 0};
        host_job j = job_of_way(way, 3, 0);
        const char *want = alone(way, 0);
        j.after = fork_and_end;
        j.user = n;
        const bool good = host_job_run(&j);
        CHECK(good, "%s: %s\n", captured_ways[way].name, j.said);
        assert_string_equal(j.digest, want);
        assert_true(n[2] > 10);
        assert_int_equal(n[1], n[2]);
    }
}

/* A child goes on with the context of its parent where nobody was in a call:
 * workers are started anew.  Both give the same bits. */
static void child_and_parent_both_go_on_on_the_cpu(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    print_message("ThreadSanitizer allows no threads in the child of a fork "
                  "of several\n");
    skip();
#else
    for (int way = EAGER; way <= CAPTURED; way++) {
        const uint64_t want = undisturbed(way);
        for (int begun = 0; begun < 2; begun++) {
            trn_context *c = captured_open(way, NULL);
            const int64_t shape[] = {1 << 18};
            captured_net m = captured_build(c, 20, 6);
            if (begun) { /* with workers that wait for work */
                assert_true(captured_train_steps(&m, 3));
                trn_tensor_release(trn_full(c, TRN_F32, 1, shape, 1.0));
            }
            fflush(NULL);
            const pid_t child = fork();
            if (child == 0) {
                host_default_handlers();
                alarm(60); /* it must not hang */
                trn_generator *g = trn_generator_default(c);
                trn_tensor *x = trn_normal(g, TRN_F32, 1, shape);
                const bool works =
                    trn_tensor_item(trn_norm(x, TRN_ALL_AXES, false)) > 0.0;
                const int n_threads = host_count_threads();
                const bool trained =
                    captured_train_steps(&m, begun ? STEPS - 3 : STEPS);
                const trn_status status = trn_close(c);
                _exit(works && trained && n_threads > host_count_threads() &&
                              status == TRN_OK
                          ? 0
                          : 1);
            }
            assert_true(ends_well(child));
            assert_true(captured_train_steps(&m, begun ? STEPS - 3 : STEPS));
            assert_true(captured_state(&m) == want);
            captured_close(c);
        }
    }
#endif
}

/* The whole life of a job, forked in its middle; the child says its digest. */
static void a_child_has_the_bits_of_its_parent(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    print_message("ThreadSanitizer allows no threads in the child of a fork "
                  "of several\n");
    skip();
#else
    for (int way = EAGER; way <= CAPTURED; way++) {
        host_job j = job_of_way(way, 3, 0);
        const char *want = alone(way, 0);
        assert_true(host_job_open(&j));
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            host_default_handlers();
            alarm(60);
            _exit(host_job_go_on(&j) && strcmp(j.digest, want) == 0 ? 0 : 1);
        }
        assert_true(ends_well(child));
        assert_true(host_job_go_on(&j));
        assert_string_equal(j.digest, want);
    }
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handler_may_cancel_anywhere_in_a_step),
        cmocka_unit_test(a_storm_of_signals_changes_no_bit),
        TRN_TEST(reads_go_on_after_signals),
        cmocka_unit_test(children_that_exec_or_end_disturb_nothing),
        cmocka_unit_test(child_and_parent_both_go_on_on_the_cpu),
        cmocka_unit_test(a_child_has_the_bits_of_its_parent),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
