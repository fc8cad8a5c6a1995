/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans: programs that a device has compiled, kept by the structure of their
 * graphs; and executions in flight.
 */
#ifndef TRN_LIBTRN_PLAN_H
#define TRN_LIBTRN_PLAN_H

#include "libtrn/ops/trace.h"

typedef struct trn__plan {
    struct trn__plan *prev, *next; /* most recently used first */
    trn_graph *raw;                /* as traced: a hit is compared with it */
    trn_graph *graph;              /* as compiled: names nodes in errors */
    trn_program *program;
    uint64_t run_bytes; /* of the device, while an execution runs */
    uint64_t bytes;     /* as the bound of plans counts */
    int32_t in_flight;
} trn__plan;

/* The plan of a raw graph: found, or compiled now.  NULL with the error. */
trn__plan *trn__plan_of(trn_context *c, const trn_graph *raw);
void trn__plans_free(trn_context *c);

/* The plan is used: it is the last to be forgotten. */
void trn__plan_touch(trn_context *c, trn__plan *plan);

/* Runs a plan with the open step's inputs, scalars and draws, and these output
 * buffers; waits.  what: for messages. */
trn_status trn__plan_run(trn_context *c, trn__plan *plan,
                         trn_buffer *const *outputs, trn_outcome *outcome);

/* The same without waiting. */
trn_status trn__plan_start(trn_context *c, trn__plan *plan,
                           trn_buffer *const *outputs, uint64_t *ticket);
/* The outcome of an execution; raises its error. */
trn_status trn__plan_finish(trn_context *c, trn__plan *plan, uint64_t ticket,
                            trn_outcome *outcome);

#endif
