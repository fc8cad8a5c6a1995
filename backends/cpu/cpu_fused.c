/* SPDX-License-Identifier: Apache-2.0
 *
 * Fused groups: all steps of a group on one chunk of elements, then the next.
 *
 * A chunk buffer holds elements in their value's own type, and each step widens
 * and rounds as it does in eager mode, with the same kernels: the bits are
 * those of the steps run one after the other through memory.
 */
#include "backends/cpu/cpu_drop.h"
#include "backends/cpu/cpu_elementwise.h"
#include "backends/cpu/cpu_program.h"

#include <string.h>

/* ---- what a piece does to contiguous elements ---- */

#define APPLY(name, call)                                                      \
    static void name(const trn_device *dev, const trn__cpu_piece *p,           \
                     int64_t first, int64_t n, const void *const *in, void *y) \
    {                                                                          \
        (void)dev, (void)p, (void)first, (void)in;                             \
        call;                                                                  \
    }

APPLY(unary_f32, p->loops->unary_f32(n, in[0], y))
APPLY(unary_f64, p->loops->unary_f64(n, in[0], y))
APPLY(unary_int, p->integer_unary(n, in[0], y))
APPLY(binary_f32, p->loops->binary_f32(n, in[0], in[1], y))
APPLY(binary_f64, p->loops->binary_f64(n, in[0], in[1], y))
APPLY(binary_int, p->integer_binary(n, in[0], in[1], y))
APPLY(compare_f32, p->loops->compare_f32(n, in[0], in[1], y))
APPLY(compare_f64, p->loops->compare_f64(n, in[0], in[1], y))
APPLY(uniform_f32, dev->set.uniform_f32(n, p->key, p->draw, (uint64_t)first, y))
APPLY(uniform_f64, dev->set.uniform_f64(n, p->key, p->draw, (uint64_t)first, y))
APPLY(normal_f32, dev->set.normal_f32(n, p->key, p->draw, (uint64_t)first, y))
APPLY(normal_f64, dev->set.normal_f64(n, p->key, p->draw, (uint64_t)first, y))
APPLY(move, memmove(y, in[0], (size_t)n *trn__cpu_size(p->out_dtype)))
APPLY(widen, trn__cpu_widen(dev, p->in_dtype[0], n, in[0], y))
APPLY(narrow, trn__cpu_store(dev, p->out_dtype, n, in[0], y))
APPLY(convert, trn__convert((trn_dtype)p->in_dtype[0], (trn_dtype)p->out_dtype,
                            n, in[0], y))

static void dropout_f32(const trn_device *dev, const trn__cpu_piece *p,
                        int64_t first, int64_t n, const void *const *in,
                        void *y)
{
    float u[TRN__CPU_CHUNK];
    dev->set.uniform_f32(n, p->key, p->draw, (uint64_t)first, u);
    trn__cpu_drop_f32(n, (float)p->p, u, in[0], y);
}

static void dropout_f64(const trn_device *dev, const trn__cpu_piece *p,
                        int64_t first, int64_t n, const void *const *in,
                        void *y)
{
    double u[TRN__CPU_CHUNK];
    dev->set.uniform_f64(n, p->key, p->draw, (uint64_t)first, u);
    trn__cpu_drop_f64(n, p->p, u, in[0], y);
}

/* where: bits are chosen, whatever they mean. */
#define SELECT(name, type)               \
    APPLY(name, {                        \
        const uint8_t *c = in[0];        \
        const type *a = in[1];           \
        const type *b = in[2];           \
        type *out = y;                   \
        for (int64_t i = 0; i < n; i++)  \
            out[i] = c[i] ? a[i] : b[i]; \
    })

SELECT(select_8, uint8_t)
SELECT(select_16, uint16_t)
SELECT(select_32, uint32_t)
SELECT(select_64, uint64_t)

/* ---- which of them a step is ---- */

static bool unary_piece(const trn_device *dev, uint32_t op, uint32_t compute,
                        trn__cpu_piece *piece)
{
    piece->loops = &dev->loops[op];
    piece->integer_unary = trn__cpu_integer_unary(op, compute);
    piece->apply = compute == TRN_F32   ? unary_f32
                   : compute == TRN_F64 ? unary_f64
                                        : unary_int;
    return piece->apply != unary_int || piece->integer_unary != NULL;
}

static bool binary_piece(const trn_device *dev, uint32_t op, uint32_t compute,
                         trn__cpu_piece *piece)
{
    const bool compare = trn__cpu_class_of(op) == TRN__CPU_CLASS_COMPARE;
    piece->loops = &dev->loops[op];
    if (compute == TRN_F32) {
        piece->apply = compare ? compare_f32 : binary_f32;
        return true;
    }
    if (compute == TRN_F64) {
        piece->apply = compare ? compare_f64 : binary_f64;
        return true;
    }
    piece->apply = binary_int;
    piece->integer_binary = trn__cpu_integer_binary(op, compute);
    return piece->integer_binary != NULL;
}

static bool scalar_piece(const trn_device *dev, uint32_t op, uint32_t compute,
                         trn__cpu_piece *piece)
{
    piece->constant = true;
    piece->n_in = 2;
    piece->in_dtype[1] = compute;
    return binary_piece(dev, op, compute, piece);
}

static bool cast_piece(trn__cpu_piece *piece)
{
    const uint32_t from = piece->in_dtype[0], to = piece->out_dtype;
    piece->raw = true;
    if (from == to)
        piece->apply = move;
    else if (to == TRN_F32 && trn__cpu_size(from) == 2)
        piece->apply = widen;
    else if (from == TRN_F32 && trn__cpu_size(to) == 2)
        piece->apply = narrow;
    else
        piece->apply = convert;
    return true;
}

static bool where_piece(trn__cpu_piece *piece)
{
    const size_t size = trn__cpu_size(piece->out_dtype);
    piece->raw = true;
    piece->apply = size == 1   ? select_8
                   : size == 2 ? select_16
                   : size == 4 ? select_32
                               : select_64;
    return true;
}

static bool special_piece(const trn_device *dev, uint32_t op,
                          trn__cpu_piece *piece)
{
    const bool f64 = piece->out_dtype == TRN_F64;
    const uint32_t compute = trn__cpu_compute(piece->in_dtype[0]);
    switch (op) {
    case TRN_OP_where:
        return where_piece(piece);
    case TRN_OP_add_scalar:
        return scalar_piece(dev, TRN_OP_add, compute, piece);
    case TRN_OP_mul_scalar:
        return scalar_piece(dev, TRN_OP_mul, compute, piece);
    case TRN_OP_cast:
        return cast_piece(piece);
    case TRN_OP_copy:
        piece->raw = true;
        piece->apply = move;
        return true;
    case TRN_OP_full:
        piece->raw = piece->constant = true;
        piece->n_in = 1;
        piece->in_dtype[0] = piece->out_dtype;
        piece->apply = move;
        return true;
    case TRN_OP_uniform:
        piece->apply = f64 ? uniform_f64 : uniform_f32;
        return trn__cpu_is_float(piece->out_dtype);
    case TRN_OP_normal:
        piece->apply = f64 ? normal_f64 : normal_f32;
        return trn__cpu_is_float(piece->out_dtype);
    case TRN_OP_dropout:
        piece->apply = f64 ? dropout_f64 : dropout_f32;
        return trn__cpu_is_float(piece->out_dtype);
    default:
        return false;
    }
}

/* Relative to a cheap op: as eager mode's grains are. */
static int64_t cost_of(uint32_t op)
{
    bool dear = trn__cpu_is_dear(op) || op == TRN_OP_uniform ||
                op == TRN_OP_normal || op == TRN_OP_dropout;
    return dear ? TRN__CPU_CHEAP / TRN__CPU_DEAR : 1;
}

bool trn__cpu_piece_of(const trn_device *dev, const trn_program *program,
                       const trn__cpu_step *step, trn__cpu_piece *piece)
{
    *piece = (trn__cpu_piece){
        .n_in = step->n_in,
        .out_dtype = program->values[step->out[0]].arg.dtype,
        .cost = cost_of(step->op),
        .in_slot = {-1, -1, -1},
        .out_slot = -1,
    };
    for (uint32_t i = 0; i < step->n_in; i++)
        piece->in_dtype[i] = program->values[step->in[i]].arg.dtype;
    const uint32_t compute = trn__cpu_compute(piece->in_dtype[0]);
    switch (trn__cpu_class_of(step->op)) {
    case TRN__CPU_CLASS_UNARY:
        return unary_piece(dev, step->op, compute, piece);
    case TRN__CPU_CLASS_BINARY:
    case TRN__CPU_CLASS_COMPARE:
        return binary_piece(dev, step->op, compute, piece);
    case TRN__CPU_CLASS_RANDOM:
    case TRN__CPU_CLASS_SPECIAL:
        return special_piece(dev, step->op, piece);
    case TRN__CPU_CLASS_NONE:
    case TRN__CPU_CLASS_VIEW:
    case TRN__CPU_CLASS_REDUCE:
    case TRN__CPU_CLASS_UPDATE:
        break;
    }
    return false;
}

/* ---- running ---- */

typedef struct fused_run {
    const trn_device *dev;
    const trn__cpu_piece *pieces;
    int32_t n_pieces;
} fused_run;

/* Chunk buffers of one thread. */
typedef struct scratch {
    trn__cpu_chunk slot[TRN__CPU_SLOTS];
    trn__cpu_chunk in[TRN__CPU_PIECE_IN], out;
} scratch;

static bool is_half(uint32_t dtype)
{
    return dtype == TRN_BF16 || dtype == TRN_F16;
}

static const void *operand(const trn_device *dev, const trn__cpu_piece *p,
                           uint32_t i, int64_t first, int64_t n, scratch *s)
{
    const bool wide = !p->raw && is_half(p->in_dtype[i]);
    if (p->in_slot[i] < 0)
        return wide ? trn__cpu_load(dev, &p->in[i], first, n, &s->in[i])
                    : trn__cpu_fetch(&p->in[i], first, n, &s->in[i]);
    const trn__cpu_chunk *slot = &s->slot[p->in_slot[i]];
    if (!wide)
        return slot;
    trn__cpu_widen(dev, p->in_dtype[i], n, slot->u16, s->in[i].f32);
    return &s->in[i];
}

/*
 * A group reads a page of each operand, then computes for long: the hardware
 * does not see the streams, so the next chunk is asked for while this one is
 * worked on.
 */
#if defined(__GNUC__)
#define FETCH_AHEAD(at, bytes, write)            \
    for (int64_t i_ = 0; i_ < (bytes); i_ += 64) \
    __builtin_prefetch((at) + i_, write, 2)
#else
#define FETCH_AHEAD(at, bytes, write) (void)(at)
#endif

/* n elements from `first`; the chunk after them has `next`. */
static void run_piece(const trn_device *dev, const trn__cpu_piece *p,
                      int64_t first, int64_t n, int64_t next, scratch *s)
{
    const void *in[TRN__CPU_PIECE_IN] = {NULL, NULL, NULL};
    const bool round = !p->raw && is_half(p->out_dtype);
    const int64_t size = (int64_t)trn__cpu_size(p->out_dtype);
    char *y;
    for (uint32_t i = 0; i < p->n_in; i++) {
        in[i] = operand(dev, p, i, first, n, s);
        if (p->ahead[i])
            FETCH_AHEAD(p->in[i].base + (first + n) * p->in[i].size,
                        next * p->in[i].size, 0);
    }
    if (p->out_slot >= 0) {
        y = (char *)&s->slot[p->out_slot];
    } else {
        y = p->y + first * size;
        FETCH_AHEAD(y + n * size, next * size, 1);
    }
    p->apply(dev, p, first, n, in, round ? (void *)&s->out : y);
    if (round)
        trn__cpu_store(dev, p->out_dtype, n, &s->out, y);
}

static void fill_constants(const fused_run *run, int64_t n, scratch *s)
{
    for (int32_t i = 0; i < run->n_pieces; i++) {
        const trn__cpu_piece *p = &run->pieces[i];
        if (!p->constant)
            continue;
        uint64_t bits = p->constant_bits;
        const trn__cpu_reader one = {
            .base = (char *)(void *)&bits,
            .size = (uint32_t)trn__cpu_size(p->in_dtype[p->n_in - 1]),
        };
        trn__cpu_collect(&one, 0, n, &s->slot[p->in_slot[p->n_in - 1]]);
    }
}

static void run_range(void *arg, int64_t begin, int64_t end)
{
    const fused_run *run = arg;
    scratch s;
    fill_constants(run, trn__i64_min(end - begin, TRN__CPU_CHUNK), &s);
    for (int64_t at = begin; at < end; at += TRN__CPU_CHUNK) {
        const int64_t n = trn__i64_min(end - at, TRN__CPU_CHUNK);
        const int64_t next = trn__i64_min(end - at - n, TRN__CPU_CHUNK);
        for (int32_t i = 0; i < run->n_pieces; i++)
            run_piece(run->dev, &run->pieces[i], at, n, next, &s);
    }
}

/* Puts in what this execution brings. */
static void prepare(trn__cpu_piece *p, const trn__cpu_step *s,
                    const trn_execution *e)
{
    const uint32_t tensors = p->n_in - p->constant;
    for (uint32_t i = 0; i < tensors; i++)
        if (p->in_slot[i] < 0)
            p->in[i].base = trn__cpu_data(p->in_arg[i]);
    if (p->out_slot < 0)
        p->y = trn__cpu_data(p->out_arg);
    if (p->constant && s->op == TRN_OP_full)
        trn__convert(TRN_F64, (trn_dtype)p->in_dtype[tensors], 1,
                     &e->scalars[s->scalar[0]], &p->constant_bits);
    else if (p->constant)
        trn__cpu_scalar(p->in_dtype[tensors], e->scalars[s->scalar[0]],
                        &p->constant_bits);
    if (s->op == TRN_OP_dropout)
        p->p = e->scalars[s->scalar[0]];
    if (s->draw >= 0) {
        p->key = e->draws[s->draw][0];
        p->draw = e->draws[s->draw][1];
    }
}

void trn__cpu_run_fused(trn_device *dev, const trn_program *program,
                        const trn__cpu_step *head, const trn_execution *e)
{
    const int64_t n = trn__cpu_numel(&program->values[head->out[0]].arg);
    trn__cpu_piece *pieces = program->pieces + head->piece;
    fused_run run = {
        .dev = dev,
        .pieces = pieces,
        .n_pieces = head->span,
    };
    if (n == 0)
        return;
    for (int32_t i = 0; i < head->span; i++)
        prepare(&pieces[i], head + i, e);
    trn__cpu_for(dev, n, head->grain, run_range, &run);
}
