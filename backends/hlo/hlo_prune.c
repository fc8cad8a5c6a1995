/* SPDX-License-Identifier: Apache-2.0
 *
 * Taking away what no result needs: instructions, and parameters that nobody
 * reads.  A device is given what the program takes, so its compiler never sees
 * a parameter without a reader, which some do not bear.
 */
#include "backends/hlo/hlo_lower.h"

/* new_of[i]: the number that instruction i will have, -1: it goes. */
static void find_live(const trn__hlo_module *m, int32_t *new_of)
{
    for (int32_t i = 0; i < m->n_insts; i++)
        new_of[i] = -1;
    if (m->n_insts > 0)
        new_of[m->n_insts - 1] = 0; /* the root */
    for (int32_t i = m->n_insts; i-- > 0;) {
        for (int32_t k = 0; new_of[i] >= 0 && k < m->insts[i].n_operands; k++)
            new_of[trn__hlo_operand(m, &m->insts[i], k)] = 0;
    }
    for (int32_t i = 0, n = 0; i < m->n_insts; i++) {
        if (new_of[i] >= 0)
            new_of[i] = n++;
    }
}

/* Parameter `from` becomes parameter `to` of the program's table. */
static void move_param(trn__hlo_lowering *l, int32_t from, int32_t to)
{
    trn__hlo_program *p = l->program;
    trn__hlo_module *m = &l->m;
    p->params[to] = p->params[from];
    if (p->params[to].alias >= 0)
        p->results[p->params[to].alias].alias = to;
    for (int32_t i = 0; i < m->n_aliases; i++) {
        if (m->aliases[i].result == p->params[to].alias)
            m->aliases[i].param = to;
    }
    for (int i = 0; i < TRN__HLO_N_VECTORS; i++) {
        if (l->detail->vectors[i].param == from)
            l->detail->vectors[i].param = to;
    }
}

static void drop_params(trn__hlo_lowering *l, const int32_t *new_of)
{
    trn__hlo_module *m = &l->m;
    int32_t n = 0;
    for (int32_t i = 0; i < m->n_params; i++) {
        const int32_t inst = m->params[i];
        if (new_of[inst] < 0) {
            for (int v = 0; v < TRN__HLO_N_VECTORS; v++) {
                if (l->detail->vectors[v].param == i)
                    l->detail->vectors[v].param = -1;
            }
            continue;
        }
        m->insts[inst].number = n;
        if (n != i)
            move_param(l, i, n);
        m->params[n++] = inst;
    }
    m->n_params = l->program->n_params = n;
}

void trn__hlo_prune(trn__hlo_lowering *l)
{
    trn__hlo_module *m = &l->m;
    const size_t bytes = ((size_t)m->n_insts + 1) * sizeof(int32_t);
    int32_t *new_of = trn__hlo_cleared(l, bytes);
    if (new_of == NULL)
        return;
    find_live(m, new_of);
    drop_params(l, new_of);
    int32_t n_insts = 0, n_operands = 0;
    for (int32_t i = 0; i < m->n_insts; i++) {
        trn__hlo_inst inst = m->insts[i];
        if (new_of[i] < 0)
            continue;
        for (int32_t k = 0; k < inst.n_operands; k++)
            m->operands[n_operands + k] =
                new_of[m->operands[inst.first_operand + k]];
        inst.first_operand = n_operands;
        n_operands += inst.n_operands;
        m->insts[n_insts++] = inst;
    }
    m->n_insts = n_insts;
    m->n_operands = n_operands;
    m->n_constants = 0; /* their numbers are old; nothing is built any more */
    l->host->dealloc(l->host->host, new_of);
}
