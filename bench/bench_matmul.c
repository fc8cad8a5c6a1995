/* SPDX-License-Identifier: Apache-2.0
 *
 * The cases "matmul:<dtype>:<M>x<N>x<K>[:<a><b>]": y[M,N] = a[M,K] b[K,N],
 * where a and b are n (as they are) or t (stored transposed).
 *
 * Each is verified against sums in double on sampled elements, then timed in
 * turn with the FMA loop on the same threads and, where it is there, with
 * OpenBLAS.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

#ifdef TRN_HAVE_OPENBLAS
#include <cblas.h>
#ifndef OPENBLAS_VERSION /* another library's cblas.h lacks these */
extern char *openblas_get_corename(void);
extern void openblas_set_num_threads(int n_threads);
#endif
#endif

enum { N_SAMPLES = 64, MOST = 16384 };

typedef struct product {
    bench_run *r;
    trn_dtype dtype;
    int64_t m, n, k;
    bool ta, tb;
    trn_tensor *a, *b;
    const void *host_a, *host_b; /* mapped */
    void *blas_y;
} product;

const char *bench_blas_core(void)
{
#ifdef TRN_HAVE_OPENBLAS
    return openblas_get_corename();
#else
    return NULL;
#endif
}

void bench_blas_threads(int n)
{
#ifdef TRN_HAVE_OPENBLAS
    openblas_set_num_threads(n);
#else
    (void)n;
#endif
}

static trn_tensor *multiply(product *p)
{
    return trn_matmul_trans(p->a, p->b, p->ta, p->tb);
}

static void ours(void *arg)
{
    product *p = arg;
    trn_tensor_release(multiply(p));
}

#ifdef TRN_HAVE_OPENBLAS
static void blas(void *arg)
{
    product *p = arg;
    const CBLAS_TRANSPOSE ta = p->ta ? CblasTrans : CblasNoTrans;
    const CBLAS_TRANSPOSE tb = p->tb ? CblasTrans : CblasNoTrans;
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k;
    const int lda = p->ta ? m : k, ldb = p->tb ? k : n;
    if (p->dtype == TRN_F32)
        cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1.0f, p->host_a, lda,
                    p->host_b, ldb, 0.0f, p->blas_y, n);
    else
        cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1.0, p->host_a, lda,
                    p->host_b, ldb, 0.0, p->blas_y, n);
}
#endif

#ifdef TRN_HAVE_OPENBLAS
/* How long its threads spin after a call: 2^26 cycles, if not told otherwise
 * when the process starts. */
static double blas_rest(const product *p)
{
    return trn_thread_count(p->r->c) > 1 ? 0.03 : 0.0;
}
#endif

static double element(trn_dtype dtype, const void *data, int64_t i)
{
    return dtype == TRN_F32 ? (double)((const float *)data)[i]
                            : ((const double *)data)[i];
}

/* The largest error of sampled elements over what rounding may explain. */
static double worst_error(const product *p, const void *y)
{
    const double eps = p->dtype == TRN_F32 ? 0x1p-24 : 0x1p-53;
    double worst = 0.0;
    for (int64_t s = 0; s < N_SAMPLES; s++) {
        const int64_t at = (s * 2654435761 + 12345) % (p->m * p->n);
        const int64_t i = at / p->n, j = at % p->n;
        double sum = 0.0, size = 0.0;
        for (int64_t q = 0; q < p->k; q++) {
            const int64_t ia = p->ta ? q * p->m + i : i * p->k + q;
            const int64_t ib = p->tb ? j * p->k + q : q * p->n + j;
            const double v = element(p->dtype, p->host_a, ia) *
                             element(p->dtype, p->host_b, ib);
            sum += v;
            size += fabs(v);
        }
        const double bound = ((double)p->k + 2.0) * eps * size;
        const double error = fabs(element(p->dtype, y, at) - sum);
        /* A NaN must not pass for a small error. */
        if (!(error <= worst * bound))
            worst = bound > 0.0 ? error / bound : INFINITY;
    }
    return worst;
}

static bench_outcome verify(product *p, const char *name)
{
    trn_tensor *y = multiply(p);
    const void *data = trn_tensor_map(y);
    if (data == NULL)
        return bench_wrong(name, trn_errmsg(p->r->c));
    const double worst = worst_error(p, data);
    trn_tensor_unmap(y);
    trn_tensor_release(y);
    if (!(worst <= 1.0))
        return bench_wrong(name, "the product is wrong");
#ifdef TRN_HAVE_OPENBLAS
    blas(p);
    bench_rest(blas_rest(p));
    if (!(worst_error(p, p->blas_y) <= 1.0))
        return bench_wrong(name, "OpenBLAS computes something else");
#endif
    return BENCH_OK;
}

static void measure(product *p, const char *name)
{
    bench_figure f[3];
    int n = 0;
    const double flops = 2.0 * (double)p->m * (double)p->n * (double)p->k;
    const size_t size = trn_dtype_size(p->dtype);
    bench_work a = {.fn = ours, .arg = p};
    bench_calibrate(&a, 0.01);
    if (bench_fma_available()) {
        bench_work fma = {
            .fn = p->dtype == TRN_F32 ? bench_fma_f32 : bench_fma_f64,
            .arg = p->r->team,
        };
        bench_calibrate(&fma, 0.01);
        bench_pair pair = bench_compare(&a, &fma, 0.3);
        f[n++] = (bench_figure){"speed", "GFLOP/s",
                                bench_rate(pair.a, 1e-9 * flops)};
        f[n++] = (bench_figure){
            "share_of_peak", "",
            bench_scaled(pair.ratio,
                         flops / bench_fma_flops(p->r->team, size))};
    } else {
        f[n++] = (bench_figure){"speed", "GFLOP/s",
                                bench_rate(bench_time(&a, 0.3), 1e-9 * flops)};
    }
#ifdef TRN_HAVE_OPENBLAS
    bench_work b = {.fn = blas, .arg = p, .rest_s = blas_rest(p)};
    bench_calibrate(&b, 0.01);
    f[n++] =
        (bench_figure){"openblas_ratio", "", bench_compare(&a, &b, 0.3).ratio};
#endif
    bench_report(p->r, name, n, f);
}

static bool parse(const char *name, product *p)
{
    char dtype[4] = "", a = 'n', b = 'n';
    int end = 0;
    int n = sscanf(
        name, "matmul:%3[f0-9]:%" SCNd64 "x%" SCNd64 "x%" SCNd64 "%n:%c%c%n",
        dtype, &p->m, &p->n, &p->k, &end, &a, &b, &end);
    p->dtype = strcmp(dtype, "f32") == 0 ? TRN_F32 : TRN_F64;
    p->ta = a == 't';
    p->tb = b == 't';
    return (n == 4 || n == 6) && (p->ta || a == 'n') && (p->tb || b == 'n') &&
           name[end] == '\0' &&
           (p->dtype == TRN_F32 || strcmp(dtype, "f64") == 0) && p->m > 0 &&
           p->n > 0 && p->k > 0 && p->m <= MOST && p->n <= MOST && p->k <= MOST;
}

static bench_outcome run(bench_run *r, const char *name)
{
    product p = {.r = r};
    if (!parse(name, &p))
        return BENCH_UNKNOWN;
    const int64_t a[] = {p.ta ? p.k : p.m, p.ta ? p.m : p.k};
    const int64_t b[] = {p.tb ? p.n : p.k, p.tb ? p.k : p.n};
    trn_generator *g = trn_generator_default(r->c);
    p.a = trn_add_scalar(trn_uniform(g, p.dtype, 2, a), -0.5);
    p.b = trn_add_scalar(trn_uniform(g, p.dtype, 2, b), -0.5);
    p.host_a = trn_tensor_map(p.a);
    p.host_b = trn_tensor_map(p.b);
    p.blas_y = malloc((size_t)(p.m * p.n) * trn_dtype_size(p.dtype));
    bench_outcome outcome = BENCH_OK;
    if (p.host_a == NULL || p.host_b == NULL || p.blas_y == NULL)
        outcome = BENCH_WRONG;
    if (outcome == BENCH_WRONG)
        bench_wrong(name, "out of memory");
    if (outcome == BENCH_OK)
        outcome = verify(&p, name);
    if (outcome == BENCH_OK)
        measure(&p, name);
    trn_tensor_unmap(p.a);
    trn_tensor_unmap(p.b);
    trn_tensor_release(p.a);
    trn_tensor_release(p.b);
    free(p.blas_y);
    return outcome;
}

/* Squares, and the demo's products: forward, and the gradients of what goes
 * in and of the weights. */
static const struct {
    const char *dtype, *shape;
} defaults[] = {
    {"f32", "64x64x64"},       {"f32", "128x128x128"},
    {"f32", "256x256x256"},    {"f32", "512x512x512"},
    {"f32", "1024x1024x1024"}, {"f64", "64x64x64"},
    {"f64", "128x128x128"},    {"f64", "256x256x256"},
    {"f64", "512x512x512"},    {"f64", "1024x1024x1024"},
    {"f32", "128x512x384"},    {"f32", "128x384x512"},
    {"f32", "512x384x128"},
};

static void list(void (*fn)(void *user, const char *name), void *user)
{
    static const char *const ways[] = {"nn", "nt", "tn", "tt"};
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++) {
        for (size_t w = 0; w < 4; w++) {
            char name[80];
            snprintf(name, sizeof name, "matmul:%s:%s:%s", defaults[i].dtype,
                     defaults[i].shape, ways[w]);
            fn(user, name);
        }
    }
}

const bench_family bench_matmul = {
    .name = "matmul",
    .form = "matmul:<f32|f64>:<M>x<N>x<K>[:<n|t><n|t>]",
    .run = run,
    .list = list,
};
