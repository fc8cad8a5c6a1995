/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions, softmax and cross-entropy of the CPU device against literal
 * transcriptions of their rules: elements one by one, block sums in lists that
 * are halved level by level.
 */
#include "cpu_host.h"

#include "backends/cpu/cpu_reduce.h"

enum { MAX_BLOCKS = 4096 };

/* The sum of n elements by the rule "reductions". */
static double rule_sum(const double *x, int64_t n)
{
    static double level[MAX_BLOCKS];
    int64_t blocks = 0;
    for (int64_t at = 0; at < n; at += 4096) {
        double lane[16] = {0};
        for (int64_t i = 0; i < 4096 && at + i < n; i++)
            lane[i % 16] += x[at + i];
        for (int half = 8; half > 0; half /= 2)
            for (int l = 0; l < half; l++)
                lane[l] += lane[l + half];
        level[blocks++] = lane[0];
    }
    while (blocks > 1) {
        for (int64_t i = 0; i + 1 < blocks; i += 2)
            level[i / 2] = level[i] + level[i + 1];
        if (blocks % 2)
            level[blocks / 2] = level[blocks - 1];
        blocks = (blocks + 1) / 2;
    }
    return blocks == 0 ? 0.0 : level[0];
}

static void tree_equals_halving_of_lists(void **state)
{
    (void)state;
    double part[TRN__CPU_LEVELS], x[300], level[300], got;
    uint64_t seed = 1;
    for (int i = 0; i < 300; i++)
        x[i] = (double)next_bits(&seed) * 0x1p-40 / (double)(i % 7 + 1);
    for (int n = 1; n <= 300; n++) {
        trn__cpu_tree t = {.full = 0, .width = 1, .part = part};
        for (int i = 0; i < n; i++) {
            double v = x[i];
            trn__cpu_tree_push(&t, 0, &v);
            level[i] = x[i];
        }
        trn__cpu_tree_total(&t, false, &got);
        for (int m = n; m > 1; m = (m + 1) / 2) {
            for (int i = 0; i + 1 < m; i += 2)
                level[i / 2] = level[i] + level[i + 1];
            if (m % 2)
                level[m / 2] = level[m - 1];
        }
        assert_true(same_f64(got, level[0]));
    }
}

static double rule_reduce(trn_op op, double *x, int64_t n, bool f64)
{
    double top = 0, scale = 1, x0 = x[0];
    for (int64_t i = 0; i < n; i++)
        top = fabs(x[i]) > top ? fabs(x[i]) : top;
    if (op == TRN_OP_sum)
        return rule_sum(x, n);
    if (f64 && op == TRN_OP_mean && top > 0x1p960)
        scale = 0x1p-64;
    if (f64 && op == TRN_OP_norm && top > 0x1p500)
        scale = 0x1p-600;
    if (f64 && op == TRN_OP_norm && top > 0 && top < 0x1p-500)
        scale = 0x1p600;
    x0 = isfinite(x0) ? x0 * scale : 0;
    for (int64_t i = 0; i < n; i++) {
        x[i] *= scale;
        x[i] = op == TRN_OP_mean ? x[i] - x0 : x[i] * x[i];
    }
    const double s = rule_sum(x, n);
    return (op == TRN_OP_mean ? x0 + s / (double)n : sqrt(s)) / scale;
}

/* Elements of output o over `axes`, in the order of the rule. */
static int64_t elements(const trn_arg *x, uint32_t axes, int64_t o, double *v)
{
    int64_t n = 0;
    for (int64_t i = 0; i < numel(x); i++) {
        int64_t rest = i, step = 1, out = 0;
        for (uint32_t d = x->rank; d-- > 0;) {
            if (!(axes >> d & 1)) {
                out += rest % x->shape[d] * step;
                step *= x->shape[d];
            }
            rest /= x->shape[d];
        }
        if (out == o)
            v[n++] = get(x, i);
    }
    return n;
}

static trn_arg reduced(const trn_arg *x, uint32_t axes, uint32_t dtype)
{
    int64_t shape[TRN_MAX_RANK];
    int rank = 0;
    for (uint32_t d = 0; d < x->rank; d++)
        if (!(axes >> d & 1))
            shape[rank++] = x->shape[d];
    return zeros(dtype, rank, shape, PLAIN);
}

static double v_buffer[1 << 20];

static void check_reduction(trn_op op, const trn_arg *x, uint32_t axes)
{
    const bool ints = x->dtype > TRN_F16;
    const uint32_t to = ints && op == TRN_OP_sum ? (uint32_t)TRN_I64 : x->dtype;
    const trn_reduce_attrs attrs = {.axes = axes};
    trn_arg y = reduced(x, axes, to), want = reduced(x, axes, TRN_F64);
    const trn_arg in[4] = {*x};
    for (int64_t o = 0; o < numel(&y); o++) {
        const int64_t n = elements(x, axes, o, v_buffer);
        double w = v_buffer[0];
        for (int64_t i = 0; op == TRN_OP_max && i < n; i++)
            w = w != w || v_buffer[i] <= w ? w : v_buffer[i];
        if (op != TRN_OP_max)
            w = rule_reduce(op, v_buffer, n, x->dtype == TRN_F64);
        set(&want, o, w);
    }
    for (int d = 0; d < n_devices; d++) {
        assert_int_equal(run_on(d, op, 1, in, &y, &attrs, NULL, NULL), 0);
        for (int64_t o = 0; o < numel(&y); o++)
            check_element(&y, o, get(&want, o), "reduction");
    }
}

static void reductions_follow_the_rule_in_every_layout(void **state)
{
    (void)state;
    static const trn_op ops[] = {TRN_OP_sum, TRN_OP_mean, TRN_OP_norm,
                                 TRN_OP_max};
    static const uint32_t types[] = {TRN_F32, TRN_F64, TRN_BF16, TRN_I32};
    const int64_t shape[] = {5, 13, 6};
    for (int t = 0; t < 4; t++)
        for (int o = 0; o < 4; o++)
            for (int how = 0; how < N_LAYOUTS; how++)
                for (uint32_t axes = 0; axes < 8; axes++) {
                    if (types[t] == TRN_I32 && (o == 1 || o == 2))
                        continue;
                    const trn_arg x =
                        ones_of(types[t], 3, shape, (layout)how, 7);
                    check_reduction(ops[o], &x, axes);
                }
}

static void long_reductions_follow_the_rule(void **state)
{
    (void)state;
    static const int64_t shape[][2] = {{1, 4096},   {1, 4097},   {3, 12289},
                                       {1, 300001}, {150000, 3}, {9000, 70}};
    static const uint32_t types[] = {TRN_F32, TRN_F64, TRN_F16};
    for (int s = 0; s < 6; s++)
        for (int t = 0; t < 3; t++) {
            if (shape[s][1] == 70 && t != 0)
                continue;
            for (int how = 0; how < 2; how++) {
                const trn_arg x =
                    ones_of(types[t], 2, shape[s], how ? SWAPPED : PLAIN, 3);
                const uint32_t axes = shape[s][0] > shape[s][1] ? 1 : 2;
                if (shape[s][1] == 70 && how)
                    continue;
                check_reduction(TRN_OP_sum, &x, axes);
                check_reduction(TRN_OP_mean, &x, axes);
            }
        }
}

static void extreme_magnitudes_neither_overflow_nor_vanish(void **state)
{
    (void)state;
    static const double values[][4] = {
        {0x1.8p1023, 0x1.4p1023, 0x1p1023, 0x1.fp1022},
        {0x1p-1074, 0x1p-1070, 0, 0x1p-1060},
        {0x1p600, 1, -0x1p600, 3},
        {0, 0, -0.0, 0},
        {1, (double)INFINITY, 2, 3},
        {(double)INFINITY, 1, 2, 3},
        {1, (double)NAN, 2, 0x1p1000},
    };
    const int64_t shape[] = {4, 2};
    for (int v = 0; v < 7; v++)
        for (int how = 0; how < 3; how++)
            for (uint32_t axes = 1; axes < 4; axes++) {
                const trn_arg x = zeros(TRN_F64, 2, shape, (layout)how);
                for (int i = 0; i < 8; i++)
                    set(&x, i, values[i % 2 ? v : 0][i / 2]);
                check_reduction(TRN_OP_mean, &x, axes);
                check_reduction(TRN_OP_norm, &x, axes);
            }
}

static void reductions_of_nothing_have_their_values(void **state)
{
    (void)state;
    const int64_t shape[] = {3, 0};
    const trn_reduce_attrs attrs = {.axes = 2};
    const trn_arg in[4] = {zeros(TRN_F32, 2, shape, PLAIN)};
    for (int d = 0; d < n_devices; d++)
        for (int o = 0; o < 3; o++) {
            static const trn_op ops[] = {TRN_OP_sum, TRN_OP_mean, TRN_OP_norm};
            trn_arg y = zeros(TRN_F32, 1, shape, PLAIN);
            run_on(d, ops[o], 1, in, &y, &attrs, NULL, NULL);
            for (int i = 0; i < 3; i++)
                check_element(&y, i, o == 1 ? (double)NAN : 0.0, "empty");
        }
}

static void argmax_is_the_first_largest_and_nan_is_larger(void **state)
{
    (void)state;
    const int64_t shape[] = {2, 5, 3}, out[] = {2, 3};
    static const double v[] = {1, 7, 7, 2, 7};
    const trn_axis_attrs attrs = {.axis = 1};
    for (int how = 0; how < 3; how++)
        for (int d = 0; d < n_devices; d++) {
            const trn_arg in[4] = {zeros(TRN_BF16, 3, shape, (layout)how)};
            trn_arg y = zeros(TRN_I32, 2, out, PLAIN);
            for (int i = 0; i < 30; i++)
                set(&in[0], i, v[i / 3 % 5]);
            set(&in[0], 2 * 3 + 1, (double)NAN);
            set(&in[0], 4 * 3 + 1, (double)NAN);
            run_on(d, TRN_OP_argmax, 1, in, &y, &attrs, NULL, NULL);
            for (int i = 0; i < 6; i++)
                check_element(&y, i, i == 1 ? 2 : 1, "argmax");
        }
}

/* exp, log as the generic set gives them. */
static double f32_of(trn_op op, double x)
{
    const float v = (float)x;
    float y;
    if (op == TRN_OP_exp)
        devices[0]->set.exp_f32(1, &v, &y);
    else
        devices[0]->set.log_f32(1, &v, &y);
    return (double)y;
}

/* One row of n f32 values: softmax and log_softmax by the decomposition. */
static void rule_softmax(int64_t n, const double *x, double *soft, double *log)
{
    static double e[10000];
    float m = (float)x[0];
    const double low = -(double)INFINITY;
    for (int64_t i = 1; i < n; i++)
        m = m != m || x[i] <= (double)m ? m : (float)x[i];
    for (int64_t i = 0; i < n; i++) {
        log[i] = x[i] == (double)m ? 0 : (double)((float)x[i] - m);
        e[i] = x[i] == low ? 0 : f32_of(TRN_OP_exp, log[i]);
    }
    const float s = (float)rule_sum(e, n);
    for (int64_t i = 0; i < n; i++) {
        soft[i] = s == 0 ? 0 : (double)((float)e[i] / s);
        log[i] = x[i] == low ? low
                             : (double)((float)log[i] -
                                        (float)f32_of(TRN_OP_log, (double)s));
    }
}

static void softmax_equals_its_decomposition(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {
        {3, 9, 4}, {2, 5000, 1}, {1, 1, 1}, {40, 97, 3}};
    static double x[10000], soft[10000], log[10000];
    const double inf = (double)INFINITY;
    const trn_axis_attrs attrs = {.axis = 1};
    for (int s = 0; s < 4; s++)
        for (int how = 0; how < N_LAYOUTS; how++)
            for (int half = 0; half < 2; half++) {
                const int64_t n = shapes[s][1], inner = shapes[s][2];
                const trn_arg in[4] = {ones_of(half ? TRN_BF16 : TRN_F32, 3,
                                               shapes[s], (layout)how, 5)};
                if (s == 0 && how != REPEATED)
                    for (int64_t i = 0; i < n; i++) {
                        set(&in[0], i * inner, -inf);
                        if (i < 3)
                            set(&in[0], i * inner + 1, i ? inf : -inf);
                        if (i == 4)
                            set(&in[0], i * inner + 2, (double)NAN);
                        if (i == 5)
                            set(&in[0], i * inner + 3, -inf);
                    }
                for (int d = 0; d < n_devices; d++) {
                    trn_arg y = zeros(in[0].dtype, 3, shapes[s], PLAIN);
                    trn_arg z = zeros(in[0].dtype, 3, shapes[s], PLAIN);
                    run_on(d, TRN_OP_softmax, 1, in, &y, &attrs, NULL, NULL);
                    run_on(d, TRN_OP_log_softmax, 1, in, &z, &attrs, NULL,
                           NULL);
                    for (int64_t r = 0; r < numel(&y) / n; r++) {
                        const int64_t at = r / inner * n * inner + r % inner;
                        for (int64_t i = 0; i < n; i++)
                            x[i] = get(&in[0], at + i * inner);
                        rule_softmax(n, x, soft, log);
                        for (int64_t i = 0; i < n; i++) {
                            check_element(&y, at + i * inner, soft[i], "soft");
                            check_element(&z, at + i * inner, log[i], "log");
                        }
                    }
                }
            }
}

static void check_cross_entropy(uint32_t dtype, int64_t n, int64_t classes,
                                layout how, trn_reduction reduction, int ignore)
{
    const int64_t shape[] = {n, classes};
    static double x[1000], soft[1000], log[1000], loss[2000];
    const trn_cross_entropy_attrs attrs = {.reduction = (int32_t)reduction,
                                           .has_ignore_index = ignore != 0,
                                           .ignore_index = -100};
    const trn_arg logits = ones_of(dtype, 2, shape, how, 11);
    const trn_arg target = zeros(TRN_I64, 1, shape, GAPS);
    const bool none = reduction == TRN_REDUCE_NONE;
    const trn_arg g = ones_of(dtype, none, shape, PLAIN, 12);
    const trn_arg in[4] = {logits, target, g};
    float count = 0;
    for (int64_t i = 0; i < n; i++) {
        const bool skip = ignore == 2 || (ignore == 1 && i % 3 == 0);
        set(&target, i, skip ? -100 : (double)(i * 7 % classes));
        count += !skip;
    }
    for (int d = 0; d < n_devices; d++) {
        trn_arg y = zeros(dtype, none, shape, PLAIN);
        trn_arg gx = zeros(dtype, 2, shape, PLAIN);
        assert_int_equal(
            run_on(d, TRN_OP_cross_entropy, 2, in, &y, &attrs, NULL, NULL), 0);
        assert_int_equal(run_on(d, TRN_OP_cross_entropy_grad, 3, in, &gx,
                                &attrs, NULL, NULL),
                         0);
        for (int64_t i = 0; i < n; i++) {
            const int64_t t = (int64_t)get(&target, i);
            for (int64_t c = 0; c < classes; c++)
                x[c] = get(&logits, i * classes + c);
            rule_softmax(classes, x, soft, log);
            loss[i] = t < 0 ? 0 : -log[t];
            float w = (float)get(&g, none ? i : 0);
            if (reduction == TRN_REDUCE_MEAN)
                w = w / count;
            for (int64_t c = 0; c < classes; c++)
                check_element(
                    &gx, i * classes + c,
                    t < 0 ? 0
                          : (double)(((float)soft[c] - (c == t ? 1.0f : 0.0f)) *
                                     w),
                    "cross_entropy_grad");
            if (none)
                check_element(&y, i, loss[i], "cross_entropy");
        }
        float sum = (float)rule_sum(loss, n);
        if (reduction == TRN_REDUCE_MEAN)
            sum = count == 0 ? 0 : sum / count;
        if (!none)
            check_element(&y, 0, (double)sum, "cross_entropy");
    }
}

static void cross_entropy_equals_its_decomposition(void **state)
{
    (void)state;
    for (int how = 0; how < N_LAYOUTS; how++)
        for (int reduction = 0; reduction < 3; reduction++)
            for (int ignore = 0; ignore < 3; ignore++)
                for (int t = 0; t < 2; t++) {
                    const uint32_t dtype = t ? TRN_BF16 : TRN_F32;
                    check_cross_entropy(dtype, 60, 97, (layout)how,
                                        (trn_reduction)reduction, ignore);
                    check_cross_entropy(dtype, 0, 5, (layout)how,
                                        (trn_reduction)reduction, ignore);
                    if (ignore == 1 && how == PLAIN)
                        check_cross_entropy(dtype, 1100, 10, PLAIN,
                                            (trn_reduction)reduction, ignore);
                }
}

/* The same operand seen with its last axis repeated n times. */
static trn_arg repeated(trn_arg a, int64_t n)
{
    a.rank = 2;
    a.shape[1] = n;
    a.stride[1] = 0;
    return a;
}

static void f64_rows_equal_the_primitives_that_they_are_made_of(void **state)
{
    (void)state;
    const int64_t shape[] = {7, 4999};
    const trn_reduce_attrs axes = {.axes = 2};
    const trn_axis_attrs axis = {.axis = 1};
    const trn_cross_entropy_attrs none = {.reduction = TRN_REDUCE_NONE};
    const trn_cross_entropy_attrs all = {.reduction = TRN_REDUCE_SUM};
    const trn_arg x[4] = {ones_of(TRN_F64, 2, shape, PLAIN, 4),
                          zeros(TRN_I32, 1, shape, PLAIN)};
    for (int i = 0; i < 7; i++)
        set(&x[1], i, i * 700);
    for (int d = 0; d < n_devices; d++) {
        trn_arg m = zeros(TRN_F64, 1, shape, PLAIN);
        trn_arg s = zeros(TRN_F64, 1, shape, PLAIN);
        trn_arg log_s = zeros(TRN_F64, 1, shape, PLAIN);
        trn_arg diff = zeros(TRN_F64, 2, shape, PLAIN);
        trn_arg e = zeros(TRN_F64, 2, shape, PLAIN);
        trn_arg soft = zeros(TRN_F64, 2, shape, PLAIN);
        trn_arg fused = zeros(TRN_F64, 2, shape, PLAIN);
        trn_arg loss = zeros(TRN_F64, 1, shape, PLAIN);
        trn_arg total = zeros(TRN_F64, 0, shape, PLAIN);
        run_on(d, TRN_OP_max, 1, x, &m, &axes, NULL, NULL);
        const trn_arg sub[4] = {x[0], repeated(m, 4999)};
        run_on(d, TRN_OP_sub, 2, sub, &diff, NULL, NULL, NULL);
        const trn_arg exp[4] = {diff};
        run_on(d, TRN_OP_exp, 1, exp, &e, NULL, NULL, NULL);
        const trn_arg sum[4] = {e};
        run_on(d, TRN_OP_sum, 1, sum, &s, &axes, NULL, NULL);
        const trn_arg div[4] = {e, repeated(s, 4999)};
        run_on(d, TRN_OP_div, 2, div, &soft, NULL, NULL, NULL);
        const trn_arg log[4] = {s};
        run_on(d, TRN_OP_log, 1, log, &log_s, NULL, NULL, NULL);
        run_on(d, TRN_OP_softmax, 1, x, &fused, &axis, NULL, NULL);
        run_on(d, TRN_OP_cross_entropy, 2, x, &loss, &none, NULL, NULL);
        run_on(d, TRN_OP_cross_entropy, 2, x, &total, &all, NULL, NULL);
        double losses[7];
        for (int i = 0; i < 7; i++)
            losses[i] = get(&loss, i);
        check_element(&total, 0, rule_sum(losses, 7), "sum of losses");
        for (int64_t i = 0; i < numel(&fused); i++)
            check_element(&fused, i, get(&soft, i), "softmax");
        for (int64_t i = 0; i < 7; i++)
            check_element(&loss, i,
                          -(get(&diff, i * 4999 + i * 700) - get(&log_s, i)),
                          "cross_entropy");
    }
}

static void bad_targets_are_reported_for_every_reduction(void **state)
{
    (void)state;
    const int64_t shape[] = {9, 4};
    for (int32_t reduction = 0; reduction < 3; reduction++)
        for (int d = 0; d < n_devices; d++) {
            const trn_cross_entropy_attrs attrs = {.reduction = reduction};
            trn_op_report r = {0};
            trn_arg y = zeros(TRN_F32, reduction == 2, shape, PLAIN);
            const trn_arg in[4] = {ones_of(TRN_F32, 2, shape, PLAIN, 1),
                                   zeros(TRN_I32, 1, shape, PLAIN)};
            set(&in[1], 8, -1);
            set(&in[1], 6, 4);
            assert_int_equal(
                run_on(d, TRN_OP_cross_entropy, 2, in, &y, &attrs, NULL, &r),
                TRN_ERR_INDEX);
            assert_int_equal(r.kind, TRN_REPORT_INDEX);
            assert_int_equal(r.input, 1);
            assert_int_equal(r.position, 6);
            assert_int_equal(r.value, 4);
            assert_int_equal(r.limit, 4);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CPU_TEST(tree_equals_halving_of_lists),
        CPU_TEST(reductions_follow_the_rule_in_every_layout),
        CPU_TEST(long_reductions_follow_the_rule),
        CPU_TEST(extreme_magnitudes_neither_overflow_nor_vanish),
        CPU_TEST(reductions_of_nothing_have_their_values),
        CPU_TEST(argmax_is_the_first_largest_and_nan_is_larger),
        CPU_TEST(softmax_equals_its_decomposition),
        CPU_TEST(cross_entropy_equals_its_decomposition),
        CPU_TEST(f64_rows_equal_the_primitives_that_they_are_made_of),
        CPU_TEST(bad_targets_are_reported_for_every_reduction),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
