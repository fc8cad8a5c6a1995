/* SPDX-License-Identifier: Apache-2.0
 *
 * A small training run with state of every kind; see training.h.
 */
#include <stdlib.h>

#include "training.h"

enum { WINDOW = 4, LETTERS = 8, BATCH = 6 };
/* 17 batches a pass, the last one of 4 windows. */
enum { CHARACTERS = (TRAINING_BATCHES - 1) * BATCH + 4 + WINDOW };

static trn_loader *make_data(trn_context *c)
{
    char bytes[CHARACTERS];
    uint64_t random = 11;
    for (int i = 0; i < CHARACTERS; i++)
        bytes[i] = i < LETTERS
                       ? (char)('a' + i)
                       : (char)('a' + harness_random(&random) % LETTERS);
    trn_text *text = trn_text_from(c, bytes, CHARACTERS, NULL);
    return trn_data_text(c, text, WINDOW, BATCH, NULL);
}

static trn_optim *make_optim(trn_module *net, bool sgd)
{
    trn_sgd_options s = TRN_SGD_INIT;
    trn_adamw_options a = TRN_ADAMW_INIT;
    s.learning_rate = 0.2;
    s.momentum = 0.9;
    a.learning_rate = 0.02;
    return sgd ? trn_optim_sgd(net, &s) : trn_optim_adamw(net, &a);
}

static void make_model(training *t, const training_plan *p)
{
    trn_context *c = t->c;
    trn_nn_set_dtype(c, t->dtype);
    t->net = trn_nn_sequential(
        c, trn_nn_embedding(c, LETTERS, 3), trn_nn_flatten(c),
        trn_nn_linear(c, 3 * WINDOW, 8), trn_nn_relu(c),
        trn_nn_dropout(c, 0.25), trn_nn_linear(c, 8, LETTERS), NULL);
    t->optim = make_optim(t->net, p->sgd);
    t->rate = trn_optim_learning_rate(t->optim);
    trn_schedule *fall = trn_schedule_cosine(c, 130, 0.1);
    trn_optim_set_schedule(t->optim, trn_schedule_warmup(c, 30, fall));
}

training training_begin(const training_plan *p)
{
    trn_options o = captured_options(p->way, p->device);
    training t = {.dtype = p->dtype == 0 ? TRN_F32 : p->dtype,
                  .parts = p->parts == 0 ? 1 : p->parts};
    if (p->n_threads != 0)
        o.n_threads = p->n_threads;
    o.engine = p->engine;
    o.cpu_isa = p->isa;
    t.c = captured_open_options(&o);
    t.data = make_data(t.c);
    make_model(&t, p);
    t.noise = trn_generator_new(t.c, 77);
    t.losses = trn_tensor_zeros(t.c, TRN_I32, 2, (int64_t[]){TRAINING_LOG, 2});
    t.k = trn_checkpoint_new(t.c);
    trn_checkpoint_module(t.k, "net", t.net);
    trn_checkpoint_optim(t.k, "optim", t.optim);
    trn_checkpoint_loader(t.k, "text", t.data);
    trn_checkpoint_generator(t.k, "noise", t.noise);
    trn_checkpoint_tensor(t.k, "losses", t.losses);
    harness_ok(t.c);
    return t;
}

void training_end(training *t)
{
    captured_close(t->c);
}

static trn_tensor *loss_of(training *t, const trn_batch *b)
{
    const int64_t shape[2] = {b->size, LETTERS};
    trn_tensor *noise =
        trn_mul(trn_normal(t->noise, t->dtype, 2, shape),
                trn_uniform(trn_generator_default(t->c), t->dtype, 2, shape));
    trn_tensor *logits = trn_add(trn_nn_forward(t->net, b->inputs),
                                 trn_mul_scalar(noise, 0.125));
    return trn_cross_entropy(logits, b->targets, NULL);
}

static bool keep_loss(training *t)
{
    double log[TRAINING_LOG];
    int64_t step = trn_step_index(t->c);
    trn_tensor_read(t->losses, log, sizeof log);
    log[(step - 1) % TRAINING_LOG] = trn_step_loss(t->c);
    return trn_tensor_write(t->losses, log, sizeof log) == TRN_OK;
}

/* The rest of a step that is open. */
static bool finish_step(training *t, const trn_batch *b)
{
    int64_t step = trn_step_index(t->c);
    bool last = (step + 1) % t->parts == 0;
    if (step == 8) /* what the program decides on the way is state, too */
        trn_optim_set_learning_rate(t->optim, t->rate / 2);
    trn_backward(trn_mul_scalar(loss_of(t, b), 1.0 / t->parts));
    if (last) {
        trn_optim_clip_norm(t->optim, 0.5);
        trn_optim_step(t->optim);
    }
    return trn_step_end(t->c) == TRN_OK && keep_loss(t);
}

bool training_step_on(training *t, const trn_batch *b)
{
    trn_step_begin(t->c);
    return finish_step(t, b);
}

bool training_step(training *t)
{
    trn_batch b;
    trn_step_begin(t->c);
    if (!trn_data_next(t->data, &b)) /* the end of a pass */
        trn_data_next(t->data, &b);
    return finish_step(t, &b);
}

bool training_until(training *t, int64_t n)
{
    while (trn_step_index(t->c) < n) {
        if (!training_step(t))
            return false;
    }
    return true;
}

/* ---- the digest ---- */

/* SHA-256 of the hash so far and of what comes. */
static void add(char digest[65], const void *data, size_t n)
{
    char *both = malloc(64 + n);
    assert_non_null(both);
    memcpy(both, digest, 64);
    if (n > 0)
        memcpy(both + 64, data, n);
    trn_sha256(both, 64 + n, digest);
    free(both);
}

static void add_tensor(char digest[65], trn_tensor *t)
{
    size_t n;
    void *bytes = harness_bytes_of(t, &n);
    add(digest, bytes, n);
    free(bytes);
}

static void add_states(training *t, char digest[65])
{
    static const char *const names[] = {"m", "v", "momentum"};
    for (int64_t i = 0; i < trn_nn_parameter_count(t->net); i++) {
        for (int s = 0; s < 3; s++) {
            trn_tensor *state = trn_optim_state(t->optim, i, names[s]);
            if (state != NULL)
                add_tensor(digest, state);
        }
    }
}

bool training_digest(training *t, char out[65])
{
    double numbers[] = {
        (double)trn_step_index(t->c),
        (double)trn_optim_steps(t->optim),
        trn_optim_learning_rate(t->optim),
        (double)trn_generator_draws(t->noise),
        (double)trn_generator_draws(trn_generator_default(t->c)),
    };
    if (trn_digest(t->net, out) != TRN_OK)
        return false;
    add_states(t, out);
    add(out, numbers, sizeof numbers);
    /* The loader's place and the draws of dropout. */
    if (!training_step(t))
        return false;
    add_tensor(out, t->losses);
    return trn_errcode(t->c) == TRN_OK;
}
