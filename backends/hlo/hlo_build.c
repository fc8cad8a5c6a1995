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

/* A new instruction with its operands; NULL if one is missing. */
static trn__hlo_inst *add(trn__hlo_module *m, uint32_t op, int32_t n,
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

/* The number of an instruction that `add` has made. */
static int32_t id(const trn__hlo_module *m, const trn__hlo_inst *inst)
{
    return inst == NULL ? -1 : (int32_t)(inst - m->insts);
}

static void set_list(trn__hlo_list *l, uint32_t n, const int64_t *at)
{
    l->n = (int32_t)n;
    for (uint32_t i = 0; i < n; i++)
        l->at[i] = at[i];
}

static void push(trn__hlo_list *l, int64_t value)
{
    l->at[l->n++] = value;
}

/* The number of the helper computation; made if there is none yet. */
static int32_t helper_of(trn__hlo_module *m, uint32_t op, uint32_t type)
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
    trn__hlo_inst *p = add(m, TRN__HLO_OP_PARAMETER, 0, NULL, shape);
    if (p == NULL)
        return -1;
    p->number = m->n_params;
    m->params[m->n_params++] = id(m, p);
    return id(m, p);
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
    trn__hlo_inst *c = add(m, TRN__HLO_OP_CONSTANT, 0, NULL, &scalar);
    if (c == NULL)
        return -1;
    c->literal = bits;
    m->constants[m->n_constants++] = id(m, c);
    return id(m, c);
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

int32_t trn__hlo_unary(trn__hlo_module *m, uint32_t op, int32_t x)
{
    const trn__hlo_shape s = trn__hlo_shape_of(m, x);
    return id(m, add(m, op, 1, &x, &s));
}

static bool same(const trn__hlo_shape *a, const trn__hlo_shape *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, sizeof a->dims) == 0;
}

int32_t trn__hlo_binary(trn__hlo_module *m, uint32_t op, int32_t a, int32_t b)
{
    const int32_t x[] = {a, b};
    const trn__hlo_shape s = trn__hlo_shape_of(m, a);
    const trn__hlo_shape t = trn__hlo_shape_of(m, b);
    if (a >= 0 && b >= 0 && (!same(&s, &t) || s.type != t.type))
        return trn__hlo_fail(m, TRN_ERR_INTERNAL,
                             "hlo: operands of two shapes or types");
    return id(m, add(m, op, 2, x, &s));
}

int32_t trn__hlo_compare(trn__hlo_module *m, trn__hlo_direction direction,
                         int32_t a, int32_t b)
{
    const int32_t x[] = {a, b};
    trn__hlo_shape s = trn__hlo_shape_of(m, a);
    s.type = TRN__HLO_PRED;
    trn__hlo_inst *c = add(m, TRN__HLO_OP_COMPARE, 2, x, &s);
    if (c != NULL)
        c->number = (int32_t)direction;
    return id(m, c);
}

int32_t trn__hlo_select(trn__hlo_module *m, int32_t condition, int32_t a,
                        int32_t b)
{
    const int32_t x[] = {condition, a, b};
    const trn__hlo_shape s = trn__hlo_shape_of(m, a);
    return id(m, add(m, TRN__HLO_OP_SELECT, 3, x, &s));
}

int32_t trn__hlo_convert(trn__hlo_module *m, uint32_t type, int32_t x)
{
    trn__hlo_shape s = trn__hlo_shape_of(m, x);
    if (x < 0 || s.type == type)
        return x;
    s.type = type;
    return id(m, add(m, TRN__HLO_OP_CONVERT, 1, &x, &s));
}

int32_t trn__hlo_reshape(trn__hlo_module *m, int32_t x, uint32_t rank,
                         const int64_t *dims)
{
    const trn__hlo_shape from = trn__hlo_shape_of(m, x);
    const trn__hlo_shape to = trn__hlo_array(from.type, rank, dims);
    if (x < 0 || same(&from, &to))
        return x;
    return id(m, add(m, TRN__HLO_OP_RESHAPE, 1, &x, &to));
}

int32_t trn__hlo_flat(trn__hlo_module *m, int32_t x)
{
    const trn__hlo_shape s = trn__hlo_shape_of(m, x);
    const int64_t n = trn__hlo_numel(&s);
    return trn__hlo_reshape(m, x, 1, &n);
}

int32_t trn__hlo_broadcast(trn__hlo_module *m, int32_t x, uint32_t rank,
                           const int64_t *dims, const int64_t *map)
{
    const trn__hlo_shape from = trn__hlo_shape_of(m, x);
    const trn__hlo_shape to = trn__hlo_array(from.type, rank, dims);
    if (x < 0 || same(&from, &to))
        return x;
    trn__hlo_inst *b = add(m, TRN__HLO_OP_BROADCAST, 1, &x, &to);
    if (b != NULL)
        set_list(&b->list[0], from.rank, map);
    return id(m, b);
}

int32_t trn__hlo_transpose(trn__hlo_module *m, int32_t x, const int64_t *perm)
{
    const trn__hlo_shape from = trn__hlo_shape_of(m, x);
    trn__hlo_shape to = from;
    bool moves = false;
    for (uint32_t d = 0; d < from.rank; d++) {
        to.dims[d] = from.dims[perm[d]];
        moves = moves || perm[d] != (int64_t)d;
    }
    if (x < 0 || !moves)
        return x;
    trn__hlo_inst *t = add(m, TRN__HLO_OP_TRANSPOSE, 1, &x, &to);
    if (t != NULL)
        set_list(&t->list[0], from.rank, perm);
    return id(m, t);
}

int32_t trn__hlo_slice(trn__hlo_module *m, int32_t x, const int64_t *start,
                       const int64_t *limit, const int64_t *stride)
{
    trn__hlo_shape s = trn__hlo_shape_of(m, x);
    for (uint32_t d = 0; d < s.rank; d++) {
        const int64_t span = limit[d] - start[d];
        s.dims[d] = span <= 0 ? 0 : (span - 1) / stride[d] + 1;
    }
    trn__hlo_inst *y = add(m, TRN__HLO_OP_SLICE, 1, &x, &s);
    if (y != NULL) {
        set_list(&y->list[0], s.rank, start);
        set_list(&y->list[1], s.rank, limit);
        set_list(&y->list[2], s.rank, stride);
    }
    return id(m, y);
}

int32_t trn__hlo_range(trn__hlo_module *m, int32_t x, int64_t begin,
                       int64_t end)
{
    const int64_t one = 1;
    if (x >= 0 && begin == 0 && trn__hlo_shape_of(m, x).dims[0] == end)
        return x;
    return trn__hlo_slice(m, x, &begin, &end, &one);
}

int32_t trn__hlo_pad(trn__hlo_module *m, int32_t x, int32_t value,
                     const int64_t *low, const int64_t *high,
                     const int64_t *interior)
{
    const int32_t operands[] = {x, value};
    trn__hlo_shape s = trn__hlo_shape_of(m, x);
    for (uint32_t d = 0; d < s.rank; d++) {
        const int64_t gaps = s.dims[d] > 1 ? s.dims[d] - 1 : 0;
        s.dims[d] += low[d] + high[d] + gaps * interior[d];
    }
    trn__hlo_inst *y = add(m, TRN__HLO_OP_PAD, 2, operands, &s);
    if (y != NULL) {
        set_list(&y->list[0], s.rank, low);
        set_list(&y->list[1], s.rank, high);
        set_list(&y->list[2], s.rank, interior);
    }
    return id(m, y);
}

int32_t trn__hlo_iota(trn__hlo_module *m, uint32_t type, uint32_t rank,
                      const int64_t *dims, int64_t dim)
{
    const trn__hlo_shape s = trn__hlo_array(type, rank, dims);
    trn__hlo_inst *y = add(m, TRN__HLO_OP_IOTA, 0, NULL, &s);
    if (y != NULL)
        push(&y->list[0], dim);
    return id(m, y);
}

int32_t trn__hlo_concatenate(trn__hlo_module *m, int32_t n, const int32_t *x,
                             int64_t dim)
{
    trn__hlo_shape s = trn__hlo_shape_of(m, x[0]);
    for (int32_t i = 1; i < n; i++)
        s.dims[dim] += trn__hlo_shape_of(m, x[i]).dims[dim];
    trn__hlo_inst *y = add(m, TRN__HLO_OP_CONCATENATE, n, x, &s);
    if (y != NULL)
        push(&y->list[0], dim);
    return id(m, y);
}

int32_t trn__hlo_reduce(trn__hlo_module *m, uint32_t op, int32_t x,
                        uint32_t mask, int32_t start)
{
    const int32_t operands[] = {x, start};
    const trn__hlo_shape from = trn__hlo_shape_of(m, x);
    trn__hlo_shape to = trn__hlo_array(from.type, 0, NULL);
    trn__hlo_list dims = {0};
    for (uint32_t d = 0; d < from.rank; d++) {
        if ((mask >> d) & 1u)
            push(&dims, d);
        else
            to.dims[to.rank++] = from.dims[d];
    }
    if (x < 0 || start < 0 || dims.n == 0)
        return start < 0 ? -1 : x;
    const int32_t helper = helper_of(m, op, from.type);
    trn__hlo_inst *y = add(m, TRN__HLO_OP_REDUCE, 2, operands, &to);
    if (y != NULL) {
        y->list[0] = dims;
        y->helper = helper;
    }
    return id(m, y);
}

static bool has(const trn__hlo_list *l, int64_t value)
{
    for (int32_t i = 0; i < l->n; i++) {
        if (l->at[i] == value)
            return true;
    }
    return false;
}

int32_t trn__hlo_dot(trn__hlo_module *m, uint32_t type, int32_t lhs,
                     int32_t rhs, const trn__hlo_dot_dims *dims)
{
    const int32_t operands[] = {lhs, rhs};
    const trn__hlo_shape a = trn__hlo_shape_of(m, lhs);
    const trn__hlo_shape b = trn__hlo_shape_of(m, rhs);
    trn__hlo_shape to = trn__hlo_array(type, 0, NULL);
    for (int32_t i = 0; i < dims->lhs_batch.n; i++)
        to.dims[to.rank++] = a.dims[dims->lhs_batch.at[i]];
    for (uint32_t d = 0; d < a.rank; d++) {
        if (!has(&dims->lhs_batch, d) && !has(&dims->lhs_contracting, d))
            to.dims[to.rank++] = a.dims[d];
    }
    for (uint32_t d = 0; d < b.rank; d++) {
        if (!has(&dims->rhs_batch, d) && !has(&dims->rhs_contracting, d))
            to.dims[to.rank++] = b.dims[d];
    }
    trn__hlo_inst *y = add(m, TRN__HLO_OP_DOT, 2, operands, &to);
    if (y != NULL) {
        y->list[0] = dims->lhs_contracting;
        y->list[1] = dims->rhs_contracting;
        y->list[2] = dims->lhs_batch;
        y->list[3] = dims->rhs_batch;
    }
    return id(m, y);
}

/* index[n] as [n, 1]: vectors of one component, the row. */
static int32_t as_vectors(trn__hlo_module *m, int32_t index)
{
    const int64_t dims[] = {trn__hlo_shape_of(m, index).dims[0], 1};
    return trn__hlo_reshape(m, index, 2, dims);
}

int32_t trn__hlo_gather_rows(trn__hlo_module *m, int32_t x, int32_t index)
{
    trn__hlo_shape s = trn__hlo_shape_of(m, x);
    const int32_t operands[] = {x, as_vectors(m, index)};
    s.dims[0] = trn__hlo_shape_of(m, index).dims[0];
    trn__hlo_inst *y = add(m, TRN__HLO_OP_GATHER, 2, operands, &s);
    if (y == NULL)
        return -1;
    for (uint32_t d = 1; d < s.rank; d++)
        push(&y->list[0], d);
    push(&y->list[1], 0);
    push(&y->list[2], 0);
    push(&y->list[3], 1);
    for (uint32_t d = 1; d < s.rank; d++)
        push(&y->list[3], s.dims[d]);
    y->number = 1;
    return id(m, y);
}

int32_t trn__hlo_scatter_rows(trn__hlo_module *m, int32_t into, int32_t index,
                              int32_t updates)
{
    const trn__hlo_shape s = trn__hlo_shape_of(m, into);
    const int32_t operands[] = {into, as_vectors(m, index), updates};
    const int32_t helper = helper_of(m, TRN__HLO_OP_ADD, s.type);
    trn__hlo_inst *y = add(m, TRN__HLO_OP_SCATTER, 3, operands, &s);
    if (y == NULL)
        return -1;
    for (uint32_t d = 1; d < s.rank; d++)
        push(&y->list[0], d);
    push(&y->list[1], 0);
    push(&y->list[2], 0);
    y->number = 1;
    y->helper = helper;
    return id(m, y);
}

int32_t trn__hlo_tuple(trn__hlo_module *m, int32_t n, const int32_t *x)
{
    const trn__hlo_shape s = trn__hlo_array(TRN__HLO_TUPLE, 0, NULL);
    return id(m, add(m, TRN__HLO_OP_TUPLE_OF, n, x, &s));
}
