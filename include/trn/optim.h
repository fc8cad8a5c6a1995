/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizers, learning-rate schedules, gradient clipping.
 *
 * An optimizer works on all parameters of a module.  Its state is made, filled
 * with zeros, when the optimizer is.  A parameter without a gradient is skipped
 * and does not decay, and its updates (t below, the first one of momentum) are
 * counted apart: one that gets its first gradient late starts then.  Functions
 * that return an object give NULL and leave the error in the context; those
 * that return trn_status return it.
 */
#ifndef TRN_OPTIM_H
#define TRN_OPTIM_H

#include "trn/types.h"

TRN_BEGIN_DECLS

typedef struct trn_sgd_options {
    uint32_t size;
    double learning_rate; /* 1e-3; >= 0 */
    double momentum;      /* 0; >= 0 */
    double dampening;     /* 0; not used by the first step */
    double weight_decay;  /* 0; added to the gradient, >= 0 */
    bool nesterov;        /* needs momentum > 0 and dampening = 0 */
} trn_sgd_options;

#define TRN_SGD_INIT                                                  \
    {                                                                 \
        (uint32_t)sizeof(trn_sgd_options), 1e-3, 0.0, 0.0, 0.0, false \
    }

/* d = g + weight_decay p; b = momentum b + (1 - dampening) d;
 * p = p - learning_rate b (nesterov: d + momentum b).
 * Source: Sutskever et al. 2013, in PyTorch's form.  NULL options: defaults. */
TRN_API trn_optim *trn_optim_sgd(trn_module *m, const trn_sgd_options *options);

typedef struct trn_adamw_options {
    uint32_t size;
    double learning_rate; /* 1e-3; >= 0 */
    double beta1;         /* 0.9; in [0, 1) */
    double beta2;         /* 0.999; in [0, 1) */
    double eps;           /* 1e-8; >= 0, outside the root */
    double weight_decay;  /* 1e-2; decoupled, times the learning rate */
} trn_adamw_options;

#define TRN_ADAMW_INIT                                                    \
    {                                                                     \
        (uint32_t)sizeof(trn_adamw_options), 1e-3, 0.9, 0.999, 1e-8, 1e-2 \
    }

/* m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; p = p (1 - lr wd)
 * - lr m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps)
 * Source: Loshchilov and Hutter 2019, in PyTorch's form. */
TRN_API trn_optim *trn_optim_adamw(trn_module *m,
                                   const trn_adamw_options *options);

/*
 * One update of all parameters from their gradients, which it consumes.
 *
 * In a step the update is applied at its end, if nothing fails until then.
 */
TRN_API trn_status trn_optim_step(trn_optim *o);

/* Gradients stay after trn_optim_step until trn_optim_zero_grad (true), or are
 * consumed (false, the default). */
TRN_API trn_status trn_optim_keep_grad(trn_optim *o, bool keep);
TRN_API trn_status trn_optim_zero_grad(trn_optim *o);

/* The number of updates made. */
TRN_API int64_t trn_optim_steps(const trn_optim *o);

/* The learning rate: as set, and as the next update will use it (times the
 * schedule's factor). */
TRN_API trn_status trn_optim_set_learning_rate(trn_optim *o, double value);
TRN_API double trn_optim_learning_rate(const trn_optim *o);

/* State of parameter i: "m", "v" (AdamW), "momentum" (SGD with momentum);
 * borrowed, NULL if there is none. */
TRN_API trn_tensor *trn_optim_state(trn_optim *o, int64_t i, const char *name);

/*
 * Scales all gradients by min(1, max_norm / (norm + 1e-6)), where norm is the
 * Euclidean norm of all of them together; gives that norm as a rank-0 tensor,
 * which need not be read (NULL on error).  No gradients: norm 0.
 *
 * Errors: TRN_ERR_NUMERIC if the norm is not finite; no gradient has changed.
 */
TRN_API trn_tensor *trn_optim_clip_norm(trn_optim *o, double max_norm);

/* ---- schedules: a factor of the learning rate, by the number of updates ----
 */

/* factor = 1 */
TRN_API trn_schedule *trn_schedule_constant(trn_context *c);
/* factor = final + (1 - final) (1 + cos(pi t / n_steps)) / 2, final after
 * n_steps.   Source: Loshchilov and Hutter 2017 */
TRN_API trn_schedule *trn_schedule_cosine(trn_context *c, int64_t n_steps,
                                          double final_factor);
/* factor = (t + 1) / n_steps while t < n_steps, then `after` from its start */
TRN_API trn_schedule *trn_schedule_warmup(trn_context *c, int64_t n_steps,
                                          trn_schedule *after);
/* The factor of update t = 0, 1, ...; NaN for NULL or a negative t. */
TRN_API double trn_schedule_factor(const trn_schedule *s, int64_t t);
/* From now on o multiplies its learning rate by s's factor (NULL: 1). */
TRN_API trn_status trn_optim_set_schedule(trn_optim *o, trn_schedule *s);

TRN_END_DECLS

#endif
