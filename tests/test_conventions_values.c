/* SPDX-License-Identifier: Apache-2.0
 *
 * Values at the edges, by hand, on each way to run a step: NaN, integers, the
 * whole table of promotion; and that each row takes an empty tensor, forward
 * and backward.
 */
#include "case_build.h"
#include "special.h"
#include "story.h"

/* ---- NaN ---- */

static trn_tensor *pass(trn_tensor *x, trn_tensor *two, int i)
{
    switch (i) {
    case 0:
        return trn_relu(x);
    case 1:
        return trn_maximum(x, two);
    case 2:
        return trn_maximum(two, x);
    case 3:
        return trn_minimum(x, two);
    case 4:
        return trn_minimum(two, x);
    case 5:
        return trn_max(x, TRN_AXIS(0), true);
    default:
        return trn_min(x, TRN_AXIS(0), true);
    }
}

/* NaN first, in the middle and last, in all float types of a device. */
static void nan_passes_whatever_picks(void **state)
{
    static const trn_dtype types[] = {TRN_F32, TRN_BF16, TRN_F16, TRN_F64};
    (void)state;
    ON_EACH_WAY(c)
    {
        for (int k = 0; k < (way == LOOP ? 3 : 4) * 3 * 7; k++) {
            float v[3] = {-1, 1, INFINITY};
            int at = k / 7 % 3, i = k % 7;
            v[at] = NAN;
            trn_step_begin(c);
            trn_tensor *x =
                trn_cast(trn_tensor_from(c, TRN_F32, 1, (int64_t[]){3}, v),
                         types[k / 21]);
            trn_tensor *two = trn_full(c, types[k / 21], 0, NULL, 2.0);
            trn_tensor *y = trn_keep(pass(x, two, i));
            trn_step_end(c);
            harness_ok(c);
            assert_int_equal(trn_tensor_numel(y), i < 5 ? 3 : 1);
            for (int j = 0; j < trn_tensor_numel(y); j++) {
                bool is = isnan(harness_at(y, j)) != 0;
                CHECK(is == (i >= 5 || j == at), "%s, %s, case %d: %Lg\n",
                      captured_ways[way].name, trn_dtype_name(types[k / 21]), i,
                      harness_at(y, j));
            }
        }
    }
}

/* ---- integers ---- */

static void integers_wrap_in_every_way(void **state)
{
    (void)state;
    const int32_t low = INT32_MIN, high = INT32_MAX;
    const int32_t a[6] = {high, low, low, low, -7, 7};
    const int32_t b[6] = {1, 1, -1, low, 2, -2};
    ON_EACH_WAY(c)
    {
        trn_step_begin(c);
        trn_tensor *x = harness_i32(c, 1, (int64_t[]){6}, a);
        trn_tensor *y = harness_i32(c, 1, (int64_t[]){6}, b);
        trn_tensor *r[6] = {trn_add(x, y), trn_sub(x, y), trn_mul(x, y),
                            trn_div(x, y), trn_neg(x),    trn_abs(x)};
        for (int i = 0; i < 6; i++)
            trn_keep(r[i]);
        trn_step_end(c);
        harness_equal(r[0], 6, (double)low, (double)low + 1, (double)high, 0.0,
                      -5.0, 5.0);
        harness_equal(r[1], 6, (double)high - 1, (double)high, (double)low + 1,
                      0.0, -9.0, 9.0);
        harness_equal(r[2], 6, (double)high, (double)low, (double)low, 0.0,
                      -14.0, -14.0);
        harness_equal(r[3], 6, (double)high, (double)low, (double)low, 1.0,
                      -3.0, -3.0);
        harness_equal(r[4], 6, -(double)high, (double)low, (double)low,
                      (double)low, 7.0, -7.0);
        harness_equal(r[5], 6, (double)high, (double)low, (double)low,
                      (double)low, 7.0, 7.0);
    }
}

static void i64_wraps_eagerly_and_captured(void **state)
{
    (void)state;
    const int64_t a[3] = {INT64_MAX, INT64_MIN, INT64_MIN}, b[3] = {1, 1, -1};
    for (int way = 0; way < LOOP; way++) {
        trn_context *c = captured_open(way, NULL);
        trn_step_begin(c);
        trn_tensor *x = trn_tensor_from(c, TRN_I64, 1, (int64_t[]){3}, a);
        trn_tensor *y = trn_tensor_from(c, TRN_I64, 1, (int64_t[]){3}, b);
        trn_tensor *sum = trn_keep(trn_add(x, y));
        trn_tensor *ratio = trn_keep(trn_div(x, y));
        trn_step_end(c);
        harness_ok(c);
        assert_true(harness_at(sum, 0) == (long double)INT64_MIN);
        assert_true(harness_at(sum, 2) == (long double)INT64_MAX);
        assert_true(harness_at(ratio, 2) == (long double)INT64_MIN);
        captured_close(c);
    }
}

static void floats_saturate_to_integers_in_every_way(void **state)
{
    (void)state;
    const float v[7] = {INFINITY, -INFINITY, NAN, 3e9f, -1.9f, 255.9f, -5e9f};
    ON_EACH_WAY(c)
    {
        trn_step_begin(c);
        trn_tensor *x = trn_tensor_from(c, TRN_F32, 1, (int64_t[]){7}, v);
        trn_tensor *i = trn_keep(trn_cast(x, TRN_I32));
        trn_tensor *b = trn_keep(trn_cast(x, TRN_U8));
        trn_tensor *u = trn_keep(trn_cast(x, TRN_U32));
        trn_step_end(c);
        harness_equal(i, 7, 2147483647.0, -2147483648.0, 0.0, 2147483647.0,
                      -1.0, 255.0, -2147483648.0);
        harness_equal(b, 7, 255.0, 0.0, 0.0, 255.0, 0.0, 255.0, 0.0);
        harness_equal(u, 7, 4294967295.0, 0.0, 0.0, 3e9, 0.0, 255.0, 0.0);
    }
}

/* ---- promotion ---- */

enum { N_TYPES = 9 };
static const trn_dtype types[N_TYPES] = {TRN_BOOL, TRN_U8,  TRN_I32,
                                         TRN_U32,  TRN_I64, TRN_F16,
                                         TRN_BF16, TRN_F32, TRN_F64};
/* By hand, from docs/ops.md: numbers of the list above. */
static const char table[N_TYPES][N_TYPES + 1] = {
    "012345678", "112345678", "222445678", "334345678", "444445678",
    "555555778", "666667678", "777777778", "888888888",
};

static void every_pair_of_types_is_promoted_by_the_table(void **state)
{
    trn_context *c = *state;
    for (int i = 0; i < N_TYPES * N_TYPES; i++) {
        int l = i / N_TYPES, r = i % N_TYPES;
        trn_tensor *a = trn_full(c, types[l], 1, (int64_t[]){1}, 1.0);
        trn_tensor *b = trn_full(c, types[r], 1, (int64_t[]){1}, 0.0);
        trn_dtype want = types[table[l][r] - '0'];
        trn_tensor *y[3] = {trn_where(trn_equal(a, b), a, b),
                            trn_concat(2, (trn_tensor *[]){a, b}, 0), NULL};
        assert_int_equal(trn_tensor_dtype(trn_not_equal(a, b)), TRN_BOOL);
        harness_ok(c);
        y[2] = l + r == 0 ? y[0] : trn_sub(a, b);
        for (int k = 0; k < 3; k++)
            CHECK(trn_tensor_dtype(y[k]) == want, "%s with %s, %d: %s\n",
                  trn_dtype_name(types[l]), trn_dtype_name(types[r]), k,
                  trn_dtype_name(trn_tensor_dtype(y[k])));
        harness_equal(y[1], 2, 1.0, 0.0);
        harness_equal(y[2], 1, l + r == 0 ? 0.0 : 1.0);
    }
    assert_null(trn_add(trn_full(c, TRN_BOOL, 0, NULL, 1.0),
                        trn_full(c, TRN_BOOL, 0, NULL, 1.0)));
    harness_error(c, TRN_ERR_DTYPE, "add: both inputs are bool");
}

/* ---- nothing ---- */

static bool has_empty(const case_args *a)
{
    for (int i = 0; i < a->n_in; i++) {
        if (a->in[i].n == 0)
            return true;
    }
    return false;
}

static void zeros_like(trn_tensor *g, const case_input *x, const case_args *a)
{
    CHECK(g != NULL && trn_tensor_numel(g) == x->n, "%s\n", case_text(a));
    for (int64_t i = 0; i < x->n; i++)
        CHECK(harness_at(g, i) == 0, "%s: gradient %Lg of nothing\n",
              case_text(a), harness_at(g, i));
}

/* A case with an empty input: the gradients, where nothing comes out, are
 * zeros, and have the inputs' shapes. */
static void take_nothing(trn_context *c, const case_args *a)
{
    trn_tensor *in[CASE_MAX_IN], *out[CASE_MAX_OUT] = {NULL};
    trn_tensor *some[CASE_MAX_IN], *g[CASE_MAX_IN] = {NULL};
    trn_grad_options o = TRN_GRAD_INIT;
    int n = 0, of[CASE_MAX_IN];
    bool differentiable = trn__ops[a->tc->op].differentiable;
    o.zeros = true;
    trn_step_begin(c);
    case_tensors(c, a, LAYOUT_PLAIN, in);
    for (int i = 0; i < a->n_in && differentiable; i++) {
        if (a->in[i].kind != KIND_VALUES)
            continue;
        trn_set_requires_grad(in[i], true);
        of[n] = i;
        some[n++] = in[i];
    }
    int n_out = case_apply(c, a, in, out);
    CHECK(n_out > 0, "%s: %s\n", case_text(a), trn_errmsg(c));
    if (n > 0)
        trn_grad(1, out, n, some, out, &o, g);
    for (int i = 0; i < n; i++)
        trn_keep(g[i]);
    trn_keep(out[0]);
    trn_step_end(c);
    CHECK(trn_sync(c) == TRN_OK, "%s: %s\n", case_text(a), trn_errmsg(c));
    bool nothing = trn_tensor_numel(out[0]) == 0;
    for (int i = 0; i < n; i++) {
        if (nothing)
            zeros_like(g[i], &a->in[of[i]], a);
        assert_int_equal(trn_tensor_numel(g[i]), a->in[of[i]].n);
    }
    for (int64_t i = 0; i < trn_tensor_numel(out[0]); i++)
        harness_at(out[0], i); /* can be read: valgrind would see rubbish */
}

static void every_row_takes_an_empty_tensor_in_every_way(void **state)
{
    (void)state;
    ON_EACH_WAY(c)
    {
        bool took[TRN_OP_LIMIT] = {false};
        for (int i = 0; i < n_op_cases; i++) {
            case_args a;
            if (!case_takes(op_cases[i].op, TRN_F32) ||
                (way == LOOP && attr_has(&op_cases[i], "to") &&
                 trn_dtype_size(attr_dtype(&op_cases[i], "to", TRN_F32)) > 4) ||
                (way == LOOP && attr_has(&op_cases[i], "index")))
                continue; /* loop:strict has no types of 64 bits */
            case_make(&a, &op_cases[i], TRN_F32);
            if (has_empty(&a)) {
                take_nothing(c, &a);
                took[a.tc->op] = true;
            }
            case_free(&a);
        }
        for (int op = 0; op < TRN_OP_LIMIT; op++)
            CHECK(trn__ops[op].name == NULL || trn__ops[op].n_in == 0 ||
                      !case_takes((uint32_t)op, TRN_F32) || took[op],
                  "row %s: no case with nothing in it\n", trn__ops[op].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(nan_passes_whatever_picks),
        TRN_TEST(integers_wrap_in_every_way),
        TRN_TEST(i64_wraps_eagerly_and_captured),
        TRN_TEST(floats_saturate_to_integers_in_every_way),
        TRN_TEST(every_pair_of_types_is_promoted_by_the_table),
        TRN_TEST(every_row_takes_an_empty_tensor_in_every_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
