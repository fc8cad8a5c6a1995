/* SPDX-License-Identifier: Apache-2.0
 *
 * The examples' steps, by XLA and on the CPU device: losses of a run, losses
 * and gradients of single steps from the same parameters, compilations.
 */
#include <math.h>
#include <stdlib.h>

#include "tests/captured.h"
#include "tests/xla/xla_batch.h"
#include "tests/xla/xla_model.h"

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

static void compare_runs(trn_dtype dtype)
{
    for (int kind = 0; kind < XLA_MODEL_KINDS; kind++) {
        pair p;
        open_pair(&p, (xla_model_kind)kind, dtype);
        for (int step = 0; step < N_STEPS; step++) {
            trn_batch a = xla_model_batch(&p.here);
            trn_batch b = xla_model_batch(&p.there);
            double want = xla_model_step(&p.here, &a);
            double got = xla_model_step(&p.there, &b);
            compare_losses(&p, step, want, got, p.most.run, &p.seen.run);
        }
        close_pair(&p, dtype);
    }
}

static void a_hundred_losses_are_those_of_the_cpu_in_f32(void **state)
{
    (void)state;
    compare_runs(TRN_F32);
}

static void a_hundred_losses_are_those_of_the_cpu_in_f64(void **state)
{
    (void)state;
    compare_runs(TRN_F64);
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

static void compare_single_steps(trn_dtype dtype)
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

static void single_steps_are_those_of_the_cpu_in_f32(void **state)
{
    (void)state;
    compare_single_steps(TRN_F32);
}

static void single_steps_are_those_of_the_cpu_in_f64(void **state)
{
    (void)state;
    compare_single_steps(TRN_F64);
}

/* ---- what moves between host and device ---- */

static void only_batches_and_losses_move_between_steps(void **state)
{
    trn_context *c = xla_open(xla_device());
    xla_model m;
    (void)state;
    xla_running("bytes that move");
    xla_model_build(&m, c, XLA_IMAGES, TRN_F32);
    trn_batch b = xla_model_batch(&m);
    xla_model_step(&m, &b);
    trn_capture_info before = captured_info(c);
    for (int step = 0; step < 20; step++) {
        b = xla_model_batch(&m);
        xla_model_step(&m, &b);
    }
    assert_int_equal(trn_sync(c), TRN_OK);
    trn_capture_info after = captured_info(c);
    /* 20 losses; 20 batches of 32 images of 36 pixels and their labels */
    assert_int_equal(after.bytes_to_host - before.bytes_to_host, 20 * 4);
    assert_int_equal(after.bytes_to_device - before.bytes_to_device,
                     20 * 32 * (36 * 4 + 4));
    assert_int_equal(after.compilations, before.compilations);
    harness_close(c);
}

/* ---- compilations: the counts of docs/step.md ---- */

typedef void loop_fn(captured_net *m);

static void expect(const char *what, int samples, loop_fn *loop,
                   uint64_t compilations)
{
    xla_running("%s", what);
    trn_context *c = captured_open(LOOP, xla_device());
    captured_net m = captured_build(c, samples, 6);
    assert_int_equal(trn_sync(c), TRN_OK);
    trn_capture_info before = captured_info(c);
    loop(&m);
    assert_int_equal(trn_sync(c), TRN_OK);
    harness_ok(c);
    trn_capture_info after = captured_info(c);
    CHECK(after.compilations - before.compilations == compilations,
          "%s: %d compilations, expected %d\n", what,
          (int)(after.compilations - before.compilations), (int)compilations);
    assert_int_equal(after.early_reads, 0);
    assert_int_equal(after.fallbacks, 0);
    captured_close(c);
}

static void twelve_steps(captured_net *m)
{
    assert_true(captured_train_steps(m, 12));
}

static void a_plain_loop_compiles_once(void **state)
{
    (void)state;
    expect("plain loop", 24, twelve_steps, 1);
}

static void rates_that_vary(captured_net *m)
{
    for (int step = 0; step < 10; step++) {
        trn_nn_set_dropout(m->drop, 0.05 * step);
        trn_optim_set_learning_rate(m->optim, 0.01 + 0.01 * step);
        assert_true(captured_train(m));
    }
}

static void schedules_and_dropout_compile_nothing(void **state)
{
    (void)state;
    expect("varying rates", 24, rates_that_vary, 1);
}

static void four_micro_batches(captured_net *m)
{
    for (int step = 0; step < 5; step++) {
        for (int micro = 0; micro < 4; micro++) {
            trn_step_begin(m->c);
            trn_backward(trn_mul_scalar(captured_loss(m), 0.25));
            if (micro == 3)
                trn_optim_step(m->optim);
            trn_step_end(m->c);
        }
    }
}

static void micro_batches_compile_three_times(void **state)
{
    (void)state;
    expect("micro-batches", 24, four_micro_batches, 3);
}

static void a_smaller_last_batch_compiles_once_more(void **state)
{
    (void)state;
    expect("smaller last batch", 20, twelve_steps, 2);
}

static void train_and_evaluate(captured_net *m)
{
    for (int pass = 0; pass < 3; pass++) {
        twelve_steps(m);
        trn_nn_train(m->net, false);
        for (int i = 0; i < 4; i++) {
            trn_step_begin(m->c);
            trn_tensor *loss = trn_keep(captured_loss(m));
            trn_step_end(m->c);
            assert_true(trn_tensor_item(loss) > 0);
            trn_tensor_release(loss);
        }
        trn_nn_train(m->net, true);
    }
}

static void evaluation_compiles_once_more(void **state)
{
    (void)state;
    expect("evaluation", 24, train_and_evaluate, 2);
}

int main(int argc, char **argv)
{
    static const xla_test tests[] = {
        XLA_TEST(a_hundred_losses_are_those_of_the_cpu_in_f32),
        XLA_TEST(a_hundred_losses_are_those_of_the_cpu_in_f64),
        XLA_TEST(single_steps_are_those_of_the_cpu_in_f32),
        XLA_TEST(single_steps_are_those_of_the_cpu_in_f64),
        XLA_TEST(only_batches_and_losses_move_between_steps),
        XLA_TEST(a_plain_loop_compiles_once),
        XLA_TEST(schedules_and_dropout_compile_nothing),
        XLA_TEST(micro_batches_compile_three_times),
        XLA_TEST(a_smaller_last_batch_compiles_once_more),
        XLA_TEST(evaluation_compiles_once_more),
    };
    return xla_main(argc, argv, (int)(sizeof tests / sizeof tests[0]), tests);
}
