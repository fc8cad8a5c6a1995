/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversions between element types.
 *
 * Expected values of the 16-bit formats come from their definition
 * (format16.h), expected integers from long double.  All 2^32 f32 are converted
 * by `make test-math`.
 */
#include "kernel_sets.h"

#include <float.h>

#include "format16.h"

#include "kernels/integer_kernels.h"

static trn__kernel_set sets[MAX_SETS];
static int n_sets;

static float f32_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

enum { CHUNK = 1000 + 5, N_ALL = 65536, N_RANDOM = 2000000 };

static void check_widening(const format16 *f, const trn__kernel_set *s)
{
    static uint16_t x[N_ALL];
    static float y[N_ALL];
    for (uint32_t i = 0; i < N_ALL; i++)
        x[i] = (uint16_t)i;
    (f == &f16 ? s->f32_from_f16 : s->f32_from_bf16)(N_ALL, x, y);
    for (uint32_t i = 0; i < N_ALL; i++) {
        const uint32_t size = i & 0x7fffu;
        double want = size > f->infinity    ? (double)NAN
                      : size == f->infinity ? HUGE_VAL
                                            : f->size[size];
        want = i & 0x8000u ? -want : want;
        CHECK(same_f64((double)y[i], want), "%s: %04x\n", s->name, i);
    }
}

static void every_16_bit_value_widens_exactly(void **state)
{
    (void)state;
    for (int q = 0; q < n_sets; q++) {
        check_widening(&bf16, &sets[q]);
        check_widening(&f16, &sets[q]);
    }
}

static void every_16_bit_value_comes_back_from_f32_and_f64(void **state)
{
    static const format16 *const formats[] = {&bf16, &f16};
    static uint16_t x[N_ALL], from_f32[N_ALL], from_f64[N_ALL];
    static float s[N_ALL];
    static double d[N_ALL];
    (void)state;
    for (uint32_t i = 0; i < N_ALL; i++)
        x[i] = (uint16_t)i;
    for (int q = 0; q < 2; q++) {
        const format16 *f = formats[q];
        trn__convert(f->dtype, TRN_F32, N_ALL, x, s);
        trn__convert(f->dtype, TRN_F64, N_ALL, x, d);
        trn__convert(TRN_F32, f->dtype, N_ALL, s, from_f32);
        trn__convert(TRN_F64, f->dtype, N_ALL, d, from_f64);
        for (uint32_t i = 0; i < N_ALL; i++) {
            assert_true(same_f64((double)s[i], d[i]));
            CHECK(same16(f, from_f32[i], x[i]) && same16(f, from_f64[i], x[i]),
                  "%04x: %04x, %04x\n", i, from_f32[i], from_f64[i]);
        }
        for (int k = 0; k < n_sets; k++) {
            (f == &f16 ? sets[k].f32_from_f16 : sets[k].f32_from_bf16)(N_ALL, x,
                                                                       s);
            (f == &f16 ? sets[k].f16_from_f32
                       : sets[k].bf16_from_f32)(N_ALL, s, from_f32);
            for (uint32_t i = 0; i < N_ALL; i++)
                CHECK(same16(f, from_f32[i], x[i]), "%s: %04x: %04x\n",
                      sets[k].name, i, from_f32[i]);
        }
    }
}

/* n <= CHUNK numbers through every set, both formats and trn__convert */
static void check_narrowing(int64_t n, const float *x)
{
    static uint16_t got[2 * MAX_SETS + 2][CHUNK];
    for (int q = 0; q < n_sets; q++) {
        sets[q].bf16_from_f32(n, x, got[2 * q]);
        sets[q].f16_from_f32(n, x, got[2 * q + 1]);
    }
    trn__convert(TRN_F32, TRN_BF16, n, x, got[2 * n_sets]);
    trn__convert(TRN_F32, TRN_F16, n, x, got[2 * n_sets + 1]);
    for (int64_t i = 0; i < n; i++) {
        const uint16_t b = nearest(&bf16, (long double)x[i]);
        const uint16_t h = nearest(&f16, (long double)x[i]);
        for (int q = 0; q <= n_sets; q++) {
            CHECK(same16(&bf16, got[2 * q][i], b), "way %d: %a: bf16 %04x\n", q,
                  (double)x[i], got[2 * q][i]);
            CHECK(same16(&f16, got[2 * q + 1][i], h), "way %d: %a: f16 %04x\n",
                  q, (double)x[i], got[2 * q + 1][i]);
            /* all ways agree by bits, in NaNs too */
            assert_int_equal(got[2 * q][i], got[0][i]);
            assert_int_equal(got[2 * q + 1][i], got[1][i]);
        }
    }
}

static void random_f32_patterns_narrow_to_the_nearest(void **state)
{
    (void)state;
    float x[CHUNK];
    uint64_t seed = 10;
    for (int done = 0; done < N_RANDOM; done += CHUNK) {
        for (int i = 0; i < CHUNK; i++) {
            uint32_t bits = (uint32_t)next_bits(&seed);
            if (i % 2) /* around the range of f16, where bits matter */
                bits = (bits & 0x87ffffffu) |
                       (bits & 0x40000000u ? 0x40000000u : 0x38000000u);
            x[i] = f32_of(bits);
        }
        check_narrowing(CHUNK - done % 16, x);
    }
}

static void f32_at_and_beside_every_midpoint_narrow_right(void **state)
{
    (void)state;
    static format16 *const formats[] = {&bf16, &f16};
    float x[CHUNK];
    int n = 0;
    for (int q = 0; q < 2; q++) {
        const format16 *f = formats[q];
        for (uint32_t i = 0; i < f->infinity; i++) {
            const float middle =
                (float)(f->size[i] / 2 + f->size[i + 1] / 2); /* exact */
            const float sign = i % 2 ? -1.0f : 1.0f;
            x[n++] = sign * (float)f->size[i];
            x[n++] = sign * middle;
            x[n++] = sign * nextafterf(middle, 0.0f);
            x[n++] = sign * nextafterf(middle, HUGE_VALF);
            if (n > CHUNK - 4 || i + 1 == f->infinity) {
                check_narrowing(n, x);
                n = 0;
            }
        }
    }
}

static uint16_t to16(const format16 *f, trn_dtype from, const void *x)
{
    uint16_t y;
    trn__convert(from, f->dtype, 1, x, &y);
    return y;
}

static void f64_and_i64_narrow_with_one_rounding(void **state)
{
    (void)state;
    static format16 *const formats[] = {&bf16, &f16};
    uint64_t seed = 11;
    for (int q = 0; q < 2; q++) {
        const format16 *f = formats[q];
        for (uint32_t i = 0; i < f->infinity; i++) {
            const double middle = f->size[i] / 2 + f->size[i + 1] / 2;
            const double near[] = {middle, nextafter(middle, 0.0),
                                   nextafter(middle, HUGE_VAL),
                                   middle * (1.0 + 0x1p-30), f->size[i]};
            for (int j = 0; j < 5; j++) {
                const double x = i % 2 ? -near[j] : near[j];
                CHECK(
                    same16(f, to16(f, TRN_F64, &x), nearest(f, (long double)x)),
                    "%a\n", x);
            }
        }
        for (int i = 0; i < 100000; i++) {
            int64_t v = (int64_t)(next_bits(&seed) >> (i % 64));
            if (i & 64) /* at a midpoint of bf16 or a few bits beside it */
                v = (int64_t)(UINT64_C(0x4040000000000000) >> (i % 46)) +
                    (i % 3 - 1) * (INT64_C(1) << (i % 13));
            v = i & 128 ? -v : v;
            CHECK(same16(f, to16(f, TRN_I64, &v), nearest(f, (long double)v)),
                  "%lld\n", (long long)v);
            float y;
            trn__convert(TRN_I64, TRN_F32, 1, &v, &y);
            assert_true(y == (float)v);
        }
        const double extreme[] = {(double)NAN, HUGE_VAL, -HUGE_VAL, DBL_MAX,
                                  -DBL_MIN,    5e-324,   -0.0};
        for (int i = 0; i < 7; i++)
            assert_true(same16(f, to16(f, TRN_F64, &extreme[i]),
                               nearest(f, (long double)extreme[i])));
    }
}

/* All types of a number: written from f64 or i64, read back as f64. */
static double through(trn_dtype from, const void *x, trn_dtype to)
{
    unsigned char y[8];
    double back;
    trn__convert(from, to, 1, x, y);
    trn__convert(to, TRN_F64, 1, y, &back);
    return back;
}

static void floats_saturate_to_integers(void **state)
{
    (void)state;
    static const struct {
        double x, i64, i32, u32, u8, as_bool;
    } row[] = {
        {0.0, 0, 0, 0, 0, 0},
        {-0.0, 0, 0, 0, 0, 0},
        {0.99, 0, 0, 0, 0, 1},
        {-0.99, 0, 0, 0, 0, 1},
        {-1.5, -1, -1, 0, 0, 1},
        {255.99, 255, 255, 255, 255, 1},
        {256.0, 256, 256, 256, 255, 1},
        {2147483647.5, 2147483647, 2147483647, 2147483647, 255, 1},
        {2147483648.0, 2147483648, 2147483647, 2147483648, 255, 1},
        {-2147483648.9, -2147483648, -2147483648, 0, 0, 1},
        {-2147483649.0, -2147483649, -2147483648, 0, 0, 1},
        {4294967295.5, 4294967295, 2147483647, 4294967295, 255, 1},
        {4294967296.0, 4294967296, 2147483647, 4294967295, 255, 1},
        {0x1p63, 0x1p63, 2147483647, 4294967295, 255, 1},
        {-0x1p63, -0x1p63, -2147483648, 0, 0, 1},
        {1e300, 0x1p63, 2147483647, 4294967295, 255, 1},
        {-1e300, -0x1p63, -2147483648, 0, 0, 1},
        {HUGE_VAL, 0x1p63, 2147483647, 4294967295, 255, 1},
        {-HUGE_VAL, -0x1p63, -2147483648, 0, 0, 1},
        {(double)NAN, 0, 0, 0, 0, 1},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const double x = row[i].x;
        assert_true(through(TRN_F64, &x, TRN_I64) == row[i].i64);
        assert_true(through(TRN_F64, &x, TRN_I32) == row[i].i32);
        assert_true(through(TRN_F64, &x, TRN_U32) == row[i].u32);
        assert_true(through(TRN_F64, &x, TRN_U8) == row[i].u8);
        assert_true(through(TRN_F64, &x, TRN_BOOL) == row[i].as_bool);
        const float y = (float)x;
        if ((double)y != x && x == x)
            continue; /* another number, or out of range */
        assert_true(through(TRN_F32, &y, TRN_I64) == row[i].i64);
        assert_true(through(TRN_F32, &y, TRN_I32) == row[i].i32);
        assert_true(through(TRN_F32, &y, TRN_U32) == row[i].u32);
        assert_true(through(TRN_F32, &y, TRN_U8) == row[i].u8);
        assert_true(through(TRN_F32, &y, TRN_BOOL) == row[i].as_bool);
    }
    int64_t largest;
    const double infinity = HUGE_VAL;
    trn__convert(TRN_F64, TRN_I64, 1, &infinity, &largest);
    assert_true(largest == INT64_MAX);
}

static void integers_wrap_around(void **state)
{
    (void)state;
    uint64_t seed = 12;
    for (int i = 0; i < 10000; i++) {
        const int64_t x = (int64_t)next_bits(&seed) >> (i % 64);
        const uint64_t word = (uint64_t)x;
        int64_t i32 = (int64_t)(word & UINT32_MAX);
        if (i32 > INT32_MAX)
            i32 -= INT64_C(0x100000000);
        assert_true(through(TRN_I64, &x, TRN_I32) == (double)i32);
        assert_true(through(TRN_I64, &x, TRN_U32) ==
                    (double)(word & UINT32_MAX));
        assert_true(through(TRN_I64, &x, TRN_U8) == (double)(word % 256));
        assert_true(through(TRN_I64, &x, TRN_BOOL) == (x != 0));
        const int32_t narrow = (int32_t)i32;
        int64_t y;
        trn__convert(TRN_I32, TRN_I64, 1, &narrow, &y);
        assert_true(y == i32);
        const uint32_t u32 = (uint32_t)(word & UINT32_MAX);
        trn__convert(TRN_U32, TRN_I64, 1, &u32, &y);
        assert_true(y == (int64_t)u32);
        assert_true(through(TRN_I32, &narrow, TRN_U32) == (double)u32);
        assert_true(through(TRN_U32, &u32, TRN_I32) == (double)narrow);
    }
}

/* Small numbers exist in every type, so any chain of types keeps them. */
static void every_pair_of_types_keeps_small_numbers(void **state)
{
    (void)state;
    double x[256], y[256];
    unsigned char a[8 * 256], b[8 * 256];
    for (int i = 0; i < 256; i++)
        x[i] = i;
    for (int from = TRN_F64; from <= TRN_BOOL; from++) {
        for (int to = TRN_F64; to <= TRN_BOOL; to++) {
            const bool flag = from == TRN_BOOL || to == TRN_BOOL;
            trn__convert(TRN_F64, (trn_dtype)from, 256, x, a);
            trn__convert((trn_dtype)from, (trn_dtype)to, 256, a, b);
            trn__convert((trn_dtype)to, TRN_F64, 256, b, y);
            for (int i = 0; i < 256; i++)
                CHECK(y[i] == (flag ? i != 0 : i), "%d to %d: %d\n", from, to,
                      i);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_16_bit_value_widens_exactly),
        cmocka_unit_test(every_16_bit_value_comes_back_from_f32_and_f64),
        cmocka_unit_test(random_f32_patterns_narrow_to_the_nearest),
        cmocka_unit_test(f32_at_and_beside_every_midpoint_narrow_right),
        cmocka_unit_test(f64_and_i64_narrow_with_one_rounding),
        cmocka_unit_test(floats_saturate_to_integers),
        cmocka_unit_test(integers_wrap_around),
        cmocka_unit_test(every_pair_of_types_keeps_small_numbers),
    };
    fill_sizes(&bf16);
    fill_sizes(&f16);
    n_sets = kernel_sets(sets);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
