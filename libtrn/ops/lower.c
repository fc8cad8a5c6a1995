/* SPDX-License-Identifier: Apache-2.0
 *
 * Fitting a graph to a device.
 *
 * In order, for each node: native if the device takes it; else its
 * decomposition; else the host's reference kernel inside the program, where the
 * device can call it and the context allows it (counted); else an error that
 * names op and device.
 */
#include <string.h>

#include "libtrn/dispatch/dispatch.h"
#include "libtrn/ops/lower.h"

typedef struct lowering {
    trn_context *c;
    const trn_graph *from;
    trn_graph *to;
    int32_t *number; /* in `to`, by value of `from` */
    double *constants;
    int32_t n_constants, room;
} lowering;

/* Does the device take this node? */
static bool takes(const lowering *l, const trn__graph_node *n)
{
    const trn_backend *b = l->c->backend;
    const trn_arg *in[TRN__MAX_IN], *out[TRN__MAX_OUT];
    if (b->supports == NULL)
        return true;
    for (int i = 0; i < n->n_in; i++)
        in[i] = &l->from->values[n->in[i]].arg;
    for (int i = 0; i < n->n_out; i++)
        out[i] = &l->from->values[n->out[i]].arg;
    bool update = trn__ops[n->op].writes != 0;
    trn_op_call call = {
        .size = (uint32_t)sizeof call,
        .op = n->op,
        .n_in = n->n_in,
        .n_out = update ? 0 : n->n_out,
        .in = in,
        .out = out,
        .attrs = n->attrs,
        .attrs_size = n->attrs_size,
        .n_values = n->n_scalars,
    };
    return b->supports(l->c->device, &call);
}

static trn_status copy_inputs(lowering *l)
{
    for (int32_t i = 0; i < l->from->n_inputs; i++) {
        int32_t v = l->from->inputs[i];
        const trn_arg *arg = &l->from->values[v].arg;
        trn__desc desc = {.dtype = arg->dtype, .rank = arg->rank};
        memcpy(desc.shape, arg->shape, sizeof desc.shape);
        l->number[v] = trn__graph_add_input(l->to, &desc);
        if (l->number[v] < 0)
            return l->c->status;
    }
    return TRN_OK;
}

/* Node n of graph g, its inputs renumbered by `number`. */
static trn_status add_node(lowering *l, const trn_graph *g,
                           const trn__graph_node *n, int32_t *number)
{
    trn__graph_node copy = *n;
    trn_arg out[TRN__MAX_OUT];
    for (int i = 0; i < n->n_in; i++)
        copy.in[i] = number[n->in[i]];
    for (int i = 0; i < n->n_out; i++)
        out[i] = g->values[n->out[i]].arg;
    int32_t first = trn__graph_add_node(l->to, &copy, n->n_out, out);
    if (first < 0)
        return l->c->status;
    for (int i = 0; i < n->n_out; i++)
        number[n->out[i]] = first + i;
    return TRN_OK;
}

static trn_status keep_constants(lowering *l, const trn__body *body)
{
    void *list = l->constants;
    TRN_TRY(trn__grow(l->c, &list, &l->room,
                      l->n_constants + body->n_constants, sizeof(double)));
    l->constants = list;
    for (int32_t i = 0; i < body->n_constants; i++)
        l->constants[l->n_constants++] = body->constants[i];
    return TRN_OK;
}

/* A result of the body as the node's: contiguous, as consumers expect it. */
static int32_t plain_value(lowering *l, const trn__body *body, int32_t value,
                           int32_t number)
{
    const trn__graph_value *v = &body->graph->values[value];
    bool made = v->node >= 0 &&
                trn__ops[body->graph->nodes[v->node].op].view == NULL;
    if (made)
        return number;
    trn__graph_node copy;
    memset(&copy, 0, sizeof copy);
    copy.op = TRN_OP_copy;
    copy.n_in = 1;
    copy.in[0] = number;
    copy.draw = copy.group = -1;
    trn_arg out = v->arg;
    out.offset = 0;
    trn__row_major(&out);
    return trn__graph_add_node(l->to, &copy, 1, &out);
}

static trn_status add_body(lowering *l, const trn__graph_node *n,
                           const trn__body *body, int32_t *number)
{
    const trn_graph *b = body->graph;
    int32_t base = l->from->n_scalars + l->n_constants - n->n_scalars;
    for (int i = 0; i < n->n_in; i++)
        number[b->inputs[i]] = l->number[n->in[i]];
    for (int32_t q = 0; q < b->n_nodes; q++) {
        trn__graph_node node = b->nodes[q];
        for (int i = 0; i < node.n_scalars; i++) {
            int32_t s = node.scalar[i];
            node.scalar[i] = s < n->n_scalars ? n->scalar[s] : base + s;
        }
        node.draw = node.draw >= 0 ? n->draw : -1;
        TRN_TRY(add_node(l, b, &node, number));
    }
    for (int i = 0; i < n->n_out; i++) {
        int32_t value = b->outputs[i].value;
        l->number[n->out[i]] = plain_value(l, body, value, number[value]);
        if (l->number[n->out[i]] < 0)
            return l->c->status;
    }
    return keep_constants(l, body);
}

static trn_status expand(lowering *l, int32_t node)
{
    trn_context *c = l->c;
    trn__body body;
    TRN_TRY(trn__body_trace(c, l->from, node, &body));
    int32_t *number = trn__alloc(
        c, (size_t)(body.graph->n_values + 1) * sizeof(int32_t));
    if (number == NULL)
        trn__fail_memory(c, "a decomposition", sizeof(int32_t));
    else
        add_body(l, &l->from->nodes[node], &body, number);
    trn__free(c, number);
    trn__body_free(c, &body);
    return c->status;
}

static trn_status place_on_host(lowering *l, const trn__graph_node *n)
{
    trn_context *c = l->c;
    const char *name = trn__ops[n->op].name;
    trn__graph_node host = *n;
    if (!(c->backend->caps & TRN_CAP_HOST_NODES) || !c->allow_fallback)
        return trn__fail(c, TRN_ERR_UNSUPPORTED,
                         "%s: device %s does not have it for these types; %s",
                         name, c->backend->name,
                         c->backend->caps & TRN_CAP_HOST_NODES
                             ? "the host may do it with TRN_FALLBACK=allow"
                             : "and it cannot leave it to the host");
    host.on_host = true;
    l->to->n_host++;
    return add_node(l, l->from, &host, l->number);
}

static trn_status lower_all(lowering *l)
{
    TRN_TRY(copy_inputs(l));
    for (int32_t q = 0; q < l->from->n_nodes; q++) {
        const trn__graph_node *n = &l->from->nodes[q];
        if (trn__ops[n->op].view != NULL || takes(l, n))
            TRN_TRY(add_node(l, l->from, n, l->number));
        else if (trn__ops[n->op].decompose != NULL)
            TRN_TRY(expand(l, q));
        else
            TRN_TRY(place_on_host(l, n));
    }
    for (int32_t i = 0; i < l->from->n_outputs; i++)
        TRN_TRY(trn__graph_add_output(l->to,
                                      l->number[l->from->outputs[i].value],
                                      l->from->outputs[i].alias));
    l->to->n_scalars = l->from->n_scalars + l->n_constants;
    l->to->n_draws = l->from->n_draws;
    return TRN_OK;
}

trn_graph *trn__graph_lowered(trn_context *c, const trn_graph *g,
                              double **constants)
{
    lowering l = {.c = c, .from = g, .to = trn__graph_new(c)};
    l.number = trn__alloc(c, (size_t)(g->n_values + 1) * sizeof(int32_t));
    if (l.number == NULL)
        trn__fail_memory(c, "compile", sizeof(int32_t));
    if (c->status == TRN_OK)
        lower_all(&l);
    trn__free(c, l.number);
    *constants = l.constants;
    if (c->status == TRN_OK)
        return l.to;
    trn__graph_free(l.to);
    trn__free(c, l.constants);
    *constants = NULL;
    return NULL;
}
