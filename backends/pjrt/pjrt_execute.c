/* SPDX-License-Identifier: Apache-2.0
 *
 * Starting an execution: arguments from handles and from the host, and handles
 * that get its results.
 *
 * Everything that can fail comes before the plug-in's call; after it, handles
 * are only exchanged.  Arguments are gathered while the execution before it
 * still runs; only then its check is waited for.  An input whose memory a
 * result takes over is donated: its buffer is gone as soon as the call has
 * succeeded.
 */
#include <string.h>

#include "backends/pjrt/pjrt.h"

/* What a host of any version has: the struct as it was first. */
#define FIRST_EXECUTION \
    (offsetof(trn_execution, draws) + sizeof(((trn_execution *)0)->draws))

static trn_buffer *input_of(const trn_execution *e, const trn__hlo_param *p)
{
    return e->inputs[p->index];
}

/* The handle that gets a result; NULL: the vector of checks. */
static trn_buffer *target(const trn_program *p, const trn_execution *e,
                          const trn__hlo_result *r)
{
    if (r->index < 0)
        return NULL;
    return r->alias >= 0 ? input_of(e, &p->hlo->params[r->alias])
                         : e->outputs[r->index];
}

static bool fits(const trn_program *p, const trn_execution *e)
{
    if (e->size < FIRST_EXECUTION || e->n_inputs != p->n_inputs ||
        e->n_outputs != p->n_outputs || e->n_scalars != p->n_scalars ||
        e->n_draws != p->n_draws)
        return false;
    for (int32_t i = 0; i < p->hlo->n_params; i++) {
        const trn__hlo_param *param = &p->hlo->params[i];
        if (param->source != TRN__HLO_INPUT)
            continue;
        const trn_buffer *b = input_of(e, param);
        if (b == NULL || b->bytes != param->bytes)
            return false;
    }
    for (int32_t i = 0; i < p->hlo->n_results; i++) {
        const trn__hlo_result *r = &p->hlo->results[i];
        const trn_buffer *b = target(p, e, r);
        if (r->index >= 0 && (b == NULL || b->bytes != r->bytes))
            return false;
    }
    return true;
}

/* One handle may be several inputs, but be overwritten as one only. */
static int32_t mark_donated(trn_device *dev, const trn_program *p,
                            const trn_execution *e, uint64_t ticket)
{
    for (int32_t i = 0; i < p->hlo->n_params; i++) {
        const trn__hlo_param *param = &p->hlo->params[i];
        if (param->source != TRN__HLO_INPUT || param->alias < 0)
            continue;
        trn_buffer *b = input_of(e, param);
        if (b->donated == ticket)
            return trn__pjrt_say(&dev->fault, TRN_ERR_ARG,
                                 "pjrt: execute: one buffer is overwritten as "
                                 "two inputs");
        b->donated = ticket;
    }
    return TRN_OK;
}

static int32_t from_input(trn_device *dev, trn_program *p,
                          const trn_execution *e, int32_t i, uint64_t ticket)
{
    const trn__hlo_param *param = &p->hlo->params[i];
    trn_buffer *b = input_of(e, param);
    /* Overwritten as another input, or used in another shape already. */
    if ((param->alias < 0 && b->donated == ticket) ||
        (b->used == ticket &&
         !trn__pjrt_is_like(b, param->dtype, param->rank, param->shape))) {
        p->ours[i] = true;
        return trn__pjrt_copy(dev, b, param->dtype, param->rank, param->shape,
                              &p->arguments[i]);
    }
    int32_t status =
        trn__pjrt_place(dev, b, param->dtype, param->rank, param->shape);
    p->arguments[i] = b->there;
    b->used = ticket;
    return status;
}

static int32_t from_host(trn_device *dev, trn_program *p,
                         const trn_execution *e, int32_t i)
{
    const trn__hlo_param *param = &p->hlo->params[i];
    int32_t status = trn__hlo_fill(dev->host, p->hlo, i, e, p->staging);
    if (status != TRN_OK)
        return trn__pjrt_say(&dev->fault, status,
                             "pjrt: execute: argument %d was not made", (int)i);
    p->ours[i] = true;
    return trn__pjrt_upload(dev, p->staging, param->dtype, param->rank,
                            param->shape, &p->arguments[i]);
}

/* Gives back the arguments that were made for this execution. */
static void drop_ours(trn_device *dev, trn_program *p)
{
    for (int32_t i = 0; i < p->hlo->n_params; i++) {
        if (p->ours[i])
            trn__pjrt_drop(dev, p->arguments[i]);
        p->arguments[i] = NULL;
        p->ours[i] = false;
    }
}

static int32_t gather(trn_device *dev, trn_program *p, const trn_execution *e,
                      uint64_t ticket)
{
    int32_t status = mark_donated(dev, p, e, ticket);
    for (int32_t i = 0; i < p->hlo->n_params && status == TRN_OK; i++)
        status = p->hlo->params[i].source == TRN__HLO_INPUT
                     ? from_input(dev, p, e, i, ticket)
                     : from_host(dev, p, e, i);
    return status;
}

static int32_t run(trn_device *dev, trn_program *p, pjrt_event **done)
{
    pjrt_execute_options options =
        PJRT_INIT(pjrt_execute_options, incarnation_ids);
    pjrt_buffer *const *arguments = p->arguments;
    pjrt_buffer **results = p->results;
    pjrt_execute_args args = PJRT_INIT(pjrt_execute_args, device);
    args.loaded = p->loaded;
    args.options = &options;
    args.arguments = &arguments;
    args.n_devices = 1;
    args.n_arguments = (size_t)p->hlo->n_params;
    args.results = &results;
    args.done = done;
    args.device = dev->execute_on;
    return trn__pjrt_check(dev->api, dev->api->execute(&args), "execute",
                           &dev->fault);
}

static void hand_out(trn_device *dev, trn_program *p, const trn_execution *e,
                     trn__pjrt_flight *f)
{
    for (int32_t i = 0; i < p->hlo->n_results; i++) {
        const trn__hlo_result *r = &p->hlo->results[i];
        trn_buffer *b = target(p, e, r);
        if (b == NULL)
            f->check = p->results[i];
        else
            trn__pjrt_replace(dev, b, p->results[i], r->dtype, r->rank,
                              r->shape);
        p->results[i] = NULL;
    }
}

static bool is_gone(trn_device *dev, pjrt_buffer *buffer)
{
    pjrt_is_deleted_args args = PJRT_INIT(pjrt_is_deleted_args, is_deleted);
    args.buffer = buffer;
    pjrt_error *error = dev->api->is_deleted(&args);
    if (error == NULL)
        return args.is_deleted;
    trn__pjrt_ignore(dev->api, error);
    return true; /* who cannot tell may not say that the value is there */
}

/* After a failed call: has it taken donated inputs all the same? */
static bool lose_donated(trn_device *dev, const trn_program *p,
                         const trn_execution *e)
{
    bool lost = false;
    for (int32_t i = 0; i < p->hlo->n_params; i++) {
        const trn__hlo_param *param = &p->hlo->params[i];
        if (param->source != TRN__HLO_INPUT || param->alias < 0)
            continue;
        trn_buffer *b = input_of(e, param);
        if (!is_gone(dev, b->there))
            continue;
        trn__pjrt_replace(dev, b, NULL, b->dtype, b->rank, b->shape);
        lost = true;
    }
    return lost;
}

static void launch(trn_device *dev, trn_program *p, const trn_execution *e,
                   trn__pjrt_flight *f)
{
    if (run(dev, p, &f->done) == TRN_OK) {
        hand_out(dev, p, e, f);
    } else {
        trn__pjrt_fault first = dev->fault;
        bool lost = lose_donated(dev, p, e);
        dev->fault = first;
        trn__pjrt_fail_flight(dev, f, lost);
    }
    drop_ours(dev, p);
}

/* Launches it, or cancels it for a failure before it; a fault of its own counts
 * only if nothing before it failed, for it may be a consequence. */
static int32_t start(trn_device *dev, trn_program *p, const trn_execution *e,
                     trn__pjrt_flight *f)
{
    if (dev->failed != 0) {
        trn__pjrt_may_launch(dev, f, false);
        return TRN_OK;
    }
    int32_t status = gather(dev, p, e, f->ticket);
    trn__pjrt_fault fault = dev->fault;
    bool may = trn__pjrt_may_launch(dev, f, status != TRN_OK);
    if (may && status == TRN_OK)
        launch(dev, p, e, f);
    else
        drop_ours(dev, p);
    dev->fault = fault;
    return may ? status : TRN_OK;
}

int32_t trn__pjrt_execute(trn_device *dev, trn_program *p,
                          const trn_execution *e, uint64_t *ticket)
{
    *ticket = 0;
    if (!fits(p, e))
        return dev->host->fail(dev->host->host, TRN_ERR_ARG,
                               "pjrt: execute: the lists are not those of the "
                               "program");
    trn__pjrt_flight *f = trn__pjrt_next_flight(dev);
    if (f == NULL)
        return dev->host->fail(dev->host->host, TRN_ERR_ARG,
                               "pjrt: execute: two executions are in flight; "
                               "wait for the older one first");
    f->program = p;
    if (start(dev, p, e, f) != TRN_OK) {
        f->ticket = 0;
        return trn__pjrt_raise(dev);
    }
    *ticket = f->ticket;
    return TRN_OK;
}
