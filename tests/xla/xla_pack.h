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
    const void **in; /* the bytes of each input; borrowed */
    double *scalars;
    uint64_t (*draws)[2];
    void **out; /* the bytes of each output, after xla_pack_run() */
    int32_t room_in, room_scalars, room_draws;
    trn_outcome outcome;
} xla_pack;

void xla_pack_open(xla_pack *p, trn_context *c);
/* Node `node` alone, its inputs those that the CPU gave it.  Its outputs are
 * the pack's from *first on. */
void xla_pack_alone(xla_pack *p, const xla_program *program, int32_t node,
                    int32_t *first);
/* The program as it is; its outputs are the pack's from *first on. */
void xla_pack_whole(xla_pack *p, const xla_program *program, int32_t *first);
/* Compiles, executes, reads.  False: the context has the error, or, if it was
 * the execution, p->outcome. */
bool xla_pack_run(xla_pack *p);
/* Frees all and clears the context's error. */
void xla_pack_close(xla_pack *p);

#endif
