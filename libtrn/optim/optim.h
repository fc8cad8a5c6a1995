/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside an optimizer: a module's parameters, state beside each of them, and
 * which update it makes.
 */
#ifndef TRN_LIBTRN_OPTIM_H
#define TRN_LIBTRN_OPTIM_H

#include "libtrn/ops/op_table.h"
#include "trn/nn.h"
#include "trn/optim.h"

#define TRN__MAX_STATES 2

/* What one kind of optimizer does. */
typedef struct trn__optim_kind {
    const char *name;
    int n_states;
    const char *state_names[TRN__MAX_STATES];
    /* Begins the UPDATE calls of a step, one for each parameter that has been
     * updated `age` times before: op, attributes, values. */
    void (*fill)(const trn_optim *o, uint64_t age, trn__call *k);
} trn__optim_kind;

struct trn_optim {
    trn__owned owned; /* first */
    trn_context *c;
    const trn__optim_kind *kind;
    int64_t n;
    trn_tensor **parameters;              /* borrowed from the module */
    trn_tensor **states[TRN__MAX_STATES]; /* our own */
    trn__counter steps;
    trn__counter *ages; /* updates of each parameter: one without a gradient is
                           left out, and is as old as before */
    char *names; /* of the parameters as they were, one after the other, each
                    with its 0 */
    trn_schedule *schedule;
    double learning_rate;
    bool keep_grad;
    union {
        trn_sgd_options sgd;
        trn_adamw_options adamw;
    } options;
    trn_sgd_momentum_attrs sgd_attrs;
};

trn_optim *trn__optim_new(trn_module *m, const trn__optim_kind *kind,
                          double learning_rate);

/* Raises if s (NULL is allowed) belongs to another context. */
trn_status trn__schedule_check(trn_context *c, const char *what,
                               const trn_schedule *s);

/* What the schedule is, as text: "constant", "cosine 4000 0.05", "warmup 100
 * cosine 4000 0.05", with as many digits as tell two of them apart; "none" for
 * NULL.  To be given to trn__free; NULL with the error raised. */
char *trn__schedule_describe(trn_context *c, const trn_schedule *s);

/* Raises if value is not in [low, high); `name` for the message. */
trn_status trn__check_option(trn_context *c, const char *what, const char *name,
                             double value, double low, double high);

#endif
