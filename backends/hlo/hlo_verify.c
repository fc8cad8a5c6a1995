/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks a finished module, without a look at how it was made: first that no
 * number leads out of a list, then each instruction by the rule of its opcode,
 * then parameters, aliases and the root.
 */
#include <stdarg.h>
#include <stdio.h>

#include "backends/hlo/hlo_verify.h"

/* -1: any number */
static const int32_t operand_counts[] = {
#define X(name, text, operands) operands,
    TRN__HLO_OP_LIST(X)
#undef X
};

bool trn__hlo_bad(const trn__hlo_check *c, const char *format, ...)
{
    char text[400], name[TRN__HLO_NAME_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(c->message, c->size, "%s: %s",
             c->at < 0 ? "module" : trn__hlo_name(c->m, c->at, name), text);
    return false;
}

/* ---- before anything is followed ---- */

static bool lists_are_there(const trn__hlo_check *c)
{
    const trn__hlo_module *m = c->m;
    if (m->n_insts < 1 || m->insts == NULL)
        return trn__hlo_bad(c, "no instructions; expected a tuple at the end");
    if (m->n_operands < 0 || m->n_helpers < 0 || m->n_aliases < 0 ||
        m->n_params < 0)
        return trn__hlo_bad(c, "a negative count of operands, helpers, aliases "
                               "or parameters");
    if ((m->n_operands > 0 && m->operands == NULL) ||
        (m->n_helpers > 0 && m->helpers == NULL) ||
        (m->n_aliases > 0 && m->aliases == NULL))
        return trn__hlo_bad(c, "a list with a count is NULL");
    if (trn__hlo_id(m, m->n_insts) > INT32_MAX)
        return trn__hlo_bad(c, "%d instructions; expected ids below 2^31",
                            (int)m->n_insts);
    return true;
}

static bool type_is_known(const trn__hlo_check *c, uint32_t type)
{
    if (trn__hlo_type_bytes(type) == 0)
        return trn__hlo_bad(c, "element type %u does not exist",
                            (unsigned)type);
    if ((c->profile->types >> type & 1) == 0)
        return trn__hlo_bad(c, "element type %s is not in profile %s",
                            trn__hlo_type_text(type), c->profile->name);
    return true;
}

static bool op_is_known(const trn__hlo_check *c, uint32_t op)
{
    if (op >= TRN__HLO_OP_LIMIT)
        return trn__hlo_bad(c, "opcode %u does not exist", (unsigned)op);
    if ((c->profile->ops >> op & 1) == 0)
        return trn__hlo_bad(c, "opcode %s is not in profile %s",
                            trn__hlo_op_text(op), c->profile->name);
    return true;
}

static bool shape_is_sound(const trn__hlo_check *c)
{
    const trn__hlo_shape *s = &c->inst->shape;
    int64_t bytes = trn__hlo_type_bytes(s->type);
    if (c->inst->op == TRN__HLO_OP_TUPLE_OF)
        return s->type == TRN__HLO_TUPLE ||
               trn__hlo_bad(c, "type is %s; expected tuple",
                            trn__hlo_type_text(s->type));
    if (!type_is_known(c, s->type))
        return false;
    if (s->rank > TRN__HLO_MAX_RANK)
        return trn__hlo_bad(c, "rank %u; expected at most %d",
                            (unsigned)s->rank, TRN__HLO_MAX_RANK);
    for (uint32_t d = 0; d < s->rank; d++)
        if (s->dims[d] < 0 || s->dims[d] > c->profile->max_size)
            return trn__hlo_bad(c, "dimension %u is %lld; expected 0 to %lld",
                                (unsigned)d, (long long)s->dims[d],
                                (long long)c->profile->max_size);
    for (uint32_t d = 0; d < s->rank; d++) {
        if (s->dims[d] > 1 && bytes > INT64_MAX / s->dims[d])
            return trn__hlo_bad(c, "more than 2^63 bytes");
        bytes *= s->dims[d] > 0 ? s->dims[d] : 1;
    }
    return true;
}

static bool lists_are_sound(const trn__hlo_check *c)
{
    for (int32_t l = 0; l < 4; l++) {
        const trn__hlo_list *list = &c->inst->list[l];
        if (list->n < 0 || list->n > TRN__HLO_MAX_RANK)
            return trn__hlo_bad(c, "list %d has %d numbers; expected 0 to %d",
                                (int)l, (int)list->n, TRN__HLO_MAX_RANK);
        for (int32_t i = 0; i < list->n; i++)
            if (list->at[i] < -c->profile->max_size ||
                list->at[i] > c->profile->max_size)
                return trn__hlo_bad(
                    c, "list %d has %lld; expected at most %lld", (int)l,
                    (long long)list->at[i], (long long)c->profile->max_size);
    }
    return true;
}

static bool operands_are_sound(trn__hlo_check *c)
{
    const trn__hlo_inst *inst = c->inst;
    const int32_t expected = operand_counts[inst->op];
    if (inst->n_operands < 0 || (expected >= 0 && inst->n_operands != expected))
        return trn__hlo_bad(c, "%d operands; expected %d",
                            (int)inst->n_operands, (int)expected);
    if (inst->n_operands > 0 &&
        (inst->first_operand < 0 ||
         inst->first_operand > c->m->n_operands - inst->n_operands))
        return trn__hlo_bad(c, "operands %d and on; the module has %d",
                            (int)inst->first_operand, (int)c->m->n_operands);
    for (int32_t k = 0; k < inst->n_operands; k++) {
        const int32_t from = trn__hlo_operand(c->m, inst, k);
        if (from < 0 || from >= c->at)
            return trn__hlo_bad(c,
                                "operand %d is instruction %d; expected an "
                                "earlier one than %d",
                                (int)k, (int)from, (int)c->at);
        if (k < 3)
            c->in[k] = &c->m->insts[from].shape;
    }
    return true;
}

/* ---- opcodes whose shape is their own affair ---- */

static bool parameter(const trn__hlo_check *c)
{
    const int32_t number = c->inst->number;
    if (number < 0 || number >= c->m->n_params)
        return trn__hlo_bad(c, "parameter number %d; the module has %d",
                            (int)number, (int)c->m->n_params);
    for (int32_t i = 0; i < c->at; i++)
        if (c->m->insts[i].op == TRN__HLO_OP_PARAMETER &&
            c->m->insts[i].number == number)
            return trn__hlo_bad(c, "parameter number %d is there twice",
                                (int)number);
    return true;
}

static bool constant(const trn__hlo_check *c)
{
    const trn__hlo_shape *s = &c->inst->shape;
    const uint32_t bits = 8 * trn__hlo_type_bytes(s->type);
    const uint64_t literal = c->inst->literal;
    if (s->rank != 0)
        return trn__hlo_bad(c, "rank %u; expected a scalar", (unsigned)s->rank);
    if (s->type == TRN__HLO_PRED ? literal > 1
                                 : bits < 64 && literal >> bits != 0)
        return trn__hlo_bad(c, "literal %llx has more bits than %s",
                            (unsigned long long)literal,
                            trn__hlo_type_text(s->type));
    return true;
}

static bool copy(const trn__hlo_check *c, trn__hlo_shape *want)
{
    *want = *c->in[0];
    return true;
}

static trn__hlo_rule_fn *rule_of(uint32_t op)
{
    static trn__hlo_rule_fn *const rules[TRN__HLO_OP_LIMIT] = {
        [TRN__HLO_OP_COPY] = copy,
        [TRN__HLO_OP_CONVERT] = trn__hlo_rule_convert,
        [TRN__HLO_OP_RESHAPE] = trn__hlo_rule_reshape,
        [TRN__HLO_OP_BROADCAST] = trn__hlo_rule_broadcast,
        [TRN__HLO_OP_TRANSPOSE] = trn__hlo_rule_transpose,
        [TRN__HLO_OP_REVERSE] = trn__hlo_rule_reverse,
        [TRN__HLO_OP_SLICE] = trn__hlo_rule_slice,
        [TRN__HLO_OP_CONCATENATE] = trn__hlo_rule_concatenate,
        [TRN__HLO_OP_PAD] = trn__hlo_rule_pad,
        [TRN__HLO_OP_IOTA] = trn__hlo_rule_iota,
        [TRN__HLO_OP_SELECT] = trn__hlo_rule_select,
        [TRN__HLO_OP_COMPARE] = trn__hlo_rule_compare,
        [TRN__HLO_OP_REDUCE] = trn__hlo_rule_reduce,
        [TRN__HLO_OP_DOT] = trn__hlo_rule_dot,
        [TRN__HLO_OP_GATHER] = trn__hlo_rule_gather,
        [TRN__HLO_OP_SCATTER] = trn__hlo_rule_scatter,
    };
    return rules[op] != NULL ? rules[op] : trn__hlo_rule_elementwise;
}

static bool shape_follows(const trn__hlo_check *c)
{
    trn__hlo_shape want = {.rank = 0};
    char is[TRN__HLO_SHAPE_SIZE], expected[TRN__HLO_SHAPE_SIZE];
    if (!rule_of(c->inst->op)(c, &want))
        return false;
    if (trn__hlo_same_shape(&want, &c->inst->shape))
        return true;
    trn__hlo_shape_text(&c->inst->shape, false, is);
    trn__hlo_shape_text(&want, false, expected);
    return trn__hlo_bad(c, "shape is %.160s; expected %.160s", is, expected);
}

/* ---- helpers ---- */

static bool helper_is_known(const trn__hlo_check *c)
{
    const bool wanted =
        c->inst->op == TRN__HLO_OP_REDUCE || c->inst->op == TRN__HLO_OP_SCATTER;
    const int32_t helper = c->inst->helper;
    if (wanted ? helper < 0 || helper >= c->m->n_helpers : helper != -1)
        return trn__hlo_bad(c, "helper %d; expected %s", (int)helper,
                            wanted ? "one of the module's" : "-1");
    return true;
}

static bool helpers(const trn__hlo_check *c)
{
    for (int32_t i = 0; i < c->m->n_helpers; i++) {
        const trn__hlo_helper *h = &c->m->helpers[i];
        if (!op_is_known(c, h->op) || !type_is_known(c, h->type))
            return false;
        if (h->op == TRN__HLO_OP_COPY)
            continue;
        if (operand_counts[h->op] != 2 ||
            rule_of(h->op) != trn__hlo_rule_elementwise)
            return trn__hlo_bad(c,
                                "helper %d is %s; expected an operation on "
                                "two scalars",
                                (int)i, trn__hlo_op_text(h->op));
        if (!trn__hlo_takes_type(h->op, h->type))
            return trn__hlo_bad(c, "helper %d is %s of %s, which is undefined",
                                (int)i, trn__hlo_op_text(h->op),
                                trn__hlo_type_text(h->type));
    }
    return true;
}

/* ---- the whole ---- */

static bool instruction(trn__hlo_check *c)
{
    const uint32_t op = c->inst->op;
    if (!op_is_known(c, op) || !shape_is_sound(c) || !lists_are_sound(c) ||
        !operands_are_sound(c) || !helper_is_known(c))
        return false;
    if (op == TRN__HLO_OP_PARAMETER)
        return parameter(c);
    if (op == TRN__HLO_OP_CONSTANT)
        return constant(c);
    if (op == TRN__HLO_OP_TUPLE_OF)
        return c->at == c->m->n_insts - 1 ||
               trn__hlo_bad(c, "a tuple that is not the root");
    return shape_follows(c);
}

/* The number-th parameter; each is known to be there once at most. */
static const trn__hlo_inst *param_of(const trn__hlo_module *m, int32_t number)
{
    for (int32_t i = 0; i < m->n_insts; i++)
        if (m->insts[i].op == TRN__HLO_OP_PARAMETER &&
            m->insts[i].number == number)
            return &m->insts[i];
    return NULL;
}

static bool alias(const trn__hlo_check *c, int32_t i)
{
    const trn__hlo_module *m = c->m;
    const trn__hlo_inst *root = &m->insts[m->n_insts - 1];
    const trn__hlo_alias *a = &m->aliases[i];
    char is[TRN__HLO_SHAPE_SIZE], expected[TRN__HLO_SHAPE_SIZE];
    if (a->result < 0 || a->result >= root->n_operands || a->param < 0 ||
        a->param >= m->n_params)
        return trn__hlo_bad(c,
                            "alias of result %d and parameter %d; there are "
                            "%d and %d",
                            (int)a->result, (int)a->param,
                            (int)root->n_operands, (int)m->n_params);
    for (int32_t k = 0; k < i; k++)
        if (m->aliases[k].result == a->result ||
            m->aliases[k].param == a->param)
            return trn__hlo_bad(c, "result %d or parameter %d is aliased twice",
                                (int)a->result, (int)a->param);
    const trn__hlo_shape *result =
        &m->insts[trn__hlo_operand(m, root, a->result)].shape;
    const trn__hlo_shape *param = &param_of(m, a->param)->shape;
    if (trn__hlo_same_shape(result, param))
        return true;
    trn__hlo_shape_text(result, false, is);
    trn__hlo_shape_text(param, false, expected);
    return trn__hlo_bad(c,
                        "result %d is %.120s, aliased parameter %d is "
                        "%.120s; expected equal shapes",
                        (int)a->result, is, (int)a->param, expected);
}

bool trn__hlo_verify(const trn__hlo_module *m, const trn__hlo_profile *profile,
                     char *message, size_t size)
{
    trn__hlo_check whole = {
        .m = m, .profile = profile, .message = message, .size = size, .at = -1};
    if (!lists_are_there(&whole) || !helpers(&whole))
        return false;
    for (int32_t i = 0; i < m->n_insts; i++) {
        trn__hlo_check c = whole;
        c.at = i;
        c.inst = &m->insts[i];
        if (!instruction(&c))
            return false;
    }
    if (m->insts[m->n_insts - 1].op != TRN__HLO_OP_TUPLE_OF)
        return trn__hlo_bad(&whole,
                            "the last instruction is %s; expected tuple",
                            trn__hlo_op_text(m->insts[m->n_insts - 1].op));
    for (int32_t number = 0; number < m->n_params; number++)
        if (param_of(m, number) == NULL)
            return trn__hlo_bad(&whole, "no parameter %d of %d", (int)number,
                                (int)m->n_params);
    for (int32_t i = 0; i < m->n_aliases; i++)
        if (!alias(&whole, i))
            return false;
    return true;
}
