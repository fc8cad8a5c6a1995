/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs: building, hash, print, cost, duplicates, dead nodes, outputs.
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

/* y = relu(transpose(x) + transpose(x)) w, as an output */
static trn_graph *small(trn_context *c)
{
    trn_graph *g = trn__graph_new(c);
    int32_t x = graph_input(g, 2, 2, 3);
    int32_t t = graph_transposed(g, x);
    int32_t s = op2(g, TRN_OP_add, t, t);
    int32_t y = graph_numbered(g, TRN_OP_mul_scalar, op1(g, TRN_OP_relu, s), 0);
    trn__graph_add_output(g, y, -1);
    return g;
}

/* ---- hash and equality ---- */

static uint64_t fnv(const int64_t *numbers, size_t n)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++) {
        for (int b = 0; b < 64; b += 8) {
            h ^= ((uint64_t)numbers[i] >> b) & 255;
            h *= UINT64_C(0x100000001b3);
        }
    }
    return h;
}

static void hash_is_fnv_over_the_stated_numbers(void **state)
{
    static const int64_t numbers[] = {
        1,  1, 1,  2,  2,  3,              /* version; one input f64[2,3] */
        4,                                 /* nodes */
        31, 2, 1,  0,  1,  0, -1, 1,       /* permute [1,0] of %0: one output */
        1,  2, 3,  2,  0,  1, 3,           /* f64[3,2], offset, strides */
        10, 2, 1,  1,  -1, 1, 1,  2, 3, 2, /* add */
        6,  1, 2,  -1, 1,  1, 2,  3, 2,    /* relu */
        21, 1, 3,  0,  -1, 1, 1,  2, 3, 2, /* mul_scalar, scalar 0 */
        1,  4, -1,                         /* output %4 */
    };
    trn_graph *g = small(*state);
    assert_true(trn__graph_hash(g) ==
                fnv(numbers, sizeof numbers / sizeof numbers[0]));
    assert_true(trn__graph_hash(g) == UINT64_C(0xbbce53089ae1022b));
    trn__graph_free(g);
}

static void hash_and_equality_see_every_part(void **state)
{
    trn_graph *g = small(*state);
    for (int part = 0; part < 8; part++) {
        trn_graph *h = trn__graph_copy(g);
        assert_true(trn__graph_equal(g, h));
        assert_true(trn__graph_hash(g) == trn__graph_hash(h));
        trn__graph_node *n = &h->nodes[3];
        trn_perm_attrs *at = (trn_perm_attrs *)h->nodes[0].attrs;
        switch (part) {
        case 0:
            h->nodes[2].op = TRN_OP_exp;
            break;
        case 1:
            at->perm.axis[1] = 1;
            break;
        case 2:
            n->in[0] = 2;
            break;
        case 3:
            n->scalar[0] = 1;
            break;
        case 4:
            h->values[0].arg.shape[0] = 4;
            break;
        case 5:
            h->values[1].arg.offset = 1;
            break;
        case 6:
            h->outputs[0].alias = 0;
            break;
        default:
            trn__graph_add_output(h, 1, -1);
        }
        CHECK(!trn__graph_equal(g, h), "part %d\n", part);
        CHECK(trn__graph_hash(g) != trn__graph_hash(h), "part %d\n", part);
        trn__graph_free(h);
    }
    trn__graph_free(g);
}

/* ---- text ---- */

static void print_names_attributes_and_types(void **state)
{
    trn_graph *g = small(*state);
    assert_string_equal(graph_text(g),
                        "%0 = input 0 f64[2,3]\n"
                        "%1 = permute(%0) {perm=[1,0]} f64[3,2]; view of %0\n"
                        "%2 = add(%1, %1) f64[3,2]; 6 flops, 96 bytes\n"
                        "%3 = relu(%2) f64[3,2]; 6 flops, 96 bytes\n"
                        "%4 = mul_scalar(%3) {value=s0} f64[3,2]; 6 flops, "
                        "96 bytes\n"
                        "output 0 = %4\n");
    trn__graph_free(g);
}

static void dot_has_balanced_brackets_and_an_edge_for_each_input(void **state)
{
    trn_graph *raw = small(*state);
    trn_graph *g = graph_prepared(raw);
    const char *dot = graph_dot(g);
    int open = 0, quotes = 0, edges = 0;
    assert_memory_equal(dot, "digraph step {\n", 15);
    for (const char *s = dot; *s != '\0'; s++) {
        quotes += *s == '"';
        open += quotes % 2 == 0 ? (*s == '{') - (*s == '}') : 0;
        edges += s[0] == '-' && s[1] == '>';
        assert_true(open > 0 || s[1] == '\n' || s < dot + 15 || s[1] == '\0');
    }
    assert_int_equal(open, 0);
    assert_int_equal(quotes % 2, 0);
    assert_int_equal(edges, 1 + 2 + 1 + 1 + 1);
    assert_non_null(strstr(dot, "subgraph cluster_0 {"));
    trn__graph_free(g);
    trn__graph_free(raw);
}

static void
accessors_refuse_wrong_numbers_and_fill_smaller_structs(void **state)
{
    trn_graph *g = small(*state);
    trn_graph_node node = {.size = sizeof node};
    assert_false(trn__graph_get_node(g, 4, &node));
    assert_false(trn__graph_get_node(g, -1, &node));
    assert_true(trn__graph_get_node(g, 3, &node));
    assert_int_equal(node.op, TRN_OP_mul_scalar);
    assert_int_equal(node.in[0], 3);
    assert_int_equal(node.in[1], -1);
    assert_int_equal(node.out[0], 4);
    assert_int_equal(node.size, sizeof node);
    assert_int_equal(node.ins[0], 3);
    assert_int_equal(node.outs[0], 4);
    assert_int_equal(node.scalars[0], node.scalar[0]);
    trn_graph_info info = {.size = offsetof(trn_graph_info, n_inputs)};
    info.n_inputs = 77;
    assert_true(trn__graph_get_info(g, &info));
    assert_int_equal(info.n_values, 5);
    assert_int_equal(info.n_inputs, 77);
    assert_int_equal(trn__graph_get_input(g, 0), 0);
    assert_int_equal(trn__graph_get_input(g, 1), -1);
    trn_graph_value value = {.size = sizeof value};
    assert_false(trn__graph_get_value(g, 5, &value));
    trn_graph_output output = {.size = sizeof output};
    assert_false(trn__graph_get_output(g, 1, &output));
    trn__graph_free(g);
}

/* No row has so many; the struct of a device counts, not its version. */
static void lists_of_any_length_reach_devices_that_know_of_them(void **state)
{
    trn_context *c = *state;
    int32_t list[9] = {8, 7, 6, 5, 4, 3, 2, 1, 0};
    const uint32_t old = offsetof(trn_graph_node, ins);
    for (int which = 0; which < 4; which++) {
        trn_graph_node node = {
            .op = TRN_OP_neg,
            .n_in = which == 1 ? 9 : 8,
            .n_out = which == 2 ? 5 : 4,
            .n_scalars = which == 3 ? 9 : 8,
            .ins = list,
            .outs = list,
            .scalars = list,
        };
        trn_graph_node out = {.size = sizeof out};
        assert_true(trn__graph_give_node(c, &node, &out));
        assert_int_equal(out.in[7], 1);
        assert_int_equal(out.out[3], 5);
        assert_int_equal(out.scalar[7], 1);
        assert_ptr_equal(out.ins, list);
        assert_ptr_equal(out.outs, list);
        assert_ptr_equal(out.scalars, list);
        harness_ok(c);
        trn_graph_node small = {.size = old, .ins = list + 1};
        assert_int_equal(trn__graph_give_node(c, &node, &small), which == 0);
        assert_int_equal(small.size, old);
        assert_ptr_equal(small.ins, list + 1);
        if (which > 0)
            harness_error(c, TRN_ERR_UNSUPPORTED,
                          "device cpu is of an older version, which holds 8, "
                          "4 and 8");
    }
}

/* ---- cost ---- */

static void flops_and_bytes_are_those_of_hand_counts(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 8, 8), v = graph_input(g, 1, 8, 0);
    int32_t e = graph_expanded(g, v, 8);
    op2(g, TRN_OP_matmul, x, x);
    op2(g, TRN_OP_add, x, e);
    graph_reduce(g, TRN_OP_norm, x);
    graph_update(g, TRN_OP_adamw_update, (int32_t[]){x, x, x, x});
    op1(g, TRN_OP_copy, x);
    static const int64_t flops[] = {0, 2 * 8 * 8 * 8, 64, 128, 14 * 64, 0};
    static const int64_t bytes[] = {0,      8 * 128, 8 * (128 + 8),
                                    8 * 72, 8 * 256, 8 * 128};
    for (int32_t q = 0; q < g->n_nodes; q++) {
        assert_int_equal(trn__graph_node_flops(g, q), flops[q]);
        assert_int_equal(trn__graph_node_bytes(g, q), bytes[q]);
    }
    trn__graph_free(g);
}

static void a_fused_group_reads_and_writes_once(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 8, 8), y = graph_input(g, 2, 8, 8);
    int32_t s = op2(g, TRN_OP_mul, op2(g, TRN_OP_add, x, y), x);
    trn__graph_add_output(g, op1(g, TRN_OP_tanh, s), -1);
    assert_int_equal(trn__graph_bytes(g), (3 + 3 + 2) * 64 * 8);
    trn_graph *p = graph_prepared(g);
    assert_int_equal(trn__graph_bytes(p), 3 * 64 * 8);
    assert_int_equal(p->arena_bytes, 0);
    trn__graph_free(p);
    trn__graph_free(g);
}

/* ---- duplicates and dead nodes ---- */

static void equal_nodes_merge_and_random_ones_do_not(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 2, 3);
    int32_t a = op1(g, TRN_OP_exp, graph_transposed(g, x));
    int32_t b = op1(g, TRN_OP_exp, graph_transposed(g, x));
    int32_t d = graph_numbered(g, TRN_OP_dropout, b, 0);
    int32_t e = graph_numbered(g, TRN_OP_dropout, a, 0);
    int32_t m = graph_numbered(g, TRN_OP_mul_scalar, a, 0);
    int32_t n = graph_numbered(g, TRN_OP_mul_scalar, b, 1);
    int32_t k = op1(g, TRN_OP_check_finite, a);
    int32_t l = op1(g, TRN_OP_check_finite, b);
    int32_t sum = op2(
        g, TRN_OP_add, op2(g, TRN_OP_sub, d, e),
        op2(g, TRN_OP_add, op2(g, TRN_OP_mul, m, n), op2(g, TRN_OP_div, k, l)));
    trn__graph_add_output(g, sum, -1);
    trn_graph *p = graph_prepared(g);
    assert_int_equal(graph_count(p, TRN_OP_permute), 1);
    assert_int_equal(graph_count(p, TRN_OP_exp), 1);
    assert_int_equal(graph_count(p, TRN_OP_dropout), 2);
    assert_int_equal(graph_count(p, TRN_OP_mul_scalar), 2);
    assert_int_equal(graph_count(p, TRN_OP_check_finite), 2);
    trn__graph_free(p);
    trn__graph_free(g);
}

/* -0 + 0 is +0, and what an op does to a value is not for a pass to know. */
static void a_scalar_that_changes_nothing_is_still_applied(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 2, 3);
    int32_t a = graph_numbered(g, TRN_OP_add_scalar, x, 0);
    int32_t b = graph_numbered(g, TRN_OP_mul_scalar, a, 1);
    assert_int_equal(trn__graph_add_literal(g, 0, 0.0), TRN_OK);
    assert_int_equal(trn__graph_add_literal(g, 1, 1.0), TRN_OK);
    trn__graph_add_output(g, b, -1);
    trn_graph *p = graph_prepared(g);
    assert_int_equal(graph_count(p, TRN_OP_add_scalar), 1);
    assert_int_equal(graph_count(p, TRN_OP_mul_scalar), 1);
    trn__graph_free(p);
    trn__graph_free(g);
}

static void dead_nodes_go_and_checks_stay(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 2, 3);
    op1(g, TRN_OP_log, op1(g, TRN_OP_exp, x));
    graph_assign(g, x, op1(g, TRN_OP_neg, x));
    op1(g, TRN_OP_check_finite, op1(g, TRN_OP_sqrt, x));
    trn__graph_add_output(g, op1(g, TRN_OP_relu, x), -1);
    trn_graph *p = graph_prepared(g);
    assert_int_equal(p->n_nodes, 3);
    assert_int_equal(graph_count(p, TRN_OP_check_finite), 1);
    trn__graph_free(p);
    trn__graph_free(g);
}

/* ---- outputs ---- */

static void outputs_without_node_of_their_own_get_a_copy(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 2, 3);
    int32_t y = op1(g, TRN_OP_exp, x);
    trn__graph_add_output(g, x, -1);
    trn__graph_add_output(g, y, -1);
    trn__graph_add_output(g, y, -1);
    trn__graph_add_output(g, graph_transposed(g, y), -1);
    trn__graph_add_output(g, graph_assign(g, y, x), -1);
    trn_graph *p = graph_prepared(g);
    assert_int_equal(graph_count(p, TRN_OP_copy), 5);
    trn__graph_free(p);
    trn__graph_free(g);
}

static void an_output_inside_a_group_is_written(void **state)
{
    trn_graph *g = trn__graph_new(*state);
    int32_t x = graph_input(g, 2, 2, 3);
    int32_t y = op1(g, TRN_OP_exp, x);
    trn__graph_add_output(g, op1(g, TRN_OP_neg, op1(g, TRN_OP_relu, y)), -1);
    trn__graph_add_output(g, y, -1);
    trn_graph *p = graph_prepared(g);
    assert_int_equal(p->n_groups, 1);
    assert_int_equal(p->nodes[graph_find(p, TRN_OP_exp)].fused_only, 0);
    assert_int_equal(p->nodes[graph_find(p, TRN_OP_relu)].fused_only, 1);
    trn__graph_free(p);
    trn__graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(hash_is_fnv_over_the_stated_numbers),
        TRN_TEST(hash_and_equality_see_every_part),
        TRN_TEST(print_names_attributes_and_types),
        TRN_TEST(dot_has_balanced_brackets_and_an_edge_for_each_input),
        TRN_TEST(accessors_refuse_wrong_numbers_and_fill_smaller_structs),
        TRN_TEST(lists_of_any_length_reach_devices_that_know_of_them),
        TRN_TEST(flops_and_bytes_are_those_of_hand_counts),
        TRN_TEST(a_fused_group_reads_and_writes_once),
        TRN_TEST(equal_nodes_merge_and_random_ones_do_not),
        TRN_TEST(a_scalar_that_changes_nothing_is_still_applied),
        TRN_TEST(dead_nodes_go_and_checks_stay),
        TRN_TEST(outputs_without_node_of_their_own_get_a_copy),
        TRN_TEST(an_output_inside_a_group_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
