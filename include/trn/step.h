/* SPDX-License-Identifier: Apache-2.0
 *
 * A step: the scope of what a pass of the training loop makes, and the boundary
 * of its errors.  Functions return trn_status unless they say otherwise.
 */
#ifndef TRN_STEP_H
#define TRN_STEP_H

#include "trn/types.h"

TRN_BEGIN_DECLS

/* Opens a step.  Errors: a pending one; TRN_ERR_STATE if one is open. */
TRN_API trn_status trn_step_begin(trn_context *c);

/*
 * Ends the step: applies the optimizers' updates, frees what the step made.
 *
 * If an error is pending, the step has not happened: parameters, optimizer
 * state, accumulated gradients, schedules, generators and loaders are as they
 * were before, and the error is returned.
 */
TRN_API trn_status trn_step_end(trn_context *c);

/* The number of steps that succeeded. */
TRN_API int64_t trn_step_index(const trn_context *c);

/* The last root of trn_backward(), as a double; of several elements the first;
 * NaN before the first one, or with an error pending. */
TRN_API double trn_step_loss(trn_context *c);

TRN_END_DECLS

#endif
