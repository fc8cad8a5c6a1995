/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of the models by XLA and on the CPU device; see xla_steps.h.
 */
#include <math.h>
#include <stdlib.h>

#include "tests/captured.h"
#include "tests/xla/xla_batch.h"
#include "tests/xla/xla_model.h"
#include "tests/xla/xla_steps.h"

enum { N_STEPS = 100 };

/* How far losses of a run, losses of one step, and gradients of one step may
 * be off; relative, gradients to the largest element of their tensor. */
typedef struct closeness {
    double run, loss, gradient;
} closeness;

static closeness allowed(trn_dtype dtype)
{
    if (xla_is_exact())
        return (closeness){0, 0, 0};
    return dtype == TRN_F64 ? (closeness){1e-11, 1e-13, 1e-12}
                            : (closeness){2e-6, 1e-6, 1e-5};
}

typedef struct pair {
    trn_context *cpu, *device;
    xla_model here, there; /* on the CPU, on the device */
    closeness most, seen;
    uint64_t compiled; /* programs when the model was ready */
} pair;

static void open_pair(pair *p, xla_model_kind kind, trn_dtype dtype)
{
    p->cpu = xla_open("cpu");
    p->device = xla_open(xla_device());
    p->most = allowed(dtype);
    p->seen = (closeness){0, 0, 0};
    xla_running("the model %s", xla_model_names[kind]);
    xla_model_build(&p->here, p->cpu, kind, dtype);
    xla_model_build(&p->there, p->device, kind, dtype);
    xla_model_copy(&p->there, &p->here);
    p->compiled = captured_info(p->device).compilations;
}

static void close_pair(pair *p, trn_dtype dtype)
{
    if (xla_verbose())
        print_message("%-10s %s: run %.3g, loss %.3g, gradient %.3g\n",
                      xla_model_names[p->here.kind], trn_dtype_name(dtype),
                      p->seen.run, p->seen.loss, p->seen.gradient);
    harness_close(p->device);
    harness_close(p->cpu);
}

static void compare_losses(const pair *p, int step, double want, double got,
                           double most, double *seen)
{
    double off = fabs(got - want) / fabs(want);
    *seen = fmax(*seen, off);
    CHECK(off <= most, "%s, step %d: the loss is %.17g, expected %.17g\n",
          xla_model_names[p->here.kind], step, got, want);
}

void xla_judge_runs(trn_dtype dtype)
{
    for (int kind = 0; kind < XLA_MODEL_KINDS; kind++) {
        pair p;
        open_pair(&p, (xla_model_kind)kind, dtype);
        for (int step = 0; step < N_STEPS; step++) {
            trn_batch a = xla_model_batch(&p.here);
            trn_batch b = xla_model_batch(&p.there);
            double want = xla_model_step(&p.here, &a);
            double got = xla_model_step(&p.there, &b);
            if (step == 0)
                xla_check_module(p.device);
            compare_losses(&p, step, want, got, p.most.run, &p.seen.run);
        }
        close_pair(&p, dtype);
    }
}

/* ---- single steps ---- */

/* absolute: the same with all summands taken absolutely, or 0. */
static void compare_gradient(pair *p, int step, int64_t at, double absolute)
{
    trn_tensor *here = trn_grad_of(trn_nn_parameter_at(p->here.net, at));
    trn_tensor *there = trn_grad_of(trn_nn_parameter_at(p->there.net, at));
    trn_dtype dtype = trn_tensor_dtype(here);
    int64_t n = trn_tensor_numel(here);
    void *want = harness_bytes_of(here, NULL);
    void *got = harness_bytes_of(there, NULL);
    double scale = absolute, off = 0;
    for (int64_t i = 0; i < n; i++) {
        double a = (double)dtype_get(dtype, want, i);
        double b = (double)dtype_get(dtype, got, i);
        scale = fmax(scale, fabs(a));
        off = fmax(off, isnan(b) ? (double)INFINITY : fabs(a - b));
    }
    free(want);
    free(got);
    if (scale > 0)
        p->seen.gradient = fmax(p->seen.gradient, off / scale);
    CHECK(off <= p->most.gradient * scale,
          "%s, step %d, gradient %lld: off by %.3g, the scale is %.3g\n",
          xla_model_names[p->here.kind], step, (long long)at, off, scale);
}

/* The same step on both, from the CPU's parameters and moments. */
static void compare_single_step(pair *p, int step)
{
    double absolute[XLA_MODEL_MOST] = {0};
    trn_batch a = xla_model_batch(&p->here), b = xla_model_batch(&p->there);
    xla_model_copy(&p->there, &p->here);
    /* Gradients of a regression near its goal cancel. */
    if (p->here.kind == XLA_REGRESSION)
        xla_model_absolute(&p->here, &a, absolute);
    double want = xla_model_step(&p->here, &a);
    double got = xla_model_step(&p->there, &b);
    compare_losses(p, step, want, got, p->most.loss, &p->seen.loss);
    for (int64_t i = 0; i < trn_nn_parameter_count(p->here.net); i++)
        compare_gradient(p, step, i, absolute[i]);
    trn_optim_zero_grad(p->here.optim);
    trn_optim_zero_grad(p->there.optim);
}

void xla_judge_single_steps(trn_dtype dtype)
{
    for (int kind = 0; kind < XLA_MODEL_KINDS; kind++) {
        pair p;
        open_pair(&p, (xla_model_kind)kind, dtype);
        trn_optim_keep_grad(p.here.optim, true);
        trn_optim_keep_grad(p.there.optim, true);
        for (int step = 0; step < N_STEPS; step++)
            compare_single_step(&p, step);
        assert_int_equal(captured_info(p.device).compilations, p.compiled + 1);
        close_pair(&p, dtype);
    }
}
