/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts of several threads at once, each with models, loaders and a pool of
 * its own: they open, train and close at the same time, and give the bits of
 * one that is alone.  `make tsan` runs this under ThreadSanitizer.
 */
#include <pthread.h>
#include <stdio.h>

#include "captured.h"
#include "tests/host_setup.h"

enum { STEPS = 2 };
enum { LIVES = 2 }; /* of each thread, so that openings meet closings */

typedef struct part {
    pthread_barrier_t *start;
    host_job job;
    bool good, same;
    const char *digest;
} part;

static void *lead_lives(void *arg)
{
    part *p = arg;
    p->good = p->same = true;
    for (int i = 0; i < LIVES && p->good; i++) {
        pthread_barrier_wait(p->start);
        p->good = host_job_run(&p->job);
        p->same = p->same && strcmp(p->job.digest, p->digest) == 0;
    }
    return NULL;
}

static void at_once(int n, const int *ways, int n_threads)
{
    part parts[4];
    pthread_t threads[4];
    pthread_barrier_t start;
    assert_in_range(n, 1, 4);
    assert_int_equal(pthread_barrier_init(&start, NULL, (unsigned)n), 0);
    for (int i = 0; i < n; i++)
        parts[i] = (part){.start = &start,
                          .job = job_of_way(ways[i], n_threads, STEPS),
                          .digest = alone(ways[i], STEPS)};
    for (int i = 0; i < n; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, lead_lives, &parts[i]), 0);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
    for (int i = 0; i < n; i++) {
        CHECK(parts[i].good, "thread %d: %s\n", i, parts[i].job.said);
        assert_true(parts[i].same);
    }
}

static void two_eager_contexts_do_not_meet(void **state)
{
    (void)state;
    at_once(2, (const int[]){EAGER, EAGER}, 2);
}

static void an_eager_and_a_captured_context_do_not_meet(void **state)
{
    (void)state;
    at_once(2, (const int[]){EAGER, CAPTURED}, 2);
}

static void a_captured_context_and_loop_do_not_meet(void **state)
{
    (void)state;
    at_once(2, (const int[]){LOOP, CAPTURED}, 2);
}

static void four_contexts_of_all_ways_do_not_meet(void **state)
{
    (void)state;
    at_once(4, (const int[]){LOOP, CAPTURED, EAGER, LOOP}, 3);
}

/* ---- one context, one thread after the other ---- */

static void *go_on(void *arg)
{
    return host_job_go_on(arg) ? arg : NULL;
}

static void a_context_may_move_to_another_thread(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        host_job j = job_of_way(way, 2, STEPS);
        pthread_t thread;
        void *good = NULL;
        assert_true(host_job_open(&j));
        assert_int_equal(pthread_create(&thread, NULL, go_on, &j), 0);
        pthread_join(thread, &good);
        CHECK(good != NULL, "%s\n", j.said);
        assert_string_equal(j.digest, alone(way, STEPS));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_eager_contexts_do_not_meet),
        cmocka_unit_test(an_eager_and_a_captured_context_do_not_meet),
        cmocka_unit_test(a_captured_context_and_loop_do_not_meet),
        cmocka_unit_test(four_contexts_of_all_ways_do_not_meet),
        cmocka_unit_test(a_context_may_move_to_another_thread),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
