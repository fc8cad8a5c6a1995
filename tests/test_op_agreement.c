/* SPDX-License-Identifier: Apache-2.0
 *
 * Every case gives the same bits on each set of kernels, with any number of
 * threads, on each engine, and in any layout of its inputs' memory.
 */
#include <stdlib.h>

#include "case_build.h"

static const trn_dtype dtypes[] = {TRN_F64, TRN_F32, TRN_BF16, TRN_F16,
                                   TRN_I32, TRN_I64, TRN_U8};
enum { N_DTYPES = 7 };

/* The bytes of what a run gave. */
typedef struct outputs {
    int n_out;
    trn_dtype dtype[CASE_MAX_OUT];
    int64_t n[CASE_MAX_OUT];
    void *bytes[CASE_MAX_OUT];
} outputs;

static void run(trn_context *c, const case_args *a, case_layout layout,
                outputs *r)
{
    trn_tensor *in[CASE_MAX_IN], *out[CASE_MAX_OUT];
    trn_step_begin(c);
    case_tensors(c, a, layout, in);
    r->n_out = case_apply(c, a, in, out);
    CHECK(r->n_out > 0, "%s: %s\n", case_text(a), trn_errmsg(c));
    for (int i = 0; i < r->n_out; i++) {
        r->dtype[i] = trn_tensor_dtype(out[i]);
        r->n[i] = trn_tensor_numel(out[i]);
        r->bytes[i] = harness_bytes_of(out[i], NULL);
    }
    harness_ok(c);
    trn_step_end(c);
}

static void drop(outputs *r)
{
    for (int i = 0; i < r->n_out; i++)
        free(r->bytes[i]);
}

static void compare(const case_args *a, const char *what, const outputs *want,
                    const outputs *got)
{
    assert_int_equal(want->n_out, got->n_out);
    for (int i = 0; i < want->n_out; i++) {
        assert_int_equal(want->n[i], got->n[i]);
        int64_t at = dtype_differ(want->dtype[i], want->bytes[i], got->bytes[i],
                                  want->n[i]);
        CHECK(at < 0, "%s, %s: element %lld is %.20Lg, expected %.20Lg\n",
              case_text(a), what, (long long)at,
              dtype_get(want->dtype[i], got->bytes[i], at),
              dtype_get(want->dtype[i], want->bytes[i], at));
    }
}

/* Every case and type in c against `base`. */
static void agree(trn_context *base, trn_context *c, const char *what)
{
    for (int i = 0; i < n_op_cases; i++) {
        for (int d = 0; d < N_DTYPES; d++) {
            case_args a;
            outputs want, got;
            if (!case_takes(op_cases[i].op, dtypes[d]))
                continue;
            case_make(&a, &op_cases[i], dtypes[d]);
            run(base, &a, LAYOUT_AS_GIVEN, &want);
            run(c, &a, LAYOUT_AS_GIVEN, &got);
            compare(&a, what, &want, &got);
            drop(&want);
            drop(&got);
            case_free(&a);
        }
    }
}

static void agree_with(const char *isa, int n_threads, trn_engine engine,
                       const char *what)
{
    trn_context *base = harness_open(NULL, 1, TRN_ENGINE_POOL);
    trn_context *c = harness_open(isa, n_threads, engine);
    assert_int_equal(trn_thread_count(c), n_threads);
    assert_string_equal(trn_engine_name(c),
                        engine == TRN_ENGINE_POOL ? "pool" : "openmp");
    if (isa != NULL)
        assert_string_equal(trn_device_description(c), GENERIC_SET);
    agree(base, c, what);
    harness_close(c);
    harness_close(base);
}

static void the_generic_set_gives_the_bits_of_the_best_set(void **state)
{
    if (strcmp(trn_device_description(*state), GENERIC_SET) == 0) {
        print_message("only the generic set runs on this processor\n");
        skip();
    }
    agree_with("generic", 1, TRN_ENGINE_POOL, "generic");
}

static void two_threads_give_the_bits_of_one(void **state)
{
    (void)state;
    agree_with(NULL, 2, TRN_ENGINE_POOL, "2 threads");
}

static void three_threads_give_the_bits_of_one(void **state)
{
    (void)state;
    agree_with(NULL, 3, TRN_ENGINE_POOL, "3 threads");
}

static void seven_threads_give_the_bits_of_one(void **state)
{
    (void)state;
    agree_with(NULL, 7, TRN_ENGINE_POOL, "7 threads");
}

static void openmp_gives_the_bits_of_the_pool(void **state)
{
    bool present = false;
    (void)state;
    trn_build_part(0, &present);
    if (!present) {
        print_message("this build has no OpenMP\n");
        skip();
    }
    agree_with(NULL, 3, TRN_ENGINE_OPENMP, "OpenMP");
}

static void any_layout_gives_the_bits_of_the_plain_one(void **state)
{
    static const case_layout layouts[] = {LAYOUT_TRANSPOSED, LAYOUT_SLICED,
                                          LAYOUT_AS_GIVEN};
    static const char *const names[] = {"transposed", "sliced", "as given"};
    trn_context *c = *state;
    for (int i = 0; i < n_op_cases; i++) {
        for (int d = 0; d < N_DTYPES; d++) {
            case_args a;
            outputs want, got;
            if (!case_takes(op_cases[i].op, dtypes[d]))
                continue;
            case_make(&a, &op_cases[i], dtypes[d]);
            run(c, &a, LAYOUT_PLAIN, &want);
            for (int k = 0; k < 3; k++) {
                run(c, &a, layouts[k], &got);
                compare(&a, names[k], &want, &got);
                drop(&got);
            }
            drop(&want);
            case_free(&a);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(the_generic_set_gives_the_bits_of_the_best_set),
        TRN_TEST(two_threads_give_the_bits_of_one),
        TRN_TEST(three_threads_give_the_bits_of_one),
        TRN_TEST(seven_threads_give_the_bits_of_one),
        TRN_TEST(openmp_gives_the_bits_of_the_pool),
        TRN_TEST(any_layout_gives_the_bits_of_the_plain_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
