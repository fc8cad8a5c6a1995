/* SPDX-License-Identifier: Apache-2.0
 *
 * Verifier: opcodes that move elements, and iota.
 */
#include "backends/hlo/hlo_verify.h"

/* Sound shapes have fewer than 2^63 elements. */
static int64_t elements(const trn__hlo_shape *s)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < s->rank; d++)
        if (s->dims[d] == 0)
            return 0;
    for (uint32_t d = 0; d < s->rank; d++)
        n *= s->dims[d];
    return n;
}

bool trn__hlo_rule_reshape(const trn__hlo_check *c, trn__hlo_shape *want)
{
    const int64_t from = elements(c->in[0]), to = elements(&c->inst->shape);
    *want = c->inst->shape;
    want->type = c->in[0]->type;
    return from == to || trn__hlo_bad(c, "%lld elements become %lld",
                                      (long long)from, (long long)to);
}

/* Dimensions that no dimension of the operand goes to are free. */
bool trn__hlo_rule_broadcast(const trn__hlo_check *c, trn__hlo_shape *want)
{
    const trn__hlo_list *to = &c->inst->list[0];
    *want = c->inst->shape;
    want->type = c->in[0]->type;
    if (!trn__hlo_counts(c, to, "dimensions", c->in[0]->rank) ||
        !trn__hlo_dimensions(c, to, "dimensions", want->rank, true))
        return false;
    for (int32_t d = 0; d < to->n; d++)
        want->dims[to->at[d]] = c->in[0]->dims[d];
    return true;
}

bool trn__hlo_rule_transpose(const trn__hlo_check *c, trn__hlo_shape *want)
{
    const trn__hlo_list *from = &c->inst->list[0];
    *want = *c->in[0];
    if (!trn__hlo_counts(c, from, "dimensions", want->rank) ||
        !trn__hlo_dimensions(c, from, "dimensions", want->rank, false))
        return false;
    for (int32_t d = 0; d < from->n; d++)
        want->dims[d] = c->in[0]->dims[from->at[d]];
    return true;
}

bool trn__hlo_rule_reverse(const trn__hlo_check *c, trn__hlo_shape *want)
{
    *want = *c->in[0];
    return trn__hlo_dimensions(c, &c->inst->list[0], "dimensions", want->rank,
                               false);
}

bool trn__hlo_rule_slice(const trn__hlo_check *c, trn__hlo_shape *want)
{
    const trn__hlo_list *list = c->inst->list;
    *want = *c->in[0];
    if (!trn__hlo_counts(c, &list[0], "start", want->rank) ||
        !trn__hlo_counts(c, &list[1], "limit", want->rank) ||
        !trn__hlo_counts(c, &list[2], "stride", want->rank))
        return false;
    for (uint32_t d = 0; d < want->rank; d++) {
        const int64_t start = list[0].at[d], limit = list[1].at[d];
        const int64_t stride = list[2].at[d];
        if (start < 0 || start > limit || limit > want->dims[d] || stride < 1)
            return trn__hlo_bad(c,
                                "[%lld:%lld:%lld] of dimension %u, which "
                                "is %lld",
                                (long long)start, (long long)limit,
                                (long long)stride, (unsigned)d,
                                (long long)want->dims[d]);
        want->dims[d] = (limit - start + stride - 1) / stride;
    }
    return true;
}

bool trn__hlo_rule_concatenate(const trn__hlo_check *c, trn__hlo_shape *want)
{
    const trn__hlo_list *list = &c->inst->list[0];
    if (c->inst->n_operands < 1)
        return trn__hlo_bad(c, "no operands; expected at least one");
    *want = *c->in[0];
    if (!trn__hlo_counts(c, list, "dimensions", 1) ||
        !trn__hlo_dimensions(c, list, "dimensions", want->rank, false))
        return false;
    const int64_t along = list->at[0];
    for (int32_t k = 1; k < c->inst->n_operands; k++) {
        const int32_t from = trn__hlo_operand(c->m, c->inst, k);
        trn__hlo_shape next = c->m->insts[from].shape;
        const int64_t more = next.rank == want->rank ? next.dims[along] : 0;
        next.dims[along] = want->dims[along];
        if (!trn__hlo_same_shape(want, &next))
            return trn__hlo_bad(c,
                                "operands 0 and %d differ in more than "
                                "dimension %lld",
                                (int)k, (long long)along);
        want->dims[along] += more;
        if (want->dims[along] > INT32_MAX)
            return trn__hlo_bad(c, "dimension %lld grows beyond 2^31",
                                (long long)along);
    }
    return true;
}

bool trn__hlo_rule_pad(const trn__hlo_check *c, trn__hlo_shape *want)
{
    const trn__hlo_list *list = c->inst->list;
    *want = *c->in[0];
    if (c->in[1]->rank != 0 || c->in[1]->type != want->type)
        return trn__hlo_bad(c,
                            "the value is %s of rank %u; expected a scalar "
                            "of %s",
                            trn__hlo_type_text(c->in[1]->type),
                            (unsigned)c->in[1]->rank,
                            trn__hlo_type_text(want->type));
    if (!trn__hlo_counts(c, &list[0], "low", want->rank) ||
        !trn__hlo_counts(c, &list[1], "high", want->rank) ||
        !trn__hlo_counts(c, &list[2], "interior", want->rank))
        return false;
    for (uint32_t d = 0; d < want->rank; d++) {
        /* Each number is below 2^31, so nothing here reaches 2^63. */
        const int64_t n = want->dims[d], between = list[2].at[d];
        if (between < 0)
            return trn__hlo_bad(c, "interior padding %lld; expected 0 or more",
                                (long long)between);
        want->dims[d] =
            list[0].at[d] + list[1].at[d] + n + (n > 0 ? n - 1 : 0) * between;
        if (want->dims[d] < 0)
            return trn__hlo_bad(c, "dimension %u shrinks to %lld", (unsigned)d,
                                (long long)want->dims[d]);
    }
    return true;
}

bool trn__hlo_rule_iota(const trn__hlo_check *c, trn__hlo_shape *want)
{
    *want = c->inst->shape;
    if (want->type == TRN__HLO_PRED)
        return trn__hlo_bad(c, "is not defined for pred");
    return trn__hlo_counts(c, &c->inst->list[0], "dimensions", 1) &&
           trn__hlo_dimensions(c, &c->inst->list[0], "dimensions", want->rank,
                               false);
}
