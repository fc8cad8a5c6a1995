/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a program, by the worker: node by node, then all writes at once.
 *
 * A node that overwrites a state works on a copy in the arena.  Only when every
 * node has succeeded are outputs and states written, so an execution that
 * fails has changed nothing that the host can see.
 */
#include <string.h>

#include "loop.h"

static char *memory_of(trn_device *dev, const trn__loop_job *job, int32_t value)
{
    const trn_program *p = job->program;
    const trn__loop_value *base = &p->values[p->values[value].base];
    if (base->input >= 0)
        return trn__loop_address(&dev->pool, job->inputs[base->input]);
    return trn__loop_address(&dev->pool, p->arena) + base->at;
}

/* A value as an operand of the host's kernels. */
static trn_arg operand(trn_device *dev, const trn__loop_job *job, int32_t value)
{
    trn_arg a = job->program->values[value].arg;
    a.buffer = (trn_buffer *)(void *)memory_of(dev, job, value);
    return a;
}

/* The shape of `like`, packed, at `memory`. */
static trn_arg packed(const trn_arg *like, void *memory)
{
    trn_arg a = *like;
    int64_t next = 1;
    a.buffer = memory;
    a.offset = 0;
    for (uint32_t d = a.rank; d-- > 0;) {
        a.stride[d] = next;
        next *= a.shape[d];
    }
    return a;
}

static int32_t reference(trn_device *dev, uint32_t op, uint32_t n_in,
                         const trn_arg *const *in, const trn_arg *out)
{
    const trn_arg *outs[1] = {out};
    const trn_op_call call = {
        .size = (uint32_t)sizeof call,
        .op = op,
        .n_in = n_in,
        .n_out = out != NULL,
        .in = in,
        .out = outs,
    };
    return dev->host->reference_op(dev->host->host, &call);
}

/* from -> to, which is contiguous */
static int32_t copy(trn_device *dev, const trn_arg *from, const trn_arg *to)
{
    const trn_arg *in[1] = {from};
    return reference(dev, TRN_OP_copy, 1, in, to);
}

/* from -> to, of any layout */
static int32_t assign(trn_device *dev, const trn_arg *to, const trn_arg *from)
{
    const trn_arg *in[2] = {to, from};
    return reference(dev, TRN_OP_assign, 2, in, NULL);
}

static int32_t run_node(trn_device *dev, trn__loop_job *job,
                        const trn__loop_node *node)
{
    const trn_graph_node *n = &node->as_given;
    trn_arg in[8], out[4];
    const trn_arg *ins[8], *outs[4];
    double values[8];
    uint32_t k = 0;
    for (uint32_t j = 0; j < n->n_out; j++) {
        out[j] = operand(dev, job, n->out[j]);
        outs[j] = &out[j];
    }
    for (uint32_t j = 0; j < n->n_in; j++) {
        in[j] = operand(dev, job, n->in[j]);
        ins[j] = &in[j];
        if (!((node->writes >> j) & 1u))
            continue;
        int32_t status = copy(dev, &in[j], &out[k]);
        if (status != TRN_OK)
            return status;
        ins[j] = &out[k++];
    }
    for (uint32_t j = 0; j < n->n_scalars; j++)
        values[j] = job->scalars[n->scalar[j]];
    const trn_op_call call = {
        .size = (uint32_t)sizeof call,
        .op = n->op,
        .n_in = n->n_in,
        .n_out = node->writes != 0 ? 0 : n->n_out,
        .in = ins,
        .out = outs,
        .attrs = n->attrs,
        .attrs_size = n->attrs_size,
        .n_values = n->n_scalars,
        .values = values,
        .key = n->draw < 0 ? 0 : job->draws[n->draw][0],
        .draw = n->draw < 0 ? 0 : job->draws[n->draw][1],
        .report = &job->outcome.report,
    };
    return dev->host->reference_op(dev->host->host, &call);
}

typedef void input_fn(trn_device *dev, const trn__loop_job *job, char *memory,
                      uint64_t bytes, char *kept);

/* fn on each input that the program writes; kept: its place in the undo. */
static void for_written(trn_device *dev, const trn__loop_job *job, input_fn *fn)
{
    const trn_program *p = job->program;
    char *kept =
        job->undo == NULL ? NULL : trn__loop_address(&dev->pool, job->undo);
    for (int32_t i = 0; i < p->info.n_outputs; i++) {
        int32_t alias = p->outputs[i].alias;
        if (alias < 0)
            continue;
        uint64_t bytes = p->values[p->inputs[alias]].bytes;
        fn(dev, job, memory_of(dev, job, p->inputs[alias]), bytes, kept);
        if (kept != NULL)
            kept += bytes;
    }
}

static void keep(trn_device *dev, const trn__loop_job *job, char *memory,
                 uint64_t bytes, char *kept)
{
    (void)dev;
    (void)job;
    memcpy(kept, memory, (size_t)bytes);
}

static void put_back(trn_device *dev, const trn__loop_job *job, char *memory,
                     uint64_t bytes, char *kept)
{
    (void)dev;
    (void)job;
    memcpy(memory, kept, (size_t)bytes);
}

/* All ones: a NaN in every float type. */
static void scribble(trn_device *dev, const trn__loop_job *job, char *memory,
                     uint64_t bytes, char *kept)
{
    (void)dev;
    (void)job;
    (void)kept;
    memset(memory, 0xff, (size_t)bytes);
}

void trn__loop_undo(trn_device *dev, const trn__loop_job *job)
{
    if (job->committed && job->undo != NULL)
        for_written(dev, job, put_back);
}

/* Outputs of their own, and those that would be read too late, first. */
static int32_t write_outputs(trn_device *dev, trn__loop_job *job)
{
    const trn_program *p = job->program;
    for (int32_t i = 0; i < p->info.n_outputs; i++) {
        const trn__loop_output *o = &p->outputs[i];
        if (o->alias >= 0 && o->staged < 0)
            continue;
        trn_arg from = operand(dev, job, o->value);
        char *at = o->alias < 0
                       ? trn__loop_address(&dev->pool, job->outputs[i])
                       : trn__loop_address(&dev->pool, p->arena) + o->staged;
        trn_arg to = packed(&from, at);
        int32_t status = copy(dev, &from, &to);
        if (status != TRN_OK)
            return status;
    }
    return TRN_OK;
}

static int32_t write_states(trn_device *dev, trn__loop_job *job)
{
    const trn_program *p = job->program;
    for (int32_t i = 0; i < p->info.n_outputs; i++) {
        const trn__loop_output *o = &p->outputs[i];
        if (o->alias < 0 || o->same)
            continue;
        trn_arg to = operand(dev, job, p->inputs[o->alias]);
        trn_arg from = operand(dev, job, o->value);
        if (o->staged >= 0)
            from = packed(&from,
                          trn__loop_address(&dev->pool, p->arena) + o->staged);
        int32_t status = assign(dev, &to, &from);
        if (status != TRN_OK)
            return status;
    }
    return TRN_OK;
}

void trn__loop_run(trn_device *dev, trn__loop_job *job)
{
    const trn_program *p = job->program;
    trn_outcome *out = &job->outcome;
    trn__loop_sleep(dev->options.execute_ms);
    for (int32_t i = 0; i < p->info.n_nodes && out->status == TRN_OK; i++) {
        if (p->nodes[i].idle)
            continue;
        out->status = run_node(dev, job, &p->nodes[i]);
        out->node = out->status == TRN_OK ? -1 : i;
    }
    if (out->status == TRN_OK && job->fault != 0)
        out->status = TRN_ERR_DEVICE;
    if (job->fault == TRN__LOOP_lost) {
        for_written(dev, job, scribble);
        out->inputs_lost = 1;
    }
    if (out->status != TRN_OK)
        return;
    if (job->undo != NULL)
        for_written(dev, job, keep);
    job->committed = true;
    out->status = write_outputs(dev, job);
    if (out->status == TRN_OK)
        out->status = write_states(dev, job);
    if (out->status != TRN_OK)
        out->inputs_lost = 1; /* some may be written already */
}
