/* SPDX-License-Identifier: Apache-2.0
 *
 * The models of the examples, small, on data made here: the demo's model of
 * characters, the classifier of images, the regression.
 */
#ifndef TRN_TESTS_XLA_MODEL_H
#define TRN_TESTS_XLA_MODEL_H

#include "tests/harness.h"

typedef enum xla_model_kind {
    XLA_CHARACTERS, /* embedding, MLP with dropout, cross-entropy, AdamW with
                       clipping, warm-up over 60 steps and a cosine */
    XLA_IMAGES,     /* MLP with dropout, cross-entropy, AdamW */
    XLA_REGRESSION, /* MLP with tanh, squared error, SGD with momentum */
    XLA_MODEL_KINDS
} xla_model_kind;
enum { XLA_MODEL_MOST = 6 }; /* parameters */

typedef struct xla_model {
    trn_context *c;
    xla_model_kind kind;
    trn_loader *data;
    trn_module *net;
    trn_optim *optim;
} xla_model;

extern const char *const xla_model_names[XLA_MODEL_KINDS];

/* Builds it in c, with parameters of that type. */
void xla_model_build(xla_model *m, trn_context *c, xla_model_kind kind,
                     trn_dtype dtype);
/* The next batch, of this pass or the next. */
trn_batch xla_model_batch(xla_model *m);
/* One step with it; the test fails if it does not succeed.  Its loss. */
double xla_model_step(xla_model *m, const trn_batch *b);
/* For each parameter's gradient the sum over the batch's samples of its
 * absolute values, of that element where it is largest.  Changes nothing.  For
 * models without dropout. */
void xla_model_absolute(xla_model *m, const trn_batch *b, double *sums);
/* Gives `to` the parameters and moments of `from`. */
void xla_model_copy(xla_model *to, const xla_model *from);

#endif
