/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of every row against the oracle, and fused against decomposed.
 */
#include <math.h>
#include <stdlib.h>

#include "oracle.h"

static const trn_dtype all_dtypes[] = {TRN_F64, TRN_F32, TRN_BF16,
                                       TRN_F16, TRN_I64, TRN_I32,
                                       TRN_U32, TRN_U8,  TRN_BOOL};
enum { N_FLOATS = 4, N_DTYPES = 9 };

static long double bound_at(const case_args *a, const oracle_result *r,
                            const oracle_tensor *y, int64_t i)
{
    const tolerance_row *t = &tolerance_table[r->tolerance];
    if (!dtype_is_float(y->dtype) || r->tolerance == TOLERANCE_EXACT)
        return 0;
    bool wide = t->in_f64 || a->dtype == TRN_F64;
    long double unit = wide ? 0x1p-53L : 0x1p-24L;
    long double units = wide ? t->computed_f64 : t->computed_f32;
    units += t->per_term * (long double)r->length;
    return t->stored * dtype_ulp(y->dtype, y->v[i]) + units * unit * y->size[i];
}

static void check_element(const case_args *a, const oracle_result *r,
                          const oracle_tensor *y, const void *got, int64_t i)
{
    long double found = dtype_get(y->dtype, got, i);
    long double want = y->v[i], stored = want;
    if (dtype_is_float(y->dtype))
        stored = dtype_round(y->dtype, want);
    bool same = found == stored || (isnan(found) && isnan(stored));
    if (same && r->tolerance == TOLERANCE_EXACT && found == 0 &&
        dtype_is_float(y->dtype))
        same = signbit(found) == signbit(stored);
    long double bound = bound_at(a, r, y, i);
    bool near = isfinite(found) && isfinite(stored) &&
                r->tolerance != TOLERANCE_EXACT && fabsl(found - want) <= bound;
    CHECK(same || near,
          "%s: element %lld is %.20Lg, expected %.20Lg within %.3Lg\n",
          case_text(a), (long long)i, found, want, bound);
}

static void check_output(const case_args *a, const oracle_result *r,
                         const oracle_tensor *y, trn_tensor *t)
{
    CHECK(trn_tensor_dtype(t) == y->dtype && trn_tensor_rank(t) == y->rank,
          "%s: rank %d of %s\n", case_text(a), trn_tensor_rank(t),
          trn_dtype_name(trn_tensor_dtype(t)));
    for (int d = 0; d < y->rank; d++)
        CHECK(trn_tensor_dim(t, d) == y->dim[d], "%s: axis %d is %lld\n",
              case_text(a), d, (long long)trn_tensor_dim(t, d));
    void *got = harness_bytes_of(t, NULL);
    for (int64_t i = 0; i < y->n; i++)
        check_element(a, r, y, got, i);
    free(got);
}

static void check_values(trn_context *c, const op_case *tc, trn_dtype dtype)
{
    case_args a;
    oracle_result r;
    trn_tensor *in[CASE_MAX_IN], *out[CASE_MAX_OUT] = {NULL};
    case_make(&a, tc, dtype);
    oracle_run(&a, &r);
    trn_step_begin(c);
    case_tensors(c, &a, LAYOUT_AS_GIVEN, in);
    int n = case_apply(c, &a, in, out);
    CHECK(n == r.n_out, "%s: %s\n", case_text(&a), trn_errmsg(c));
    for (int i = 0; i < n; i++)
        check_output(&a, &r, &r.out[i], out[i]);
    harness_ok(c);
    trn_step_end(c);
    oracle_free(&r);
    case_free(&a);
}

/* All cases of [first, last) dtypes that their rows take. */
static void check_dtypes(trn_context *c, int first, int last)
{
    for (int i = 0; i < n_op_cases; i++) {
        for (int d = first; d < last; d++) {
            if (case_takes(op_cases[i].op, all_dtypes[d]))
                check_values(c, &op_cases[i], all_dtypes[d]);
        }
    }
}

static void every_case_has_the_oracles_values_in_f64(void **state)
{
    check_dtypes(*state, 0, 1);
}

static void every_case_has_the_oracles_values_in_f32(void **state)
{
    check_dtypes(*state, 1, 2);
}

static void every_case_has_the_oracles_values_in_bf16(void **state)
{
    check_dtypes(*state, 2, 3);
}

static void every_case_has_the_oracles_values_in_f16(void **state)
{
    check_dtypes(*state, 3, 4);
}

static void every_case_has_the_oracles_values_in_integers(void **state)
{
    check_dtypes(*state, N_FLOATS, N_DTYPES);
}

/* What a decomposition writes or returns against what the row gives. */
static void check_decomposed(trn_context *c, const op_case *tc, trn_dtype dtype)
{
    case_args a;
    trn__call k;
    uint64_t attrs[TRN__MAX_ATTRS / 8];
    trn_tensor *in[CASE_MAX_IN], *copy[CASE_MAX_IN] = {NULL};
    trn_tensor *fused[CASE_MAX_OUT], *parts[CASE_MAX_OUT];
    uint32_t writes = trn__ops[tc->op].writes;
    int n = 0;
    case_make(&a, tc, dtype);
    trn_step_begin(c);
    case_tensors(c, &a, LAYOUT_AS_GIVEN, in);
    int n_fused = case_apply(c, &a, in, fused);
    for (int i = 0; i < a.n_in; i++) {
        bool written = (writes >> i) & 1u;
        copy[i] = written ? trn_copy(in[i]) : in[i];
        if (written)
            parts[n++] = copy[i];
    }
    harness_ok(c);
    case_call(c, &a, copy, &k, attrs);
    trn_no_grad_begin(c);
    trn_tensor *y = trn__ops[tc->op].decompose(&k);
    trn_no_grad_end(c);
    harness_ok(c);
    if (writes == 0)
        parts[n++] = y;
    assert_int_equal(n, n_fused);
    for (int i = 0; i < n; i++) {
        void *left = harness_bytes_of(fused[i], NULL);
        void *right = harness_bytes_of(parts[i], NULL);
        trn_dtype type = trn_tensor_dtype(fused[i]);
        assert_int_equal(trn_tensor_dtype(parts[i]), type);
        int64_t at =
            dtype_differ(type, left, right, trn_tensor_numel(fused[i]));
        CHECK(at < 0,
              "%s: output %d, element %lld: fused %.20Lg, decomposed "
              "%.20Lg\n",
              case_text(&a), i, (long long)at, dtype_get(type, left, at),
              dtype_get(type, right, at));
        free(left);
        free(right);
    }
    trn_step_end(c);
    case_free(&a);
}

static void fused_kernels_equal_their_decompositions_by_bits(void **state)
{
    for (int i = 0; i < n_op_cases; i++) {
        if (trn__ops[op_cases[i].op].decompose == NULL)
            continue;
        for (int d = 0; d < N_DTYPES; d++) {
            if (case_takes(op_cases[i].op, all_dtypes[d]))
                check_decomposed(*state, &op_cases[i], all_dtypes[d]);
        }
    }
}

static void moments(trn_tensor *t, long double *mean, long double *variance)
{
    int64_t n = trn_tensor_numel(t);
    void *data = harness_bytes_of(t, NULL);
    trn_dtype dtype = trn_tensor_dtype(t);
    *mean = *variance = 0;
    for (int64_t i = 0; i < n; i++)
        *mean += dtype_get(dtype, data, i) / (long double)n;
    for (int64_t i = 0; i < n; i++) {
        long double d = dtype_get(dtype, data, i) - *mean;
        *variance += d * d / (long double)n;
    }
    free(data);
}

/* Bounds of five standard deviations for 100,000 draws. */
static void draws_have_the_moments_of_their_distributions(void **state)
{
    trn_context *c = *state;
    trn_generator *g = trn_generator_new(c, 7);
    int64_t shape[1] = {100000};
    long double mean, variance;
    for (int d = 0; d < 2; d++) {
        moments(trn_uniform(g, all_dtypes[d], 1, shape), &mean, &variance);
        CHECK(fabsl(mean - 0.5L) < 0.0046L, "mean %Lg\n", mean);
        CHECK(fabsl(variance - 1 / 12.0L) < 0.0012L, "var %Lg\n", variance);
        moments(trn_normal(g, all_dtypes[d], 1, shape), &mean, &variance);
        CHECK(fabsl(mean) < 0.016L, "mean %Lg\n", mean);
        CHECK(fabsl(variance - 1) < 0.023L, "var %Lg\n", variance);
    }
    trn_tensor *ones = trn_full(c, TRN_F32, 1, shape, 1.0);
    moments(trn_dropout(ones, 0.25, g), &mean, &variance);
    CHECK(fabsl(mean - 1) < 0.0092L, "mean of dropout %Lg\n", mean);
}

/* By hand: the table of docs/ops.md. */
static void mixed_types_are_promoted_by_the_table(void **state)
{
    static const trn_dtype table[][3] = {
        {TRN_BOOL, TRN_U8, TRN_U8},    {TRN_U8, TRN_I32, TRN_I32},
        {TRN_I32, TRN_U32, TRN_I64},   {TRN_U32, TRN_I64, TRN_I64},
        {TRN_I64, TRN_F16, TRN_F16},   {TRN_F16, TRN_BF16, TRN_F32},
        {TRN_BF16, TRN_F32, TRN_F32},  {TRN_F32, TRN_F64, TRN_F64},
        {TRN_BOOL, TRN_F32, TRN_F32},  {TRN_U8, TRN_I64, TRN_I64},
        {TRN_I32, TRN_BF16, TRN_BF16}, {TRN_F16, TRN_F32, TRN_F32},
    };
    trn_context *c = *state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        trn_tensor *a = trn_full(c, table[i][0], 0, NULL, 1.0);
        trn_tensor *b = trn_full(c, table[i][1], 0, NULL, 3.0);
        trn_tensor *y = trn_add(a, b), *z = trn_add(b, a);
        harness_ok(c);
        assert_int_equal(trn_tensor_dtype(y), table[i][2]);
        assert_int_equal(trn_tensor_dtype(z), table[i][2]);
        harness_equal(y, 1, 4.0);
        assert_int_equal(trn_tensor_dtype(trn_where(trn_equal(a, b), a, b)),
                         table[i][2]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(every_case_has_the_oracles_values_in_f64),
        TRN_TEST(every_case_has_the_oracles_values_in_f32),
        TRN_TEST(every_case_has_the_oracles_values_in_bf16),
        TRN_TEST(every_case_has_the_oracles_values_in_f16),
        TRN_TEST(every_case_has_the_oracles_values_in_integers),
        TRN_TEST(fused_kernels_equal_their_decompositions_by_bits),
        TRN_TEST(draws_have_the_moments_of_their_distributions),
        TRN_TEST(mixed_types_are_promoted_by_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
