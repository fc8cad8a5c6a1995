/* SPDX-License-Identifier: Apache-2.0
 *
 * parallel_for: each item once, on every engine and for every thread count.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __SSE__
#include <immintrin.h>
#endif

#include "libtrn/context/threads.h"

#define MAX_ITEMS 1000

static int n_blocks;
static int fail_after = -1;

static void *test_alloc(void *user, size_t bytes)
{
    void *p;
    (void)user;
    if (fail_after == 0)
        return NULL;
    if (fail_after > 0)
        --fail_after;
    p = malloc(bytes);
    n_blocks += p != NULL;
    return p;
}

static void test_dealloc(void *user, void *p)
{
    (void)user;
    n_blocks -= p != NULL;
    free(p);
}

/* A host engine that runs the chunks backwards and keeps what it was told. */
typedef struct host_log {
    int64_t n_chunks;
    int n_calls;
} host_log;

static void host_backwards(void *user, int64_t n_chunks,
                           void (*fn)(void *arg, int64_t chunk), void *arg)
{
    host_log *log = user;
    log->n_chunks = n_chunks;
    ++log->n_calls;
    for (int64_t i = n_chunks; i > 0; --i)
        fn(arg, i - 1);
}

static host_log last_host;

static trn__threads *threads_new(trn__engine e, int n_threads)
{
    trn__threads_config cfg = {
        .n_threads = n_threads,
        .engine = e,
        .host_parallel_for = host_backwards,
        .host_user = &last_host,
        .alloc = test_alloc,
        .dealloc = test_dealloc,
    };
    return trn__threads_create(&cfg);
}

typedef struct visits {
    int64_t n;
    int64_t grain;
    atomic_int n_wrong;
    atomic_int count[MAX_ITEMS];
} visits;

static void count_items(void *arg, int64_t begin, int64_t end)
{
    visits *v = arg;
    bool whole = end == v->n || end % v->grain == 0;
    if (begin < 0 || begin >= end || end > v->n || begin % v->grain || !whole)
        atomic_fetch_add(&v->n_wrong, 1);
    for (int64_t i = begin; i < end; ++i)
        atomic_fetch_add(&v->count[i], 1);
}

static void check_visits(trn__threads *t, int64_t n, int64_t grain)
{
    static visits v;
    memset(&v, 0, sizeof v);
    v.n = n;
    v.grain = grain;
    trn__parallel_for(t, n, grain, count_items, &v);
    assert_int_equal(atomic_load(&v.n_wrong), 0);
    for (int64_t i = 0; i < MAX_ITEMS; ++i) {
        if (atomic_load(&v.count[i]) != (i < n))
            fail_msg("item %d of %d, grain %d: %d visits", (int)i, (int)n,
                     (int)grain, atomic_load(&v.count[i]));
    }
}

static void check_engine(trn__engine e)
{
    static const int n_threads[] = {1, 2, 3, 7, 64};
    static const int64_t sizes[] = {0, 1, 2, 3, 5, 16, 63, 64, 65, 100, 1000};
    static const int64_t grains[] = {1, 2, 3, 7, 64, 999, 1000, 5000};
    for (size_t k = 0; k < sizeof n_threads / sizeof *n_threads; ++k) {
        trn__threads *t = threads_new(e, n_threads[k]);
        assert_non_null(t);
        assert_int_equal(trn__threads_count(t), n_threads[k]);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
            for (size_t j = 0; j < sizeof grains / sizeof *grains; ++j)
                check_visits(t, sizes[i], grains[j]);
        }
        trn__threads_destroy(t);
    }
    assert_int_equal(n_blocks, 0);
}

static void pool_visits_every_item_once(void **state)
{
    (void)state;
    check_engine(TRN__ENGINE_POOL);
}

static void openmp_visits_every_item_once(void **state)
{
    (void)state;
    if (!trn__openmp_available()) {
        assert_null(threads_new(TRN__ENGINE_OPENMP, 2));
        assert_string_equal(trn__engine_missing(TRN__ENGINE_OPENMP),
                            "this build has no OpenMP");
        return;
    }
    check_engine(TRN__ENGINE_OPENMP);
}

static void host_visits_every_item_once(void **state)
{
    (void)state;
    check_engine(TRN__ENGINE_HOST);
}

static void host_is_given_the_number_of_chunks(void **state)
{
    trn__threads *t = threads_new(TRN__ENGINE_HOST, 4);
    (void)state;
    memset(&last_host, 0, sizeof last_host);
    check_visits(t, 100, 7);
    assert_int_equal(last_host.n_chunks, 15);
    check_visits(t, 98, 7);
    assert_int_equal(last_host.n_chunks, 14);
    check_visits(t, 7, 7);
    assert_int_equal(last_host.n_calls, 2);
    trn__threads_destroy(t);
}

static void engines_have_names_and_host_needs_a_function(void **state)
{
    trn__threads_config cfg = {
        .n_threads = 2,
        .engine = TRN__ENGINE_HOST,
        .alloc = test_alloc,
        .dealloc = test_dealloc,
    };
    (void)state;
    assert_string_equal(trn__engine_name(TRN__ENGINE_POOL), "pool");
    assert_string_equal(trn__engine_name(TRN__ENGINE_OPENMP), "openmp");
    assert_string_equal(trn__engine_name(TRN__ENGINE_HOST), "host");
    assert_null(trn__engine_missing(TRN__ENGINE_POOL));
    assert_null(trn__engine_missing(TRN__ENGINE_HOST));
    assert_null(trn__threads_create(&cfg));
    assert_int_equal(trn__threads_count(NULL), 1);
    check_visits(NULL, 100, 7);
    trn__threads_destroy(NULL);
}

typedef struct nest {
    trn__threads *t;
    atomic_int n_items;
    atomic_int n_moved;
} nest;

typedef struct nest_row {
    nest *all;
    pthread_t owner;
} nest_row;

static void inner_items(void *arg, int64_t begin, int64_t end)
{
    nest_row *row = arg;
    if (!pthread_equal(pthread_self(), row->owner))
        atomic_fetch_add(&row->all->n_moved, 1);
    atomic_fetch_add(&row->all->n_items, (int)(end - begin));
}

static void outer_items(void *arg, int64_t begin, int64_t end)
{
    nest *all = arg;
    for (int64_t i = begin; i < end; ++i) {
        nest_row row = {.all = all, .owner = pthread_self()};
        trn__parallel_for(all->t, 50, 1, inner_items, &row);
    }
}

static void nested_calls_stay_in_their_thread(void **state)
{
    (void)state;
    for (int e = 0; e < 3; ++e) {
        nest all = {.t = threads_new((trn__engine)e, 3)};
        if (all.t == NULL)
            continue;
        for (int i = 0; i < 20; ++i)
            trn__parallel_for(all.t, 8, 1, outer_items, &all);
        assert_int_equal(atomic_load(&all.n_items), 20 * 8 * 50);
        assert_int_equal(atomic_load(&all.n_moved), 0);
        trn__threads_destroy(all.t);
    }
}

static void add_items(void *arg, int64_t begin, int64_t end)
{
    int64_t *cell = arg; /* Written without atomics: each by one thread. */
    for (int64_t i = begin; i < end; ++i)
        cell[i] += i + 1;
}

static void short_calls(trn__threads *t, int n_calls)
{
    int64_t cell[4] = {0};
    for (int i = 0; i < n_calls; ++i)
        trn__parallel_for(t, 4, 1, add_items, cell);
    for (int i = 0; i < 4; ++i)
        assert_int_equal(cell[i], (int64_t)n_calls * (i + 1));
}

static void many_short_calls_lose_no_work(void **state)
{
    trn__threads *t = threads_new(TRN__ENGINE_POOL, 2);
    (void)state;
    short_calls(t, 20000);
    trn__threads_destroy(t);
    t = threads_new(TRN__ENGINE_POOL, 5);
    short_calls(t, 2000);
    trn__threads_destroy(t);
    t = threads_new(TRN__ENGINE_HOST, 2);
    short_calls(t, 2000);
    trn__threads_destroy(t);
}

static void sleeping_workers_wake_up(void **state)
{
    trn__threads *t = threads_new(TRN__ENGINE_POOL, 3);
    (void)state;
    for (int i = 0; i < 50; ++i) {
        short_calls(t, 2);
        usleep(300);
    }
    trn__threads_destroy(t);
}

/* Passes only when a second thread comes to the aid of the first. */
static void meet(void *arg, int64_t begin, int64_t end)
{
    atomic_int *n_here = arg;
    atomic_fetch_add(n_here, (int)(end - begin));
    while (atomic_load(n_here) < 3)
        usleep(10);
}

static void chunks_run_at_the_same_time(void **state)
{
    trn__threads *t = threads_new(TRN__ENGINE_POOL, 3);
    (void)state;
    for (int i = 0; i < 20; ++i) {
        atomic_int n_here = 0;
        trn__parallel_for(t, 3, 1, meet, &n_here);
    }
    trn__threads_destroy(t);
}

static void *drive_a_pool(void *arg)
{
    int64_t cell[4] = {0};
    for (int i = 0; i < 3000; ++i)
        trn__parallel_for(arg, 4, 1, add_items, cell);
    return (void *)(intptr_t)(cell[0] == 3000 && cell[3] == 12000);
}

static void two_pools_in_two_threads_do_not_meet(void **state)
{
    pthread_t thread[2];
    trn__threads *t[2];
    (void)state;
    for (int i = 0; i < 2; ++i) {
        t[i] = threads_new(TRN__ENGINE_POOL, 2 + i);
        pthread_create(&thread[i], NULL, drive_a_pool, t[i]);
    }
    for (int i = 0; i < 2; ++i) {
        void *fine = NULL;
        pthread_join(thread[i], &fine);
        assert_non_null(fine);
        trn__threads_destroy(t[i]);
    }
}

static void destroying_an_unused_or_fresh_pool_is_clean(void **state)
{
    (void)state;
    for (int i = 0; i < 50; ++i) {
        trn__threads *t = threads_new(TRN__ENGINE_POOL, 3);
        if (i % 2)
            short_calls(t, 1);
        trn__threads_destroy(t);
    }
    assert_int_equal(n_blocks, 0);
}

static void a_failed_allocation_gives_null_and_no_leak(void **state)
{
    trn__threads *t = NULL;
    (void)state;
    for (int i = 0; t == NULL; ++i) {
        fail_after = i;
        t = threads_new(TRN__ENGINE_POOL, 4);
        fail_after = -1;
        assert_true(t != NULL || n_blocks == 0);
        assert_true(i < 10);
    }
    trn__threads_destroy(t);
    assert_int_equal(n_blocks, 0);
}

static void look_at_signals(void *arg, int64_t begin, int64_t end)
{
    nest *all = arg;
    sigset_t now;
    (void)begin;
    (void)end;
    atomic_fetch_add(&all->n_items, 1);
    while (atomic_load(&all->n_items) < 2)
        usleep(10);
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    if (sigismember(&now, SIGUSR1) && sigismember(&now, SIGTERM))
        atomic_fetch_add(&all->n_moved, 1);
}

static void workers_block_signals_and_the_caller_does_not(void **state)
{
    nest all = {.t = threads_new(TRN__ENGINE_POOL, 2)};
    sigset_t now;
    (void)state;
    trn__parallel_for(all.t, 2, 1, look_at_signals, &all);
    assert_int_equal(atomic_load(&all.n_moved), 1);
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    assert_false(sigismember(&now, SIGUSR1));
    trn__threads_destroy(all.t);
}

#ifdef __SSE__
static void look_at_modes(void *arg, int64_t begin, int64_t end)
{
    atomic_int *n_wrong = arg;
    volatile float tiny = 1e-39f;
    volatile float half = tiny * 0.5f; /* 0 where subnormals are flushed */
    volatile double three = 3.0;
    volatile double third = 1.0 / three; /* more when rounded up */
    (void)begin;
    (void)end;
    if (!trn__fp_is_default() || half <= 0.0f || third > 0.33333333333333332)
        atomic_fetch_add(n_wrong, 1);
}

static void modes_of_the_caller_do_not_reach_the_job(void **state)
{
    /* Round up, FTZ, DAZ, all masked, and one sticky flag. */
    const unsigned odd = 0x1F80u | 0x4000u | 0x8000u | 0x0040u | 0x0004u;
    (void)state;
    for (int e = 0; e < 3; ++e) {
        for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
            atomic_int n_wrong = 0;
            unsigned before = _mm_getcsr();
            unsigned after;
            trn__threads *t = threads_new((trn__engine)e, n_threads);
            if (t == NULL)
                continue;
            _mm_setcsr(odd);
            trn__parallel_for(t, 40, 1, look_at_modes, &n_wrong);
            trn__parallel_for(t, 1, 1, look_at_modes, &n_wrong);
            after = _mm_getcsr();
            _mm_setcsr(before);
            assert_int_equal(after, odd);
            assert_int_equal(atomic_load(&n_wrong), 0);
            trn__threads_destroy(t);
        }
    }
}
#endif

#ifdef _OPENMP
static void works_inside_a_region_of_the_caller(void **state)
{
    int n_wrong = 0;
    (void)state;
#pragma omp parallel num_threads(2) reduction(+ : n_wrong)
    {
        for (int e = 0; e < 2; ++e) {
            int64_t cell[4] = {0};
            trn__threads_config cfg = {
                .n_threads = 3,
                .engine = (trn__engine)e,
                .alloc = test_alloc,
                .dealloc = test_dealloc,
            };
            trn__threads *t;
#pragma omp critical
            t = trn__threads_create(&cfg);
            for (int i = 0; i < 100; ++i)
                trn__parallel_for(t, 4, 1, add_items, cell);
            n_wrong += cell[0] != 100 || cell[3] != 400;
#pragma omp critical
            trn__threads_destroy(t);
        }
    }
    assert_int_equal(n_wrong, 0);
}
#endif

/* In a child, as the limit on threads can't be raised again. */
static void threads_that_cannot_start_are_done_without(void **state)
{
    int status = 0;
    pid_t child = fork();
    (void)state;
    if (child == 0) {
        struct rlimit none = {0, 0};
        int64_t cell[4] = {0};
        trn__threads *t = threads_new(TRN__ENGINE_POOL, 4);
        bool limited = geteuid() != 0 || setuid(65534) == 0;
        setrlimit(RLIMIT_NPROC, &none);
        for (int i = 0; i < 10 && limited && t != NULL; ++i)
            trn__parallel_for(t, 4, 1, add_items, cell);
        trn__threads_destroy(t);
        _exit(!limited || (cell[0] == 10 && cell[3] == 40) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_that_cannot_start_are_done_without),
        cmocka_unit_test(pool_visits_every_item_once),
        cmocka_unit_test(openmp_visits_every_item_once),
        cmocka_unit_test(host_visits_every_item_once),
        cmocka_unit_test(host_is_given_the_number_of_chunks),
        cmocka_unit_test(engines_have_names_and_host_needs_a_function),
        cmocka_unit_test(nested_calls_stay_in_their_thread),
        cmocka_unit_test(many_short_calls_lose_no_work),
        cmocka_unit_test(sleeping_workers_wake_up),
        cmocka_unit_test(chunks_run_at_the_same_time),
        cmocka_unit_test(two_pools_in_two_threads_do_not_meet),
        cmocka_unit_test(destroying_an_unused_or_fresh_pool_is_clean),
        cmocka_unit_test(a_failed_allocation_gives_null_and_no_leak),
        cmocka_unit_test(workers_block_signals_and_the_caller_does_not),
#ifdef __SSE__
        cmocka_unit_test(modes_of_the_caller_do_not_reach_the_job),
#endif
#ifdef _OPENMP
        cmocka_unit_test(works_inside_a_region_of_the_caller),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
