/* SPDX-License-Identifier: Apache-2.0
 *
 * How near a node's result is to the CPU's, by the table of xla_bounds.h.
 */
#ifndef TRN_TESTS_XLA_NODE_H
#define TRN_TESTS_XLA_NODE_H

#include "tests/xla/xla_record.h"

/* The worst element of a node's result, as a part of its bound (0: equal, above
 * 1: too far), and where it is. */
double xla_node_share(trn_context *c, const xla_program *p, int32_t node,
                      const void *got, int64_t *where);
/* How far each element of a node's result, in v, may be off. */
void xla_node_bounds(trn_context *c, const trn_graph *g, int32_t node,
                     const xla_values *v, double *bound);
/* The node in f64 on its inputs in v, or on their magnitudes; to be freed. */
double *xla_node_wide(trn_context *c, const trn_graph *g, int32_t node,
                      const xla_values *v, bool magnitudes);
/* Would XLA read zeros where the CPU reads the smallest numbers? */
bool xla_node_reads_subnormal(const xla_program *p, int32_t node);

#endif
