/* SPDX-License-Identifier: Apache-2.0
 *
 * Running the graphs of cpu_graph.h: a memory plan, a reference that runs the
 * nodes one by one, each value in memory of its own, and a comparison by bits.
 */
#ifndef TRN_TESTS_CPU_GRAPH_RUN_H
#define TRN_TESTS_CPU_GRAPH_RUN_H

#include "cpu_graph.h"

/* ---- the memory plan ---- */

static inline int64_t bytes_of(const trn_arg *a)
{
    return numel(a) * (int64_t)trn__cpu_size(a->dtype);
}

static inline int32_t last_use(const trn_graph *g, int32_t base)
{
    int32_t last = g->values[base].node;
    for (int32_t v = 0; v < g->info.n_values; v++)
        if (g->values[v].base == base && g->values[v].output >= 0)
            return g->info.n_nodes;
    for (int32_t i = 0; i < g->info.n_nodes; i++)
        for (uint32_t k = 0; k < g->nodes[i].n_in; k++)
            if (g->values[g->nodes[i].in[k]].base == base)
                last = i;
    return last;
}

/* Are all uses in v's group, and none a view? */
static inline bool inside_group(const trn_graph *g, int32_t v)
{
    const int32_t group = g->nodes[g->values[v].node].group;
    if (group < 0 || g->values[v].output >= 0)
        return false;
    for (int32_t i = 0; i < g->info.n_values; i++)
        if (i != v && g->values[i].base == v)
            return false;
    for (int32_t i = 0; i < g->info.n_nodes; i++)
        for (uint32_t k = 0; k < g->nodes[i].n_in; k++)
            if (g->nodes[i].in[k] == v && g->nodes[i].group != group)
                return false;
    return true;
}

/*
 * Fused values (of 4, `fused` many) stay without memory; the others go into the
 * arena, into blocks whose value no later node uses, if they are large enough:
 * rudely, as if there were no groups.
 */
static inline void plan(trn_graph *g, uint64_t fused, uint64_t *seed)
{
    int32_t owner[MAX_VALUES];
    int64_t at[MAX_VALUES], size[MAX_VALUES];
    int n = 0;
    for (int32_t v = 0; v < g->info.n_values; v++) {
        trn_graph_value *x = &g->values[v];
        if (x->base != v || x->input >= 0 || x->state >= 0 || x->output >= 0)
            continue;
        if (inside_group(g, v) && next_bits(seed) % 4 < fused) {
            g->nodes[x->node].fused_only = 1;
            continue;
        }
        const int64_t bytes = bytes_of(&x->arg);
        int b = 0;
        while (b < n && (size[b] < bytes || last_use(g, owner[b]) >= x->node))
            b++;
        if (b == n) {
            size[n] = (bytes + 63) / 64 * 64;
            at[n++] = (int64_t)g->info.arena_bytes;
            g->info.arena_bytes += (uint64_t)size[b];
        }
        owner[b] = v;
        x->arena_at = at[b];
    }
}

/* ---- the reference ---- */

static inline trn_buffer *copy_of(const trn_arg *a)
{
    int64_t high = a->offset;
    for (uint32_t d = 0; d < a->rank; d++)
        high += a->shape[d] > 0 ? (a->shape[d] - 1) * a->stride[d] : 0;
    const size_t bytes = (size_t)(high + 1) * trn__cpu_size(a->dtype);
    assert_true(n_storage < MAX_ARGS);
    char *copy = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (numel(a) > 0)
        memcpy(copy, a->buffer, bytes);
    return storage[n_storage++] = copy;
}

static inline int32_t run_node(const trn_graph *g, int device, int32_t i,
                               const trn_arg *value, bool update,
                               trn_op_report *report)
{
    const trn_graph_node *node = &g->nodes[i];
    const trn_arg *in[8], *out[4];
    double values[8];
    for (uint32_t k = 0; k < node->n_in; k++)
        in[k] = &value[node->in[k]];
    for (uint32_t k = 0; k < node->n_out; k++)
        out[k] = &value[node->out[k]];
    for (uint32_t k = 0; k < node->n_scalars; k++)
        values[k] = g->scalars[node->scalar[k]];
    const trn_op_call call = {
        .size = sizeof call,
        .op = node->op,
        .n_in = node->n_in,
        .n_out = update ? 0 : node->n_out,
        .in = in,
        .out = out,
        .attrs = node->attrs,
        .attrs_size = node->attrs_size,
        .n_values = node->n_scalars,
        .values = values,
        .key = node->draw >= 0 ? g->draws[node->draw][0] : 0,
        .draw = node->draw >= 0 ? g->draws[node->draw][1] : 0,
        .report = report,
    };
    return trn__cpu_backend.run_op(devices[device], &call);
}

static inline bool is_update(const trn_graph_node *node)
{
    return node->op >= TRN_OP_assign && node->op <= TRN_OP_sgd_momentum_update;
}

/* All values, by run_op alone. */
static inline void reference(const trn_graph *g, int device, trn_arg *value)
{
    for (int32_t v = 0; v < g->info.n_values; v++)
        value[v] = g->values[v].arg;
    for (int32_t i = 0; i < g->info.n_inputs; i++)
        value[g->input_value[i]].buffer = copy_of(&g->input[i]);
    for (int32_t i = 0; i < g->info.n_nodes; i++) {
        const trn_graph_node *node = &g->nodes[i];
        const uint32_t writes = node->op == TRN_OP_sgd_momentum_update ? 0x5
                                : node->op == TRN_OP_adamw_update      ? 0xd
                                                                       : 0x1;
        if (node->op == TRN_OP_permute) {
            value[node->out[0]].buffer = value[node->in[0]].buffer;
            continue;
        }
        if (!is_update(node)) {
            trn_arg *y = &value[node->out[0]];
            *y = zeros(y->dtype, (int)y->rank, y->shape, PLAIN);
            assert_int_equal(run_node(g, device, i, value, false, NULL), 0);
            continue;
        }
        trn_arg after[MAX_VALUES];
        memcpy(after, value, sizeof after);
        for (uint32_t k = 0, o = 0; k < node->n_in; k++)
            if (writes >> k & 1u) {
                const int32_t from = node->in[k], to = node->out[o++];
                value[to].buffer = after[to].buffer = copy_of(&value[from]);
                after[from] = after[to];
            }
        assert_int_equal(run_node(g, device, i, after, true, NULL), 0);
    }
}

/* Equal bits; NaNs by place. */
static inline void check_same(const trn_arg *got, const trn_arg *want,
                              const char *what, int seed)
{
    const size_t size = trn__cpu_size(got->dtype);
    for (int64_t i = 0; i < numel(got); i++) {
        const char *a =
            (const char *)got->buffer + (size_t)place(got, i) * size;
        const char *b =
            (const char *)want->buffer + (size_t)place(want, i) * size;
        if (memcmp(a, b, size) == 0)
            continue;
        const double x = get(got, i), y = get(want, i);
        if (x == x || y == y)
            fail_msg("%s, seed %d: element %d is %a, not %a", what, seed,
                     (int)i, x, y);
    }
}

/* ---- execution ---- */

typedef struct ports {
    trn_buffer *inputs[MAX_PORTS], *outputs[MAX_PORTS];
    trn_execution e;
} ports;

/* Fresh copies of the inputs, fresh outputs. */
static inline void make_ports(const trn_graph *g, ports *p)
{
    for (int32_t i = 0; i < g->info.n_inputs; i++)
        p->inputs[i] = copy_of(&g->input[i]);
    for (int32_t i = 0; i < g->info.n_outputs; i++) {
        const trn_arg *a = &g->values[g->outputs[i].value].arg;
        p->outputs[i] =
            g->outputs[i].alias >= 0
                ? p->inputs[g->outputs[i].alias]
                : zeros(a->dtype, (int)a->rank, a->shape, PLAIN).buffer;
    }
    p->e = (trn_execution){
        .size = sizeof p->e,
        .n_inputs = (uint32_t)g->info.n_inputs,
        .n_outputs = (uint32_t)g->info.n_outputs,
        .n_scalars = (uint32_t)g->info.n_scalars,
        .n_draws = (uint32_t)g->info.n_draws,
        .inputs = p->inputs,
        .outputs = p->outputs,
        .scalars = g->scalars,
        .draws = (const uint64_t(*)[2])g->draws,
    };
}

static inline trn_outcome execute(int device, trn_program *program,
                                  const trn_execution *e)
{
    trn_outcome outcome = {.size = sizeof outcome, .status = 1};
    uint64_t ticket = 0;
    assert_int_equal(
        trn__cpu_backend.execute(devices[device], program, e, &ticket), TRN_OK);
    assert_int_equal(trn__cpu_backend.poll(devices[device], ticket), 1);
    int32_t status = trn__cpu_backend.wait(devices[device], ticket, &outcome);
    assert_int_equal(status, outcome.status);
    return outcome;
}

static inline trn_program *compile(int device, const trn_graph *g)
{
    trn_program *program = NULL;
    assert_int_equal(trn__cpu_backend.compile(devices[device], g, &program),
                     TRN_OK);
    assert_non_null(program);
    return program;
}

/* Compiles, runs, compares all outputs with the reference on that device. */
static inline void check_graph(const trn_graph *g, int device, const char *what,
                               int seed)
{
    trn_arg want[MAX_VALUES];
    ports p;
    trn_program *program = compile(device, g);
    reference(g, device, want);
    make_ports(g, &p);
    for (int round = 0; round < 2; round++) {
        if (round == 1)
            make_ports(g, &p);
        const trn_outcome outcome = execute(device, program, &p.e);
        assert_int_equal(outcome.status, TRN_OK);
        for (int32_t i = 0; i < g->info.n_outputs; i++) {
            const trn_graph_output *o = &g->outputs[i];
            const trn_arg *a = &g->values[o->value].arg;
            trn_arg got = o->alias >= 0
                              ? g->values[g->input_value[o->alias]].arg
                              : like(a->dtype, (int)a->rank, a->shape);
            got.buffer = p.outputs[i];
            check_same(&got, &want[o->value], what, seed);
        }
    }
    trn__cpu_backend.release(devices[device], program);
}

static inline int open_for_graphs(void **state)
{
    const int failed = open_all(state);
    for (int d = 0; d < n_devices; d++)
        offer_graphs(&services[d]);
    return failed;
}

#endif
