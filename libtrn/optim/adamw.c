/* SPDX-License-Identifier: Apache-2.0
 *
 * AdamW.  The bias corrections are host doubles of a 64-bit step count, by our
 * own pow, so they have the same bits everywhere.
 */
#include "kernels/scalar.h"
#include "libtrn/context/struct_size.h"
#include "libtrn/optim/optim.h"

#define NO_LIMIT 1e300

static void fill(const trn_optim *o, uint64_t age, trn__call *k)
{
    static const trn_adamw_attrs none;
    const trn_adamw_options *a = &o->options.adamw;
    double t = (double)(age + 1);
    double lr = trn_optim_learning_rate(o);
    double correction1 = 1.0 - trn__pow(a->beta1, t);
    double correction2 = 1.0 - trn__pow(a->beta2, t);
    k->op = TRN_OP_adamw_update;
    k->attrs = &none;
    k->attrs_size = (uint32_t)sizeof none;
    k->values[0] = 1.0 - lr * a->weight_decay;
    k->values[1] = 1.0 - a->beta1;
    k->values[2] = a->beta2;
    k->values[3] = 1.0 - a->beta2;
    k->values[4] = lr / correction1;
    k->values[5] = trn__sqrt(correction2);
    k->values[6] = a->eps;
}

static const trn__optim_kind kind = {
    .name = "trn_optim_adamw",
    .n_states = 2,
    .state_names = {"m", "v"},
    .fill = fill,
};

static trn_status check(trn_context *c, const trn_adamw_options *a)
{
    TRN_TRY(trn__check_option(c, kind.name, "learning_rate", a->learning_rate,
                              0.0, NO_LIMIT));
    TRN_TRY(trn__check_option(c, kind.name, "beta1", a->beta1, 0.0, 1.0));
    TRN_TRY(trn__check_option(c, kind.name, "beta2", a->beta2, 0.0, 1.0));
    TRN_TRY(trn__check_option(c, kind.name, "eps", a->eps, 0.0, NO_LIMIT));
    return trn__check_option(c, kind.name, "weight_decay", a->weight_decay, 0.0,
                             NO_LIMIT);
}

trn_optim *trn_optim_adamw(trn_module *m, const trn_adamw_options *options)
{
    trn_adamw_options a = TRN_ADAMW_INIT;
    trn_context *c = trn_nn_context(m);
    if (c == NULL || trn__pending(c) != TRN_OK ||
        trn__options_take(c, kind.name, TRN__SIZED_trn_adamw_options, &a,
                          options) != TRN_OK ||
        check(c, &a) != TRN_OK)
        return NULL;
    trn_optim *o = trn__optim_new(m, &kind, a.learning_rate);
    if (o != NULL)
        o->options.adamw = a;
    return o;
}
