/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products, index ops, random ops and optimizer updates of the CPU
 * device against literal loops.
 */
#include "cpu_host.h"

/* FTZ, DAZ: what a processor gives with both set, tiny after rounding. */
static float flush(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x;
}

static float rule_bf16(const double *a, const double *b, int64_t k)
{
    float total = 0;
    for (int64_t start = 0; start < k; start += 4096) {
        float c = 0;
        for (int64_t at = start; at < k && at < start + 4096; at += 32) {
            float e = 0, o = 0;
            for (int64_t p = 0; p < 32; p += 2) {
                const bool in0 = at + p < k, in1 = at + p + 1 < k;
                e = flush(fmaf(in0 ? flush((float)a[at + p]) : 0,
                               in0 ? flush((float)b[at + p]) : 0, e));
                o = flush(fmaf(in1 ? flush((float)a[at + p + 1]) : 0,
                               in1 ? flush((float)b[at + p + 1]) : 0, o));
            }
            c = flush(flush(e + o) + c);
        }
        total = start == 0 ? c : flush(total + c);
    }
    return total;
}

/* c of one element by the numerics rule of its type. */
static double rule_dot(uint32_t dtype, const double *a, const double *b,
                       int64_t k)
{
    double total = 0;
    if (dtype == TRN_BF16)
        return (double)rule_bf16(a, b, k);
    for (int64_t start = 0; start < k; start += 256) {
        double d = 0;
        float f = 0;
        for (int64_t p = start; p < k && p < start + 256; p++) {
            d = fma(a[p], b[p], d);
            f = fmaf((float)a[p], (float)b[p], f);
        }
        if (dtype != TRN_F32 && dtype != TRN_F16)
            total = start == 0 ? d : total + d;
        else
            total = (double)(start == 0 ? f : (float)total + f);
    }
    return total;
}

typedef struct product_case {
    int64_t batch_a, batch_b, m, n, k;
} product_case;

static void check_product(uint32_t dtype, const product_case *p, int trans,
                          layout how)
{
    static double va[5000], vb[5000];
    const bool ta = trans & 1, tb = trans & 2;
    const trn_matmul_attrs attrs = {.trans_a = ta, .trans_b = tb};
    const int64_t sa[] = {p->batch_a, ta ? p->k : p->m, ta ? p->m : p->k};
    const int64_t sb[] = {p->batch_b, tb ? p->n : p->k, tb ? p->k : p->n};
    const int skip = p->batch_b == 0; /* b without batch dimension */
    const int64_t batches = p->batch_a != 1 ? p->batch_a : p->batch_b;
    const int64_t sy[] = {batches, p->m, p->n};
    const trn_arg in[4] = {ones_of(dtype, 3, sa, how, 1),
                           ones_of(dtype, 3 - skip, sb + skip, how, 2)};
    trn_arg want = zeros(dtype, 3, sy, PLAIN);
    for (int64_t i = 0; i < numel(&want); i++) {
        const int64_t n = i % p->n, m = i / p->n % p->m;
        const int64_t item = i / p->n / p->m;
        const int64_t ia = p->batch_a == 1 ? 0 : item;
        const int64_t ib = p->batch_b <= 1 ? 0 : item;
        for (int64_t k = 0; k < p->k; k++) {
            va[k] = get(&in[0],
                        ia * p->m * p->k + (ta ? k * p->m + m : m * p->k + k));
            vb[k] = get(&in[1],
                        ib * p->n * p->k + (tb ? n * p->k + k : k * p->n + n));
        }
        set(&want, i, rule_dot(dtype, va, vb, p->k));
    }
    for (int d = 0; d < n_devices; d++) {
        trn_arg y = zeros(dtype, 3, sy, PLAIN);
        assert_int_equal(
            run_on(d, TRN_OP_matmul, 2, in, &y, &attrs, NULL, NULL), 0);
        for (int64_t i = 0; i < numel(&y); i++)
            check_element(&y, i, get(&want, i), "matmul");
        assert_int_equal(hosts[d].live, 1);
    }
}

static void matmul_follows_the_rule_of_its_type(void **state)
{
    (void)state;
    static const product_case cases[] = {
        {1, 1, 1, 1, 1},     {2, 2, 7, 17, 5},  {3, 1, 5, 9, 300},
        {1, 3, 13, 33, 64},  {4, 0, 6, 16, 31}, {1, 1, 131, 70, 515},
        {2, 2, 50, 49, 257}, {1, 1, 3, 4, 0},   {0, 1, 3, 4, 5},
        {5, 0, 1, 8, 40},
    };
    static const uint32_t types[] = {TRN_F32,  TRN_F64, TRN_F16,
                                     TRN_BF16, TRN_I32, TRN_I64};
    for (int c = 0; c < 10; c++)
        for (int t = 0; t < 6; t++)
            for (int trans = 0; trans < 4; trans++) {
                const bool big = cases[c].m * cases[c].n * cases[c].k > 200000;
                if (big && trans % 3 == 0 && types[t] != TRN_F32)
                    continue;
                check_product(types[t], &cases[c], trans, PLAIN);
                if (!big)
                    check_product(types[t], &cases[c], trans, GAPS);
                if (!big && cases[c].batch_b != 0)
                    check_product(types[t], &cases[c], trans, REPEATED);
            }
}

static void matmul_over_many_blocks_is_cut_without_changing_bits(void **state)
{
    (void)state;
    static const product_case cases[] = {
        {1, 1, 30, 1100, 300}, {1, 1, 20, 40, 2600}, {1, 1, 4, 5, 4500}};
    for (int c = 0; c < 3; c++)
        for (int t = 0; t < 2; t++)
            check_product(c == 2 && t ? TRN_BF16
                          : t         ? TRN_F64
                                      : TRN_F32,
                          &cases[c], c, PLAIN);
}

static void bf16_products_flush_as_hardware_does(void **state)
{
    (void)state;
    /*
     * a0 b0 + a2 b2 on the even chain.  Tininess is judged after rounding to
     * 24 bits: 2^-126 - 2^-150 is tiny, 2^-126 - 2^-151 rounds up to normal.
     */
    static const double v[][4] = {{0x1.fep-64, 0x1p-63, 0, 0},
                                  {0x1p-130, 1, 0, 0},
                                  {-0x1p-64, 0x1p-64, 0, 0},
                                  {0x1p-63, 0x1p-63, 0, 0},
                                  {0x1.fcp-100, 0x1p-26, 0, 0},
                                  {0x1p-63, 0x1p-63, -0x1p-75, 0x1p-75},
                                  {0x1p-63, 0x1p-63, -0x1p-75, 0x1p-76},
                                  {0x1p-63, 0x1p-63, -0x1.8p-76, 0x1p-75},
                                  {0x1p-63, 0x1p-63, -0x1p-76, 0x1p-76}};
    static const double want[] = {0, 0,        0, 0x1p-126, 0x1.fcp-126,
                                  0, 0x1p-126, 0, 0x1p-126};
    const int64_t sa[] = {1, 3}, sb[] = {3, 1};
    const trn_matmul_attrs attrs = {0};
    for (int i = 0; i < 9; i++)
        for (int d = 0; d < n_devices; d++) {
            const trn_arg in[4] = {zeros(TRN_BF16, 2, sa, PLAIN),
                                   zeros(TRN_BF16, 2, sb, PLAIN)};
            trn_arg y = zeros(TRN_BF16, 0, sa, PLAIN);
            y.rank = 2;
            y.shape[0] = y.shape[1] = y.stride[0] = y.stride[1] = 1;
            for (int side = 0; side < 2; side++) {
                set(&in[side], 0, v[i][side]);
                set(&in[side], 2, v[i][2 + side]);
            }
            run_on(d, TRN_OP_matmul, 2, in, &y, &attrs, NULL, NULL);
            check_element(&y, 0, want[i], "bf16");
        }
}

static void matmul_without_memory_says_so(void **state)
{
    (void)state;
    const int64_t s[] = {100, 100};
    const trn_matmul_attrs attrs = {0};
    const trn_arg in[4] = {zeros(TRN_F32, 2, s, PLAIN),
                           zeros(TRN_F32, 2, s, PLAIN)};
    trn_arg y = zeros(TRN_F32, 2, s, PLAIN);
    for (int d = 0; d < n_devices; d++) {
        hosts[d].no_memory = true;
        assert_int_equal(
            run_on(d, TRN_OP_matmul, 2, in, &y, &attrs, NULL, NULL),
            TRN_ERR_NOMEM);
        hosts[d].no_memory = false;
        assert_int_equal(hosts[d].live, 1);
    }
}

static void embedding_and_its_gradient_follow_the_indices(void **state)
{
    (void)state;
    static const uint32_t types[] = {TRN_F32, TRN_F64, TRN_BF16};
    const int64_t weight[] = {11, 24}, index[] = {30, 70}, out[] = {30, 70, 24};
    static double sum[11 * 24];
    for (int t = 0; t < 3; t++)
        for (int how = 0; how < 3; how++)
            for (int d = 0; d < n_devices; d++) {
                const trn_embedding_grad_attrs back = {.n_rows = 11,
                                                       .padding_idx = 3};
                const trn_arg in[4] = {
                    ones_of(types[t], 2, weight, (layout)how, 1),
                    zeros(t ? TRN_I32 : TRN_I64, 2, index, (layout)how)};
                const trn_arg g[4] = {ones_of(types[t], 3, out, (layout)how, 2),
                                      in[1]};
                trn_arg y = zeros(types[t], 3, out, PLAIN);
                trn_arg gw = zeros(types[t], 2, weight, PLAIN);
                for (int64_t i = 0; i < 2100; i++)
                    set(&in[1], i, (double)(i * i % 11));
                run_on(d, TRN_OP_embedding, 2, in, &y, NULL, NULL, NULL);
                run_on(d, TRN_OP_embedding_grad, 2, g, &gw, &back, NULL, NULL);
                memset(sum, 0, sizeof sum);
                for (int64_t i = 0; i < 2100 * 24; i++) {
                    const int64_t row = (int64_t)get(&in[1], i / 24);
                    const int64_t at = row * 24 + i % 24;
                    check_element(&y, i, get(&in[0], at), "embedding");
                    if (row == 3)
                        continue;
                    sum[at] += get(&g[0], i);
                    if (types[t] != TRN_F64)
                        sum[at] = (double)(float)sum[at];
                }
                for (int64_t i = 0; i < 11 * 24; i++)
                    check_element(&gw, i, sum[i], "embedding_grad");
            }
}

static void bad_indices_write_nothing_and_are_reported(void **state)
{
    (void)state;
    const int64_t weight[] = {4, 3}, index[] = {50000}, out[] = {50000, 3};
    for (int d = 0; d < n_devices; d++) {
        trn_op_report r = {0};
        const trn_arg in[4] = {ones_of(TRN_F32, 2, weight, PLAIN, 1),
                               zeros(TRN_I32, 1, index, PLAIN)};
        trn_arg y = zeros(TRN_F32, 2, out, PLAIN);
        set(&in[1], 49000, -7);
        set(&in[1], 40000, 4);
        assert_int_equal(run_on(d, TRN_OP_embedding, 2, in, &y, NULL, NULL, &r),
                         TRN_ERR_INDEX);
        assert_int_equal(r.position, 40000);
        assert_int_equal(r.value, 4);
        assert_int_equal(r.limit, 4);
        for (int64_t i = 0; i < numel(&y); i++)
            check_element(&y, i, 0, "untouched");
    }
}

static void gather_and_scatter_add_are_literal_loops(void **state)
{
    (void)state;
    static const uint32_t types[] = {TRN_F32, TRN_F64, TRN_F16, TRN_I32};
    const int64_t x_shape[] = {3, 6, 5}, i_shape[] = {3, 9, 5};
    static double sum[90];
    for (int t = 0; t < 4; t++)
        for (int how = 0; how < 3; how++)
            for (int d = 0; d < n_devices; d++) {
                const trn_axis_attrs axis = {.axis = 1};
                const trn_scatter_attrs back = {.axis = 1, .size = 6};
                const trn_arg in[4] = {
                    ones_of(types[t], 3, x_shape, (layout)how, 1),
                    zeros(TRN_I32, 3, i_shape, (layout)how)};
                const trn_arg g[4] = {
                    ones_of(types[t], 3, i_shape, (layout)how, 2), in[1]};
                trn_arg y = zeros(types[t], 3, i_shape, PLAIN);
                trn_arg gx = zeros(types[t], 3, x_shape, PLAIN);
                for (int64_t i = 0; i < 135; i++)
                    set(&in[1], i, (double)(i * 5 % 7 % 6));
                run_on(d, TRN_OP_gather, 2, in, &y, &axis, NULL, NULL);
                run_on(d, TRN_OP_scatter_add, 2, g, &gx, &back, NULL, NULL);
                memset(sum, 0, sizeof sum);
                for (int64_t i = 0; i < 135; i++) {
                    const int64_t at =
                        (i / 45 * 6 + (int64_t)get(&in[1], i)) * 5 + i % 5;
                    check_element(&y, i, get(&in[0], at), "gather");
                    sum[at] += get(&g[0], i);
                    if (types[t] != TRN_F64)
                        sum[at] = (double)(float)sum[at];
                }
                for (int64_t i = 0; i < 90; i++)
                    check_element(&gx, i, sum[i], "scatter_add");
            }
}

static void draws_depend_on_the_element_alone(void **state)
{
    (void)state;
    static const uint32_t types[] = {TRN_F32, TRN_F64, TRN_BF16};
    const int64_t n[] = {9001};
    const trn_arg none[4] = {{0}};
    for (int t = 0; t < 3; t++)
        for (int normal = 0; normal < 2; normal++)
            for (int d = 0; d < n_devices; d++) {
                trn_arg y = zeros(types[t], 1, n, PLAIN);
                run_on(d, normal ? TRN_OP_normal : TRN_OP_uniform, 0, none, &y,
                       NULL, NULL, NULL);
                for (int64_t i = 0; i < n[0]; i++) {
                    const trn__kernel_set *s = &devices[0]->set;
                    const uint64_t key = UINT64_C(0x0123456789abcdef);
                    float f = 0;
                    double v = 0;
                    (normal ? s->normal_f32 : s->uniform_f32)(1, key, 5,
                                                              (uint64_t)i, &f);
                    (normal ? s->normal_f64 : s->uniform_f64)(1, key, 5,
                                                              (uint64_t)i, &v);
                    check_element(&y, i, t == 1 ? v : (double)f, "random");
                }
            }
}

static void dropout_keeps_what_its_draw_keeps(void **state)
{
    (void)state;
    double ps[] = {0, 0.1, 0.5, 1, 0};
    const int64_t n[] = {100, 97};
    for (int p = 0; p < 5; p++)
        for (int half = 0; half < 2; half++)
            for (int d = 0; d < n_devices; d++) {
                const uint32_t dtype = half ? TRN_F16 : TRN_F32;
                const trn_arg in[4] = {ones_of(dtype, 2, n, SWAPPED, 1)};
                trn_arg y = zeros(dtype, 2, n, PLAIN);
                trn_arg u = zeros(TRN_F32, 2, n, PLAIN);
                run_on(0, TRN_OP_uniform, 0, in, &u, NULL, NULL, NULL);
                ps[4] = get(&u, 17); /* a draw equal to p is kept */
                const float scale = 1.0f / (1.0f - (float)ps[p]);
                run_on(d, TRN_OP_dropout, 1, in, &y, NULL, &ps[p], NULL);
                for (int64_t i = 0; i < numel(&y); i++)
                    check_element(&y, i,
                                  (float)ps[p] > (float)get(&u, i)
                                      ? 0
                                      : (double)((float)get(&in[0], i) * scale),
                                  "dropout");
            }
}

/* One AdamW step of one element in f32. */
static void rule_adamw(const double *h, float g, float *p, float *m, float *v)
{
    const float decay = (float)h[0], c1 = (float)h[1], b2 = (float)h[2];
    const float c2 = (float)h[3], step = (float)h[4], root = (float)h[5];
    float t = g - *m, u = g * g, w = b2 * *v;
    t = c1 * t;
    u = c2 * u;
    *m = *m + t;
    *v = w + u;
    t = step * *m;
    u = sqrtf(*v) / root;
    u = u + (float)h[6];
    w = *p * decay;
    t = t / u;
    *p = w - t;
}

static void updates_overwrite_parameters_and_state(void **state)
{
    (void)state;
    const double h[] = {0.999, 0.1, 0.999, 0.001, 0.01, 0.9, 1e-8};
    const double s[] = {0.1, 0.01, 0.9, 1.0};
    const int64_t n[] = {5000, 9};
    for (int half = 0; half < 2; half++)
        for (int d = 0; d < n_devices; d++) {
            const uint32_t dtype = half ? TRN_BF16 : TRN_F32;
            const trn_sgd_momentum_attrs attrs = {.nesterov = 1};
            trn_arg a[4], b[4];
            for (int i = 0; i < 4; i++) {
                a[i] =
                    ones_of(dtype, 2, n, i == 1 ? SWAPPED : PLAIN, (uint64_t)i);
                b[i] = ones_of(dtype, 2, n, PLAIN, (uint64_t)i);
            }
            for (int64_t i = 0; i < numel(&a[0]); i++) {
                set(&a[3], i, fabs(get(&a[3], i)));
                set(&b[3], i, get(&a[3], i));
            }
            run_on(d, TRN_OP_adamw_update, 4, a, NULL, NULL, h, NULL);
            for (int64_t i = 0; i < numel(&a[0]); i++) {
                float p = (float)get(&b[0], i), m = (float)get(&b[2], i);
                float v = (float)get(&b[3], i);
                rule_adamw(h, (float)get(&b[1], i), &p, &m, &v);
                check_element(&a[0], i, (double)p, "adamw p");
                check_element(&a[2], i, (double)m, "adamw m");
                check_element(&a[3], i, (double)v, "adamw v");
            }
            for (int64_t i = 0; i < numel(&a[0]); i++) {
                set(&b[0], i, get(&a[0], i));
                set(&b[2], i, get(&a[2], i));
            }
            run_on(d, TRN_OP_sgd_momentum_update, 3, a, NULL, &attrs, s, NULL);
            for (int64_t i = 0; i < numel(&a[0]); i++) {
                float p = (float)get(&b[0], i), m = (float)get(&b[2], i);
                float t = 0.01f * p, dir = (float)get(&b[1], i) + t, keep = dir;
                t = 0.9f * m;
                dir = 1.0f * dir;
                m = t + dir;
                t = 0.9f * m;
                dir = keep + t;
                t = 0.1f * dir;
                check_element(&a[0], i, (double)(p - t), "sgd p");
                check_element(&a[2], i, (double)m, "sgd buf");
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CPU_TEST(matmul_follows_the_rule_of_its_type),
        CPU_TEST(matmul_over_many_blocks_is_cut_without_changing_bits),
        CPU_TEST(bf16_products_flush_as_hardware_does),
        CPU_TEST(matmul_without_memory_says_so),
        CPU_TEST(embedding_and_its_gradient_follow_the_indices),
        CPU_TEST(bad_indices_write_nothing_and_are_reported),
        CPU_TEST(gather_and_scatter_add_are_literal_loops),
        CPU_TEST(draws_depend_on_the_element_alone),
        CPU_TEST(dropout_keeps_what_its_draw_keeps),
        CPU_TEST(updates_overwrite_parameters_and_state),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
