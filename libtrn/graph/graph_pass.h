/* SPDX-License-Identifier: Apache-2.0
 *
 * The passes of trn__graph_prepare, one to a file, and what they share.
 *
 * A pass that fails (out of memory, or a graph that breaks a rule) has raised
 * its error; the graph may then only be freed.
 */
#ifndef TRN_LIBTRN_GRAPH_PASS_H
#define TRN_LIBTRN_GRAPH_PASS_H

#include "libtrn/graph/graph.h"
#include "libtrn/graph/op_class.h"

#define TRN__GROUP_NODES 24
#define TRN__GROUP_INPUTS 12

/* In the order in which they run. */
trn_status trn__graph_cse(trn_graph *g);
trn_status trn__graph_fold(trn_graph *g);
trn_status trn__graph_dead(trn_graph *g);
trn_status trn__graph_outputs(trn_graph *g);
trn_status trn__graph_state(trn_graph *g);
trn_status trn__graph_fuse(trn_graph *g);
void trn__graph_uses(trn_graph *g);
trn_status trn__graph_plan(trn_graph *g);

/* A part of trn__graph_state: moves UPDATE node p, which has not got its memory
 * yet, behind the readers of what it overwrites that do not need its results.
 * If it has moved, another node stands where it stood. */
struct trn__order; /* graph_order.h */
trn_status trn__graph_sink(struct trn__order *o, int32_t p, bool *moved);

/* The bases of all values, after a pass has rewired views. */
void trn__graph_layout(trn_graph *g);

static inline const trn__graph_op *trn__graph_op_of(const trn__graph_node *n)
{
    return &trn__graph_ops[n->op];
}

static inline bool trn__graph_is_update(const trn__graph_node *n)
{
    return trn__graph_ops[n->op].cls == TRN__GRAPH_UPDATE;
}

static inline bool trn__graph_is_view(const trn__graph_node *n)
{
    return trn__graph_ops[n->op].cls == TRN__GRAPH_VIEW;
}

/* Memory for n int32, all `fill`; raises. */
int32_t *trn__graph_numbers(trn_graph *g, int32_t n, int32_t fill);
/* Leaves the n nodes order[0], order[1], .. in this order, and the values that
 * they make; numbers both anew, inputs first. */
trn_status trn__graph_reorder(trn_graph *g, const int32_t *order, int32_t n);

/* The input that an UPDATE node overwrites to make value w. */
int trn__graph_written(const trn__graph_node *node, int32_t w);
/* Does v show all of its base's memory, in row-major order? */
bool trn__graph_is_whole(const trn_graph *g, int32_t v);
/* Elements in memory that v's layout touches: broadcast ones count once. */
int64_t trn__graph_elements(const trn_graph *g, int32_t v);
/* Bytes of a value with memory of its own. */
int64_t trn__graph_value_bytes(const trn_graph *g, int32_t v);

#endif
