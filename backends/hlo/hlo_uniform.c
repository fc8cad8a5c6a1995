/* SPDX-License-Identifier: Apache-2.0
 *
 * Along which dimensions is a value the same everywhere, as far as the form of
 * the module tells?  Asked for factors of products: a library that XLA hands
 * these to on the CPU computes some of them wrong if a factor repeats itself
 * (docs/xla.md), and the device then leaves it out.
 *
 * Where the form does not tell, a dimension counts as one that may repeat only
 * if it is made of such ones; parameters never do.
 */
#include "backends/hlo/hlo_lower.h"

/* Bits of the dimensions of more than one element. */
static uint32_t long_dims(const trn__hlo_shape *s)
{
    uint32_t bits = 0;
    for (uint32_t d = 0; d < s->rank; d++)
        bits |= s->dims[d] > 1 ? 1u << d : 0;
    return bits;
}

static uint32_t bit(uint32_t bits, int64_t d)
{
    return (bits >> d) & 1u;
}

static bool has(const trn__hlo_list *l, int64_t d)
{
    for (int32_t i = 0; i < l->n; i++) {
        if (l->at[i] == d)
            return true;
    }
    return false;
}

typedef struct operand {
    const trn__hlo_shape *shape;
    uint32_t bits;
} operand;

/* Long dimensions in their order, if they are those of x; else all or none. */
static uint32_t of_reshape(const trn__hlo_inst *y, operand x)
{
    uint32_t bits = 0, from = 0;
    for (uint32_t d = 0; d < y->shape.rank; d++) {
        if (y->shape.dims[d] <= 1)
            continue;
        while (from < x.shape->rank && x.shape->dims[from] <= 1)
            from++;
        if (from == x.shape->rank || x.shape->dims[from] != y->shape.dims[d])
            return x.bits != 0 ? long_dims(&y->shape) : 0;
        bits |= bit(x.bits, from++) << d;
    }
    return bits;
}

static uint32_t of_broadcast(const trn__hlo_inst *y, operand x)
{
    uint32_t bits = long_dims(&y->shape);
    for (int32_t d = 0; d < y->list[0].n; d++) {
        if (bit(x.bits, d) == 0)
            bits &= ~(1u << y->list[0].at[d]);
    }
    return bits;
}

/* Those that are left, in their order. */
static uint32_t of_reduce(const trn__hlo_inst *y, operand x)
{
    uint32_t bits = 0, to = 0;
    for (uint32_t d = 0; d < x.shape->rank; d++) {
        if (!has(&y->list[0], d))
            bits |= bit(x.bits, d) << to++;
    }
    return bits;
}

static uint32_t of_transpose(const trn__hlo_inst *y, operand x)
{
    uint32_t bits = 0;
    for (int32_t d = 0; d < y->list[0].n; d++)
        bits |= bit(x.bits, y->list[0].at[d]) << d;
    return bits;
}

/* Batch, then what each factor has of its own. */
static uint32_t of_dot(const trn__hlo_inst *y, operand a, operand b)
{
    uint32_t bits = 0, to = 0;
    for (int32_t i = 0; i < y->list[2].n; i++)
        bits |= (bit(a.bits, y->list[2].at[i]) & bit(b.bits, y->list[3].at[i]))
                << to++;
    for (uint32_t d = 0; d < a.shape->rank; d++) {
        if (!has(&y->list[0], d) && !has(&y->list[2], d))
            bits |= bit(a.bits, d) << to++;
    }
    for (uint32_t d = 0; d < b.shape->rank; d++) {
        if (!has(&y->list[1], d) && !has(&y->list[3], d))
            bits |= bit(b.bits, d) << to++;
    }
    return bits;
}

static operand operand_of(const trn__hlo_module *m, const uint32_t *bits,
                          const trn__hlo_inst *y, int32_t k)
{
    const int32_t x = trn__hlo_operand(m, y, k);
    return (operand){.shape = &m->insts[x].shape, .bits = bits[x]};
}

static uint32_t of_all(const trn__hlo_module *m, const uint32_t *bits,
                       const trn__hlo_inst *y)
{
    uint32_t all = long_dims(&y->shape);
    for (int32_t k = 0; k < y->n_operands; k++)
        all &= operand_of(m, bits, y, k).bits;
    return all;
}

static uint32_t of(const trn__hlo_module *m, const uint32_t *bits,
                   const trn__hlo_inst *y)
{
    operand x = {.shape = &y->shape};
    if (y->n_operands > 0)
        x = operand_of(m, bits, y, 0);
    switch (y->op) {
    case TRN__HLO_OP_PARAMETER:
    case TRN__HLO_OP_CONSTANT:
    case TRN__HLO_OP_TUPLE_OF:
        return 0;
    case TRN__HLO_OP_IOTA:
        return long_dims(&y->shape) & ~(1u << y->list[0].at[0]);
    case TRN__HLO_OP_RESHAPE:
        return of_reshape(y, x);
    case TRN__HLO_OP_BROADCAST:
        return of_broadcast(y, x);
    case TRN__HLO_OP_TRANSPOSE:
        return of_transpose(y, x);
    case TRN__HLO_OP_REDUCE:
        return of_reduce(y, x);
    case TRN__HLO_OP_DOT:
        return of_dot(y, x, operand_of(m, bits, y, 1));
    case TRN__HLO_OP_SLICE:
    case TRN__HLO_OP_PAD:
        return x.bits & long_dims(&y->shape);
    case TRN__HLO_OP_GATHER: /* rows; and all alike, if the indices are */
        return (x.bits | (operand_of(m, bits, y, 1).bits & 1u)) &
               long_dims(&y->shape);
    default:
        return of_all(m, bits, y);
    }
}

void trn__hlo_find_plain_products(trn__hlo_lowering *l)
{
    const trn__hlo_module *m = &l->m;
    const size_t bytes = ((size_t)m->n_insts + 1) * sizeof(uint32_t);
    uint32_t *bits = trn__hlo_cleared(l, bytes);
    l->program->plain_products = true;
    for (int32_t i = 0; bits != NULL && i < m->n_insts; i++) {
        const trn__hlo_inst *y = &m->insts[i];
        bits[i] = of(m, bits, y);
        if (y->op == TRN__HLO_OP_DOT &&
            (operand_of(m, bits, y, 0).bits | operand_of(m, bits, y, 1).bits))
            l->program->plain_products = false;
    }
    l->host->dealloc(l->host->host, bits);
}
