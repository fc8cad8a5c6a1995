/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels with a fixed order of operations, of every set this machine runs,
 * against literal transcriptions of their rules: matrix product tiles, block
 * reductions, optimizer updates.
 */
#include "kernel_sets.h"

#include <math.h>
#include <stdlib.h>

static trn__kernel_set sets[MAX_SETS];
static int n_sets;

enum { MAX_K = 256, MAX_TILE = 16, LDC = MAX_TILE + 3 };

static void check_tile_f32(const trn__kernel_set *s, int64_t k, const float *a,
                           const float *b, int m, int n, bool first)
{
    float c[MAX_TILE * LDC];
    for (int i = 0; i < MAX_TILE * LDC; i++)
        c[i] = (float)i * 0.37f;
    s->matmul_tile_f32(k, a, b, c, LDC, m, n, first);
    for (int i = 0; i < MAX_TILE; i++) {
        for (int j = 0; j < LDC; j++) {
            const float before = (float)(i * LDC + j) * 0.37f;
            float want = before;
            if (i < m && j < n) {
                float sum = 0.0f;
                for (int64_t p = 0; p < k; p++)
                    sum = fmaf(a[p * s->mr_f32 + i], b[p * s->nr_f32 + j], sum);
                want = first ? sum : before + sum;
            }
            CHECK(same_f32(c[i * LDC + j], want), "%s k=%d m=%d n=%d (%d,%d)\n",
                  s->name, (int)k, m, n, i, j);
        }
    }
}

static void check_tile_f64(const trn__kernel_set *s, int64_t k, const double *a,
                           const double *b, int m, int n, bool first)
{
    double c[MAX_TILE * LDC];
    for (int i = 0; i < MAX_TILE * LDC; i++)
        c[i] = i * 0.37;
    s->matmul_tile_f64(k, a, b, c, LDC, m, n, first);
    for (int i = 0; i < MAX_TILE; i++) {
        for (int j = 0; j < LDC; j++) {
            const double before = (i * LDC + j) * 0.37;
            double want = before;
            if (i < m && j < n) {
                double sum = 0.0;
                for (int64_t p = 0; p < k; p++)
                    sum = fma(a[p * s->mr_f64 + i], b[p * s->nr_f64 + j], sum);
                want = first ? sum : before + sum;
            }
            CHECK(same_f64(c[i * LDC + j], want), "%s k=%d m=%d n=%d (%d,%d)\n",
                  s->name, (int)k, m, n, i, j);
        }
    }
}

static void a_tile_is_one_fma_chain_per_element(void **state)
{
    (void)state;
    static const int64_t lengths[] = {0, 1, 2, 255, 256};
    static float a[MAX_K * MAX_TILE], b[MAX_K * MAX_TILE];
    static double a64[MAX_K * MAX_TILE], b64[MAX_K * MAX_TILE];
    uint64_t seed = 1;
    for (int i = 0; i < MAX_K * MAX_TILE; i++) {
        a[i] = next_f32(&seed);
        b[i] = next_f32(&seed);
        a64[i] = next_f64(&seed);
        b64[i] = next_f64(&seed);
    }
    /* A product of -0 alone: the chain begins with +0. */
    a[0] = -0.0f;
    a64[0] = -0.0;
    b[0] = 1.0f;
    b64[0] = 1.0;
    for (const trn__kernel_set *s = sets; s < sets + n_sets; s++) {
        assert_true(s->mr_f32 <= MAX_TILE && s->nr_f32 <= MAX_TILE);
        assert_true(s->mr_f64 <= MAX_TILE && s->nr_f64 <= MAX_TILE);
        for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
            const int64_t k = lengths[l];
            for (int m = 1; m <= s->mr_f32; m++) {
                for (int n = 1; n <= s->nr_f32; n++) {
                    check_tile_f32(s, k, a, b, m, n, true);
                    check_tile_f32(s, k, a, b, m, n, false);
                }
            }
            for (int m = 1; m <= s->mr_f64; m++) {
                for (int n = 1; n <= s->nr_f64; n++) {
                    check_tile_f64(s, k, a64, b64, m, n, true);
                    check_tile_f64(s, k, a64, b64, m, n, false);
                }
            }
        }
    }
}

static void a_tile_rounds_hard_cases_once(void **state)
{
    (void)state;
    /* In the first the product ends next to half a unit of c, so a second
     * rounding would be seen; then signed zeros, subnormals, overflow. */
    static const float hard[][4] = {
        {0x1.000002p0f, 0x1.000002p0f, 0x1p24f, 0x1p-24f},
        {0x1.fffffep-1f, 0x1.000002p0f, -1.0f, 1.0f},
        {0x1p-75f, 0x1p-75f, 0x1p-149f, 1.0f},
        {-0x1p-100f, 0x1p-100f, 0.0f, 1.0f},
        {0x1p127f, 2.0f, -0x1p127f, 1.0f},
        {HUGE_VALF, 1.0f, -HUGE_VALF, 1.0f},
    };
    for (const trn__kernel_set *s = sets; s < sets + n_sets; s++) {
        for (size_t h = 0; h < sizeof hard / sizeof hard[0]; h++) {
            float a[2 * MAX_TILE] = {0}, b[2 * MAX_TILE] = {0};
            for (int order = 0; order < 2; order++) {
                const int p = order ? s->mr_f32 : 0;
                const int q = order ? s->nr_f32 : 0;
                a[s->mr_f32 - p] = hard[h][0];
                b[s->nr_f32 - q] = hard[h][1];
                a[p] = hard[h][2];
                b[q] = hard[h][3];
                check_tile_f32(s, 2, a, b, s->mr_f32, s->nr_f32, true);
            }
        }
    }
}

/* Rule "reductions" of the contract, as it is written there. */
static double literal_block(int64_t n, const double *x, double shift, bool sq)
{
    volatile double lane[16] = {0};
    for (int64_t i = 0; i < n; i++) {
        volatile double d = x[i] - shift;
        if (sq)
            d = d * d;
        lane[i % 16] = lane[i % 16] + d;
    }
    for (int step = 8; step >= 1; step /= 2) {
        for (int j = 0; j < step; j++)
            lane[j] = lane[j] + lane[j + step];
    }
    return lane[0];
}

enum { BLOCK = 4096, SLACK = 8 };

static void check_blocks(int64_t n, const float *x, const double *x64,
                         double shift)
{
    static double wide[BLOCK];
    for (int64_t i = 0; i < n; i++)
        wide[i] = (double)x[i];
    const double sum = literal_block(n, wide, shift, false);
    const double sum_sq = literal_block(n, wide, shift, true);
    const double sum64 = literal_block(n, x64, shift, false);
    const double sum_sq64 = literal_block(n, x64, shift, true);
    for (const trn__kernel_set *s = sets; s < sets + n_sets; s++) {
        CHECK(same_f64(s->block_sum_f32(n, x, shift), sum), "%s n=%d\n",
              s->name, (int)n);
        CHECK(same_f64(s->block_sum_sq_f32(n, x, shift), sum_sq), "%s n=%d\n",
              s->name, (int)n);
        CHECK(same_f64(s->block_sum_f64(n, x64, shift), sum64), "%s n=%d\n",
              s->name, (int)n);
        CHECK(same_f64(s->block_sum_sq_f64(n, x64, shift), sum_sq64),
              "%s n=%d\n", s->name, (int)n);
    }
}

static void block_sums_follow_the_lanes_of_the_rule(void **state)
{
    (void)state;
    static float x[BLOCK + SLACK];
    static double x64[BLOCK + SLACK];
    uint64_t seed = 2;
    for (int i = 0; i < BLOCK + SLACK; i++) {
        x[i] = next_f32(&seed);
        x64[i] = next_f64(&seed);
    }
    for (int offset = 0; offset < SLACK; offset++) {
        const float *at = x + offset;
        for (int64_t n = 0; n <= 70; n++) {
            check_blocks(n, at, x64 + offset, 0.0);
            check_blocks(n, at, x64 + offset, 0.7);
        }
        for (int64_t n = BLOCK - 1; n <= BLOCK; n++) {
            check_blocks(n, at, x64 + offset, 0.0);
            check_blocks(n, at, x64 + offset, (double)x[0]);
        }
    }
    const float minus[3] = {-0.0f, -0.0f, -0.0f};
    for (int i = 0; i < n_sets; i++) {
        assert_true(same_f64(sets[i].block_sum_f32(0, minus, 1.0), 0.0));
        assert_true(same_f64(sets[i].block_sum_f32(3, minus, 0.0), 0.0));
    }
}

enum { MAX_COLS = 130, MAX_STRIDE = MAX_COLS + 5 };

static void check_columns(int64_t rows, int64_t cols, int64_t stride,
                          const float *x, const double *x64,
                          const double *shift)
{
    static float column[BLOCK];
    static double column64[BLOCK];
    static double lanes[16 * MAX_COLS];
    double out[4][MAX_COLS];
    for (const trn__kernel_set *s = sets; s < sets + n_sets; s++) {
        memset(lanes, 0xff, sizeof lanes);
        s->block_cols_sum_f32(rows, cols, x, stride, shift, lanes, out[0]);
        s->block_cols_sum_sq_f32(rows, cols, x, stride, shift, lanes, out[1]);
        s->block_cols_sum_f64(rows, cols, x64, stride, shift, lanes, out[2]);
        s->block_cols_sum_sq_f64(rows, cols, x64, stride, shift, lanes, out[3]);
        for (int64_t j = 0; j < cols; j++) {
            const double sh = shift ? shift[j] : 0.0;
            for (int64_t i = 0; i < rows; i++) {
                column[i] = x[i * stride + j];
                column64[i] = x64[i * stride + j];
            }
            const double want[4] = {
                sets[0].block_sum_f32(rows, column, sh),
                sets[0].block_sum_sq_f32(rows, column, sh),
                sets[0].block_sum_f64(rows, column64, sh),
                sets[0].block_sum_sq_f64(rows, column64, sh),
            };
            for (int q = 0; q < 4; q++)
                CHECK(same_f64(out[q][j], want[q]), "%s %d: [%d,%d] col %d\n",
                      s->name, q, (int)rows, (int)cols, (int)j);
        }
    }
}

static void sums_of_columns_equal_the_sum_of_each_column(void **state)
{
    (void)state;
    static const int64_t all_rows[] = {0, 1, 15, 16, 17, 70, BLOCK};
    static const int64_t all_cols[] = {1, 2, 3, 4, 5, 7, 64, 65, MAX_COLS};
    const size_t size = (size_t)BLOCK * MAX_STRIDE;
    float *x = malloc(size * sizeof *x);
    double *x64 = malloc(size * sizeof *x64);
    double shift[MAX_COLS];
    uint64_t seed = 3;
    assert_non_null(x);
    assert_non_null(x64);
    for (size_t i = 0; i < size; i++) {
        x[i] = next_f32(&seed);
        x64[i] = next_f64(&seed);
    }
    for (int j = 0; j < MAX_COLS; j++)
        shift[j] = next_f64(&seed);
    for (size_t r = 0; r < sizeof all_rows / sizeof all_rows[0]; r++) {
        for (size_t c = 0; c < sizeof all_cols / sizeof all_cols[0]; c++) {
            const int64_t cols = all_cols[c];
            check_columns(all_rows[r], cols, cols, x, x64, NULL);
            check_columns(all_rows[r], cols, cols + 5, x, x64, shift);
        }
    }
    free(x);
    free(x64);
}

static void max_lets_nan_win_and_orders_zeros(void **state)
{
    (void)state;
    float x[40];
    double x64[40];
    uint64_t seed = 4;
    for (const trn__kernel_set *s = sets; s < sets + n_sets; s++) {
        for (int n = 1; n <= 40; n++) {
            for (int at = 0; at < n; at++) {
                for (int i = 0; i < n; i++) {
                    x[i] = -1.0f - (float)(next_bits(&seed) % 1000);
                    x64[i] = (double)x[i];
                }
                x[at] = -0.5f;
                x64[at] = -0.5;
                assert_true(same_f32(s->max_f32(n, x), -0.5f));
                assert_true(same_f64(s->max_f64(n, x64), -0.5));
                for (int i = 0; i < n; i++) {
                    x[i] = -0.0f;
                    x64[i] = -0.0;
                }
                assert_true(same_f32(s->max_f32(n, x), -0.0f));
                assert_true(same_f64(s->max_f64(n, x64), -0.0));
                x[at] = 0.0f;
                x64[at] = 0.0;
                assert_true(same_f32(s->max_f32(n, x), 0.0f));
                assert_true(same_f64(s->max_f64(n, x64), 0.0));
                x[(at + 1) % n] = HUGE_VALF;
                x64[(at + 1) % n] = HUGE_VAL;
                assert_true(same_f32(s->max_f32(n, x), HUGE_VALF));
                assert_true(same_f64(s->max_f64(n, x64), HUGE_VAL));
                x[at] = NAN;
                x64[at] = (double)NAN;
                assert_true(isnan(s->max_f32(n, x)));
                assert_true(isnan(s->max_f64(n, x64)));
            }
        }
    }
}

/* min(x) = -max(-x), signs of zeros and NaN included. */
static void min_is_the_negated_max_of_the_negated(void **state)
{
    (void)state;
    static const float picks[] = {0.0f, -0.0f, 1.0f, -1.0f, 3.0f, HUGE_VALF};
    float x[40], z[40];
    double x64[40], z64[40];
    uint64_t seed = 5;
    for (const trn__kernel_set *s = sets; s < sets + n_sets; s++) {
        for (int k = 0; k < 4000; k++) {
            const int n = 1 + k % 40, kinds = 2 + k % 5;
            for (int i = 0; i < n; i++) {
                x[i] = picks[next_bits(&seed) % (uint64_t)kinds];
                if (next_bits(&seed) % 200 == 0)
                    x[i] = NAN;
                z[i] = -x[i];
                x64[i] = (double)x[i];
                z64[i] = -x64[i];
            }
            assert_true(same_f32(s->min_f32(n, x), -s->max_f32(n, z)));
            assert_true(same_f64(s->min_f64(n, x64), -s->max_f64(n, z64)));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tile_is_one_fma_chain_per_element),
        cmocka_unit_test(a_tile_rounds_hard_cases_once),
        cmocka_unit_test(block_sums_follow_the_lanes_of_the_rule),
        cmocka_unit_test(sums_of_columns_equal_the_sum_of_each_column),
        cmocka_unit_test(max_lets_nan_win_and_orders_zeros),
        cmocka_unit_test(min_is_the_negated_max_of_the_negated),
    };
    n_sets = kernel_sets(sets);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
