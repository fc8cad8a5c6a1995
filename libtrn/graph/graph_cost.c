/* SPDX-License-Identifier: Apache-2.0
 *
 * What a graph costs: floating-point operations, and bytes between memory and
 * processor.
 *
 * One operation is an addition, multiplication, division, root, comparison or
 * function (exp, tanh) of one element; copies, casts, choices and random bits
 * are none.  Composites count as their decompositions do, leaving out terms
 * that are smaller than an input by a whole axis.  Bytes are those that must
 * move if nothing is in a cache: each element read once, however often it is
 * used (a broadcast one too), each result written once.
 */
#include "libtrn/graph/graph_pass.h"

static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return trn__mul_size(a, b, &product) ? product : INT64_MAX;
}

static int64_t plus(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static int64_t numel(const trn_graph *g, int32_t v)
{
    const trn_arg *arg = &g->values[v].arg;
    return trn__numel(arg->rank, arg->shape);
}

/* 2 m n k for each matrix. */
static int64_t matmul_flops(const trn_graph *g, const trn__graph_node *n)
{
    const trn_matmul_attrs *at = (const trn_matmul_attrs *)n->attrs;
    const trn_arg *a = &g->values[n->in[0]].arg;
    int64_t k = a->rank == 0   ? 1
                : a->rank == 1 ? a->shape[0]
                               : a->shape[a->rank - (at->trans_a ? 2 : 1)];
    return times(times(numel(g, n->out[0]), k), 2);
}

/* Operations for each element of input 0 (embedding_grad: of its gradient). */
static int64_t special_flops(const trn_graph *g, const trn__graph_node *n)
{
    switch ((int)n->op) {
    case TRN_OP_add_scalar:
    case TRN_OP_mul_scalar:
    case TRN_OP_dropout:
    case TRN_OP_argmax:
    case TRN_OP_embedding_grad:
    case TRN_OP_scatter_add:
        return numel(g, n->in[0]);
    case TRN_OP_softmax:
    case TRN_OP_log_softmax:
    case TRN_OP_cross_entropy:
        return times(numel(g, n->in[0]), 5); /* max, -, exp, +, / */
    case TRN_OP_cross_entropy_grad:          /* and minus the target, times g */
        return times(numel(g, n->in[0]), 7);
    case TRN_OP_cross_entropy_weighted: /* and times weight, + */
    case TRN_OP_soft_cross_entropy:     /* and times target and weight, + */
        return times(numel(g, n->in[0]), 8);
    case TRN_OP_var: /* +, -, square, + */
        return times(numel(g, n->in[0]), 4);
    case TRN_OP_mse_loss: /* -, square, + */
        return times(numel(g, n->in[0]), 3);
    case TRN_OP_matmul:
        return matmul_flops(g, n);
    default:
        return 0;
    }
}

static int64_t update_flops(const trn_graph *g, const trn__graph_node *n)
{
    int64_t each = 0;
    switch ((int)n->op) {
    case TRN_OP_sgd_update:
        each = 4;
        break;
    case TRN_OP_sgd_momentum_update: {
        const trn_sgd_momentum_attrs *at =
            (const trn_sgd_momentum_attrs *)n->attrs;
        each = at->nesterov ? 9 : 7;
        break;
    }
    case TRN_OP_adamw_update:
        each = 14; /* 3 for m, 4 for v, 7 for p */
        break;
    default:
        break;
    }
    return times(each, numel(g, n->in[0]));
}

int64_t trn__graph_node_flops(const trn_graph *g, int32_t node)
{
    const trn__graph_node *n = &g->nodes[node];
    switch (trn__graph_op_of(n)->cls) {
    case TRN__GRAPH_UNARY:
    case TRN__GRAPH_BINARY:
    case TRN__GRAPH_COMPARE:
        return numel(g, n->out[0]);
    case TRN__GRAPH_REDUCE:
        return times(numel(g, n->in[0]), n->op == TRN_OP_norm        ? 2
                                         : n->op == TRN_OP_logsumexp ? 4
                                                                     : 1);
    case TRN__GRAPH_UPDATE:
        return update_flops(g, n);
    case TRN__GRAPH_RANDOM:
    case TRN__GRAPH_SPECIAL:
        return special_flops(g, n);
    case TRN__GRAPH_VIEW:
    default:
        return 0;
    }
}

static int64_t element_bytes(const trn_graph *g, int32_t v)
{
    return (int64_t)trn_dtype_size((trn_dtype)g->values[v].arg.dtype);
}

/* What node n reads of its input i. */
static int64_t read_bytes(const trn_graph *g, const trn__graph_node *n, int i)
{
    int64_t elements = trn__graph_elements(g, n->in[i]);
    bool picks = n->op == TRN_OP_embedding || n->op == TRN_OP_gather ||
                 n->op == TRN_OP_index_select;
    if (n->op == TRN_OP_assign && i == 0)
        return 0;
    if (picks && i == 0 && elements > numel(g, n->out[0]))
        elements = numel(g, n->out[0]);
    return times(elements, element_bytes(g, n->in[i]));
}

static bool met_before(const trn__graph_node *n, int i)
{
    for (int k = 0; k < i; k++) {
        if (n->in[k] == n->in[i])
            return true;
    }
    return false;
}

int64_t trn__graph_node_bytes(const trn_graph *g, int32_t node)
{
    const trn__graph_node *n = &g->nodes[node];
    int64_t bytes = 0;
    if (trn__graph_is_view(n))
        return 0;
    for (int i = 0; i < n->n_in; i++) {
        if (!met_before(n, i))
            bytes = plus(bytes, read_bytes(g, n, i));
    }
    for (int i = 0; i < n->n_out; i++)
        bytes = plus(bytes, trn__graph_value_bytes(g, n->out[i]));
    return bytes;
}

/* Has the group of node q, before q's input i, read that value already? */
static bool group_has_read(const trn_graph *g, int32_t q, int i)
{
    const trn__graph_node *n = &g->nodes[q];
    if (met_before(n, i))
        return true;
    for (int32_t p = q - 1; p >= 0 && g->nodes[p].group == n->group; p--) {
        for (int k = 0; k < g->nodes[p].n_in; k++) {
            if (g->nodes[p].in[k] == n->in[i])
                return true;
        }
    }
    return false;
}

/* The part of node q in a pass over its group. */
static int64_t fused_bytes(const trn_graph *g, int32_t q)
{
    const trn__graph_node *n = &g->nodes[q];
    int64_t bytes = 0;
    for (int i = 0; i < n->n_in; i++) {
        int32_t maker = g->values[n->in[i]].node;
        bool inside = maker >= 0 && g->nodes[maker].group == n->group;
        if (!inside && !group_has_read(g, q, i))
            bytes = plus(bytes, read_bytes(g, n, i));
    }
    for (int i = 0; i < n->n_out; i++) {
        if (!((n->fused_only >> i) & 1u))
            bytes = plus(bytes, trn__graph_value_bytes(g, n->out[i]));
    }
    return bytes;
}

int64_t trn__graph_bytes(const trn_graph *g)
{
    int64_t bytes = 0;
    for (int32_t q = 0; q < g->n_nodes; q++)
        bytes = plus(bytes, g->nodes[q].group < 0 ? trn__graph_node_bytes(g, q)
                                                  : fused_bytes(g, q));
    return bytes;
}
