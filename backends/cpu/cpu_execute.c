/* SPDX-License-Identifier: Apache-2.0
 *
 * Executing a program: addresses are put into its values, then its steps run in
 * order through the functions of eager mode, or group by group.
 *
 * Arena, copies of inputs and workspace are one block, which lives from the
 * begin to the end of an execution, so the memory that a step takes is known
 * when it is compiled.  Execution is done when execute returns; wait tells its
 * outcome.
 */
#include "backends/cpu/cpu_program.h"
#include "backends/cpu/cpu_workspace.h"

#include <string.h>

/* The size of a struct up to and with that field. */
#define SIZE_WITH(type, field) \
    (offsetof(type, field) + sizeof(((type *)0)->field))

/* Entries that an older host does not have are not called. */
#define HOST_HAS(host, entry)                               \
    ((host)->size >= SIZE_WITH(trn_host_services, entry) && \
     (host)->entry != NULL)

/* What a host of any version has: the structs as they were first. */
#define FIRST_EXECUTION SIZE_WITH(trn_execution, draws)
#define FIRST_OUTCOME SIZE_WITH(trn_outcome, report)

static bool accepts(const trn_program *p, const trn_execution *e)
{
    return e->size >= FIRST_EXECUTION && e->n_inputs == (uint32_t)p->n_inputs &&
           e->n_outputs == (uint32_t)p->n_outputs &&
           e->n_scalars == (uint32_t)p->n_scalars &&
           e->n_draws == (uint32_t)p->n_draws;
}

static void set_addresses(trn_program *p, const trn_execution *e, char *arena)
{
    for (int32_t i = 0; i < p->n_values; i++) {
        trn__cpu_value *v = &p->values[i];
        const trn__cpu_value *owner = &p->values[v->base];
        switch ((trn__cpu_placement)owner->where) {
        case TRN__CPU_ARENA:
            /* A plan may place empty values without having an arena. */
            v->arg.buffer = arena == NULL
                                ? (trn_buffer *)(void *)p
                                : (trn_buffer *)(void *)(arena + owner->at);
            break;
        case TRN__CPU_INPUT:
            v->arg.buffer = e->inputs[owner->number];
            break;
        case TRN__CPU_OUTPUT:
            v->arg.buffer = e->outputs[owner->number];
            break;
        case TRN__CPU_NOWHERE:
            /* Empty, or in a chunk buffer: an address nobody goes to. */
            v->arg.buffer = (trn_buffer *)(void *)p;
            break;
        }
    }
}

/* A call and the lists that it points to. */
typedef struct step_call {
    trn_op_call call;
    const trn_arg *in[TRN__CPU_MAX_IN], *out[TRN__CPU_MAX_OUT];
    double values[TRN__CPU_MAX_SCALARS];
} step_call;

/* All but what varies from execution to execution. */
static void describe(const trn_program *p, const trn__cpu_step *s, step_call *c)
{
    const bool update = trn__cpu_class_of(s->op) == TRN__CPU_CLASS_UPDATE;
    for (uint32_t i = 0; i < s->n_in; i++)
        c->in[i] = &p->values[s->in[i]].arg;
    for (uint32_t i = 0; i < s->n_out; i++)
        c->out[i] = &p->values[s->out[i]].arg;
    c->call = (trn_op_call){
        .size = (uint32_t)sizeof c->call,
        .op = s->op,
        .n_in = s->n_in,
        .n_out = update ? 0 : s->n_out,
        .in = c->in,
        .out = c->out,
        .attrs = s->attrs,
        .attrs_size = s->attrs_size,
        .n_values = s->n_scalars,
        .values = c->values,
    };
}

static int32_t run_step(trn_device *dev, const trn_program *p,
                        const trn__cpu_step *s, const trn_execution *e,
                        trn_op_report *report)
{
    step_call c;
    describe(p, s, &c);
    for (uint32_t i = 0; i < s->n_scalars; i++)
        c.values[i] = e->scalars[s->scalar[i]];
    if (s->draw >= 0) {
        c.call.key = e->draws[s->draw][0];
        c.call.draw = e->draws[s->draw][1];
    }
    c.call.report = report;
    return trn__cpu_run_op(dev, &c.call);
}

/* Only sizes matter here: the addresses are those that nobody goes to. */
void trn__cpu_find_workspace(trn_device *dev, trn_program *p)
{
    for (int32_t i = 0; i < p->n_values; i++)
        p->values[i].arg.buffer = (trn_buffer *)(void *)p;
    p->work_bytes = 0;
    for (int32_t i = 0; i < p->n_steps; i += p->steps[i].span) {
        step_call c;
        if (p->steps[i].span > 1) /* chunk buffers are on the stack */
            continue;
        describe(p, &p->steps[i], &c);
        const size_t bytes = trn__cpu_workspace(dev, &c.call);
        p->work_bytes = bytes > p->work_bytes ? bytes : p->work_bytes;
    }
}

/* Stops at the first step that fails.  Such a step may have written a part of
 * an input's memory (a division stops in its middle): that is put back, too. */
static void run_steps(trn_device *dev, const trn_program *p,
                      const trn_execution *e, char *kept, trn_outcome *outcome)
{
    bool written = false;
    for (int32_t i = 0; i < p->n_steps; i += p->steps[i].span) {
        const trn__cpu_step *s = &p->steps[i];
        for (int32_t k = 0; k < s->span; k++)
            written |= s[k].writes_input;
        if (i == p->keep_at)
            trn__cpu_keep_inputs(p, e, kept);
        if (s->span > 1) {
            trn__cpu_run_fused(dev, p, s, e);
            continue;
        }
        outcome->status = run_step(dev, p, s, e, &outcome->report);
        if (outcome->status != TRN_OK) {
            outcome->node = s->node;
            outcome->inputs_lost = written;
            break;
        }
    }
    if (outcome->status != TRN_OK && written && p->keep_at >= 0) {
        trn__cpu_put_back(p, e, kept);
        outcome->inputs_lost = false;
    }
}

static uint64_t up64(uint64_t bytes)
{
    return (bytes + 63) & ~UINT64_C(63);
}

uint64_t trn__cpu_program_bytes(trn_device *dev, trn_program *p)
{
    (void)dev;
    return up64(p->arena_bytes) + up64(p->kept_bytes) + p->work_bytes;
}

int32_t trn__cpu_execute(trn_device *dev, trn_program *program,
                         const trn_execution *e, uint64_t *ticket)
{
    const trn_host_services *host = dev->host;
    const uint64_t bytes = trn__cpu_program_bytes(dev, program);
    char *block = NULL;
    if (!accepts(program, e))
        return host->fail(host->host, TRN_ERR_ARG,
                          "the execution does not fit the program: the numbers "
                          "of inputs, outputs, scalars or draws differ");
    if (bytes > 0) {
        if (bytes <= SIZE_MAX)
            block = trn__cpu_alloc(dev, (size_t)bytes);
        if (block == NULL)
            return host->fail(host->host, TRN_ERR_NOMEM,
                              "out of memory for the arena of a step");
    }
    char *kept = block == NULL ? NULL : block + up64(program->arena_bytes);
    if (program->work_bytes > 0)
        dev->work = (trn__cpu_block){
            .memory = kept + up64(program->kept_bytes),
            .bytes = (size_t)program->work_bytes,
        };
    *ticket = ++dev->last_ticket;
    trn_outcome *outcome = &dev->outcome[*ticket % TRN__CPU_OUTCOMES];
    *outcome = (trn_outcome){
        .size = (uint32_t)sizeof *outcome,
        .status = TRN_OK,
        .node = -1,
    };
    set_addresses(program, e, block);
    if (HOST_HAS(host, region_begin))
        host->region_begin(host->host);
    run_steps(dev, program, e, kept, outcome);
    if (HOST_HAS(host, region_end))
        host->region_end(host->host);
    dev->work = (trn__cpu_block){.memory = NULL};
    if (block != NULL)
        trn__cpu_free(dev, block);
    return TRN_OK;
}

static bool is_known(const trn_device *dev, uint64_t ticket)
{
    return ticket > 0 && ticket <= dev->last_ticket &&
           dev->last_ticket - ticket < TRN__CPU_OUTCOMES;
}

int32_t trn__cpu_wait(trn_device *dev, uint64_t ticket, trn_outcome *outcome)
{
    if (!is_known(dev, ticket))
        return dev->host->fail(dev->host->host, TRN_ERR_ARG,
                               "the CPU device knows no such execution");
    if (outcome->size < FIRST_OUTCOME)
        return dev->host->fail(dev->host->host, TRN_ERR_ARG,
                               "the outcome is smaller than its first version");
    trn_outcome found = dev->outcome[ticket % TRN__CPU_OUTCOMES];
    found.size = outcome->size;
    memcpy(outcome, &found,
           found.size < sizeof found ? found.size : sizeof found);
    return found.status;
}

int32_t trn__cpu_poll(trn_device *dev, uint64_t ticket)
{
    return ticket <= dev->last_ticket;
}
