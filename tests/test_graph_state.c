/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the writes of a graph take place: in the memory of a state, in a copy,
 * and which readers go before them.
 */
#include "graph_build.h"

static int32_t op1(trn_graph *g, uint32_t op, int32_t a)
{
    return graph_op(g, op, a, -1, -1);
}

static int32_t op2(trn_graph *g, uint32_t op, int32_t a, int32_t b)
{
    return graph_op(g, op, a, b, -1);
}

/* Checks the number of copies and assigns after the passes; frees g. */
static void expect(trn_graph *g, int copies, int assigns)
{
    trn_graph *p = graph_prepared(g);
    CHECK(graph_count(p, TRN_OP_copy) == copies &&
              graph_count(p, TRN_OP_assign) == assigns,
          "expected %d copies, %d assigns:\n%s\n", copies, assigns,
          graph_text(p));
    trn__graph_free(p);
    trn__graph_free(g);
}

static int32_t sgd(trn_graph *g, int32_t p, int32_t grad)
{
    return graph_update(g, TRN_OP_sgd_update, (int32_t[]){p, grad});
}

static void two_writes_fold_into_the_input(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 2, 3), y = graph_input(g, 2, 2, 3);
    trn__graph_add_output(g, sgd(g, sgd(g, x, y), op1(g, TRN_OP_exp, y)), 0);
    expect(g, 0, 0);
}

static void an_assign_over_an_unread_write_leaves_one_write(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 2, 3), y = graph_input(g, 2, 2, 3);
    int32_t w = graph_assign(g, sgd(g, x, y), y);
    trn__graph_add_output(g, graph_assign(g, w, op1(g, TRN_OP_exp, y)), 0);
    trn_graph *p = graph_prepared(g);
    assert_int_equal(p->n_nodes, 2);
    trn__graph_free(p);
    trn__graph_free(g);
}

static void an_assign_over_a_write_that_was_read_follows_it(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 2, 3), y = graph_input(g, 2, 2, 3);
    int32_t w = sgd(g, x, y);
    trn__graph_add_output(g, graph_assign(g, w, op1(g, TRN_OP_exp, w)), 0);
    expect(g, 0, 1);
}

static void a_later_read_of_the_old_value_goes_before_the_write(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 2, 3), y = graph_input(g, 2, 2, 3);
    int32_t t = graph_transposed(g, x);
    int32_t w = sgd(g, x, y);
    trn__graph_add_output(g, w, 0);
    trn__graph_add_output(g, op1(g, TRN_OP_neg, w), -1);
    trn__graph_add_output(g, op2(g, TRN_OP_matmul, x, y), -1);
    trn__graph_add_output(g, op1(g, TRN_OP_exp, t), -1);
    expect(g, 0, 0);
}

static void a_read_after_the_write_reads_a_copy(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 2, 3), y = graph_input(g, 2, 2, 3);
    int32_t w = sgd(g, x, op1(g, TRN_OP_exp, x));
    trn__graph_add_output(g, w, 0);
    trn__graph_add_output(g, op2(g, TRN_OP_matmul, x, w), -1);
    (void)y;
    expect(g, 1, 0);
}

static void a_view_of_the_old_value_read_later_moves_to_the_copy(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 4, 3), y = graph_input(g, 2, 4, 3);
    int32_t rows = graph_rows(g, x, 1, 3);
    int32_t t = graph_transposed(g, rows);
    int32_t w = sgd(g, x, y);
    int32_t late = graph_rows(g, x, 0, 2);
    trn__graph_add_output(g, w, 0);
    trn__graph_add_output(g, op2(g, TRN_OP_matmul, t, w), -1);
    trn__graph_add_output(g, op2(g, TRN_OP_matmul, late, w), -1);
    trn__graph_add_output(g, op2(g, TRN_OP_add, late, rows), -1);
    trn__graph_add_output(g, t, -1);
    expect(g, 2, 0); /* the old value; the output that is a view */
}

static void an_overwritten_value_that_is_an_output_is_kept(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 2, 3), y = graph_input(g, 2, 2, 3);
    int32_t w = sgd(g, x, y);
    int32_t e = op1(g, TRN_OP_exp, y);
    trn__graph_add_output(g, x, -1);
    trn__graph_add_output(g, w, -1);
    trn__graph_add_output(g, sgd(g, w, y), 0);
    trn__graph_add_output(g, e, -1);
    trn__graph_add_output(g, op1(g, TRN_OP_neg, sgd(g, e, y)), -1);
    expect(g, 3, 0);
}

static void an_input_that_no_output_replaces_is_not_written(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 2, 3), y = graph_input(g, 2, 2, 3);
    int32_t w = sgd(g, sgd(g, x, y), y);
    trn__graph_add_output(g, op1(g, TRN_OP_exp, w), -1);
    expect(g, 1, 0);
}

static void an_output_computed_elsewhere_is_assigned(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 3, 3), y = graph_input(g, 2, 3, 3);
    int32_t z = graph_input(g, 2, 3, 3);
    trn__graph_add_output(g, op1(g, TRN_OP_exp, x), 0);
    trn__graph_add_output(g, graph_transposed(g, z), 2);
    trn__graph_add_output(g, x, 1); /* goes before x is overwritten */
    (void)y;
    expect(g, 1, 3);
}

static void inputs_may_be_swapped(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 3, 3), y = graph_input(g, 2, 3, 3);
    trn__graph_add_output(g, y, 0);
    trn__graph_add_output(g, x, 1);
    expect(g, 1, 2);
}

static void an_input_that_is_its_own_output_costs_nothing(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 2, 3), y = graph_input(g, 2, 2, 3);
    trn__graph_add_output(g, x, 0);
    trn__graph_add_output(g, op2(g, TRN_OP_add, sgd(g, x, y), x), -1);
    expect(g, 1, 0);
}

static void two_updates_of_one_old_value_are_kept_apart(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 2, 3), y = graph_input(g, 2, 2, 3);
    int32_t a = sgd(g, x, y), b = sgd(g, x, a), d = sgd(g, x, b);
    trn__graph_add_output(g, b, 0);
    trn__graph_add_output(g, op1(g, TRN_OP_exp, a), -1);
    trn__graph_add_output(g, op1(g, TRN_OP_exp, d), -1);
    expect(g, 2, 0);
}

static void several_states_of_one_update_may_be_one_tensor(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 2, 3), y = graph_input(g, 2, 2, 3);
    int32_t p = graph_update(g, TRN_OP_adamw_update, (int32_t[]){x, y, x, y});
    trn__graph_add_output(g, p + 1, 0);
    trn__graph_add_output(g, op1(g, TRN_OP_exp, p), -1);
    trn__graph_add_output(g, p + 2, 1);
    expect(g, 2, 0); /* x as the parameter; y as the gradient */
}

static void a_write_through_a_whole_view_stays_in_the_input(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 2, 3), y = graph_input(g, 1, 6, 0);
    int32_t w = sgd(g, graph_reshaped(g, x, 1, 6, 0), y);
    trn__graph_add_output(g, graph_reshaped(g, w, 2, 2, 3), 0);
    expect(g, 0, 0);
}

static void a_write_to_part_of_a_tensor_makes_a_value_of_its_own(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 4, 3), y = graph_input(g, 2, 2, 3);
    int32_t w = sgd(g, graph_rows(g, x, 1, 3), y);
    trn__graph_add_output(g, op1(g, TRN_OP_exp, w), -1);
    trn__graph_add_output(g, op1(g, TRN_OP_neg, x), -1);
    int32_t e = graph_rows(g, op1(g, TRN_OP_exp, x), 1, 3);
    trn__graph_add_output(g, op1(g, TRN_OP_exp, sgd(g, e, y)), -1);
    expect(g, 2, 0);
}

static void wrong_aliases_are_refused(void **state)
{
    trn_context *c = *state;
    for (int fault = 0; fault < 3; fault++) {
        trn_graph *g = trn__graph_new(c);
        int32_t x = graph_input(g, 2, 4, 3), y = graph_input(g, 2, 2, 3);
        trn__graph_add_output(g, x, fault == 0 ? 1 : 0);
        trn__graph_add_output(g, fault == 1 ? x : y, fault == 1 ? 0 : 2);
        assert_int_equal(trn__graph_prepare(g), TRN_ERR_INTERNAL);
        harness_error(c, TRN_ERR_INTERNAL, "replace");
        trn__graph_free(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(two_writes_fold_into_the_input),
        TRN_TEST(an_assign_over_an_unread_write_leaves_one_write),
        TRN_TEST(an_assign_over_a_write_that_was_read_follows_it),
        TRN_TEST(a_later_read_of_the_old_value_goes_before_the_write),
        TRN_TEST(a_read_after_the_write_reads_a_copy),
        TRN_TEST(a_view_of_the_old_value_read_later_moves_to_the_copy),
        TRN_TEST(an_overwritten_value_that_is_an_output_is_kept),
        TRN_TEST(an_input_that_no_output_replaces_is_not_written),
        TRN_TEST(an_output_computed_elsewhere_is_assigned),
        TRN_TEST(inputs_may_be_swapped),
        TRN_TEST(an_input_that_is_its_own_output_costs_nothing),
        TRN_TEST(two_updates_of_one_old_value_are_kept_apart),
        TRN_TEST(several_states_of_one_update_may_be_one_tensor),
        TRN_TEST(a_write_through_a_whole_view_stays_in_the_input),
        TRN_TEST(a_write_to_part_of_a_tensor_makes_a_value_of_its_own),
        TRN_TEST(wrong_aliases_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
