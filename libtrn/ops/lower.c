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
    const trn__target *target;
    const trn_graph *from;
    trn_graph *to;
} lowering;

/* Does the device take this node of g?  A view that it knows is not asked for,
 * since there is nothing to compute. */
static bool takes(const lowering *l, const trn_graph *g,
                  const trn__graph_node *n)
{
    const trn_arg *in[TRN__MAX_IN], *out[TRN__MAX_OUT];
    const trn__target *target = l->target;
    if (trn__ops[n->op].view != NULL)
        return trn__knows(target->table, n->op);
    for (int i = 0; i < n->n_in; i++)
        in[i] = &g->values[n->in[i]].arg;
    for (int i = 0; i < n->n_out; i++)
        out[i] = &g->values[n->out[i]].arg;
    const trn_op_call question = {
        .size = (uint32_t)sizeof question,
        .op = n->op,
        .n_in = n->n_in,
        .n_out = trn__ops[n->op].writes != 0 ? 0 : n->n_out,
        .in = in,
        .out = out,
        .attrs = n->attrs,
        .attrs_size = n->attrs_size,
    };
    return trn__takes(target->table, target->device, &question);
}

static bool host_may(const trn_context *c, const trn__target *target)
{
    return (target->table->caps & TRN_CAP_HOST_NODES) && c->allow_fallback;
}

static trn_status refuse(trn_context *c, const trn__target *target, uint32_t op)
{
    return trn__fail(c, TRN_ERR_UNSUPPORTED,
                     "%s: device %s does not have it for these types; %s",
                     trn__ops[op].name, target->table->name,
                     target->table->caps & TRN_CAP_HOST_NODES
                         ? "the host may do it with TRN_FALLBACK=allow"
                         : "and it cannot leave it to the host");
}

trn_status trn__check_placement(const trn__call *k)
{
    trn__operands o;
    const trn__op_info *info = &trn__ops[k->op];
    const trn__target own = {k->c->backend, k->c->device};
    const trn__target *target = k->c->capture->target;
    if (target == NULL)
        target = &own;
    if (info->view != NULL)
        return trn__knows(target->table, k->op) ? TRN_OK
                                                : refuse(k->c, target, k->op);
    if (info->decompose != NULL || host_may(k->c, target))
        return TRN_OK;
    trn__operands_fill(&o, k);
    return trn__takes(target->table, target->device, &o.call)
               ? TRN_OK
               : refuse(k->c, target, k->op);
}

static trn_status copy_inputs(lowering *l, int32_t *number)
{
    for (int32_t i = 0; i < l->from->n_inputs; i++) {
        int32_t v = l->from->inputs[i];
        const trn_arg *arg = &l->from->values[v].arg;
        trn__desc desc = {.dtype = arg->dtype, .rank = arg->rank};
        memcpy(desc.shape, arg->shape, sizeof desc.shape);
        number[v] = trn__graph_add_input(l->to, &desc);
        if (number[v] < 0)
            return l->c->status;
    }
    return TRN_OK;
}

/* Node `like` of graph g as a node of l->to: inputs and outputs by `number`. */
static trn_status add_node(lowering *l, const trn_graph *g,
                           const trn__graph_node *like, int32_t *number)
{
    trn__graph_node copy = *like;
    trn_arg out[TRN__MAX_OUT];
    for (int i = 0; i < like->n_in; i++)
        copy.in[i] = number[like->in[i]];
    for (int i = 0; i < like->n_out; i++)
        out[i] = g->values[like->out[i]].arg;
    int32_t first = trn__graph_add_node(l->to, &copy, like->n_out, out);
    if (first < 0)
        return l->c->status;
    for (int i = 0; i < like->n_out; i++)
        number[like->out[i]] = first + i;
    return TRN_OK;
}

/* A result of a body as the node's: contiguous, as consumers expect it. */
static int32_t plain_value(lowering *l, const trn_graph *body, int32_t value,
                           int32_t number)
{
    const trn__graph_value *v = &body->values[value];
    if (v->node >= 0 && trn__ops[body->nodes[v->node].op].view == NULL)
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

static trn_status lower_node(lowering *l, const trn_graph *g, int32_t q,
                             const trn__graph_node *n, int32_t *number);

/* The body's scalars beyond the node's own become literals of l->to. */
static trn_status take_literals(lowering *l, const trn_graph *body, int32_t own)
{
    for (int32_t i = 0; i < body->n_literals; i++)
        TRN_TRY(trn__graph_add_literal(
            l->to, l->to->n_scalars + body->literals[i].scalar - own,
            body->literals[i].value));
    return TRN_OK;
}

static trn_status add_body(lowering *l, const trn__graph_node *n,
                           const trn_graph *body, const int32_t *outer,
                           int32_t *number)
{
    int32_t own = n->n_scalars, base = l->to->n_scalars - own;
    for (int i = 0; i < n->n_in; i++)
        number[body->inputs[i]] = outer[n->in[i]];
    TRN_TRY(take_literals(l, body, own));
    l->to->n_scalars += body->n_scalars - own;
    for (int32_t q = 0; q < body->n_nodes; q++) {
        trn__graph_node node = body->nodes[q];
        for (int i = 0; i < node.n_scalars; i++) {
            int32_t s = node.scalar[i];
            node.scalar[i] = s < own ? n->scalar[s] : base + s;
        }
        node.draw = node.draw >= 0 ? n->draw : -1;
        node.origin = n->origin == 0 ? n->op : n->origin;
        TRN_TRY(lower_node(l, body, q, &node, number));
    }
    return TRN_OK;
}

/* Node q of g, whose scalars and draw stand in n, as its body. */
static trn_status expand(lowering *l, const trn_graph *g, int32_t q,
                         const trn__graph_node *n, int32_t *outer)
{
    trn_context *c = l->c;
    trn_graph *body;
    TRN_TRY(trn__body_trace(c, g, q, l->target, &body));
    size_t bytes = (size_t)(body->n_values + 1) * sizeof(int32_t);
    int32_t *number = trn__alloc(c, bytes);
    if (number == NULL) {
        trn__graph_free(body);
        return trn__fail_memory(c, "a decomposition", bytes);
    }
    add_body(l, n, body, outer, number);
    for (int i = 0; i < n->n_out && c->status == TRN_OK; i++) {
        int32_t value = body->outputs[i].value;
        outer[n->out[i]] = plain_value(l, body, value, number[value]);
    }
    trn__free(c, number);
    trn__graph_free(body);
    return c->status;
}

static trn_status lower_node(lowering *l, const trn_graph *g, int32_t q,
                             const trn__graph_node *n, int32_t *number)
{
    const trn__op_info *info = &trn__ops[n->op];
    if (takes(l, g, n))
        return add_node(l, g, n, number);
    if (info->decompose != NULL)
        return expand(l, g, q, n, number);
    if (info->view != NULL || !host_may(l->c, l->target))
        return refuse(l->c, l->target, n->op);
    trn__graph_node host = *n;
    host.on_host = true;
    l->to->n_host++;
    return add_node(l, g, &host, number);
}

static trn_status lower_all(lowering *l, int32_t *number)
{
    const trn_graph *g = l->from;
    TRN_TRY(copy_inputs(l, number));
    l->to->n_scalars = g->n_scalars;
    l->to->n_draws = g->n_draws;
    for (int32_t i = 0; i < g->n_literals; i++)
        TRN_TRY(trn__graph_add_literal(l->to, g->literals[i].scalar,
                                       g->literals[i].value));
    for (int32_t q = 0; q < g->n_nodes; q++)
        TRN_TRY(lower_node(l, g, q, &g->nodes[q], number));
    for (int32_t i = 0; i < g->n_outputs; i++)
        TRN_TRY(trn__graph_add_output(l->to, number[g->outputs[i].value],
                                      g->outputs[i].alias));
    return TRN_OK;
}

trn_graph *trn__graph_lowered(trn_context *c, const trn_graph *g)
{
    return trn__graph_lowered_for(c, g, c->backend, c->device);
}

trn_graph *trn__graph_lowered_for(trn_context *c, const trn_graph *g,
                                  const trn_backend *table, trn_device *device)
{
    const trn__target target = {table, device};
    lowering l = {
        .c = c, .target = &target, .from = g, .to = trn__graph_new(c)};
    size_t bytes = (size_t)(g->n_values + 1) * sizeof(int32_t);
    int32_t *number = trn__alloc(c, bytes);
    if (number == NULL)
        trn__fail_memory(c, "compile", bytes);
    else if (c->status == TRN_OK)
        lower_all(&l, number);
    trn__free(c, number);
    if (c->status == TRN_OK)
        return l.to;
    trn__graph_free(l.to);
    return NULL;
}
