/* SPDX-License-Identifier: Apache-2.0
 *
 * From the objects of a checkpoint to its items: what the state of each is.
 *
 * Saving and loading both begin here, so a file has what loading looks for.
 * What the program decides when it builds an object (options, schedule, stream,
 * data) is an item that must be equal; what changes while it runs is restored.
 */
#include <string.h>

#include "libtrn/data/data.h"
#include "libtrn/data/sha256.h"
#include "libtrn/io/checkpoint.h"
#include "libtrn/nn/module.h"
#include "libtrn/ops/randoms.h"
#include "libtrn/optim/optim.h"
#include "trn/step.h"

/* ---- adding ---- */

static void add_tensor(trn__items *l, const char *parent, const char *name,
                       trn_tensor *t)
{
    const trn_arg *arg = &t->arg;
    trn__item *item =
        trn__items_add(l, parent, name, TRN__USE_TENSOR, arg->dtype);
    if (item == NULL)
        return;
    item->tensor = t;
    item->shape.rank = arg->rank;
    memcpy(item->shape.shape, arg->shape, sizeof arg->shape);
    item->bytes = (uint64_t)trn__numel(arg->rank, arg->shape) *
                  trn_dtype_size((trn_dtype)arg->dtype);
}

static void add_bits(trn__items *l, const char *parent, const char *name,
                     trn__use use, uint32_t type, uint64_t bits, void *target)
{
    trn__item *item = trn__items_add(l, parent, name, use, type);
    if (item == NULL)
        return;
    item->value.bits = bits;
    item->target = target;
}

static void add_i64(trn__items *l, const char *parent, const char *name,
                    trn__use use, int64_t value, void *target)
{
    add_bits(l, parent, name, use, TRN_I64, (uint64_t)value, target);
}

static void add_u64(trn__items *l, const char *parent, const char *name,
                    trn__use use, uint64_t value, void *target)
{
    add_bits(l, parent, name, use, TRN__ITEM_U64, value, target);
}

static void add_f64(trn__items *l, const char *parent, const char *name,
                    trn__use use, double value, void *target)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_bits(l, parent, name, use, TRN_F64, bits, target);
}

static void add_text(trn__items *l, const char *parent, const char *name,
                     trn__use use, const char *text)
{
    trn__item *item = trn__items_add(l, parent, name, use, TRN__ITEM_TEXT);
    if (item == NULL || text == NULL)
        return;
    size_t bytes = strlen(text) + 1;
    item->bytes = bytes;
    item->text = trn__alloc(l->c, bytes);
    if (item->text == NULL)
        trn__fail_memory(l->c, "a checkpoint", bytes);
    else
        memcpy(item->text, text, bytes);
}

/* ---- what an object comes to; base: "/modules/net" ---- */

static void add_parameters(trn__items *l, const char *base, trn_module *m)
{
    char *parent = trn__item_path(l->c, base, "parameters");
    int64_t n = trn_nn_parameter_count(m);
    for (int64_t i = 0; i < n && l->c->status == TRN_OK; i++)
        add_tensor(l, parent, trn_nn_parameter_name(m, i),
                   trn_nn_parameter_at(m, i));
    trn__free(l->c, parent);
}

/* The path of `m` below `root`, wherever that stands. */
static const char *path_below(const trn_module *root, const trn_module *m,
                              char *text, size_t size)
{
    char own[TRN__MESSAGE_SIZE / 2];
    trn__module_path(root, own, sizeof own);
    trn__module_path(m, text, size);
    const char *below = text + strlen(own);
    return below[0] == '.' ? below + 1 : below;
}

static void add_dropout(trn__items *l, const char *parent, const char *name,
                        trn_module *m)
{
    char *base = trn__item_path(l->c, parent, name);
    if (base == NULL)
        return;
    add_u64(l, base, "stream", TRN__USE_EQUAL, trn__dropout_stream(m), NULL);
    /* Its generator may still have to be made. */
    add_u64(l, base, "draws", TRN__USE_DRAWS, trn_generator_draws(m->generator),
            m);
    trn__free(l->c, base);
}

static void add_module(trn__items *l, const char *base, trn_module *root)
{
    char text[TRN__MESSAGE_SIZE / 2];
    add_parameters(l, base, root);
    char *parent = trn__item_path(l->c, base, "generators");
    for (trn_module *m = root; m != NULL && l->c->status == TRN_OK;
         m = trn__module_next(root, m)) {
        if (m->is_dropout)
            add_dropout(l, parent, path_below(root, m, text, sizeof text), m);
    }
    trn__free(l->c, parent);
}

static void add_options(trn__items *l, const char *base, trn_optim *o)
{
    const trn__use use = TRN__USE_EQUAL;
    char *schedule = trn__schedule_describe(l->c, o->schedule);
    if (schedule != NULL)
        add_text(l, base, "schedule", use, schedule);
    trn__free(l->c, schedule);
    add_text(l, base, "kind", use, o->kind->name);
    char *parent = trn__item_path(l->c, base, "options");
    if (parent == NULL)
        return;
    if (strcmp(o->kind->name, "trn_optim_sgd") == 0) {
        const trn_sgd_options *s = &o->options.sgd;
        add_f64(l, parent, "momentum", use, s->momentum, NULL);
        add_f64(l, parent, "dampening", use, s->dampening, NULL);
        add_f64(l, parent, "weight_decay", use, s->weight_decay, NULL);
        add_i64(l, parent, "nesterov", use, s->nesterov, NULL);
    } else {
        const trn_adamw_options *a = &o->options.adamw;
        add_f64(l, parent, "beta1", use, a->beta1, NULL);
        add_f64(l, parent, "beta2", use, a->beta2, NULL);
        add_f64(l, parent, "eps", use, a->eps, NULL);
        add_f64(l, parent, "weight_decay", use, a->weight_decay, NULL);
    }
    trn__free(l->c, parent);
}

/* What there is of each parameter, in a group named after it. */
static void add_states(trn__items *l, const char *base, trn_optim *o)
{
    char *parent = trn__item_path(l->c, base, "parameters");
    const char *name = o->names;
    for (int64_t i = 0; i < o->n && l->c->status == TRN_OK;
         i++, name += strlen(name) + 1) {
        if (o->parameters[i] == NULL) /* it stands in the tree before */
            continue;
        char *own = trn__item_path(l->c, parent, name);
        if (own == NULL)
            break;
        add_i64(l, own, "updates", TRN__USE_COUNT, (int64_t)o->ages[i].value,
                &o->ages[i]);
        for (int s = 0; s < o->kind->n_states; s++)
            add_tensor(l, own, o->kind->state_names[s], o->states[s][i]);
        trn__free(l->c, own);
    }
    trn__free(l->c, parent);
}

static void add_optim(trn__items *l, const char *base, trn_optim *o)
{
    add_i64(l, base, "steps", TRN__USE_COUNT, (int64_t)o->steps.value,
            &o->steps);
    add_f64(l, base, "learning_rate", TRN__USE_RATE, o->learning_rate, o);
    add_options(l, base, o);
    add_states(l, base, o);
}

static void add_generator(trn__items *l, const char *base, trn_generator *g)
{
    add_u64(l, base, "stream", TRN__USE_EQUAL, g->stream, NULL);
    add_u64(l, base, "draws", TRN__USE_COUNT, g->draws.value, &g->draws);
}

#define MOST_SAMPLES 1024

static void add_column(trn__sha256 *s, const trn_loader *l,
                       const trn__column *column)
{
    int64_t n = l->n_samples < MOST_SAMPLES ? l->n_samples : MOST_SAMPLES;
    for (int64_t i = 0; i < n; i++) {
        /* evenly spread, the first and the last among them */
        int64_t at = n < 2 ? 0
                           : (l->n_samples - 1) / (n - 1) * i +
                                 (l->n_samples - 1) % (n - 1) * i / (n - 1);
        trn__sha256_add(s, column->first + (size_t)at * column->pitch,
                        column->bytes);
    }
}

static void add_side(trn__items *l, const char *base, const char *name,
                     const trn__column *column)
{
    trn__desc shape = {.rank = column->rank};
    memcpy(shape.shape, column->shape, sizeof column->shape);
    add_text(l, base, name, TRN__USE_EQUAL,
             trn__item_describe(column->dtype, &shape).s);
}

static void add_loader(trn__items *l, const char *base, trn_loader *d)
{
    const trn__use use = TRN__USE_EQUAL;
    const uint64_t pass = (uint64_t)d->n_batches + 1;
    /* What is committed: a batch that no step has used comes again. */
    const uint64_t position = d->position.committed;
    char digest[65];
    trn__sha256 s;
    trn__sha256_begin(&s);
    add_column(&s, d, &d->inputs);
    add_column(&s, d, &d->targets);
    trn__sha256_end(&s, digest);
    add_i64(l, base, "epoch", TRN__USE_EPOCH, (int64_t)(position / pass), d);
    add_i64(l, base, "batch", TRN__USE_BATCH, (int64_t)(position % pass), d);
    add_i64(l, base, "samples", use, d->n_samples, NULL);
    add_i64(l, base, "batch_size", use, d->batch_size, NULL);
    add_i64(l, base, "batches", use, d->n_batches, NULL);
    add_side(l, base, "inputs", &d->inputs);
    add_side(l, base, "targets", &d->targets);
    add_text(l, base, "sha256", use, digest);
    add_i64(l, base, "shuffle", use, d->generator != NULL, NULL);
    if (d->generator != NULL)
        add_u64(l, base, "stream", use, d->generator->stream, NULL);
}

static void add_context(trn__items *l)
{
    trn_context *c = l->c;
    trn_generator *g = trn_generator_default(c);
    const char *base = "/context";
    add_i64(l, base, "step", TRN__USE_STEP, trn_step_index(c), NULL);
    add_u64(l, base, "seed", TRN__USE_EQUAL, c->seed, NULL);
    add_u64(l, base, "draws", TRN__USE_COUNT, g->draws.value, &g->draws);
    add_text(l, base, "numerics", TRN__USE_WARN, trn_numerics_version());
    add_text(l, base, "library", TRN__USE_TELL, trn_version());
}

static void add_object(trn__items *l, const trn__object *object)
{
    static const char *const parents[] = {
        [TRN__OBJECT_MODULE] = "/modules",
        [TRN__OBJECT_OPTIM] = "/optimizers",
        [TRN__OBJECT_GENERATOR] = "/generators",
        [TRN__OBJECT_LOADER] = "/loaders",
        [TRN__OBJECT_TENSOR] = "/tensors",
    };
    if (object->kind == TRN__OBJECT_TENSOR) {
        add_tensor(l, parents[object->kind], object->name, object->it);
        return;
    }
    char *base = trn__item_path(l->c, parents[object->kind], object->name);
    if (base == NULL)
        return;
    if (object->kind == TRN__OBJECT_MODULE)
        add_module(l, base, object->it);
    else if (object->kind == TRN__OBJECT_OPTIM)
        add_optim(l, base, object->it);
    else if (object->kind == TRN__OBJECT_GENERATOR)
        add_generator(l, base, object->it);
    else
        add_loader(l, base, object->it);
    trn__free(l->c, base);
}

trn_status trn__checkpoint_items(trn_checkpoint *k, trn__part part,
                                 trn__items *l)
{
    l->c = k->c;
    if (part != TRN__PART_LISTED)
        add_context(l);
    for (trn__object *o = k->first; o != NULL && k->c->status == TRN_OK;
         o = o->next)
        add_object(l, o);
    for (trn__note *n = k->notes;
         part == TRN__PART_ALL && n != NULL && k->c->status == TRN_OK;
         n = n->next)
        add_text(l, TRN__NOTES, n->key, TRN__USE_TELL, n->text);
    return k->c->status;
}
