/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU as a graph device, without the core: programs give the bits of
 * run_op, on both kernel sets, and say what failed.  Fused groups:
 * test_cpu_fused.c.
 */
#include "cpu_row_case.h"

/* ---- every row ---- */

static void every_row_alone_gives_the_bits_of_run_op(void **state)
{
    (void)state;
    for (int r = 0; r < N_ROWS; r++) {
        row_case c;
        int32_t in[4];
        const trn_op_call question = {.op = rows[r].op};
        if (rows[r].cls == CLASS_VIEW ||
            !trn__cpu_backend.supports(NULL, &question))
            continue; /* no memory is touched, or it has no kernel */
        fill_case(&c, &rows[r]);
        trn_graph *g = graph_new();
        uint64_t seed = 1;
        for (int i = 0; i < c.n_in; i++)
            in[i] = add_input(g, c.in[i]);
        if (rows[r].cls == CLASS_UPDATE) {
            const int32_t y = add_update(g, c.op, c.n_in, in, rows[r].writes);
            for (int32_t v = y; v < g->info.n_values; v++)
                add_output(g, v, g->values[v].state);
        } else {
            add_output(g, add_op(g, c.op, c.n_in, in, &c.out), -1);
        }
        for (int i = 0; i < c.n_values; i++)
            add_scalar(g, c.values[i]);
        if (c.attrs != NULL)
            add_attrs(g, c.attrs, c.attrs_size);
        if (rows[r].cls == CLASS_RANDOM)
            add_draw(g, 77, 3);
        plan(g, 4, &seed);
        for (int d = 0; d < n_devices; d++)
            check_graph(g, d, rows[r].name, 0);
    }
}

/* ---- state ---- */

static trn_graph *training_step(void)
{
    static const int64_t n[] = {70, 30};
    trn_graph *g = graph_new();
    const trn_arg f32 = like(TRN_F32, 2, n);
    int32_t in[4];
    uint64_t seed = 1;
    in[0] = add_input(g, ones_of(TRN_F32, 2, n, PLAIN, 1));
    in[2] = add_input(g, zeros(TRN_F32, 2, n, PLAIN));
    in[3] = add_input(g, zeros(TRN_F32, 2, n, PLAIN));
    const int32_t x = add_input(g, ones_of(TRN_F32, 2, n, SWAPPED, 2));
    const int32_t pair[] = {in[0], x};
    in[1] = add_op(g, TRN_OP_mul, 2, pair, &f32);
    const int32_t p = add_update(g, TRN_OP_adamw_update, 4, in, 0xd);
    static const double values[] = {0.99, 0.1, 0.999, 0.001, 0.01, 0.5, 1e-8};
    for (int i = 0; i < 7; i++)
        add_scalar(g, values[i]);
    const int32_t after[] = {p, in[1]};
    const int32_t loss = add_op(g, TRN_OP_sub, 2, after, &f32);
    for (int32_t i = 0; i < 3; i++)
        add_output(g, p + i, g->values[p + i].state);
    add_output(g, loss, -1);
    plan(g, 0, &seed);
    return g;
}

static void state_is_updated_in_place(void **state)
{
    (void)state;
    for (int d = 0; d < n_devices; d++)
        check_graph(training_step(), d, "adamw", 0);
}

static void a_new_value_with_memory_of_its_own_leaves_the_old_one(void **state)
{
    (void)state;
    static const int64_t n[] = {3000};
    trn_graph *g = graph_new();
    const int32_t p = add_input(g, ones_of(TRN_F16, 1, n, PLAIN, 1));
    const int32_t in[] = {p, add_input(g, ones_of(TRN_F16, 1, n, GAPS, 2))};
    const int32_t q = add_update(g, TRN_OP_sgd_update, 2, in, 1);
    const trn_arg y = like(TRN_F16, 1, n);
    add_scalar(g, 0.1);
    add_scalar(g, 0.01);
    g->values[q].state = -1;
    const int32_t both[] = {p, q};
    const int32_t d0 = add_op(g, TRN_OP_sub, 2, both, &y);
    uint64_t seed = 1;
    add_output(g, d0, -1);
    add_output(g, q, -1);
    plan(g, 0, &seed);
    for (int d = 0; d < n_devices; d++)
        check_graph(g, d, "sgd", 0);
}

/* An output that is an input, a value put out twice, a replaced input. */
static void outputs_that_lie_elsewhere_are_copied(void **state)
{
    (void)state;
    static const int64_t n[] = {33, 65}, turned[] = {65, 33};
    trn_graph *g = graph_new();
    const trn_arg f32 = like(TRN_F32, 2, n);
    const int32_t x = add_input(g, ones_of(TRN_F32, 2, n, SWAPPED, 1));
    const int32_t s = add_input(g, ones_of(TRN_F32, 2, n, PLAIN, 2));
    const int32_t y = add_op(g, TRN_OP_neg, 1, &x, &f32);
    trn_arg view = like(TRN_F32, 2, turned);
    view.stride[0] = 1;
    view.stride[1] = 65;
    const int32_t t = add_view(g, y, &view);
    uint64_t seed = 1;
    add_output(g, x, -1);
    add_output(g, t, -1);
    plan(g, 0, &seed);
    add_output(g, y, s); /* after the plan: y stays in the arena */
    g->values[y].output = -1;
    g->outputs[2].alias = g->values[s].input;
    for (int d = 0; d < n_devices; d++)
        check_graph(g, d, "copied", 0);
}

/* ---- what varies ---- */

static void scalars_and_draws_change_without_compiling(void **state)
{
    (void)state;
    static const int64_t n[] = {5000};
    const trn_arg y = like(TRN_F32, 1, n);
    for (int d = 0; d < n_devices; d++) {
        trn_graph *g = graph_new();
        trn_arg want[MAX_VALUES];
        ports p;
        const int32_t x = add_input(g, ones_of(TRN_F32, 1, n, PLAIN, 1));
        const int32_t a = add_op(g, TRN_OP_mul_scalar, 1, &x, &y);
        add_scalar(g, 0.5);
        const int32_t b = add_op(g, TRN_OP_dropout, 1, &a, &y);
        add_scalar(g, 0.25);
        add_draw(g, 1, 1);
        g->nodes[0].fused_only = 1;
        g->nodes[0].group = g->nodes[1].group = 0;
        add_output(g, b, -1);
        trn_program *program = compile(d, g);
        for (int i = 0; i < 5; i++) {
            g->scalars[0] = 0.5 + i;
            g->scalars[1] = 0.25 * i;
            g->draws[0][1] = (uint64_t)i;
            make_ports(g, &p);
            assert_int_equal(execute(d, program, &p.e).status, TRN_OK);
            reference(g, d, want);
            trn_arg got = y;
            got.buffer = p.outputs[0];
            check_same(&got, &want[b], "scalars", i);
        }
        trn__cpu_backend.release(devices[d], program);
    }
}

/* ---- failures ---- */

/* y = a / b; before it, if asked for, an update of a state. */
static trn_graph *division(bool update_first)
{
    static const int64_t n[] = {4000};
    trn_graph *g = graph_new();
    const trn_arg y = like(TRN_I32, 1, n);
    const trn_arg b = ones_of(TRN_I32, 1, n, PLAIN, 2);
    uint64_t seed = 1;
    for (int64_t i = 0; i < n[0]; i++)
        set(&b, i, i == 1234 || i == 3000 ? 0 : 7);
    const int32_t in[] = {add_input(g, ones_of(TRN_I32, 1, n, PLAIN, 1)),
                          add_input(g, b)};
    const int32_t s[] = {add_input(g, ones_of(TRN_I32, 1, n, PLAIN, 3)), in[0]};
    int32_t t;
    if (update_first)
        t = add_update(g, TRN_OP_assign, 2, s, 1);
    const int32_t q = add_op(g, TRN_OP_div, 2, in, &y);
    g->nodes[g->info.n_nodes - 1].group = 0;
    g->nodes[g->info.n_nodes - 1].checks = 1;
    const int32_t r = add_op(g, TRN_OP_neg, 1, &q, &y);
    g->nodes[g->info.n_nodes - 1].group = 0;
    if (!update_first)
        t = add_update(g, TRN_OP_assign, 2, s, 1);
    add_output(g, r, -1);
    add_output(g, t, 2);
    plan(g, 4, &seed);
    return g;
}

static void the_first_failing_node_stops_and_is_named(void **state)
{
    (void)state;
    for (int d = 0; d < n_devices; d++)
        for (int update_first = 0; update_first < 2; update_first++) {
            const trn_graph *g = division(update_first);
            trn_program *program = compile(d, g);
            ports p;
            make_ports(g, &p);
            const trn_outcome o = execute(d, program, &p.e);
            assert_int_equal(o.status, TRN_ERR_VALUE);
            assert_int_equal(o.node, update_first);
            assert_int_equal(o.report.kind, TRN_REPORT_ZERO_DIVISOR);
            assert_int_equal(o.report.position, 1234);
            assert_int_equal(o.inputs_lost, 0);
            trn_arg got = g->input[2]; /* an update before it is taken back */
            got.buffer = p.inputs[2];
            check_same(&got, &g->input[2], "state", 0);
            trn__cpu_backend.release(devices[d], program);
        }
}

static void memory_that_is_refused_is_reported(void **state)
{
    (void)state;
    for (int d = 0; d < n_devices; d++) {
        const trn_graph *g = training_step();
        trn_program *program = NULL;
        uint64_t ticket = 99;
        ports p;
        const int64_t live = hosts[d].live;
        hosts[d].no_memory = true;
        assert_int_equal(trn__cpu_backend.compile(devices[d], g, &program),
                         TRN_ERR_NOMEM);
        assert_null(program);
        hosts[d].no_memory = false;
        program = compile(d, g);
        make_ports(g, &p);
        hosts[d].no_memory = true;
        assert_int_equal(
            trn__cpu_backend.execute(devices[d], program, &p.e, &ticket),
            TRN_ERR_NOMEM);
        hosts[d].no_memory = false;
        assert_int_equal(ticket, 99);
        trn_arg got = g->input[0];
        got.buffer = p.inputs[0];
        check_same(&got, &g->input[0], "state", 0);
        assert_int_equal(execute(d, program, &p.e).status, TRN_OK);
        trn__cpu_backend.release(devices[d], program);
        assert_int_equal(hosts[d].live, live);
    }
}

static void executions_that_do_not_fit_and_bad_graphs_are_refused(void **state)
{
    (void)state;
    trn_graph *g = training_step();
    trn_program *program = compile(0, g);
    uint64_t ticket = 0;
    trn_outcome o;
    ports p;
    make_ports(g, &p);
    p.e.n_scalars--;
    assert_int_equal(
        trn__cpu_backend.execute(devices[0], program, &p.e, &ticket),
        TRN_ERR_ARG);
    assert_int_equal(trn__cpu_backend.wait(devices[0], 1u << 30, &o),
                     TRN_ERR_ARG);
    trn__cpu_backend.release(devices[0], program);
    const int64_t live = hosts[0].live;
    g->nodes[0].in[0] = 5000;
    assert_int_equal(trn__cpu_backend.compile(devices[0], g, &program),
                     TRN_ERR_INTERNAL);
    assert_null(program);
    g->nodes[0].in[0] = 0;
    g->nodes[0].op = 127;
    assert_int_equal(trn__cpu_backend.compile(devices[0], g, &program),
                     TRN_ERR_UNSUPPORTED);
    assert_int_equal(hosts[0].live, live);
}

/* ---- regions ---- */

static int n_regions;

static void region_begin(void *host)
{
    (void)host;
    n_regions++;
}

static void region_end(void *host)
{
    (void)host;
    n_regions += 1000;
}

static void one_region_is_open_per_execution_if_the_host_has_them(void **state)
{
    (void)state;
    const trn_graph *g = training_step();
    trn_program *program = compile(0, g);
    ports p;
    make_ports(g, &p);
    services[0].region_begin = region_begin;
    services[0].region_end = region_end;
    n_regions = 0;
    execute(0, program, &p.e);
    assert_int_equal(n_regions, 1001);
    services[0].size = offsetof(trn_host_services, region_begin);
    execute(0, program, &p.e);
    assert_int_equal(n_regions, 1001);
    services[0].size = sizeof services[0];
    services[0].region_begin = services[0].region_end = NULL;
    trn__cpu_backend.release(devices[0], program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CPU_TEST(every_row_alone_gives_the_bits_of_run_op),
        CPU_TEST(state_is_updated_in_place),
        CPU_TEST(a_new_value_with_memory_of_its_own_leaves_the_old_one),
        CPU_TEST(outputs_that_lie_elsewhere_are_copied),
        CPU_TEST(scalars_and_draws_change_without_compiling),
        CPU_TEST(the_first_failing_node_stops_and_is_named),
        CPU_TEST(memory_that_is_refused_is_reported),
        CPU_TEST(executions_that_do_not_fit_and_bad_graphs_are_refused),
        CPU_TEST(one_region_is_open_per_execution_if_the_host_has_them),
    };
    return cmocka_run_group_tests(tests, open_for_graphs, close_all);
}
