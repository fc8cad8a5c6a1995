/* SPDX-License-Identifier: Apache-2.0
 *
 * The cases "op-overhead:<what>:1": what a call costs beside its arithmetic.
 *
 *   add          y = a + b of one element, recorded for gradients
 *   add-no-grad  the same without recording
 *   backward     one recorded add walked backwards (a chain's time with
 *                trn_backward less its time without)
 *   mlp-step     a whole training step of a net of 4-4-2 on one sample
 *
 * The first three are a step of 1000 calls, divided by 1000, so a share of
 * trn_step_begin and trn_step_end is in them.
 */
#include <math.h>
#include <string.h>

#include "bench/bench.h"

enum { N_CALLS = 1000 };

typedef struct subject {
    trn_context *c;
    trn_tensor *a, *b;      /* one element */
    trn_tensor *x, *target; /* one sample */
    trn_module *net;
    trn_optim *opt;
} subject;

static void adds(void *arg)
{
    subject *s = arg;
    trn_step_begin(s->c);
    for (int i = 0; i < N_CALLS; i++)
        trn_add(s->a, s->b);
    trn_step_end(s->c);
}

static trn_tensor *chain(subject *s)
{
    trn_tensor *y = s->a;
    for (int i = 0; i < N_CALLS; i++)
        y = trn_add(y, s->b);
    return y;
}

static void chain_forward(void *arg)
{
    subject *s = arg;
    trn_step_begin(s->c);
    chain(s);
    trn_step_end(s->c);
}

static void chain_backward(void *arg)
{
    subject *s = arg;
    trn_step_begin(s->c);
    trn_backward(chain(s));
    trn_step_end(s->c);
    trn_zero_grad(s->a);
    trn_zero_grad(s->b);
}

static void mlp_step(void *arg)
{
    subject *s = arg;
    trn_step_begin(s->c);
    trn_tensor *y = trn_nn_forward(s->net, s->x);
    trn_backward(trn_cross_entropy(y, s->target, NULL));
    trn_optim_step(s->opt);
    trn_step_end(s->c);
}

/* ---- verification ---- */

static bool add_is_right(subject *s)
{
    trn_tensor *y = trn_add(s->a, s->b);
    bool right = trn_tensor_item(y) == 3.0;
    trn_tensor_release(y);
    return right && trn_requires_grad(s->a) == trn_requires_grad(s->b);
}

static bool backward_is_right(subject *s)
{
    trn_step_begin(s->c);
    trn_backward(chain(s));
    trn_step_end(s->c);
    bool right = trn_step_loss(s->c) == 1.0 + 2.0 * N_CALLS &&
                 trn_tensor_item(trn_grad_of(s->a)) == 1.0 &&
                 trn_tensor_item(trn_grad_of(s->b)) == N_CALLS;
    trn_zero_grad(s->a);
    trn_zero_grad(s->b);
    return right;
}

static bool mlp_is_right(subject *s)
{
    mlp_step(s);
    const double first = trn_step_loss(s->c);
    for (int i = 0; i < 20; i++)
        mlp_step(s);
    return isfinite(first) && trn_step_loss(s->c) < first;
}

/* ---- cases ---- */

static void open_subject(subject *s, trn_context *c, bool grad)
{
    const int64_t one = 1, sample[] = {1, 4};
    s->c = c;
    s->a = trn_tensor_from(c, TRN_F32, 1, &one, (float[]){1.0f});
    s->b = trn_tensor_from(c, TRN_F32, 1, &one, (float[]){2.0f});
    trn_set_requires_grad(s->a, grad);
    trn_set_requires_grad(s->b, grad);
    s->x = trn_tensor_from(c, TRN_F32, 2, sample,
                           (float[]){0.1f, -0.2f, 0.3f, -0.4f});
    s->target = trn_tensor_from(c, TRN_I32, 1, &one, (int32_t[]){1});
    s->net = trn_nn_sequential(c, trn_nn_linear(c, 4, 4), trn_nn_relu(c),
                               trn_nn_linear(c, 4, 2), NULL);
    s->opt = trn_optim_sgd(s->net, NULL);
}

static void measure(const bench_run *r, const char *name, bench_fn fn,
                    subject *s, const char *unit, double scale)
{
    bench_work w = {.fn = fn, .arg = s};
    bench_calibrate(&w, 0.01);
    bench_figure f = {
        .name = "time",
        .unit = unit,
        .stats = bench_scaled(bench_time(&w, 0.5), scale),
    };
    bench_report(r, name, 1, &f);
}

static void measure_backward(const bench_run *r, const char *name, subject *s)
{
    bench_work a = {.fn = chain_forward, .arg = s};
    bench_work b = {.fn = chain_backward, .arg = s};
    bench_calibrate(&a, 0.01);
    bench_calibrate(&b, 0.01);
    bench_pair p = bench_compare(&a, &b, 0.5);
    /* Pair by pair: (ratio - 1) of the forward chain's median. */
    bench_stats extra = p.ratio;
    extra.min -= 1.0;
    extra.median -= 1.0;
    extra.max -= 1.0;
    bench_figure f = {
        .name = "time",
        .unit = "ns",
        .stats = bench_scaled(extra, 1e9 / N_CALLS * p.a.median),
    };
    bench_report(r, name, 1, &f);
}

static bench_outcome run(bench_run *r, const char *name)
{
    subject s = {.c = NULL};
    bool right;
    const double ns = 1e9 / N_CALLS;
    const bool grad = strcmp(name, "op-overhead:add-no-grad:1") != 0;
    open_subject(&s, r->c, grad);
    if (!grad || strcmp(name, "op-overhead:add:1") == 0) {
        if ((right = add_is_right(&s)))
            measure(r, name, adds, &s, "ns", ns);
    } else if (strcmp(name, "op-overhead:backward:1") == 0) {
        if ((right = backward_is_right(&s)))
            measure_backward(r, name, &s);
    } else if (strcmp(name, "op-overhead:mlp-step:1") == 0) {
        if ((right = mlp_is_right(&s)))
            measure(r, name, mlp_step, &s, "us", 1e6);
    } else {
        return BENCH_UNKNOWN;
    }
    if (trn_errcode(r->c) != TRN_OK)
        return bench_wrong(name, trn_errmsg(r->c));
    return right ? BENCH_OK : bench_wrong(name, "the result is wrong");
}

static void list(void (*fn)(void *user, const char *name), void *user)
{
    fn(user, "op-overhead:add:1");
    fn(user, "op-overhead:add-no-grad:1");
    fn(user, "op-overhead:backward:1");
    fn(user, "op-overhead:mlp-step:1");
}

const bench_family bench_overhead = {
    .name = "op-overhead",
    .form = "op-overhead:<add|add-no-grad|backward|mlp-step>:1",
    .run = run,
    .list = list,
};
