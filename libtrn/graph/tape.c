/* SPDX-License-Identifier: Apache-2.0
 *
 * Making and freeing records of the tape.
 *
 * Freeing is a loop over a list, never a recursion, so that a chain of a
 * million ops outside of steps cannot overflow the stack.
 */
#include <string.h>

#include "libtrn/graph/tape.h"

static void release_record(trn_context *c, trn__record *r)
{
    trn__record_unref(c, r);
}

static trn_status tape_open(trn_context *c)
{
    c->tape = trn__alloc_zeroed(c, sizeof *c->tape);
    if (c->tape == NULL)
        return trn__fail_memory(c, "trn_open", sizeof *c->tape);
    c->tensors->release_record = release_record;
    return TRN_OK;
}

static void tape_close(trn_context *c)
{
    trn__tape *tape = c->tape;
    if (tape == NULL)
        return;
    /* Tensors hold records and records hold tensors: end both now. */
    trn__ring_clear(&c->tensors->step);
    trn__ring_clear(&c->tensors->base);
    while (tape->free_records != NULL) {
        trn__record *r = tape->free_records;
        tape->free_records = r->next;
        trn__free(c, r);
    }
    trn__free(c, tape);
    c->tape = NULL;
}

const trn__layer trn__tape_layer = {
    .open = tape_open,
    .close = tape_close,
};

void trn__record_ref(trn__record *r)
{
    r->refs++;
}

void trn__record_consume(trn_context *c, trn__record *r)
{
    (void)c;
    r->consumed = true;
    for (int i = 0; i < r->n_in; i++) {
        trn_tensor *saved = r->saved[i];
        r->saved[i] = NULL;
        trn__unref(saved);
    }
    trn__storage *out = r->out_storage;
    r->out_storage = NULL;
    if (out != NULL)
        trn__storage_unref(out);
}

static void reap(trn_context *c)
{
    trn__tape *tape = c->tape;
    if (tape->reaping)
        return;
    tape->reaping = true;
    while (tape->dying != NULL) {
        trn__record *r = tape->dying;
        tape->dying = r->next;
        trn__record_consume(c, r);
        trn__unref(r->grad);
        for (int i = 0; i < r->n_in; i++) {
            trn__unref(r->leaf[i]);
            if (r->parent[i] != NULL)
                trn__record_unref(c, r->parent[i]);
        }
        r->next = tape->free_records;
        tape->free_records = r;
    }
    tape->reaping = false;
}

void trn__record_unref(trn_context *c, trn__record *r)
{
    if (--r->refs > 0)
        return;
    r->next = c->tape->dying;
    c->tape->dying = r;
    reap(c);
}

static trn__record *record_new(trn_context *c)
{
    trn__record *r = c->tape->free_records;
    if (r != NULL)
        c->tape->free_records = r->next;
    else
        r = trn__alloc(c, sizeof *r);
    return r;
}

static void link_input(trn__record *r, int i, trn_tensor *t, bool save)
{
    r->parent[i] = t->record;
    r->leaf[i] = NULL;
    r->saved[i] = NULL;
    if (t->record != NULL)
        trn__record_ref(t->record);
    else if (t->requires_grad)
        r->leaf[i] = trn__ref(t);
    if (save) {
        r->saved[i] = trn__ref(t);
        r->saved_version[i] =
            t->storage->version - (uint64_t)t->storage->trace_ahead;
    } else {
        r->in_desc[i].dtype = t->arg.dtype;
        r->in_desc[i].rank = t->arg.rank;
        memcpy(r->in_desc[i].shape, t->arg.shape, sizeof t->arg.shape);
    }
}

trn_status trn__tape_record(const trn__call *k, uint32_t saves)
{
    trn_context *c = k->c;
    trn__record *r = record_new(c);
    if (r == NULL)
        return trn__fail_memory(c, "the tape", sizeof *r);
    r->refs = 1;
    r->op = k->op;
    r->seq = ++c->tape->seq;
    r->n_in = (uint8_t)k->n_in;
    r->n_values = (uint8_t)k->n_values;
    r->consumed = false;
    r->grad = NULL;
    r->walk = 0;
    for (int i = 0; i < k->n_in; i++)
        link_input(r, i, k->in[i], (saves >> i) & 1u);
    r->out = k->out->arg;
    r->out_storage = NULL;
    if (saves & TRN__SAVE_OUT) {
        r->out_storage = k->out->storage;
        trn__storage_ref(r->out_storage);
        r->out_version =
            r->out_storage->version - (uint64_t)r->out_storage->trace_ahead;
    }
    r->attrs_size = k->attrs_size;
    if (k->attrs_size > 0)
        memcpy(r->attrs, k->attrs, k->attrs_size);
    for (int i = 0; i < k->n_values; i++) {
        r->values[i] = k->values[i];
        r->scalar[i] = k->scalar[i];
    }
    r->draw_no = k->draw_no;
    r->trace_step = k->out->trace_step;
    r->key = k->key;
    r->draw = k->draw;
    k->out->record = r;
    return TRN_OK;
}
