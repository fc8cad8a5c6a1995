/* SPDX-License-Identifier: Apache-2.0
 *
 * What `trn verify` runs: small fixed models, and all rows of the op table.
 *
 * Everything is made from the context's seed by the library itself, so the
 * digests depend on the numerics version alone.  Functions return the status
 * of the context, which has the message.
 */
#ifndef TRN_TOOLS_VERIFY_H
#define TRN_TOOLS_VERIFY_H

#include "trn.h"

#define VERIFY_DIGEST 65 /* 64 hexadecimal digits and a 0 */
#define VERIFY_SEED 20261130u
#define VERIFY_EARLY 10 /* the step of the first digest */

typedef struct verify_model {
    const char *name;
    trn_dtype dtype;
    int64_t n_in;   /* features of a sample, or characters of a window */
    int64_t hidden; /* width of the hidden layers */
    int64_t batch;
    int64_t n_steps;
    /* makes data, model and optimizer in c, and their loader */
    trn_status (*make)(trn_context *c, const struct verify_model *m,
                       trn_module **net, trn_optim **opt, trn_loader **data);
    double clip; /* largest norm of all gradients; 0: not clipped */
} verify_model;

typedef struct verify_result {
    char early[VERIFY_DIGEST]; /* after VERIFY_EARLY steps */
    char end[VERIFY_DIGEST];   /* after all, "-" when quick */
    double first_loss, last_loss;
} verify_result;

extern const verify_model verify_models[];
extern const int verify_n_models;

/* Trains one model in a context of its own making; quick: stops early. */
trn_status verify_train(trn_context *c, const verify_model *m, bool quick,
                        verify_result *out);

/* Called with the digest of one row's result. */
typedef void (*verify_row_fn)(void *user, const char *name, const char *digest);

/*
 * The bits of every row on inputs of one float type, as one digest.
 *
 * each may be NULL; it is told the digest of each result, by which a
 * difference is traced to its row.
 */
trn_status verify_rows(trn_context *c, trn_dtype dtype, verify_row_fn each,
                       void *user, char out[VERIFY_DIGEST]);

#endif
