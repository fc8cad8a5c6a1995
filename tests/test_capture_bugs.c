/* SPDX-License-Identifier: Apache-2.0
 *
 * What random loops of steps have found: each case once, by its cause.
 *
 * A story is told to an eager context, a captured one and the loop device; the
 * numbers that it writes down must be the same for all.
 */
#include <math.h>

#include "captured.h"

typedef struct story {
    trn_context *c;
    double said[64];
    int n;
} story;

static void say(story *s, double x)
{
    assert_in_range(s->n, 0, 63);
    s->said[s->n++] = isnan(x) ? -12345.0 : x;
}

static void say_tensor(story *s, trn_tensor *t)
{
    float data[16] = {0};
    int64_t n = t == NULL ? 0 : trn_tensor_numel(t);
    say(s, t == NULL ? -1.0 : (double)n);
    if (n > 0 && n <= 16)
        trn_tensor_read(t, data, (size_t)n * sizeof(float));
    for (int i = 0; i < n; i++)
        say(s, (double)data[i]);
}

static void say_error(story *s)
{
    say(s, trn_errcode(s->c));
    trn_clear(s->c);
}

/* Tells it in all ways; n: the least number of words it must have. */
static void tell(void (*what)(story *s), int n)
{
    story first;
    for (int way = 0; way < N_WAYS; way++) {
        story s = {.c = captured_open(way, NULL)};
        what(&s);
        CHECK(trn_errcode(s.c) == TRN_OK, "%s: %s\n", captured_ways[way].name,
              trn_errmsg(s.c));
        captured_close(s.c);
        if (way == 0)
            first = s;
        assert_true(s.n >= n);
        assert_int_equal(s.n, first.n);
        for (int i = 0; i < s.n; i++)
            CHECK(s.said[i] == first.said[i],
                  "%s: word %d is %.9g, eager says %.9g\n",
                  captured_ways[way].name, i, s.said[i], first.said[i]);
    }
}

static trn_tensor *vector(trn_context *c, int64_t n, double value)
{
    float data[16] = {0};
    for (int i = 0; i < n; i++)
        data[i] = (float)(value + 0.25 * i);
    return trn_tensor_from(c, TRN_F32, 1, &n, data);
}

static trn_tensor *parameter(trn_context *c, int64_t n, double value)
{
    trn_tensor *p = vector(c, n, value);
    trn_set_requires_grad(p, true);
    return p;
}

static trn_tensor *total(trn_tensor *x)
{
    return trn_sum(x, TRN_ALL_AXES, false);
}

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

/* The walk matches and saves b, or not; then b is written, and the steps part
 * before the second walk, which needs b. */
static void written_between_walks(story *s)
{
    trn_grad_options o = TRN_GRAD_INIT;
    trn_tensor *p = parameter(s->c, 3, 0.5), *b = vector(s->c, 3, 1.0);
    trn_tensor *g = NULL;
    o.create_graph = true;
    for (int i = 0; i < 6; i++) {
        trn_step_begin(s->c);
        trn_tensor *y = total(trn_mul(trn_mul(p, p), b));
        trn_grad(1, &y, 1, &p, NULL, &o, &g);
        if (i != 1)
            trn_tensor_write(b, (float[]){2, 3, 4}, 12);
        if (i % 2 == 1)
            g = trn_neg(g);
        if (i > 3)
            g = trn_tanh(g);
        if (i > 0)
            trn_backward(total(g));
        trn_step_end(s->c);
        say_error(s);
        say_tensor(s, b);
        say_tensor(s, trn_grad_of(p));
        trn_zero_grad(p);
    }
}

static void a_walk_that_needs_what_was_written_fails(void **state)
{
    (void)state;
    tell(written_between_walks, 30);
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

/* ---- writes ---- */

static void expanded_target(story *s)
{
    trn_tensor *b = vector(s->c, 3, 1.0);
    trn_tensor *row = trn_expand(b, 2, (int64_t[]){1, 3});
    for (int i = 0; i < 3; i++) {
        trn_step_begin(s->c);
        trn_assign(row, trn_add_scalar(row, 1.0));
        trn_step_end(s->c);
        say_tensor(s, b);
    }
}

static void a_view_with_axes_of_one_can_be_written(void **state)
{
    (void)state;
    tell(expanded_target, 12);
}

static void recorded_writes(story *s)
{
    trn_tensor *p = parameter(s->c, 3, 1.0), *b = vector(s->c, 3, 0.0);
    for (int i = 0; i < 4; i++) {
        trn_step_begin(s->c);
        trn_assign(b, vector(s->c, 3, 5.0));
        trn_assign(b, trn_mul(p, p)); /* recorded: b has a history */
        trn_tensor *view = trn_reshape(b, 2, (int64_t[]){3, 1});
        trn_backward(total(trn_tanh(view)));
        trn_step_end(s->c);
        say_error(s);
        say(s, trn_requires_grad(b));
        say_tensor(s, trn_grad_of(p));
        trn_zero_grad(p);
    }
}

static void a_buffer_is_written_and_viewed_in_each_step(void **state)
{
    (void)state;
    tell(recorded_writes, 24);
}

static void written_gradients(story *s)
{
    trn_tensor *p = parameter(s->c, 3, 1.0), *g[2];
    trn_tensor *inputs[2] = {p, p};
    for (int i = 0; i < 3; i++) {
        trn_step_begin(s->c);
        trn_tensor *y = total(trn_mul(p, p));
        trn_grad(1, &y, 2, inputs, NULL, NULL, g);
        trn_assign(g[0], vector(s->c, 3, 9.0));
        trn_keep(g[0]);
        trn_keep(g[1]);
        trn_step_end(s->c);
        say_tensor(s, g[0]);
        say_tensor(s, g[1]);
    }
}

static void results_of_trn_grad_share_no_memory(void **state)
{
    (void)state;
    tell(written_gradients, 24);
}

/* A sum that broadcasts looks at b through a view of its own; a product is kept
 * for the gradient by a call that is recorded. */
static void broadcast_then_written(story *s)
{
    trn_tensor *p = parameter(s->c, 3, 1.0), *b = vector(s->c, 3, 0.0);
    trn_tensor *wide = trn_keep(trn_expand(p, 2, (int64_t[]){2, 3}));
    for (int i = 0; i < 6; i++) {
        trn_step_begin(s->c);
        if (i % 3 < 2)
            trn_add(wide, b);
        else
            trn_mul(wide, b);
        trn_assign(b, trn_mul(p, p));
        trn_backward(total(b));
        trn_step_end(s->c);
        say_error(s);
        say_tensor(s, b);
        say_tensor(s, trn_grad_of(p));
        trn_zero_grad(p);
    }
}

static void a_broadcast_input_can_be_written_afterwards(void **state)
{
    (void)state;
    tell(broadcast_then_written, 30);
}

static trn_tensor *same(trn_module *m, trn_tensor *x, void *user)
{
    (void)m;
    (void)user;
    return x;
}

/* The update comes first, whenever it runs. */
static void gradient_written_after_update(story *s)
{
    trn_sgd_options o = TRN_SGD_INIT;
    trn_tensor *p = parameter(s->c, 3, 1.0);
    trn_module *m = trn_nn_custom(s->c, same, NULL);
    trn_nn_add_parameter(m, "p", p);
    trn_optim *optim = trn_optim_sgd(m, &o);
    trn_optim_keep_grad(optim, true);
    for (int i = 0; i < 4; i++) {
        trn_step_begin(s->c);
        if (trn_grad_of(p) != NULL) {
            trn_optim_step(optim);
            trn_assign(trn_grad_of(p), vector(s->c, 3, 5.0 + i));
        }
        trn_backward(total(trn_mul(p, p)));
        trn_step_end(s->c);
        say_error(s);
        say_tensor(s, p);
        say_tensor(s, trn_grad_of(p));
    }
}

static void an_update_reads_its_gradient_as_it_was(void **state)
{
    (void)state;
    tell(gradient_written_after_update, 32);
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
        cmocka_unit_test(a_walk_that_needs_what_was_written_fails),
        cmocka_unit_test(zeros_have_the_shape_of_their_input),
        cmocka_unit_test(steps_of_other_shapes_share_no_trace),
        cmocka_unit_test(empty_tensors_go_in_and_out),
        cmocka_unit_test(a_view_with_axes_of_one_can_be_written),
        cmocka_unit_test(a_buffer_is_written_and_viewed_in_each_step),
        cmocka_unit_test(results_of_trn_grad_share_no_memory),
        cmocka_unit_test(a_broadcast_input_can_be_written_afterwards),
        cmocka_unit_test(an_update_reads_its_gradient_as_it_was),
        cmocka_unit_test(a_root_from_outside_keeps_its_history),
        cmocka_unit_test(a_leaf_of_a_step_ends_with_it),
        cmocka_unit_test(what_is_kept_has_no_history),
        cmocka_unit_test(a_failed_step_takes_writes_and_loss_back),
        cmocka_unit_test(gradients_know_their_scalars_after_a_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
