/* SPDX-License-Identifier: Apache-2.0
 *
 * Fusion groups and the memory plan; random graphs, run in the memory that they
 * were given; every allocation failing in turn.
 */
#include "graph_build.h"

enum { N_RANDOM = 300 };

static int32_t op1(trn_graph *g, uint32_t op, int32_t a)
{
    return graph_op(g, op, a, -1, -1);
}

static int32_t op2(trn_graph *g, uint32_t op, int32_t a, int32_t b)
{
    return graph_op(g, op, a, b, -1);
}

/* ---- fusion ---- */

static void bias_relu_scale_residual_is_one_group(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 4, 6), b = graph_input(g, 1, 6, 0);
    int32_t r = graph_input(g, 2, 4, 6);
    int32_t s = op2(g, TRN_OP_add, x, graph_expanded(g, b, 4));
    s = graph_numbered(g, TRN_OP_mul_scalar, op1(g, TRN_OP_relu, s), 0);
    trn__graph_add_output(g, op2(g, TRN_OP_add, s, r), -1);
    trn_graph *p = graph_prepared(g);
    assert_int_equal(p->n_groups, 1);
    assert_int_equal(p->arena_bytes, 0);
    trn__graph_free(p);
    trn__graph_free(g);
}

static void branches_of_one_shape_meet_in_one_group(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 4, 6), y = graph_input(g, 2, 4, 6);
    int32_t a = op1(g, TRN_OP_exp, x);
    int32_t s = graph_reduce(g, TRN_OP_sum, y); /* stands between */
    int32_t b = op1(g, TRN_OP_tanh, y);
    trn__graph_add_output(g, op2(g, TRN_OP_mul, a, b), -1);
    trn__graph_add_output(g, s, -1);
    trn_graph *p = graph_prepared(g);
    assert_int_equal(p->n_groups, 1);
    trn__graph_free(p);
    trn__graph_free(g);
}

static void what_needs_a_whole_value_divides_groups(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 4, 6);
    int32_t e = op1(g, TRN_OP_neg, op1(g, TRN_OP_exp, x));
    int32_t m = graph_expanded(g, graph_reduce(g, TRN_OP_sum, e), 4);
    int32_t y = op1(g, TRN_OP_tanh, op2(g, TRN_OP_sub, e, m));
    trn__graph_add_output(g, y, -1);
    trn_graph *p = graph_prepared(g);
    assert_int_equal(p->n_groups, 2);
    trn__graph_free(p);
    trn__graph_free(g);
}

static void a_transposed_view_of_a_member_divides_groups(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 4, 4);
    int32_t e = op1(g, TRN_OP_exp, x);
    int32_t y = op2(g, TRN_OP_add, e, graph_transposed(g, e));
    trn__graph_add_output(g, op1(g, TRN_OP_neg, y), -1);
    trn_graph *p = graph_prepared(g);
    assert_int_equal(p->n_groups, 1);
    assert_int_equal(p->nodes[graph_find(p, TRN_OP_exp)].group, -1);
    trn__graph_free(p);
    trn__graph_free(g);
}

static void a_group_has_at_most_24_nodes_and_12_inputs(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 4, 4), y = x;
    for (int i = 0; i < 60; i++)
        y = op1(g, i % 2 ? TRN_OP_exp : TRN_OP_neg, y);
    trn__graph_add_output(g, y, -1);
    trn_graph *p = graph_prepared(g);
    assert_int_equal(p->n_groups, 3);
    trn__graph_free(p);
    trn__graph_free(g);
    g = trn__graph_new(*state);
    y = graph_input(g, 2, 4, 4);
    for (int i = 0; i < 20; i++)
        y = op2(g, TRN_OP_add, y, graph_input(g, 2, 4, 4));
    trn__graph_add_output(g, y, -1);
    p = graph_prepared(g);
    assert_int_equal(p->n_groups, 2);
    assert_int_equal(p->nodes[10].group, 0); /* 11 nodes read 12 inputs */
    assert_int_equal(p->nodes[11].group, 1);
    trn__graph_free(p);
    trn__graph_free(g);
}

static void a_group_does_not_cross_a_write_of_what_it_reads(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 4, 4), y = graph_input(g, 2, 4, 4);
    int32_t a = op2(g, TRN_OP_add, x, y);
    int32_t w = graph_update(g, TRN_OP_sgd_update, (int32_t[]){x, y});
    trn__graph_add_output(g, op2(g, TRN_OP_mul, a, w), -1);
    trn__graph_add_output(g, w, 0);
    trn_graph *p = graph_prepared(g);
    assert_int_equal(p->n_groups, 0);
    trn__graph_free(p);
    trn__graph_free(g);
}

/* ---- memory ---- */

static void a_chain_of_products_needs_two_places(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 4, 4), y = x; /* 128 bytes each */
    for (int i = 0; i < 9; i++)
        y = op2(g, TRN_OP_matmul, y, x);
    trn__graph_add_output(g, y, -1);
    trn_graph *p = graph_prepared(g);
    assert_int_equal(p->arena_bytes, 2 * 128);
    trn__graph_free(p);
    trn__graph_free(g);
}

static void empty_values_take_no_memory(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 0, 4);
    int32_t y = op2(g, TRN_OP_matmul, op2(g, TRN_OP_matmul, x, x), x);
    trn__graph_add_output(g, y, -1);
    assert_int_equal(trn__graph_prepare(g), TRN_OK);
    assert_int_equal(g->arena_bytes, 0);
    assert_int_equal(g->values[g->nodes[0].out[0]].arena_at, 0);
    trn__graph_free(g);
}

/* ---- random graphs ---- */

typedef struct draw {
    uint64_t seed;
    trn_graph *g;
} draw;

static int pick(draw *d, int n)
{
    return (int)(harness_random(&d->seed) % (uint64_t)n);
}

/* A value of that shape, made if there is none. */
static int32_t pick_value(draw *d, int rank, int64_t d0)
{
    trn_graph *g = d->g;
    int32_t first = pick(d, g->n_values);
    for (int32_t k = 0; k < g->n_values; k++) {
        int32_t v = (first + k) % g->n_values;
        const trn_arg *arg = &g->values[v].arg;
        if ((int)arg->rank == rank && arg->shape[0] == d0)
            return v;
    }
    return graph_op(g, TRN_OP_copy, rank == 1 ? 0 : 1, -1, -1);
}

static void add_view(draw *d)
{
    int32_t x = pick_value(d, 2, 4);
    switch (pick(d, 4)) {
    case 0:
        graph_transposed(d->g, x);
        break;
    case 1:
        graph_expanded(d->g, pick_value(d, 1, 4), 4);
        break;
    case 2:
        graph_rows(d->g, x, pick(d, 2), 3 + pick(d, 2));
        break;
    default:
        if (trn__is_contiguous(&d->g->values[x].arg))
            graph_reshaped(d->g, x, 2, 4, 4);
    }
}

static bool writable(const trn_graph *g, int32_t v)
{
    return trn__is_contiguous(&g->values[v].arg);
}

static void add_update(draw *d)
{
    static const uint32_t ops[] = {TRN_OP_assign, TRN_OP_sgd_update,
                                   TRN_OP_sgd_momentum_update,
                                   TRN_OP_adamw_update};
    uint32_t op = ops[pick(d, 4)];
    int32_t in[TRN__MAX_IN];
    for (int i = 0; i < trn__graph_ops[op].n_in; i++) {
        in[i] = pick_value(d, 2, 4);
        if (((trn__graph_ops[op].writes >> i) & 1) && !writable(d->g, in[i]))
            return;
    }
    graph_update(d->g, op, in);
}

static void add_random_node(draw *d)
{
    static const uint32_t unary[] = {TRN_OP_exp, TRN_OP_neg, TRN_OP_relu,
                                     TRN_OP_copy, TRN_OP_check_finite};
    static const uint32_t binary[] = {TRN_OP_add, TRN_OP_mul, TRN_OP_greater,
                                      TRN_OP_matmul};
    int rank = 1 + (pick(d, 4) > 0);
    int32_t x = pick_value(d, rank, 4);
    switch (pick(d, 10)) {
    case 0:
    case 1:
        op1(d->g, unary[pick(d, 5)], x);
        break;
    case 2:
    case 3:
        op2(d->g, binary[pick(d, rank == 2 ? 4 : 3)], x,
            pick_value(d, rank, 4));
        break;
    case 4:
        graph_op(d->g, TRN_OP_where, x, pick_value(d, rank, 4),
                 pick_value(d, rank, 4));
        break;
    case 5:
        graph_numbered(d->g, pick(d, 2) ? TRN_OP_dropout : TRN_OP_mul_scalar, x,
                       pick(d, 3));
        break;
    case 6:
        graph_reduce(d->g, TRN_OP_sum, pick_value(d, 2, 4));
        break;
    case 7:
    case 8:
        add_update(d);
        break;
    default:
        add_view(d);
    }
}

static trn_graph *random_graph(trn_context *c, uint64_t seed)
{
    draw d = {.seed = seed, .g = trn__graph_new(c)};
    graph_input(d.g, 1, 4, 0);
    for (int i = 0; i < 3; i++)
        graph_input(d.g, 2, 4, 4);
    int n = 1 + pick(&d, 40);
    for (int i = 0; i < n; i++)
        add_random_node(&d);
    for (int32_t i = 0; i < 4; i++) {
        if (pick(&d, 2) == 0)
            trn__graph_add_output(d.g, pick_value(&d, i == 0 ? 1 : 2, 4), i);
    }
    for (int i = pick(&d, 4); i >= 0; i--)
        trn__graph_add_output(d.g, pick(&d, d.g->n_values), -1);
    return d.g;
}

static void random_graphs_give_in_memory_what_their_values_are(void **state)
{
    for (uint64_t seed = 1; seed <= N_RANDOM; seed++) {
        trn_graph *g = random_graph(*state, seed * 7919);
        trn_graph *p = graph_prepared(g);
        trn_graph *q = graph_prepared(g);
        CHECK(trn__graph_equal(p, q), "seed %d\n", (int)seed);
        trn__graph_free(q);
        trn__graph_free(p);
        trn__graph_free(g);
    }
}

/* ---- memory that runs out ---- */

static bool build_and_prepare(trn_context *c)
{
    trn_graph *g = trn__graph_new(c);
    bool done = false;
    if (g == NULL)
        return false;
    trn__desc desc = {.dtype = TRN_F64, .rank = 1, .shape = {4}};
    trn__graph_node update = {.op = TRN_OP_sgd_update, .draw = -1};
    trn__graph_node unary = {.op = TRN_OP_exp, .draw = -1};
    trn__graph_node view = {.op = TRN_OP_reshape, .draw = -1};
    trn_arg arg = {.dtype = TRN_F64, .rank = 1, .shape = {4}, .stride = {1}};
    int32_t x = trn__graph_add_input(g, &desc);
    update.in[0] = view.in[0] = unary.in[0] = x;
    update.in[1] = x < 0 ? -1 : trn__graph_add_input(g, &desc);
    int32_t v = update.in[1] < 0 ? -1 : trn__graph_add_node(g, &view, 1, &arg);
    int32_t w = v < 0 ? -1 : trn__graph_add_node(g, &update, 1, &arg);
    for (int i = 0; w >= 0 && i < 20; i++) { /* so that the arrays grow */
        unary.in[0] = trn__graph_add_node(g, &unary, 1, &arg);
        if (unary.in[0] < 0)
            w = -1;
    }
    if (w >= 0)
        unary.in[0] = v;
    int32_t y = w < 0 ? -1 : trn__graph_add_node(g, &unary, 1, &arg);
    if (y >= 0 && trn__graph_add_output(g, w, 0) == TRN_OK &&
        trn__graph_add_output(g, y, -1) == TRN_OK) {
        trn_graph *copy = trn__graph_copy(g);
        done = copy != NULL && trn__graph_prepare(copy) == TRN_OK;
        trn__graph_free(copy);
    }
    trn__graph_free(g);
    return done;
}

static void each_allocation_may_fail(void **state)
{
    trn_context *c = *state;
    int64_t points = 0;
    for (bool done = false; !done; points++) {
        assert_int_equal(trn_memory_trim(c), TRN_OK);
        int64_t before = harness_bytes();
        harness_fail_after(points);
        done = build_and_prepare(c);
        harness_fail_after(-1);
        if (!done)
            harness_error(c, TRN_ERR_NOMEM, "graph");
        assert_int_equal(trn_memory_trim(c), TRN_OK);
        assert_int_equal(harness_bytes(), before);
    }
    print_message("%d allocations failed in turn\n", (int)points - 1);
    assert_true(points > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(bias_relu_scale_residual_is_one_group),
        TRN_TEST(branches_of_one_shape_meet_in_one_group),
        TRN_TEST(what_needs_a_whole_value_divides_groups),
        TRN_TEST(a_transposed_view_of_a_member_divides_groups),
        TRN_TEST(a_group_has_at_most_24_nodes_and_12_inputs),
        TRN_TEST(a_group_does_not_cross_a_write_of_what_it_reads),
        TRN_TEST(a_chain_of_products_needs_two_places),
        TRN_TEST(empty_values_take_no_memory),
        TRN_TEST(random_graphs_give_in_memory_what_their_values_are),
        TRN_TEST(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
