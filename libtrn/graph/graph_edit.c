/* SPDX-License-Identifier: Apache-2.0
 *
 * What the passes do to a graph: reorder and drop nodes; and the questions they
 * ask of values.
 */
#include "libtrn/graph/graph_pass.h"

int32_t *trn__graph_numbers(trn_graph *g, int32_t n, int32_t fill)
{
    size_t bytes = ((size_t)n + 1) * sizeof(int32_t);
    int32_t *numbers = trn__alloc(g->c, bytes);
    if (numbers == NULL) {
        trn__fail_memory(g->c, "graph", bytes);
        return NULL;
    }
    for (int32_t i = 0; i <= n; i++)
        numbers[i] = fill;
    return numbers;
}

void trn__graph_layout(trn_graph *g)
{
    for (int32_t i = 0; i < g->n_inputs; i++)
        g->values[g->inputs[i]].base = g->inputs[i];
    for (int32_t q = 0; q < g->n_nodes; q++) {
        const trn__graph_node *n = &g->nodes[q];
        for (int i = 0; i < n->n_out; i++) {
            bool view = trn__graph_is_view(n);
            g->values[n->out[i]].base =
                view ? g->values[n->in[0]].base : n->out[i];
        }
    }
}

/* New numbers of the values that stay: inputs, then what nodes make. */
static int32_t number_values(const trn_graph *g, const int32_t *order,
                             int32_t n, int32_t *number)
{
    int32_t next = 0;
    for (int32_t i = 0; i < g->n_inputs; i++)
        number[g->inputs[i]] = next++;
    for (int32_t k = 0; k < n; k++) {
        const trn__graph_node *node = &g->nodes[order[k]];
        for (int i = 0; i < node->n_out; i++)
            number[node->out[i]] = next++;
    }
    return next;
}

static void move_values(const trn_graph *g, const int32_t *number,
                        trn__graph_value *values)
{
    for (int32_t v = 0; v < g->n_values; v++) {
        if (number[v] < 0)
            continue;
        values[number[v]] = g->values[v];
        values[number[v]].base = number[g->values[v].base];
    }
}

static void move_nodes(const trn_graph *g, const int32_t *order, int32_t n,
                       const int32_t *number, trn__graph_node *nodes,
                       trn__graph_value *values)
{
    for (int32_t k = 0; k < n; k++) {
        trn__graph_node *node = &nodes[k];
        *node = g->nodes[order[k]];
        for (int i = 0; i < node->n_in; i++)
            node->in[i] = number[node->in[i]];
        for (int i = 0; i < node->n_out; i++) {
            node->out[i] = number[node->out[i]];
            values[node->out[i]].node = k;
        }
    }
}

trn_status trn__graph_reorder(trn_graph *g, const int32_t *order, int32_t n)
{
    trn_context *c = g->c;
    size_t node_bytes = ((size_t)n + 1) * sizeof *g->nodes;
    size_t value_bytes = ((size_t)g->n_values + 1) * sizeof *g->values;
    int32_t *number = trn__graph_numbers(g, g->n_values, -1);
    trn__graph_node *nodes = trn__alloc(c, node_bytes);
    trn__graph_value *values = trn__alloc(c, value_bytes);
    if (number == NULL || nodes == NULL || values == NULL) {
        trn__free(c, number);
        trn__free(c, nodes);
        trn__free(c, values);
        return trn__fail_memory(c, "graph", node_bytes + value_bytes);
    }
    int32_t n_values = number_values(g, order, n, number);
    move_values(g, number, values);
    move_nodes(g, order, n, number, nodes, values);
    for (int32_t i = 0; i < g->n_inputs; i++)
        g->inputs[i] = number[g->inputs[i]];
    for (int32_t i = 0; i < g->n_outputs; i++)
        g->outputs[i].value = number[g->outputs[i].value];
    trn__free(c, number);
    trn__free(c, g->nodes);
    trn__free(c, g->values);
    g->nodes = nodes;
    g->values = values;
    g->room_nodes = n + 1;
    g->room_values = g->n_values + 1;
    g->n_nodes = n;
    g->n_values = n_values;
    return TRN_OK;
}

int trn__graph_written(const trn__graph_node *node, int32_t w)
{
    uint32_t writes = trn__graph_op_of(node)->writes;
    int k = 0;
    for (int i = 0; i < node->n_in; i++) {
        if (!((writes >> i) & 1u))
            continue;
        if (node->out[k++] == w)
            return i;
    }
    return -1;
}

bool trn__graph_is_whole(const trn_graph *g, int32_t v)
{
    const trn_arg *view = &g->values[v].arg;
    const trn_arg *base = &g->values[g->values[v].base].arg;
    return view->offset == 0 && trn__is_contiguous(view) &&
           trn__numel(view->rank, view->shape) ==
               trn__numel(base->rank, base->shape);
}

int64_t trn__graph_elements(const trn_graph *g, int32_t v)
{
    const trn_arg *arg = &g->values[v].arg;
    int64_t n = 1;
    for (uint32_t d = 0; d < arg->rank; d++) {
        if (arg->stride[d] != 0 || arg->shape[d] == 0)
            n *= arg->shape[d];
    }
    return n;
}

int64_t trn__graph_value_bytes(const trn_graph *g, int32_t v)
{
    const trn_arg *arg = &g->values[v].arg;
    return trn__numel(arg->rank, arg->shape) *
           (int64_t)trn_dtype_size((trn_dtype)arg->dtype);
}
