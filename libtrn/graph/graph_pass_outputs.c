/* SPDX-License-Identifier: Apache-2.0
 *
 * Outputs: after this pass an output without alias is a value that a node
 * writes whole, into the output's own buffer.
 *
 * So inputs, views, what an UPDATE row made (it lies in the memory of what it
 * overwrote) and a value that is an output already get a copy.  The copy stands
 * right behind the value's making, hence before any write of its memory.
 */
#include "libtrn/graph/graph_order.h"

static bool needs_copy(const trn_graph *g, int32_t v)
{
    const trn__graph_value *value = &g->values[v];
    if (value->node < 0 || value->output >= 0)
        return true;
    const trn__graph_node *maker = &g->nodes[value->node];
    return trn__graph_is_view(maker) || trn__graph_is_update(maker);
}

/* An output with alias must fit the input's memory, the only one to do so;
 * taken[i] is one more than the output that replaces input i. */
static trn_status check_alias(trn_graph *g, int32_t i, int32_t *taken)
{
    int32_t alias = g->outputs[i].alias;
    if (alias >= g->n_inputs)
        return trn__fail(g->c, TRN_ERR_INTERNAL,
                         "graph: output %d replaces input %d of %d", (int)i,
                         (int)alias, (int)g->n_inputs);
    const trn_arg *in = &g->values[g->inputs[alias]].arg;
    const trn_arg *out = &g->values[g->outputs[i].value].arg;
    if (in->dtype != out->dtype || !trn__same_shape(in, out))
        return trn__fail(g->c, TRN_ERR_INTERNAL,
                         "graph: output %d is %s; expected that of input %d, "
                         "%s, which it replaces",
                         (int)i, trn__describe(out).s, (int)alias,
                         trn__describe(in).s);
    if (taken[alias] > 0)
        return trn__fail(g->c, TRN_ERR_INTERNAL,
                         "graph: outputs %d and %d both replace input %d",
                         (int)taken[alias] - 1, (int)i, (int)alias);
    taken[alias] = i + 1;
    return TRN_OK;
}

/* Output i becomes a copy of what it is, right behind its making. */
static trn_status copy_output(trn__order *o, int32_t i)
{
    trn_graph *g = o->g;
    int32_t v = g->outputs[i].value, maker = g->values[v].node;
    v = trn__order_insert_copy(
        o, maker < 0 ? o->line.first : o->line.at[maker].next, v);
    if (v < 0)
        return TRN_ERR_NOMEM;
    g->outputs[i].value = v;
    return TRN_OK;
}

static trn_status settle(trn__order *o, int32_t *taken)
{
    trn_graph *g = o->g;
    for (int32_t i = 0; i < g->n_outputs; i++) {
        if (g->outputs[i].alias >= 0) {
            TRN_TRY(check_alias(g, i, taken));
            continue;
        }
        if (needs_copy(g, g->outputs[i].value))
            TRN_TRY(copy_output(o, i));
        g->values[g->outputs[i].value].output = i;
    }
    return trn__order_apply(o);
}

trn_status trn__graph_outputs(trn_graph *g)
{
    trn__order o;
    int32_t *taken = trn__graph_numbers(g, g->n_inputs, 0);
    trn_status status = trn__order_open(&o, g);
    if (taken != NULL && status == TRN_OK)
        status = settle(&o, taken);
    trn__order_close(&o);
    trn__free(g->c, taken);
    return taken == NULL ? TRN_ERR_NOMEM : status;
}
