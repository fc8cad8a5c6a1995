/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU device without the core: opening, elementwise ops and moves of
 * elements, on both kernel sets and with ranges in any order.
 */
#include "cpu_host.h"

static const int64_t shapes[][3] = {
    {1, 1, 1}, {3, 5, 7}, {2, 1, 1500}, {40, 33, 31}, {0, 3, 4}, {2, 70, 600},
};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static void open_refuses_unknown_isa_and_says_what_there_is(void **state)
{
    (void)state;
    fake_host before = hosts[0];
    trn_device *first = devices[0];
    assert_int_equal(open_device(0, "sse9", false), TRN_ERR_UNSUPPORTED);
    assert_non_null(strstr(hosts[0].message, "generic"));
    assert_int_equal(hosts[0].live, 0);
    hosts[0] = before;
    devices[0] = first;
    assert_string_equal(trn__cpu_backend.describe(devices[0]), GENERIC_SET);
    if (n_devices > 2)
        assert_string_equal(trn__cpu_backend.describe(devices[2]), "avx2");
}

static void memory_is_written_and_read(void **state)
{
    (void)state;
    char text[6] = "";
    trn_buffer *b = trn__cpu_backend.alloc(devices[0], 16);
    assert_int_equal(trn__cpu_backend.write(devices[0], b, 3, "hello", 6), 0);
    assert_int_equal(trn__cpu_backend.read(devices[0], b, 3, text, 6), 0);
    assert_string_equal(text, "hello");
    trn__cpu_backend.free(devices[0], b);
}

static double sum_of(double a, double b, uint32_t dtype)
{
    if (dtype == TRN_F64 || dtype > TRN_F16)
        return a + b;
    return (double)((float)a + (float)b);
}

static void add_is_the_sum_in_every_layout_and_type(void **state)
{
    (void)state;
    static const uint32_t types[] = {TRN_F32, TRN_F64, TRN_BF16,
                                     TRN_F16, TRN_I32, TRN_I64};
    for (int s = 0; s < N_SHAPES; s++)
        for (int t = 0; t < 6; t++)
            for (int how = 0; how < N_LAYOUTS; how++) {
                const trn_arg in[4] = {
                    ones_of(types[t], 3, shapes[s], (layout)how, 1),
                    ones_of(types[t], 3, shapes[s], (layout)((how + 1) % 4),
                            2)};
                for (int d = 0; d < n_devices; d++) {
                    trn_arg y = zeros(types[t], 3, shapes[s], PLAIN);
                    assert_int_equal(
                        run_on(d, TRN_OP_add, 2, in, &y, NULL, NULL, NULL),
                        TRN_OK);
                    for (int64_t i = 0; i < numel(&y); i++)
                        check_element(
                            &y, i,
                            sum_of(get(&in[0], i), get(&in[1], i), types[t]),
                            "add");
                }
            }
}

static void functions_give_the_same_bits_on_every_set_and_layout(void **state)
{
    (void)state;
    static const trn_op ops[] = {TRN_OP_exp, TRN_OP_tanh, TRN_OP_relu,
                                 TRN_OP_neg, TRN_OP_flush_subnormal};
    static const uint32_t types[] = {TRN_F32, TRN_F64, TRN_BF16};
    for (int o = 0; o < 5; o++)
        for (int t = 0; t < 3; t++)
            for (int how = 0; how < N_LAYOUTS; how++) {
                const trn_arg x =
                    ones_of(types[t], 3, shapes[3], (layout)how, 9);
                trn_arg y = zeros(types[t], 3, shapes[3], PLAIN);
                trn_arg z = zeros(types[t], 3, shapes[3], PLAIN);
                for (int64_t i = 0; i < numel(&y); i++) /* one at a time */ {
                    trn_arg in[4] = {{0}}, one = z;
                    in[0] = x;
                    in[0].rank = one.rank = 0;
                    in[0].offset = place(&x, i);
                    one.offset = i;
                    run_on(0, ops[o], 1, in, &one, NULL, NULL, NULL);
                }
                for (int d = 0; d < n_devices; d++) {
                    const trn_arg in[4] = {x};
                    run_on(d, ops[o], 1, in, &y, NULL, NULL, NULL);
                    for (int64_t i = 0; i < numel(&y); i++)
                        check_element(&y, i, get(&z, i), "unary");
                }
            }
}

static void where_chooses_and_comparisons_give_bools(void **state)
{
    (void)state;
    static const uint32_t types[] = {TRN_F32, TRN_F64, TRN_F16, TRN_U8};
    for (int t = 0; t < 4; t++)
        for (int how = 0; how < N_LAYOUTS; how++) {
            const trn_arg c = ones_of(TRN_BOOL, 3, shapes[3], (layout)how, 3);
            const trn_arg a = ones_of(types[t], 3, shapes[3], GAPS, 4);
            const trn_arg b = ones_of(types[t], 3, shapes[3], SWAPPED, 5);
            const trn_arg in[4] = {c, a, b};
            trn_arg y = zeros(types[t], 3, shapes[3], PLAIN);
            trn_arg g = zeros(TRN_BOOL, 3, shapes[3], PLAIN);
            set(&a, 0, types[t] == TRN_U8 ? 1 : (double)NAN);
            for (int d = 0; d < n_devices; d++) {
                run_on(d, TRN_OP_where, 3, in, &y, NULL, NULL, NULL);
                run_on(d, TRN_OP_greater, 2, in + 1, &g, NULL, NULL, NULL);
                for (int64_t i = 0; i < numel(&y); i++) {
                    check_element(&y, i, get(get(&c, i) != 0 ? &a : &b, i),
                                  "where");
                    check_element(&g, i, get(&a, i) > get(&b, i), "greater");
                }
            }
        }
}

static void scalars_are_rounded_once(void **state)
{
    (void)state;
    const double v[] = {0.1};
    for (int how = 0; how < N_LAYOUTS; how++) {
        const trn_arg in[4] = {ones_of(TRN_F32, 3, shapes[3], (layout)how, 6)};
        const trn_arg ints[4] = {
            ones_of(TRN_I32, 3, shapes[3], (layout)how, 6)};
        const double two[] = {2.9};
        trn_arg y = zeros(TRN_F32, 3, shapes[3], PLAIN);
        trn_arg k = zeros(TRN_I32, 3, shapes[3], PLAIN);
        for (int d = 0; d < n_devices; d++) {
            run_on(d, TRN_OP_mul_scalar, 1, in, &y, NULL, v, NULL);
            run_on(d, TRN_OP_add_scalar, 1, ints, &k, NULL, two, NULL);
            for (int64_t i = 0; i < numel(&y); i++) {
                check_element(&y, i, (double)((float)get(&in[0], i) * 0.1f),
                              "scalar");
                check_element(&k, i, get(&ints[0], i) + 2, "scalar");
            }
        }
    }
}

static void division_by_zero_reports_the_lowest_position(void **state)
{
    (void)state;
    const int64_t n[] = {100000};
    const trn_arg in[4] = {ones_of(TRN_I64, 1, n, PLAIN, 1),
                           ones_of(TRN_I64, 1, n, GAPS, 2)};
    trn_arg y = zeros(TRN_I64, 1, n, PLAIN);
    for (int64_t i = 0; i < n[0]; i++)
        set(&in[1], i, i == 99999 || i == 54321 || i == 54400 ? 0 : -3);
    for (int d = 0; d < n_devices; d++) {
        trn_op_report r = {0};
        assert_int_equal(run_on(d, TRN_OP_div, 2, in, &y, NULL, NULL, &r),
                         TRN_ERR_VALUE);
        assert_int_equal(r.kind, TRN_REPORT_ZERO_DIVISOR);
        assert_int_equal(r.input, 1);
        assert_int_equal(r.position, 54321);
    }
    for (int64_t i = 0; i < n[0]; i++)
        set(&in[1], i, -3);
    for (int d = 0; d < n_devices; d++) {
        assert_int_equal(run_on(d, TRN_OP_div, 2, in, &y, NULL, NULL, NULL), 0);
        for (int64_t i = 0; i < n[0]; i++)
            check_element(&y, i, trunc(get(&in[0], i) / -3), "div");
    }
}

static void check_finite_reports_the_lowest_position_and_copies(void **state)
{
    (void)state;
    static const uint32_t types[] = {TRN_F32, TRN_F64, TRN_BF16, TRN_F16};
    const int64_t n[] = {70000, 3};
    for (int t = 0; t < 4; t++)
        for (int d = 0; d < n_devices; d++) {
            trn_op_report r = {0};
            const trn_arg in[4] = {ones_of(types[t], 2, n, SWAPPED, 1)};
            trn_arg y = zeros(types[t], 2, n, PLAIN);
            assert_int_equal(
                run_on(d, TRN_OP_check_finite, 1, in, &y, NULL, NULL, &r),
                TRN_OK);
            for (int64_t i = 0; i < numel(&y); i++)
                check_element(&y, i, get(&in[0], i), "check_finite");
            set(&in[0], 190001, (double)INFINITY);
            set(&in[0], 123457, (double)NAN);
            assert_int_equal(
                run_on(d, TRN_OP_check_finite, 1, in, &y, NULL, NULL, &r),
                TRN_ERR_NUMERIC);
            assert_int_equal(r.kind, TRN_REPORT_NOT_FINITE);
            assert_int_equal(r.position, 123457);
        }
}

static void casts_go_between_all_types_in_every_layout(void **state)
{
    (void)state;
    for (uint32_t from = TRN_F64; from <= TRN_BOOL; from++)
        for (uint32_t to = TRN_F64; to <= TRN_BOOL; to++)
            for (int how = 0; how < N_LAYOUTS; how++) {
                const trn_arg in[4] = {
                    ones_of(from, 3, shapes[1], (layout)how, from)};
                for (int d = 0; d < n_devices; d++) {
                    trn_arg y = zeros(to, 3, shapes[1], PLAIN);
                    run_on(d, TRN_OP_cast, 1, in, &y, NULL, NULL, NULL);
                    for (int64_t i = 0; i < numel(&y); i++) {
                        double want = get(&in[0], i);
                        if (to == TRN_BOOL)
                            want = want != 0;
                        else if (to > TRN_F16 && from <= TRN_F16)
                            want = want < 0 && to >= TRN_U32 ? 0 : trunc(want);
                        else if (to == TRN_U8)
                            want = fmod(want, 256);
                        check_element(&y, i, want + 0.0 /* no -0 of integers */,
                                      "cast");
                    }
                }
            }
}

static void full_pad_and_assign_move_bits(void **state)
{
    (void)state;
    const trn_pad_attrs pad = {
        .axis = 1, .before = 2, .after = -1, .interior = 1};
    const int64_t out[] = {40, 2 + 65 - 1, 31};
    const double v[] = {300.7};
    for (int how = 0; how < N_LAYOUTS; how++)
        for (int d = 0; d < n_devices; d++) {
            const trn_arg x = ones_of(TRN_F32, 3, shapes[3], (layout)how, 8);
            trn_arg y = zeros(TRN_F32, 3, out, PLAIN);
            trn_arg u = zeros(TRN_U8, 3, shapes[3], PLAIN);
            const trn_arg in[4] = {x};
            run_on(d, TRN_OP_pad, 1, in, &y, &pad, NULL, NULL);
            for (int64_t i = 0; i < numel(&y); i++) {
                const int64_t col = i % 31, row = i / 31 % out[1] - 2;
                const int64_t from =
                    (i / 31 / out[1] * 33 + row / 2) * 31 + col;
                check_element(&y, i,
                              row >= 0 && row % 2 == 0 ? get(&x, from) : 0.0,
                              "pad");
            }
            run_on(d, TRN_OP_full, 0, in, &u, NULL, v, NULL);
            check_element(&u, 7, 255, "full");
            trn_arg target = zeros(TRN_F32, 3, shapes[3], GAPS);
            const trn_arg pair[4] = {target, x};
            run_on(d, TRN_OP_assign, 2, pair, NULL, NULL, NULL, NULL);
            for (int64_t i = 0; i < numel(&x); i++)
                check_element(&target, i, get(&x, i), "assign");
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CPU_TEST(open_refuses_unknown_isa_and_says_what_there_is),
        CPU_TEST(memory_is_written_and_read),
        CPU_TEST(add_is_the_sum_in_every_layout_and_type),
        CPU_TEST(functions_give_the_same_bits_on_every_set_and_layout),
        CPU_TEST(where_chooses_and_comparisons_give_bools),
        CPU_TEST(scalars_are_rounded_once),
        CPU_TEST(division_by_zero_reports_the_lowest_position),
        CPU_TEST(check_finite_reports_the_lowest_position_and_copies),
        CPU_TEST(casts_go_between_all_types_in_every_layout),
        CPU_TEST(full_pad_and_assign_move_bits),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
