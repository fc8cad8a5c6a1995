/* SPDX-License-Identifier: Apache-2.0
 *
 * What random loops of steps have found: each case once, by its cause.
 *
 * A story is told to an eager context, a captured one and the loop device.
 */
#include "story.h"

/* ---- walks ---- */

static void other_scalars(story *s)
{
    trn_tensor *p = parameter(s->c, 3, 1.0), *b = vector(s->c, 3, 2.0);
    for (int i = 0; i < 6; i++) {
        trn_step_begin(s->c);
        if (i % 2 == 0)
            trn_backward(trn_mean(p, TRN_ALL_AXES, false));
        else
            trn_assign(b, trn_mul_scalar(trn_add_scalar(b, 7.0), 3.0));
        trn_step_end(s->c);
        say_tensor(s, trn_grad_of(p));
        trn_zero_grad(p);
    }
}

static void a_walks_scalars_are_its_own(void **state)
{
    (void)state;
    tell(other_scalars, 12);
}

static void same_calls_in_no_grad(story *s)
{
    trn_tensor *p = parameter(s->c, 3, 1.0);
    for (int i = 0; i < 6; i++) {
        bool quiet = i % 3 == 2;
        trn_step_begin(s->c);
        if (quiet)
            trn_no_grad_begin(s->c);
        trn_tensor *y = total(trn_tanh(p));
        if (quiet)
            trn_no_grad_end(s->c);
        say(s, trn_requires_grad(y));
        trn_backward(y);
        trn_step_end(s->c);
        say_error(s);
        say_tensor(s, trn_grad_of(p));
    }
}

static void what_is_not_recorded_does_not_match_what_is(void **state)
{
    (void)state;
    tell(same_calls_in_no_grad, 24);
}

static void frozen_between(story *s)
{
    trn_tensor *p = parameter(s->c, 3, 1.0), *q = parameter(s->c, 3, 2.0);
    for (int i = 0; i < 5; i++) {
        trn_set_requires_grad(q, i != 2 && i != 4);
        trn_step_begin(s->c);
        trn_backward(total(trn_mul(p, q)));
        trn_step_end(s->c);
        say_tensor(s, trn_grad_of(p));
        say_tensor(s, trn_grad_of(q));
        trn_zero_grad(p);
        trn_zero_grad(q);
    }
}

static void a_frozen_parameter_gets_no_gradient(void **state)
{
    (void)state;
    tell(frozen_between, 20);
}

/* A step that matches past a use of `p` detached, then leaves the trace. */
static void detached_then_other(story *s)
{
    trn_tensor *p = parameter(s->c, 3, 1.0);
    for (int i = 0; i < 4; i++) {
        trn_step_begin(s->c);
        trn_tensor *y = trn_mul(trn_detach(p), trn_tanh(p));
        if (i == 2)
            y = trn_neg(y);
        trn_backward(total(y));
        trn_step_end(s->c);
        say_tensor(s, trn_grad_of(p));
        trn_zero_grad(p);
    }
}

static void what_was_detached_stays_so_where_steps_part(void **state)
{
    (void)state;
    tell(detached_then_other, 16);
}

static void grad_then_other(story *s)
{
    trn_tensor *p = parameter(s->c, 3, 1.0), *g = NULL;
    for (int i = 0; i < 4; i++) {
        trn_step_begin(s->c);
        trn_tensor *y = total(trn_mul(p, p));
        trn_grad(1, &y, 1, &p, NULL, NULL, &g);
        if (i > 1) {
            trn_neg(g);
            trn_backward(y); /* was freed by trn_grad */
        }
        trn_step_end(s->c);
        say_error(s);
        say_tensor(s, trn_grad_of(p));
    }
}

static void what_a_walk_freed_is_free_where_steps_part(void **state)
{
    (void)state;
    tell(grad_then_other, 8);
}

/* The first walk matches; the second gradient is new to the step. */
static void second_order_then_other(story *s)
{
    trn_grad_options o = TRN_GRAD_INIT;
    trn_tensor *p = parameter(s->c, 3, 0.5), *g = NULL;
    o.create_graph = true;
    for (int i = 0; i < 4; i++) {
        trn_step_begin(s->c);
        trn_tensor *y = total(trn_tanh(trn_mul(p, p)));
        trn_grad(1, &y, 1, &p, NULL, &o, &g);
        if (i >= 2)
            g = trn_mul(g, g);
        trn_backward(total(g));
        trn_step_end(s->c);
        say_tensor(s, trn_grad_of(p));
        trn_zero_grad(p);
    }
}

static void a_matched_walk_can_be_differentiated_where_steps_part(void **state)
{
    (void)state;
    tell(second_order_then_other, 16);
}

/* Two programs with a common beginning: the walk of one takes the gradient so
 * far in, where the other one takes q. */
static void input_or_walk(story *s)
{
    trn_tensor *p = parameter(s->c, 3, 1.0), *q = vector(s->c, 3, 2.0);
    trn_tensor *b = vector(s->c, 3, 0.0);
    for (int i = 0; i < 8; i++) {
        int64_t before = (int64_t)captured_info(s->c).compilations;
        trn_step_begin(s->c);
        trn_tensor *y = total(trn_tanh(p));
        if (i < 2 || i % 2 == 1)
            trn_backward(y);
        else
            trn_assign(b, trn_neg(q));
        trn_step_end(s->c);
        int64_t after = (int64_t)captured_info(s->c).compilations;
        say(s, i < 4 ? 0.0 : (double)(after - before));
        say_tensor(s, b);
        say_tensor(s, trn_grad_of(p));
    }
}

static void an_input_is_taken_for_none_of_a_walk(void **state)
{
    (void)state;
    tell(input_or_walk, 64);
}

static void unused_inputs(story *s)
{
    trn_grad_options o = TRN_GRAD_INIT;
    trn_tensor *p = parameter(s->c, 2, 1.0), *g[2];
    trn_tensor *others[2] = {parameter(s->c, 3, 1.0), parameter(s->c, 5, 1.0)};
    o.zeros = true;
    for (int i = 0; i < 4; i++) {
        trn_tensor *inputs[2] = {p, others[i % 2]};
        trn_step_begin(s->c);
        trn_tensor *y = total(trn_mul(p, p));
        trn_grad(1, &y, 2, inputs, NULL, &o, g);
        say(s, (double)trn_tensor_numel(g[1]));
        trn_step_end(s->c);
    }
}

static void zeros_have_the_shape_of_their_input(void **state)
{
    (void)state;
    tell(unused_inputs, 4);
}

/* ---- shapes ---- */

static void common_beginnings(story *s)
{
    trn_tensor *p = parameter(s->c, 1, 2.0);
    for (int i = 0; i < 9; i++) {
        trn_step_begin(s->c);
        trn_tensor *y = trn_mul(vector(s->c, 1 + i % 3, 1.0), p);
        y = i % 2 == 0 ? trn_tanh(y) : trn_neg(y);
        trn_backward(trn_mean(y, TRN_ALL_AXES, false));
        trn_step_end(s->c);
        say(s, trn_step_loss(s->c));
        say_tensor(s, trn_grad_of(p));
        trn_zero_grad(p);
    }
}

static void steps_of_other_shapes_share_no_trace(void **state)
{
    (void)state;
    tell(common_beginnings, 27);
}

static void empty_inputs(story *s)
{
    trn_tensor *e = vector(s->c, 0, 1.0), *b = vector(s->c, 2, 1.0);
    for (int i = 0; i < 3; i++) {
        trn_step_begin(s->c);
        trn_tensor *y = trn_keep(trn_neg(e));
        trn_assign(b, trn_expand(total(e), 1, (int64_t[]){2}));
        trn_step_end(s->c);
        say_tensor(s, y);
        say_tensor(s, b);
    }
}

static void empty_tensors_go_in_and_out(void **state)
{
    (void)state;
    tell(empty_inputs, 9);
}

/* ---- the end of a step ---- */

static void root_from_outside(story *s)
{
    trn_tensor *p = parameter(s->c, 3, 0.5), *y = total(trn_mul(p, p));
    for (int i = 0; i < 3; i++) {
        trn_step_begin(s->c);
        trn_backward_with(y, NULL, true);
        trn_step_end(s->c);
        say_error(s);
        say(s, trn_requires_grad(y));
        say_tensor(s, trn_grad_of(p));
    }
}

static void a_root_from_outside_keeps_its_history(void **state)
{
    (void)state;
    tell(root_from_outside, 12);
}

static void leaves_of_a_step(story *s)
{
    for (int i = 0; i < 4; i++) {
        trn_step_begin(s->c);
        trn_tensor *x = trn_full(s->c, TRN_F32, 1, (int64_t[]){2}, 3.0);
        say(s, trn_requires_grad(x));
        say(s, trn_grad_of(x) != NULL);
        say(s, (double)trn_tensor_version(x));
        trn_set_requires_grad(x, true);
        trn_backward(total(trn_mul(x, x)));
        say(s, trn_grad_of(x) != NULL);
        trn_step_end(s->c);
    }
}

static void a_leaf_of_a_step_ends_with_it(void **state)
{
    (void)state;
    tell(leaves_of_a_step, 16);
}

static void kept_history(story *s)
{
    trn_tensor *p = parameter(s->c, 3, 1.0), *kept = NULL;
    for (int i = 0; i < 4; i++) {
        trn_step_begin(s->c);
        trn_tensor *y = trn_mul(p, p);
        trn_tensor *old = kept;
        kept = trn_keep(trn_tanh(old == NULL ? y : trn_add(y, old)));
        trn_backward(total(kept));
        trn_step_end(s->c);
        say(s, trn_requires_grad(kept));
        say_tensor(s, kept);
        say_tensor(s, trn_grad_of(p));
        trn_zero_grad(p);
        trn_tensor_release(old);
    }
}

static void what_is_kept_has_no_history(void **state)
{
    (void)state;
    tell(kept_history, 36);
}

/* Step 2 of four fails after a write and a backward. */
static void failing_step(story *s)
{
    trn_tensor *p = parameter(s->c, 3, 1.0), *b = vector(s->c, 3, 0.0);
    trn_tensor *table = trn_tensor_zeros(s->c, TRN_F32, 2, (int64_t[]){2, 2});
    for (int i = 0; i < 4; i++) {
        int32_t index[1] = {i == 2 ? 7 : 1};
        trn_step_begin(s->c);
        trn_assign(b, trn_add_scalar(b, 1.0));
        trn_backward(trn_mul_scalar(total(trn_mul(p, p)), 1.0 + i));
        trn_embedding(table,
                      trn_tensor_from(s->c, TRN_I32, 1, (int64_t[]){1}, index),
                      -1);
        trn_step_end(s->c);
        trn_sync(s->c);
        say_error(s);
        say(s, trn_step_loss(s->c));
        say(s, (double)trn_step_index(s->c));
        say_tensor(s, b);
        say_tensor(s, trn_grad_of(p));
    }
}

static void a_failed_step_takes_writes_and_loss_back(void **state)
{
    (void)state;
    tell(failing_step, 40);
}

/* On a device without single ops a read runs what is waiting. */
static void read_between(story *s)
{
    trn_tensor *p = parameter(s->c, 8, 1.0);
    trn_generator *g = trn_generator_default(s->c);
    for (int i = 0; i < 3; i++) {
        trn_tensor *y = trn_dropout(trn_mul_scalar(p, 1.0 + i), 0.5, g);
        say_tensor(s, y);
        trn_mul_scalar(trn_dropout(y, 0.25, g), 3.0);
        trn_backward(total(y));
        say_tensor(s, trn_grad_of(p));
    }
}

static void gradients_know_their_scalars_after_a_read(void **state)
{
    (void)state;
    tell(read_between, 54);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_walks_scalars_are_its_own),
        cmocka_unit_test(what_is_not_recorded_does_not_match_what_is),
        cmocka_unit_test(a_frozen_parameter_gets_no_gradient),
        cmocka_unit_test(what_was_detached_stays_so_where_steps_part),
        cmocka_unit_test(what_a_walk_freed_is_free_where_steps_part),
        cmocka_unit_test(a_matched_walk_can_be_differentiated_where_steps_part),
        cmocka_unit_test(an_input_is_taken_for_none_of_a_walk),
        cmocka_unit_test(zeros_have_the_shape_of_their_input),
        cmocka_unit_test(steps_of_other_shapes_share_no_trace),
        cmocka_unit_test(empty_tensors_go_in_and_out),
        cmocka_unit_test(a_root_from_outside_keeps_its_history),
        cmocka_unit_test(a_leaf_of_a_step_ends_with_it),
        cmocka_unit_test(what_is_kept_has_no_history),
        cmocka_unit_test(a_failed_step_takes_writes_and_loss_back),
        cmocka_unit_test(gradients_know_their_scalars_after_a_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
