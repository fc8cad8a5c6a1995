/* SPDX-License-Identifier: Apache-2.0
 *
 * Regions, between whose ends the pool's workers stay awake: the work is the
 * same, they nest, and nothing hangs or is left behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "libtrn/context/threads.h"
#include "tests/threads_memory.h"
#ifdef __SSE__
#include <xmmintrin.h>
#endif

static void host_for(void *user, int64_t n,
                     void (*fn)(void *arg, int64_t chunk), void *arg)
{
    (void)user;
    for (int64_t i = 0; i < n; i++)
        fn(arg, i);
}

static trn__threads *threads_new(trn__engine e, int n_threads)
{
    trn__threads_config cfg = {
        .n_threads = n_threads,
        .engine = e,
        .host_parallel_for = host_for,
        .alloc = test_alloc,
        .dealloc = test_dealloc,
    };
    return trn__threads_create(&cfg);
}

static void add_range(void *arg, int64_t begin, int64_t end)
{
    _Atomic int64_t *sum = arg;
    for (int64_t i = begin; i < end; i++)
        atomic_fetch_add(sum, i);
}

static void check_sum(trn__threads *t)
{
    _Atomic int64_t sum = 0;
    trn__parallel_for(t, 1000, 10, add_range, &sum);
    assert_int_equal(atomic_load(&sum), 999 * 500);
}

static void work_in_a_region_is_that_of_any_time(void **state)
{
    static const int n_threads[] = {1, 2, 3, 7};
    (void)state;
    for (int e = TRN__ENGINE_POOL; e <= TRN__ENGINE_HOST; e++) {
        if (trn__engine_missing((trn__engine)e) != NULL)
            continue;
        for (int k = 0; k < 4; k++) {
            trn__threads *t = threads_new((trn__engine)e, n_threads[k]);
            assert_non_null(t);
            check_sum(t);
            trn__region_begin(t);
            for (int i = 0; i < 50; i++)
                check_sum(t);
            trn__region_begin(t); /* nests */
            check_sum(t);
            trn__region_end(t);
            check_sum(t);
            trn__region_end(t);
            check_sum(t);
            trn__threads_destroy(t);
        }
    }
    trn__region_begin(NULL);
    trn__region_end(NULL);
}

/* Long enough for a worker outside of a region to fall asleep. */
static void rest(void)
{
    const struct timespec t = {.tv_nsec = 1000000};
    nanosleep(&t, NULL);
}

static void regions_wake_sleepers_and_let_them_sleep_again(void **state)
{
    (void)state;
    trn__threads *t = threads_new(TRN__ENGINE_POOL, 2);
    assert_non_null(t);
    for (int i = 0; i < 20; i++) {
        check_sum(t);
        rest();
        trn__region_begin(t);
        rest();
        check_sum(t);
        trn__region_end(t);
        rest();
        check_sum(t);
    }
    trn__threads_destroy(t);
}

static void region_before_the_first_call_and_an_open_one_are_clean(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        trn__threads *t = threads_new(TRN__ENGINE_POOL, 2);
        assert_non_null(t);
        trn__region_begin(t);
        if (i % 2 == 0)
            trn__region_end(t);
        trn__threads_destroy(t);
    }
}

#ifdef __SSE__
/* Both threads at once, so that the worker has part in it. */
static void look_at_modes(void *arg, int64_t begin, int64_t end)
{
    atomic_int *n = arg; /* items begun, items in wrong modes */
    (void)begin;
    (void)end;
    atomic_fetch_add(&n[0], 1);
    while (atomic_load(&n[0]) < 2)
        sched_yield();
    atomic_fetch_add(&n[1], !trn__fp_is_default());
}

/* The begin of a region starts threads, which take over the caller's modes. */
static void each_thread_works_in_the_default_modes(void **state)
{
    const unsigned before = _mm_getcsr();
    (void)state;
    for (int region = 0; region < 2; region++) {
        atomic_int n[2] = {0, 0};
        trn__threads *t = threads_new(TRN__ENGINE_POOL, 2);
        assert_non_null(t);
        _mm_setcsr(0xdfc0u); /* round up, FTZ, DAZ */
        if (region)
            trn__region_begin(t);
        trn__parallel_for(t, 2, 1, look_at_modes, n);
        if (region)
            trn__region_end(t);
        _mm_setcsr(before);
        assert_int_equal(atomic_load(&n[1]), 0);
        trn__threads_destroy(t);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef __SSE__
        cmocka_unit_test(each_thread_works_in_the_default_modes),
#endif
        cmocka_unit_test(work_in_a_region_is_that_of_any_time),
        cmocka_unit_test(regions_wake_sleepers_and_let_them_sleep_again),
        cmocka_unit_test(
            region_before_the_first_call_and_an_open_one_are_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
