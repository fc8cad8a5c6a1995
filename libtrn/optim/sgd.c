/* SPDX-License-Identifier: Apache-2.0
 *
 * SGD, with momentum and Nesterov's form.
 */
#include <string.h>

#include "libtrn/context/struct_size.h"
#include "libtrn/optim/optim.h"

#define NO_LIMIT 1e300

static void fill_plain(const trn_optim *o, uint64_t age, trn__call *k)
{
    static const trn_sgd_attrs none;
    (void)age;
    k->op = TRN_OP_sgd_update;
    k->attrs = &none;
    k->attrs_size = (uint32_t)sizeof none;
    k->values[0] = trn_optim_learning_rate(o);
    k->values[1] = o->options.sgd.weight_decay;
}

static void fill_momentum(const trn_optim *o, uint64_t age, trn__call *k)
{
    const trn_sgd_options *s = &o->options.sgd;
    k->op = TRN_OP_sgd_momentum_update;
    k->attrs = &o->sgd_attrs;
    k->attrs_size = (uint32_t)sizeof o->sgd_attrs;
    k->values[0] = trn_optim_learning_rate(o);
    k->values[1] = s->weight_decay;
    k->values[2] = s->momentum;
    k->values[3] = age == 0 ? 1.0 : 1.0 - s->dampening;
}

static const trn__optim_kind plain = {
    .name = "trn_optim_sgd",
    .fill = fill_plain,
};

static const trn__optim_kind with_momentum = {
    .name = "trn_optim_sgd",
    .n_states = 1,
    .state_names = {"momentum"},
    .fill = fill_momentum,
};

static trn_status check(trn_context *c, const trn_sgd_options *s)
{
    const char *what = plain.name;
    TRN_TRY(trn__check_option(c, what, "learning_rate", s->learning_rate, 0.0,
                              NO_LIMIT));
    TRN_TRY(trn__check_option(c, what, "momentum", s->momentum, 0.0, NO_LIMIT));
    TRN_TRY(trn__check_option(c, what, "dampening", s->dampening, -NO_LIMIT,
                              NO_LIMIT));
    TRN_TRY(trn__check_option(c, what, "weight_decay", s->weight_decay, 0.0,
                              NO_LIMIT));
    if (s->nesterov && !(s->momentum > 0.0 && s->dampening == 0.0))
        return trn__fail(c, TRN_ERR_ARG,
                         "%s: nesterov needs momentum above 0 and dampening 0",
                         what);
    return TRN_OK;
}

trn_optim *trn_optim_sgd(trn_module *m, const trn_sgd_options *options)
{
    trn_sgd_options s = TRN_SGD_INIT;
    trn_context *c = trn_nn_context(m);
    if (c == NULL || trn__pending(c) != TRN_OK ||
        trn__options_take(c, plain.name, TRN__SIZED_trn_sgd_options, &s,
                          options) != TRN_OK ||
        check(c, &s) != TRN_OK)
        return NULL;
    trn_optim *o = trn__optim_new(m, s.momentum > 0.0 ? &with_momentum : &plain,
                                  s.learning_rate);
    if (o == NULL)
        return NULL;
    o->options.sgd = s;
    memset(&o->sgd_attrs, 0, sizeof o->sgd_attrs);
    o->sgd_attrs.nesterov = s.nesterov;
    return o;
}
