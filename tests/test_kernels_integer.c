/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise integer kernels at the edges of each type: results are compared
 * with those of 128-bit arithmetic reduced to the type's range.
 */
#include "kernel_sets.h"

#include "kernels/integer_kernels.h"

__extension__ typedef __int128 wide;

/* A type as data: its range, and its elements in memory as int64_t. */
typedef struct int_type {
    trn_dtype dtype;
    int bits;
    bool is_signed;
} int_type;

static const int_type types[] = {
    {TRN_I64, 64, true},
    {TRN_I32, 32, true},
    {TRN_U32, 32, false},
    {TRN_U8, 8, false},
};
enum { N_TYPES = sizeof types / sizeof types[0], N_EDGES = 9, N = 81 };

static wide smallest(const int_type *t)
{
    return t->is_signed ? -((wide)1 << (t->bits - 1)) : 0;
}

static wide wrap(const int_type *t, wide x)
{
    const wide period = (wide)1 << t->bits;
    wide y = x % period;
    if (y < smallest(t))
        y += period;
    if (y >= smallest(t) + period)
        y -= period;
    return y;
}

static wide get(const int_type *t, const void *x, int i)
{
    int64_t y = 0;
    const size_t size = (size_t)t->bits / 8;
    trn__convert(t->dtype, TRN_I64, 1, (const char *)x + (size_t)i * size, &y);
    return y;
}

static void put(const int_type *t, void *x, int i, wide value)
{
    const int64_t v = (int64_t)value;
    const size_t size = (size_t)t->bits / 8;
    trn__convert(TRN_I64, t->dtype, 1, &v, (char *)x + (size_t)i * size);
}

/* All pairs of the numbers where something may go wrong */
static void edges(const int_type *t, void *a, void *b)
{
    const wide low = smallest(t);
    const wide high = low + (((wide)1 << t->bits) - 1);
    const wide edge[N_EDGES] = {
        low, low + 1, wrap(t, -7), wrap(t, -1), 0, 1, 3, high - 1, high,
    };
    for (int i = 0; i < N; i++) {
        put(t, a, i, edge[i / N_EDGES]);
        put(t, b, i, edge[i % N_EDGES]);
    }
}

static void arithmetic_wraps_around(void **state)
{
    (void)state;
    for (const int_type *t = types; t < types + N_TYPES; t++) {
        const trn__integer_kernels *k = trn__integer_kernels_of(t->dtype);
        int64_t a[N], b[N], y[9][N];
        assert_non_null(k);
        edges(t, a, b);
        k->neg(N, a, y[0]);
        k->relu(N, a, y[1]);
        k->add(N, a, b, y[2]);
        k->sub(N, a, b, y[3]);
        k->mul(N, a, b, y[4]);
        k->maximum(N, a, b, y[5]);
        k->minimum(N, a, b, y[6]);
        k->abs(N, a, y[7]);
        k->sign(N, a, y[8]);
        for (int i = 0; i < N; i++) {
            const wide p = get(t, a, i);
            const wide q = get(t, b, i);
            assert_true(get(t, y[0], i) == wrap(t, -p));
            assert_true(get(t, y[1], i) == (p > 0 ? p : 0));
            assert_true(get(t, y[2], i) == wrap(t, p + q));
            assert_true(get(t, y[3], i) == wrap(t, p - q));
            assert_true(get(t, y[4], i) == wrap(t, p * q));
            assert_true(get(t, y[5], i) == (p > q ? p : q));
            assert_true(get(t, y[6], i) == (p < q ? p : q));
            assert_true(get(t, y[7], i) == wrap(t, p < 0 ? -p : p));
            assert_true(get(t, y[8], i) == (p > 0) - (p < 0));
        }
    }
}

static void comparisons_give_bool(void **state)
{
    (void)state;
    for (const int_type *t = types; t < types + N_TYPES; t++) {
        const trn__integer_kernels *k = trn__integer_kernels_of(t->dtype);
        int64_t a[N], b[N];
        uint8_t y[6][N + 1];
        edges(t, a, b);
        for (int j = 0; j < 6; j++)
            y[j][N] = 77;
        k->greater(N, a, b, y[0]);
        k->equal(N, a, b, y[1]);
        k->less(N, a, b, y[2]);
        k->less_equal(N, a, b, y[3]);
        k->greater_equal(N, a, b, y[4]);
        k->not_equal(N, a, b, y[5]);
        for (int i = 0; i < N; i++) {
            const wide p = get(t, a, i), q = get(t, b, i);
            assert_int_equal(y[0][i], p > q);
            assert_int_equal(y[1][i], p == q);
            assert_int_equal(y[2][i], p < q);
            assert_int_equal(y[3][i], p <= q);
            assert_int_equal(y[4][i], p >= q);
            assert_int_equal(y[5][i], p != q);
        }
        for (int j = 0; j < 6; j++)
            assert_int_equal(y[j][N], 77);
    }
}

static void division_truncates_and_smallest_by_minus_one_wraps(void **state)
{
    (void)state;
    for (const int_type *t = types; t < types + N_TYPES; t++) {
        const trn__integer_kernels *k = trn__integer_kernels_of(t->dtype);
        int64_t a[N], b[N], y[N];
        edges(t, a, b);
        for (int i = 0; i < N; i++) {
            if (get(t, b, i) == 0)
                put(t, b, i, 2);
        }
        assert_int_equal(k->div(N, a, b, y), -1);
        for (int i = 0; i < N; i++)
            assert_true(get(t, y, i) == wrap(t, get(t, a, i) / get(t, b, i)));
    }
}

static void division_by_zero_is_found_where_it_is(void **state)
{
    (void)state;
    for (const int_type *t = types; t < types + N_TYPES; t++) {
        const trn__integer_kernels *k = trn__integer_kernels_of(t->dtype);
        for (int at = 0; at < N; at++) {
            int64_t a[N], b[N], y[N];
            for (int i = 0; i < N; i++) {
                put(t, a, i, 42);
                put(t, b, i, i < at ? 2 : 0);
                put(t, y, i, 99);
            }
            assert_int_equal(k->div(N, a, b, y), at);
            for (int i = 0; i < N; i++)
                assert_true(get(t, y, i) == (i < at ? 21 : 99));
        }
    }
}

static void nothing_is_done_for_no_elements(void **state)
{
    (void)state;
    for (const int_type *t = types; t < types + N_TYPES; t++) {
        const trn__integer_kernels *k = trn__integer_kernels_of(t->dtype);
        k->neg(0, NULL, NULL);
        k->add(0, NULL, NULL, NULL);
        assert_int_equal(k->div(0, NULL, NULL, NULL), -1);
    }
    assert_null(trn__integer_kernels_of(TRN_BOOL));
    assert_null(trn__integer_kernels_of(TRN_F32));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic_wraps_around),
        cmocka_unit_test(comparisons_give_bool),
        cmocka_unit_test(division_truncates_and_smallest_by_minus_one_wraps),
        cmocka_unit_test(division_by_zero_is_found_where_it_is),
        cmocka_unit_test(nothing_is_done_for_no_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
