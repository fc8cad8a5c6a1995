/* SPDX-License-Identifier: Apache-2.0
 *
 * The frame of every test of the library; see harness.h.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"

static _Atomic int64_t bytes_held, allocations_left;
static char log_text[4096];

static void *counted_alloc(void *user, size_t bytes)
{
    (void)user;
    if (atomic_load(&allocations_left) >= 0 &&
        atomic_fetch_sub(&allocations_left, 1) <= 0) {
        atomic_store(&allocations_left, 0);
        return NULL;
    }
    void *memory = malloc(bytes);
    if (memory != NULL)
        atomic_fetch_add(&bytes_held, (int64_t)bytes);
    return memory;
}

static void counted_free(void *user, void *memory, size_t bytes)
{
    (void)user;
    if (memory != NULL)
        atomic_fetch_sub(&bytes_held, (int64_t)bytes);
    free(memory);
}

static void keep_line(void *user, trn_log_level level, const char *text)
{
    (void)user;
    (void)level;
    size_t used = strlen(log_text);
    snprintf(log_text + used, sizeof log_text - used, "%s\n", text);
}

trn_context *harness_open(const char *isa, int n_threads, trn_engine engine)
{
    trn_context *c;
    trn_options o = TRN_OPTIONS_INIT;
    o.cpu_isa = isa;
    o.n_threads = n_threads;
    o.engine = (uint32_t)engine;
    o.alloc = counted_alloc;
    o.free = counted_free;
    o.log = keep_line;
    trn_status status = trn_open(&c, &o);
    CHECK(status == TRN_OK, "%s\n", trn_errmsg(c));
    return c;
}

void harness_close(trn_context *c)
{
    harness_ok(c);
    assert_int_equal(trn_close(c), TRN_OK);
}

int harness_setup(void **state)
{
    atomic_store(&bytes_held, 0);
    atomic_store(&allocations_left, -1);
    log_text[0] = '\0';
    *state = harness_open(NULL, 2, TRN_ENGINE_AUTO);
    return 0;
}

int harness_teardown(void **state)
{
    atomic_store(&allocations_left, -1);
    trn_clear(*state);
    trn_close(*state);
    int64_t held = atomic_load(&bytes_held);
    if (held == 0)
        return 0;
    print_error("%lld bytes were not given back\n", (long long)held);
    return -1;
}

int64_t harness_bytes(void)
{
    return atomic_load(&bytes_held);
}

const char *harness_log(void)
{
    return log_text;
}

void harness_fail_after(int64_t n)
{
    atomic_store(&allocations_left, n);
}

void harness_ok(trn_context *c)
{
    CHECK(trn_errcode(c) == TRN_OK, "%s: %s\n", trn_status_name(trn_errcode(c)),
          trn_errmsg(c));
}

void harness_error(trn_context *c, trn_status status, const char *part)
{
    CHECK(trn_errcode(c) == status, "expected %s, found %s: %s\n",
          trn_status_name(status), trn_status_name(trn_errcode(c)),
          trn_errmsg(c));
    CHECK(strstr(trn_errmsg(c), part) != NULL, "\"%s\" is not in \"%s\"\n",
          part, trn_errmsg(c));
    trn_clear(c);
}

trn_tensor *harness_f64(trn_context *c, int rank, const int64_t *shape,
                        const double *data)
{
    trn_tensor *t = trn_tensor_from(c, TRN_F64, rank, shape, data);
    harness_ok(c);
    assert_non_null(t);
    return t;
}

trn_tensor *harness_i32(trn_context *c, int rank, const int64_t *shape,
                        const int32_t *data)
{
    trn_tensor *t = trn_tensor_from(c, TRN_I32, rank, shape, data);
    harness_ok(c);
    assert_non_null(t);
    return t;
}

trn_tensor *harness_vector(trn_context *c, int n, ...)
{
    double data[16];
    int64_t shape[1] = {n};
    assert_in_range(n, 0, 16);
    va_list args;
    va_start(args, n);
    for (int i = 0; i < n; i++)
        data[i] = va_arg(args, double);
    va_end(args);
    return harness_f64(c, 1, shape, data);
}

void *harness_bytes_of(trn_tensor *t, size_t *n_bytes)
{
    assert_non_null(t);
    size_t n =
        (size_t)trn_tensor_numel(t) * trn_dtype_size(trn_tensor_dtype(t));
    void *data = malloc(n + 1);
    assert_non_null(data);
    trn_tensor_read(t, data, n);
    harness_ok(trn_tensor_context(t));
    if (n_bytes != NULL)
        *n_bytes = n;
    return data;
}

long double harness_at(trn_tensor *t, int64_t i)
{
    assert_non_null(t);
    CHECK(i >= 0 && i < trn_tensor_numel(t), "there is no element %lld\n",
          (long long)i);
    void *data = harness_bytes_of(t, NULL);
    long double v = dtype_get(trn_tensor_dtype(t), data, i);
    free(data);
    return v;
}

void harness_equal(trn_tensor *t, int n, ...)
{
    assert_non_null(t);
    assert_int_equal(trn_tensor_numel(t), n);
    va_list args;
    va_start(args, n);
    for (int i = 0; i < n; i++) {
        double want = va_arg(args, double);
        long double got = harness_at(t, i);
        bool same = (long double)want == got || (want != want && got != got);
        CHECK(same, "element %d is %.17Lg, expected %.17g\n", i, got, want);
    }
    va_end(args);
}

uint64_t harness_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

double harness_uniform(uint64_t *state, double low, double high)
{
    return low + (high - low) * (double)(harness_random(state) >> 11) * 0x1p-53;
}
