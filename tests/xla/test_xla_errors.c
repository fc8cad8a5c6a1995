/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that only the device sees to be wrong: status and message are those of
 * the CPU device, and the step has not happened.
 */
#include <stdio.h>

#include "tests/xla/xla_batch.h"

typedef struct bad_case {
    const char *name;
    trn_tensor *(*make)(trn_context *c);
    const char *part; /* of the message */
} bad_case;

static trn_tensor *vector(trn_context *c, trn_dtype dtype, int n,
                          const double *v)
{
    int64_t shape[1] = {n};
    return trn_cast(trn_tensor_from(c, TRN_F64, 1, shape, v), dtype);
}

static trn_tensor *matrix(trn_context *c, int64_t rows, int64_t columns)
{
    return trn_full(c, TRN_F32, 2, (int64_t[]){rows, columns}, 0.5);
}

static trn_tensor *embedding(trn_context *c)
{
    trn_tensor *i = vector(c, TRN_I32, 4, (double[]){0, 6, 7, 9});
    return trn_embedding(matrix(c, 7, 3), i, -1);
}

static trn_tensor *negative_embedding(trn_context *c)
{
    trn_tensor *i = vector(c, TRN_I64, 3, (double[]){1, -1, -5});
    return trn_embedding(matrix(c, 7, 3), i, -1);
}

static trn_tensor *embedding_gradient(trn_context *c)
{
    trn_tensor *w = matrix(c, 7, 3), *g = NULL;
    trn_set_requires_grad(w, true);
    trn_tensor *i = vector(c, TRN_I32, 2, (double[]){0, 7});
    trn_tensor *y = trn_sum(trn_embedding(w, i, -1), TRN_ALL_AXES, false);
    trn_grad(1, &y, 1, &w, NULL, NULL, &g);
    return g;
}

static trn_tensor *gather(trn_context *c)
{
    trn_tensor *i = vector(c, TRN_I32, 6, (double[]){0, 1, 2, 3, 4, 5});
    return trn_gather(matrix(c, 2, 5), 1, trn_reshape(i, 2, (int64_t[]){2, 3}));
}

static trn_tensor *scatter_add(trn_context *c)
{
    trn_tensor *i = vector(c, TRN_I64, 6, (double[]){0, 1, 0, 1, 2, 0});
    return trn_scatter_add(matrix(c, 2, 3), 1,
                           trn_reshape(i, 2, (int64_t[]){2, 3}), 2);
}

static trn_tensor *index_select(trn_context *c)
{
    trn_tensor *i = vector(c, TRN_I32, 4, (double[]){0, 1, 5, 7});
    return trn_index_select(matrix(c, 2, 5), 1, i);
}

/* Integers are selected element by element. */
static trn_tensor *integer_select(trn_context *c)
{
    trn_tensor *i = vector(c, TRN_I64, 3, (double[]){0, 1, -2});
    return trn_index_select(trn_cast(matrix(c, 2, 5), TRN_I32), 0, i);
}

static trn_tensor *one_hot(trn_context *c)
{
    return trn_one_hot(vector(c, TRN_I32, 3, (double[]){2, 3, 1}), 3, TRN_I32);
}

static trn_tensor *cross_entropy(trn_context *c)
{
    trn_tensor *t = vector(c, TRN_I32, 3, (double[]){2, 5, -1});
    return trn_cross_entropy(matrix(c, 3, 5), t, NULL);
}

static trn_tensor *cross_entropy_each(trn_context *c)
{
    trn_cross_entropy_options o = TRN_CROSS_ENTROPY_INIT;
    o.reduction = TRN_REDUCE_NONE;
    o.has_ignore_index = true;
    o.ignore_index = -1;
    trn_tensor *t = vector(c, TRN_I64, 3, (double[]){2, -1, -2});
    return trn_cross_entropy(matrix(c, 3, 5), t, &o);
}

static trn_tensor *cross_entropy_smoothed(trn_context *c)
{
    trn_cross_entropy_options o = TRN_CROSS_ENTROPY_INIT;
    o.has_ignore_index = true;
    o.ignore_index = -1;
    o.label_smoothing = 0.1;
    trn_tensor *t = vector(c, TRN_I32, 3, (double[]){-1, 4, 5});
    return trn_cross_entropy(matrix(c, 3, 5), t, &o);
}

static trn_tensor *divided(trn_context *c, trn_dtype dtype)
{
    return trn_div(vector(c, dtype, 3, (double[]){5, 6, 7}),
                   vector(c, dtype, 3, (double[]){1, 0, 0}));
}

static trn_tensor *divided_i32(trn_context *c)
{
    return divided(c, TRN_I32);
}

static trn_tensor *divided_i64(trn_context *c)
{
    return divided(c, TRN_I64);
}

static trn_tensor *divided_u32(trn_context *c)
{
    return divided(c, TRN_U32);
}

static trn_tensor *divided_u8(trn_context *c)
{
    return divided(c, TRN_U8);
}

static trn_tensor *infinite(trn_context *c)
{
    trn_tensor *x = vector(c, TRN_F32, 3, (double[]){1, 0, 2});
    return trn_check_finite(
        trn_div(vector(c, TRN_F32, 3, (double[]){1, 1, 1}), x));
}

static trn_tensor *not_a_number(trn_context *c)
{
    return trn_check_finite(
        trn_sqrt(vector(c, TRN_F64, 3, (double[]){1, 4, -1})));
}

/* Two of them: the first in the order of the program is told. */
static trn_tensor *two_faults(trn_context *c)
{
    trn_tensor *x = divided_i32(c);
    return trn_add(trn_cast(x, TRN_F32), infinite(c));
}

static const bad_case bad_cases[] = {
    {"embedding", embedding, "index 7 at position 2"},
    {"negative index", negative_embedding, "index -1 at position 1"},
    {"gradient of an embedding", embedding_gradient, "index 7"},
    {"gather", gather, "index 5"},
    {"scatter_add", scatter_add, "index 2"},
    {"index_select", index_select, "index_select: index 5 at position 2"},
    {"integers", integer_select, "index_select: index -2 at position 2"},
    {"one_hot", one_hot, "one_hot: index 3 at position 1"},
    {"cross_entropy", cross_entropy, "index 5 at position 1"},
    {"cross_entropy, each", cross_entropy_each, "index -2 at position 2"},
    {"cross_entropy, smoothed", cross_entropy_smoothed,
     "cross_entropy_weighted: index 5 at position 2"},
    {"i32 by zero", divided_i32, "zero"},
    {"i64 by zero", divided_i64, "zero"},
    {"u32 by zero", divided_u32, "zero"},
    {"u8 by zero", divided_u8, "zero"},
    {"infinity", infinite, "finite"},
    {"NaN", not_a_number, "finite"},
    {"two faults", two_faults, "zero"},
};

/* Status and message of a step with that case; the error is cleared. */
static trn_status told(trn_context *c, const bad_case *b, char *text, size_t n)
{
    trn_step_begin(c);
    trn_keep(b->make(c));
    trn_step_end(c);
    trn_status status = trn_sync(c);
    snprintf(text, n, "%s", trn_errmsg(c));
    trn_clear(c);
    return status;
}

static void wrong_values_are_told_as_by_the_cpu(void **state)
{
    char want[300], got[300];
    (void)state;
    trn_context *cpu = xla_open("cpu"), *device = xla_open(xla_device());
    for (size_t i = 0; i < sizeof bad_cases / sizeof bad_cases[0]; i++) {
        const bad_case *b = &bad_cases[i];
        xla_running("%s", b->name);
        trn_status here = told(cpu, b, want, sizeof want);
        trn_status there = told(device, b, got, sizeof got);
        CHECK(here != TRN_OK && strstr(want, b->part) != NULL,
              "%s: the CPU says \"%s\"\n", b->name, want);
        CHECK(here == there && strcmp(want, got) == 0,
              "%s: %s \"%s\", expected %s \"%s\"\n", b->name,
              trn_status_name(there), got, trn_status_name(here), want);
    }
    harness_close(device);
    harness_close(cpu);
}

/* x <- x + 1 beside an embedding with the index. */
static trn_status step_with(trn_context *c, trn_tensor *x, double index)
{
    trn_step_begin(c);
    trn_tensor *y =
        trn_embedding(matrix(c, 7, 3), vector(c, TRN_I32, 1, &index), -1);
    trn_assign(x, trn_add_scalar(x, 1));
    trn_tensor_release(trn_keep(y));
    trn_step_end(c);
    return trn_sync(c);
}

static void a_step_with_a_wrong_value_has_not_happened(void **state)
{
    (void)state;
    trn_context *c = xla_open(xla_device());
    trn_tensor *x = trn_full(c, TRN_F32, 1, (int64_t[]){3}, 1.0);
    xla_running("x <- x + 1");
    assert_int_equal(step_with(c, x, 2), TRN_OK);
    assert_int_equal(trn_step_index(c), 1);
    assert_int_equal(step_with(c, x, 7), TRN_ERR_INDEX);
    trn_clear(c);
    assert_int_equal(trn_step_index(c), 1);
    harness_equal(x, 3, 2.0, 2.0, 2.0);
    assert_int_equal(step_with(c, x, 3), TRN_OK);
    harness_equal(x, 3, 3.0, 3.0, 3.0);
    harness_close(c);
}

int main(int argc, char **argv)
{
    static const xla_test tests[] = {
        XLA_TEST(wrong_values_are_told_as_by_the_cpu),
        XLA_TEST(a_step_with_a_wrong_value_has_not_happened),
    };
    return xla_main(argc, argv, (int)(sizeof tests / sizeof tests[0]), tests);
}
