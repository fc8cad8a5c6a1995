/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that check values: bad indices, integer divisors, non-finite numbers.
 * An eager run would report what they find, so they count as used.
 */
#include "libtrn/graph/graph.h"

bool trn__op_checks(uint32_t op, uint32_t dtype)
{
    switch (op) {
    case TRN_OP_check_finite:
    case TRN_OP_embedding:
    case TRN_OP_embedding_grad:
    case TRN_OP_gather:
    case TRN_OP_scatter_add:
    case TRN_OP_cross_entropy:
    case TRN_OP_cross_entropy_grad:
    case TRN_OP_cross_entropy_weighted:
    case TRN_OP_index_select:
    case TRN_OP_one_hot:
        return true;
    case TRN_OP_div:
        return !trn__is_float(dtype);
    default:
        return false;
    }
}

bool trn__graph_node_checks(const trn_graph *g, int32_t node)
{
    const trn__graph_node *n = &g->nodes[node];
    return n->n_out == 1 &&
           trn__op_checks(n->op, g->values[n->out[0]].arg.dtype);
}

bool trn__graph_has_checks(const trn_graph *g)
{
    for (int32_t i = 0; i < g->n_nodes; i++) {
        if (trn__graph_node_checks(g, i))
            return true;
    }
    return false;
}
