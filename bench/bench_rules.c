/* SPDX-License-Identifier: Apache-2.0
 *
 * The cases "rules:...": what rules that docs/numerics.md fixes cost, in the
 * demo's step, or of one op against another way to compute it.
 *
 * Three models take turns at 20 steps each: two by the rules, one without some
 * of them.  All are of one build of the library (bench/free_order/,
 * kernels/free_order/), in a shared object beside this program, whose models
 * have the library's bits as long as nothing is left out; but for "fma", where
 * the third is of another build.  `cost` is time by the rules / time without -
 * 1, turn by turn; `noise` is the same of the two models by the rules, which is
 * 0 on a quiet machine.  `cpu_cost` and `cpu_noise` are of processor time,
 * which other work on the machine moves less.
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/free_order/side.h"
#include "bench/model.h"
#include "kernels/free_order/free_order.h"

enum { STEPS = 20, MOST_TURNS = 400 };

#define SECONDS 20.0

static const struct {
    const char *name, *file, *device;
    unsigned left_out;
} cases[] = {
    {"rules:mlp-step", "bench-free.so", "cpu",
     TRN__FREE_LANES | TRN__FREE_K | TRN__FREE_FLUSH},
    {"rules:mlp-step:lanes", "bench-free.so", "cpu", TRN__FREE_LANES},
    {"rules:mlp-step:k-order", "bench-free.so", "cpu", TRN__FREE_K},
    {"rules:mlp-step:flush", "bench-free.so", "cpu", TRN__FREE_FLUSH},
    {"rules:mlp-step:fma", "bench-unfused.so", "cpu:generic", 0},
};

enum { N_CASES = sizeof cases / sizeof cases[0] };

typedef struct side {
    void *object;
    const bench_side_table *table;
    void *model;
    double loss; /* after the steps that show that it learns */
} side;

static bool load(side *s, const char *file, const char *device, int n_threads,
                 unsigned left_out)
{
    char path[4096];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
    if (n < 0)
        return false;
    path[n] = '\0';
    char *name = strrchr(path, '/') + 1;
    snprintf(name, 64, "%s", file);
    s->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (s->object == NULL) {
        fprintf(stderr, "bench-trn: %s\n", dlerror());
        return false;
    }
    s->table = dlsym(s->object, BENCH_SIDE_NAME);
    if (s->table != NULL)
        s->model = s->table->open(device, n_threads, left_out, &s->loss);
    return s->model != NULL;
}

/* The object stays: a library with threads is not unloaded. */
static void unload(side *s)
{
    if (s->model != NULL)
        s->table->close(s->model);
}

/* Of the library that this program is linked to, after the same training. */
static bool library_digest(const char *device, int n_threads, char text[65])
{
    bench_model m = {.c = NULL};
    trn_options o = TRN_OPTIONS_INIT;
    o.device = device;
    o.n_threads = n_threads;
    bool good = trn_open(&m.c, &o) == TRN_OK;
    if (good)
        bench_model_open(&m, m.c);
    good = good && bench_model_learns(&m) && trn_digest(m.net, text) == TRN_OK;
    trn_close(m.c);
    return good;
}

/* The same training; by the rules with the library's bits, and without them
 * with others.  Where no state has become subnormal yet, flushing is not seen.
 */
static const char *wrong(const side *rules, const side *again, const side *free,
                         const char *library, bool other_bits)
{
    char a[65], b[65], c[65];
    if (!rules->table->digest(rules->model, a) ||
        !again->table->digest(again->model, b) ||
        !free->table->digest(free->model, c))
        return "there is no digest";
    if (strcmp(a, b) != 0 || strcmp(a, library) != 0)
        return "the rules do not give the library's bits";
    if (other_bits && strcmp(a, c) == 0)
        return "free order gives the bits of the rules";
    if (!(fabs(rules->loss - free->loss) <= 1e-3 * rules->loss))
        return "the losses differ";
    return NULL;
}

/* ---- turns ---- */

typedef struct work {
    void (*fn)(void *arg);
    void *arg;
} work;

typedef struct turns {
    int n;
    double wall[3][MOST_TURNS], cpu[3][MOST_TURNS];
} turns;

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Each turn in another order. */
static void take_turns(turns *t, const work *w)
{
    const double start = bench_now();
    for (t->n = 0; t->n < MOST_TURNS && bench_now() - start < SECONDS; t->n++) {
        for (int q = 0; q < 3; q++) {
            const int i = (q + t->n) % 3;
            const double wall = bench_now(), cpu = cpu_now();
            w[i].fn(w[i].arg);
            t->cpu[i][t->n] = cpu_now() - cpu;
            t->wall[i][t->n] = bench_now() - wall;
        }
    }
}

static bench_stats excess(int n, const double *more, const double *less)
{
    double percent[MOST_TURNS];
    for (int i = 0; i < n; i++)
        percent[i] = 100.0 * (more[i] / less[i] - 1.0);
    return bench_summary(n, percent);
}

/* Work 0 and 1 by the rules, 2 without. */
static void measure(const bench_run *r, const char *name, const work *w,
                    double scale)
{
    static turns t;
    take_turns(&t, w);
    const bench_figure figures[] = {
        {"cost", "%", excess(t.n, t.wall[0], t.wall[2])},
        {"noise", "%", excess(t.n, t.wall[0], t.wall[1])},
        {"cpu_cost", "%", excess(t.n, t.cpu[0], t.cpu[2])},
        {"cpu_noise", "%", excess(t.n, t.cpu[0], t.cpu[1])},
        {"rules", "us", bench_scaled(bench_summary(t.n, t.wall[0]), scale)},
        {"free", "us", bench_scaled(bench_summary(t.n, t.wall[2]), scale)},
    };
    bench_report(r, name, 6, figures);
}

/* ---- the demo's step ---- */

static void steps(void *arg)
{
    side *s = arg;
    s->table->steps(s->model, STEPS);
}

static bench_outcome run_steps(bench_run *r, int which)
{
    side rules = {.object = NULL}, again = {.object = NULL};
    side free = {.object = NULL};
    const int n = trn_thread_count(r->c);
    const unsigned left_out = cases[which].left_out;
    const char *device = cases[which].device, *why;
    char library[65];
    if (!load(&rules, "bench-free.so", device, n, 0) ||
        !load(&again, "bench-free.so", device, n, 0) ||
        !load(&free, cases[which].file, device, n, left_out) ||
        !library_digest(device, n, library))
        why = "a side does not open or does not learn";
    else
        why =
            wrong(&rules, &again, &free, library, left_out != TRN__FREE_FLUSH);
    if (why == NULL) {
        const work w[] = {{steps, &rules}, {steps, &again}, {steps, &free}};
        measure(r, cases[which].name, w, 1e6 / STEPS);
    }
    unload(&rules);
    unload(&again);
    unload(&free);
    return why == NULL ? BENCH_OK : bench_wrong(cases[which].name, why);
}

/* ---- one op against another way to compute it ---- */

static void mean_of(void *arg)
{
    for (int i = 0; i < STEPS; i++)
        trn_tensor_release(trn_mean(arg, TRN_AXIS(1), false));
}

/* The same but for the first element, in f64 the largest magnitude, and a
 * division for each row. */
static void sum_of(void *arg)
{
    for (int i = 0; i < STEPS; i++)
        trn_tensor_release(trn_sum(arg, TRN_AXIS(1), false));
}

static void product_of(void *arg)
{
    trn_tensor_release(trn_matmul_trans(arg, arg, false, true));
}

/* The same in f32, rounded once. */
static void product_in_f32(void *arg)
{
    trn_tensor *x = trn_cast(arg, TRN_F32);
    trn_tensor *y = trn_matmul_trans(x, x, false, true);
    trn_tensor_release(trn_cast(y, TRN_BF16));
    trn_tensor_release(y);
    trn_tensor_release(x);
}

static const struct {
    const char *name;
    trn_dtype dtype;
    int64_t shape[2];
    int repeats;
    void (*rules)(void *arg);
    void (*free)(void *arg);
} ops[] = {
    {"rules:mean", TRN_F32, {256, 4096}, STEPS, mean_of, sum_of},
    {"rules:mean:f64", TRN_F64, {128, 4096}, STEPS, mean_of, sum_of},
    {"rules:bf16-product", TRN_BF16, {128, 128}, 1, product_of, product_in_f32},
};

enum { N_OPS = sizeof ops / sizeof ops[0] };

static bench_outcome run_op(bench_run *r, int which)
{
    trn_tensor *x = trn_uniform(trn_generator_default(r->c), ops[which].dtype,
                                2, ops[which].shape);
    const work w[] = {
        {ops[which].rules, x}, {ops[which].rules, x}, {ops[which].free, x}};
    if (x != NULL)
        measure(r, ops[which].name, w, 1e6 / ops[which].repeats);
    trn_tensor_release(x);
    return trn_errcode(r->c) == TRN_OK
               ? BENCH_OK
               : bench_wrong(ops[which].name, trn_errmsg(r->c));
}

static bench_outcome run(bench_run *r, const char *name)
{
    for (int i = 0; i < N_OPS; i++) {
        if (strcmp(name, ops[i].name) == 0)
            return run_op(r, i);
    }
    for (int i = 0; i < N_CASES; i++) {
        if (strcmp(name, cases[i].name) != 0)
            continue;
        if (bench_fma_available())
            return run_steps(r, i);
        fprintf(stderr, "bench-trn: %s: unavailable: no AVX2 and FMA here\n",
                name);
        return BENCH_OK;
    }
    return BENCH_UNKNOWN;
}

static void list(void (*fn)(void *user, const char *name), void *user)
{
    for (int i = 0; i < N_CASES; i++)
        fn(user, cases[i].name);
    for (int i = 0; i < N_OPS; i++)
        fn(user, ops[i].name);
}

const bench_family bench_rules = {
    .name = "rules",
    .form = "rules:mlp-step[:lanes|k-order|flush|fma], rules:mean[:f64], "
            "rules:bf16-product",
    .run = run,
    .list = list,
};
