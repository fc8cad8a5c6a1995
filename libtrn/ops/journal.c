/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal of a step: what it changed on the host's side, to be put back if
 * it fails.  Counters, accumulated gradients, bytes that were there before.
 */
#include <string.h>

#include "libtrn/ops/step.h"

/* The bytes of a storage before the step's first write to it. */
typedef struct saved_bytes {
    struct saved_bytes *next;
    trn__storage *storage;
    void *bytes;
} saved_bytes;

/* A tensor's accumulated gradient before the step. */
typedef struct saved_grad {
    struct saved_grad *next;
    trn_tensor *tensor, *grad;
} saved_grad;

typedef struct saved_counter {
    struct saved_counter *next;
    trn__counter *counter;
    uint64_t value;
} saved_counter;

struct trn__journal {
    saved_bytes *bytes;
    saved_grad *grads;
    saved_counter *counters;
    trn__counter *newest; /* of those that the step has found */
    bool has_loss;        /* the step has a loss, and this was the last one */
    trn_tensor *loss;
};

trn__journal *trn__journal_new(trn_context *c)
{
    trn__journal *j = trn__alloc_zeroed(c, sizeof *j);
    if (j == NULL)
        trn__fail_memory(c, "trn_step_begin", sizeof *j);
    return j;
}

static trn_status keep_counter(trn_context *c, trn__journal *j,
                               trn__counter *counter, uint64_t value)
{
    saved_counter *s = trn__alloc(c, sizeof *s);
    if (s == NULL)
        return trn__fail_memory(c, "a step", sizeof *s);
    *s = (saved_counter){j->counters, counter, value};
    j->counters = s;
    return TRN_OK;
}

trn_status trn__journal_counters(trn_context *c, trn__journal *j)
{
    trn__counter *head = &c->counters;
    for (trn__counter *k = head->next; k != head; k = k->next)
        TRN_TRY(keep_counter(c, j, k, k->held ? k->committed : k->value));
    j->newest = head->next;
    return TRN_OK;
}

trn_status trn__journal_new_counters(trn_context *c, trn__journal *j)
{
    for (trn__counter *k = c->counters.next; k != j->newest; k = k->next)
        TRN_TRY(keep_counter(c, j, k, 0)); /* what it had when it was made */
    return TRN_OK;
}

trn_status trn__journal_bytes(trn_context *c, trn__journal *j, trn__storage *s)
{
    saved_bytes *b = trn__alloc(c, sizeof *b);
    void *bytes = trn__alloc(c, (size_t)s->bytes);
    if (b == NULL || bytes == NULL)
        trn__fail_memory(c, "a write in a step", s->bytes);
    else
        trn__storage_read(s, 0, bytes, s->bytes);
    if (b == NULL || bytes == NULL || c->status != TRN_OK) {
        trn__free(c, b);
        trn__free(c, bytes);
        return c->status;
    }
    *b = (saved_bytes){.next = j->bytes, .storage = s, .bytes = bytes};
    trn__storage_ref(s);
    s->saved = true;
    j->bytes = b;
    return TRN_OK;
}

trn_status trn__journal_grad(trn_context *c, trn__journal *j, trn_tensor *t,
                             trn_tensor *old)
{
    saved_grad *g = trn__alloc(c, sizeof *g);
    if (g == NULL)
        return trn__fail_memory(c, "a gradient", sizeof *g);
    *g = (saved_grad){.next = j->grads, .tensor = trn__ref(t), .grad = old};
    j->grads = g;
    return TRN_OK;
}

void trn__journal_loss(trn__journal *j, trn_tensor *old)
{
    if (j->has_loss) {
        trn__unref(old);
        return;
    }
    j->has_loss = true;
    j->loss = old;
}

static void put_back_grad(trn_context *c, saved_grad *g)
{
    trn_tensor *newer = g->tensor->grad;
    g->tensor->grad = g->grad;
    g->grad = newer;
    if (newer != NULL)
        c->tensors->hold(newer, -1);
    if (g->tensor->grad != NULL)
        c->tensors->hold(g->tensor->grad, 1);
}

/* Newest first, so that what was there before the step comes last. */
static void end(trn_context *c, trn__journal *j, bool undo)
{
    while (j->grads != NULL) {
        saved_grad *g = j->grads;
        j->grads = g->next;
        if (undo)
            put_back_grad(c, g);
        trn__unref(g->grad);
        trn__unref(g->tensor);
        trn__free(c, g);
    }
    while (j->bytes != NULL) {
        saved_bytes *b = j->bytes;
        j->bytes = b->next;
        if (undo && b->storage->bytes > 0 &&
            c->backend->write(c->device, b->storage->buffer, 0, b->bytes,
                              b->storage->bytes) == TRN_OK)
            c->bytes_to_device += b->storage->bytes;
        b->storage->saved = false;
        trn__storage_unref(b->storage);
        trn__free(c, b->bytes);
        trn__free(c, b);
    }
    while (j->counters != NULL) {
        saved_counter *s = j->counters;
        j->counters = s->next;
        if (undo)
            s->counter->value = s->counter->committed = s->value;
        trn__free(c, s);
    }
    if (j->has_loss && undo)
        j->loss = trn__step_put_loss(c, j->loss);
    trn__unref(j->loss);
    trn__free(c, j);
}

void trn__journal_drop(trn_context *c, trn__journal *j)
{
    if (j != NULL)
        end(c, j, false);
}

void trn__journal_undo(trn_context *c, trn__journal *j)
{
    if (j != NULL) {
        end(c, j, true);
        trn__step_uncount(c);
    }
}

void trn__journal_abandon(trn_context *c, trn__journal *j)
{
    if (j != NULL)
        end(c, j, true);
}
