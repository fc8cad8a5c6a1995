/* SPDX-License-Identifier: Apache-2.0
 *
 * Many small graphs side by side in one, compiled and run by a context's device
 * through its table, since a compile has a fixed cost far above that of a node.
 */
#ifndef TRN_TESTS_XLA_PACK_H
#define TRN_TESTS_XLA_PACK_H

#include "tests/xla/xla_record.h"

typedef struct xla_pack {
    trn_context *c; /* of the device that is judged */
    trn_graph *graph;
    trn_program *compiled;
    const void **in; /* the bytes of each input; borrowed */
    double *scalars;
    uint64_t (*draws)[2];
    void **out; /* the bytes of each output, after xla_pack_execute() */
    int32_t room_in, room_scalars, room_draws;
    trn_outcome outcome; /* of the last execution */
} xla_pack;

/* Where the inputs, scalars, draws and outputs of a part of a pack begin. */
typedef struct xla_part {
    int32_t in, scalar, draw, out;
} xla_part;

void xla_pack_open(xla_pack *p, trn_context *c);
/* Node `node` alone, its inputs those that the CPU gave it. */
xla_part xla_pack_alone(xla_pack *p, const xla_program *program, int32_t node);
/* That part with another node's inputs: one of the same signature. */
void xla_pack_bind(xla_pack *p, xla_part at, const xla_program *program,
                   int32_t node);
/* Two nodes whose signatures are equal differ in nothing but the values that
 * come with an execution. */
uint64_t xla_signature(const trn_graph *g, int32_t node);
/* The program as it is. */
xla_part xla_pack_whole(xla_pack *p, const xla_program *program);

/* False: the context has the error. */
bool xla_pack_compile(xla_pack *p);
/* Writes the inputs, executes, reads; any number of times.  False: p->outcome
 * tells what was wrong, or the context has the error. */
bool xla_pack_execute(xla_pack *p);
/* Frees all and clears the context's error. */
void xla_pack_close(xla_pack *p);

#endif
