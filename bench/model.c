/* SPDX-License-Identifier: Apache-2.0
 *
 * The demo's model on synthetic data; see model.h.
 */
#include <math.h>
#include <stdlib.h>

#include "bench/model.h"

enum { SAMPLES = 16384, LEARNING_STEPS = 100 };

/* A linear congruential generator of 64 bits, of which the high ones are
 * good (Knuth, MMIX). */
static uint32_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return (uint32_t)(*state >> 33);
}

static void open_data(bench_model *m)
{
    const int64_t shape[] = {SAMPLES, BENCH_CONTEXT};
    uint64_t state = 1;
    int32_t *x = malloc(SAMPLES * BENCH_CONTEXT * sizeof *x);
    int32_t *y = malloc(SAMPLES * sizeof *y);
    if (x == NULL || y == NULL)
        goto out;
    for (int i = 0; i < SAMPLES * BENCH_CONTEXT; i++)
        x[i] = (int32_t)(next(&state) % BENCH_WORDS);
    for (int i = 0; i < SAMPLES; i++)
        y[i] = (5 * x[(i + 1) * BENCH_CONTEXT - 1] + 3) % BENCH_WORDS;
    trn_loader_options order = TRN_LOADER_INIT;
    order.drop_last = true;
    trn_tensor *inputs = trn_tensor_from(m->c, TRN_I32, 2, shape, x);
    trn_tensor *targets = trn_tensor_from(m->c, TRN_I32, 1, shape, y);
    m->data = trn_data_tensors(m->c, inputs, targets, BENCH_BATCH, &order);
    trn_tensor_release(inputs);
    trn_tensor_release(targets);
out:
    free(x);
    free(y);
}

void bench_model_open(bench_model *m, trn_context *c)
{
    const int width = BENCH_CONTEXT * BENCH_WIDTH;
    m->c = c;
    m->data = NULL;
    open_data(m);
    m->net = trn_nn_sequential(
        c, trn_nn_embedding(c, BENCH_WORDS, BENCH_WIDTH), trn_nn_flatten(c),
        trn_nn_linear(c, width, BENCH_HIDDEN), trn_nn_relu(c),
        trn_nn_dropout(c, 0.1), trn_nn_linear(c, BENCH_HIDDEN, BENCH_WORDS),
        NULL);
    trn_adamw_options o = TRN_ADAMW_INIT;
    o.learning_rate = 0.002;
    m->optim = trn_optim_adamw(m->net, &o);
}

bool bench_model_next(bench_model *m, trn_batch *b)
{
    if (trn_data_next(m->data, b))
        return true;
    return trn_data_next(m->data, b); /* of the next epoch */
}

void bench_model_step(bench_model *m, const trn_batch *b)
{
    trn_step_begin(m->c);
    trn_tensor *logits = trn_nn_forward(m->net, b->inputs);
    trn_backward(trn_cross_entropy(logits, b->targets, NULL));
    trn_optim_clip_norm(m->optim, 1.0);
    trn_optim_step(m->optim);
    trn_step_end(m->c);
}

bool bench_model_learns(bench_model *m)
{
    double first = NAN, last = NAN;
    trn_batch b;
    for (int i = 0; i < LEARNING_STEPS && bench_model_next(m, &b); i++) {
        bench_model_step(m, &b);
        last = trn_step_loss(m->c);
        first = i == 0 ? last : first;
    }
    return trn_sync(m->c) == TRN_OK && last < 0.9 * first;
}
