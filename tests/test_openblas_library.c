/* SPDX-License-Identifier: Apache-2.0
 *
 * Which library the option "matmul" loads, and how it is called: by a false
 * OpenBLAS, which notes that (tests/plugins/fake_openblas.h).
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness.h"
#include "cut_copy.h"
#include "plugin_path.h"
#include "backends/cpu/cpu_blas.h"
#include "libtrn/context/context.h"

/* As fake_openblas.h has it, whose names are those of the real one. */
typedef struct notes {
    int calls, at_once, least_threads, most_threads;
} notes;

typedef struct fake {
    char options[4600];
    void (*ask)(notes *out);
    int (*get)(void);
    void (*set)(int n);
    int (*omp_get)(void);
} fake;

static bool built_with_openblas(void)
{
    bool present = false;
    const char *name;
    for (int i = 0; (name = trn_build_part(i, &present)) != NULL; i++) {
        if (strcmp(name, "openblas") == 0)
            return present;
    }
    fail_msg("openblas is no part of a build");
    return false;
}

static void need_openblas(void)
{
    if (!built_with_openblas()) {
        print_message("built without OpenBLAS\n");
        skip();
    }
}

static void symbol(void *object, const char *name, void *to)
{
    void *s = dlsym(object, name);
    memcpy(to, &s, sizeof s);
}

static fake load(const char *file)
{
    fake f;
    notes old;
    need_openblas();
    const char *path = plugin_path(file);
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(object);
    snprintf(f.options, sizeof f.options, "matmul=openblas;openblas_library=%s",
             path);
    symbol(object, "fake_openblas_ask", &f.ask);
    symbol(object, "openblas_get_num_threads", &f.get);
    symbol(object, "openblas_set_num_threads", &f.set);
    symbol(object, "omp_get_max_threads", &f.omp_get);
    f.ask(&old);
    f.set(5);
    /* It stays loaded, as for the library. */
    /* cppcheck-suppress resourceLeak */
    return f;
}

static trn_context *open_with(const char *options, int n_threads)
{
    trn_context *c;
    trn_options o = TRN_OPTIONS_INIT;
    o.device_options = options;
    o.n_threads = n_threads;
    o.engine = TRN_ENGINE_POOL;
    const trn_status status = trn_open(&c, &o);
    CHECK(status == TRN_OK, "%s: %s\n", options, trn_errmsg(c));
    return c;
}

static void refused(const char *options, trn_status status, const char *part)
{
    trn_context *c;
    trn_options o = TRN_OPTIONS_INIT;
    o.device_options = options;
    assert_int_equal(trn_open(&c, &o), status);
    CHECK(strstr(trn_errmsg(c), part) != NULL, "no \"%s\" in: %s\n", part,
          trn_errmsg(c));
    assert_int_equal(trn_close(c), status);
}

/* a[i, p] = i - p, b[p, j] = p + 2 j, so all sums are whole numbers. */
static trn_tensor *counted(trn_context *c, trn_dtype dtype, int64_t batch,
                           int64_t rows, int64_t columns, int row, int column)
{
    const int64_t shape[] = {batch, rows, columns};
    const int64_t n = batch * rows * columns;
    double *data = malloc((size_t)n * sizeof *data);
    assert_non_null(data);
    for (int64_t i = 0; i < n; i++)
        data[i] =
            (double)(i / columns % rows % 7 * row + i % columns % 5 * column);
    trn_tensor *x = trn_cast(harness_f64(c, 3, shape, data), dtype);
    free(data);
    assert_non_null(x);
    return x;
}

/* The same product by the kernels of another context. */
static void check_product(trn_context *c, trn_dtype dtype, int64_t batch,
                          int64_t m, int64_t n, int64_t k)
{
    trn_context *other = open_with("matmul=reproducible", 1);
    trn_tensor *y[2];
    trn_context *in[2] = {c, other};
    for (int i = 0; i < 2; i++) {
        y[i] = trn_matmul(counted(in[i], dtype, batch, m, k, 1, -1),
                          counted(in[i], dtype, batch, k, n, 1, 2));
        harness_ok(in[i]);
    }
    void *got = harness_bytes_of(y[0], NULL);
    void *want = harness_bytes_of(y[1], NULL);
    const int64_t at = dtype_differ(dtype, got, want, batch * m * n);
    CHECK(at < 0, "%s: element %d is another\n", trn_dtype_name(dtype),
          (int)at);
    free(got);
    free(want);
    trn_close(other);
}

static void the_library_computes_with_one_thread_in_each_of_ours(void **state)
{
    (void)state;
    const fake f = load("fake_openblas_threads.so");
    for (int n_threads = 1; n_threads <= 7; n_threads += 2) {
        trn_context *c = open_with(f.options, n_threads);
        notes seen;
        check_product(c, TRN_F32, 1, 300, 96, 30);
        check_product(c, TRN_F64, 1, 31, 400, 57);
        check_product(c, TRN_F32, 20, 50, 60, 70);
        f.ask(&seen);
        CHECK(seen.calls >= 22, "%d calls\n", seen.calls);
        assert_int_equal(seen.least_threads, 1);
        assert_int_equal(seen.most_threads, 1);
        CHECK(seen.at_once <= n_threads, "%d threads, %d calls at once\n",
              n_threads, seen.at_once);
        assert_true(n_threads == 1 || seen.at_once > 1);
        assert_int_equal(f.get(), 5);
        trn_close(c);
    }
}

static void *train(void *arg)
{
    trn_context *c = open_with(arg, 3);
    for (int i = 0; i < 5; i++)
        check_product(c, TRN_F32, 1, 200, 60, 40);
    trn_close(c);
    return NULL;
}

static void contexts_at_once_do_not_wait_and_leave_the_number(void **state)
{
    (void)state;
    fake f = load("fake_openblas_threads.so");
    pthread_t other;
    notes seen;
    assert_int_equal(pthread_create(&other, NULL, train, f.options), 0);
    train(f.options);
    assert_int_equal(pthread_join(other, NULL), 0);
    f.ask(&seen);
    assert_int_equal(seen.most_threads, 1);
    assert_int_equal(f.get(), 5);
}

static void what_the_host_sets_meanwhile_stays(void **state)
{
    (void)state;
    const fake f = load("fake_openblas_threads.so");
    trn_context *c = open_with(f.options, 2);
    trn__blas *blas = c->device->blas;
    trn__blas_enter(blas, 2);
    assert_int_equal(f.get(), 1);
    f.set(9);
    trn__blas_leave(blas);
    assert_int_equal(f.get(), 9);
    trn__blas_enter(blas, 2);
    f.set(8);
    trn__blas_enter(blas, 2); /* of another context */
    assert_int_equal(f.get(), 1);
    trn__blas_leave(blas);
    assert_int_equal(f.get(), 1);
    trn__blas_leave(blas);
    assert_int_equal(f.get(), 8);
    trn_close(c);
}

static void a_library_without_threads_is_called_once_at_a_time(void **state)
{
    (void)state;
    fake f = load("fake_openblas_serial.so");
    pthread_t other;
    notes seen;
    assert_int_equal(pthread_create(&other, NULL, train, f.options), 0);
    train(f.options);
    assert_int_equal(pthread_join(other, NULL), 0);
    f.ask(&seen);
    assert_int_equal(seen.calls, 10);
    assert_int_equal(seen.at_once, 1);
    trn_context *c = open_with(f.options, 3);
    check_product(c, TRN_F64, 20, 50, 60, 70);
    f.ask(&seen);
    assert_int_equal(seen.at_once, 1);
    trn_close(c);
}

static void a_library_on_openmp_gets_the_number_of_the_context(void **state)
{
    (void)state;
    const fake f = load("fake_openblas_openmp.so");
    notes seen;
    trn_context *c = open_with(f.options, 3);
    check_product(c, TRN_F32, 1, 300, 96, 30);
    f.ask(&seen);
    assert_int_equal(seen.calls, 1);
    assert_int_equal(seen.least_threads, 3);
    assert_int_equal(seen.most_threads, 3);
    assert_int_equal(f.get(), 5);
    assert_int_equal(f.omp_get(), 6);
    trn_close(c);
}

/* A factor with steps between the elements of a row, or with one row for all:
 * BLAS cannot be told of it. */
static void what_it_cannot_take_is_left_to_the_kernels(void **state)
{
    (void)state;
    static const trn_dtype others[] = {TRN_BF16, TRN_F16, TRN_I32};
    const fake f = load("fake_openblas_threads.so");
    trn_context *c = open_with(f.options, 3);
    notes seen;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        check_product(c, others[i], 1, 90, 80, 70);
    const int64_t wide[] = {40, 30};
    trn_tensor *x = trn_reshape(counted(c, TRN_F32, 1, 40, 60, 1, 1), 2,
                                (int64_t[]){40, 60});
    trn_tensor *steps = trn_slice(x, 1, 0, 60, 2);
    trn_tensor *one = trn_full(c, TRN_F32, 1, (int64_t[]){1}, 2.0);
    trn_tensor *same = trn_expand(one, 2, wide);
    assert_non_null(trn_matmul_trans(steps, steps, false, true));
    assert_non_null(trn_matmul_trans(same, same, false, true));
    harness_ok(c);
    f.ask(&seen);
    assert_int_equal(seen.calls, 0);
    trn_tensor *rows = trn_slice(x, 0, 0, 40, 3);
    trn_tensor *y = trn_matmul_trans(rows, rows, false, true);
    harness_ok(c);
    f.ask(&seen);
    assert_int_equal(seen.calls, 1); /* rows may be apart */
    for (int64_t i = 0; i < 14; i++) {
        trn_tensor *row = trn_slice(rows, 0, i, i + 1, 1);
        trn_tensor *first = trn_slice(rows, 0, 0, 1, 1);
        trn_tensor *sum = trn_sum(trn_mul(row, first), TRN_ALL_AXES, false);
        const long double got = harness_at(y, 14 * i),
                          want = harness_at(sum, 0);
        CHECK(got == want, "row %d: %Lg, not %Lg\n", (int)i, got, want);
    }
    trn_close(c);
}

static void wrong_libraries_are_refused_with_what_was_tried(void **state)
{
    (void)state;
    char options[4800], cut[] = "/tmp/trn-blas-XXXXXX";
    need_openblas();
    refused("matmul=openblas;openblas_library=/nonexistent",
            TRN_ERR_UNSUPPORTED, "tried the library /nonexistent: ");
    refused("matmul=openblas;openblas_library=/nonexistent",
            TRN_ERR_UNSUPPORTED, "openblas_library (TRN_OPENBLAS_LIBRARY)");
    refused("matmul=openblas;openblas_library=/tmp", TRN_ERR_UNSUPPORTED,
            "/tmp: is not a regular file");
    refused("matmul=openblas;openblas_library=libm.so.6", TRN_ERR_UNSUPPORTED,
            "libm.so.6: it does not export what OpenBLAS does");
    snprintf(options, sizeof options, "matmul=openblas;openblas_library=%s",
             plugin_path("fake_openblas_wide.so"));
    refused(options, TRN_ERR_UNSUPPORTED, "its integers have 64 bits");
    const int fd = mkstemp(cut);
    assert_true(fd >= 0);
    close(fd);
    harness_cut_copy(plugin_path("fake_openblas_wide.so"), cut);
    snprintf(options, sizeof options, "matmul=openblas;openblas_library=%s",
             cut);
    refused(options, TRN_ERR_UNSUPPORTED, "is cut off");
    unlink(cut);
}

static void wrong_values_are_refused(void **state)
{
    (void)state;
    static const char expected[] = "expected reproducible or openblas";
    refused("matmul=fast", TRN_ERR_ARG, "matmul (TRN_MATMUL) is \"fast\"; ");
    refused("matmul=OpenBLAS", TRN_ERR_ARG, expected);
    refused("matmul=", TRN_ERR_ARG, expected);
    assert_int_equal(setenv("TRN_MATMUL", "fast", 1), 0);
    refused(NULL, TRN_ERR_ARG, expected);
    unsetenv("TRN_MATMUL");
}

static void an_option_beats_its_variable(void **state)
{
    (void)state;
    trn_context *c;
    assert_int_equal(setenv("TRN_MATMUL", "openblas", 1), 0);
    assert_int_equal(setenv("TRN_OPENBLAS_LIBRARY", "/nonexistent", 1), 0);
    c = open_with("matmul=reproducible", 1);
    assert_true(trn_reproducible(c));
    trn_close(c);
    if (built_with_openblas()) {
        const fake f = load("fake_openblas_threads.so");
        refused(NULL, TRN_ERR_UNSUPPORTED, "/nonexistent");
        refused("pjrt_timeout=7", TRN_ERR_UNSUPPORTED, "/nonexistent");
        refused("a=1;b=;", TRN_ERR_UNSUPPORTED, "/nonexistent");
        assert_int_equal(setenv("TRN_MATMUL", "reproducible", 1), 0);
        c = open_with(f.options, 1);
        assert_false(trn_reproducible(c));
        trn_close(c);
    }
    unsetenv("TRN_MATMUL");
    unsetenv("TRN_OPENBLAS_LIBRARY");
}

static void a_context_says_that_it_is_not_reproducible(void **state)
{
    static const char name[] = "matmul by OpenBLAS 1.2.3 Paper";
    char text[200];
    const fake f = load("fake_openblas_threads.so");
    assert_true(trn_reproducible(*state));
    assert_false(trn_reproducible(NULL));
    assert_null(strstr(harness_log(), "OpenBLAS"));
    assert_int_equal(setenv("TRN_DEVICE_OPTIONS", f.options, 1), 0);
    trn_context *c = harness_open("generic", 2, TRN_ENGINE_POOL);
    unsetenv("TRN_DEVICE_OPTIONS");
    assert_false(trn_reproducible(c));
    snprintf(text, sizeof text, GENERIC_SET ", %s: not reproducible", name);
    assert_string_equal(trn_device_description(c), text);
    assert_non_null(strstr(harness_log(), name));
    harness_close(c);
}

/* What devices run by reference_op stays what it is. */
static void the_loop_device_keeps_the_kernels(void **state)
{
    (void)state;
    trn_options o = TRN_OPTIONS_INIT;
    trn_context *c;
    o.device = "loop";
    assert_int_equal(setenv("TRN_MATMUL", "openblas", 1), 0);
    trn_status status = trn_open(&c, &o);
    unsetenv("TRN_MATMUL");
    CHECK(status == TRN_OK, "%s\n", trn_errmsg(c));
    assert_true(trn_reproducible(c));
    assert_null(strstr(trn_device_description(c), "OpenBLAS"));
    trn_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(the_library_computes_with_one_thread_in_each_of_ours),
        TRN_TEST(contexts_at_once_do_not_wait_and_leave_the_number),
        TRN_TEST(what_the_host_sets_meanwhile_stays),
        TRN_TEST(a_library_without_threads_is_called_once_at_a_time),
        TRN_TEST(a_library_on_openmp_gets_the_number_of_the_context),
        TRN_TEST(what_it_cannot_take_is_left_to_the_kernels),
        TRN_TEST(wrong_libraries_are_refused_with_what_was_tried),
        TRN_TEST(wrong_values_are_refused),
        TRN_TEST(an_option_beats_its_variable),
        TRN_TEST(a_context_says_that_it_is_not_reproducible),
        TRN_TEST(the_loop_device_keeps_the_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
