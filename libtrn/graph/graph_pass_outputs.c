/* SPDX-License-Identifier: Apache-2.0
 *
 * Outputs: after this pass an output without alias is a value that a node
 * writes whole, into the output's own buffer.
 *
 * So inputs, views, what an UPDATE row made (it lies in the memory of what it
 * overwrote) and a value that is an output already get a copy.  The copy stands
 * right behind the value's making, hence before any write of its memory.
 */
#include "libtrn/graph/graph_pass.h"

static bool needs_copy(const trn_graph *g, int32_t v)
{
    const trn__graph_value *value = &g->values[v];
    if (value->node < 0 || value->output >= 0)
        return true;
    const trn__graph_node *maker = &g->nodes[value->node];
    return trn__graph_is_view(maker) || trn__graph_is_update(maker);
}

/* An output with alias must fit the input's memory, the only one to do so. */
static trn_status check_alias(trn_graph *g, int32_t i)
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
    for (int32_t j = 0; j < i; j++) {
        if (g->outputs[j].alias == alias)
            return trn__fail(g->c, TRN_ERR_INTERNAL,
                             "graph: outputs %d and %d both replace input %d",
                             (int)j, (int)i, (int)alias);
    }
    return TRN_OK;
}

trn_status trn__graph_outputs(trn_graph *g)
{
    for (int32_t i = 0; i < g->n_outputs; i++) {
        int32_t v = g->outputs[i].value;
        if (g->outputs[i].alias >= 0) {
            TRN_TRY(check_alias(g, i));
            continue;
        }
        if (needs_copy(g, v)) {
            v = trn__graph_insert_copy(g, g->values[v].node + 1, v);
            if (v < 0)
                return g->c->status;
            g->outputs[i].value = v;
        }
        g->values[v].output = i;
    }
    return TRN_OK;
}
