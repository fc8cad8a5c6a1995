/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients.
 *
 * Ops on tensors that need a gradient are recorded; trn_backward() and
 * trn_grad() walk the record from the last op to the first.  Functions return
 * trn_status, or NULL with the error in the context where they give tensors.
 */
#ifndef TRN_AUTOGRAD_H
#define TRN_AUTOGRAD_H

#include "trn/types.h"

TRN_BEGIN_DECLS

/*
 * Makes t a leaf whose gradient is wanted (true) or not.   t: float
 *
 * Errors: TRN_ERR_DTYPE, TRN_ERR_STATE (t was computed from other tensors).
 */
TRN_API trn_status trn_set_requires_grad(trn_tensor *t, bool requires_grad);

/* Is t a leaf with gradient, or computed from one? */
TRN_API bool trn_requires_grad(const trn_tensor *t);

/* The gradient accumulated so far, borrowed; NULL if there is none. */
TRN_API trn_tensor *trn_grad_of(const trn_tensor *t);

/* Forgets t's accumulated gradient. */
TRN_API trn_status trn_zero_grad(trn_tensor *t);

/*
 * Adds d root / d leaf to the gradient of every leaf that root depends on.
 *
 * root: one element (trn_backward_with: any shape, with d loss / d root as
 * `seed`; seed NULL means 1 for one element).  The first accumulation assigns.
 * The record is freed unless retain_graph.  The last root is what
 * trn_step_loss() tells.
 * Errors: TRN_ERR_SHAPE (not one element and no seed), TRN_ERR_NOGRAD (nothing
 *         to differentiate, or an op without a gradient), TRN_ERR_STATE (walked
 *         before without retain_graph), TRN_ERR_MODIFIED (a tensor that a
 *         gradient needs was changed in place; names the op).  Then no gradient
 *         has changed.
 */
TRN_API trn_status trn_backward(trn_tensor *root);
TRN_API trn_status trn_backward_with(trn_tensor *root, trn_tensor *seed,
                                     bool retain_graph);

typedef struct trn_grad_options {
    uint32_t size;
    bool retain_graph; /* the record can be walked again */
    bool create_graph; /* the gradients are recorded: for higher orders;
                          implies retain_graph */
    bool zeros;        /* an input without influence gives zeros, not NULL */
} trn_grad_options;

#define TRN_GRAD_INIT                                           \
    {                                                           \
        (uint32_t)sizeof(trn_grad_options), false, false, false \
    }

/*
 * out[j] = sum over i of seeds[i] * d outputs[i] / d inputs[j]
 *
 * No accumulated gradient changes.  seeds NULL (or an entry NULL): 1, for an
 * output of one element.  options NULL: the defaults.  out[j] belongs to the
 * open step, else to the context.  Errors: as trn_backward.
 */
TRN_API trn_status trn_grad(int n_outputs, trn_tensor *const *outputs,
                            int n_inputs, trn_tensor *const *inputs,
                            trn_tensor *const *seeds,
                            const trn_grad_options *options, trn_tensor **out);

/* The same values, cut off from what they were computed of.  A view. */
TRN_API trn_tensor *trn_detach(trn_tensor *t);

/* Between the two nothing is recorded; they nest. */
TRN_API trn_status trn_no_grad_begin(trn_context *c);
TRN_API trn_status trn_no_grad_end(trn_context *c);

TRN_END_DECLS

#endif
