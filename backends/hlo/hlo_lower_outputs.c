/* SPDX-License-Identifier: Apache-2.0
 *
 * The results of a module: outputs and the vector of checks.
 */
#include <string.h>

#include "backends/hlo/hlo_lower.h"

/* One more result of the root, an instruction of its own. */
static void add_result(trn__hlo_lowering *l, int32_t *roots, int32_t inst,
                       int32_t index, uint32_t dtype, int32_t param)
{
    trn__hlo_module *m = &l->m;
    trn__hlo_program *p = l->program;
    if (inst >= 0 &&
        (m->insts[inst].op == TRN__HLO_OP_PARAMETER || l->is_result[inst]))
        inst = trn__hlo_unary(m, TRN__HLO_OP_COPY, inst);
    if (inst < 0)
        return;
    l->is_result[inst] = true;
    const trn__hlo_shape *s = &m->insts[inst].shape;
    trn__hlo_result *r = &p->results[p->n_results];
    memset(r, 0, sizeof *r);
    r->dtype = dtype;
    r->rank = s->rank;
    memcpy(r->shape, s->dims, s->rank * sizeof s->dims[0]);
    r->bytes = (uint64_t)trn__hlo_numel(s) * trn__hlo_type_bytes(s->type);
    r->index = index;
    r->alias = param;
    if (param >= 0) {
        p->params[param].alias = p->n_results;
        trn__hlo_add_alias(m, p->n_results, param);
    }
    roots[p->n_results++] = inst;
}

void trn__hlo_lower_outputs(trn__hlo_lowering *l, int32_t *roots)
{
    trn__hlo_finish_states(l);
    /* Room for what there is, and for a copy of each. */
    l->is_result = trn__hlo_cleared(l, (size_t)l->m.n_insts +
                                           (size_t)l->info.n_outputs + 1);
    if (l->is_result == NULL)
        return;
    for (int32_t i = 0; i < l->info.n_outputs; i++) {
        trn_graph_output o = {.size = (uint32_t)sizeof o};
        l->host->graph_output(l->graph, i, &o);
        if (l->value[o.value] != TRN__HLO_EMPTY)
            add_result(l, roots, l->value[o.value], i,
                       trn__hlo_value_arg(l, o.value).dtype,
                       trn__hlo_state_param(l, o.alias));
    }
    if (l->good >= 0) {
        l->program->check = l->program->n_results;
        add_result(l, roots, l->vector, -1,
                   l->detail->wide ? (uint32_t)TRN_I64 : (uint32_t)TRN_I32, -1);
    }
    l->host->dealloc(l->host->host, l->is_result);
    trn__hlo_tuple(&l->m, l->program->n_results, roots);
}
