/* SPDX-License-Identifier: Apache-2.0
 *
 * What random programs have found, each cause once; docs/xla.md has the
 * findings.
 */

#include "tests/xla/xla_batch.h"

enum { M = 4, K = 40, N = 40 };

/* Data of small halves. */
static trn_tensor *halves(trn_context *c, int rank, const int64_t *shape)
{
    float data[K * N];
    for (int i = 0; i < K * N; i++)
        data[i] = (float)(i * 7 % 11 - 5) / 2.0f;
    return trn_tensor_from(c, TRN_F32, rank, shape, data);
}

/* ---- products with a factor whose rows or columns are equal ---- */

typedef struct factors {
    const char *name;
    int64_t a[2], b[2]; /* expanded to [M,K] and [K,N] */
    trn_dtype dtype;
} factors;

static const factors expanded[] = {
    {"second: a scalar", {M, K}, {1, 1}, TRN_F32},
    {"second: a column", {M, K}, {K, 1}, TRN_F32},
    {"second: a row", {M, K}, {1, N}, TRN_F32},
    {"first: a scalar", {1, 1}, {K, N}, TRN_F32},
    {"first: a column", {M, 1}, {K, N}, TRN_F32},
    {"first: a row", {1, K}, {K, N}, TRN_F32},
    {"second: a scalar, bf16", {M, K}, {1, 1}, TRN_BF16},
    {"second: a column, bf16", {M, K}, {K, 1}, TRN_BF16},
};

enum { N_EXPANDED = sizeof expanded / sizeof expanded[0] };

static trn_tensor *product(trn_context *c, const factors *f)
{
    static const int64_t a[2] = {M, K}, b[2] = {K, N};
    trn_tensor *x = trn_cast(halves(c, 2, f->a), f->dtype);
    trn_tensor *y = trn_cast(halves(c, 2, f->b), f->dtype);
    return trn_matmul(trn_expand(x, 2, a), trn_expand(y, 2, b));
}

static void products_of(const char *device, float out[N_EXPANDED][M * N])
{
    trn_context *c = xla_open(device);
    for (int i = 0; i < N_EXPANDED; i++) {
        trn_step_begin(c);
        trn_tensor *y = trn_cast(product(c, &expanded[i]), TRN_F32);
        trn_keep(y);
        trn_step_end(c);
        trn_tensor_read(y, out[i], sizeof out[i]);
        harness_ok(c);
    }
    harness_close(c);
}

/* All sums are exact in f32, and so are the roundings to bf16 that follow. */
static void products_with_equal_columns_are_whole(void **state)
{
    static float want[N_EXPANDED][M * N], got[N_EXPANDED][M * N];
    (void)state;
    products_of("cpu", want);
    products_of(xla_device(), got);
    for (int i = 0; i < N_EXPANDED; i++) {
        for (int k = 0; k < M * N; k++)
            CHECK(got[i][k] == want[i][k],
                  "%s: element %d is %g, expected %g\n", expanded[i].name, k,
                  (double)got[i][k], (double)want[i][k]);
    }
}

int main(int argc, char **argv)
{
    static const xla_test tests[] = {
        XLA_TEST(products_with_equal_columns_are_whole),
    };
    return xla_main(argc, argv, (int)(sizeof tests / sizeof tests[0]), tests);
}
