/* SPDX-License-Identifier: Apache-2.0
 *
 * Verifier: reduce and dot.
 */
#include "backends/hlo/hlo_verify.h"

bool trn__hlo_rule_reduce(const trn__hlo_check *c, trn__hlo_shape *want)
{
    const trn__hlo_shape *x = c->in[0], *start = c->in[1];
    const trn__hlo_list *over = &c->inst->list[0];
    const trn__hlo_helper *h = &c->m->helpers[c->inst->helper];
    if (start->rank != 0 || start->type != x->type)
        return trn__hlo_bad(c,
                            "the start is %s of rank %u; expected a scalar "
                            "of %s",
                            trn__hlo_type_text(start->type),
                            (unsigned)start->rank, trn__hlo_type_text(x->type));
    if (h->type != x->type || !trn__hlo_reduces(h->op))
        return trn__hlo_bad(c,
                            "the helper is %s of %s; expected add, "
                            "multiply, maximum, minimum, and, or, xor of %s",
                            trn__hlo_op_text(h->op),
                            trn__hlo_type_text(h->type),
                            trn__hlo_type_text(x->type));
    if (!trn__hlo_dimensions(c, over, "dimensions", x->rank, false))
        return false;
    want->type = x->type;
    for (uint32_t d = 0; d < x->rank; d++)
        if (!trn__hlo_contains(over, d))
            want->dims[want->rank++] = x->dims[d];
    return true;
}

/* The dimensions of one side that are neither summed over nor shared. */
static bool push_free(const trn__hlo_check *c, trn__hlo_shape *want,
                      const trn__hlo_shape *x, const trn__hlo_list *contracting,
                      const trn__hlo_list *batch)
{
    for (uint32_t d = 0; d < x->rank; d++)
        if (!trn__hlo_contains(contracting, d) &&
            !trn__hlo_contains(batch, d) && !trn__hlo_push(c, want, x->dims[d]))
            return false;
    return true;
}

/* Dimensions of a and b that go together: as many, and as long. */
static bool pairs_fit(const trn__hlo_check *c, const char *name,
                      const trn__hlo_list *a, const trn__hlo_list *b)
{
    if (!trn__hlo_counts(c, b, name, a->n) ||
        !trn__hlo_dimensions(c, a, name, c->in[0]->rank, false) ||
        !trn__hlo_dimensions(c, b, name, c->in[1]->rank, false))
        return false;
    for (int32_t i = 0; i < a->n; i++) {
        const int64_t left = c->in[0]->dims[a->at[i]];
        const int64_t right = c->in[1]->dims[b->at[i]];
        if (left != right)
            return trn__hlo_bad(c,
                                "%s: dimension %lld of operand 0 is %lld, "
                                "%lld of operand 1 is %lld",
                                name, (long long)a->at[i], (long long)left,
                                (long long)b->at[i], (long long)right);
    }
    return true;
}

static bool are_apart(const trn__hlo_check *c, const trn__hlo_list *contracting,
                      const trn__hlo_list *batch)
{
    for (int32_t i = 0; i < batch->n; i++)
        if (trn__hlo_contains(contracting, batch->at[i]))
            return trn__hlo_bad(c,
                                "dimension %lld is both contracting and "
                                "batch",
                                (long long)batch->at[i]);
    return true;
}

/* Products of halves may be summed and given in single precision. */
static bool dot_types_fit(const trn__hlo_check *c, uint32_t *type)
{
    const uint32_t a = c->in[0]->type, b = c->in[1]->type;
    const uint32_t result = c->inst->shape.type;
    const bool half = a == TRN__HLO_F16 || a == TRN__HLO_BF16;
    if (a != b || a == TRN__HLO_PRED)
        return trn__hlo_bad(c, "is not defined for %s and %s",
                            trn__hlo_type_text(a), trn__hlo_type_text(b));
    if (trn__hlo_is_integer(a) && !c->profile->integer_dot)
        return trn__hlo_bad(c, "dot of %s is not in profile %s",
                            trn__hlo_type_text(a), c->profile->name);
    *type = half && result == TRN__HLO_F32 ? result : a;
    return true;
}

bool trn__hlo_rule_dot(const trn__hlo_check *c, trn__hlo_shape *want)
{
    const trn__hlo_list *list = c->inst->list;
    if (!dot_types_fit(c, &want->type) ||
        !pairs_fit(c, "contracting dimensions", &list[0], &list[1]) ||
        !pairs_fit(c, "batch dimensions", &list[2], &list[3]) ||
        !are_apart(c, &list[0], &list[2]) || !are_apart(c, &list[1], &list[3]))
        return false;
    for (int32_t i = 0; i < list[2].n; i++)
        if (!trn__hlo_push(c, want, c->in[0]->dims[list[2].at[i]]))
            return false;
    return push_free(c, want, c->in[0], &list[0], &list[2]) &&
           push_free(c, want, c->in[1], &list[1], &list[3]);
}
