/* SPDX-License-Identifier: Apache-2.0
 *
 * How often a program is compiled: exact counts, on the captured CPU and on the
 * loop device, the reasons for each trace, and plans that make room.
 */
#include <stdio.h>

#include "captured.h"

typedef void loop_fn(captured_net *m);

/* What `loop` adds to the counters, on a fresh model. */
static trn_capture_info counted(int way, int samples, loop_fn *loop)
{
    trn_context *c = captured_open(way, NULL);
    captured_net m = captured_build(c, samples, 6);
    assert_int_equal(trn_sync(c), TRN_OK);
    trn_capture_info before = captured_info(c);
    loop(&m);
    assert_int_equal(trn_sync(c), TRN_OK);
    harness_ok(c);
    trn_capture_info after = captured_info(c);
    after.traces -= before.traces;
    after.matches -= before.matches;
    after.compilations -= before.compilations;
    after.replays -= before.replays;
    after.early_reads -= before.early_reads;
    after.fallbacks -= before.fallbacks;
    captured_close(c);
    return after;
}

static void expect(const char *what, int samples, loop_fn *loop,
                   uint64_t compilations)
{
    for (int way = CAPTURED; way <= LOOP; way++) {
        trn_capture_info i = counted(way, samples, loop);
        CHECK(i.compilations == compilations,
              "%s, %s: %d compilations, expected %d\n", what,
              captured_ways[way].name, (int)i.compilations, (int)compilations);
        assert_int_equal(i.early_reads, 0);
        assert_int_equal(i.fallbacks, 0);
    }
}

/* ---- one program ---- */

static void twelve_steps(captured_net *m)
{
    assert_true(captured_train_steps(m, 12));
}

static void plain_loop_compiles_once_and_runs_one_program_a_step(void **state)
{
    (void)state;
    expect("plain loop", 24, twelve_steps, 1);
    for (int way = CAPTURED; way <= LOOP; way++) {
        trn_capture_info i = counted(way, 24, twelve_steps);
        assert_int_equal(i.traces, 1);
        assert_int_equal(i.matches, 11);
        assert_int_equal(i.replays, 12);
        assert_true(i.plan_bytes > 0);
    }
}

static void read_loss_now_and_then(captured_net *m)
{
    for (int step = 1; step <= 300; step++) {
        assert_true(captured_train(m));
        if (step % 100 == 0)
            assert_true(trn_step_loss(m->c) > 0);
    }
}

static void reading_the_loss_every_100th_step_compiles_once(void **state)
{
    (void)state;
    expect("loss", 24, read_loss_now_and_then, 1);
}

static void scaled_step(captured_net *m, double scale)
{
    trn_step_begin(m->c);
    trn_tensor *loss = captured_loss(m);
    loss = trn_add_scalar(trn_mul_scalar(loss, scale), 1 - scale);
    trn_backward(loss);
    trn_optim_clip_norm(m->optim, 0.5 + scale);
    trn_optim_step(m->optim);
    trn_step_end(m->c);
}

static void vary_all(captured_net *m)
{
    for (int step = 0; step < 10; step++) {
        trn_nn_set_dropout(m->drop, 0.05 * step);
        trn_optim_set_learning_rate(m->optim, 0.01 + 0.01 * step);
        scaled_step(m, 1 + 0.25 * step);
    }
}

static void rates_dropout_and_scalars_that_vary_compile_nothing(void **state)
{
    (void)state;
    expect("varying values", 24, vary_all, 1);
}

static void clip_and_step(captured_net *m)
{
    for (int step = 0; step < 5; step++) {
        trn_step_begin(m->c);
        trn_backward(captured_loss(m));
        assert_non_null(trn_optim_clip_norm(m->optim, 0.1 * (step + 1)));
        trn_optim_step(m->optim);
        trn_step_end(m->c);
    }
}

static void clipping_compiles_once_and_reads_nothing(void **state)
{
    (void)state;
    expect("clipping", 24, clip_and_step, 1);
}

static void two_optimizers(captured_net *m)
{
    trn_module *other = trn_nn_linear(m->c, 12, 2);
    trn_sgd_options o = TRN_SGD_INIT;
    o.momentum = 0.9;
    trn_optim *sgd = trn_optim_sgd(other, &o);
    trn_tensor *x = trn_full(m->c, TRN_F32, 2, (int64_t[]){3, 12}, 0.5);
    trn_sync(m->c);
    uint64_t before = captured_info(m->c).compilations;
    for (int step = 0; step < 6; step++) {
        trn_step_begin(m->c);
        trn_tensor *y = trn_nn_forward(other, x);
        trn_backward(trn_add(captured_loss(m),
                             trn_sum(trn_mul(y, y), TRN_ALL_AXES, false)));
        trn_optim_step(m->optim);
        trn_optim_step(sgd);
        trn_step_end(m->c);
    }
    assert_int_equal(captured_info(m->c).compilations - before, 1);
}

static void two_optimizers_in_a_step_compile_once(void **state)
{
    (void)state;
    for (int way = CAPTURED; way <= LOOP; way++) {
        trn_capture_info i = counted(way, 24, two_optimizers);
        assert_int_equal(i.early_reads, 0);
    }
}

static void run_twice(captured_net *m)
{
    twelve_steps(m);
    captured_net again = captured_build(m->c, 24, 6);
    trn_sync(m->c);
    uint64_t before = captured_info(m->c).compilations;
    twelve_steps(&again);
    twelve_steps(m);
    assert_int_equal(captured_info(m->c).compilations, before);
}

static void a_second_run_of_the_same_model_compiles_nothing(void **state)
{
    (void)state;
    for (int way = CAPTURED; way <= LOOP; way++)
        counted(way, 24, run_twice);
}

/* ---- several programs ---- */

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

static void four_micro_batches_compile_three_times(void **state)
{
    (void)state;
    expect("micro-batches", 24, four_micro_batches, 3);
}

static void smaller_last_batch_compiles_once_more(void **state)
{
    (void)state;
    expect("smaller last batch", 20, twelve_steps, 2);
}

static void evaluate(captured_net *m)
{
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

static void train_and_evaluate(captured_net *m)
{
    for (int pass = 0; pass < 3; pass++) {
        twelve_steps(m);
        evaluate(m);
    }
}

static void evaluation_compiles_once_more(void **state)
{
    (void)state;
    expect("evaluation", 24, train_and_evaluate, 2);
}

/* ---- reasons ---- */

static void a_reason_names_call_op_and_shapes(void **state)
{
    (void)state;
    for (int way = CAPTURED; way <= LOOP; way++) {
        trn_context *c = captured_open(way, NULL);
        captured_net m = captured_build(c, 20, 6);
        assert_true(captured_train_steps(&m, 3));
        assert_string_equal(trn_capture_reason(c), "");
        assert_true(captured_train(&m)); /* the pass's last, of 2 samples */
        const char *reason = trn_capture_reason(c);
        CHECK(strstr(reason, "call 0") && strstr(reason, "embedding") &&
                  strstr(reason, "i32[6,4]") && strstr(reason, "i32[2,4]"),
              "%s: %s\n", captured_ways[way].name, reason);
        captured_close(c);
    }
}

static void reason_of_another_op_names_both(void **state)
{
    (void)state;
    trn_context *c = captured_open(CAPTURED, NULL);
    trn_tensor *x = trn_full(c, TRN_F32, 1, (int64_t[]){3}, 2.0);
    for (int step = 0; step < 2; step++) {
        trn_step_begin(c);
        trn_tensor *y = trn_neg(x);
        y = trn_keep(step == 0 ? trn_exp(y) : trn_tanh(y));
        trn_step_end(c);
        trn_tensor_release(y);
    }
    harness_ok(c);
    const char *reason = trn_capture_reason(c);
    CHECK(strstr(reason, "call 1") && strstr(reason, "exp") &&
              strstr(reason, "tanh"),
          "%s\n", reason);
    captured_close(c);
}

/* ---- plans within a bound ---- */

static void sum_of(trn_context *c, int64_t n)
{
    trn_step_begin(c);
    trn_tensor *x = trn_full(c, TRN_F32, 1, &n, 0.5);
    trn_tensor *y = trn_keep(trn_sum(trn_exp(x), TRN_ALL_AXES, false));
    trn_step_end(c);
    assert_true(trn_tensor_item(y) > 0);
    trn_tensor_release(y);
}

static void a_tiny_bound_forgets_plans_and_compiles_them_again(void **state)
{
    (void)state;
    for (int way = CAPTURED; way <= LOOP; way++) {
        for (int tiny = 0; tiny < 2; tiny++) {
            trn_context *c;
            trn_options o = captured_options(way, NULL);
            o.plan_limit = tiny ? 1 : 0;
            assert_int_equal(trn_open(&c, &o), TRN_OK);
            int64_t bytes = INT64_MAX;
            for (int pass = 0; pass < 12; pass++) {
                for (int64_t n = 1; n <= 5; n++)
                    sum_of(c, n);
                trn_memory_trim(c);
                if (pass == 5)
                    bytes = captured_bytes();
            }
            assert_int_equal(captured_info(c).compilations, tiny ? 60 : 5);
            assert_int_equal(captured_info(c).replays, 60);
#ifndef TRN_CHECK /* check builds keep freed handles to know them */
            assert_true(captured_bytes() <= bytes);
#endif
            captured_close(c);
        }
    }
}

static void many_shapes_keep_no_more_than_64_traces(void **state)
{
    (void)state;
    trn_context *c = captured_open(CAPTURED, NULL);
    for (int64_t n = 1; n <= 200; n++)
        sum_of(c, n);
    assert_int_equal(captured_info(c).traces, 200);
    assert_int_equal(captured_info(c).compilations, 200);
    sum_of(c, 200);
    assert_int_equal(captured_info(c).matches, 1);
    sum_of(c, 1); /* its trace is gone, its plan is not */
    assert_int_equal(captured_info(c).traces, 201);
    assert_int_equal(captured_info(c).compilations, 200);
    captured_close(c);
}

/* ---- bytes ---- */

/* Three steps; what went through the device's read and write. */
static void copied(trn_context *c, trn_optim *optim, trn_module *net,
                   trn_tensor *x, bool look, uint64_t bytes[2])
{
    trn_capture_info before = captured_info(c);
    for (int step = 0; step < 3; step++) {
        trn_step_begin(c);
        trn_tensor *y = trn_nn_forward(net, x);
        trn_backward(trn_mean(trn_mul(y, y), TRN_ALL_AXES, false));
        trn_optim_step(optim);
        trn_step_end(c);
        if (look)
            assert_true(trn_step_loss(c) > 0);
    }
    assert_int_equal(trn_sync(c), TRN_OK);
    trn_capture_info after = captured_info(c);
    bytes[0] = after.bytes_to_host - before.bytes_to_host;
    bytes[1] = after.bytes_to_device - before.bytes_to_device;
}

static void parameters_are_never_copied_between_steps(void **state)
{
    (void)state;
    for (int way = EAGER; way < N_WAYS; way++) {
        uint64_t bytes[2];
        float x[6] = {1, 2, 3, -1, -2, -3};
        trn_context *c = captured_open(way, NULL);
        trn_module *net = trn_nn_linear(c, 3, 5);
        trn_optim *optim = trn_optim_adamw(net, NULL);
        trn_capture_info i = captured_info(c);
        trn_tensor *in = trn_tensor_from(c, TRN_F32, 2, (int64_t[]){2, 3}, x);
        assert_int_equal(captured_info(c).bytes_to_device - i.bytes_to_device,
                         sizeof x);
        copied(c, optim, net, in, false, bytes);
        assert_int_equal(bytes[0], 0);
        assert_int_equal(bytes[1], 0);
        copied(c, optim, net, in, true, bytes);
        assert_int_equal(bytes[0], 3 * 4); /* the losses */
        assert_int_equal(bytes[1], 0);
        i = captured_info(c);
        assert_int_equal(trn_tensor_read(in, x, sizeof x), TRN_OK);
        assert_int_equal(captured_info(c).bytes_to_host - i.bytes_to_host,
                         sizeof x);
        captured_close(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_loop_compiles_once_and_runs_one_program_a_step),
        cmocka_unit_test(reading_the_loss_every_100th_step_compiles_once),
        cmocka_unit_test(rates_dropout_and_scalars_that_vary_compile_nothing),
        cmocka_unit_test(clipping_compiles_once_and_reads_nothing),
        cmocka_unit_test(two_optimizers_in_a_step_compile_once),
        cmocka_unit_test(a_second_run_of_the_same_model_compiles_nothing),
        cmocka_unit_test(four_micro_batches_compile_three_times),
        cmocka_unit_test(smaller_last_batch_compiles_once_more),
        cmocka_unit_test(evaluation_compiles_once_more),
        cmocka_unit_test(a_reason_names_call_op_and_shapes),
        cmocka_unit_test(reason_of_another_op_names_both),
        cmocka_unit_test(a_tiny_bound_forgets_plans_and_compiles_them_again),
        cmocka_unit_test(parameters_are_never_copied_between_steps),
        cmocka_unit_test(many_shapes_keep_no_more_than_64_traces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
