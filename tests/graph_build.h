/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs by hand, node by node, and an interpreter that runs them on words.
 *
 * A value's elements are 64-bit words; an op mixes the words of its inputs, so
 * any wrong operand, order or memory shows in the result.
 */
#ifndef TRN_TESTS_GRAPH_BUILD_H
#define TRN_TESTS_GRAPH_BUILD_H

#include "harness.h"
#include "libtrn/graph/graph_pass.h"

/* All values are f64 where no type is given. */
int32_t graph_input(trn_graph *g, int rank, int64_t d0, int64_t d1);
/* An op on those inputs (-1: none) whose output is like the first one. */
int32_t graph_op(trn_graph *g, uint32_t op, int32_t a, int32_t b, int32_t c);
/* The same with a scalar or draw of that number. */
int32_t graph_numbered(trn_graph *g, uint32_t op, int32_t a, int32_t number);
/* [m, n] to [n]: the reduction over axis 0. */
int32_t graph_reduce(trn_graph *g, uint32_t op, int32_t a);
/* Views: [m, n] to [n, m]; [n] to [m, n]; rows [from, to); another shape. */
int32_t graph_transposed(trn_graph *g, int32_t a);
int32_t graph_expanded(trn_graph *g, int32_t a, int64_t m);
int32_t graph_rows(trn_graph *g, int32_t a, int64_t from, int64_t to);
int32_t graph_reshaped(trn_graph *g, int32_t a, int rank, int64_t d0,
                       int64_t d1);
/* UPDATE rows: the first new value. */
int32_t graph_update(trn_graph *g, uint32_t op, const int32_t *in);
int32_t graph_assign(trn_graph *g, int32_t x, int32_t y);

/* How many nodes of that op there are; the number of the first, or -1. */
int graph_count(const trn_graph *g, uint32_t op);
int32_t graph_find(const trn_graph *g, uint32_t op);
/* The whole text; valid until the next call. */
const char *graph_text(const trn_graph *g);
const char *graph_dot(const trn_graph *g);

/* Fails unless the plan and the places of g, which is prepared, are sound. */
void graph_check(const trn_graph *g);
/* Prepares a copy of g, checks it, and fails unless it leaves in memory what
 * the values of g are. */
trn_graph *graph_prepared(const trn_graph *g);

#endif
