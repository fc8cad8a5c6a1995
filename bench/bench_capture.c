/* SPDX-License-Identifier: Apache-2.0
 *
 * The cases "capture:<what>": the same step run eagerly and captured, in turn.
 *
 *   demo-step          a training step of the demo's model
 *   bias-relu-scale-residual   y = max(x + bias, 0) s + r over [2048, 1536]
 *   gelu-dropout       GELU in its tanh form and dropout over [2048, 1536]
 *   matched-op         a call of a captured step that repeats, without running
 *
 * `speedup` is eager time / captured time, pair by pair.
 */
#include <string.h>

#include "bench/bench.h"

enum { WORDS = 97, CONTEXT = 16, WIDTH = 24, HIDDEN = 512, BATCH = 128 };
enum { ROWS = 2048, COLUMNS = 1536, N_CALLS = 1000 };

/* One side of a comparison. */
typedef struct side {
    trn_context *c;
    trn_tensor *x, *y, *bias, *one; /* y: targets, or what is added */
    trn_module *net;
    trn_optim *optim;
    trn_tensor *result; /* of the last chain, kept */
    double seconds;     /* matched-op: spent in calls */
} side;

static void demo_step(void *arg)
{
    side *s = arg;
    trn_step_begin(s->c);
    trn_backward(trn_cross_entropy(trn_nn_forward(s->net, s->x), s->y, NULL));
    trn_optim_clip_norm(s->optim, 1.0);
    trn_optim_step(s->optim);
    trn_step_end(s->c);
    trn_step_loss(s->c);
}

static void end_chain(side *s, trn_tensor *y)
{
    trn_keep(y);
    trn_step_end(s->c);
    trn_tensor_release(s->result);
    s->result = y;
}

static void residual(void *arg)
{
    side *s = arg;
    trn_step_begin(s->c);
    trn_tensor *y = trn_relu(trn_add(s->x, s->bias));
    end_chain(s, trn_add(trn_mul_scalar(y, 0.5), s->y));
}

static void gelu_dropout(void *arg)
{
    side *s = arg;
    trn_step_begin(s->c);
    trn_tensor *x = s->x;
    trn_tensor *cube = trn_mul(trn_mul(x, x), x);
    trn_tensor *u = trn_add(x, trn_mul_scalar(cube, 0.044715));
    u = trn_add_scalar(trn_tanh(trn_mul_scalar(u, 0.7978845608028654)), 1);
    u = trn_mul(trn_mul_scalar(x, 0.5), u);
    end_chain(s, trn_dropout(u, 0.1, trn_generator_default(s->c)));
}

/* Only the calls are timed: not what the step does at its end. */
static void calls(void *arg)
{
    side *s = arg;
    trn_step_begin(s->c);
    double begin = bench_now();
    trn_tensor *y = s->one;
    for (int i = 0; i < N_CALLS; i++)
        y = trn_add(y, s->one);
    s->seconds = bench_now() - begin;
    trn_keep(y);
    trn_step_end(s->c);
    trn_tensor_release(s->result);
    s->result = y;
}

/* ---- the two sides ---- */

static void open_model(side *s)
{
    static int32_t x[BATCH * CONTEXT], y[BATCH];
    for (int i = 0; i < BATCH * CONTEXT; i++)
        x[i] = i * 7919 % WORDS;
    for (int i = 0; i < BATCH; i++)
        y[i] = i * 31 % WORDS;
    trn_context *c = s->c;
    s->x = trn_tensor_from(c, TRN_I32, 2, (int64_t[]){BATCH, CONTEXT}, x);
    s->y = trn_tensor_from(c, TRN_I32, 1, (int64_t[]){BATCH}, y);
    s->net = trn_nn_sequential(
        c, trn_nn_embedding(c, WORDS, WIDTH), trn_nn_flatten(c),
        trn_nn_linear(c, CONTEXT * WIDTH, HIDDEN), trn_nn_relu(c),
        trn_nn_dropout(c, 0.1), trn_nn_linear(c, HIDDEN, WORDS), NULL);
    s->optim = trn_optim_adamw(s->net, NULL);
}

static void open_chain(side *s)
{
    trn_generator *g = trn_generator_new(s->c, 9);
    const int64_t shape[] = {ROWS, COLUMNS};
    s->x = trn_normal(g, TRN_F32, 2, shape);
    s->y = trn_normal(g, TRN_F32, 2, shape);
    s->bias = trn_normal(g, TRN_F32, 1, shape + 1);
    s->one = trn_full(s->c, TRN_F32, 1, (int64_t[]){1}, 1.0);
    trn_set_requires_grad(s->one, true);
}

static trn_status open_side(side *s, const bench_run *r, trn_exec exec,
                            bool model)
{
    trn_options o = TRN_OPTIONS_INIT;
    memset(s, 0, sizeof *s);
    o.device = "cpu";
    o.n_threads = trn_thread_count(r->c);
    o.exec = (uint32_t)exec;
    if (trn_open(&s->c, &o) != TRN_OK)
        return trn_errcode(s->c);
    if (model)
        open_model(s);
    else
        open_chain(s);
    return trn_errcode(s->c);
}

/* The same bits on both sides: the digests of parameters, or the results. */
static bool agree(side *a, side *b, bool model)
{
    char da[65], db[65];
    if (model)
        return trn_digest(a->net, da) == TRN_OK &&
               trn_digest(b->net, db) == TRN_OK && strcmp(da, db) == 0;
    const void *x = trn_tensor_map(a->result), *y = trn_tensor_map(b->result);
    size_t bytes = (size_t)trn_tensor_numel(a->result) * sizeof(float);
    bool same = x != NULL && y != NULL && memcmp(x, y, bytes) == 0;
    trn_tensor_unmap(a->result);
    trn_tensor_unmap(b->result);
    return same;
}

static void measure(const bench_run *r, const char *name, bench_fn fn,
                    side *eager, side *captured)
{
    bench_work a = {.fn = fn, .arg = captured};
    bench_work b = {.fn = fn, .arg = eager};
    bench_calibrate(&a, 0.02);
    bench_calibrate(&b, 0.02);
    bench_pair p = bench_compare(&a, &b, 4.0);
    const bench_figure figures[] = {
        {"eager", "us", bench_scaled(p.b, 1e6)},
        {"captured", "us", bench_scaled(p.a, 1e6)},
        {"speedup", "", p.ratio},
    };
    bench_report(r, name, 3, figures);
}

static void measure_calls(const bench_run *r, const char *name, side *eager,
                          side *captured)
{
    enum { RUNS = 101 };
    double e[RUNS], k[RUNS];
    for (int i = 0; i < RUNS; i++) {
        calls(eager);
        calls(captured);
        e[i] = eager->seconds * 1e9 / N_CALLS;
        k[i] = captured->seconds * 1e9 / N_CALLS;
    }
    const bench_figure figures[] = {
        {"eager", "ns", bench_summary(RUNS, e)},
        {"matched", "ns", bench_summary(RUNS, k)},
    };
    bench_report(r, name, 2, figures);
}

static bench_fn step_of(const char *name, bool *model)
{
    const struct {
        const char *name;
        bench_fn fn;
    } steps[] = {
        {"capture:demo-step", demo_step},
        {"capture:bias-relu-scale-residual", residual},
        {"capture:gelu-dropout", gelu_dropout},
        {"capture:matched-op", calls},
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        *model = steps[i].fn == demo_step;
        if (strcmp(name, steps[i].name) == 0)
            return steps[i].fn;
    }
    return NULL;
}

static bench_outcome run(bench_run *r, const char *name)
{
    bool model;
    side eager = {.c = NULL}, captured = {.c = NULL};
    bench_fn fn = step_of(name, &model);
    bench_outcome outcome = BENCH_OK;
    if (fn == NULL)
        return BENCH_UNKNOWN;
    trn_status status = open_side(&eager, r, TRN_EXEC_EAGER, model);
    if (status == TRN_OK)
        status = open_side(&captured, r, TRN_EXEC_CAPTURED, model);
    for (int i = 0; i < 3 && status == TRN_OK; i++) {
        fn(&eager);
        fn(&captured);
    }
    if (status != TRN_OK || !agree(&eager, &captured, model))
        outcome = bench_wrong(name, "eager and captured bits differ");
    else if (fn == calls)
        measure_calls(r, name, &eager, &captured);
    else
        measure(r, name, fn, &eager, &captured);
    if (outcome == BENCH_OK && trn_errcode(captured.c) != TRN_OK)
        outcome = bench_wrong(name, trn_errmsg(captured.c));
    trn_close(eager.c);
    trn_close(captured.c);
    return outcome;
}

static void list(void (*fn)(void *user, const char *name), void *user)
{
    fn(user, "capture:demo-step");
    fn(user, "capture:bias-relu-scale-residual");
    fn(user, "capture:gelu-dropout");
    fn(user, "capture:matched-op");
}

const bench_family bench_capture = {
    .name = "capture",
    .form = "capture:<demo-step|bias-relu-scale-residual|gelu-dropout|"
            "matched-op>",
    .run = run,
    .list = list,
};
