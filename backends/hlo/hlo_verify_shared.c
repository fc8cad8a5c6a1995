/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions about opcodes, types, shapes and lists that the verifier's rules
 * share.
 */
#include <string.h>

#include "backends/hlo/hlo_verify.h"

bool trn__hlo_is_integer(uint32_t type)
{
    return type != TRN__HLO_PRED && trn__hlo_type_bytes(type) > 0 &&
           !trn__hlo_is_float(type);
}

bool trn__hlo_reduces(uint32_t op)
{
    return op == TRN__HLO_OP_ADD || op == TRN__HLO_OP_MULTIPLY ||
           op == TRN__HLO_OP_MAXIMUM || op == TRN__HLO_OP_MINIMUM ||
           op == TRN__HLO_OP_AND || op == TRN__HLO_OP_OR ||
           op == TRN__HLO_OP_XOR;
}

bool trn__hlo_same_dims(const trn__hlo_shape *a, const trn__hlo_shape *b)
{
    return a->rank == b->rank &&
           memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0;
}

bool trn__hlo_same_shape(const trn__hlo_shape *a, const trn__hlo_shape *b)
{
    return a->type == b->type && trn__hlo_same_dims(a, b);
}

bool trn__hlo_contains(const trn__hlo_list *list, int64_t number)
{
    for (int32_t i = 0; i < list->n; i++)
        if (list->at[i] == number)
            return true;
    return false;
}

bool trn__hlo_counts(const trn__hlo_check *c, const trn__hlo_list *list,
                     const char *name, int64_t n)
{
    return list->n == n || trn__hlo_bad(c, "%s has %d numbers; expected %lld",
                                        name, (int)list->n, (long long)n);
}

bool trn__hlo_dimensions(const trn__hlo_check *c, const trn__hlo_list *list,
                         const char *name, uint32_t rank, bool rising)
{
    for (int32_t i = 0; i < list->n; i++) {
        const int64_t d = list->at[i];
        if (d < 0 || d >= (int64_t)rank)
            return trn__hlo_bad(c, "%s has %lld; expected 0 to %d", name,
                                (long long)d, (int)rank - 1);
        for (int32_t k = 0; k < i; k++)
            if (list->at[k] == d)
                return trn__hlo_bad(c, "%s has %lld twice", name, (long long)d);
        if (rising && i > 0 && list->at[i - 1] > d)
            return trn__hlo_bad(c, "%s falls from %lld to %lld", name,
                                (long long)list->at[i - 1], (long long)d);
    }
    return true;
}

bool trn__hlo_push(const trn__hlo_check *c, trn__hlo_shape *shape, int64_t dim)
{
    if (shape->rank >= TRN__HLO_MAX_RANK)
        return trn__hlo_bad(c, "the result has more than %d dimensions",
                            TRN__HLO_MAX_RANK);
    shape->dims[shape->rank++] = dim;
    return true;
}
