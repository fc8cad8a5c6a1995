/* SPDX-License-Identifier: Apache-2.0
 *
 * What a random program runs: its step as a graph of primitives, the inputs of
 * one execution, and the CPU's value of each node, in f32 and in f64.
 *
 * A context's CPU device is given another compile and execute, which take the
 * graph as any device would, interpret it and keep the last execution.
 */
#ifndef TRN_TESTS_XLA_RECORD_H
#define TRN_TESTS_XLA_RECORD_H

#include "tests/random_program.h"
#include "tests/xla/xla_interpret.h"

typedef enum xla_fate {
    XLA_RECORDED,
    XLA_NOTHING_RUN, /* the step has no result */
    XLA_FAILED       /* the program has an error, as some have */
} xla_fate;

typedef struct xla_program {
    uint64_t seed;
    trn_graph *graph; /* of the context that xla_record() was given */
    double *scalars;
    uint64_t (*draws)[2];
    xla_values narrow, wide;
    bool has_wide; /* the f64 run had no error */
} xla_program;

/* Runs the program of a seed and keeps its last execution, in memory of c. */
xla_fate xla_record(trn_context *c, uint64_t seed, xla_program *p);
void xla_program_free(xla_program *p);

#endif
