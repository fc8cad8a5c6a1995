/* SPDX-License-Identifier: Apache-2.0
 *
 * Captured steps as the rest of the library sees them.
 */
#ifndef TRN_LIBTRN_CAPTURE_H
#define TRN_LIBTRN_CAPTURE_H

#include "libtrn/ops/trace.h"

extern const trn__layer trn__capture_layer;

/* Are calls traced now?  Opens the loose trace of a device without run_op. */
bool trn__capture_on(trn_context *c);

/* A step begins: `c` traces from now on.  It ends: its program runs. */
trn_status trn__capture_begin(trn_context *c);
trn_status trn__capture_run(trn_context *c);
void trn__capture_end(trn_context *c);

/* Runs what ops outside of steps have left waiting. */
trn_status trn__capture_flush(trn_context *c);

/* t's bytes can be read from its storage (or its `peek`) after this. */
trn_status trn__capture_settle(trn_context *c, trn_tensor *t);

/* ---- walks (libtrn/autograd) as entries of the trace ---- */

typedef struct trn__walk_call {
    uint8_t kind; /* TRN__ENTRY_BACKWARD, _GRAD */
    uint32_t flags;
    int n;                     /* pairs */
    trn_tensor *const *first;  /* BACKWARD: the root; GRAD: outputs */
    trn_tensor *const *second; /* their seeds, NULL or entries NULL */
    int n_inputs;
    trn_tensor *const *inputs; /* GRAD */
    trn_tensor **out;          /* GRAD: results */
} trn__walk_call;

/* 1: the walk matched and its effects are done; 0: it has to be walked, between
 * trn__walk_recorded's two calls; negative: an error. */
int trn__walk_matched(trn_context *c, const trn__walk_call *w);
/* Call before (returns the entry's number), and after the walk. */
int32_t trn__walk_record_begin(trn_context *c);
trn_status trn__walk_record_end(trn_context *c, int32_t entry,
                                const trn__walk_call *w);
/* For each leaf that the recorded walk gives a gradient. */
trn_status trn__walk_note(trn_context *c, trn_tensor *leaf, trn_tensor *old,
                          trn_tensor *grad);

#endif
