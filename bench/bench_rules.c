/* SPDX-License-Identifier: Apache-2.0
 *
 * The case "rules:mlp-step": what the order of sums and products that
 * docs/numerics.md fixes costs in the demo's step.
 *
 * Two builds of the library, in shared objects beside this program, take turns
 * at 20 steps each: one by the rules, the other of the same sources with f32
 * lanes in its sums and k cut as caches like it (TRN_FREE_ORDER).  `cost` is
 * time by the rules / time in free order - 1, pair by pair; `noise` is the same
 * of two models of the build by the rules, which is 0 on a quiet machine.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/free_order/side.h"

enum { STEPS = 20 };

typedef struct side {
    void *object;
    const bench_side_table *table;
    void *model;
    double loss; /* after the steps that show that it learns */
} side;

static bool load(side *s, const char *file, int n_threads)
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
        s->model = s->table->open(n_threads, &s->loss);
    return s->model != NULL;
}

/* The object stays: a library with threads is not unloaded. */
static void unload(side *s)
{
    if (s->model != NULL)
        s->table->close(s->model);
}

static void steps(void *arg)
{
    side *s = arg;
    s->table->steps(s->model, STEPS);
}

/* The same training, and yet not the same bits: both builds are what they
 * should be. */
static const char *wrong(const side *rules, const side *again, const side *free)
{
    char a[65], b[65], c[65];
    if (rules->table->free_order || !free->table->free_order)
        return "the builds are not those that they should be";
    if (!rules->table->digest(rules->model, a) ||
        !again->table->digest(again->model, b) ||
        !free->table->digest(free->model, c))
        return "there is no digest";
    if (strcmp(a, b) != 0)
        return "the rules do not give the same bits twice";
    if (strcmp(a, c) == 0)
        return "free order gives the bits of the rules";
    if (!(fabs(rules->loss - free->loss) <= 1e-3 * rules->loss))
        return "the losses differ";
    return NULL;
}

static bench_stats cost(bench_stats ratio)
{
    return (bench_stats){100.0 * (ratio.min - 1.0),
                         100.0 * (ratio.median - 1.0),
                         100.0 * (ratio.max - 1.0), ratio.n};
}

static void measure(const bench_run *r, const char *name, side *rules,
                    side *again, side *free)
{
    const bench_work a = {.fn = steps, .arg = free, .repeats = 1};
    const bench_work b = {.fn = steps, .arg = rules, .repeats = 1};
    const bench_work c = {.fn = steps, .arg = again, .repeats = 1};
    const bench_pair p = bench_compare(&a, &b, 10.0);
    const bench_pair none = bench_compare(&c, &b, 5.0);
    const bench_figure figures[] = {
        {"rules", "us", bench_scaled(p.b, 1e6 / STEPS)},
        {"free", "us", bench_scaled(p.a, 1e6 / STEPS)},
        {"cost", "%", cost(p.ratio)},
        {"noise", "%", cost(none.ratio)},
    };
    bench_report(r, name, 4, figures);
}

static bench_outcome run(bench_run *r, const char *name)
{
    side rules = {.object = NULL}, again = {.object = NULL};
    side free = {.object = NULL};
    const int n = trn_thread_count(r->c);
    const char *why;
    if (strcmp(name, "rules:mlp-step") != 0)
        return BENCH_UNKNOWN;
    if (!bench_fma_available()) {
        fprintf(stderr, "bench-trn: %s: unavailable: no AVX2 and FMA here\n",
                name);
        return BENCH_OK;
    }
    if (!load(&rules, "bench-rules.so", n) ||
        !load(&again, "bench-rules.so", n) || !load(&free, "bench-free.so", n))
        why = "a side does not open or does not learn";
    else
        why = wrong(&rules, &again, &free);
    if (why == NULL)
        measure(r, name, &rules, &again, &free);
    unload(&rules);
    unload(&again);
    unload(&free);
    return why == NULL ? BENCH_OK : bench_wrong(name, why);
}

static void list(void (*fn)(void *user, const char *name), void *user)
{
    fn(user, "rules:mlp-step");
}

const bench_family bench_rules = {
    .name = "rules",
    .form = "rules:mlp-step",
    .run = run,
    .list = list,
};
