/* SPDX-License-Identifier: Apache-2.0
 *
 * The examples' steps, by XLA and on the CPU device: losses of a run, losses
 * and gradients of single steps from the same parameters, compilations.
 */
#include "tests/captured.h"
#include "tests/xla/xla_batch.h"
#include "tests/xla/xla_model.h"
#include "tests/xla/xla_steps.h"

static void a_hundred_losses_are_those_of_the_cpu_in_f32(void **state)
{
    (void)state;
    xla_judge_runs(TRN_F32);
}

static void a_hundred_losses_are_those_of_the_cpu_in_f64(void **state)
{
    (void)state;
    xla_judge_runs(TRN_F64);
}

static void single_steps_are_those_of_the_cpu_in_f32(void **state)
{
    (void)state;
    xla_judge_single_steps(TRN_F32);
}

static void single_steps_are_those_of_the_cpu_in_f64(void **state)
{
    (void)state;
    xla_judge_single_steps(TRN_F64);
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

static void read_some_losses(captured_net *m)
{
    for (int step = 1; step <= 12; step++) {
        assert_true(captured_train(m));
        if (step % 4 == 0)
            assert_true(trn_step_loss(m->c) > 0);
    }
}

static void losses_that_are_read_compile_nothing(void **state)
{
    (void)state;
    expect("each fourth loss read", 24, read_some_losses, 1);
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
        XLA_TEST(losses_that_are_read_compile_nothing),
        XLA_TEST(schedules_and_dropout_compile_nothing),
        XLA_TEST(micro_batches_compile_three_times),
        XLA_TEST(a_smaller_last_batch_compiles_once_more),
        XLA_TEST(evaluation_compiles_once_more),
    };
    return xla_main(argc, argv, (int)(sizeof tests / sizeof tests[0]), tests);
}
