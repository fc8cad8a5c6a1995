/* SPDX-License-Identifier: Apache-2.0
 *
 * Floating-point modes that foreign code leaves behind in a thread: the next
 * chunk, job or op has the default ones all the same.
 */
#include "harness.h"

#ifdef __SSE__
#include <immintrin.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "libtrn/context/threads.h"
#include "tests/threads_memory.h"

/* Round up, FTZ, DAZ, all masked. */
#define ODD_MODES 0xDFC0u

/* A hook whose thread has other modes before each chunk but the first. */
static void host_loop(void *user, int64_t n_chunks,
                      void (*fn)(void *arg, int64_t chunk), void *arg)
{
    (void)user;
    for (int64_t i = 0; i < n_chunks; i++) {
        fn(arg, i);
        _mm_setcsr(ODD_MODES);
    }
}

typedef struct seen {
    atomic_int n_chunks, n_wrong;
} seen;

/* As a device's kernel, or a library that it calls, that sets its own modes. */
static void look_and_leave_modes(void *arg, int64_t begin, int64_t end)
{
    seen *s = arg;
    volatile float tiny = 1e-39f;
    volatile float half = tiny * 0.5f; /* 0 where subnormals are flushed */
    atomic_fetch_add(&s->n_chunks, (int)(end - begin));
    if (!trn__fp_is_default() || half <= 0.0f)
        atomic_fetch_add(&s->n_wrong, 1);
    _mm_setcsr(ODD_MODES);
}

static void check_engine(trn__engine engine, unsigned modes)
{
    for (int n_threads = 1; n_threads <= 7; n_threads += 2) {
        seen s = {0};
        const unsigned before = _mm_getcsr();
        trn__threads_config config = {
            .n_threads = n_threads,
            .engine = engine,
            .host_parallel_for = host_loop,
            .alloc = test_alloc,
            .dealloc = test_dealloc,
        };
        trn__threads *t = trn__threads_create(&config);
        assert_non_null(t);
        unsigned after = modes;
        for (int job = 0; job < 50; job++) {
            _mm_setcsr(modes);
            trn__parallel_for(t, 20, 1, look_and_leave_modes, &s);
            if (engine !=
                TRN__ENGINE_HOST) /* its loop left others on purpose */
                after = _mm_getcsr();
            _mm_setcsr(before);
            assert_int_equal(after & ~0x3Fu, modes & ~0x3Fu);
        }
        trn__threads_destroy(t);
        assert_int_equal(atomic_load(&s.n_chunks), 50 * 20);
        assert_int_equal(atomic_load(&s.n_wrong), 0);
    }
}

static void modes_left_in_the_pool_reach_no_other_chunk(void **state)
{
    (void)state;
    check_engine(TRN__ENGINE_POOL, 0x1F80u);
    check_engine(TRN__ENGINE_POOL, ODD_MODES);
}

static void modes_left_in_openmp_reach_no_other_chunk(void **state)
{
    (void)state;
    if (!trn__openmp_available()) {
        print_message("this build has no OpenMP\n");
        skip();
    }
    check_engine(TRN__ENGINE_OPENMP, 0x1F80u);
    check_engine(TRN__ENGINE_OPENMP, ODD_MODES);
}

static void modes_left_in_threads_of_the_host_reach_no_other_chunk(void **state)
{
    (void)state;
    check_engine(TRN__ENGINE_HOST, 0x1F80u);
    check_engine(TRN__ENGINE_HOST, ODD_MODES);
}

static trn_tensor *leave_modes(trn_module *m, trn_tensor *x, void *user)
{
    (void)m;
    (void)user;
    _mm_setcsr(ODD_MODES);
    return trn_mul_scalar(x, 0.5);
}

enum { N_ELEMENTS = 100000 };

/* Subnormals halved, behind a forward function that leaves modes on. */
static void run_custom_module(trn_context *c, float *out)
{
    const unsigned before = _mm_getcsr();
    static float data[N_ELEMENTS];
    for (int i = 0; i < N_ELEMENTS; i++)
        data[i] = (float)(i + 1) * 0x1p-145f;
    const int64_t n = N_ELEMENTS;
    trn_tensor *x = trn_tensor_from(c, TRN_F32, 1, &n, data);
    trn_module *m = trn_nn_custom(c, leave_modes, NULL);
    trn_step_begin(c);
    trn_tensor *y = trn_keep(trn_add(trn_nn_forward(m, x), x));
    trn_step_end(c);
    trn_tensor_read(y, out, sizeof data);
    _mm_setcsr(before);
    harness_ok(c);
}

static void modes_left_by_a_users_module_change_no_bits(void **state)
{
    (void)state;
    static float out[N_ELEMENTS];
    for (int e = TRN_ENGINE_POOL; e <= TRN_ENGINE_OPENMP; e++) {
        if (e == TRN_ENGINE_OPENMP && !trn__openmp_available())
            continue;
        for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
            trn_context *c = harness_open(NULL, n_threads, (trn_engine)e);
            run_custom_module(c, out);
            harness_close(c);
            for (int i = 0; i < N_ELEMENTS; i++) {
                /* exact: 2^-145 is 16 of the smallest units */
                const float want = (float)(i + 1) * 0x1.8p-145f;
                CHECK(out[i] >= want && out[i] <= want, "%d: %a, not %a\n", i,
                      (double)out[i], (double)want);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modes_left_in_the_pool_reach_no_other_chunk),
        cmocka_unit_test(modes_left_in_openmp_reach_no_other_chunk),
        cmocka_unit_test(
            modes_left_in_threads_of_the_host_reach_no_other_chunk),
        TRN_TEST(modes_left_by_a_users_module_change_no_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    print_message("modes are set by x86 instructions here: not tested\n");
    return 0;
}
#endif
