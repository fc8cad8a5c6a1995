/* SPDX-License-Identifier: Apache-2.0
 *
 * One maker for each kind of instruction.
 */
#include <string.h>

#include "backends/hlo/hlo_build.h"

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

int32_t trn__hlo_unary(trn__hlo_module *m, uint32_t op, int32_t x)
{
    const trn__hlo_shape s = trn__hlo_shape_of(m, x);
    return trn__hlo_number_of(m, trn__hlo_add(m, op, 1, &x, &s));
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
    return trn__hlo_number_of(m, trn__hlo_add(m, op, 2, x, &s));
}

int32_t trn__hlo_compare(trn__hlo_module *m, trn__hlo_direction direction,
                         int32_t a, int32_t b)
{
    const int32_t x[] = {a, b};
    trn__hlo_shape s = trn__hlo_shape_of(m, a);
    s.type = TRN__HLO_PRED;
    trn__hlo_inst *c = trn__hlo_add(m, TRN__HLO_OP_COMPARE, 2, x, &s);
    if (c != NULL)
        c->number = (int32_t)direction;
    return trn__hlo_number_of(m, c);
}

int32_t trn__hlo_select(trn__hlo_module *m, int32_t condition, int32_t a,
                        int32_t b)
{
    const int32_t x[] = {condition, a, b};
    const trn__hlo_shape s = trn__hlo_shape_of(m, a);
    return trn__hlo_number_of(m, trn__hlo_add(m, TRN__HLO_OP_SELECT, 3, x, &s));
}

int32_t trn__hlo_convert(trn__hlo_module *m, uint32_t type, int32_t x)
{
    trn__hlo_shape s = trn__hlo_shape_of(m, x);
    if (x < 0 || s.type == type)
        return x;
    s.type = type;
    return trn__hlo_number_of(m,
                              trn__hlo_add(m, TRN__HLO_OP_CONVERT, 1, &x, &s));
}

int32_t trn__hlo_reshape(trn__hlo_module *m, int32_t x, uint32_t rank,
                         const int64_t *dims)
{
    const trn__hlo_shape from = trn__hlo_shape_of(m, x);
    const trn__hlo_shape to = trn__hlo_array(from.type, rank, dims);
    if (x < 0 || same(&from, &to))
        return x;
    return trn__hlo_number_of(m,
                              trn__hlo_add(m, TRN__HLO_OP_RESHAPE, 1, &x, &to));
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
    trn__hlo_inst *b = trn__hlo_add(m, TRN__HLO_OP_BROADCAST, 1, &x, &to);
    if (b != NULL)
        set_list(&b->list[0], from.rank, map);
    return trn__hlo_number_of(m, b);
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
    trn__hlo_inst *t = trn__hlo_add(m, TRN__HLO_OP_TRANSPOSE, 1, &x, &to);
    if (t != NULL)
        set_list(&t->list[0], from.rank, perm);
    return trn__hlo_number_of(m, t);
}

int32_t trn__hlo_reverse(trn__hlo_module *m, int32_t x, uint32_t mask)
{
    const trn__hlo_shape s = trn__hlo_shape_of(m, x);
    if (x < 0 || mask == 0)
        return x;
    trn__hlo_inst *y = trn__hlo_add(m, TRN__HLO_OP_REVERSE, 1, &x, &s);
    for (uint32_t d = 0; y != NULL && d < s.rank; d++) {
        if ((mask >> d) & 1u)
            push(&y->list[0], d);
    }
    return trn__hlo_number_of(m, y);
}

int32_t trn__hlo_slice(trn__hlo_module *m, int32_t x, const int64_t *start,
                       const int64_t *limit, const int64_t *stride)
{
    trn__hlo_shape s = trn__hlo_shape_of(m, x);
    for (uint32_t d = 0; d < s.rank; d++) {
        const int64_t span = limit[d] - start[d];
        s.dims[d] = span <= 0 ? 0 : (span - 1) / stride[d] + 1;
    }
    trn__hlo_inst *y = trn__hlo_add(m, TRN__HLO_OP_SLICE, 1, &x, &s);
    if (y != NULL) {
        set_list(&y->list[0], s.rank, start);
        set_list(&y->list[1], s.rank, limit);
        set_list(&y->list[2], s.rank, stride);
    }
    return trn__hlo_number_of(m, y);
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
    trn__hlo_inst *y = trn__hlo_add(m, TRN__HLO_OP_PAD, 2, operands, &s);
    if (y != NULL) {
        set_list(&y->list[0], s.rank, low);
        set_list(&y->list[1], s.rank, high);
        set_list(&y->list[2], s.rank, interior);
    }
    return trn__hlo_number_of(m, y);
}

int32_t trn__hlo_iota(trn__hlo_module *m, uint32_t type, uint32_t rank,
                      const int64_t *dims, int64_t dim)
{
    const trn__hlo_shape s = trn__hlo_array(type, rank, dims);
    trn__hlo_inst *y = trn__hlo_add(m, TRN__HLO_OP_IOTA, 0, NULL, &s);
    if (y != NULL)
        push(&y->list[0], dim);
    return trn__hlo_number_of(m, y);
}

int32_t trn__hlo_concatenate(trn__hlo_module *m, int32_t n, const int32_t *x,
                             int64_t dim)
{
    trn__hlo_shape s = trn__hlo_shape_of(m, x[0]);
    for (int32_t i = 1; i < n; i++)
        s.dims[dim] += trn__hlo_shape_of(m, x[i]).dims[dim];
    trn__hlo_inst *y = trn__hlo_add(m, TRN__HLO_OP_CONCATENATE, n, x, &s);
    if (y != NULL)
        push(&y->list[0], dim);
    return trn__hlo_number_of(m, y);
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
    const int32_t helper = trn__hlo_helper_of(m, op, from.type);
    trn__hlo_inst *y = trn__hlo_add(m, TRN__HLO_OP_REDUCE, 2, operands, &to);
    if (y != NULL) {
        y->list[0] = dims;
        y->helper = helper;
    }
    return trn__hlo_number_of(m, y);
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
    trn__hlo_inst *y = trn__hlo_add(m, TRN__HLO_OP_DOT, 2, operands, &to);
    if (y != NULL) {
        y->list[0] = dims->lhs_contracting;
        y->list[1] = dims->rhs_contracting;
        y->list[2] = dims->lhs_batch;
        y->list[3] = dims->rhs_batch;
    }
    return trn__hlo_number_of(m, y);
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
    trn__hlo_inst *y = trn__hlo_add(m, TRN__HLO_OP_GATHER, 2, operands, &s);
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
    return trn__hlo_number_of(m, y);
}

int32_t trn__hlo_scatter_rows(trn__hlo_module *m, int32_t into, int32_t index,
                              int32_t updates)
{
    const trn__hlo_shape s = trn__hlo_shape_of(m, into);
    const int32_t operands[] = {into, as_vectors(m, index), updates};
    const int32_t helper = trn__hlo_helper_of(m, TRN__HLO_OP_ADD, s.type);
    trn__hlo_inst *y = trn__hlo_add(m, TRN__HLO_OP_SCATTER, 3, operands, &s);
    if (y == NULL)
        return -1;
    for (uint32_t d = 1; d < s.rank; d++)
        push(&y->list[0], d);
    push(&y->list[1], 0);
    push(&y->list[2], 0);
    y->number = 1;
    y->helper = helper;
    return trn__hlo_number_of(m, y);
}

int32_t trn__hlo_tuple(trn__hlo_module *m, int32_t n, const int32_t *x)
{
    const trn__hlo_shape s = trn__hlo_array(TRN__HLO_TUPLE, 0, NULL);
    return trn__hlo_number_of(m,
                              trn__hlo_add(m, TRN__HLO_OP_TUPLE_OF, n, x, &s));
}
