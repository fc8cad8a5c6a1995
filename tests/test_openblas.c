/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products by OpenBLAS (TRN_MATMUL=openblas), where it is installed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "captured.h"

#ifdef TRN_HAVE_OPENBLAS
#include <cblas.h>
#ifndef OPENBLAS_VERSION /* another library's cblas.h lacks these */
extern int openblas_get_num_threads(void);
extern void openblas_set_num_threads(int n_threads);
#endif
#endif

/* The test is skipped where the library cannot be had. */
static trn_context *open_blas(trn_exec exec, int n_threads)
{
    trn_context *c;
    trn_options o = TRN_OPTIONS_INIT;
    o.device = "cpu";
    o.device_options = "matmul=openblas";
    o.n_threads = n_threads;
    o.exec = (uint32_t)exec;
    o.seed = 11;
    if (trn_open(&c, &o) == TRN_OK)
        return c;
    print_message("%.200s\n", trn_errmsg(c));
    CHECK(trn_errcode(c) == TRN_ERR_UNSUPPORTED, "%s\n", trn_errmsg(c));
    trn_close(c);
    skip();
    return NULL;
}

static trn_context *open_kernels(int n_threads)
{
    trn_context *c;
    trn_options o = TRN_OPTIONS_INIT;
    o.device = "cpu";
    o.device_options = "matmul=reproducible";
    o.n_threads = n_threads;
    o.seed = 11;
    assert_int_equal(trn_open(&c, &o), TRN_OK);
    return c;
}

/* How a factor lies in memory. */
typedef enum layout { PLAIN, TURNED, ROWS_APART, STEPS, N_LAYOUTS } layout;

typedef struct factor {
    int64_t batch, rows, columns;
    double *v; /* as the type holds them */
    trn_tensor *x;
} factor;

static factor make(trn_context *c, trn_dtype dtype, layout how, int64_t batch,
                   int64_t rows, int64_t columns, uint64_t seed)
{
    const int64_t down = how == ROWS_APART ? 2 : 1,
                  across = how == STEPS ? 3 : 1;
    const int64_t h = rows * down, w = columns * across;
    const int64_t shape[] = {batch, how == TURNED ? w : h,
                             how == TURNED ? h : w};
    factor f = {batch, rows, columns, NULL, NULL};
    double *all = malloc((size_t)(batch * h * w) * sizeof *all + 1);
    f.v = malloc((size_t)(batch * rows * columns) * sizeof *f.v + 1);
    assert_true(all != NULL && f.v != NULL);
    for (int64_t i = 0; i < batch * h * w; i++)
        all[i] = (double)dtype_round(dtype, harness_uniform(&seed, -1.0, 1.0));
    trn_tensor *x = trn_cast(harness_f64(c, 3, shape, all), dtype);
    if (how == TURNED)
        x = trn_transpose(x, 1, 2);
    x = trn_slice(x, 1, 0, h, down);
    f.x = trn_slice(x, 2, 0, w, across);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++) {
                const int64_t r = i * down, s = j * across;
                f.v[(b * rows + i) * columns + j] =
                    all[b * h * w + (how == TURNED ? s * h + r : r * w + s)];
            }
    free(all);
    return f;
}

/* Each element against a sum in long double; k + 2 roundings. */
static void check_sums(const factor *a, const factor *b, trn_tensor *y,
                       trn_dtype dtype)
{
    const double eps = dtype == TRN_F32 ? 0x1p-24 : 0x1p-53;
    const int64_t m = a->rows, k = a->columns, n = b->columns;
    const int64_t batch = a->batch > b->batch ? a->batch : b->batch;
    void *got = harness_bytes_of(y, NULL);
    for (int64_t i = 0; i < batch * m * n; i++) {
        const int64_t z = i / (m * n), row = i / n % m, column = i % n;
        const double *pa = a->v + ((a->batch == 1 ? 0 : z) * m + row) * k;
        const double *pb = b->v + (b->batch == 1 ? 0 : z) * k * n + column;
        long double sum = 0, size = 0;
        for (int64_t p = 0; p < k; p++) {
            sum += (long double)pa[p] * pb[p * n];
            size += fabsl((long double)pa[p] * pb[p * n]);
        }
        const long double error = fabsl(dtype_get(dtype, got, i) - sum);
        CHECK(error <= ((double)k + 2) * eps * size,
              "element %d is %.12Lg, not %.12Lg\n", (int)i,
              dtype_get(dtype, got, i), sum);
    }
    free(got);
}

typedef struct shape {
    int64_t batch_a, batch_b, m, n, k;
} shape;

static const shape shapes[] = {
    {1, 1, 1, 1, 1},     {1, 1, 3, 5, 7},     {1, 1, 0, 5, 7},
    {1, 1, 3, 0, 7},     {1, 1, 3, 5, 0},     {0, 0, 3, 5, 7},
    {1, 1, 1, 97, 33},   {1, 1, 97, 1, 33},   {1, 1, 64, 64, 1},
    {1, 1, 129, 65, 63}, {1, 1, 17, 301, 41}, {1, 1, 301, 17, 520},
    {5, 5, 33, 17, 9},   {5, 1, 33, 17, 9},   {1, 5, 33, 17, 9},
    {70, 70, 5, 3, 2},   {3, 3, 90, 70, 80},
};

static void products_are_right_for_all_shapes_and_layouts(void **state)
{
    (void)state;
    for (int n_threads = 1; n_threads <= 3; n_threads++) {
        trn_context *c = open_blas(TRN_EXEC_EAGER, n_threads);
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            const shape s = shapes[i];
            for (int t = 0; t < 2 * N_LAYOUTS * N_LAYOUTS; t++) {
                const trn_dtype dtype = t % 2 ? TRN_F64 : TRN_F32;
                const layout la = (layout)(t / 2 % N_LAYOUTS);
                const layout lb = (layout)(t / 2 / N_LAYOUTS);
                factor a = make(c, dtype, la, s.batch_a, s.m, s.k, 2 * i + 1);
                factor b = make(c, dtype, lb, s.batch_b, s.k, s.n, 2 * i + 2);
                trn_tensor *y = trn_matmul(a.x, b.x);
                harness_ok(c);
                check_sums(&a, &b, y, dtype);
                free(a.v);
                free(b.v);
            }
        }
        trn_close(c);
    }
}

/* As attributes: the stored matrix is the other way round. */
static void transposed_products_are_right(void **state)
{
    (void)state;
    trn_context *c = open_blas(TRN_EXEC_EAGER, 3);
    for (int t = 0; t < 8; t++) {
        const trn_dtype dtype = t / 4 ? TRN_F64 : TRN_F32;
        factor a = make(c, dtype, PLAIN, 2, 67, 45, 5);
        factor b = make(c, dtype, PLAIN, 2, 45, 89, 6);
        trn_tensor *at = t & 1 ? trn_copy(trn_transpose(a.x, 1, 2)) : a.x;
        trn_tensor *bt = t & 2 ? trn_copy(trn_transpose(b.x, 1, 2)) : b.x;
        trn_tensor *y = trn_matmul_trans(at, bt, t & 1, t & 2);
        harness_ok(c);
        check_sums(&a, &b, y, dtype);
        free(a.v);
        free(b.v);
    }
    trn_close(c);
}

/* So it is not the kernels that have been tested.  700 places along k are more
 * than one block of either. */
static void its_bits_are_not_those_of_the_kernels(void **state)
{
    (void)state;
    for (int t = 0; t < 6; t++) {
        const trn_dtype dtype = t % 2 ? TRN_F64 : TRN_F32;
        const layout how = (layout)(t / 2);
        trn_context *c[2] = {open_blas(TRN_EXEC_EAGER, 2), open_kernels(2)};
        void *bytes[2];
        for (int i = 0; i < 2; i++) {
            factor a = make(c[i], dtype, how, 1, 70, 700, 3);
            factor b = make(c[i], dtype, how, 1, 700, 60, 4);
            bytes[i] = harness_bytes_of(trn_matmul(a.x, b.x), NULL);
            harness_ok(c[i]);
            free(a.v);
            free(b.v);
        }
        CHECK(dtype_differ(dtype, bytes[0], bytes[1], 70 * 60) >= 0,
              "layout %d: the bits are those of the kernels\n", (int)how);
        for (int i = 0; i < 2; i++) {
            free(bytes[i]);
            trn_close(c[i]);
        }
    }
}

/* Those of a product by another product, in the order of the kernels. */
static void gradients_are_right(void **state)
{
    (void)state;
    trn_context *c[2] = {open_blas(TRN_EXEC_EAGER, 2), open_kernels(2)};
    trn_tensor *a[2], *b[2];
    for (int i = 0; i < 2; i++) {
        factor x = make(c[i], TRN_F64, PLAIN, 3, 31, 41, 7);
        factor y = make(c[i], TRN_F64, TURNED, 3, 41, 21, 8);
        factor w = make(c[i], TRN_F64, PLAIN, 3, 31, 21, 9);
        a[i] = x.x;
        b[i] = trn_copy(y.x);
        trn_set_requires_grad(a[i], true);
        trn_set_requires_grad(b[i], true);
        trn_tensor *z = trn_mul(trn_matmul(a[i], b[i]), w.x);
        assert_int_equal(trn_backward(trn_sum(z, TRN_ALL_AXES, false)), TRN_OK);
        harness_ok(c[i]);
        free(x.v);
        free(y.v);
        free(w.v);
    }
    for (int which = 0; which < 2; which++) {
        trn_tensor *const *x = which ? b : a;
        const int64_t n = trn_tensor_numel(x[0]);
        double *got = harness_bytes_of(trn_grad_of(x[0]), NULL);
        double *want = harness_bytes_of(trn_grad_of(x[1]), NULL);
        for (int64_t i = 0; i < n; i++)
            CHECK(fabs(got[i] - want[i]) <= 31 * 64 * 0x1p-53,
                  "element %d: %.17g, not %.17g\n", (int)i, got[i], want[i]);
        free(got);
        free(want);
    }
    trn_close(c[0]);
    trn_close(c[1]);
}

/* Losses of some steps of an MLP. */
static void train(trn_context *c, double *loss, int n)
{
    trn_generator *g = trn_generator_default(c);
    trn_tensor *x = trn_normal(g, TRN_F32, 2, (int64_t[]){64, 40});
    trn_tensor *want = trn_norm(x, TRN_AXIS(1), true);
    trn_module *net =
        trn_nn_sequential(c, trn_nn_linear(c, 40, 130), trn_nn_tanh(c),
                          trn_nn_linear(c, 130, 1), NULL);
    trn_optim *optim = trn_optim_adamw(net, NULL);
    for (int i = 0; i < n; i++) {
        trn_step_begin(c);
        trn_tensor *d = trn_sub(trn_nn_forward(net, x), want);
        trn_backward(trn_mean(trn_mul(d, d), TRN_ALL_AXES, false));
        trn_optim_step(optim);
        trn_step_end(c);
        loss[i] = trn_step_loss(c);
    }
    harness_ok(c);
}

static void steps_learn_eagerly_and_captured(void **state)
{
    (void)state;
    enum { N = 20 };
    double kernels[N], loss[N];
    trn_context *c = open_kernels(2);
    train(c, kernels, N);
    trn_close(c);
    for (int exec = TRN_EXEC_EAGER; exec <= TRN_EXEC_CAPTURED; exec++) {
        c = open_blas((trn_exec)exec, 2);
        train(c, loss, N);
        trn_capture_info info = captured_info(c);
        assert_true((exec == TRN_EXEC_CAPTURED) == (info.replays > 0));
        assert_true(loss[N - 1] < 0.9 * loss[0]);
        for (int i = 0; i < N; i++)
            CHECK(fabs(loss[i] - kernels[i]) <= 1e-4 * kernels[i],
                  "step %d: %g, not %g\n", i, loss[i], kernels[i]);
        trn_close(c);
    }
}

static void the_description_names_the_library_and_its_core(void **state)
{
    (void)state;
    trn_context *c = open_blas(TRN_EXEC_EAGER, 2);
    const char *text = trn_device_description(c);
    const char *at = strstr(text, ", matmul by OpenBLAS ");
    CHECK(at != NULL && strstr(at, ": not reproducible") != NULL, "%s\n", text);
    assert_false(trn_reproducible(c));
    trn_close(c);
}

static void the_host_keeps_its_number_of_threads(void **state)
{
    (void)state;
#ifdef TRN_HAVE_OPENBLAS
    const int before = openblas_get_num_threads();
    for (int n = 1; n <= 3; n++) {
        openblas_set_num_threads(n);
        const int have = openblas_get_num_threads();
        trn_context *c = open_blas(TRN_EXEC_EAGER, 2);
        factor a = make(c, TRN_F32, PLAIN, 1, 300, 200, 1);
        factor b = make(c, TRN_F32, PLAIN, 1, 200, 100, 2);
        trn_tensor *y = trn_matmul(a.x, b.x);
        harness_ok(c);
        assert_int_equal(openblas_get_num_threads(), have);
        check_sums(&a, &b, y, TRN_F32);
        free(a.v);
        free(b.v);
        trn_close(c);
    }
    openblas_set_num_threads(before);
#else
    print_message("built without OpenBLAS\n");
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_right_for_all_shapes_and_layouts),
        cmocka_unit_test(transposed_products_are_right),
        cmocka_unit_test(its_bits_are_not_those_of_the_kernels),
        cmocka_unit_test(gradients_are_right),
        cmocka_unit_test(steps_learn_eagerly_and_captured),
        cmocka_unit_test(the_description_names_the_library_and_its_core),
        cmocka_unit_test(the_host_keeps_its_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
