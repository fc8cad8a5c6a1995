/* SPDX-License-Identifier: Apache-2.0
 *
 * The cases "graph-overhead:<what>": the host's part of a step on a graph
 * device, tracing, matching and calling, without what the device does.
 *
 *   demo-step   a training step of the demo's model
 *   chain       1000 adds of one element
 *
 * The device must be pjrt:<build>/tests/plugins/pjrt_timer.so, which hands
 * every call to the plug-in that TRN_PJRT_PLUGIN names and adds up the time it
 * takes.  `overhead` is the time from before trn_step_begin() to after a
 * trn_sync() behind trn_step_end(), less that, so that all of the host's work
 * for a step is in it and no waiting.  `limit` is what is required of it:
 * 150 ns for each node of the traced graph, and 30 us.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/model.h"

enum { RUNS = 301, WARM = 20, CHAIN = 1000 };

typedef uint64_t counter_fn(void);

typedef struct subject {
    trn_context *c;
    counter_fn *plugin_ns, *plugin_calls; /* of this thread */
    bench_model model;
    trn_batch batch;
    trn_tensor *one, *result;
} subject;

typedef struct samples {
    double overhead[RUNS], plugin[RUNS], calls[RUNS];
} samples;

/* ---- the two steps ---- */

static void open_chain(subject *s)
{
    s->one = trn_full(s->c, TRN_F32, 1, (int64_t[]){1}, 1.0);
    trn_sync(s->c);
}

static void chain(subject *s)
{
    trn_step_begin(s->c);
    trn_tensor *y = s->one;
    for (int i = 0; i < CHAIN; i++)
        y = trn_add(y, s->one);
    trn_keep(y);
    trn_step_end(s->c);
    s->result = y;
}

static void drop_result(subject *s)
{
    trn_tensor_release(s->result);
    s->result = NULL;
}

static bool chain_is_right(subject *s)
{
    chain(s);
    bool right = trn_tensor_item(s->result) == 1.0 + CHAIN;
    drop_result(s);
    return right;
}

/* ---- measuring ---- */

/* A function of the plug-in that was loaded as pjrt:PATH; NULL: there is no
 * such plug-in or function. */
static counter_fn *plugin_function(const char *device, const char *name)
{
    static const char prefix[] = "pjrt:";
    counter_fn *fn = NULL;
    if (device == NULL)
        device = getenv("TRN_DEVICE");
    if (device == NULL || strncmp(device, prefix, sizeof prefix - 1) != 0)
        return NULL;
    void *object = dlopen(device + sizeof prefix - 1, RTLD_NOW | RTLD_NOLOAD);
    void *symbol = object == NULL ? NULL : dlsym(object, name);
    memcpy(&fn, &symbol, sizeof fn);
    if (object != NULL)
        dlclose(object); /* our share alone: it stays loaded */
    return fn;
}

static void count_line(void *user, const char *text)
{
    /* %18 = add(%17, %2) f32[1]   but not   %2 = input 2 f32[1] */
    int *n = user;
    for (const char *at = text; (at = strstr(at, " = ")) != NULL; at += 3)
        *n += strncmp(at, " = input ", 9) != 0;
}

static int nodes(trn_context *c, bool prepared)
{
    int n = 0;
    trn_capture_print(c, prepared, false, count_line, &n);
    return n;
}

static void one_run(subject *s, void (*step)(subject *), int i, samples *out)
{
    const uint64_t ns = s->plugin_ns(), calls = s->plugin_calls();
    const double start = bench_now();
    step(s);
    trn_sync(s->c);
    const double spent = bench_now() - start;
    out->plugin[i] = 1e-9 * (double)(s->plugin_ns() - ns);
    out->calls[i] = (double)(s->plugin_calls() - calls);
    out->overhead[i] = spent - out->plugin[i];
    drop_result(s);
}

static bench_stats just(double value)
{
    return (bench_stats){value, value, value, 1};
}

static void report(bench_run *r, const char *name, samples *t)
{
    const double traced = nodes(r->c, false);
    const bench_stats own = bench_summary(RUNS, t->overhead);
    const bench_figure figures[] = {
        {"nodes", "", just(traced)},
        {"prepared_nodes", "", just(nodes(r->c, true))},
        {"overhead", "us", bench_scaled(own, 1e6)},
        {"limit", "us", just(0.15 * traced + 30.0)},
        {"per_node", "ns", bench_scaled(own, 1e9 / traced)},
        {"plugin", "us", bench_scaled(bench_summary(RUNS, t->plugin), 1e6)},
        {"plugin_calls", "", bench_summary(RUNS, t->calls)},
    };
    bench_report(r, name, (int)(sizeof figures / sizeof figures[0]), figures);
}

static void model_step(subject *s)
{
    bench_model_step(&s->model, &s->batch);
}

static bench_outcome run(bench_run *r, const char *name)
{
    static samples t;
    const bool demo = strcmp(name, "graph-overhead:demo-step") == 0;
    subject s = {
        .c = r->c,
        .plugin_ns = plugin_function(r->device, "pjrt_timer_ns"),
        .plugin_calls = plugin_function(r->device, "pjrt_timer_calls"),
    };
    if (!demo && strcmp(name, "graph-overhead:chain") != 0)
        return BENCH_UNKNOWN;
    if (s.plugin_ns == NULL || s.plugin_calls == NULL) {
        fprintf(stderr,
                "bench-trn: %s: unavailable: the device is not "
                "pjrt:<build>/tests/plugins/pjrt_timer.so\n",
                name);
        return BENCH_OK;
    }
    if (demo)
        bench_model_open(&s.model, r->c);
    else
        open_chain(&s);
    if (!(demo ? bench_model_learns(&s.model) : chain_is_right(&s)))
        return bench_wrong(name, trn_errcode(r->c) != TRN_OK
                                     ? trn_errmsg(r->c)
                                     : "the result is wrong");
    for (int i = -WARM; i < RUNS && trn_errcode(r->c) == TRN_OK; i++) {
        if (demo)
            bench_model_next(&s.model, &s.batch);
        one_run(&s, demo ? model_step : chain, i < 0 ? 0 : i, &t);
    }
    if (trn_errcode(r->c) != TRN_OK)
        return bench_wrong(name, trn_errmsg(r->c));
    report(r, name, &t);
    return BENCH_OK;
}

static void list(void (*fn)(void *user, const char *name), void *user)
{
    fn(user, "graph-overhead:demo-step");
    fn(user, "graph-overhead:chain");
}

const bench_family bench_graph = {
    .name = "graph-overhead",
    .form = "graph-overhead:<demo-step|chain>",
    .run = run,
    .list = list,
};
