/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs for tests of devices without the core: hand-written arrays behind the
 * accessors of trn_host_services.  cpu_graph_run.h plans and runs them.
 */
#ifndef TRN_TESTS_CPU_GRAPH_H
#define TRN_TESTS_CPU_GRAPH_H

#include "cpu_host.h"

enum { MAX_NODES = 96, MAX_VALUES = 192, MAX_PORTS = 48 };

struct trn_graph {
    trn_graph_info info;
    trn_graph_node nodes[MAX_NODES];
    trn_graph_value values[MAX_VALUES];
    trn_graph_output outputs[MAX_PORTS];
    int32_t input_value[MAX_PORTS];
    trn_arg input[MAX_PORTS]; /* with its buffer, which stays as it is */
    double scalars[MAX_NODES * 8];
    uint64_t draws[MAX_NODES][2];
    uint64_t attrs[MAX_NODES][12];
    int64_t block_bytes[MAX_VALUES]; /* of the plan */
};

static inline bool get_info(const trn_graph *g, trn_graph_info *out)
{
    *out = g->info;
    return true;
}

static inline bool get_node_of(const trn_graph *g, int32_t i,
                               trn_graph_node *out)
{
    if (i < 0 || i >= g->info.n_nodes)
        return false;
    *out = g->nodes[i];
    return true;
}

static inline bool get_value(const trn_graph *g, int32_t i,
                             trn_graph_value *out)
{
    if (i < 0 || i >= g->info.n_values)
        return false;
    *out = g->values[i];
    return true;
}

static inline bool get_output(const trn_graph *g, int32_t i,
                              trn_graph_output *out)
{
    if (i < 0 || i >= g->info.n_outputs)
        return false;
    *out = g->outputs[i];
    return true;
}

static inline int32_t get_input(const trn_graph *g, int32_t i)
{
    return i < 0 || i >= g->info.n_inputs ? -1 : g->input_value[i];
}

static inline void offer_graphs(trn_host_services *s)
{
    s->graph_info = get_info;
    s->graph_node = get_node_of;
    s->graph_value = get_value;
    s->graph_output = get_output;
    s->graph_input = get_input;
}

/* ---- building ---- */

static inline trn_graph *graph_new(void)
{
    assert_true(n_storage < MAX_ARGS);
    trn_graph *g = calloc(1, sizeof *g);
    storage[n_storage++] = g;
    g->info.size = sizeof g->info;
    return g;
}

static inline int32_t add_value(trn_graph *g, int32_t node, const trn_arg *arg)
{
    assert_true(g->info.n_values < MAX_VALUES);
    const int32_t v = g->info.n_values++;
    g->values[v] = (trn_graph_value){
        .size = sizeof g->values[v],
        .node = node,
        .input = -1,
        .arg = *arg,
        .base = v,
        .state = -1,
        .output = -1,
        .arena_at = -1,
    };
    g->values[v].arg.buffer = NULL;
    return v;
}

static inline int32_t add_input(trn_graph *g, trn_arg a)
{
    const int32_t v = add_value(g, -1, &a);
    g->input[g->info.n_inputs] = a;
    g->input_value[g->info.n_inputs] = v;
    g->values[v].input = g->info.n_inputs++;
    return v;
}

static inline trn_arg like(uint32_t dtype, int rank, const int64_t *shape)
{
    trn_arg a = {.dtype = dtype, .rank = (uint32_t)rank};
    int64_t next = 1;
    for (int d = rank - 1; d >= 0; d--) {
        a.shape[d] = shape[d];
        a.stride[d] = next;
        next *= shape[d];
    }
    return a;
}

static inline trn_graph_node *add_node(trn_graph *g, uint32_t op, int n_in,
                                       const int32_t *in)
{
    assert_true(g->info.n_nodes < MAX_NODES);
    trn_graph_node *node = &g->nodes[g->info.n_nodes++];
    *node = (trn_graph_node){
        .size = sizeof *node,
        .op = op,
        .n_in = (uint32_t)n_in,
        .draw = -1,
        .group = -1,
    };
    for (int i = 0; i < n_in; i++)
        node->in[i] = in[i];
    return node;
}

static inline int32_t add_op(trn_graph *g, uint32_t op, int n_in,
                             const int32_t *in, const trn_arg *out)
{
    const int32_t i = g->info.n_nodes;
    trn_graph_node *node = add_node(g, op, n_in, in);
    node->n_out = 1;
    return node->out[0] = add_value(g, i, out);
}

/* To the node that was added last. */
static inline void add_scalar(trn_graph *g, double value)
{
    trn_graph_node *node = &g->nodes[g->info.n_nodes - 1];
    g->scalars[g->info.n_scalars] = value;
    node->scalar[node->n_scalars++] = g->info.n_scalars++;
}

static inline void add_attrs(trn_graph *g, const void *attrs, size_t bytes)
{
    trn_graph_node *node = &g->nodes[g->info.n_nodes - 1];
    memcpy(g->attrs[g->info.n_nodes - 1], attrs, bytes);
    node->attrs = g->attrs[g->info.n_nodes - 1];
    node->attrs_size = (uint32_t)bytes;
}

static inline void add_draw(trn_graph *g, uint64_t key, uint64_t draw)
{
    g->draws[g->info.n_draws][0] = key;
    g->draws[g->info.n_draws][1] = draw;
    g->nodes[g->info.n_nodes - 1].draw = g->info.n_draws++;
}

static inline int32_t add_view(trn_graph *g, int32_t of, const trn_arg *arg)
{
    const int32_t v = add_op(g, TRN_OP_permute, 1, &of, arg);
    g->values[v].base = g->values[of].base;
    return v;
}

/* The first new value; they are numbered one after the other. */
static inline int32_t add_update(trn_graph *g, uint32_t op, int n_in,
                                 const int32_t *in, uint32_t writes)
{
    const int32_t i = g->info.n_nodes, first = g->info.n_values;
    trn_graph_node *node = add_node(g, op, n_in, in);
    for (int k = 0; k < n_in; k++)
        if (writes >> k & 1u) {
            const trn_graph_value *old = &g->values[in[k]];
            const int32_t v = add_value(g, i, &old->arg);
            g->values[v].state = old->state >= 0 ? old->state : old->input;
            node->out[node->n_out++] = v;
        }
    return first;
}

static inline void add_output(trn_graph *g, int32_t v, int32_t alias)
{
    g->outputs[g->info.n_outputs] = (trn_graph_output){
        .size = sizeof(trn_graph_output), .value = v, .alias = alias};
    g->values[v].output = g->info.n_outputs++;
}

#endif
