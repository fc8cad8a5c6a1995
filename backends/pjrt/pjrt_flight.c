/* SPDX-License-Identifier: Apache-2.0
 *
 * Executions on their way, at most two, and what became of them.
 *
 * PJRT orders them by the buffers that they share.  A fault of the device comes
 * with the event of the execution; a bad value that only the device sees stands
 * in the vector of checks, which is downloaded before the next one is launched:
 * so nothing runs on the results of an execution whose check is bad.
 */
#include <string.h>

#include "backends/pjrt/pjrt.h"

/* What a host of any version has: the struct as it was first. */
#define FIRST_OUTCOME \
    (offsetof(trn_outcome, report) + sizeof(((trn_outcome *)0)->report))

static int32_t read_check(trn_device *dev, trn__pjrt_flight *f)
{
    const trn__hlo_program *hlo = f->program->hlo;
    const trn__hlo_result *r = &hlo->results[hlo->check];
    int32_t status =
        trn__pjrt_download(dev, f->check, r->rank, f->program->check, r->bytes);
    if (status != TRN_OK) {
        /* Whether the step was taken is what nobody can tell now. */
        f->outcome.inputs_lost = f->program->n_aliased > 0;
        f->fault = dev->fault;
        return status;
    }
    /* A bad value: the program has kept what it would have overwritten. */
    return trn__hlo_read_check(hlo, f->program->check, &f->outcome);
}

/* One that never ran may be found before an older one that ran and failed. */
static void note_failure(trn_device *dev, const trn__pjrt_flight *f)
{
    if (dev->failed == 0 || dev->failed > f->ticket)
        dev->failed = f->ticket;
}

/* Waits for it and finds its outcome. */
static void settle(trn_device *dev, trn__pjrt_flight *f)
{
    if (f->settled)
        return;
    bool cancel = dev->failed != 0 && dev->failed < f->ticket;
    int32_t status = trn__pjrt_await(dev, f->done, "execute");
    f->done = NULL;
    if (cancel) {
        status = TRN_ERR_CANCELLED; /* whatever it did, it has done it */
        f->outcome.inputs_lost = f->program->n_aliased > 0;
    } else if (status != TRN_OK) {
        f->outcome.inputs_lost = f->program->n_aliased > 0;
        f->fault = dev->fault;
    } else if (f->check != NULL) {
        status = read_check(dev, f);
    }
    trn__pjrt_drop(dev, f->check);
    f->check = NULL;
    f->outcome.status = status;
    f->settled = true;
    if (status != TRN_OK)
        note_failure(dev, f);
}

void trn__pjrt_drain(trn_device *dev, const trn_program *p)
{
    for (int i = 0; i < TRN__PJRT_FLIGHTS; i++) {
        trn__pjrt_flight *f = &dev->flight[i];
        if (f->ticket != 0 && (p == NULL || f->program == p))
            settle(dev, f);
    }
}

trn__pjrt_flight *trn__pjrt_next_flight(trn_device *dev)
{
    trn__pjrt_flight *f = dev->flight;
    while (f < dev->flight + TRN__PJRT_FLIGHTS && f->ticket != 0)
        f++;
    if (f == dev->flight + TRN__PJRT_FLIGHTS)
        return NULL;
    memset(f, 0, sizeof *f);
    f->ticket = ++dev->last_ticket;
    f->outcome.node = -1;
    return f;
}

bool trn__pjrt_may_launch(trn_device *dev, trn__pjrt_flight *f, bool all)
{
    for (trn__pjrt_flight *older = dev->flight; older < f; older++) {
        if (all || older->check != NULL)
            settle(dev, older);
    }
    if (dev->failed == 0)
        return true;
    f->outcome.status = TRN_ERR_CANCELLED;
    f->settled = true;
    return false;
}

void trn__pjrt_fail_flight(trn_device *dev, trn__pjrt_flight *f,
                           bool inputs_lost)
{
    f->fault = dev->fault;
    f->outcome.status = dev->fault.status;
    f->outcome.inputs_lost = inputs_lost;
    f->settled = true;
    note_failure(dev, f);
}

static void forget(trn_device *dev, trn__pjrt_flight *f)
{
    trn__pjrt_flight *last = &dev->flight[TRN__PJRT_FLIGHTS - 1];
    for (; f < last; f++)
        *f = f[1];
    last->ticket = 0;
}

int32_t trn__pjrt_wait(trn_device *dev, uint64_t ticket, trn_outcome *outcome)
{
    trn__pjrt_flight *f = dev->flight;
    while (f < dev->flight + TRN__PJRT_FLIGHTS && f->ticket != ticket)
        f++;
    if (ticket == 0 || f == dev->flight + TRN__PJRT_FLIGHTS)
        return dev->host->fail(dev->host->host, TRN_ERR_ARG,
                               "pjrt: wait: no execution has this ticket");
    if (outcome->size < FIRST_OUTCOME)
        return dev->host->fail(dev->host->host, TRN_ERR_ARG,
                               "pjrt: wait: the outcome is smaller than its "
                               "first version");
    for (trn__pjrt_flight *older = dev->flight; older <= f; older++)
        settle(dev, older);
    if (dev->failed == ticket) { /* those behind it know that they failed */
        trn__pjrt_drain(dev, NULL);
        dev->failed = 0;
    }
    trn_outcome found = f->outcome;
    found.size = outcome->size;
    memcpy(outcome, &found,
           found.size < sizeof found ? found.size : sizeof found);
    if (found.status != TRN_OK && f->fault.status != TRN_OK)
        dev->host->fail(dev->host->host, f->fault.status, f->fault.text);
    forget(dev, f);
    return found.status;
}
