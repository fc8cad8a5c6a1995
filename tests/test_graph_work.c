/* SPDX-License-Identifier: Apache-2.0
 *
 * Preparing a graph takes work that grows as the graph does.
 *
 * Work is counted, not timed: trn_graph has how much the passes have looked at
 * beside walks over the whole graph.  A graph of four times the size may take
 * five times the work; sixteen times would be that of a pass which looks at
 * all nodes for each of them.  Where slots of many sizes leave gaps to choose
 * from, the memory plan looks at the gaps, of which there are more then.
 */
#include "graph_build.h"

enum { SMALL = 250, LARGE = 4 * SMALL };

typedef void build_fn(trn_graph *g, int n);

static int32_t op1(trn_graph *g, uint32_t op, int32_t a)
{
    return graph_op(g, op, a, -1, -1);
}

static int32_t op2(trn_graph *g, uint32_t op, int32_t a, int32_t b)
{
    return graph_op(g, op, a, b, -1);
}

static int64_t work_of(trn_context *c, build_fn *build, int n)
{
    trn_graph *g = trn__graph_new(c);
    build(g, n);
    assert_int_equal(trn__graph_prepare(g), TRN_OK);
    int64_t work = g->work;
    trn__graph_free(g);
    return work;
}

static void expect_times(trn_context *c, build_fn *build, int times)
{
    int64_t small = work_of(c, build, SMALL);
    int64_t large = work_of(c, build, LARGE);
    CHECK(small > 0 && large <= times * small,
          "work: %lld for %d, %lld for %d\n", (long long)small, SMALL,
          (long long)large, LARGE);
}

static void expect_linear(trn_context *c, build_fn *build)
{
    expect_times(c, build, 5);
}

/* ---- a step of training: residual layers, forth and back, then updates ----
 */

static void write_state(trn_graph *g, int32_t input, int32_t value)
{
    int32_t w = graph_assign(g, g->inputs[input], value);
    trn__graph_add_output(g, w, input);
}

/* A parameter and a moment, by primitives: m = m + grad, p = p - m. */
static void write_layer(trn_graph *g, int32_t p, int32_t m, int32_t grad)
{
    int32_t sum = op2(g, TRN_OP_add, g->inputs[m], grad);
    write_state(g, m, sum);
    write_state(g, p, op2(g, TRN_OP_sub, g->inputs[p], sum));
}

static void build_step(trn_graph *g, int n, int n_sizes)
{
    static int32_t kept[LARGE + 1], sized[LARGE], grads[LARGE];
    kept[0] = graph_input(g, 2, 8, 8);
    for (int i = 0; i < n; i++) {
        int32_t p = graph_input(g, 2, 8, 8);
        graph_input(g, 2, 8, 8); /* its moment */
        sized[i] = graph_input(g, 2, 1 + i % n_sizes, 16);
        sized[i] = op1(g, TRN_OP_copy, sized[i]);
        int32_t y = op1(g, TRN_OP_relu, op2(g, TRN_OP_matmul, kept[i], p));
        kept[i + 1] = op2(g, TRN_OP_add, y, kept[i]);
    }
    int32_t back = kept[n];
    for (int i = n - 1; i >= 0; i--) {
        int32_t p = g->inputs[1 + 3 * i];
        graph_op(g, TRN_OP_check_finite, sized[i], -1, -1);
        int32_t d = op2(g, TRN_OP_mul, back, kept[i + 1]);
        grads[i] = op2(g, TRN_OP_matmul, graph_transposed(g, kept[i]), d);
        int32_t through = op2(g, TRN_OP_matmul, d, graph_transposed(g, p));
        back = op2(g, TRN_OP_add, back, through);
    }
    for (int i = 0; i < n; i++)
        write_layer(g, 1 + 3 * i, 2 + 3 * i, grads[i]);
}

static void build_training(trn_graph *g, int n)
{
    build_step(g, n, 1);
}

static void build_many_sizes(trn_graph *g, int n)
{
    build_step(g, n, 7);
}

static void a_step_of_training_takes_linear_work(void **state)
{
    expect_linear(*state, build_training);
}

static void slots_of_many_sizes_take_less_than_quadratic_work(void **state)
{
    expect_times(*state, build_many_sizes, 9);
}

/* ---- what moves, and what is put in ---- */

static int32_t sgd(trn_graph *g, int32_t p, int32_t grad)
{
    return graph_update(g, TRN_OP_sgd_update, (int32_t[]){p, grad});
}

static void build_late_readers(trn_graph *g, int n)
{
    int32_t grad = graph_input(g, 2, 4, 4);
    for (int i = 0; i < n; i++)
        graph_input(g, 2, 4, 4);
    for (int i = 1; i <= n; i++)
        trn__graph_add_output(g, sgd(g, g->inputs[i], grad), i);
    for (int i = 1; i <= n; i++)
        trn__graph_add_output(g, op1(g, TRN_OP_exp, g->inputs[i]), -1);
}

static void writes_sink_behind_late_readers_in_linear_work(void **state)
{
    expect_linear(*state, build_late_readers);
}

static void build_same_reader(trn_graph *g, int n)
{
    int32_t grad = graph_input(g, 2, 4, 4), sum = grad;
    for (int i = 0; i < n; i++)
        graph_input(g, 2, 4, 4);
    for (int i = 1; i <= n; i++)
        trn__graph_add_output(g, sgd(g, g->inputs[i], grad), i);
    for (int i = 1; i <= n; i++)
        sum = op2(g, TRN_OP_matmul, sum, g->inputs[i]);
    for (int i = 1; i <= n; i++) /* all of them behind the last of these */
        sum = op2(g, TRN_OP_add, sum, g->inputs[i]);
    trn__graph_add_output(g, sum, -1);
}

static void writes_sink_one_behind_the_other_in_linear_work(void **state)
{
    expect_linear(*state, build_same_reader);
}

static void build_old_values(trn_graph *g, int n)
{
    int32_t grad = graph_input(g, 2, 4, 4);
    for (int i = 1; i <= n; i++) {
        int32_t p = graph_input(g, 2, 4, 4), view = graph_transposed(g, p);
        int32_t w = sgd(g, p, grad);
        trn__graph_add_output(g, w, i);
        trn__graph_add_output(g, op2(g, TRN_OP_sub, w, view), -1);
    }
}

static void old_values_are_saved_in_linear_work(void **state)
{
    expect_linear(*state, build_old_values);
}

static void build_view_outputs(trn_graph *g, int n)
{
    int32_t x = graph_input(g, 2, 4, 4);
    for (int i = 0; i < n; i++) {
        x = op2(g, TRN_OP_matmul, x, x);
        trn__graph_add_output(g, graph_transposed(g, x), -1);
    }
}

static void outputs_get_copies_in_linear_work(void **state)
{
    expect_linear(*state, build_view_outputs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(a_step_of_training_takes_linear_work),
        TRN_TEST(slots_of_many_sizes_take_less_than_quadratic_work),
        TRN_TEST(writes_sink_behind_late_readers_in_linear_work),
        TRN_TEST(writes_sink_one_behind_the_other_in_linear_work),
        TRN_TEST(old_values_are_saved_in_linear_work),
        TRN_TEST(outputs_get_copies_in_linear_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
