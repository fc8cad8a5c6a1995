/* SPDX-License-Identifier: Apache-2.0
 *
 * The demo's model and optimizer on synthetic data, for cases that time its
 * training step.
 *
 * The data are seeded and have the shape of the demo's: 16 characters of 96,
 * and the next one.  That one depends on the last character alone, so the loss
 * must fall soon.
 */
#ifndef TRN_BENCH_MODEL_H
#define TRN_BENCH_MODEL_H

#include "trn.h"

enum {
    BENCH_WORDS = 96,
    BENCH_CONTEXT = 16,
    BENCH_WIDTH = 24,
    BENCH_HIDDEN = 512,
    BENCH_BATCH = 128
};

typedef struct bench_model {
    trn_context *c;
    trn_loader *data;
    trn_module *net;
    trn_optim *optim;
} bench_model;

/* An error is left in c. */
void bench_model_open(bench_model *m, trn_context *c);

/* The next batch; passes over the data follow one another. */
bool bench_model_next(bench_model *m, trn_batch *b);

/* Forward, backward, clipping and update, from trn_step_begin to its end. */
void bench_model_step(bench_model *m, const trn_batch *b);

/* Trains some steps; does the loss fall? */
bool bench_model_learns(bench_model *m);

#endif
