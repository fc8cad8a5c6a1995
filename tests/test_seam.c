/* SPDX-License-Identifier: Apache-2.0
 *
 * What the review of the seam found (docs/seam-review.md), as tests: each
 * failed before its fix.
 */
#include <stdlib.h>

#include "harness.h"
#include "libtrn/ops/trace.h"

static trn_context *open_on(const char *device, trn_exec exec)
{
    trn_context *c;
    trn_options o = TRN_OPTIONS_INIT;
    o.device = device;
    o.exec = (uint32_t)exec;
    o.n_threads = 2;
    trn_status status = trn_open(&c, &o);
    if (status != TRN_OK)
        print_error("%s: %s\n", device, trn_errmsg(c));
    assert_int_equal(status, TRN_OK);
    return c;
}

#define N_WAYS 3
static trn_context *way(int i)
{
    return i == 0   ? open_on("cpu", TRN_EXEC_CAPTURED)
           : i == 1 ? open_on("loop", TRN_EXEC_AUTO)
                    : open_on("loop:lacks=composites", TRN_EXEC_AUTO);
}

static trn_tensor *ramp(trn_context *c, trn_dtype dtype, int64_t n)
{
    double *x = calloc((size_t)n + 1, sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = 0.125 * (double)(i % 7);
    trn_tensor *t = trn_cast(trn_tensor_from(c, TRN_F64, 1, &n, x), dtype);
    free(x);
    assert_non_null(t);
    return t;
}

/* Two steps of two ops that differ in the second op and in the inputs' type. */
static int64_t kept_elements(trn_context *c, trn_tensor *x, bool tanh)
{
    trn_step_begin(c);
    trn_tensor *y = trn_relu(x);
    y = trn_keep(tanh ? trn_tanh(y) : trn_exp(y));
    assert_int_equal(trn_step_end(c), TRN_OK);
    assert_int_equal(trn_tensor_dtype(y), trn_tensor_dtype(x));
    return trn_tensor_numel(y);
}

static void a_trace_is_not_taken_over_for_other_shapes(void **state)
{
    (void)state;
    for (int i = 0; i < N_WAYS; i++) {
        trn_context *c = way(i);
        trn_tensor *small = ramp(c, TRN_F32, 4), *large = ramp(c, TRN_F32, 16);
        trn_tensor *other = ramp(c, TRN_F64, 16);
        assert_int_equal(kept_elements(c, small, true), 4);
        assert_int_equal(kept_elements(c, large, false), 16);
        assert_int_equal(kept_elements(c, large, true), 16);
        assert_int_equal(kept_elements(c, other, true), 16);
        assert_int_equal(trn_close(c), TRN_OK);
    }
}

static void alternating_shapes_match(void **state)
{
    (void)state;
    for (int i = 0; i < N_WAYS; i++) {
        trn_context *c = way(i);
        trn_tensor *x[2] = {ramp(c, TRN_F32, 4), ramp(c, TRN_F32, 16)};
        trn_sync(c);
        trn_capture_info before = TRN_CAPTURE_INFO_INIT, after = before;
        trn_capture(c, &before);
        for (int step = 0; step < 20; step++)
            kept_elements(c, x[step % 2], true);
        trn_capture(c, &after);
        assert_int_equal(after.traces - before.traces, 2);
        assert_int_equal(after.matches - before.matches, 18);
        assert_int_equal(after.compilations - before.compilations, 2);
        assert_int_equal(trn_close(c), TRN_OK);
    }
}

static void a_matched_write_to_wrapped_memory_is_refused(void **state)
{
    (void)state;
    for (int i = 0; i < N_WAYS; i++) {
        trn_context *c = way(i);
        float host[4] = {9, 9, 9, 9};
        trn_tensor *y = ramp(c, TRN_F32, 4);
        trn_tensor *own = trn_copy(ramp(c, TRN_F32, 4));
        trn_tensor *theirs =
            trn_tensor_wrap(c, TRN_F32, 1, (int64_t[]){4}, host, NULL, NULL);
        trn_step_begin(c);
        assert_int_equal(trn_assign(own, y), TRN_OK);
        assert_int_equal(trn_step_end(c), TRN_OK);
        trn_step_begin(c);
        assert_int_equal(trn_assign(theirs, y), TRN_ERR_STATE);
        assert_int_equal(trn_step_end(c), TRN_ERR_STATE);
        assert_true(host[0] == 9);
        trn_close(c);
    }
}

/* Loss and gradient of cross_entropy with an ignored target, on views. */
static void loss_of_views(trn_context *c, double out[2])
{
    const int32_t labels[6] = {0, 9, -7, 9, 1, 9};
    trn_tensor *x = trn_reshape(ramp(c, TRN_F32, 12), 2, (int64_t[]){4, 3});
    trn_tensor *t = trn_tensor_from(c, TRN_I32, 1, (int64_t[]){6}, labels);
    x = trn_copy(x);
    trn_set_requires_grad(x, true);
    for (int step = 0; step < 2; step++) {
        trn_cross_entropy_options o = TRN_CROSS_ENTROPY_INIT;
        o.has_ignore_index = true;
        o.ignore_index = -7;
        trn_zero_grad(x);
        trn_step_begin(c);
        trn_tensor *logits = trn_permute(x, (int[]){1, 0});
        trn_tensor *target = trn_slice(t, 0, 0, 6, 2);
        trn_backward(trn_cross_entropy(logits, target, &o));
        trn_step_end(c);
    }
    harness_ok(c);
    out[0] = trn_step_loss(c);
    out[1] = trn_tensor_item(trn_norm(trn_grad_of(x), TRN_ALL_AXES, false));
    harness_ok(c);
}

static void a_body_on_views_computes_what_the_composite_does(void **state)
{
    (void)state;
    double eager[2], other[2];
    trn_context *c = open_on("cpu", TRN_EXEC_EAGER);
    loss_of_views(c, eager);
    trn_close(c);
    for (int i = 0; i < N_WAYS; i++) {
        c = way(i);
        loss_of_views(c, other);
        assert_memory_equal(eager, other, sizeof eager);
        assert_int_equal(trn_close(c), TRN_OK);
    }
}

/* d^2 loss through the gradient of cross_entropy with ignored targets. */
static void second_order_with_ignored_targets_repeats(void **state)
{
    (void)state;
    for (int i = 0; i < N_WAYS; i++) {
        trn_context *c = way(i);
        const int32_t labels[2] = {1, -1};
        trn_tensor *t = trn_tensor_from(c, TRN_I32, 1, (int64_t[]){2}, labels);
        trn_tensor *x =
            trn_copy(trn_reshape(ramp(c, TRN_F32, 6), 2, (int64_t[]){2, 3}));
        trn_set_requires_grad(x, true);
        double first = 0;
        for (int step = 0; step < 3; step++) {
            trn_cross_entropy_options o = TRN_CROSS_ENTROPY_INIT;
            trn_grad_options g = TRN_GRAD_INIT;
            o.has_ignore_index = true;
            o.ignore_index = -1;
            g.create_graph = true;
            trn_zero_grad(x);
            trn_step_begin(c);
            trn_tensor *loss = trn_cross_entropy(x, t, &o), *dx = NULL;
            trn_grad(1, &loss, 1, &x, NULL, &g, &dx);
            trn_backward(trn_sum(trn_mul(dx, dx), TRN_ALL_AXES, false));
            assert_int_equal(trn_step_end(c), TRN_OK);
            double value = trn_step_loss(c);
            assert_true(step == 0 || value == first);
            first = value;
        }
        assert_int_equal(trn_close(c), TRN_OK);
    }
}

static void a_primitive_of_a_body_is_refused_like_any_other(void **state)
{
    (void)state;
    trn_context *c = open_on("loop:lacks=dropout,lacks=uniform", TRN_EXEC_AUTO);
    trn_tensor *x = ramp(c, TRN_F32, 8);
    trn_step_begin(c);
    trn_keep(trn_dropout(x, 0.5, trn_generator_default(c)));
    assert_int_equal(trn_step_end(c), TRN_ERR_UNSUPPORTED);
    harness_error(c, TRN_ERR_UNSUPPORTED, "uniform: device loop");
    trn_step_begin(c);
    assert_null(trn_uniform(trn_generator_default(c), TRN_F32, 0, NULL));
    assert_int_equal(trn_errcode(c), TRN_ERR_UNSUPPORTED); /* at the call */
    trn_step_end(c);
    trn_close(c);
}

static void a_failure_in_flight_is_told_before_later_ops(void **state)
{
    (void)state;
    trn_context *c = open_on("loop:execute_ms=2", TRN_EXEC_AUTO);
    const int32_t bad[2] = {0, 7};
    trn_tensor *x =
        trn_copy(trn_reshape(ramp(c, TRN_F32, 6), 2, (int64_t[]){2, 3}));
    trn_tensor *t = trn_tensor_from(c, TRN_I32, 1, (int64_t[]){2}, bad);
    trn_sync(c);
    trn_step_begin(c);
    trn_keep(trn_cross_entropy(x, t, NULL));
    trn_step_end(c);
    float got[6];
    trn_tensor *y = trn_mul_scalar(x, 2.0);
    assert_int_equal(trn_tensor_read(y, got, sizeof got), TRN_ERR_INDEX);
    assert_int_equal(trn_step_index(c), 0);
    harness_error(c, TRN_ERR_INDEX, "cross_entropy: index 7 at position 1");
    trn_close(c);
}

static void ops_outside_of_steps_do_not_pile_up(void **state)
{
    (void)state;
    trn_context *c = open_on("loop", TRN_EXEC_AUTO);
    trn_tensor *x = ramp(c, TRN_F32, 4);
    trn_capture_info info = TRN_CAPTURE_INFO_INIT;
    for (int i = 0; i < 2000; i++)
        assert_non_null(trn_relu(x));
    assert_int_equal(trn_capture(c, &info), TRN_OK);
    assert_true(info.replays >= 2000 / 256);
    assert_int_equal(trn_close(c), TRN_OK);
}

static trn_buffer *no_alloc(trn_device *device, uint64_t bytes)
{
    (void)device;
    (void)bytes;
    return NULL;
}

/* Where a device has alloc_like, memory for tensors comes from nowhere else;
 * the loop device looks at type and shape of each buffer that it is given. */
static void a_device_is_told_for_what_tensor_memory_is(void **state)
{
    (void)state;
    trn_context *c = way(1);
    c->table.alloc = no_alloc;
    trn_module *net = trn_nn_linear(c, 3, 2);
    trn_optim *optim = trn_optim_adamw(net, NULL);
    trn_tensor *x = trn_full(c, TRN_F32, 2, (int64_t[]){4, 3}, 0.5);
    for (int i = 0; i < 3; i++) {
        trn_step_begin(c);
        trn_tensor *y = trn_keep(trn_nn_forward(net, x));
        trn_tensor *first = trn_keep(trn_slice(y, 0, 0, 2, 1));
        assert_true(trn_tensor_item(trn_sum(y, TRN_ALL_AXES, false)) != 0.0);
        trn_backward(trn_mean(trn_mul(y, y), TRN_ALL_AXES, false));
        trn_optim_step(optim);
        assert_int_equal(trn_step_end(c), TRN_OK);
        trn_tensor_release(first);
        trn_tensor_release(y);
    }
    assert_int_equal(trn_close(c), TRN_OK);
}

/* ---- scalars of optimizers ---- */

typedef struct two_layers {
    trn_context *c;
    trn_module *net;
    trn_optim *all, *first, *second; /* of both layers, of one each */
} two_layers;

static trn_optim *sgd(trn_module *m, double rate)
{
    trn_sgd_options o = TRN_SGD_INIT;
    o.learning_rate = rate;
    o.weight_decay = 0.125;
    return trn_optim_sgd(m, &o);
}

static two_layers layers_on(trn_context *c)
{
    two_layers t = {.c = c};
    t.net = trn_nn_sequential(c, trn_nn_linear(c, 3, 4), trn_nn_linear(c, 4, 2),
                              NULL);
    t.all = sgd(t.net, 0.25);
    t.first = sgd(trn_nn_child(t.net, "0"), 0.5);
    t.second = sgd(trn_nn_child(t.net, "1"), 0.0625);
    return t;
}

/* The calls of both ways are the same, their scalars are not. */
static void update_layers(const two_layers *t, bool in_two)
{
    trn_tensor *x = trn_full(t->c, TRN_F32, 2, (int64_t[]){2, 3}, 0.5);
    trn_tensor *y = trn_nn_forward(t->net, x);
    trn_backward(trn_mean(trn_mul(y, y), TRN_ALL_AXES, false));
    trn_optim_step(in_two ? t->first : t->all);
    if (in_two)
        trn_optim_step(t->second);
}

/* How many scalars the updates of the last step use, from how many nodes. */
static int scalars_of_updates(const trn_context *c, int *n_nodes)
{
    const trn_graph *g = c->capture->first->graph;
    bool *used = calloc((size_t)g->n_scalars + 1, sizeof *used);
    int n = 0;
    *n_nodes = 0;
    for (int32_t q = 0; q < g->n_nodes; q++) {
        const trn__graph_node *node = &g->nodes[q];
        if (node->op != TRN_OP_sgd_update && node->op != TRN_OP_adamw_update)
            continue;
        for (int k = 0; k < node->n_scalars; k++) {
            n += !used[node->scalar[k]];
            used[node->scalar[k]] = true;
        }
        ++*n_nodes;
    }
    free(used);
    return n;
}

static void an_optimizers_scalars_stand_once_in_a_step(void **state)
{
    (void)state;
    for (int i = 0; i < N_WAYS; i++) {
        int nodes;
        trn_context *c = way(i);
        two_layers t = layers_on(c);
        trn_optim *adamw = trn_optim_adamw(t.net, NULL);
        for (int step = 0; step < 4; step++) {
            trn_step_begin(c);
            update_layers(&t, step % 2 == 1);
            assert_int_equal(trn_step_end(c), TRN_OK);
            assert_int_equal(scalars_of_updates(c, &nodes),
                             step % 2 == 1 ? 4 : 2);
            assert_int_equal(nodes, 4);
        }
        trn_step_begin(c);
        trn_tensor *y = trn_nn_forward(
            t.net, trn_full(c, TRN_F32, 2, (int64_t[]){2, 3}, 0.5));
        trn_backward(trn_mean(y, TRN_ALL_AXES, false));
        trn_optim_step(adamw);
        assert_int_equal(trn_step_end(c), TRN_OK);
        assert_int_equal(scalars_of_updates(c, &nodes), 7);
        assert_int_equal(nodes, 4);
        assert_int_equal(trn_close(c), TRN_OK);
    }
}

static void train_both_ways(trn_context *c, char digest[65])
{
    two_layers t = layers_on(c);
    for (int step = 0; step < 9; step++) {
        trn_optim_set_learning_rate(t.all, 0.25 / (1 + step));
        trn_step_begin(c);
        update_layers(&t, step % 3 == 1);
        assert_int_equal(trn_step_end(c), TRN_OK);
    }
    assert_int_equal(trn_digest(t.net, digest), TRN_OK);
    assert_int_equal(trn_close(c), TRN_OK);
}

static void updates_of_another_optimizer_have_scalars_of_their_own(void **state)
{
    (void)state;
    char eager[65], digest[65];
    train_both_ways(open_on("cpu", TRN_EXEC_EAGER), eager);
    for (int i = 0; i < N_WAYS; i++) {
        train_both_ways(way(i), digest);
        assert_string_equal(digest, eager);
    }
}

/* Outside of steps a program ends after so many calls, in the midst of them. */
static void update_many(trn_context *c, char digest[65])
{
    enum { LAYERS = 140 };
    trn_module *net = trn_nn_sequential(c, trn_nn_linear(c, 2, 2), NULL);
    for (int i = 1; i < LAYERS; i++)
        net = trn_nn_sequential(c, net, trn_nn_linear(c, 2, 2), NULL);
    trn_optim *optim = sgd(net, 0.5);
    trn_tensor *x = trn_full(c, TRN_F32, 2, (int64_t[]){1, 2}, 0.5);
    for (int i = 0; i < 2; i++) {
        trn_tensor *y = trn_nn_forward(net, x);
        trn_backward(trn_mean(trn_mul(y, y), TRN_ALL_AXES, false));
        trn_optim_set_learning_rate(optim, 0.5 / (1 + i));
        trn_optim_step(optim);
    }
    assert_int_equal(trn_digest(net, digest), TRN_OK);
    assert_int_equal(trn_close(c), TRN_OK);
}

static void updates_outside_of_steps_may_be_cut_anywhere(void **state)
{
    (void)state;
    char eager[65], digest[65];
    update_many(open_on("cpu", TRN_EXEC_EAGER), eager);
    update_many(open_on("loop", TRN_EXEC_AUTO), digest);
    assert_string_equal(digest, eager);
}

/* An old device that takes no notice of what it could not be given. */
static int32_t careless_compile(trn_device *device, const trn_graph *g,
                                trn_program **program)
{
    static const int32_t list[9];
    trn_graph_node out = {.size = offsetof(trn_graph_node, ins)};
    trn_graph_node node = {.op = TRN_OP_neg, .n_in = 9, .ins = list};
    (void)device;
    node.outs = node.scalars = list;
    assert_false(trn__graph_give_node(g->c, &node, &out));
    *program = NULL;
    return TRN_OK;
}

static void a_graph_that_a_device_could_not_read_is_not_run(void **state)
{
    (void)state;
    trn_context *c = way(0);
    c->table.compile = careless_compile;
    trn_step_begin(c);
    assert_non_null(trn_keep(trn_full(c, TRN_F32, 0, NULL, 1.0)));
    assert_int_equal(trn_step_end(c), TRN_ERR_UNSUPPORTED);
    harness_error(c, TRN_ERR_UNSUPPORTED, "neg: a node with 9 inputs");
    assert_int_equal(trn_close(c), TRN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(a_trace_is_not_taken_over_for_other_shapes),
        TRN_TEST(alternating_shapes_match),
        TRN_TEST(a_matched_write_to_wrapped_memory_is_refused),
        TRN_TEST(a_body_on_views_computes_what_the_composite_does),
        TRN_TEST(second_order_with_ignored_targets_repeats),
        TRN_TEST(a_primitive_of_a_body_is_refused_like_any_other),
        TRN_TEST(a_failure_in_flight_is_told_before_later_ops),
        TRN_TEST(ops_outside_of_steps_do_not_pile_up),
        TRN_TEST(an_optimizers_scalars_stand_once_in_a_step),
        TRN_TEST(updates_of_another_optimizer_have_scalars_of_their_own),
        TRN_TEST(updates_outside_of_steps_may_be_cut_anywhere),
        TRN_TEST(a_graph_that_a_device_could_not_read_is_not_run),
        TRN_TEST(a_device_is_told_for_what_tensor_memory_is),
    };
    return cmocka_run_group_tests_name("seam", tests, NULL, NULL);
}
