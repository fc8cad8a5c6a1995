/* SPDX-License-Identifier: Apache-2.0
 *
 * The last part of loading: what was read goes where it belongs.
 *
 * Everything that can be refused is refused before.  What can fail then is a
 * device's memory: each tensor's old values are read before it is written, and
 * put back, newest first, if a later one fails.
 */
#include <stdio.h>
#include <string.h>

#include "libtrn/data/data.h"
#include "libtrn/io/checkpoint.h"
#include "libtrn/nn/module.h"
#include "libtrn/ops/step.h"
#include "libtrn/optim/optim.h"

static trn_status bad_value(const trn__items *l, const char *path,
                            const trn__item *item, const char *expected)
{
    return trn__fail(l->c, TRN_ERR_FORMAT,
                     "%.400s: %.300s: found %s; expected %s", path, item->path,
                     trn__item_value(item).s, expected);
}

static trn_status check_tensor(const trn__items *l, const trn__item *item)
{
    trn_tensor *t = item->tensor;
    if (t->storage->read_only || t->record != NULL || t->traced_grad)
        return trn__fail(l->c, TRN_ERR_STATE,
                         "trn_checkpoint_load: %.500s, %s, cannot be written "
                         "to: it %s",
                         item->path, trn__describe(&t->arg).s,
                         t->storage->read_only ? "wraps the caller's memory"
                                               : "has a gradient recorded");
    return TRN_OK;
}

static trn_status check_batch(const trn__items *l, const char *path,
                              const trn__item *epoch)
{
    const trn__item *batch = epoch + 1;
    const trn_loader *d = batch->target;
    int64_t first;
    if (batch->value.i64 < 0 || batch->value.i64 > d->n_batches)
        return bad_value(l, path, batch, "a batch of the loader");
    if (!trn__mul_size(epoch->value.i64, d->n_batches + 1, &first) ||
        first > INT64_MAX - d->n_batches)
        return bad_value(l, path, epoch, "an epoch of 0 or more");
    return TRN_OK;
}

static trn_status check_item(const trn__items *l, const char *path,
                             const trn__item *item)
{
    bool counts = item->type == TRN_I64 &&
                  (item->use == TRN__USE_COUNT || item->use == TRN__USE_STEP);
    if (item->use == TRN__USE_TENSOR)
        return check_tensor(l, item);
    if (item->use == TRN__USE_EPOCH)
        return check_batch(l, path, item);
    if (counts && item->value.i64 < 0)
        return bad_value(l, path, item, "0 or more");
    if (item->use == TRN__USE_RATE &&
        !(item->value.f64 >= 0.0 && item->value.f64 < 1e300))
        return bad_value(l, path, item, "0 or more, and finite");
    return TRN_OK;
}

trn_status trn__checkpoint_check(const trn__items *l, const char *path)
{
    for (int64_t i = 0; i < l->n; i++)
        TRN_TRY(check_item(l, path, &l->at[i]));
    return TRN_OK;
}

/* ---- tensors ---- */

/* Afterwards the stage holds the tensor's values instead of those of the file,
 * if *touched. */
static trn_status write_and_keep(trn__item *item, char *spare, bool *touched)
{
    trn_tensor *t = item->tensor;
    size_t bytes = (size_t)item->bytes;
    item->was_lost = t->storage->lost; /* then there is nothing to keep */
    *touched = false;
    if (!item->was_lost)
        TRN_TRY(trn_tensor_read(t, spare, bytes));
    *touched = true;
    trn_status status = trn_tensor_write(t, item->stage, bytes);
    if (!item->was_lost)
        memcpy(item->stage, spare, bytes);
    return status;
}

/* Items 0 to n - 1, newest first, get what they had.  What the device does not
 * take back is lost; gives the number of those. */
static int64_t put_back(const trn__items *l, int64_t n)
{
    trn_context *c = l->c;
    int64_t n_lost = 0;
    for (int64_t i = n; i-- > 0;) {
        const trn__item *item = &l->at[i];
        if (item->tensor == NULL || item->bytes == 0)
            continue;
        trn__storage *s = item->tensor->storage;
        uint64_t at = (uint64_t)item->tensor->arg.offset *
                      trn_dtype_size((trn_dtype)item->type);
        if (!item->was_lost &&
            c->backend->write(c->device, s->buffer, at, item->stage,
                              item->bytes) == TRN_OK)
            continue;
        n_lost += !item->was_lost;
        s->lost = true;
    }
    return n_lost;
}

static trn_status tell_loss(trn_context *c, int64_t n_lost)
{
    size_t used = strlen(c->message);
    if (n_lost > 0)
        snprintf(c->message + used, sizeof c->message - used,
                 "; the old values of %lld tensors are lost",
                 (long long)n_lost);
    return c->status;
}

static trn_status write_tensors(const trn__items *l)
{
    trn_context *c = l->c;
    uint64_t most = 0;
    bool touched;
    for (int64_t i = 0; i < l->n; i++) {
        if (l->at[i].tensor != NULL && l->at[i].bytes > most)
            most = l->at[i].bytes;
    }
    char *spare = trn__alloc(c, (size_t)most);
    if (spare == NULL)
        return trn__fail_memory(c, "trn_checkpoint_load", most);
    for (int64_t i = 0; i < l->n && c->status == TRN_OK; i++) {
        trn__item *item = &l->at[i];
        if (item->tensor != NULL && item->bytes > 0 &&
            write_and_keep(item, spare, &touched) != TRN_OK)
            tell_loss(c, put_back(l, touched ? i + 1 : i));
    }
    trn__free(c, spare);
    return c->status;
}

/* ---- numbers ---- */

static void set_counter(trn__counter *k, uint64_t value)
{
    k->value = k->committed = value;
}

static void put_number(trn_context *c, const trn__item *item)
{
    trn_module *m = item->target;
    trn_loader *d = item->target;
    switch (item->use) {
    case TRN__USE_COUNT:
        set_counter(item->target, item->value.bits);
        break;
    case TRN__USE_DRAWS:
        if (m->generator != NULL) /* else it is at 0, as the file has it */
            set_counter(&m->generator->draws, item->value.bits);
        break;
    case TRN__USE_STEP:
        trn__step_set_index(c, item->value.i64);
        break;
    case TRN__USE_RATE:
        ((trn_optim *)item->target)->learning_rate = item->value.f64;
        break;
    case TRN__USE_EPOCH:
        set_counter(&d->position,
                    item->value.bits * ((uint64_t)d->n_batches + 1));
        break;
    case TRN__USE_BATCH:
        set_counter(&d->position, d->position.value + item->value.bits);
        break;
    case TRN__USE_TENSOR:
    case TRN__USE_EQUAL:
    case TRN__USE_WARN:
    case TRN__USE_TELL:
        break;
    }
}

/* Dropout modules make their generators when they first need them. */
static trn_status make_generators(const trn__items *l)
{
    for (int64_t i = 0; i < l->n; i++) {
        const trn__item *item = &l->at[i];
        if (item->use == TRN__USE_DRAWS && item->value.bits > 0 &&
            trn__dropout_generator(item->target) == NULL)
            return l->c->status;
    }
    return TRN_OK;
}

trn_status trn__checkpoint_commit(const trn__items *l, const char *path)
{
    trn_context *c = l->c;
    TRN_TRY(make_generators(l));
    TRN_TRY(write_tensors(l));
    for (int64_t i = 0; i < l->n; i++) {
        const trn__item *item = &l->at[i];
        char text[TRN__MESSAGE_SIZE];
        put_number(c, item);
        if (item->use != TRN__USE_WARN || item->stage == NULL ||
            strcmp(item->text, item->stage) == 0 || c->log == NULL)
            continue;
        snprintf(text, sizeof text,
                 "%.400s: %.100s is %.100s, the library's is %.100s: the run "
                 "goes on with other bits than before",
                 path, item->path, (const char *)item->stage, item->text);
        c->log(c->log_user, TRN_LOG_WARNING, text);
    }
    return TRN_OK;
}
