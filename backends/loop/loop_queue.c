/* SPDX-License-Identifier: Apache-2.0
 *
 * Executions on their way: a list in the order of their tickets, a worker that
 * runs them one after the other, and the host's questions about them.
 *
 * The list belongs to the host's thread but for what the lock guards: the
 * worker reads the first job that is not done, and marks it done.
 */
#include <signal.h>
#include <string.h>

#include "loop.h"

/* The size of a struct up to and with that field. */
#define SIZE_WITH(type, field) \
    (offsetof(type, field) + sizeof(((type *)0)->field))

/* What a host of any version has: the structs as they were first. */
#define FIRST_EXECUTION SIZE_WITH(trn_execution, draws)
#define FIRST_OUTCOME SIZE_WITH(trn_outcome, report)

static trn__loop_job *next_job(const trn_device *dev)
{
    trn__loop_job *job = dev->jobs;
    while (job != NULL && job->done)
        job = job->next;
    return job;
}

static void run_or_cancel(trn_device *dev, trn__loop_job *job, bool cancel)
{
    if (cancel) {
        job->outcome.status = TRN_ERR_CANCELLED;
        trn__loop_count("cancelled");
        return;
    }
    trn__loop_run(dev, job);
    trn__loop_count(job->outcome.status == TRN_OK ? "completed" : "failed");
}

static void *worker_main(void *arg)
{
    trn_device *dev = arg;
    pthread_mutex_lock(&dev->lock);
    for (;;) {
        trn__loop_job *job = next_job(dev);
        if (job == NULL) {
            if (dev->stop)
                break;
            pthread_cond_wait(&dev->work, &dev->lock);
            continue;
        }
        bool cancel = dev->failed != 0;
        pthread_mutex_unlock(&dev->lock);
        run_or_cancel(dev, job, cancel);
        pthread_mutex_lock(&dev->lock);
        if (job->outcome.status != TRN_OK && dev->failed == 0)
            dev->failed = job->ticket;
        job->done = true;
        dev->n_pending--;
        pthread_cond_broadcast(&dev->done);
    }
    pthread_mutex_unlock(&dev->lock);
    return NULL;
}

/* With all signals blocked, the program's handlers run in its own threads. */
static bool start_worker(trn_device *dev)
{
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return false;
    bool started = pthread_create(&dev->worker, NULL, worker_main, dev) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

bool trn__loop_queue_open(trn_device *dev)
{
    if (pthread_mutex_init(&dev->lock, NULL) != 0)
        return false;
    if (pthread_cond_init(&dev->work, NULL) != 0)
        goto no_work;
    if (pthread_cond_init(&dev->done, NULL) != 0)
        goto no_done;
    dev->next_ticket = 1;
    if (start_worker(dev))
        return true;
    pthread_cond_destroy(&dev->done);
no_done:
    pthread_cond_destroy(&dev->work);
no_work:
    pthread_mutex_destroy(&dev->lock);
    return false;
}

static void free_job(trn_device *dev, trn__loop_job *job)
{
    trn__loop_pool_free(&dev->pool, job->undo);
    dev->host->dealloc(dev->host->host, job);
}

void trn__loop_queue_close(trn_device *dev)
{
    pthread_mutex_lock(&dev->lock);
    dev->stop = true;
    pthread_cond_signal(&dev->work);
    pthread_mutex_unlock(&dev->lock);
    pthread_join(dev->worker, NULL);
    while (dev->jobs != NULL) {
        trn__loop_job *job = dev->jobs;
        dev->jobs = job->next;
        free_job(dev, job);
    }
    pthread_cond_destroy(&dev->done);
    pthread_cond_destroy(&dev->work);
    pthread_mutex_destroy(&dev->lock);
}

static bool uses(const trn__loop_job *job, const trn_buffer *buffer)
{
    for (int32_t i = 0; i < job->program->info.n_inputs; i++) {
        if (job->inputs[i] == buffer)
            return true;
    }
    for (int32_t i = 0; i < job->program->info.n_outputs; i++) {
        if (job->outputs[i] == buffer)
            return true;
    }
    return false;
}

void trn__loop_drain(trn_device *dev, const trn_buffer *buffer,
                     const trn_program *program)
{
    pthread_mutex_lock(&dev->lock);
    for (const trn__loop_job *job = dev->jobs; job != NULL; job = job->next) {
        if ((buffer != NULL && !uses(job, buffer)) ||
            (program != NULL && job->program != program))
            continue;
        while (!job->done)
            pthread_cond_wait(&dev->done, &dev->lock);
    }
    pthread_mutex_unlock(&dev->lock);
}

/* An empty list may be NULL, which memcpy does not take. */
static void copy_list(void *to, const void *from, size_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, bytes);
}

/* A copy of all that `e` points to, in one block. */
static trn__loop_job *new_job(trn_device *dev, const trn_program *p,
                              const trn_execution *e)
{
    size_t inputs = e->n_inputs * sizeof *e->inputs;
    size_t outputs = e->n_outputs * sizeof *e->outputs;
    size_t scalars = e->n_scalars * sizeof *e->scalars;
    size_t draws = e->n_draws * sizeof *e->draws;
    size_t head = (sizeof(trn__loop_job) + 15) / 16 * 16;
    char *at = dev->host->alloc(dev->host->host,
                                head + inputs + outputs + scalars + draws);
    if (at == NULL)
        return NULL;
    trn__loop_job *job = (trn__loop_job *)(void *)at;
    *job = (trn__loop_job){
        .ticket = dev->next_ticket,
        .program = p,
        .inputs = (trn_buffer **)(void *)(at + head),
        .outputs = (trn_buffer **)(void *)(at + head + inputs),
        .scalars = (double *)(void *)(at + head + inputs + outputs),
        .draws =
            (uint64_t(*)[2])(void *)(at + head + inputs + outputs + scalars),
        .outcome = {.size = sizeof job->outcome, .node = -1},
    };
    copy_list(job->inputs, e->inputs, inputs);
    copy_list(job->outputs, e->outputs, outputs);
    copy_list(job->scalars, e->scalars, scalars);
    copy_list(job->draws, e->draws, draws);
    if (p->undo_bytes > 0 && trn__loop_may_fail(dev, TRN__LOOP_wait)) {
        job->undo = trn__loop_pool_alloc(&dev->pool, p->undo_bytes);
        if (job->undo == NULL) {
            free_job(dev, job);
            return NULL;
        }
    }
    return job;
}

static void enqueue(trn_device *dev, trn__loop_job *job)
{
    pthread_mutex_lock(&dev->lock);
    while (dev->n_pending >= dev->options.queue)
        pthread_cond_wait(&dev->done, &dev->lock);
    trn__loop_job **link = &dev->jobs;
    while (*link != NULL)
        link = &(*link)->next;
    *link = job;
    dev->n_pending++;
    dev->next_ticket++;
    pthread_cond_signal(&dev->work);
    pthread_mutex_unlock(&dev->lock);
}

/* Is it memory for a tensor like that value? */
static bool holds(const trn_device *dev, const trn_program *p,
                  const trn_buffer *buffer, int32_t value)
{
    const trn__loop_value *v = &p->values[value];
    if (buffer == NULL)
        return v->bytes == 0;
    uint64_t form = *trn__loop_form_of(&dev->pool, buffer);
    return form == 0 || form == trn__loop_form(&v->arg);
}

static bool fits(const trn_device *dev, const trn_program *p,
                 const trn_execution *e)
{
    if (e->size < FIRST_EXECUTION ||
        e->n_inputs != (uint32_t)p->info.n_inputs ||
        e->n_outputs != (uint32_t)p->info.n_outputs ||
        e->n_scalars != (uint32_t)p->info.n_scalars ||
        e->n_draws != (uint32_t)p->info.n_draws)
        return false;
    for (uint32_t i = 0; i < e->n_inputs; i++) {
        if (!holds(dev, p, e->inputs[i], p->inputs[i]))
            return false;
    }
    for (uint32_t i = 0; i < e->n_outputs; i++) {
        int32_t alias = p->outputs[i].alias;
        if (alias < 0 ? !holds(dev, p, e->outputs[i], p->outputs[i].value)
                      : e->outputs[i] != e->inputs[alias])
            return false;
    }
    return true;
}

int32_t trn__loop_execute(trn_device *dev, trn_program *program,
                          const trn_execution *e, uint64_t *ticket)
{
    bool fails = trn__loop_call(dev, TRN__LOOP_execute);
    bool loses = trn__loop_call(dev, TRN__LOOP_lost);
    *ticket = 0;
    if (!fits(dev, program, e))
        return trn__loop_fail(dev, TRN_ERR_ARG,
                              "loop: execute: the lists, or types and shapes "
                              "of buffers, are not those of the program");
    trn__loop_job *job = new_job(dev, program, e);
    if (job == NULL)
        return trn__loop_fail(dev, TRN_ERR_NOMEM, "loop: execute: no memory");
    job->fault = loses ? TRN__LOOP_lost : fails ? TRN__LOOP_execute : 0;
    *ticket = job->ticket;
    enqueue(dev, job);
    return TRN_OK;
}

static trn__loop_job *find(const trn_device *dev, uint64_t ticket)
{
    trn__loop_job *job = dev->jobs;
    while (job != NULL && job->ticket != ticket)
        job = job->next;
    return job;
}

/* Jobs behind `job` have run on what it wrote: newest first, all of it is put
 * back.  Nothing is in flight. */
static void revert(trn_device *dev, trn__loop_job *job)
{
    if (job->next != NULL)
        revert(dev, job->next);
    trn__loop_undo(dev, job);
    job->committed = false;
    job->outcome = (trn_outcome){
        .size = sizeof job->outcome,
        .status = TRN_ERR_CANCELLED,
        .node = -1,
        .inputs_lost = job->outcome.inputs_lost,
    };
}

static void forget(trn_device *dev, trn__loop_job *job)
{
    pthread_mutex_lock(&dev->lock);
    trn__loop_job **link = &dev->jobs;
    while (*link != job)
        link = &(*link)->next;
    *link = job->next;
    pthread_mutex_unlock(&dev->lock);
    free_job(dev, job);
}

int32_t trn__loop_wait(trn_device *dev, uint64_t ticket, trn_outcome *outcome)
{
    bool fails = trn__loop_call(dev, TRN__LOOP_wait);
    trn__loop_job *job = find(dev, ticket);
    if (job == NULL)
        return trn__loop_fail(dev, TRN_ERR_ARG,
                              "loop: wait: no execution has this ticket");
    if (outcome->size < FIRST_OUTCOME)
        return trn__loop_fail(dev, TRN_ERR_ARG,
                              "loop: wait: the outcome is smaller than its "
                              "first version");
    pthread_mutex_lock(&dev->lock);
    while (!job->done)
        pthread_cond_wait(&dev->done, &dev->lock);
    bool first = dev->failed == ticket;
    if (fails && dev->failed == 0) {
        dev->failed = ticket; /* what has not begun does not run */
        first = true;
    }
    while ((first || fails) && dev->n_pending > 0)
        pthread_cond_wait(&dev->done, &dev->lock);
    if (first)
        dev->failed = 0;
    pthread_mutex_unlock(&dev->lock);
    if (fails && job->outcome.status == TRN_OK) {
        revert(dev, job);
        job->outcome.status = TRN_ERR_DEVICE;
    }
    trn_outcome found = job->outcome;
    found.size = outcome->size;
    memcpy(outcome, &found,
           found.size < sizeof found ? found.size : sizeof found);
    forget(dev, job);
    return found.status;
}

int32_t trn__loop_poll(trn_device *dev, uint64_t ticket)
{
    bool fails = trn__loop_call(dev, TRN__LOOP_poll);
    const trn__loop_job *job = find(dev, ticket);
    if (fails)
        return trn__loop_fail(dev, TRN_ERR_DEVICE,
                              "loop: poll failed, as asked for");
    if (job == NULL)
        return 1;
    pthread_mutex_lock(&dev->lock);
    int32_t done = job->done;
    pthread_mutex_unlock(&dev->lock);
    return done;
}
