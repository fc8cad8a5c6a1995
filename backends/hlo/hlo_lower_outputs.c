/* SPDX-License-Identifier: Apache-2.0
 *
 * The results of a module: outputs, the memory of inputs that they take over,
 * the vector of checks.
 */
#include <string.h>

#include "backends/hlo/hlo_lower.h"

/* The parameter that is this input of the graph. */
static int32_t param_of_input(const trn__hlo_program *p, int32_t input)
{
    for (int32_t i = 0; i < p->n_params; i++) {
        if (p->params[i].source == TRN__HLO_INPUT &&
            p->params[i].index == input)
            return i;
    }
    return -1;
}

/* For each instruction, is it an operand?  NULL: out of memory. */
static bool *find_reads(trn__hlo_lowering *l)
{
    const trn__hlo_module *m = &l->m;
    bool *reads = trn__hlo_cleared(l, (size_t)m->n_insts + 1);
    for (int32_t i = 0; reads != NULL && i < m->n_operands; i++)
        reads[m->operands[i]] = true;
    return reads;
}

/* `now`, or `old` where the condition does not hold. */
static int32_t guarded(trn__hlo_module *m, int32_t condition, int32_t now,
                       int32_t old)
{
    trn__hlo_shape s = trn__hlo_shape_of(m, now);
    s.type = TRN__HLO_PRED;
    return trn__hlo_select(m, trn__hlo_splat(m, condition, &s), now, old);
}

/* What replaces an input keeps its old value where `good` does not hold.  Some
 * compilers lose a replaced input that nobody reads: it is always read. */
static int32_t replacement(trn__hlo_lowering *l, int32_t now, int32_t param,
                           int32_t good, const bool *reads)
{
    trn__hlo_module *m = &l->m;
    const int32_t old = m->params[param];
    if (now == old)
        return now;
    if (good >= 0)
        return guarded(m, good, now, old);
    if (reads[old])
        return now;
    return guarded(m, trn__hlo_bits(m, TRN__HLO_PRED, 1), now, old);
}

static bool is_among(int32_t n, const int32_t *list, int32_t x)
{
    for (int32_t i = 0; i < n; i++) {
        if (list[i] == x)
            return true;
    }
    return false;
}

/* One more result of the root, an instruction of its own. */
static void add_result(trn__hlo_lowering *l, int32_t *roots, int32_t inst,
                       int32_t index, uint32_t dtype, int32_t param)
{
    trn__hlo_module *m = &l->m;
    trn__hlo_program *p = l->program;
    if (inst >= 0 && (m->insts[inst].op == TRN__HLO_OP_PARAMETER ||
                      is_among(p->n_results, roots, inst)))
        inst = trn__hlo_unary(m, TRN__HLO_OP_COPY, inst);
    if (inst < 0)
        return;
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
    int32_t vector = -1, good = -1;
    const bool checks = trn__hlo_check_vector(l, &vector, &good);
    bool *reads = find_reads(l);
    if (reads == NULL)
        return;
    for (int32_t i = 0; i < l->info.n_outputs; i++) {
        trn_graph_output o = {.size = (uint32_t)sizeof o};
        l->host->graph_output(l->graph, i, &o);
        int32_t inst = l->value[o.value];
        if (inst == TRN__HLO_EMPTY)
            continue;
        const int32_t param =
            o.alias < 0 ? -1 : param_of_input(l->program, o.alias);
        if (param >= 0)
            inst = replacement(l, inst, param, good, reads);
        add_result(l, roots, inst, i, trn__hlo_value_arg(l, o.value).dtype,
                   param);
    }
    l->host->dealloc(l->host->host, reads);
    if (checks) {
        l->program->check = l->program->n_results;
        add_result(l, roots, vector, -1,
                   l->detail->wide ? (uint32_t)TRN_I64 : (uint32_t)TRN_I32, -1);
    }
    trn__hlo_tuple(&l->m, l->program->n_results, roots);
}
