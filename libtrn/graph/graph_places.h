/* SPDX-License-Identifier: Apache-2.0
 *
 * Which memory is taken when: places for slots, each with a lifetime.
 */
#ifndef TRN_LIBTRN_GRAPH_PLACES_H
#define TRN_LIBTRN_GRAPH_PLACES_H

#include "libtrn/graph/graph.h"

typedef struct trn__places {
    trn_graph *g;
    int depth; /* the root stands for 2^depth units of memory */
    struct trn__place *places;
    struct trn__period *periods;
    int32_t n_places, room_places;
    int32_t n_periods, room_periods;
} trn__places;

/* For slots of so many units of memory together.  close is always needed. */
trn_status trn__places_open(trn__places *p, trn_graph *g, int64_t units);
void trn__places_close(trn__places *p);
/* Takes `units`, more than 0 and at most those of the last call, from time
 * `from` to time `to`: the lowest of the tightest gaps, or the end of what is
 * taken meanwhile; -1 with the error. */
int64_t trn__places_take(trn__places *p, int32_t from, int32_t to,
                         int64_t units);

#endif
