/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside a step: what waits for its end, and what is put back if it fails.
 *
 * Optimizer updates made in a step wait until its end: by then it is known that
 * nothing failed, so they need no copy of the old values.  Whoever reads such a
 * tensor earlier settles the updates, after the old bytes have been saved.
 * Other writes to memory that was there before the step save it first.
 */
#ifndef TRN_LIBTRN_STEP_H
#define TRN_LIBTRN_STEP_H

#include "libtrn/ops/op_table.h"

extern const trn__layer trn__step_layer;

/* Are the updates of a step being applied, which nothing may end half-way? */
bool trn__step_committing(const trn_context *c);

/* Runs an UPDATE call now, or at the end of the open step.  Attributes are
 * copied; inputs are held.  Shapes must have been checked. */
trn_status trn__defer_update(trn__call *k);

/* Sets t's accumulated gradient (NULL: none), to be put back if the step
 * fails.  Takes over the caller's reference to grad. */
trn_status trn__set_grad(trn_tensor *t, trn_tensor *grad);

/* ---- the journal of a step (journal.c) ---- */

typedef struct trn__journal trn__journal;
trn__journal *trn__journal_new(trn_context *c);
/* Keeps the counters' values; s's bytes; t's gradient so far, with the caller's
 * reference. */
trn_status trn__journal_counters(trn_context *c, trn__journal *j);
/* And those of the counters that were made in the step: modules make their
 * generators when they are first used. */
trn_status trn__journal_new_counters(trn_context *c, trn__journal *j);
trn_status trn__journal_bytes(trn_context *c, trn__journal *j, trn__storage *s);
trn_status trn__journal_grad(trn_context *c, trn__journal *j, trn_tensor *t,
                             trn_tensor *old);
/* Keeps the loss of the last step; takes over the caller's reference. */
void trn__journal_loss(trn__journal *j, trn_tensor *old);
/* Ends a journal (NULL is allowed): nothing is put back; everything is, and the
 * step counts no more; everything is, of a step that had not counted. */
void trn__journal_drop(trn_context *c, trn__journal *j);
void trn__journal_undo(trn_context *c, trn__journal *j);
void trn__journal_abandon(trn_context *c, trn__journal *j);
void trn__step_uncount(trn_context *c);
/* From now on so many steps have succeeded. */
void trn__step_set_index(trn_context *c, int64_t index);
/* Makes `loss` the last root; gives the one so far, with its reference. */
trn_tensor *trn__step_put_loss(trn_context *c, trn_tensor *loss);

/* t outlives the open step: what was recorded of it does not. */
trn_status trn__step_history(trn_tensor *t);

/* Remembers the root of a backward walk for trn_step_loss. */
void trn__step_set_loss(trn_context *c, trn_tensor *root);

#endif
