/* SPDX-License-Identifier: Apache-2.0
 *
 * The frame of every test of the library: a context that counts its memory and
 * keeps its log lines, opened before the test and closed after it.
 *
 * At the end each byte that any context of the test took must be back.  The
 * context of the test is *state; further ones come from harness_open().
 */
#ifndef TRN_TESTS_HARNESS_H
#define TRN_TESTS_HARNESS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdbool.h>
#include <string.h>
#include <cmocka.h>

#include "generic_set.h"
#include "trn.h"

int harness_setup(void **state);
int harness_teardown(void **state);

#define TRN_TEST(name) \
    cmocka_unit_test_setup_teardown(name, harness_setup, harness_teardown)

/* One more context with counted memory; isa NULL: the best one.  The test
 * fails if it does not open. */
trn_context *harness_open(const char *isa, int n_threads, trn_engine engine);
/* Closes it; the test fails if an error was pending. */
void harness_close(trn_context *c);

/* Bytes that the contexts of this test hold at the moment. */
int64_t harness_bytes(void);
/* Log lines so far, one after the other, each with a newline. */
const char *harness_log(void);
/* Lets the allocation after the next n fail, and all after it; -1: none. */
void harness_fail_after(int64_t n);

/* Fails with the context's message if an error is pending. */
void harness_ok(trn_context *c);
/* Fails unless `status` is pending with `part` in its message; clears it. */
void harness_error(trn_context *c, trn_status status, const char *part);

/* Makers of tensors, which fail the test instead of giving NULL. */
trn_tensor *harness_f64(trn_context *c, int rank, const int64_t *shape,
                        const double *data);
trn_tensor *harness_i32(trn_context *c, int rank, const int64_t *shape,
                        const int32_t *data);
/* A vector of the n doubles that follow. */
trn_tensor *harness_vector(trn_context *c, int n, ...);
/* Element i in row-major order, of any type, exactly. */
long double harness_at(trn_tensor *t, int64_t i);
/* The tensor's elements as bytes, to be freed; n_bytes may be NULL. */
void *harness_bytes_of(trn_tensor *t, size_t *n_bytes);

/* Fails unless t has these n values. */
void harness_equal(trn_tensor *t, int n, ...);

/* ---- element types, without the library's help ---- */

bool dtype_is_float(trn_dtype dtype);
/* Element i of an array of that type, exactly. */
long double dtype_get(trn_dtype dtype, const void *data, int64_t i);
/* Stores v: floats rounded to nearest even, integers wrapped. */
void dtype_put(trn_dtype dtype, void *data, int64_t i, long double v);
/* v as that type holds it. */
long double dtype_round(trn_dtype dtype, long double v);
/* The distance of neighbours at v. */
long double dtype_ulp(trn_dtype dtype, long double v);
/* The lowest i at which two arrays differ in bits (a NaN equals a NaN), or
 * -1. */
int64_t dtype_differ(trn_dtype dtype, const void *a, const void *b, int64_t n);

/* SplitMix64: nothing that is tested makes the inputs. */
uint64_t harness_random(uint64_t *state);
/* Uniform in [low, high). */
double harness_uniform(uint64_t *state, double low, double high);

#define CHECK(condition, ...)                     \
    do {                                          \
        if (!(condition)) {                       \
            print_error(__VA_ARGS__);             \
            fail_msg("not true: %s", #condition); \
        }                                         \
    } while (0)

#endif
