/* SPDX-License-Identifier: Apache-2.0
 *
 * trn_step_begin and trn_step_end: scope, commit, rollback.
 */
#include <math.h>
#include <string.h>

#include "libtrn/ops/step.h"
#include "trn/step.h"

/* An UPDATE call that waits. */
typedef struct waiting {
    struct waiting *next;
    trn__call call;
    uint64_t attrs[TRN__MAX_ATTRS / 8];
} waiting;

/* The bytes of a storage before the step's first write to it. */
typedef struct saved_bytes {
    struct saved_bytes *next;
    trn__storage *storage;
    uint64_t version;
    void *bytes;
} saved_bytes;

/* A tensor's accumulated gradient before the step. */
typedef struct saved_grad {
    struct saved_grad *next;
    trn_tensor *tensor, *grad;
} saved_grad;

typedef struct trn__step {
    waiting *first, *last;
    saved_bytes *bytes;
    saved_grad *grads;
    int64_t index;
    trn_tensor *loss;
    bool running; /* updates are being run: their own reads do not settle */
} trn__step;

static void drop_waiting(trn_context *c, waiting *w)
{
    const trn__op_info *info = &trn__ops[w->call.op];
    for (int i = 0; i < w->call.n_in; i++) {
        if ((info->writes >> i) & 1u)
            w->call.in[i]->storage->deferred = false;
        trn__unref(w->call.in[i]);
    }
    trn__free(c, w);
}

static trn_status run_waiting(trn_context *c)
{
    trn__step *s = c->step;
    s->running = true;
    bool mode = trn__grad_mode(c, false);
    while (s->first != NULL) {
        waiting *w = s->first;
        s->first = w->next;
        s->last = s->first == NULL ? NULL : s->last;
        const trn__op_info *info = &trn__ops[w->call.op];
        for (int i = 0; i < w->call.n_in; i++) {
            if ((info->writes >> i) & 1u)
                w->call.in[i]->storage->deferred = false;
        }
        trn__apply(&w->call);
        drop_waiting(c, w);
    }
    trn__grad_mode(c, mode);
    s->running = false;
    return c->status;
}

/* Keeps s's bytes if the open step did not make s and has not kept them. */
static trn_status save_bytes(trn_context *c, trn__storage *s)
{
    trn__tensors *ts = c->tensors;
    if (!ts->in_step || s->saved || s->step == ts->step_serial)
        return TRN_OK;
    saved_bytes *b = trn__alloc(c, sizeof *b);
    void *bytes = trn__alloc(c, (size_t)s->bytes);
    if (b == NULL || bytes == NULL) {
        trn__free(c, b);
        trn__free(c, bytes);
        return trn__fail_memory(c, "a write in a step", s->bytes);
    }
    trn_status status = trn__storage_read(s, 0, bytes, s->bytes);
    if (status != TRN_OK) {
        trn__free(c, b);
        trn__free(c, bytes);
        return status;
    }
    *b = (saved_bytes){
        .next = c->step->bytes,
        .storage = s,
        .version = s->version,
        .bytes = bytes,
    };
    trn__storage_ref(s);
    s->saved = true;
    c->step->bytes = b;
    return TRN_OK;
}

/* Updates at the end of a step cannot fail any more: no copy is needed. */
static trn_status before_write(trn_context *c, trn__storage *s)
{
    return c->step->running ? TRN_OK : save_bytes(c, s);
}

static trn_status settle(trn_context *c)
{
    trn__step *s = c->step;
    if (s == NULL || s->running || s->first == NULL)
        return c->status;
    for (waiting *w = s->first; w != NULL; w = w->next) {
        const trn__op_info *info = &trn__ops[w->call.op];
        for (int i = 0; i < w->call.n_in; i++) {
            if ((info->writes >> i) & 1u)
                TRN_TRY(save_bytes(c, w->call.in[i]->storage));
        }
    }
    return run_waiting(c);
}

static trn_status step_open(trn_context *c)
{
    c->step = trn__alloc_zeroed(c, sizeof *c->step);
    if (c->step == NULL)
        return trn__fail_memory(c, "trn_open", sizeof *c->step);
    c->tensors->settle = settle;
    c->tensors->before_write = before_write;
    return TRN_OK;
}

trn_status trn__defer_update(trn__call *k)
{
    trn_context *c = k->c;
    const trn__op_info *info = &trn__ops[k->op];
    if (!c->tensors->in_step)
        return trn__apply(k) == NULL ? c->status : TRN_OK;
    waiting *w = trn__alloc(c, sizeof *w);
    if (w == NULL)
        return trn__fail_memory(c, info->name, sizeof *w);
    w->next = NULL;
    w->call = *k;
    if (k->attrs_size > 0)
        memcpy(w->attrs, k->attrs, k->attrs_size);
    w->call.attrs = w->attrs;
    w->call.counted = true;
    for (int i = 0; i < k->n_in; i++) {
        trn__ref(k->in[i]);
        if ((info->writes >> i) & 1u) {
            k->in[i]->storage->deferred = true;
            k->in[i]->storage->version++; /* for the tape it is written now */
        }
    }
    trn__step *s = c->step;
    *(s->last == NULL ? &s->first : &s->last->next) = w;
    s->last = w;
    return TRN_OK;
}

trn_status trn__set_grad(trn_tensor *t, trn_tensor *grad)
{
    trn_context *c = t->c;
    if (!c->tensors->in_step) {
        trn_tensor *old = t->grad;
        t->grad = grad;
        trn__unref(old);
        return TRN_OK;
    }
    saved_grad *g = trn__alloc(c, sizeof *g);
    if (g == NULL) {
        trn__unref(grad);
        return trn__fail_memory(c, "a gradient", sizeof *g);
    }
    *g = (saved_grad){
        .next = c->step->grads,
        .tensor = trn__ref(t),
        .grad = t->grad, /* its reference moves here */
    };
    c->step->grads = g;
    t->grad = grad;
    return TRN_OK;
}

void trn__step_set_loss(trn_context *c, trn_tensor *root)
{
    /* Without its record: the loss outlives the step, its history does not. */
    trn_tensor *value = trn__own_tensor(trn__tensor_alias(root));
    if (value == NULL)
        return;
    trn_tensor *old = c->step->loss;
    c->step->loss = value;
    trn__unref(old);
}

/* Newest first, so that what was there before the step comes last. */
static void end_journal(trn_context *c, bool undo)
{
    trn__step *s = c->step;
    while (s->grads != NULL) {
        saved_grad *g = s->grads;
        s->grads = g->next;
        if (undo) {
            trn_tensor *newer = g->tensor->grad;
            g->tensor->grad = g->grad;
            g->grad = newer;
        }
        trn__unref(g->grad);
        trn__unref(g->tensor);
        trn__free(c, g);
    }
    while (s->bytes != NULL) {
        saved_bytes *b = s->bytes;
        s->bytes = b->next;
        if (undo && b->storage->bytes > 0)
            c->backend->write(c->device, b->storage->buffer, 0, b->bytes,
                              b->storage->bytes);
        b->storage->saved = false;
        trn__storage_unref(b->storage);
        trn__free(c, b->bytes);
        trn__free(c, b);
    }
}

static void drop_all_waiting(trn_context *c)
{
    trn__step *s = c->step;
    while (s->first != NULL) {
        waiting *w = s->first;
        s->first = w->next;
        drop_waiting(c, w);
    }
    s->last = NULL;
}

static void step_close(trn_context *c)
{
    if (c->step == NULL)
        return;
    drop_all_waiting(c);
    end_journal(c, false);
    trn__unref(c->step->loss);
    trn__free(c, c->step);
    c->step = NULL;
}

const trn__layer trn__step_layer = {
    .open = step_open,
    .close = step_close,
};

trn_status trn_step_begin(trn_context *c)
{
    TRN_TRY(trn__pending(c));
    if (c->tensors->in_step)
        return trn__fail(c, TRN_ERR_STATE,
                         "trn_step_begin: a step is open; expected "
                         "trn_step_end() first");
    c->tensors->in_step = true;
    c->tensors->scope = &c->tensors->step;
    c->tensors->step_serial++;
    trn__counters_begin(c);
    return TRN_OK;
}

trn_status trn_step_end(trn_context *c)
{
    if (c == NULL)
        return TRN_ERR_NOMEM;
    if (c->tensors == NULL || !c->tensors->in_step)
        return c->status != TRN_OK
                   ? c->status
                   : trn__fail(c, TRN_ERR_STATE,
                               "trn_step_end: no step is open; expected "
                               "trn_step_begin() first");
    if (c->status == TRN_OK)
        run_waiting(c);
    bool failed = c->status != TRN_OK;
    drop_all_waiting(c);
    end_journal(c, failed);
    if (failed) {
        trn__counters_rollback(c);
    } else {
        trn__counters_commit(c);
        c->step->index++;
    }
    c->tensors->in_step = false;
    c->tensors->scope = &c->tensors->base;
    trn__step_ring_clear(c);
    return c->status;
}

int64_t trn_step_index(const trn_context *c)
{
    return c == NULL || c->step == NULL ? 0 : c->step->index;
}

double trn_step_loss(trn_context *c)
{
    if (trn__pending(c) != TRN_OK || c->step->loss == NULL)
        return (double)NAN;
    trn_tensor *loss = c->step->loss;
    if (trn__numel(loss->arg.rank, loss->arg.shape) == 0)
        return (double)NAN;
    double value = 0.0;
    return trn__first_element(loss, &value) == TRN_OK ? value : (double)NAN;
}
