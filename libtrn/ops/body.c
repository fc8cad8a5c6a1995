/* SPDX-License-Identifier: Apache-2.0
 *
 * The body of a composite node: its decomposition, traced on stand-ins.
 *
 * Decompositions are written once, in public ops.  To get one as a graph, the
 * rule runs under a capture of its own, whose inputs have shapes but no memory.
 */
#include <string.h>

#include "libtrn/ops/lower.h"
#include "libtrn/ops/trace_parts.h"

/* Stand-ins for the node's inputs, as inputs 0 .. of the body. */
static trn_status make_inputs(trn_context *c, const trn_graph *g,
                              const trn__graph_node *n, trn__call *k)
{
    for (int i = 0; i < n->n_in; i++) {
        const trn_arg *arg = &g->values[n->in[i]].arg;
        trn__desc desc = {.dtype = arg->dtype, .rank = arg->rank};
        memcpy(desc.shape, arg->shape, sizeof desc.shape);
        k->in[i] = trn__tensor_lazy(c, &desc);
        if (k->in[i] == NULL)
            return c->status;
        k->in[i]->arg = *arg; /* its layout too: views are made of it */
        TRN_TRY(trn__trace_bind_stand_in(c, k->in[i]));
    }
    return TRN_OK;
}

static void make_call(trn_context *c, const trn__graph_node *n, trn__call *k,
                      trn__trace *t)
{
    *k = (trn__call){
        .c = c,
        .op = n->op,
        .n_in = n->n_in,
        .n_values = n->n_scalars,
        .attrs = n->attrs_size > 0 ? n->attrs : NULL,
        .attrs_size = n->attrs_size,
        .draw_no = n->draw >= 0 ? 0 : -1,
    };
    for (int i = 0; i < n->n_scalars; i++)
        k->scalar[i] = i;
    t->graph->n_scalars = n->n_scalars;
    t->graph->n_draws = n->draw >= 0 ? 1 : 0;
}

/* The body's outputs: the result, or the written inputs in their order. */
static trn_status take_outputs(trn_context *c, const trn__call *k,
                               trn_tensor *y)
{
    trn_graph *g = c->capture->trace->graph;
    const uint32_t writes = trn__ops[k->op].writes;
    if (writes == 0)
        return trn__graph_add_output(g, trn__slot_of(c, y), -1);
    for (int i = 0; i < k->n_in; i++) {
        if ((writes >> i) & 1u)
            TRN_TRY(
                trn__graph_add_output(g, k->in[i]->storage->trace_slot, -1));
    }
    return TRN_OK;
}

static trn_status take_body(trn_context *c, trn_graph **out)
{
    trn__trace *t = c->capture->trace;
    *out = t->graph;
    t->graph = trn__graph_new(c); /* the trace is freed with one */
    return c->status;
}

static trn_status run_rule(trn_context *c, const trn_graph *g,
                           const trn__graph_node *n, trn_graph **out)
{
    trn__call k;
    trn__scope scope;
    trn_status status = TRN_OK;
    make_call(c, n, &k, c->capture->trace);
    trn__scope_enter(c, &scope);
    bool mode = trn__grad_mode(c, false);
    if (make_inputs(c, g, n, &k) == TRN_OK) {
        trn_tensor *y = trn__ops[n->op].decompose(&k);
        status = y == NULL ? c->status : take_outputs(c, &k, y);
    }
    trn__grad_mode(c, mode);
    trn__scope_leave(c, &scope, NULL);
    for (int i = 0; i < n->n_in; i++)
        trn__unref(k.in[i]);
    if (c->status == TRN_OK && c->capture->n_bound != n->n_in)
        trn__fail(c, TRN_ERR_INTERNAL,
                  "%s: its decomposition uses a tensor made from host data",
                  trn__ops[n->op].name);
    if (c->status == TRN_OK && status == TRN_OK)
        take_body(c, out);
    return c->status;
}

trn_status trn__body_trace(trn_context *c, const trn_graph *g, int32_t node,
                           const trn__target *target, trn_graph **out)
{
    trn__capture *outer = c->capture;
    trn__capture *q = trn__alloc_zeroed(c, sizeof *q);
    *out = NULL;
    if (q == NULL)
        return trn__fail_memory(c, "a decomposition", sizeof *q);
    q->serial = outer->serial; /* begin takes the next one */
    q->target = target;
    c->capture = q;
    trn__trace_begin(c, true);
    q->depth = 1; /* the rule's own scalars are literals */
    if (q->on)
        run_rule(c, g, &g->nodes[node], out);
    trn__trace_end(c);
    trn__capture_free(c, q);
    c->capture = outer;
    if (c->status != TRN_OK) {
        trn__graph_free(*out);
        *out = NULL;
    }
    return c->status;
}
