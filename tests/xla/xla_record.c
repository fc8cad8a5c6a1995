/* SPDX-License-Identifier: Apache-2.0
 *
 * The recording device of xla_record.h.
 */
#include <stdlib.h>

#include "tests/harness.h"
#include "tests/primitives.h"
#include "tests/xla/xla_record.h"

struct trn_program {
    trn_graph *graph;
};

/* One context records at a time. */
static struct {
    trn_context *c;    /* that runs the program */
    trn_context *keep; /* whose memory the graph lies in */
    xla_program *last;
    int32_t executions;
    trn_outcome outcome;
    uint64_t ticket;
} recorder;

static trn_graph *copy_for(trn_context *c, const trn_graph *g)
{
    trn_graph as_theirs = *g;
    as_theirs.c = c;
    return trn__graph_copy(&as_theirs);
}

/* ---- the device ---- */

static int32_t record_compile(trn_device *device, const trn_graph *graph,
                              trn_program **program)
{
    (void)device;
    trn_program *p = xla_memory(sizeof *p);
    p->graph = copy_for(recorder.c, graph);
    *program = p;
    return p->graph == NULL ? TRN_ERR_NOMEM : TRN_OK;
}

static void record_release(trn_device *device, trn_program *program)
{
    (void)device;
    trn__graph_free(program->graph);
    free(program);
}

static void keep_execution(const trn_graph *g, const trn_execution *e)
{
    xla_program *p = recorder.last;
    uint64_t seed = p->seed;
    xla_program_free(p);
    *p = (xla_program){.seed = seed, .graph = copy_for(recorder.keep, g)};
    p->scalars = xla_memory(sizeof *p->scalars * e->n_scalars);
    p->draws = xla_memory(sizeof *p->draws * e->n_draws);
    if (e->n_scalars > 0)
        memcpy(p->scalars, e->scalars, sizeof *p->scalars * e->n_scalars);
    if (e->n_draws > 0)
        memcpy(p->draws, e->draws, sizeof *p->draws * e->n_draws);
    p->narrow.scalars = p->scalars;
    p->narrow.draws = (const uint64_t(*)[2])p->draws;
    xla_values_open(&p->narrow, g);
    for (int32_t i = 0; i < g->n_inputs; i++) {
        int32_t v = g->inputs[i];
        size_t bytes = xla_bytes(g, v, false);
        p->narrow.at[v] = xla_memory(bytes);
        if (bytes > 0)
            memcpy(p->narrow.at[v], e->inputs[i], bytes);
    }
}

static int32_t record_execute(trn_device *device, trn_program *program,
                              const trn_execution *e, uint64_t *ticket)
{
    const trn_graph *g = program->graph;
    xla_program *p = recorder.last;
    (void)device;
    keep_execution(g, e);
    recorder.executions++;
    int32_t status = xla_interpret(recorder.c, g, &p->narrow);
    for (int32_t i = 0; i < g->n_outputs && status == TRN_OK; i++) {
        int32_t v = g->outputs[i].value, alias = g->outputs[i].alias;
        size_t bytes = xla_bytes(g, v, false);
        if (bytes > 0)
            memcpy(alias >= 0 ? (void *)e->inputs[alias]
                              : (void *)e->outputs[i],
                   p->narrow.at[v], bytes);
    }
    recorder.outcome = (trn_outcome){
        .size = (uint32_t)sizeof recorder.outcome,
        .status = status,
        .node = p->narrow.node,
        .report = p->narrow.report,
    };
    *ticket = ++recorder.ticket;
    return TRN_OK;
}

static int32_t record_wait(trn_device *device, uint64_t ticket,
                           trn_outcome *outcome)
{
    (void)device;
    (void)ticket;
    *outcome = recorder.outcome;
    return outcome->status;
}

static void interpose(trn_context *c)
{
    trn_backend *table = &c->table;
    table->supports = takes_primitives;
    table->compile = record_compile;
    table->execute = record_execute;
    table->wait = record_wait;
    table->poll = NULL;
    table->release = record_release;
    table->program_bytes = NULL;
}

/* ---- a program ---- */

static void run_wide(trn_context *c, xla_program *p)
{
    p->wide = (xla_values){
        .scalars = p->scalars, .draws = p->narrow.draws, .wide = true};
    xla_values_open(&p->wide, p->graph);
    xla_values_widen(&p->wide, p->graph, &p->narrow);
    p->has_wide = xla_interpret(c, p->graph, &p->wide) == TRN_OK;
}

/* Some begin with what training has made of the optimizers' state. */
static xla_fate run_rounds(random_world *w)
{
    int rounds = 1 + (int)(w->k->seed % (uint64_t)w->k->n_rounds);
    trn_status status = TRN_OK;
    for (int round = 0; round < rounds && status == TRN_OK; round++) {
        w->salt = random_mix(w->k->seed, (uint64_t)round);
        recorder.executions = 0;
        trn_step_begin(w->c);
        random_run(w, &w->k->program[0], 0);
        status = trn_step_end(w->c);
        trn_clear(w->c);
        random_settle_kept(w, status == TRN_OK, false);
    }
    if (status != TRN_OK)
        return XLA_FAILED;
    return recorder.executions > 0 ? XLA_RECORDED : XLA_NOTHING_RUN;
}

xla_fate xla_record(trn_context *c, uint64_t seed, xla_program *p)
{
    static random_case k;
    random_world w;
    random_make(&k, seed, false);
    *p = (xla_program){.seed = seed};
    bool good = random_open(&w, &k, "cpu", TRN_EXEC_CAPTURED);
    CHECK(good, "seed %llu: %s\n", (unsigned long long)seed, trn_errmsg(w.c));
    recorder.c = w.c;
    recorder.keep = c;
    recorder.last = p;
    interpose(w.c);
    xla_fate fate = run_rounds(&w);
    if (fate == XLA_RECORDED)
        run_wide(c, p);
    else
        xla_program_free(p);
    random_close(&w);
    return fate;
}

void xla_program_free(xla_program *p)
{
    trn__graph_free(p->graph);
    free(p->scalars);
    free(p->draws);
    if (p->narrow.at != NULL)
        xla_values_free(&p->narrow);
    if (p->wide.at != NULL)
        xla_values_free(&p->wide);
    *p = (xla_program){.seed = p->seed};
}
