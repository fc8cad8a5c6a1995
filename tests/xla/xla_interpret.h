/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph's values by the CPU's kernels, one node after the other, each value
 * packed in memory of its own; and the same graph with every float in f64.
 *
 * Nothing here looks at the memory that the passes gave to values: a write
 * makes a new value, a view is a copy.
 */
#ifndef TRN_TESTS_XLA_INTERPRET_H
#define TRN_TESTS_XLA_INTERPRET_H

#include "libtrn/graph/graph_pass.h"

/* What comes with an execution of a graph, and its values. */
typedef struct xla_values {
    const double *scalars;
    const uint64_t (*draws)[2];
    bool wide; /* floats are f64 */
    int32_t n;
    void **at; /* by value; freed by xla_values_free() */
    /* of the node that failed */
    int32_t node;
    trn_op_report report;
} xla_values;

/* Room for the values of g; the inputs' are the caller's to fill. */
void xla_values_open(xla_values *v, const trn_graph *g);
/* Inputs of `v`, which is wide, from those of `narrow`. */
void xla_values_widen(xla_values *v, const trn_graph *g,
                      const xla_values *narrow);
void xla_values_free(xla_values *v);

/* The values of all nodes; c: whose reference kernels run. */
int32_t xla_interpret(trn_context *c, const trn_graph *g, xla_values *v);

/* The value of the next node. */
int32_t xla_interpret_step(trn_context *c, const trn_graph *g, xla_values *v,
                           int32_t node);

/* One node: in[] and out[] are packed arrays, in its order; an input that it
 * overwrites is left alone. */
int32_t xla_interpret_node(trn_context *c, const trn_graph *g, int32_t node,
                           const xla_values *v, void *const *in,
                           void *const *out, trn_op_report *report);

/* Type, elements and bytes of a value. */
uint32_t xla_dtype(const trn_graph *g, int32_t value, bool wide);
int64_t xla_numel(const trn_graph *g, int32_t value);
size_t xla_bytes(const trn_graph *g, int32_t value, bool wide);
/* Memory, at least a byte, that starts as zeros; never NULL. */
void *xla_memory(size_t bytes);
double xla_element(uint32_t dtype, const void *data, int64_t i);
double xla_most(double a, double b); /* the larger; a, if b is NaN */
/* n floats of that type as f64; magnitudes only, if asked for. */
void xla_widen(uint32_t dtype, const void *from, int64_t n, bool magnitude,
               double *to);

#endif
