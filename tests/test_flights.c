/* SPDX-License-Identifier: Apache-2.0
 *
 * A step that fails has not happened: parameters, moments, gradients, draws,
 * schedules, the loader and the number of steps are as before, also when the
 * device tells of it two steps later.
 *
 * A reference run has only the steps that succeed; a run with failures must
 * have its state after each of them, and its digest at the end.
 */
#include <math.h>

#include "captured.h"

#define N_STEPS 8

/* What goes wrong in a step. */
typedef enum fault {
    NOTHING,
    BAD_SHAPES, /* the call sees it */
    BAD_INDEX,  /* the device sees it */
    NOT_FINITE  /* likewise */
} fault;

static const trn_status status_of[] = {TRN_OK, TRN_ERR_SHAPE, TRN_ERR_INDEX,
                                       TRN_ERR_NUMERIC};
static const char *const text_of[] = {"", "matmul", "embedding",
                                      "check_finite"};

/* A training step whose program is the same whether it fails or not; with
 * `update` false it only adds to the gradients. */
static trn_status step(captured_net *m, fault f, bool update)
{
    trn_context *c = m->c;
    trn_batch b;
    trn_step_begin(c);
    if (!trn_data_next(m->data, &b))
        trn_data_next(m->data, &b);
    trn_tensor *index = trn_add_scalar(b.inputs, f == BAD_INDEX ? 1000 : 0);
    trn_tensor *logits = trn_nn_forward(m->net, index);
    logits = trn_check_finite(
        trn_mul_scalar(logits, f == NOT_FINITE ? INFINITY : 1.0));
    trn_tensor *loss = trn_cross_entropy(logits, b.targets, NULL);
    trn_backward(loss);
    if (f == BAD_SHAPES)
        trn_matmul(logits, logits);
    if (update)
        trn_optim_step(m->optim);
    return trn_step_end(c);
}

static captured_net build(int way)
{
    return captured_build(captured_open(way, NULL), 20, 6);
}

/* The state before each step of a run without failures, and after all. */
static void reference(int way, bool micro, uint64_t state[N_STEPS + 1],
                      char digest[65])
{
    captured_net m = build(way);
    for (int i = 0; i < N_STEPS; i++) {
        state[i] = captured_state(&m);
        assert_int_equal(step(&m, NOTHING, !micro || i % 3 == 2), TRN_OK);
    }
    state[N_STEPS] = captured_state(&m);
    captured_digest(m.net, digest);
    captured_close(m.c);
}

/* ---- at once ---- */

static void check_each_fault(int way, bool micro)
{
    uint64_t want[N_STEPS + 1];
    char digest[65], got[65];
    reference(way, micro, want, digest);
    for (int f = BAD_SHAPES; f <= NOT_FINITE; f++) {
        captured_net m = build(way);
        for (int i = 0; i < N_STEPS; i++) {
            assert_int_equal(trn_step_index(m.c), i);
            bool update = !micro || i % 3 == 2;
            trn_status status = step(&m, (fault)f, update);
            if (status == TRN_OK) /* the device has yet to tell */
                status = trn_sync(m.c);
            CHECK(status == status_of[f], "%s, step %d: %s\n",
                  captured_ways[way].name, i, trn_errmsg(m.c));
            harness_error(m.c, status_of[f], text_of[f]);
            CHECK(captured_state(&m) == want[i], "%s, step %d, %s\n",
                  captured_ways[way].name, i, text_of[f]);
            assert_int_equal(step(&m, NOTHING, update), TRN_OK);
        }
        CHECK(captured_state(&m) == want[N_STEPS], "%s, %s: at the end\n",
              captured_ways[way].name, text_of[f]);
        assert_string_equal(captured_digest(m.net, got), digest);
        captured_close(m.c);
    }
}

static void a_failed_step_changes_nothing(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++)
        check_each_fault(way, false);
}

static void a_failed_micro_batch_leaves_gradients_as_they_were(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++)
        check_each_fault(way, true);
}

static void all_ways_have_the_same_states(void **state)
{
    (void)state;
    for (int micro = 0; micro < 2; micro++) {
        uint64_t want[N_STEPS + 1], got[N_STEPS + 1];
        char digest[65], other[65];
        reference(EAGER, micro, want, digest);
        for (int way = CAPTURED; way <= LOOP; way++) {
            reference(way, micro, got, other);
            assert_memory_equal(want, got, sizeof got);
            assert_string_equal(digest, other);
        }
    }
}

/* ---- later ---- */

/* How the program hears of a failure. */
typedef enum ear { BY_STEP, BY_SYNC, BY_READ, BY_LOSS, N_EARS } ear;

static trn_status hear(captured_net *m, ear e)
{
    float x[64];
    trn_tensor *bias = trn_nn_parameter(m->net, "5.bias");
    switch (e) {
    case BY_STEP: /* two behind it fit, the third meets the failure */
        step(m, NOTHING, true);
        return step(m, NOTHING, true);
    case BY_SYNC:
        return trn_sync(m->c);
    case BY_READ:
        return trn_tensor_read(bias, x,
                               (size_t)trn_tensor_numel(bias) * sizeof *x);
    case BY_LOSS:
    case N_EARS:
        break;
    }
    assert_true(isnan(trn_step_loss(m->c)));
    return trn_errcode(m->c);
}

/* Step `bad` fails with `behind` good ones behind it. */
static void fail_in_flight(fault f, ear e, int bad, int behind,
                           const uint64_t *want, const char *digest)
{
    captured_net m = build(LOOP);
    char got[65];
    for (int i = 0; i < bad; i++)
        assert_int_equal(step(&m, NOTHING, true), TRN_OK);
    assert_int_equal(step(&m, f, true), TRN_OK);
    for (int i = 0; i < behind; i++)
        assert_int_equal(step(&m, NOTHING, true), TRN_OK);
    trn_status status = hear(&m, e);
    CHECK(status == status_of[f],
          "%s, heard by %d, step %d, %d behind: found %s\n", text_of[f], (int)e,
          bad, behind, trn_status_name(status));
    trn_batch b; /* nothing goes on before trn_clear */
    assert_int_equal(trn_data_next(m.data, &b), 0);
    assert_int_equal(trn_step_begin(m.c), status);
    harness_error(m.c, status_of[f], text_of[f]);
    assert_int_equal(trn_step_index(m.c), bad);
    assert_int_equal(trn_optim_steps(m.optim), bad);
    CHECK(captured_state(&m) == want[bad], "%s, heard by %d, step %d, %d\n",
          text_of[f], (int)e, bad, behind);
    for (int i = bad; i < N_STEPS; i++)
        assert_int_equal(step(&m, NOTHING, true), TRN_OK);
    assert_int_equal(trn_sync(m.c), TRN_OK);
    assert_int_equal(trn_step_index(m.c), N_STEPS);
    assert_true(captured_state(&m) == want[N_STEPS]);
    assert_string_equal(captured_digest(m.net, got), digest);
    captured_close(m.c);
}

static void failures_in_flight_take_back_all_behind_them(void **state)
{
    (void)state;
    uint64_t want[N_STEPS + 1];
    char digest[65];
    reference(LOOP, false, want, digest);
    for (int f = BAD_INDEX; f <= NOT_FINITE; f++) {
        for (int e = 0; e < N_EARS; e++) {
            for (int bad = 0; bad < 4; bad++) {
                for (int behind = 0; behind < 2; behind++)
                    fail_in_flight((fault)f, (ear)e, bad, behind, want, digest);
            }
        }
    }
}

static void a_host_error_leaves_good_steps_in_flight_alone(void **state)
{
    (void)state;
    uint64_t want[N_STEPS + 1];
    char digest[65];
    reference(LOOP, false, want, digest);
    captured_net m = build(LOOP);
    for (int i = 0; i < 3; i++)
        assert_int_equal(step(&m, NOTHING, true), TRN_OK);
    assert_int_equal(step(&m, BAD_SHAPES, true), TRN_ERR_SHAPE);
    harness_error(m.c, TRN_ERR_SHAPE, "matmul");
    assert_int_equal(trn_step_index(m.c), 3);
    assert_true(captured_state(&m) == want[3]);
    captured_close(m.c);
}

static void a_host_error_behind_a_device_error_ends_both(void **state)
{
    (void)state;
    uint64_t want[N_STEPS + 1];
    char digest[65], got[65];
    reference(LOOP, false, want, digest);
    captured_net m = build(LOOP);
    assert_int_equal(step(&m, NOTHING, true), TRN_OK);
    assert_int_equal(step(&m, BAD_INDEX, true), TRN_OK);
    assert_int_equal(step(&m, BAD_SHAPES, true), TRN_ERR_SHAPE);
    harness_error(m.c, TRN_ERR_SHAPE, "matmul");
    assert_int_equal(trn_sync(m.c), TRN_ERR_INDEX); /* it was before */
    harness_error(m.c, TRN_ERR_INDEX, "embedding");
    assert_int_equal(trn_step_index(m.c), 1);
    assert_true(captured_state(&m) == want[1]);
    for (int i = 1; i < N_STEPS; i++)
        assert_int_equal(step(&m, NOTHING, true), TRN_OK);
    assert_string_equal(captured_digest(m.net, got), digest);
    captured_close(m.c);
}

static void results_of_a_step_that_failed_later_are_lost(void **state)
{
    (void)state;
    trn_context *c = captured_open(LOOP, NULL);
    trn_tensor *x = trn_full(c, TRN_F32, 1, (int64_t[]){2}, 3.0);
    trn_tensor *y[3];
    for (int i = 0; i < 3; i++) {
        trn_step_begin(c);
        y[i] = trn_keep(
            trn_check_finite(trn_mul_scalar(x, i == 1 ? INFINITY : 2.0)));
        assert_int_equal(trn_step_end(c), TRN_OK);
    }
    assert_int_equal(trn_sync(c), TRN_ERR_NUMERIC);
    harness_error(c, TRN_ERR_NUMERIC, "check_finite");
    harness_equal(y[0], 2, 6.0, 6.0);
    for (int i = 1; i < 3; i++) {
        assert_true(isnan(trn_tensor_item(trn_slice(y[i], 0, 0, 1, 1))));
        harness_error(c, TRN_ERR_LOST, "f32[2]");
    }
    captured_close(c);
}

static void an_early_read_behind_a_failure_tells_of_it(void **state)
{
    (void)state;
    uint64_t want[N_STEPS + 1];
    char digest[65];
    reference(LOOP, false, want, digest);
    captured_net m = build(LOOP);
    assert_int_equal(step(&m, NOTHING, true), TRN_OK);
    assert_int_equal(step(&m, NOT_FINITE, true), TRN_OK);
    trn_step_begin(m.c);
    assert_true(isnan(trn_tensor_item(captured_loss(&m))));
    assert_int_equal(trn_step_end(m.c), TRN_ERR_NUMERIC);
    harness_error(m.c, TRN_ERR_NUMERIC, "check_finite");
    assert_int_equal(trn_step_index(m.c), 1);
    assert_true(captured_state(&m) == want[1]);
    captured_close(m.c);
}

static void an_error_cleared_inside_a_step_still_ends_it(void **state)
{
    (void)state;
    uint64_t want[N_STEPS + 1];
    char digest[65], got[65];
    reference(LOOP, false, want, digest);
    captured_net m = build(LOOP);
    assert_int_equal(step(&m, NOTHING, true), TRN_OK);
    assert_int_equal(step(&m, NOT_FINITE, true), TRN_OK);
    trn_step_begin(m.c);
    assert_int_equal(trn_sync(m.c), TRN_ERR_NUMERIC);
    trn_clear(m.c);
    trn_backward(captured_loss(&m));
    trn_optim_step(m.optim);
    assert_int_equal(trn_step_end(m.c), TRN_ERR_STATE);
    harness_error(m.c, TRN_ERR_STATE, "a step before this one failed");
    assert_int_equal(trn_step_index(m.c), 1);
    assert_true(captured_state(&m) == want[1]);
    for (int i = 1; i < N_STEPS; i++)
        assert_int_equal(step(&m, NOTHING, true), TRN_OK);
    assert_string_equal(captured_digest(m.net, got), digest);
    captured_close(m.c);
}

static void the_loss_is_that_of_the_last_step_that_succeeded(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        captured_net m = build(way);
        assert_int_equal(step(&m, NOTHING, true), TRN_OK);
        double loss = trn_step_loss(m.c);
        for (int f = BAD_SHAPES; f <= NOT_FINITE; f++) {
            if (step(&m, (fault)f, true) == TRN_OK)
                trn_sync(m.c);
            assert_true(isnan(trn_step_loss(m.c)));
            harness_error(m.c, status_of[f], text_of[f]);
            assert_true(trn_step_loss(m.c) == loss);
        }
        captured_close(m.c);
    }
}

static void a_write_before_a_check_that_fails_is_taken_back(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        trn_context *c = captured_open(way, NULL);
        trn_tensor *x = trn_full(c, TRN_F32, 1, (int64_t[]){3}, 1.0);
        for (int i = 0; i < 3; i++) {
            double scale = i == 1 ? INFINITY : 2.0;
            trn_step_begin(c);
            trn_tensor *old = trn_mul_scalar(x, scale);
            trn_assign(x, trn_add_scalar(x, 1));
            trn_keep(trn_check_finite(trn_add(old, x)));
            if (trn_step_end(c) == TRN_OK)
                trn_sync(c);
            if (i == 1)
                harness_error(c, TRN_ERR_NUMERIC, "check_finite");
            double want = i == 2 ? 3 : 2;
            harness_equal(x, 3, want, want, want);
        }
        captured_close(c);
    }
}

static void closing_tells_of_a_step_in_flight_that_failed(void **state)
{
    (void)state;
    for (int behind = 0; behind < 2; behind++) {
        captured_net m = build(LOOP);
        assert_int_equal(step(&m, NOTHING, true), TRN_OK);
        assert_int_equal(step(&m, BAD_INDEX, true), TRN_OK);
        for (int i = 0; i < behind; i++)
            assert_int_equal(step(&m, NOTHING, true), TRN_OK);
        assert_int_equal(trn_close(m.c), TRN_ERR_INDEX);
        assert_int_equal(captured_bytes(), 0);
    }
    captured_net m = build(LOOP); /* and in the middle of a step */
    assert_int_equal(step(&m, NOTHING, true), TRN_OK);
    trn_step_begin(m.c);
    trn_backward(captured_loss(&m));
    captured_close(m.c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_step_changes_nothing),
        cmocka_unit_test(a_failed_micro_batch_leaves_gradients_as_they_were),
        cmocka_unit_test(all_ways_have_the_same_states),
        cmocka_unit_test(failures_in_flight_take_back_all_behind_them),
        cmocka_unit_test(a_host_error_leaves_good_steps_in_flight_alone),
        cmocka_unit_test(a_host_error_behind_a_device_error_ends_both),
        cmocka_unit_test(results_of_a_step_that_failed_later_are_lost),
        cmocka_unit_test(an_early_read_behind_a_failure_tells_of_it),
        cmocka_unit_test(an_error_cleared_inside_a_step_still_ends_it),
        cmocka_unit_test(the_loss_is_that_of_the_last_step_that_succeeded),
        cmocka_unit_test(a_write_before_a_check_that_fails_is_taken_back),
        cmocka_unit_test(closing_tells_of_a_step_in_flight_that_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
