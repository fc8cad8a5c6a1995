/* SPDX-License-Identifier: Apache-2.0
 *
 * States: new values that take over the memory of an input.
 *
 * If a value was bad, a state keeps its old value: the new one is guarded by
 * the checks.  Behind the last check that is done where it is made, so that
 * what is computed of it reads the result.  If it read the unguarded value
 * instead, a compiler would make that twice, both times from the old value,
 * which it would have to copy before it is overwritten.
 */
#include "backends/hlo/hlo_lower.h"

int32_t trn__hlo_state_param(const trn__hlo_lowering *l, int32_t input)
{
    return input < 0 ? -1 : l->param_of[input];
}

void trn__hlo_find_states(trn__hlo_lowering *l)
{
    for (int32_t i = 0; i < l->info.n_values; i++)
        l->replaces[i] = -1;
    for (int32_t i = 0; i < l->info.n_outputs; i++) {
        trn_graph_output o = {.size = (uint32_t)sizeof o};
        l->host->graph_output(l->graph, i, &o);
        if (o.alias >= 0)
            l->replaces[o.value] = trn__hlo_state_param(l, o.alias);
    }
    l->last_check = -1;
    for (int32_t i = 0; i < l->info.n_nodes; i++) {
        trn_graph_node node = {.size = (uint32_t)sizeof node};
        l->host->graph_node(l->graph, i, &node);
        if (node.checks)
            l->last_check = i;
        /* What is assigned is the new value. */
        if (node.op == TRN_OP_assign && l->replaces[node.in[1]] < 0)
            l->replaces[node.in[1]] = l->replaces[node.out[0]];
    }
}

/* `now`, or `old` where the condition does not hold. */
static int32_t guarded(trn__hlo_module *m, int32_t condition, int32_t now,
                       int32_t old)
{
    trn__hlo_shape s = trn__hlo_shape_of(m, now);
    s.type = TRN__HLO_PRED;
    return trn__hlo_select(m, trn__hlo_splat(m, condition, &s), now, old);
}

/* The vector of the checks so far; with none, `good` stays -1. */
static void take_checks(trn__hlo_lowering *l)
{
    if (l->n_checked == l->detail->n_checks)
        return;
    trn__hlo_check_vector(l, &l->vector, &l->good);
    l->n_checked = l->detail->n_checks;
}

int32_t trn__hlo_new_state(trn__hlo_lowering *l, int32_t now)
{
    const int32_t value = l->node.out[0], param = l->replaces[value];
    if (param < 0 || now < 0 || l->node_number < l->last_check)
        return now;
    take_checks(l);
    if (l->good < 0 || now == l->m.params[param])
        return now;
    l->guarded[value] = true;
    if (l->node.op == TRN_OP_assign && l->guarded[l->node.in[1]] &&
        l->replaces[l->node.in[1]] == param)
        return now;
    return guarded(&l->m, l->good, now, l->m.params[param]);
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

/* Some compilers lose a replaced input that nobody reads: it is always read. */
static int32_t finished(trn__hlo_lowering *l, int32_t now, int32_t param,
                        const bool *reads)
{
    trn__hlo_module *m = &l->m;
    const int32_t old = m->params[param];
    if (now == old)
        return now;
    if (l->good >= 0)
        return guarded(m, l->good, now, old);
    if (reads[old])
        return now;
    return guarded(m, trn__hlo_bits(m, TRN__HLO_PRED, 1), now, old);
}

void trn__hlo_finish_states(trn__hlo_lowering *l)
{
    const int32_t n_checked = l->n_checked;
    take_checks(l);
    const bool all = l->n_checked == n_checked; /* in what guards so far */
    bool *reads = find_reads(l);
    for (int32_t i = 0; reads != NULL && i < l->info.n_outputs; i++) {
        trn_graph_output o = {.size = (uint32_t)sizeof o};
        l->host->graph_output(l->graph, i, &o);
        const int32_t param = trn__hlo_state_param(l, o.alias);
        if (param >= 0 && l->value[o.value] >= 0 &&
            !(l->guarded[o.value] && all))
            l->value[o.value] = finished(l, l->value[o.value], param, reads);
    }
    l->host->dealloc(l->host->host, reads);
}
