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

/* Runs an UPDATE call now, or at the end of the open step.  Attributes are
 * copied; inputs are held.  Shapes must have been checked. */
trn_status trn__defer_update(trn__call *k);

/* Sets t's accumulated gradient (NULL: none), to be put back if the step
 * fails.  Takes over the caller's reference to grad. */
trn_status trn__set_grad(trn_tensor *t, trn_tensor *grad);

/* Remembers the root of a backward walk for trn_step_loss. */
void trn__step_set_loss(trn_context *c, trn_tensor *root);

#endif
