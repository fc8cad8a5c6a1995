/* SPDX-License-Identifier: Apache-2.0
 *
 * Executions in flight, at most two, in order.
 *
 * A flight holds what its step used, so nothing is freed or written under the
 * device, and what the host changed when the step ended: if the device reports
 * a failure, that flight and all behind it are taken back, newest first.
 */
#include "libtrn/ops/flight.h"
#include "libtrn/ops/step.h"

typedef struct trn__flight {
    struct trn__flight *next; /* oldest first */
    trn__plan *plan;
    uint64_t ticket;
    trn_tensor **inputs; /* with references */
    int32_t n_inputs;
    trn__storage **results; /* with references */
    int32_t n_results;
    struct trn__journal *journal; /* set when the step has ended */
    bool sealed;
} trn__flight;

static void flight_free(trn_context *c, trn__flight *f)
{
    for (int32_t i = 0; i < f->n_inputs; i++)
        trn__unref(f->inputs[i]);
    for (int32_t i = 0; i < f->n_results; i++)
        trn__storage_unref(f->results[i]);
    trn__free(c, f->inputs);
    trn__free(c, f->results);
    trn__free(c, f);
}

/* States that the program has overwritten in part hold no value any more. */
static void lose_states(trn_context *c, const trn_graph *g,
                        trn_tensor *const *inputs)
{
    (void)c;
    for (int32_t i = 0; i < g->n_outputs; i++) {
        if (g->outputs[i].alias >= 0)
            inputs[g->outputs[i].alias]->storage->lost = true;
    }
}

static trn_status run_now(trn_context *c, trn__plan *plan,
                          trn_buffer *const *outputs)
{
    TRN_TRY(trn__flights_finish(c)); /* the older ones come first */
    trn_outcome outcome = {.size = (uint32_t)sizeof outcome};
    trn_status status = trn__plan_run(c, plan, outputs, &outcome);
    if (status != TRN_OK && outcome.inputs_lost)
        lose_states(c, plan->raw, c->capture->bound);
    return status;
}

static trn__flight *flight_new(trn_context *c, int32_t n_results)
{
    trn__capture *p = c->capture;
    trn__flight *f = trn__alloc_zeroed(c, sizeof *f);
    if (f != NULL) {
        f->inputs =
            trn__alloc(c, (size_t)(p->n_bound + 1) * sizeof(trn_tensor *));
        f->results =
            trn__alloc(c, (size_t)(n_results + 1) * sizeof(trn__storage *));
    }
    if (f != NULL && f->inputs != NULL && f->results != NULL)
        return f;
    if (f != NULL)
        flight_free(c, f);
    trn__fail_memory(c, "a step in flight", sizeof *f);
    return NULL;
}

static int32_t count(const trn__capture *p)
{
    int32_t n = 0;
    for (trn__flight *f = p->flights; f != NULL; f = f->next)
        n++;
    return n;
}

/* The oldest flight's outcome.  After a failure it stays, to be undone. */
static trn_status finish_oldest(trn_context *c)
{
    trn__capture *p = c->capture;
    trn__flight *f = p->flights;
    trn_outcome outcome;
    trn_status status = trn__plan_finish(c, f->plan, f->ticket, &outcome);
    if (status != TRN_OK) {
        p->flight_failed = true;
        if (outcome.inputs_lost)
            lose_states(c, f->plan->raw, f->inputs);
        return status;
    }
    p->flights = f->next;
    trn__journal_drop(c, f->journal);
    flight_free(c, f);
    return TRN_OK;
}

/* Waits for the ones behind a failed flight, whose outcomes do not matter. */
static void drain(trn_context *c)
{
    trn__capture *p = c->capture;
    for (trn__flight *f = p->flights->next; f != NULL; f = f->next) {
        trn_outcome outcome = {.size = (uint32_t)sizeof outcome};
        c->backend->wait(c->device, f->ticket, &outcome);
        f->plan->in_flight--;
        if (outcome.inputs_lost)
            lose_states(c, f->plan->raw, f->inputs);
    }
}

static void undo_newest(trn_context *c, trn__flight **at)
{
    if (*at == NULL)
        return;
    undo_newest(c, &(*at)->next); /* two deep at most */
    trn__flight *f = *at;
    for (int32_t i = 0; i < f->n_results; i++)
        f->results[i]->lost = true;
    trn__journal_undo(c, f->journal);
    flight_free(c, f);
    *at = NULL;
}

void trn__flights_undo(trn_context *c)
{
    trn__capture *p = c->capture;
    if (p == NULL || !p->flight_failed)
        return;
    drain(c);
    undo_newest(c, &p->flights);
    p->flight_failed = false;
}

trn_status trn__flights_finish(trn_context *c)
{
    trn__capture *p = c->capture;
    while (p != NULL && p->flights != NULL && !p->flight_failed) {
        if (finish_oldest(c) != TRN_OK && !c->tensors->in_step)
            trn__flights_undo(c);
    }
    return c->status;
}

trn_status trn__flight_start(trn_context *c, trn__plan *plan,
                             trn_buffer *const *outputs,
                             trn__storage *const *results)
{
    trn__capture *p = c->capture;
    if (!(c->backend->caps & TRN_CAP_ASYNC) || !c->tensors->in_step)
        return run_now(c, plan, outputs);
    if (count(p) >= TRN__MAX_FLIGHTS)
        TRN_TRY(finish_oldest(c));
    const trn_graph *g = plan->raw;
    trn__flight *f = flight_new(c, g->n_outputs);
    if (f == NULL)
        return c->status;
    f->plan = plan;
    if (trn__plan_start(c, plan, outputs, &f->ticket) != TRN_OK) {
        flight_free(c, f);
        return c->status;
    }
    for (int32_t i = 0; i < p->n_bound; i++)
        f->inputs[f->n_inputs++] = trn__ref(p->bound[i]);
    for (int32_t i = 0; i < g->n_outputs; i++) {
        if (results[i] != NULL) {
            trn__storage_ref(results[i]);
            f->results[f->n_results++] = results[i];
        }
    }
    trn__flight **end = &p->flights;
    while (*end != NULL)
        end = &(*end)->next;
    *end = f;
    return TRN_OK;
}

bool trn__flight_seal(trn_context *c, struct trn__journal *journal)
{
    trn__capture *p = c->capture;
    trn__flight *f = p == NULL ? NULL : p->flights;
    while (f != NULL && f->next != NULL)
        f = f->next;
    if (f == NULL || f->sealed)
        return false;
    f->journal = journal;
    f->sealed = true;
    return true;
}

void trn__flights_end(trn_context *c)
{
    trn__capture *p = c->capture;
    if (p != NULL && p->flight_failed)
        drain(c); /* ... which has told of the oldest */
    while (p != NULL && p->flights != NULL) {
        trn__flight *f = p->flights;
        trn_outcome outcome = {.size = (uint32_t)sizeof outcome};
        if (!p->flight_failed)
            c->backend->wait(c->device, f->ticket, &outcome);
        p->flights = f->next;
        trn__journal_drop(c, f->journal);
        flight_free(c, f);
    }
}
