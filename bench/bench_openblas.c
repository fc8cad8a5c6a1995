/* SPDX-License-Identifier: Apache-2.0
 *
 * The cases "openblas:mlp-step" and "openblas:matmul:<dtype>:<N>": what
 * TRN_MATMUL=openblas gains, on two contexts of this library in turn.
 *
 * `gain` is time by the kernels / time with OpenBLAS, pair by pair.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/model.h"

enum { STEPS = 20, MOST = 4096 };

typedef struct side {
    trn_context *c;
    bench_model model;
    trn_tensor *a, *b;
} side;

static bool open_side(side *s, const bench_run *r, const char *options)
{
    trn_options o = TRN_OPTIONS_INIT;
    o.device = "cpu";
    o.device_options = options;
    o.n_threads = trn_thread_count(r->c);
    return trn_open(&s->c, &o) == TRN_OK;
}

static void steps(void *arg)
{
    side *s = arg;
    trn_batch b;
    for (int i = 0; i < STEPS && bench_model_next(&s->model, &b); i++)
        bench_model_step(&s->model, &b);
    trn_sync(s->c);
}

static void product(void *arg)
{
    side *s = arg;
    trn_tensor_release(trn_matmul(s->a, s->b));
}

static const char *set_up_model(side *s)
{
    bench_model_open(&s->model, s->c);
    return bench_model_learns(&s->model) ? NULL : "the loss does not fall";
}

static const char *set_up_product(side *s, trn_dtype dtype, int64_t n)
{
    trn_generator *g = trn_generator_default(s->c);
    const int64_t shape[] = {n, n};
    s->a = trn_add_scalar(trn_uniform(g, dtype, 2, shape), -0.5);
    s->b = trn_add_scalar(trn_uniform(g, dtype, 2, shape), -0.5);
    return trn_errcode(s->c) == TRN_OK ? NULL : trn_errmsg(s->c);
}

/* The same numbers on both sides, but for rounding. */
static const char *compare_products(side *s, trn_dtype dtype, int64_t n)
{
    double sum[2];
    const double eps = dtype == TRN_F32 ? 0x1p-24 : 0x1p-53;
    for (int i = 0; i < 2; i++) {
        trn_tensor *y = trn_matmul(s[i].a, s[i].b);
        sum[i] = trn_tensor_item(trn_norm(y, TRN_ALL_AXES, false));
        trn_tensor_release(y);
    }
    return fabs(sum[0] - sum[1]) <= (double)n * eps * sum[0]
               ? NULL
               : "the products differ";
}

static void measure(const bench_run *r, const char *name, side *s, bool model)
{
    bench_work blas = {.fn = model ? steps : product, .arg = &s[1]};
    bench_work kernels = {.fn = blas.fn, .arg = &s[0]};
    bench_calibrate(&blas, model ? 0.05 : 0.01);
    kernels.repeats = blas.repeats;
    blas.fn(blas.arg);
    kernels.fn(kernels.arg);
    const bench_pair p = bench_compare(&blas, &kernels, model ? 8.0 : 1.0);
    const double scale = 1e6 / (model ? STEPS : 1);
    const bench_figure figures[] = {
        {"kernels", "us", bench_scaled(p.b, scale)},
        {"openblas", "us", bench_scaled(p.a, scale)},
        {"gain", "", p.ratio},
    };
    bench_report(r, name, 3, figures);
}

static bench_outcome run(bench_run *r, const char *name)
{
    const bool model = strcmp(name, "openblas:mlp-step") == 0;
    char dtype[4] = "";
    int64_t n = 0;
    int end = 0;
    sscanf(name, "openblas:matmul:%3[f0-9]:%" SCNd64 "%n", dtype, &n, &end);
    const bool f32 = strcmp(dtype, "f32") == 0;
    if (!model && (name[end] != '\0' || n < 1 || n > MOST ||
                   (!f32 && strcmp(dtype, "f64") != 0)))
        return BENCH_UNKNOWN;
    const trn_dtype type = f32 ? TRN_F32 : TRN_F64;
    static const char *const options[] = {"matmul=reproducible",
                                          "matmul=openblas"};
    side s[2] = {{.c = NULL}, {.c = NULL}};
    const char *why = NULL;
    bench_outcome outcome = BENCH_OK;
    for (int i = 0; i < 2 && why == NULL; i++) {
        if (!open_side(&s[i], r, options[i])) {
            fprintf(stderr, "bench-trn: %s: unavailable: %s\n", name,
                    trn_errmsg(s[i].c));
            goto out;
        }
        why = model ? set_up_model(&s[i]) : set_up_product(&s[i], type, n);
    }
    if (why == NULL && !model)
        why = compare_products(s, type, n);
    if (why == NULL)
        measure(r, name, s, model);
    else
        outcome = bench_wrong(name, why);
out:
    trn_close(s[0].c);
    trn_close(s[1].c);
    return outcome;
}

static void list(void (*fn)(void *user, const char *name), void *user)
{
    fn(user, "openblas:mlp-step");
    fn(user, "openblas:matmul:f32:256");
    fn(user, "openblas:matmul:f32:1024");
    fn(user, "openblas:matmul:f64:1024");
}

const bench_family bench_openblas = {
    .name = "openblas",
    .form = "openblas:mlp-step, openblas:matmul:<f32|f64>:<N>",
    .run = run,
    .list = list,
};
