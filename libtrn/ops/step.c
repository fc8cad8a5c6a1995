/* SPDX-License-Identifier: Apache-2.0
 *
 * trn_step_begin and trn_step_end: scope, commit, rollback.
 */
#include <math.h>
#include <string.h>

#include "libtrn/ops/capture.h"
#include "libtrn/ops/flight.h"
#include "libtrn/ops/step.h"
#include "trn/step.h"

/* An UPDATE call that waits. */
typedef struct waiting {
    struct waiting *next;
    trn__call call;
    uint64_t attrs[TRN__MAX_ATTRS / 8];
} waiting;

typedef struct trn__step {
    waiting *first, *last;
    trn__journal *journal; /* of the open step */
    int64_t index;
    trn_tensor *loss;
    trn_tensor **outliving; /* of the open step, recorded in it */
    int32_t n_outliving, room_outliving;
    bool running; /* updates are being run: their own reads do not settle */
} trn__step;

bool trn__step_committing(const trn_context *c)
{
    return c->step != NULL && c->step->running;
}

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
    return trn__journal_bytes(c, c->step->journal, s);
}

static trn_status settle_updates(trn_context *c)
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

/* Does an update that waits read (or write) s? */
static bool is_awaited(const trn__step *step, const trn__storage *s)
{
    for (const waiting *w = step->first; w != NULL; w = w->next) {
        for (int i = 0; i < w->call.n_in; i++) {
            if (w->call.in[i]->storage == s)
                return true;
        }
    }
    return false;
}

/* Updates at the end of a step cannot fail any more: no copy is needed.  One
 * that waits for what is about to change, such as a gradient, comes first. */
static trn_status before_write(trn_context *c, trn__storage *s)
{
    if (c->step->running)
        return TRN_OK;
    if (is_awaited(c->step, s))
        TRN_TRY(settle_updates(c));
    return save_bytes(c, s);
}

static trn_status settle(trn_context *c, trn_tensor *t)
{
    return c->capture != NULL ? trn__capture_settle(c, t) : settle_updates(c);
}

trn_status trn__step_history(trn_tensor *t)
{
    trn_context *c = t->c;
    trn__step *s = c->step;
    if (!c->tensors->in_step)
        return TRN_OK;
    void *list = s->outliving;
    TRN_TRY(trn__grow(c, &list, &s->room_outliving, s->n_outliving + 1,
                      sizeof *s->outliving));
    s->outliving = list;
    s->outliving[s->n_outliving++] = trn__ref(t);
    return TRN_OK;
}

/* The history of what a step made ends with it, on every device alike. */
static void end_histories(trn_context *c)
{
    trn__step *s = c->step;
    while (s->n_outliving > 0) {
        trn_tensor *t = s->outliving[--s->n_outliving];
        struct trn__record *record = t->record;
        t->record = NULL;
        t->traced_grad = false;
        if (record != NULL)
            trn__record_unref(c, record);
        trn__unref(t);
    }
}

static trn_status hold(trn_tensor *t, int32_t by)
{
    t->holds += by;
    if (by > 0 && (t->record != NULL || t->traced_grad))
        TRN_TRY(trn__step_history(t));
    return by > 0 ? trn__trace_mark(t) : TRN_OK;
}

/* A write of host data takes its place among the calls of a captured step. */
static bool traces(trn_context *c)
{
    return c->tensors->in_step && trn__capture_on(c);
}

/* Host data may go to a leaf whose gradient is wanted, as where ops run at
 * once. */
static trn_status assign_data(trn_tensor *x, trn_tensor *y)
{
    trn_context *c = x->c;
    bool mode = trn__grad_mode(c, false);
    trn_status status = y == NULL ? c->status : trn_assign(x, y);
    trn__grad_mode(c, mode);
    return status;
}

static trn_status step_open(trn_context *c)
{
    c->step = trn__alloc_zeroed(c, sizeof *c->step);
    if (c->step == NULL)
        return trn__fail_memory(c, "trn_open", sizeof *c->step);
    c->tensors->settle = settle;
    c->tensors->before_write = before_write;
    c->tensors->hold = hold;
    c->tensors->traces = traces;
    c->tensors->assign = assign_data;
    return TRN_OK;
}

trn_status trn__defer_update(trn__call *k)
{
    trn_context *c = k->c;
    const trn__op_info *info = &trn__ops[k->op];
    if (!c->tensors->in_step || trn__capture_on(c))
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
    trn_tensor *old = t->grad;
    if (grad != NULL && hold(grad, 1) != TRN_OK) {
        trn__unref(grad);
        return c->status;
    }
    if (!c->tensors->in_step) {
        trn__unref(old);
    } else if (trn__journal_grad(c, c->step->journal, t, old) != TRN_OK) {
        trn__unref(grad);
        return c->status;
    }
    if (old != NULL)
        hold(old, -1);
    t->grad = grad;
    return TRN_OK;
}

void trn__step_set_loss(trn_context *c, trn_tensor *root)
{
    /* Without its record: the loss outlives the step, its history does not. */
    trn_tensor *value = trn__own_tensor(trn__tensor_alias(root));
    if (value == NULL)
        return;
    hold(value, 1);
    trn_tensor *old = trn__step_put_loss(c, value);
    if (c->step->journal != NULL)
        trn__journal_loss(c->step->journal, old);
    else
        trn__unref(old);
}

trn_tensor *trn__step_put_loss(trn_context *c, trn_tensor *loss)
{
    trn_tensor *old = c->step->loss;
    c->step->loss = loss;
    return old;
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
    trn__journal_drop(c, c->step->journal);
    trn__unref(c->step->loss);
    end_histories(c);
    trn__free(c, c->step->outliving);
    trn__free(c, c->step);
    c->step = NULL;
}

const trn__layer trn__step_layer = {
    .open = step_open,
    .close = step_close,
};

/* A step that could not begin. */
static void leave_step(trn_context *c, trn__journal *journal)
{
    c->step->journal = NULL;
    trn__journal_drop(c, journal);
    c->tensors->in_step = false;
    c->tensors->scope = &c->tensors->base;
}

static trn_status begin_step(trn_context *c)
{
    TRN_TRY(trn__may_go_on(c));
    TRN_TRY(trn__capture_flush(c));
    trn__journal *journal = trn__journal_new(c);
    if (journal == NULL)
        return c->status;
    if (trn__journal_counters(c, journal) != TRN_OK) {
        trn__journal_drop(c, journal);
        return c->status;
    }
    c->step->journal = journal;
    c->tensors->in_step = true;
    c->tensors->scope = &c->tensors->step;
    c->tensors->step_serial++;
    trn__counters_begin(c);
    if (trn__capture_begin(c) != TRN_OK)
        leave_step(c, journal);
    return c->status;
}

trn_status trn_step_begin(trn_context *c)
{
    TRN_TRY(trn__pending(c));
    if (c->tensors->in_step)
        return trn__fail(c, TRN_ERR_STATE,
                         "trn_step_begin: a step is open; expected "
                         "trn_step_end() first");
    if (begin_step(c) != TRN_OK)
        trn__counters_rollback_held(c); /* its batch comes again */
    return c->status;
}

/* The step's work, if nothing has failed so far. */
static trn_status run_step(trn_context *c)
{
    if (c->capture != NULL && c->capture->flight_failed)
        trn__fail(c, TRN_ERR_STATE,
                  "trn_step_end: a step before this one failed, so this one "
                  "has not happened; expected trn_clear() after its end");
    if (c->status == TRN_OK && trn__may_go_on(c) == TRN_OK)
        trn__journal_new_counters(c, c->step->journal);
    if (c->status == TRN_OK && trn__capture_on(c))
        trn__capture_run(c);
    else if (c->status == TRN_OK)
        run_waiting(c);
    return c->status;
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
    bool failed = run_step(c) != TRN_OK;
    trn__step *s = c->step;
    trn__journal *journal = s->journal;
    s->journal = NULL;
    drop_all_waiting(c);
    if (failed) {
        trn__counters_rollback(c);
        trn__journal_abandon(c, journal);
        trn__flights_undo(c);
    } else {
        trn__counters_commit(c);
        s->index++;
        if (!trn__flight_seal(c, journal))
            trn__journal_drop(c, journal);
    }
    end_histories(c);
    trn__capture_end(c);
    c->tensors->in_step = false;
    c->tensors->scope = &c->tensors->base;
    trn__step_ring_clear(c);
    return c->status;
}

void trn__step_uncount(trn_context *c)
{
    c->step->index--;
}

void trn__step_set_index(trn_context *c, int64_t index)
{
    c->step->index = index;
}

trn_status trn_sync(trn_context *c)
{
    TRN_TRY(trn__pending(c));
    TRN_TRY(trn__capture_flush(c));
    return trn__flights_finish(c);
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
    if (settle(c, loss) != TRN_OK)
        return (double)NAN;
    return trn__first_element(loss, &value) == TRN_OK ? value : (double)NAN;
}
