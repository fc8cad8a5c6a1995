/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that only the device sees: bad indices, zero divisors, numbers that
 * are not finite.
 *
 * The module has one more result, a vector of three integers: 0 or the number
 * of the first check that failed, from 1; the lowest bad position; the value
 * there.  What replaces memory of an input keeps the old value then.
 */
#include <string.h>

#include "backends/hlo/hlo_lower.h"

#define MAX_S32 0x7fffffffll

static uint32_t count_type(const trn__hlo_lowering *l)
{
    return l->detail->wide ? TRN__HLO_S64 : TRN__HLO_S32;
}

/* The lowest place of n at which the mask holds; n: at none. */
static int32_t lowest_place(trn__hlo_module *m, int32_t mask, int64_t n,
                            uint32_t type)
{
    const trn__hlo_shape places = trn__hlo_array(type, 1, &n);
    const int32_t none = trn__hlo_number(m, type, (double)n);
    const int32_t place = trn__hlo_iota(m, type, 1, &n, 0);
    return trn__hlo_reduce(
        m, TRN__HLO_OP_MINIMUM,
        trn__hlo_select(m, mask, place, trn__hlo_splat(m, none, &places)), 1,
        none);
}

/* The value at that place; of n, which is none, some value. */
static int32_t value_at(trn__hlo_module *m, int32_t value, int32_t place,
                        int64_t n)
{
    const uint32_t type = trn__hlo_shape_of(m, place).type;
    const int32_t last = trn__hlo_number(m, type, (double)(n - 1));
    const int32_t row =
        trn__hlo_flat(m, trn__hlo_binary(m, TRN__HLO_OP_MINIMUM, place, last));
    return trn__hlo_reshape(
        m, trn__hlo_gather_rows(m, trn__hlo_flat(m, value), row), 0, NULL);
}

void trn__hlo_check_bad(trn__hlo_lowering *l, uint32_t kind, uint32_t input,
                        int32_t bad, int32_t value, int64_t limit)
{
    trn__hlo_module *m = &l->m;
    struct trn__hlo_detail *d = l->detail;
    const int32_t mask = trn__hlo_flat(m, bad);
    const int64_t n = trn__hlo_shape_of(m, mask).dims[0];
    const uint32_t type = n <= MAX_S32 ? TRN__HLO_S32 : TRN__HLO_S64;
    if (mask < 0)
        return;
    if (!l->node.checks) { /* states are guarded from the last such node on */
        trn__hlo_fail(m, TRN_ERR_INTERNAL,
                      "hlo: a check that is not announced");
        return;
    }
    d->checks = trn__hlo_grow(l, d->checks, d->n_checks, &d->room_checks,
                              sizeof *d->checks);
    if (m->status != TRN_OK)
        return;
    const int32_t place = lowest_place(m, mask, n, type);
    const int32_t there = value < 0 ? -1 : value_at(m, value, place, n);
    d->checks[d->n_checks++] = (trn__hlo_watch){
        .node = l->node_number,
        .kind = kind,
        .input = input,
        .limit = limit,
        .operand = value,
        .position = trn__hlo_convert(m, count_type(l), place),
        .found = trn__hlo_compare(m, TRN__HLO_LT, place,
                                  trn__hlo_number(m, type, (double)n)),
        .value = there < 0 ? -1 : trn__hlo_convert(m, count_type(l), there),
    };
}

static bool is_checked(const trn__hlo_lowering *l, int32_t index, int64_t limit)
{
    const struct trn__hlo_detail *d = l->detail;
    for (int32_t i = 0; i < d->n_checks; i++) {
        if (d->checks[i].operand == index && d->checks[i].limit == limit)
            return true;
    }
    return false;
}

int32_t trn__hlo_check_index(trn__hlo_lowering *l, int32_t index, int64_t limit)
{
    trn__hlo_module *m = &l->m;
    if (index < 0)
        return index;
    const bool narrow = trn__hlo_shape_of(m, index).type == TRN__HLO_S32;
    const bool bounded = !narrow || limit <= MAX_S32;
    const int32_t zero = trn__hlo_like(m, 0.0, index);
    const int32_t end = trn__hlo_like(m, bounded ? (double)limit : 0.0, index);
    const int64_t last = limit > 0 ? limit - 1 : 0;
    if (!is_checked(l, index, limit)) {
        int32_t bad = trn__hlo_compare(m, TRN__HLO_LT, index, zero);
        if (bounded)
            bad = trn__hlo_binary(m, TRN__HLO_OP_OR, bad,
                                  trn__hlo_compare(m, TRN__HLO_GE, index, end));
        trn__hlo_check_bad(l, TRN_REPORT_INDEX, 1, bad, index, limit);
    }
    index = trn__hlo_binary(m, TRN__HLO_OP_MAXIMUM, index, zero);
    return bounded ? trn__hlo_binary(m, TRN__HLO_OP_MINIMUM, index,
                                     trn__hlo_like(m, (double)last, index))
                   : index;
}

/* A scalar as a vector of one. */
static int32_t one(trn__hlo_module *m, int32_t x)
{
    const int64_t n = 1;
    return trn__hlo_reshape(m, x, 1, &n);
}

bool trn__hlo_check_vector(trn__hlo_lowering *l, int32_t *vector, int32_t *good)
{
    trn__hlo_module *m = &l->m;
    const struct trn__hlo_detail *d = l->detail;
    const uint32_t type = count_type(l);
    if (d->n_checks == 0)
        return false;
    const int32_t zero = trn__hlo_number(m, type, 0.0);
    int32_t code = zero, position = zero, value = zero;
    for (int32_t i = d->n_checks; i-- > 0;) { /* the first one wins */
        const trn__hlo_watch *c = &d->checks[i];
        const int32_t number = trn__hlo_number(m, type, i + 1);
        code = trn__hlo_select(m, c->found, number, code);
        position = trn__hlo_select(m, c->found, c->position, position);
        value =
            trn__hlo_select(m, c->found, c->value < 0 ? zero : c->value, value);
    }
    const int32_t parts[] = {one(m, code), one(m, position), one(m, value)};
    *good = trn__hlo_compare(m, TRN__HLO_EQ, code, zero);
    *vector = trn__hlo_concatenate(m, 3, parts, 0);
    return true;
}

int32_t trn__hlo_read_check(const trn__hlo_program *program, const void *vector,
                            trn_outcome *outcome)
{
    static const int32_t status_of[] = {
        [TRN_REPORT_INDEX] = TRN_ERR_INDEX,
        [TRN_REPORT_ZERO_DIVISOR] = TRN_ERR_VALUE,
        [TRN_REPORT_NOT_FINITE] = TRN_ERR_NUMERIC,
    };
    const struct trn__hlo_detail *d = program->detail;
    int64_t found[3];
    int32_t narrow[3];
    if (d->wide) {
        memcpy(found, vector, sizeof found);
    } else {
        memcpy(narrow, vector, sizeof narrow);
        for (int i = 0; i < 3; i++)
            found[i] = narrow[i];
    }
    if (found[0] == 0)
        return TRN_OK;
    if (found[0] < 0 || found[0] > d->n_checks)
        return TRN_ERR_DEVICE;
    const trn__hlo_watch *c = &d->checks[found[0] - 1];
    outcome->node = c->node;
    outcome->report = (trn_op_report){
        .kind = c->kind,
        .input = c->input,
        .position = found[1],
        .value = found[2],
        .limit = c->limit,
    };
    outcome->status = status_of[c->kind];
    return outcome->status;
}
