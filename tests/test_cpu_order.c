/* SPDX-License-Identifier: Apache-2.0
 *
 * Orders of operations of the CPU device that ordinary inputs hide: bf16
 * products, whose results are rounded to 8 bits, and variances.
 */
#include "cpu_host.h"

/* ---- bf16 products ---- */

/* FTZ, DAZ: what a processor gives with both set, tiny after rounding. */
static float flush(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x;
}

static float to_bf16(float x)
{
    uint16_t half;
    devices[0]->set.bf16_from_f32(1, &x, &half);
    devices[0]->set.f32_from_bf16(1, &half, &x);
    return x;
}

/* The sum before it is rounded to bf16, of k <= 4096 places. */
static float rule_sum(const float *a, const float *b, int64_t k)
{
    float c = 0;
    for (int64_t at = 0; at < k; at += 32) {
        float e = 0, o = 0;
        for (int64_t p = at; p < at + 32; p += 2) {
            e = p < k ? flush(fmaf(a[p], b[p], e)) : e;
            o = p + 1 < k ? flush(fmaf(a[p + 1], b[p + 1], o)) : o;
        }
        c = flush(flush(e + o) + c);
    }
    return c;
}

/* a b of k places on each device. */
static void check_dot(const float *a, const float *b, int64_t k, float want)
{
    const int64_t sa[] = {1, k}, sb[] = {k, 1}, sy[] = {1, 1};
    const trn_matmul_attrs attrs = {0};
    const trn_arg in[4] = {zeros(TRN_BF16, 2, sa, PLAIN),
                           zeros(TRN_BF16, 2, sb, PLAIN)};
    for (int64_t i = 0; i < k; i++) {
        set(&in[0], i, (double)a[i]);
        set(&in[1], i, (double)b[i]);
    }
    for (int d = 0; d < n_devices; d++) {
        trn_arg y = zeros(TRN_BF16, 2, sy, PLAIN);
        run_on(d, TRN_OP_matmul, 2, in, &y, &attrs, NULL, NULL);
        check_element(&y, 0, (double)want, "bf16");
    }
}

/*
 * A later block subtracts what the sum's first 8 bits are, so that the next 8
 * are the result, and so on: the three results are the whole f32.
 */
static void bf16_products_keep_every_bit_of_the_order(void **state)
{
    (void)state;
    static const int64_t lengths[] = {32, 64, 96, 320, 1000};
    static float a[1200], b[1200];
    uint64_t seed = 21;
    for (int repeat = 0; repeat < 20; repeat++)
        for (int l = 0; l < 5; l++) {
            int64_t k = (lengths[l] + 31) / 32 * 32;
            memset(a, 0, sizeof a);
            memset(b, 0, sizeof b);
            for (int64_t i = 0; i < lengths[l]; i++) {
                a[i] = to_bf16(next_f32(&seed));
                b[i] = to_bf16(next_f32(&seed));
            }
            for (int part = 0; part < 3; part++, k += 32) {
                const float sum = rule_sum(a, b, k);
                check_dot(a, b, part == 0 ? lengths[l] : k, to_bf16(sum));
                a[k] = -to_bf16(sum);
                b[k] = 1.0f;
            }
        }
    free_operands(NULL);
}

/* 2^24, ones that are lost beside it but not in a sum of their own, and -2^24.
 */
static void bf16_sums_start_anew_every_4096_places(void **state)
{
    (void)state;
    enum { ONES = 64, K = 2 * 4096 };
    static float a[K], b[K];
    for (int from = 2048; from <= 4096; from += 2048) {
        memset(a, 0, sizeof a);
        memset(b, 0, sizeof b);
        a[0] = b[0] = 4096.0f;
        for (int i = 0; i < ONES; i++)
            a[from + 32 * i] = b[from + 32 * i] = 1.0f;
        a[from + 32 * ONES] = -4096.0f;
        b[from + 32 * ONES] = 4096.0f;
        check_dot(a, b, K, from == 4096 ? (float)ONES : 0.0f);
    }
}

/* Both inputs, and each of the additions, of places even and odd. */
static void bf16_flushes_inputs_and_every_addition(void **state)
{
    (void)state;
    float a[64] = {0}, b[64] = {0};
    for (int side = 0; side < 2; side++) {
        (side ? a : b)[5] = 0x1p-130f;
        (side ? b : a)[5] = 0x1p20f;
        check_dot(a, b, 64, 0.0f);
    }
    a[5] = b[5] = 0.0f;
    /* 1.5 2^-126 on the even chain, -2^-126 on the odd one: a subnormal, which
     * the same number in the next block would make normal again. */
    a[0] = 0x1.8p-63f, a[1] = -0x1p-63f;
    b[0] = b[1] = b[32] = 0x1p-63f;
    check_dot(a, b, 64, 0.0f);
    a[32] = 0x1p-63f;
    check_dot(a, b, 64, 0x1p-126f);
    /* a block that cancels to a subnormal adds nothing to one before it */
    float low[64] = {0}, high[64] = {0};
    low[0] = high[0] = low[32] = high[33] = high[32] = 0x1p-63f;
    low[32] = 0x1.8p-63f, low[33] = -0x1p-63f;
    check_dot(low, high, 64, 0x1p-126f);
    /* the same between two blocks */
    a[1] = 0.0f;
    a[32] = -0x1p-63f;
    check_dot(a, b, 64, 0.0f);
}

/* ---- variances ---- */

/* One block: at most 4096 elements. */
static double rule_block(const double *x, int64_t n)
{
    double lane[16] = {0};
    for (int64_t i = 0; i < n; i++)
        lane[i % 16] += x[i];
    for (int half = 8; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] += lane[l + half];
    return lane[0];
}

static double rule_var(const double *x, int64_t n, int64_t correction)
{
    static double d[4096];
    for (int64_t i = 0; i < n; i++)
        d[i] = x[i] - x[0];
    const double mean = x[0] + rule_block(d, n) / (double)n;
    for (int64_t i = 0; i < n; i++) {
        d[i] = x[i] - mean;
        d[i] = d[i] * d[i];
    }
    return rule_block(d, n) / (double)(n - correction);
}

static void variances_follow_the_rule_in_every_layout(void **state)
{
    (void)state;
    static const uint32_t types[] = {TRN_F32, TRN_F64, TRN_BF16};
    const int64_t shape[] = {13, 301};
    static double x[301];
    for (int t = 0; t < 3; t++)
        for (int how = 0; how < REPEATED; how++)
            for (int axis = 0; axis < 2; axis++) {
                const int64_t n = shape[axis], n_out = shape[!axis];
                const trn_var_attrs attrs = {.axes = 1u << axis,
                                             .correction = how % 2};
                const trn_arg in[4] = {
                    ones_of(types[t], 2, shape, (layout)how, 9)};
                for (int64_t i = 0; i < numel(&in[0]); i++)
                    set(&in[0], i, get(&in[0], i) + (t == 2 ? 0.0 : 1000.0));
                for (int d = 0; d < n_devices; d++) {
                    trn_arg y = zeros(types[t], 1, &n_out, PLAIN);
                    run_on(d, TRN_OP_var, 1, in, &y, &attrs, NULL, NULL);
                    for (int64_t o = 0; o < n_out; o++) {
                        for (int64_t i = 0; i < n; i++)
                            x[i] =
                                get(&in[0], axis ? o * 301 + i : i * 301 + o);
                        check_element(&y, o, rule_var(x, n, how % 2), "var");
                    }
                }
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CPU_TEST(bf16_products_keep_every_bit_of_the_order),
        CPU_TEST(bf16_sums_start_anew_every_4096_places),
        CPU_TEST(bf16_flushes_inputs_and_every_addition),
        CPU_TEST(variances_follow_the_rule_in_every_layout),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
