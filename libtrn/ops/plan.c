/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding, compiling, running and forgetting plans.
 *
 * The structural hash is the first look; a hit is compared structure by
 * structure.  Plans are kept in order of use, within a bound of bytes.
 */
#include <string.h>

#include "libtrn/ops/lower.h"
#include "libtrn/ops/plan.h"

static void unlink_plan(trn__capture *p, trn__plan *plan)
{
    *(plan->prev == NULL ? &p->plans : &plan->prev->next) = plan->next;
    if (plan->next != NULL)
        plan->next->prev = plan->prev;
    plan->prev = plan->next = NULL;
}

static void to_front(trn__capture *p, trn__plan *plan)
{
    plan->prev = NULL;
    plan->next = p->plans;
    if (p->plans != NULL)
        p->plans->prev = plan;
    p->plans = plan;
}

static void plan_free(trn_context *c, trn__plan *plan)
{
    for (trn__trace *t = c->capture->first; t != NULL; t = t->next) {
        if (t->plan == plan)
            t->plan = NULL;
    }
    if (plan->program != NULL)
        c->backend->release(c->device, plan->program);
    trn__graph_free(plan->raw);
    trn__graph_free(plan->graph);
    trn__free(c, plan);
}

void trn__plans_free(trn_context *c)
{
    trn__capture *p = c->capture;
    while (p->plans != NULL) {
        trn__plan *plan = p->plans;
        unlink_plan(p, plan);
        plan_free(c, plan);
    }
}

void trn__plan_touch(trn_context *c, trn__plan *plan)
{
    if (c->capture->plans == plan)
        return;
    unlink_plan(c->capture, plan);
    to_front(c->capture, plan);
}

/* Forgets the plans that were not used for longest, down to the bound. */
static void evict(trn_context *c)
{
    trn__capture *p = c->capture;
    uint64_t total = 0;
    trn__plan *next;
    for (trn__plan *plan = p->plans; plan != NULL; plan = next) {
        next = plan->next;
        total += plan->bytes;
        if (total > p->plan_limit && plan != p->plans && plan->in_flight == 0) {
            total -= plan->bytes;
            unlink_plan(p, plan);
            plan_free(c, plan);
        }
    }
}

/* What an execution takes beside its buffers: a device that takes more than
 * the arena, or less, says so. */
static uint64_t run_bytes(const trn_context *c, const trn__plan *plan)
{
    const trn_backend *b = c->backend;
    if (b->program_bytes == NULL)
        return plan->graph->arena_bytes;
    return b->program_bytes(c->device, plan->program);
}

/* What a plan takes of memory, about. */
static uint64_t plan_bytes(const trn__plan *plan)
{
    const trn_graph *g = plan->graph;
    return 2 * ((uint64_t)g->n_nodes * sizeof(trn__graph_node) +
                (uint64_t)g->n_values * sizeof(trn__graph_value)) +
           plan->run_bytes;
}

static trn_status compile(trn_context *c, trn__plan *plan)
{
    const trn_backend *b = c->backend;
    plan->graph = trn__graph_lowered(c, plan->raw);
    if (plan->graph == NULL)
        return c->status;
    TRN_TRY(trn__graph_prepare(plan->graph));
    trn__fp_env saved; /* a compiler computes constants */
    trn__fp_enter(&saved);
    int32_t status = b->compile(c->device, plan->graph, &plan->program);
    trn__fp_leave(&saved);
    if (status == TRN_OK && c->status != TRN_OK)
        return c->status; /* the graph was not given to it as a whole */
    if (status != TRN_OK) {
        plan->program = NULL;
        return trn__fail(c, (trn_status)status,
                         "compile: device %s did not take a step of %d nodes",
                         b->name, (int)plan->graph->n_nodes);
    }
    plan->run_bytes = run_bytes(c, plan);
    plan->bytes = plan_bytes(plan);
    c->capture->info.compilations++;
    return TRN_OK;
}

trn__plan *trn__plan_of(trn_context *c, const trn_graph *raw)
{
    trn__capture *p = c->capture;
    uint64_t hash = trn__graph_hash(raw);
    for (trn__plan *plan = p->plans; plan != NULL; plan = plan->next) {
        if (plan->raw->hash == hash && trn__graph_equal(plan->raw, raw)) {
            unlink_plan(p, plan);
            to_front(p, plan);
            return plan;
        }
    }
    trn__plan *plan = trn__alloc_zeroed(c, sizeof *plan);
    if (plan == NULL) {
        trn__fail_memory(c, "compile", sizeof *plan);
        return NULL;
    }
    plan->raw = trn__graph_copy(raw);
    if (plan->raw == NULL || compile(c, plan) != TRN_OK) {
        plan_free(c, plan);
        return NULL;
    }
    plan->raw->hash = hash;
    to_front(p, plan);
    evict(c);
    return plan;
}

/* Literals, for a device that takes them as scalars like any other. */
static trn_status take_literals(trn_context *c, const trn_graph *g)
{
    trn__capture *p = c->capture;
    void *list = p->scalars;
    TRN_TRY(
        trn__grow(c, &list, &p->room_scalars, g->n_scalars, sizeof(double)));
    p->scalars = list;
    for (int32_t i = 0; i < g->n_literals; i++)
        p->scalars[g->literals[i].scalar] = g->literals[i].value;
    return TRN_OK;
}

trn_status trn__plan_start(trn_context *c, trn__plan *plan,
                           trn_buffer *const *outputs, uint64_t *ticket)
{
    trn__capture *p = c->capture;
    const trn_graph *g = plan->graph;
    TRN_TRY(take_literals(c, g));
    size_t n = (size_t)(g->n_inputs + 1) * sizeof(trn_buffer *);
    trn_buffer **inputs = trn__alloc(c, n);
    if (inputs == NULL)
        return trn__fail_memory(c, "execute", n);
    for (int32_t i = 0; i < g->n_inputs; i++)
        inputs[i] = p->bound[i]->storage->buffer;
    trn_execution e = {
        .size = (uint32_t)sizeof e,
        .n_inputs = (uint32_t)g->n_inputs,
        .n_outputs = (uint32_t)g->n_outputs,
        .n_scalars = (uint32_t)g->n_scalars,
        .n_draws = (uint32_t)g->n_draws,
        .inputs = inputs,
        .outputs = outputs,
        .scalars = p->scalars,
        .draws = (const uint64_t(*)[2])p->draws,
    };
    trn__fp_env saved;
    trn__fp_enter(&saved);
    int32_t status = c->backend->execute(c->device, plan->program, &e, ticket);
    trn__fp_leave(&saved);
    trn__free(c, inputs);
    if (status != TRN_OK)
        return trn__fail(c, (trn_status)status,
                         "execute: device %s did not take the step: %s",
                         c->backend->name, trn_status_text((trn_status)status));
    plan->in_flight++;
    p->info.replays++;
    p->info.fallbacks += (uint64_t)g->n_host;
    p->info.plan_bytes = plan->run_bytes;
    return TRN_OK;
}

trn_status trn__plan_finish(trn_context *c, trn__plan *plan, uint64_t ticket,
                            trn_outcome *outcome)
{
    *outcome = (trn_outcome){.size = (uint32_t)sizeof *outcome, .node = -1};
    int32_t status = c->backend->wait(c->device, ticket, outcome);
    plan->in_flight--;
    if (outcome->status != TRN_OK)
        status = outcome->status;
    if (status == TRN_OK)
        return TRN_OK;
    const trn_graph *g = plan->graph;
    const char *name = "the step";
    if (outcome->node >= 0 && outcome->node < g->n_nodes) {
        const trn__graph_node *n = &g->nodes[outcome->node];
        name = trn__ops[n->origin == 0 ? n->op : n->origin].name;
    }
    return trn__raise_report(c, name, &outcome->report, (trn_status)status);
}

trn_status trn__plan_run(trn_context *c, trn__plan *plan,
                         trn_buffer *const *outputs, trn_outcome *outcome)
{
    uint64_t ticket = 0;
    TRN_TRY(trn__plan_start(c, plan, outputs, &ticket));
    return trn__plan_finish(c, plan, ticket, outcome);
}
