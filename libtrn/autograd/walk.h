/* SPDX-License-Identifier: Apache-2.0
 *
 * A walk over the tape, from roots to leaves: what trn_backward and trn_grad
 * share.
 */
#ifndef TRN_LIBTRN_WALK_H
#define TRN_LIBTRN_WALK_H

#include "libtrn/ops/op_table.h"
#include "libtrn/ops/trace_parts.h"

typedef struct trn__walk_leaf {
    trn_tensor *leaf, *grad;
} trn__walk_leaf;

typedef struct trn__walk {
    trn_context *c;
    const char *what; /* the call, for messages */
    uint64_t number;
    bool retain, create_graph;
    trn__record **records; /* latest first */
    int64_t n_records, room;
    trn__walk_leaf *leaves; /* those that were reached, with gradients */
    int64_t n_leaves, leaf_room;
} trn__walk;

/* Finds all records that the root depends on; call for each root. */
trn_status trn__walk_collect(trn__walk *w, trn_tensor *root);

/* Adds a gradient for a tensor: at its record, or at the leaf that it is.
 * Takes its own reference. */
trn_status trn__walk_add(trn__walk *w, trn_tensor *t, trn_tensor *grad);

/* Sorts; then runs the rules, latest record first.  `stop_at` is called with
 * each record whose gradient is complete. */
void trn__walk_sort(trn__walk *w);
trn_status trn__walk_run(trn__walk *w,
                         trn_status (*complete)(void *user, trn__record *r),
                         void *user);

/* Frees lists and gradients. */
void trn__walk_end(trn__walk *w);

#endif
