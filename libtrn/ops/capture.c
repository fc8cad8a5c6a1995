/* SPDX-License-Identifier: Apache-2.0
 *
 * Captured steps: what comes out of a step, its program, running it.
 *
 * Outputs of a step's program are the states that it wrote, in place, and the
 * tensors that someone has a use for after it: kept ones, gradients, the loss.
 */
#include <stdio.h>
#include <string.h>

#include "libtrn/context/struct_size.h"
#include "libtrn/dispatch/hlo_bridge.h"
#include "libtrn/ops/capture.h"
#include "libtrn/ops/flight.h"
#include "libtrn/ops/lower.h"
#include "libtrn/ops/plan.h"
#include "libtrn/ops/trace_parts.h"

#define MAX_LOOSE 256 /* ops that may wait outside of steps */

bool trn__capture_on(trn_context *c)
{
    trn__capture *p = c->capture;
    if (p == NULL)
        return false;
    bool loose = p->loose && !c->tensors->in_step;
    if (loose && p->on && p->at >= MAX_LOOSE && p->depth == 0 &&
        trn__capture_flush(c) != TRN_OK)
        return false; /* the error is pending */
    if (loose && !p->on)
        trn__trace_begin(c, true);
    return p->on;
}

trn_status trn__capture_begin(trn_context *c)
{
    if (c->capture == NULL)
        return TRN_OK;
    TRN_TRY(trn__capture_flush(c));
    trn__trace_begin(c, false);
    return c->status;
}

/* ---- outputs ---- */

typedef struct results {
    trn__graph_output *list;
    trn__storage **storages; /* of those with memory of their own */
    trn_buffer **buffers;
    int32_t n, room;
} results;

static trn_tensor *base_of(trn_tensor *t)
{
    while (t->view != NULL)
        t = t->view->base;
    return t;
}

static void add_result(results *r, int32_t value, int32_t alias,
                       trn__storage *s)
{
    for (int32_t i = 0; i < r->n; i++) {
        if (r->list[i].value == value && r->list[i].alias == alias)
            return;
    }
    r->list[r->n] = (trn__graph_output){value, alias};
    r->storages[r->n] = s;
    r->buffers[r->n] = NULL;
    r->n++;
}

static bool is_new(const trn__capture *p, const trn__storage *s)
{
    return s->trace_step == p->serial && s->trace_input < 0 &&
           s->buffer == NULL;
}

static trn_status results_open(trn_context *c, results *r)
{
    trn__capture *p = c->capture;
    int32_t room = p->n_bound + p->n_marked + 1;
    if (p->loose)
        room += p->trace->n_entries;
    size_t n = (size_t)room;
    *r = (results){.room = room};
    r->list = trn__alloc(c, n * sizeof *r->list);
    r->storages = trn__alloc(c, n * sizeof *r->storages);
    r->buffers = trn__alloc(c, n * sizeof *r->buffers);
    if (r->list == NULL || r->storages == NULL || r->buffers == NULL)
        return trn__fail_memory(c, "capture", n * sizeof *r->list);
    return TRN_OK;
}

static void results_close(trn_context *c, results *r)
{
    for (int32_t i = 0; i < r->n; i++) { /* not handed over: given back */
        if (r->buffers[i] != NULL && r->storages[i] != NULL &&
            r->storages[i]->buffer != r->buffers[i])
            c->backend->free(c->device, r->buffers[i]);
    }
    trn__free(c, r->list);
    trn__free(c, r->storages);
    trn__free(c, r->buffers);
}

static void collect(trn_context *c, results *r)
{
    trn__capture *p = c->capture;
    const trn_graph *g = p->trace->graph;
    for (int32_t i = 0; i < p->n_bound; i++) {
        trn__storage *s = p->bound[i]->storage;
        if (s->trace_input == i && s->trace_slot != g->inputs[i])
            add_result(r, s->trace_slot, i, NULL);
    }
    for (int32_t i = 0; i < p->n_marked; i++) {
        trn__storage *s = base_of(p->marked[i])->storage;
        if (p->marked[i]->holds > 0 && is_new(p, s))
            add_result(r, s->trace_slot, -1, s);
    }
    if (c->tensors->in_step)
        return;
    for (int32_t i = 0; i < p->trace->n_entries; i++) { /* loose */
        trn_tensor *t = p->trace->entries[i].handle;
        if (t != NULL && t->view == NULL && t->refs > 1 &&
            is_new(p, t->storage))
            add_result(r, t->storage->trace_slot, -1, t->storage);
    }
}

static bool same_outputs(const trn_graph *g, const results *r)
{
    return g->n_outputs == r->n &&
           (r->n == 0 ||
            memcmp(g->outputs, r->list, (size_t)r->n * sizeof *r->list) == 0);
}

static bool ends_alike(trn_context *c, const trn__trace *t, void *user)
{
    return t->n_entries == c->capture->at && same_outputs(t->graph, user);
}

static trn_status settle_outputs(trn_context *c, results *r)
{
    trn__capture *p = c->capture;
    if (p->matching && !ends_alike(c, p->trace, r)) {
        snprintf(p->reason, sizeof p->reason, "call %d: the step ends here%s",
                 (int)p->at,
                 p->at == p->trace->n_entries ? " with other results" : "");
        TRN_TRY(trn__trace_diverge(c, ends_alike, r));
    }
    if (p->matching) {
        p->info.matches++;
        return TRN_OK;
    }
    trn_graph *g = p->trace->graph;
    g->n_outputs = 0;
    for (int32_t i = 0; i < r->n; i++)
        TRN_TRY(trn__graph_add_output(g, r->list[i].value, r->list[i].alias));
    return TRN_OK;
}

static trn_status make_buffers(trn_context *c, results *r)
{
    for (int32_t i = 0; i < r->n; i++) {
        trn__storage *s = r->storages[i];
        if (r->list[i].alias >= 0) {
            r->buffers[i] =
                c->capture->bound[r->list[i].alias]->storage->buffer;
        } else if (s->bytes > 0) {
            const trn_graph *g = c->capture->trace->graph;
            r->buffers[i] =
                trn__buffer_new(c, &g->values[r->list[i].value].arg, s->bytes);
            if (r->buffers[i] == NULL)
                return trn__fail_memory(c, "a result of the step", s->bytes);
        }
    }
    return TRN_OK;
}

static void forget_history(trn_tensor *t)
{
    struct trn__record *record = t->record;
    t->record = NULL;
    t->traced_grad = false;
    if (record != NULL)
        t->c->tensors->release_record(t->c, record);
}

/* Results have memory now, and are tensors like any other. */
static void hand_over(trn_context *c, results *r)
{
    trn__capture *p = c->capture;
    for (int32_t i = 0; i < r->n; i++) {
        if (r->storages[i] != NULL) {
            r->storages[i]->buffer = r->buffers[i];
            r->storages[i]->step = 0;
        }
    }
    for (int32_t i = 0; i < p->n_marked; i++) {
        trn_tensor *t = p->marked[i];
        for (;;) {
            t->arg.buffer = t->storage->buffer;
            if (c->tensors->in_step && t->owner != NULL)
                forget_history(t); /* what it looks at may be older */
            trn__entry_let_go(t);  /* the mark holds it until the end */
            if (t->view == NULL)
                break;
            t = t->view->base;
        }
    }
    for (int32_t i = 0; !c->tensors->in_step && i < p->trace->n_entries; i++) {
        trn_tensor *t = p->trace->entries[i].handle;
        if (t != NULL)
            t->arg.buffer = t->storage->buffer;
    }
}

static trn_status run_program(trn_context *c, results *r)
{
    trn__capture *p = c->capture;
    trn__trace *t = p->trace;
    if (r->n == 0 && !trn__graph_has_checks(t->graph))
        return trn__flights_finish(c); /* nothing flies that could hold a
                                          journal: what flies must be known */
    trn__plan *plan = t->plan;
    if (plan == NULL)
        plan = trn__plan_of(c, t->graph);
    if (plan == NULL)
        return c->status;
    trn__plan_touch(c, plan);
    t->plan = plan;
    TRN_TRY(make_buffers(c, r));
    return trn__flight_start(c, plan, r->buffers, r->storages);
}

trn_status trn__capture_run(trn_context *c)
{
    trn__capture *p = c->capture;
    results r;
    trn_status status = results_open(c, &r);
    if (status == TRN_OK) {
        collect(c, &r);
        status = settle_outputs(c, &r);
    }
    if (status == TRN_OK)
        status = run_program(c, &r);
    if (status == TRN_OK) {
        hand_over(c, &r);
        if (c->tensors->in_step) {
            p->trace->complete = true;
            trn__trace_to_front(c, p->trace);
        }
    }
    results_close(c, &r);
    return status;
}

static void drop_peeks(trn_context *c)
{
    trn__capture *p = c->capture;
    for (int32_t i = 0; i < p->n_held; i++) {
        trn__storage *s = p->held[i]->storage;
        if (s != NULL && s->peek != NULL) {
            c->backend->free(c->device, s->peek);
            s->peek = NULL;
        }
    }
}

#define MAX_TRACES 64

void trn__capture_end(trn_context *c)
{
    trn__capture *p = c->capture;
    if (p == NULL || !p->on)
        return;
    drop_peeks(c);
    for (int32_t i = 0; c->status != TRN_OK && i < p->n_marked; i++) {
        trn__storage *s = base_of(p->marked[i])->storage;
        s->lost = s->lost || is_new(p, s); /* of a step that failed */
        for (trn_tensor *t = p->marked[i]; t != NULL;
             t = t->view == NULL ? NULL : t->view->base)
            trn__entry_let_go(t); /* someone still has it */
    }
    trn__trace_end(c);
    while (p->n_traces > MAX_TRACES)
        trn__trace_free(c, p->last);
}

trn_status trn__capture_flush(trn_context *c)
{
    trn__capture *p = c->capture;
    if (p == NULL || !p->on || c->tensors->in_step)
        return c->status;
    trn_status status = trn__capture_run(c);
    trn__capture_end(c);
    return status;
}

/* ---- reading inside a step ---- */

static trn_status read_early(trn_context *c, trn__storage *s)
{
    trn__capture *p = c->capture;
    trn_outcome outcome;
    trn_status status = TRN_ERR_NOMEM;
    trn_graph *g = trn__graph_new(c);
    if (g == NULL)
        return c->status;
    trn__plan *plan = NULL;
    if (trn__trace_copy_graph(p->trace, p->at, p->n_bound, g) == TRN_OK &&
        trn__graph_add_output(g, s->trace_slot, -1) == TRN_OK)
        plan = trn__plan_of(c, g);
    trn__graph_free(g);
    if (plan == NULL)
        return c->status;
    trn_buffer *buffer = trn__buffer_new(
        c, &p->trace->graph->values[s->trace_slot].arg, s->bytes);
    if (buffer == NULL)
        return trn__fail_memory(c, "an early read", s->bytes);
    status = trn__plan_run(c, plan, &buffer, &outcome);
    if (status != TRN_OK) {
        c->backend->free(c->device, buffer);
        return status;
    }
    if (s->peek != NULL)
        c->backend->free(c->device, s->peek);
    s->peek = buffer;
    p->info.early_reads++;
    return TRN_OK;
}

trn_status trn__capture_settle(trn_context *c, trn_tensor *t)
{
    trn__capture *p = c->capture;
    TRN_TRY(trn__capture_flush(c));
    TRN_TRY(trn__flights_finish(c));
    trn__storage *s = t->storage;
    if (s->lost)
        return trn__fail(c, TRN_ERR_LOST,
                         "%s was lost with a failed step; expected it to be "
                         "loaded from a checkpoint",
                         trn__describe(&t->arg).s);
    if (!p->on || s->trace_step != p->serial || s->bytes == 0 ||
        (s->trace_input >= 0 &&
         s->trace_slot == p->trace->graph->inputs[s->trace_input]))
        return TRN_OK;
    if (p->refuse_early_read)
        return trn__fail(c, TRN_ERR_STATE,
                         "a read of %s inside an open step; early reads are "
                         "refused here (TRN_EARLY_READ=refuse)",
                         trn__describe(&t->arg).s);
    TRN_TRY(trn__trace_hold(c, t));
    return read_early(c, s);
}

/* ---- the layer ---- */

static trn_status capture_open(trn_context *c)
{
    bool graph = (c->backend->caps & TRN_CAP_GRAPH) != 0;
    bool eager = (c->backend->caps & TRN_CAP_EAGER) != 0;
    if (c->exec == TRN_EXEC_CAPTURED && !graph)
        return trn__fail(c, TRN_ERR_UNSUPPORTED,
                         "trn_open: captured steps were asked for, but device "
                         "%s takes single ops only",
                         c->backend->name);
    if (c->exec == TRN_EXEC_EAGER && !eager)
        return trn__fail(c, TRN_ERR_UNSUPPORTED,
                         "trn_open: eager ops were asked for, but device %s "
                         "takes whole steps only",
                         c->backend->name);
    if (c->exec != TRN_EXEC_CAPTURED && eager)
        return TRN_OK;
    trn__capture *p = trn__alloc_zeroed(c, sizeof *p);
    if (p == NULL)
        return trn__fail_memory(c, "trn_open", sizeof *p);
    c->capture = p;
    p->loose = !eager;
    p->serial = 1;
    p->plan_limit = c->plan_limit;
    p->refuse_early_read = c->refuse_early_read;
    c->tensors->keep_views = true;
    return TRN_OK;
}

static void capture_close(trn_context *c)
{
    trn__capture *p = c->capture;
    if (p == NULL)
        return;
    if (p->on)
        trn__capture_end(c);
    while (p->first != NULL)
        trn__trace_free(c, p->first);
    trn__plans_free(c);
    trn__capture_free(c, p);
    c->capture = NULL;
}

const trn__layer trn__capture_layer = {
    .open = capture_open,
    .close = capture_close,
};

trn_status trn_capture(const trn_context *c, trn_capture_info *out)
{
    if (c == NULL)
        return TRN_ERR_NOMEM;
    trn_capture_info info = TRN_CAPTURE_INFO_INIT;
    if (!trn__struct_holds(TRN__SIZED_trn_capture_info, out))
        return TRN_ERR_ARG;
    if (c->capture != NULL)
        info = c->capture->info;
    info.bytes_to_host = c->bytes_to_host;
    info.bytes_to_device = c->bytes_to_device;
    trn__struct_give(TRN__SIZED_trn_capture_info, out, &info);
    return TRN_OK;
}

const char *trn_capture_reason(const trn_context *c)
{
    return c == NULL || c->capture == NULL ? "" : c->capture->reason;
}

/* The last captured step, for printing; NULL with the error raised. */
static const trn__trace *last_step(trn_context *c, const char *what,
                                   bool prepared, trn_put_fn put)
{
    if (trn__pending(c) != TRN_OK)
        return NULL;
    const trn__trace *t = c->capture == NULL ? NULL : c->capture->first;
    if (t == NULL || !t->complete || (prepared && t->plan == NULL)) {
        trn__fail(c, TRN_ERR_STATE,
                  "%s: no step was captured; expected TRN_EXEC=captured and a "
                  "step that ended well",
                  what);
        return NULL;
    }
    if (put == NULL) {
        trn__fail(c, TRN_ERR_ARG, "%s: put is NULL", what);
        return NULL;
    }
    return t;
}

trn_status trn_capture_print_hlo(trn_context *c, const char *profile,
                                 trn_put_fn put, void *user)
{
    const trn__trace *t = last_step(c, "trn_capture_print_hlo", false, put);
    if (t == NULL)
        return trn__pending(c);
    trn__fp_env saved; /* numbers in texts are rounded, too */
    trn__fp_enter(&saved);
    trn_status status = trn__hlo_print_raw(c, t->graph, profile,
                                           trn__graph_lowered_for, put, user);
    trn__fp_leave(&saved);
    return status;
}

trn_status trn_capture_print(trn_context *c, bool prepared, bool dot,
                             trn_put_fn put, void *user)
{
    const trn__trace *t = last_step(c, "trn_capture_print", prepared, put);
    if (t == NULL)
        return trn__pending(c);
    const trn_graph *g = prepared ? t->plan->graph : t->graph;
    trn__fp_env saved;
    trn__fp_enter(&saved);
    if (dot)
        trn__graph_print_dot(g, put, user);
    else
        trn__graph_print(g, put, user);
    trn__fp_leave(&saved);
    return TRN_OK;
}
