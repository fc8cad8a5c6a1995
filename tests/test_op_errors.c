/* SPDX-License-Identifier: Apache-2.0
 *
 * What every row does with bad calls: NULL or a status, a message that names
 * the op, an error that sticks, nothing leaked, nothing changed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "case_build.h"

static const op_case *case_of(uint32_t op)
{
    for (int i = 0; i < n_op_cases; i++) {
        if (op_cases[i].op == op)
            return &op_cases[i];
    }
    return NULL;
}

static uint64_t in_use(trn_context *c)
{
    trn_memory_info info = TRN_MEMORY_INFO_INIT;
    assert_int_equal(trn_memory(c, &info), TRN_OK);
    return info.bytes_in_use;
}

/* A case's inputs with one thing wrong. */
typedef struct bad_call {
    trn_context *c;
    case_args a;
    trn_tensor *in[CASE_MAX_IN];
} bad_call;

static void begin(bad_call *b, trn_context *c, uint32_t op, trn_dtype dtype)
{
    b->c = c;
    trn_step_begin(c);
    case_make(&b->a, case_of(op), dtype);
    case_tensors(c, &b->a, LAYOUT_PLAIN, b->in);
}

static void end(bad_call *b)
{
    trn_step_end(b->c);
    case_free(&b->a);
}

/* Applies; wants `status`, the op's name in the message, then the same error
 * from a good call, and no byte more than before. */
static void must_fail(bad_call *b, trn_status status, const char *part)
{
    trn_tensor *out[CASE_MAX_OUT];
    char first[1024];
    uint64_t before = in_use(b->c);
    const char *name = b->a.tc->name;
    int n = case_apply(b->c, &b->a, b->in, out);
    CHECK(n == 0, "%s was accepted\n", case_text(&b->a));
    CHECK(trn_errcode(b->c) == status, "%s: %s: %s\n", case_text(&b->a),
          trn_status_name(trn_errcode(b->c)), trn_errmsg(b->c));
    CHECK(strncmp(trn_errmsg(b->c), name, strlen(name)) == 0,
          "%s: message \"%s\"\n", name, trn_errmsg(b->c));
    CHECK(strstr(trn_errmsg(b->c), part) != NULL, "%s: \"%s\"\n", name,
          trn_errmsg(b->c));
    strncpy(first, trn_errmsg(b->c), sizeof first - 1);
    first[sizeof first - 1] = '\0';
    assert_null(trn_full(b->c, TRN_F32, 0, NULL, 1.0));
    assert_int_equal(trn_errcode(b->c), status);
    assert_string_equal(trn_errmsg(b->c), first);
    trn_clear(b->c);
    assert_string_equal(trn_errmsg(b->c), "");
    if (trn__ops[b->a.tc->op].writes == 0) /* copies of ours stay there */
        CHECK(in_use(b->c) <= before, "%s: bytes are held\n", name);
}

#define FOR_EACH_ROW(op)                           \
    for (uint32_t op = 0; op < TRN_OP_LIMIT; op++) \
        if (trn__ops[op].name != NULL)

static void a_null_input_is_an_error_that_says_which(void **state)
{
    FOR_EACH_ROW(op)
    {
        for (int i = 0; trn__ops[op].n_in > 1 && i < trn__ops[op].n_in; i++) {
            char part[32];
            bad_call b;
            if ((trn__ops[op].writes >> i) & 1u)
                continue; /* the test copies those */
            begin(&b, *state, op, TRN_F32);
            b.in[i] = NULL;
            snprintf(part, sizeof part, "input %d is NULL", i);
            must_fail(&b, TRN_ERR_ARG, part);
            end(&b);
        }
    }
}

static void a_null_alone_gives_null_without_an_error(void **state)
{
    (void)state;
    assert_null(trn_neg(NULL));
    assert_null(trn_sum(NULL, TRN_ALL_AXES, false));
    assert_null(trn_reshape(NULL, 0, NULL));
    assert_null(trn_softmax(NULL, 0));
    assert_null(trn_add(NULL, NULL));
    assert_null(trn_where(NULL, NULL, NULL));
    assert_null(trn_uniform(NULL, TRN_F32, 0, NULL));
    assert_null(trn_full(NULL, TRN_F32, 0, NULL, 0.0));
    assert_int_not_equal(trn_assign(NULL, NULL), TRN_OK);
}

static void a_tensor_of_another_context_is_refused(void **state)
{
    trn_context *other = harness_open(NULL, 1, TRN_ENGINE_POOL);
    FOR_EACH_ROW(op)
    {
        int last = trn__ops[op].n_in - 1;
        bad_call b;
        if (last < 1 || (trn__ops[op].writes >> last) & 1u)
            continue;
        begin(&b, *state, op, TRN_F32);
        b.in[last] = case_tensor(other, &b.a.in[last], LAYOUT_PLAIN);
        must_fail(&b, TRN_ERR_ARG, "another context");
        end(&b);
    }
    harness_close(other);
}

static void a_wrong_type_is_refused_by_every_row(void **state)
{
    static const trn_dtype types[] = {TRN_I64, TRN_I32, TRN_U8, TRN_BOOL};
    FOR_EACH_ROW(op)
    {
        for (int d = 0; d < 4; d++) {
            bad_call b;
            if (case_takes(op, types[d]) || trn__ops[op].writes != 0)
                continue;
            begin(&b, *state, op, types[d]);
            must_fail(&b, TRN_ERR_DTYPE, trn_dtype_name(types[d]));
            end(&b);
        }
    }
}

static void float_indices_are_refused(void **state)
{
    static const uint32_t ops[] = {
        TRN_OP_embedding,   TRN_OP_embedding_grad, TRN_OP_gather,
        TRN_OP_scatter_add, TRN_OP_cross_entropy,  TRN_OP_cross_entropy_grad,
        TRN_OP_index_select};
    for (int i = 0; i < 7; i++) {
        bad_call b;
        begin(&b, *state, ops[i], TRN_F32);
        b.in[1] = trn_cast(b.in[1], TRN_F32);
        must_fail(&b, TRN_ERR_DTYPE, "expected i32 or i64");
        end(&b);
    }
}

/* Rows of two or more inputs, the last one with a shape that fits nothing. */
static void a_wrong_shape_is_refused_and_both_shapes_are_told(void **state)
{
    FOR_EACH_ROW(op)
    {
        int last = trn__ops[op].n_in - 1;
        bad_call b;
        if (last < 1 || (trn__ops[op].writes >> last) & 1u)
            continue;
        begin(&b, *state, op, TRN_F32);
        b.in[last] = trn_full(b.c, trn_tensor_dtype(b.in[last]), 3,
                              (int64_t[]){2, 9, 13}, 1.0);
        if (op == TRN_OP_embedding) /* takes an index of any shape */
            b.in[0] = trn_reshape(b.in[0], 1, (int64_t[]){-1});
        must_fail(&b, TRN_ERR_SHAPE, "[2,9,13]");
        end(&b);
    }
}

static void an_update_that_fails_writes_nothing(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = harness_vector(c, 3, 1.0, 2.0, 3.0);
    trn_tensor *y = harness_vector(c, 2, 7.0, 8.0);
    uint64_t version = trn_tensor_version(x);
    assert_int_equal(trn_assign(x, y), TRN_ERR_SHAPE);
    harness_error(c, TRN_ERR_SHAPE, "f64[2]");
    harness_equal(x, 3, 1.0, 2.0, 3.0);
    assert_int_equal(trn_tensor_version(x), version);
    trn_neg(trn_add(x, y)); /* an error is pending */
    assert_int_equal(trn_assign(x, x), TRN_ERR_SHAPE);
    harness_error(c, TRN_ERR_SHAPE,
                  "add: shapes do not broadcast: a is "
                  "f64[3], b is f64[2]");
    assert_int_equal(trn_tensor_version(x), version);
}

/* One case of every row, forward and backward; its status. */
static trn_status try_case(trn_context *c, uint32_t op)
{
    case_args a;
    trn_tensor *in[CASE_MAX_IN], *out[CASE_MAX_OUT];
    case_make(&a, case_of(op), TRN_F32);
    for (int i = 0; i < a.n_in; i++) {
        void *data = malloc((size_t)(a.in[i].n + 1) * 8);
        assert_non_null(data);
        for (int64_t j = 0; j < a.in[i].n; j++)
            dtype_put(a.in[i].dtype, data, j, a.in[i].v[j]);
        in[i] =
            trn_tensor_from(c, a.in[i].dtype, a.in[i].rank, a.in[i].dim, data);
        free(data);
        if (trn__ops[op].differentiable && a.in[i].kind == KIND_VALUES &&
            in[i] != NULL)
            trn_set_requires_grad(in[i], true);
    }
    if (trn_errcode(c) == TRN_OK && case_apply(c, &a, in, out) > 0 &&
        trn_errcode(c) == TRN_OK && trn_requires_grad(out[0]))
        trn_backward_with(out[0], out[0], false);
    case_free(&a);
    return trn_errcode(c);
}

/* Teardown finds what leaked; a crash speaks for itself. */
static void each_allocation_that_fails_is_reported(void **state)
{
    int64_t before = harness_bytes();
    (void)state;
    FOR_EACH_ROW(op)
    {
        int64_t n = 0;
        for (trn_status status = TRN_ERR_NOMEM; status != TRN_OK; n++) {
            trn_context *c = harness_open(NULL, 1, TRN_ENGINE_POOL);
            harness_fail_after(n);
            status = try_case(c, op);
            harness_fail_after(-1);
            CHECK(status == TRN_OK || status == TRN_ERR_NOMEM,
                  "%s, allocation %lld: %s: %s\n", trn__ops[op].name,
                  (long long)n, trn_status_name(status), trn_errmsg(c));
            trn_clear(c);
            CHECK(try_case(c, op) == TRN_OK, "%s: %s\n", trn__ops[op].name,
                  trn_errmsg(c));
            harness_close(c);
            CHECK(harness_bytes() == before,
                  "%s: failing allocation %lld "
                  "left %lld bytes\n",
                  trn__ops[op].name, (long long)n,
                  (long long)(harness_bytes() - before));
        }
        assert_in_range(n, 2, 400);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(a_null_input_is_an_error_that_says_which),
        TRN_TEST(a_null_alone_gives_null_without_an_error),
        TRN_TEST(a_tensor_of_another_context_is_refused),
        TRN_TEST(a_wrong_type_is_refused_by_every_row),
        TRN_TEST(float_indices_are_refused),
        TRN_TEST(a_wrong_shape_is_refused_and_both_shapes_are_told),
        TRN_TEST(an_update_that_fails_writes_nothing),
        TRN_TEST(each_allocation_that_fails_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
