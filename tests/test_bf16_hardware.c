/* SPDX-License-Identifier: Apache-2.0
 *
 * The definition of bf16 products, computed without special modes, against the
 * processor: the tile instruction where there is one, and the same steps by
 * hardware FMA with FTZ and DAZ.
 *
 * Compared are all bits of the f32 sum, and the rounded result of the op on
 * each kernel set; of a NaN the place.
 */
#include "amx_tile.h"
#include "cpu_host.h"

#include "backends/cpu/cpu_matmul.h"
#include "kernels/convert.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum { N = 16, MOST_K = 8400, N_PRODUCTS = 800 };

static uint16_t a[N * MOST_K], b[MOST_K * N];
static uint64_t seed;

/* c[16,16] += one block of 32 places, a: [16,32], pairs: [16,16,2] */
typedef void block_fn(const uint16_t *rows, const uint16_t *pairs, float *c);

static float float_of_bf16(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

/* Called with FTZ and DAZ: hardware flushes, nothing here does. */
__attribute__((target("fma"))) static void
fma_block(const uint16_t *rows, const uint16_t *pairs, float *c)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            float chain[2] = {0.0f, 0.0f};
            for (int q = 0; q < 32; q++) {
                const uint16_t y = pairs[(q / 2 * N + j) * 2 + q % 2];
                chain[q % 2] = __builtin_fmaf(float_of_bf16(rows[i * 32 + q]),
                                              float_of_bf16(y), chain[q % 2]);
            }
            c[i * N + j] += chain[0] + chain[1];
        }
}

/* total[16,16] = a b, a sum begun anew every 4096 places. */
static void product(block_fn *block, int k, float *total)
{
    uint16_t rows[N * 32], pairs[N * 32];
    float c[N * N];
    const unsigned modes = _mm_getcsr();
    _mm_setcsr(modes | 0x8040u); /* FTZ, DAZ */
    for (int at = 0; at < k; at += 32) {
        for (int q = 0; q < 32; q++)
            for (int i = 0; i < N; i++) {
                const bool in = at + q < k;
                rows[i * 32 + q] = in ? a[i * k + at + q] : 0;
                pairs[(q / 2 * N + i) * 2 + q % 2] =
                    in ? b[(at + q) * N + i] : 0;
            }
        if (at % 4096 == 0)
            memset(c, 0, sizeof c);
        block(rows, pairs, c);
        if (at % 4096 != 4096 - 32 && at + 32 < k)
            continue;
        for (int i = 0; i < N * N; i++)
            total[i] = at < 4096 ? c[i] : total[i] + c[i];
    }
    _mm_setcsr(modes);
}

/* Any bits; near 1; products at the smallest normal number; subnormals. */
static uint16_t draw(int kind)
{
    const uint64_t z = next_bits(&seed);
    const uint32_t sign_and_fraction = (uint32_t)z & 0x807fu;
    const uint32_t rest = (uint32_t)(z >> 16) & 0xffffu;
    switch (kind) {
    case 0:
        return (uint16_t)z;
    case 1:
        return (uint16_t)(sign_and_fraction | (120 + rest % 15) << 7);
    case 2:
        return (uint16_t)(sign_and_fraction | (56 + rest % 14) << 7);
    default:
        return (uint16_t)(sign_and_fraction | (rest % 3 ? 0 : rest % 254 + 1)
                                                  << 7);
    }
}

static void fill(int kind, int k)
{
    for (int i = 0; i < N * k; i++) {
        a[i] = draw(kind);
        b[i] = draw(kind == 3 ? 0 : kind);
        if (kind == 0 && k > 64 && (a[i] & 0x7f00u) == 0x7f00u)
            a[i] &= 0x0fffu; /* long sums of any bits would all be NaN */
        if (kind == 0 && k > 64 && (b[i] & 0x7f00u) == 0x7f00u)
            b[i] &= 0x0fffu;
    }
}

/* The number of results that the op and the definition were compared in. */
static int compare(const char *what, int kind, int k, const float *want)
{
    const trn__cpu_product p = {
        .m = N,
        .n = N,
        .k = k,
        .a = {(const char *)a, k, 1, TRN_BF16},
        .b = {(const char *)b, 1, N, TRN_BF16},
    };
    for (int i = 0; i < N * N; i++) {
        const float got = trn__cpu_dot_bf16(&p, i / N, i % N);
        CHECK(same_f32(got, want[i]), "%s, kind %d, k %d, %d: %a, not %a\n",
              what, kind, k, i, (double)got, (double)want[i]);
    }
    const int64_t sa[] = {N, k}, sb[] = {k, N}, sy[] = {N, N};
    const trn_matmul_attrs attrs = {0};
    for (int d = 0; d < n_devices; d += 2) {
        const trn_arg in[4] = {zeros(TRN_BF16, 2, sa, PLAIN),
                               zeros(TRN_BF16, 2, sb, PLAIN)};
        const trn_arg y = zeros(TRN_BF16, 2, sy, PLAIN);
        const uint16_t *c = (const uint16_t *)(const void *)y.buffer;
        memcpy(in[0].buffer, a, sizeof a[0] * (size_t)(N * k));
        memcpy(in[1].buffer, b, sizeof b[0] * (size_t)(N * k));
        run_on(d, TRN_OP_matmul, 2, in, &y, &attrs, NULL, NULL);
        for (int i = 0; i < N * N; i++)
            CHECK(same_f32(float_of_bf16(c[i]),
                           float_of_bf16(trn__f32_to_bf16(want[i]))),
                  "%s, set %d, kind %d, k %d, %d: %04x\n", what, d / 2, kind, k,
                  i, c[i]);
    }
    free_operands(NULL);
    return N * N;
}

static void compare_all(const char *what, block_fn *block)
{
    static float want[N * N];
    int n_compared = 0, n_nan = 0, n_zero = 0;
    seed = 31;
    for (int r = 0; r < N_PRODUCTS; r++) {
        const int kind = r % 4;
        int k = 1 + (int)(next_bits(&seed) % 96);
        if (r % 100 < 4) /* one, two and three sums of 4096 */
            k = 4096 * (r / 100 % 3) + 32 * kind + k;
        fill(kind, k);
        product(block, k, want);
        n_compared += compare(what, kind, k, want);
        for (int i = 0; i < N * N; i++) {
            n_nan += isnan(want[i]);
            n_zero += want[i] >= 0.0f && want[i] <= 0.0f;
        }
    }
    print_message("%s: %d results, of these %d NaN and %d zeros\n", what,
                  n_compared, n_nan, n_zero);
    assert_true(n_compared >= 200000);
    /* all kinds occurred, and most results are neither */
    assert_true(n_nan > 1000 && n_zero > 100);
    assert_true(n_nan + n_zero < n_compared / 2);
}

static void bf16_products_are_those_of_the_tile_instruction(void **state)
{
    (void)state;
    const char *why = amx_missing();
    if (why != NULL) {
        print_message("%s\n", why);
        skip();
    }
    compare_all("TDPBF16PS", amx_block);
}

static void bf16_products_are_those_of_fma_that_flushes(void **state)
{
    (void)state;
    if (!__builtin_cpu_supports("fma")) {
        print_message("this processor has no FMA\n");
        skip();
    }
    compare_all("FMA with FTZ and DAZ", fma_block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CPU_TEST(bf16_products_are_those_of_the_tile_instruction),
        CPU_TEST(bf16_products_are_those_of_fma_that_flushes),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
#else
static void bf16_products_are_those_of_the_tile_instruction(void **state)
{
    (void)state;
    print_message("this is no x86-64: %s\n", amx_missing());
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bf16_products_are_those_of_the_tile_instruction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
