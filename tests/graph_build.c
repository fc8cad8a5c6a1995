/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs by hand; see graph_build.h.
 */
#include <stdio.h>

#include "graph_build.h"

static trn_arg shape_of(int rank, int64_t d0, int64_t d1)
{
    trn_arg arg = {.dtype = TRN_F64, .rank = (uint32_t)rank};
    arg.shape[0] = rank > 0 ? d0 : 0;
    arg.shape[1] = rank > 1 ? d1 : 0;
    trn__row_major(&arg);
    return arg;
}

int32_t graph_input(trn_graph *g, int rank, int64_t d0, int64_t d1)
{
    trn__desc desc = {.dtype = TRN_F64, .rank = (uint32_t)rank};
    desc.shape[0] = rank > 0 ? d0 : 0;
    desc.shape[1] = rank > 1 ? d1 : 0;
    return trn__graph_add_input(g, &desc);
}

static trn__graph_node node_of(uint32_t op)
{
    trn__graph_node n;
    memset(&n, 0, sizeof n);
    n.op = op;
    n.draw = -1;
    for (int i = 0; i < TRN__MAX_VALUES; i++)
        n.scalar[i] = i;
    return n;
}

static void set_attrs(trn__graph_node *n, const void *attrs, size_t size)
{
    memcpy(n->attrs, attrs, size);
    n->attrs_size = (uint32_t)size;
}

int32_t graph_op(trn_graph *g, uint32_t op, int32_t a, int32_t b, int32_t c)
{
    trn__graph_node n = node_of(op);
    n.in[0] = a;
    n.in[1] = b;
    n.in[2] = c;
    trn_arg out = g->values[a].arg;
    return trn__graph_add_node(g, &n, 1, &out);
}

int32_t graph_numbered(trn_graph *g, uint32_t op, int32_t a, int32_t number)
{
    trn__graph_node n = node_of(op);
    n.in[0] = a;
    n.scalar[0] = number;
    n.draw = number;
    trn_arg out = g->values[a].arg;
    return trn__graph_add_node(g, &n, 1, &out);
}

int32_t graph_reduce(trn_graph *g, uint32_t op, int32_t a)
{
    trn_reduce_attrs at;
    memset(&at, 0, sizeof at);
    at.axes = 1;
    trn__graph_node n = node_of(op);
    n.in[0] = a;
    set_attrs(&n, &at, sizeof at);
    trn_arg out = shape_of(1, g->values[a].arg.shape[1], 0);
    return trn__graph_add_node(g, &n, 1, &out);
}

int32_t graph_transposed(trn_graph *g, int32_t a)
{
    trn_perm_attrs at;
    memset(&at, 0, sizeof at);
    at.perm.rank = 2;
    at.perm.axis[0] = 1;
    trn__graph_node n = node_of(TRN_OP_permute);
    n.in[0] = a;
    set_attrs(&n, &at, sizeof at);
    trn_arg out = g->values[a].arg;
    out.shape[0] = g->values[a].arg.shape[1];
    out.shape[1] = g->values[a].arg.shape[0];
    out.stride[0] = g->values[a].arg.stride[1];
    out.stride[1] = g->values[a].arg.stride[0];
    return trn__graph_add_node(g, &n, 1, &out);
}

int32_t graph_expanded(trn_graph *g, int32_t a, int64_t m)
{
    trn_shape_attrs at;
    memset(&at, 0, sizeof at);
    trn_arg out = g->values[a].arg;
    out.rank = 2;
    out.shape[1] = out.shape[0];
    out.stride[1] = out.stride[0];
    out.shape[0] = m;
    out.stride[0] = 0;
    at.shape.rank = 2;
    memcpy(at.shape.dim, out.shape, sizeof at.shape.dim);
    trn__graph_node n = node_of(TRN_OP_expand);
    n.in[0] = a;
    set_attrs(&n, &at, sizeof at);
    return trn__graph_add_node(g, &n, 1, &out);
}

int32_t graph_rows(trn_graph *g, int32_t a, int64_t from, int64_t to)
{
    trn_slice_attrs at;
    memset(&at, 0, sizeof at);
    at.start = from;
    at.stop = to;
    at.step = 1;
    trn__graph_node n = node_of(TRN_OP_slice);
    n.in[0] = a;
    set_attrs(&n, &at, sizeof at);
    trn_arg out = g->values[a].arg;
    out.offset += from * out.stride[0];
    out.shape[0] = to - from;
    return trn__graph_add_node(g, &n, 1, &out);
}

int32_t graph_reshaped(trn_graph *g, int32_t a, int rank, int64_t d0,
                       int64_t d1)
{
    trn_shape_attrs at;
    memset(&at, 0, sizeof at);
    trn_arg out = shape_of(rank, d0, d1);
    out.offset = g->values[a].arg.offset;
    at.shape.rank = rank;
    memcpy(at.shape.dim, out.shape, sizeof at.shape.dim);
    trn__graph_node n = node_of(TRN_OP_reshape);
    n.in[0] = a;
    set_attrs(&n, &at, sizeof at);
    return trn__graph_add_node(g, &n, 1, &out);
}

int32_t graph_update(trn_graph *g, uint32_t op, const int32_t *in)
{
    trn__graph_node n = node_of(op);
    trn_arg out[TRN__MAX_OUT];
    int n_out = 0;
    for (int i = 0; i < trn__graph_ops[op].n_in; i++) {
        n.in[i] = in[i];
        if ((trn__graph_ops[op].writes >> i) & 1)
            out[n_out++] = g->values[in[i]].arg;
    }
    return trn__graph_add_node(g, &n, n_out, out);
}

int32_t graph_assign(trn_graph *g, int32_t x, int32_t y)
{
    return graph_update(g, TRN_OP_assign, (int32_t[]){x, y});
}

int graph_count(const trn_graph *g, uint32_t op)
{
    int n = 0;
    for (int32_t q = 0; q < g->n_nodes; q++)
        n += g->nodes[q].op == op;
    return n;
}

int32_t graph_find(const trn_graph *g, uint32_t op)
{
    for (int32_t q = 0; q < g->n_nodes; q++) {
        if (g->nodes[q].op == op)
            return q;
    }
    return -1;
}

static char text[1 << 16];

static void append(void *user, const char *piece)
{
    size_t *used = user;
    int n = snprintf(text + *used, sizeof text - *used, "%s", piece);
    *used += (size_t)n;
    assert_true(*used < sizeof text);
}

const char *graph_text(const trn_graph *g)
{
    size_t used = 0;
    text[0] = '\0';
    trn__graph_print(g, append, &used);
    return text;
}

const char *graph_dot(const trn_graph *g)
{
    size_t used = 0;
    text[0] = '\0';
    trn__graph_print_dot(g, append, &used);
    return text;
}
