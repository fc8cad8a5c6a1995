/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes in captured steps, each case that random loops have found once.
 */
#include "story.h"

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

/* What the kept view looks at is nobody else's. */
static void kept_view_written(story *s)
{
    trn_tensor *p = parameter(s->c, 3, 1.0), *kept = NULL;
    for (int i = 0; i < 4; i++) {
        trn_step_begin(s->c);
        if (i > 1)
            trn_neg(kept);
        if (i > 0)
            trn_assign(kept, trn_mul(p, p));
        trn_tensor *b = trn_add_scalar(vector(s->c, 3, 1.0), 1.0);
        trn_tensor *now = trn_reshape(b, 2, (int64_t[]){1, 3});
        now = trn_keep(trn_reshape(now, 1, (int64_t[]){3}));
        trn_step_end(s->c);
        say_error(s);
        say_tensor(s, kept);
        trn_tensor_release(kept);
        kept = now;
    }
}

static void a_kept_view_shares_no_memory(void **state)
{
    (void)state;
    tell(kept_view_written, 17);
}

/* The gradient of a tensor for itself is the seed: the caller's own. */
static void seed_as_result(story *s)
{
    trn_tensor *p = parameter(s->c, 3, 1.0), *g = NULL;
    for (int i = 0; i < 3; i++) {
        trn_step_begin(s->c);
        trn_tensor *y = trn_mul(p, p);
        trn_tensor *seed = trn_full(s->c, TRN_F32, 1, (int64_t[]){3}, 2.0);
        trn_grad(1, &y, 1, &y, &seed, NULL, &g);
        trn_assign(g, vector(s->c, 3, 7.0));
        trn_keep(seed);
        trn_step_end(s->c);
        say_error(s);
        say_tensor(s, seed);
    }
}

static void a_seed_is_not_given_back_as_a_result(void **state)
{
    (void)state;
    tell(seed_as_result, 15);
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

/* The first walk matches; then b is written, and the steps part before the
 * second one. */
static void two_walks(story *s, trn_tensor *(*of)(trn_tensor *))
{
    trn_grad_options o = TRN_GRAD_INIT;
    trn_tensor *p = parameter(s->c, 3, 0.5), *b = vector(s->c, 3, 1.0);
    trn_tensor *g = NULL;
    o.create_graph = true;
    for (int i = 0; i < 6; i++) {
        trn_step_begin(s->c);
        trn_tensor *y = total(of(trn_mul(trn_mul(p, p), b)));
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

static void without_it(story *s)
{
    two_walks(s, trn_neg);
}

static void a_walk_without_need_of_what_was_written_goes_on(void **state)
{
    (void)state;
    tell(without_it, 51);
}

static void with_it(story *s)
{
    two_walks(s, trn_tanh);
    assert_true(s->said[15] == TRN_ERR_MODIFIED);
}

static void a_walk_that_needs_what_was_written_fails(void **state)
{
    (void)state;
    tell(with_it, 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_view_with_axes_of_one_can_be_written),
        cmocka_unit_test(a_buffer_is_written_and_viewed_in_each_step),
        cmocka_unit_test(results_of_trn_grad_share_no_memory),
        cmocka_unit_test(a_broadcast_input_can_be_written_afterwards),
        cmocka_unit_test(a_seed_is_not_given_back_as_a_result),
        cmocka_unit_test(a_kept_view_shares_no_memory),
        cmocka_unit_test(an_update_reads_its_gradient_as_it_was),
        cmocka_unit_test(a_walk_without_need_of_what_was_written_goes_on),
        cmocka_unit_test(a_walk_that_needs_what_was_written_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
