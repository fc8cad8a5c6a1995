/* SPDX-License-Identifier: Apache-2.0
 *
 * Verifier: opcodes that work element by element, and which types they take.
 */
#include "backends/hlo/hlo_verify.h"

bool trn__hlo_takes_type(uint32_t op, uint32_t type)
{
    switch (op) {
    case TRN__HLO_OP_EXP:
    case TRN__HLO_OP_LOG:
    case TRN__HLO_OP_SQRT:
    case TRN__HLO_OP_SIN:
    case TRN__HLO_OP_COS:
    case TRN__HLO_OP_TANH:
    case TRN__HLO_OP_FLOOR:
    case TRN__HLO_OP_CEIL:
    case TRN__HLO_OP_ATAN2:
    case TRN__HLO_OP_ERF:
        return trn__hlo_is_float(type);
    case TRN__HLO_OP_SUBTRACT:
    case TRN__HLO_OP_DIVIDE:
    case TRN__HLO_OP_POWER:
    case TRN__HLO_OP_NEGATE:
        return trn__hlo_is_float(type) || trn__hlo_is_integer(type);
    case TRN__HLO_OP_ABS:
    case TRN__HLO_OP_SIGN:
        return trn__hlo_is_float(type) || type == TRN__HLO_S32 ||
               type == TRN__HLO_S64;
    case TRN__HLO_OP_AND:
    case TRN__HLO_OP_OR:
    case TRN__HLO_OP_XOR:
    case TRN__HLO_OP_NOT:
        return type == TRN__HLO_PRED || trn__hlo_is_integer(type);
    case TRN__HLO_OP_SHIFT_LEFT:
    case TRN__HLO_OP_SHIFT_RIGHT:
        return trn__hlo_is_integer(type);
    default: /* add, multiply, maximum, minimum: those of pred are or and and */
        return trn__hlo_type_bytes(type) > 0;
    }
}

static bool equal_operands(const trn__hlo_check *c, int32_t a, int32_t b)
{
    char first[TRN__HLO_SHAPE_SIZE], second[TRN__HLO_SHAPE_SIZE];
    if (trn__hlo_same_shape(c->in[a], c->in[b]))
        return true;
    trn__hlo_shape_text(c->in[a], false, first);
    trn__hlo_shape_text(c->in[b], false, second);
    return trn__hlo_bad(c,
                        "operand %d is %.120s, operand %d is %.120s; "
                        "expected equal shapes",
                        (int)a, first, (int)b, second);
}

bool trn__hlo_rule_elementwise(const trn__hlo_check *c, trn__hlo_shape *want)
{
    if (c->inst->n_operands == 2 && !equal_operands(c, 0, 1))
        return false;
    *want = *c->in[0];
    return trn__hlo_takes_type(c->inst->op, want->type) ||
           trn__hlo_bad(c, "is not defined for %s",
                        trn__hlo_type_text(want->type));
}

/* Any type becomes any other. */
bool trn__hlo_rule_convert(const trn__hlo_check *c, trn__hlo_shape *want)
{
    *want = *c->in[0];
    want->type = c->inst->shape.type;
    return true;
}

bool trn__hlo_rule_select(const trn__hlo_check *c, trn__hlo_shape *want)
{
    if (c->in[0]->type != TRN__HLO_PRED)
        return trn__hlo_bad(c, "operand 0 is %s; expected pred",
                            trn__hlo_type_text(c->in[0]->type));
    if (!trn__hlo_same_dims(c->in[0], c->in[1]))
        return trn__hlo_bad(c, "operands 0 and 1 differ in dimensions");
    *want = *c->in[1];
    return equal_operands(c, 1, 2);
}

bool trn__hlo_rule_compare(const trn__hlo_check *c, trn__hlo_shape *want)
{
    if (trn__hlo_direction_text(c->inst->number)[0] == '?')
        return trn__hlo_bad(c, "direction %d does not exist",
                            (int)c->inst->number);
    *want = *c->in[0];
    want->type = TRN__HLO_PRED;
    return equal_operands(c, 0, 1);
}
