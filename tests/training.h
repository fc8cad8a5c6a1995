/* SPDX-License-Identifier: Apache-2.0
 *
 * A small training run with state of every kind, for tests that stop it and go
 * on: parameters, moments, a schedule, clipping, dropout, a generator of its
 * own, a shuffled loader whose last batch is smaller, and a log of losses.
 */
#ifndef TRN_TESTS_TRAINING_H
#define TRN_TESTS_TRAINING_H

#include "captured.h"

/* How a run is done (the first four must not matter) and what it trains. */
typedef struct training_plan {
    int way;            /* EAGER, CAPTURED, LOOP */
    int n_threads;      /* 0: 2 */
    uint32_t engine;    /* trn_engine */
    const char *isa;    /* NULL: the best one */
    const char *device; /* NULL: the way's own */
    trn_dtype dtype;    /* 0: TRN_F32 */
    bool sgd;           /* with momentum, instead of AdamW */
    int parts;          /* batches for an update; 0: 1 */
} training_plan;

enum { TRAINING_LOG = 512, TRAINING_BATCHES = 17 /* a pass */ };

typedef struct training {
    trn_context *c;
    trn_loader *data;
    trn_module *net;
    trn_optim *optim;
    trn_generator *noise;
    trn_tensor *losses; /* i32[TRAINING_LOG, 2], the bits of each step's loss:
                           not every device stores f64 */
    trn_checkpoint *k;  /* of all of it */
    trn_dtype dtype;
    double rate; /* of learning; half of it from step 8 on */
    int parts;
} training;

/* In a context of its own, which training_end closes.  The test fails if that
 * does not work, or if memory is not given back. */
training training_begin(const training_plan *p);
void training_end(training *t);

/* One step with one batch, the update with the last of `parts`; false with an
 * error pending. */
bool training_step(training *t);
/* The same with a batch that was taken before. */
bool training_step_on(training *t, const trn_batch *b);
/* Steps until trn_step_index() is n; false with an error pending. */
bool training_until(training *t, int64_t n);

/* A hash of all state, by public calls that know of no checkpoint.  What cannot
 * be asked for is seen in one more step, so the run ends with this.  False with
 * an error pending. */
bool training_digest(training *t, char out[65]);

#endif
