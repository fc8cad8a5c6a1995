/* SPDX-License-Identifier: Apache-2.0
 *
 * Making instructions, with the shapes of their results.
 */
#include <stdio.h>
#include <string.h>

#include "backends/hlo/hlo_build.h"

void trn__hlo_module_init(trn__hlo_module *m, const trn_host_services *host)
{
    memset(m, 0, sizeof *m);
    m->host = host;
}

void trn__hlo_module_free(trn__hlo_module *m)
{
    void *const lists[] = {m->insts,   m->operands,  m->helpers,
                           m->aliases, m->constants, m->params};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        m->host->dealloc(m->host->host, lists[i]);
    memset(m, 0, sizeof *m);
}

int32_t trn__hlo_fail(trn__hlo_module *m, int32_t status, const char *message)
{
    if (m->status == TRN_OK) {
        m->status = status;
        snprintf(m->message, sizeof m->message, "%s", message);
    }
    return -1;
}

/* Room for `more` further items in a list that grows by doubling. */
static void *grown(trn__hlo_module *m, void *list, int32_t used, int32_t more,
                   int32_t *room, size_t size)
{
    if (m->status != TRN_OK)
        return list;
    if (used <= *room - more)
        return list;
    const int64_t want = 2 * ((int64_t)*room + more) + 30;
    void *bigger = want > INT32_MAX / 2
                       ? NULL
                       : m->host->alloc(m->host->host, (size_t)want * size);
    if (bigger == NULL) {
        trn__hlo_fail(m, TRN_ERR_NOMEM, "hlo: no memory for the module");
        return list;
    }
    if (used > 0)
        memcpy(bigger, list, (size_t)used * size);
    m->host->dealloc(m->host->host, list);
    *room = (int32_t)want;
    return bigger;
}

trn__hlo_shape trn__hlo_array(uint32_t type, uint32_t rank, const int64_t *dims)
{
    trn__hlo_shape s;
    memset(&s, 0, sizeof s);
    s.type = type;
    s.rank = rank;
    for (uint32_t d = 0; d < rank; d++)
        s.dims[d] = dims[d];
    return s;
}

trn__hlo_shape trn__hlo_shape_of(const trn__hlo_module *m, int32_t i)
{
    return i < 0 ? trn__hlo_array(0, 0, NULL) : m->insts[i].shape;
}

int64_t trn__hlo_numel(const trn__hlo_shape *s)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < s->rank; d++)
        n *= s->dims[d];
    return n;
}

trn__hlo_inst *trn__hlo_add(trn__hlo_module *m, uint32_t op, int32_t n,
                            const int32_t *x, const trn__hlo_shape *shape)
{
    for (int32_t i = 0; i < n; i++) {
        if (x[i] < 0)
            return NULL;
    }
    m->insts =
        grown(m, m->insts, m->n_insts, 1, &m->room_insts, sizeof *m->insts);
    m->operands = grown(m, m->operands, m->n_operands, n, &m->room_operands,
                        sizeof *m->operands);
    if (m->status != TRN_OK)
        return NULL;
    trn__hlo_inst *inst = &m->insts[m->n_insts++];
    memset(inst, 0, sizeof *inst);
    inst->op = op;
    inst->shape = *shape;
    inst->first_operand = m->n_operands;
    inst->n_operands = n;
    inst->helper = -1;
    inst->node = -1;
    for (int32_t i = 0; i < n; i++)
        m->operands[m->n_operands++] = x[i];
    return inst;
}

int32_t trn__hlo_number_of(const trn__hlo_module *m, const trn__hlo_inst *inst)
{
    return inst == NULL ? -1 : (int32_t)(inst - m->insts);
}

void trn__hlo_add_alias(trn__hlo_module *m, int32_t result, int32_t param)
{
    m->aliases = grown(m, m->aliases, m->n_aliases, 1, &m->room_aliases,
                       sizeof *m->aliases);
    if (m->status == TRN_OK)
        m->aliases[m->n_aliases++] =
            (trn__hlo_alias){.result = result, .param = param};
}

int32_t trn__hlo_parameter(trn__hlo_module *m, const trn__hlo_shape *shape)
{
    m->params =
        grown(m, m->params, m->n_params, 1, &m->room_params, sizeof *m->params);
    trn__hlo_inst *p = trn__hlo_add(m, TRN__HLO_OP_PARAMETER, 0, NULL, shape);
    if (p == NULL)
        return -1;
    p->number = m->n_params;
    m->params[m->n_params++] = trn__hlo_number_of(m, p);
    return trn__hlo_number_of(m, p);
}

/* The constant, if there is one; -1. */
static int32_t find_constant(const trn__hlo_module *m, uint32_t type,
                             uint64_t bits)
{
    for (int32_t i = 0; i < m->n_constants; i++) {
        const trn__hlo_inst *old = &m->insts[m->constants[i]];
        if (old->shape.type == type && old->literal == bits)
            return m->constants[i];
    }
    return -1;
}

int32_t trn__hlo_bits(trn__hlo_module *m, uint32_t type, uint64_t bits)
{
    const int32_t old = find_constant(m, type, bits);
    if (old >= 0)
        return old;
    const trn__hlo_shape scalar = trn__hlo_array(type, 0, NULL);
    m->constants = grown(m, m->constants, m->n_constants, 1, &m->room_constants,
                         sizeof *m->constants);
    trn__hlo_inst *c = trn__hlo_add(m, TRN__HLO_OP_CONSTANT, 0, NULL, &scalar);
    if (c == NULL)
        return -1;
    c->literal = bits;
    m->constants[m->n_constants++] = trn__hlo_number_of(m, c);
    return trn__hlo_number_of(m, c);
}

int32_t trn__hlo_number(trn__hlo_module *m, uint32_t type, double value)
{
    uint64_t bits = 0;
    const float f = (float)value;
    switch (type) {
    case TRN__HLO_F64:
        memcpy(&bits, &value, sizeof value);
        break;
    case TRN__HLO_F32:
    case TRN__HLO_BF16:
        memcpy(&bits, &f, sizeof f);
        bits = type == TRN__HLO_BF16 ? bits >> 16 : bits;
        break;
    case TRN__HLO_F16: /* of f32, rounded by the device */
        return trn__hlo_convert(m, type,
                                trn__hlo_number(m, TRN__HLO_F32, value));
    case TRN__HLO_U64:
        bits = (uint64_t)value;
        break;
    case TRN__HLO_S64:
        bits = (uint64_t)(int64_t)value;
        break;
    default:
        bits = (uint64_t)(int64_t)value & 0xffffffffu;
    }
    return trn__hlo_bits(m, type, bits);
}

int32_t trn__hlo_splat(trn__hlo_module *m, int32_t scalar,
                       const trn__hlo_shape *shape)
{
    if (shape->rank == 0)
        return scalar;
    return trn__hlo_broadcast(m, scalar, shape->rank, shape->dims, NULL);
}

int32_t trn__hlo_like(trn__hlo_module *m, double value, int32_t x)
{
    const trn__hlo_shape s = trn__hlo_shape_of(m, x);
    if (x < 0)
        return -1;
    return trn__hlo_splat(m, trn__hlo_number(m, s.type, value), &s);
}

int32_t trn__hlo_helper_of(trn__hlo_module *m, uint32_t op, uint32_t type)
{
    for (int32_t i = 0; i < m->n_helpers; i++) {
        if (m->helpers[i].op == op && m->helpers[i].type == type)
            return i;
    }
    m->helpers = grown(m, m->helpers, m->n_helpers, 1, &m->room_helpers,
                       sizeof *m->helpers);
    if (m->status != TRN_OK)
        return -1;
    m->helpers[m->n_helpers] = (trn__hlo_helper){.op = op, .type = type};
    return m->n_helpers++;
}
