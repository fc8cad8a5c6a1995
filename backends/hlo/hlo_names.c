/* SPDX-License-Identifier: Apache-2.0
 *
 * What opcodes, types, instructions and computations are called.
 */
#include <stdio.h>

#include "backends/hlo/hlo_names.h"

const char *trn__hlo_op_text(uint32_t op)
{
    static const char *const texts[] = {
#define X(name, text, operands) text,
        TRN__HLO_OP_LIST(X)
#undef X
    };
    return op < sizeof texts / sizeof texts[0] ? texts[op] : "?";
}

const char *trn__hlo_type_text(uint32_t type)
{
    switch (type) {
#define X(name, number, text, bytes) \
    case TRN__HLO_##name:            \
        return text;
        TRN__HLO_TYPE_LIST(X)
#undef X
    case TRN__HLO_TUPLE:
        return "tuple";
    default:
        return "?";
    }
}

uint32_t trn__hlo_type_bytes(uint32_t type)
{
    switch (type) {
#define X(name, number, text, bytes) \
    case TRN__HLO_##name:            \
        return bytes;
        TRN__HLO_TYPE_LIST(X)
#undef X
    default:
        return 0;
    }
}

const char *trn__hlo_direction_text(int32_t direction)
{
    static const char *const texts[] = {
#define X(name) #name,
        TRN__HLO_DIRECTION_LIST(X)
#undef X
    };
    const int32_t n = (int32_t)(sizeof texts / sizeof texts[0]);
    return direction >= 0 && direction < n ? texts[direction] : "?";
}

int64_t trn__hlo_part_id(int32_t helper, int32_t k)
{
    return (int64_t)helper * TRN__HLO_HELPER_INSTS + k + 1;
}

int64_t trn__hlo_id(const trn__hlo_module *m, int32_t i)
{
    return trn__hlo_part_id(m->n_helpers, i);
}

int64_t trn__hlo_helper_id(int32_t helper)
{
    return (int64_t)helper + 1;
}

/* A parameter goes by its number, which is what the caller knows it by. */
const char *trn__hlo_name(const trn__hlo_module *m, int32_t i,
                          char name[TRN__HLO_NAME_SIZE])
{
    const trn__hlo_inst *inst = &m->insts[i];
    if (inst->op == TRN__HLO_OP_PARAMETER)
        snprintf(name, TRN__HLO_NAME_SIZE, "param.%d", (int)inst->number);
    else
        snprintf(name, TRN__HLO_NAME_SIZE, "%s.%lld",
                 trn__hlo_op_text(inst->op), (long long)trn__hlo_id(m, i));
    return name;
}

const char *trn__hlo_helper_name(const trn__hlo_module *m, int32_t helper,
                                 char name[TRN__HLO_NAME_SIZE])
{
    const trn__hlo_helper *h = &m->helpers[helper];
    snprintf(name, TRN__HLO_NAME_SIZE, "%s_%s.%lld", trn__hlo_op_text(h->op),
             trn__hlo_type_text(h->type),
             (long long)trn__hlo_helper_id(helper));
    return name;
}

const char *trn__hlo_part_name(const trn__hlo_module *m, int32_t helper,
                               int32_t k, char name[TRN__HLO_NAME_SIZE])
{
    const char *text = k == 0   ? "a"
                       : k == 1 ? "b"
                                : trn__hlo_op_text(m->helpers[helper].op);
    snprintf(name, TRN__HLO_NAME_SIZE, "%s.%lld", text,
             (long long)trn__hlo_part_id(helper, k));
    return name;
}

/* Adds to a text, which is cut where it would not fit. */
static void add_number(char *text, size_t size, size_t *n, const char *before,
                       long long number)
{
    if (*n >= size)
        return;
    const int more = snprintf(text + *n, size - *n, "%s%lld", before, number);
    *n += more > 0 ? (size_t)more : 0;
}

static void add_char(char *text, size_t size, size_t *n, char c)
{
    if (*n + 1 < size) {
        text[(*n)++] = c;
        text[*n] = '\0';
    }
}

const char *trn__hlo_shape_text(const trn__hlo_shape *shape, bool layout,
                                char text[TRN__HLO_SHAPE_SIZE])
{
    const size_t size = TRN__HLO_SHAPE_SIZE;
    const uint32_t rank =
        shape->rank <= TRN__HLO_MAX_RANK ? shape->rank : TRN__HLO_MAX_RANK;
    const int start =
        snprintf(text, size, "%s", trn__hlo_type_text(shape->type));
    size_t n = start > 0 ? (size_t)start : 0;
    if (shape->type == TRN__HLO_TUPLE)
        return text;
    add_char(text, size, &n, '[');
    for (uint32_t d = 0; d < rank; d++)
        add_number(text, size, &n, d > 0 ? "," : "", shape->dims[d]);
    add_char(text, size, &n, ']');
    if (!layout || rank == 0)
        return text;
    add_char(text, size, &n, '{');
    for (uint32_t d = rank; d-- > 0;)
        add_number(text, size, &n, d + 1 < rank ? "," : "", d);
    add_char(text, size, &n, '}');
    return text;
}

bool trn__hlo_is_float(uint32_t type)
{
    return type == TRN__HLO_F16 || type == TRN__HLO_BF16 ||
           type == TRN__HLO_F32 || type == TRN__HLO_F64;
}

bool trn__hlo_is_signed(uint32_t type)
{
    return type == TRN__HLO_S32 || type == TRN__HLO_S64;
}
