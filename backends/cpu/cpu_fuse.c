/* SPDX-License-Identifier: Apache-2.0
 *
 * Which steps run as one pass: the graph's groups, cut where a step is no
 * piece, where chunk order would change what a step reads, or where the chunk
 * buffers are used up.
 *
 * Chunk order is node order per element.  It gives the same as node by node if
 * whatever shares memory inside a group is the same element at the same place.
 * A value without memory that is used outside its group gets memory after the
 * plan's arena; the graph's own plan leaves none unless a group was cut.
 */
#include "backends/cpu/cpu_program.h"

#include <string.h>

static const trn__cpu_value *owner_of(const trn_program *p, int32_t v)
{
    return &p->values[p->values[v].base];
}

static bool same_shape(const trn_arg *a, const trn_arg *b)
{
    return a->rank == b->rank &&
           memcmp(a->shape, b->shape, a->rank * sizeof a->shape[0]) == 0;
}

/* May x and the output y of pieces of one group be where they are? */
static bool apart_or_aligned(const trn_program *p, int32_t x, int32_t y)
{
    const trn__cpu_value *a = &p->values[x], *b = &p->values[y];
    const trn__cpu_value *from = owner_of(p, x), *to = owner_of(p, y);
    if (from->where == TRN__CPU_NOWHERE || from->where != to->where ||
        from->number != to->number)
        return true;
    const int64_t a0 = (int64_t)from->at + a->low;
    const int64_t b0 = (int64_t)to->at + b->low;
    if (a0 >= (int64_t)to->at + b->high || b0 >= (int64_t)from->at + a->high)
        return true;
    return a0 == b0 && trn__cpu_linear(&a->arg) &&
           trn__cpu_size(a->arg.dtype) == trn__cpu_size(b->arg.dtype);
}

static bool can_be_piece(const trn_device *dev, const trn_program *p,
                         const trn__cpu_step *s)
{
    trn__cpu_piece piece;
    if (s->group < 0 || s->n_out != 1 || s->n_in > TRN__CPU_PIECE_IN ||
        p->values[s->out[0]].base != s->out[0])
        return false;
    const trn_arg *y = &p->values[s->out[0]].arg;
    if (!trn__cpu_linear(y))
        return false;
    for (uint32_t i = 0; i < s->n_in; i++)
        if (!same_shape(&p->values[s->in[i]].arg, y) ||
            !apart_or_aligned(p, s->in[i], s->out[0]))
            return false;
    return trn__cpu_piece_of(dev, p, s, &piece);
}

/* A group as it grows: steps first .. end - 1. */
typedef struct growth {
    int32_t first, end;
    int constants; /* chunk buffers of scalars: held all the time */
    int peak;      /* chunk buffers of values, at most at once */
} growth;

static bool has_constant(uint32_t op)
{
    return op == TRN_OP_add_scalar || op == TRN_OP_mul_scalar ||
           op == TRN_OP_full;
}

/* Chunk buffers of values when the last step of the group runs. */
static int live_at_end(const trn_program *p, const growth *g)
{
    int n = 0;
    for (int32_t i = g->first; i < g->end; i++) {
        const trn__cpu_value *y = &p->values[p->steps[i].out[0]];
        n += y->where == TRN__CPU_NOWHERE &&
             (i == g->end - 1 || y->last_use >= g->end - 1);
    }
    return n;
}

static void grow(const trn_program *p, growth *g)
{
    g->constants += has_constant(p->steps[g->end].op);
    g->end++;
    const int live = live_at_end(p, g);
    g->peak = g->peak > live ? g->peak : live;
}

/* Does the memory of step s go with that of the group? */
static bool goes_with(const trn_program *p, const growth *g,
                      const trn__cpu_step *s)
{
    for (int32_t i = g->first; i < g->end; i++) {
        const trn__cpu_step *other = &p->steps[i];
        if (!apart_or_aligned(p, other->out[0], s->out[0]))
            return false;
        for (uint32_t k = 0; k < other->n_in; k++)
            if (!apart_or_aligned(p, other->in[k], s->out[0]))
                return false;
        for (uint32_t k = 0; k < s->n_in; k++) {
            if (!apart_or_aligned(p, s->in[k], other->out[0]))
                return false;
            /* A view of what is in a chunk buffer cannot be read. */
            if (p->values[s->in[k]].base == other->out[0] &&
                s->in[k] != other->out[0] &&
                owner_of(p, s->in[k])->where == TRN__CPU_NOWHERE)
                return false;
        }
    }
    return true;
}

static bool joins(const trn_device *dev, const trn_program *p, const growth *g)
{
    const trn__cpu_step *first = &p->steps[g->first], *s = &p->steps[g->end];
    growth grown = *g;
    if (s->group != first->group || g->end - g->first == TRN__CPU_MAX_PIECES ||
        !can_be_piece(dev, p, s) || !goes_with(p, g, s) ||
        !same_shape(&p->values[s->out[0]].arg, &p->values[first->out[0]].arg))
        return false;
    grow(p, &grown);
    return grown.peak + grown.constants <= TRN__CPU_SLOTS;
}

static void cut_into_groups(const trn_device *dev, trn_program *p)
{
    growth g = {.first = 0};
    while (g.first < p->n_steps) {
        g = (growth){.first = g.first, .end = g.first};
        const bool fused = can_be_piece(dev, p, &p->steps[g.first]);
        grow(p, &g);
        while (fused && g.end < p->n_steps && joins(dev, p, &g))
            grow(p, &g);
        for (int32_t i = g.first; i < g.end; i++)
            p->steps[i].head = g.first;
        p->steps[g.first].span = g.end - g.first;
        g.first = g.end;
    }
}

static void give_memory(trn_program *p, trn__cpu_value *v)
{
    const int64_t bytes =
        trn__cpu_numel(&v->arg) * (int64_t)trn__cpu_size(v->arg.dtype);
    if (v->where != TRN__CPU_NOWHERE || bytes == 0)
        return;
    p->arena_bytes = (p->arena_bytes + 63) & ~UINT64_C(63);
    v->where = TRN__CPU_ARENA;
    v->at = p->arena_bytes;
    p->arena_bytes += (uint64_t)bytes;
}

/* Values that cannot stay in a chunk buffer of their maker's group. */
static void place_the_rest(trn_program *p)
{
    for (int32_t i = 0; i < p->n_steps; i++) {
        const trn__cpu_step *s = &p->steps[i];
        for (uint32_t k = 0; k < s->n_in; k++) {
            trn__cpu_value *owner = &p->values[p->values[s->in[k]].base];
            if (owner->maker < 0 || p->steps[owner->maker].head != s->head)
                give_memory(p, owner);
        }
        if (p->steps[s->head].span == 1)
            for (uint32_t k = 0; k < s->n_out; k++)
                give_memory(p, &p->values[p->values[s->out[k]].base]);
    }
}

/* The lowest chunk buffer that is free; there is one, the cuts saw to that. */
static int32_t take_slot(uint32_t *taken)
{
    int32_t slot = 0;
    while (slot < TRN__CPU_SLOTS - 1 && (*taken >> slot & 1u))
        slot++;
    *taken |= 1u << slot;
    return slot;
}

static void place_piece(trn_program *p, const trn__cpu_step *s,
                        trn__cpu_piece *piece, uint32_t *taken)
{
    const int32_t at = (int32_t)(s - p->steps);
    trn__cpu_value *y = &p->values[s->out[0]];
    if (y->where == TRN__CPU_NOWHERE)
        y->slot = take_slot(taken);
    piece->out_slot = y->slot;
    piece->out_arg = &y->arg;
    for (uint32_t k = 0; k < s->n_in; k++) {
        const trn__cpu_value *x = &p->values[s->in[k]];
        piece->in_slot[k] = x->slot;
        piece->in_arg[k] = &x->arg;
        if (x->slot >= 0)
            continue;
        trn_arg layout = x->arg; /* its address comes with an execution */
        layout.buffer = (trn_buffer *)(void *)p;
        layout.offset = 0;
        trn__cpu_reader_init(&piece->in[k], &layout);
    }
    /* Not before the output has its own: no kernel runs in place here. */
    for (uint32_t k = 0; k < s->n_in; k++) {
        const trn__cpu_value *x = &p->values[s->in[k]];
        if (x->slot >= 0 && x->last_use == at)
            *taken &= ~(1u << x->slot);
    }
    if (y->slot >= 0 && y->last_use < 0)
        *taken &= ~(1u << y->slot);
}

/* The first piece that reads contiguous memory fetches it ahead for all. */
static void choose_streams(const trn_program *p, const trn__cpu_step *first,
                           trn__cpu_piece *pieces, int32_t at)
{
    trn__cpu_piece *piece = &pieces[at];
    for (uint32_t k = 0; k < first[at].n_in; k++) {
        const trn__cpu_value *x = &p->values[first[at].in[k]];
        bool is_new = x->slot < 0 && trn__cpu_linear(&x->arg) &&
                      (x->maker < 0 || p->steps[x->maker].head != first->head);
        for (int32_t i = 0; i <= at; i++)
            for (uint32_t j = 0; j < first[i].n_in; j++)
                if (pieces[i].ahead[j] && pieces[i].in_arg[j] == &x->arg)
                    is_new = false;
        piece->ahead[k] = is_new;
    }
}

static void make_pieces(const trn_device *dev, trn_program *p, int32_t head,
                        trn__cpu_piece *pieces)
{
    trn__cpu_step *first = &p->steps[head];
    uint32_t taken = 0;
    int64_t cost = 0;
    for (int32_t i = 0; i < first->span; i++) {
        trn__cpu_piece *piece = &pieces[i];
        trn__cpu_piece_of(dev, p, first + i, piece);
        cost += piece->cost;
        if (piece->constant)
            piece->in_slot[piece->n_in - 1] = take_slot(&taken);
    }
    for (int32_t i = 0; i < first->span; i++) {
        trn__cpu_piece *piece = &pieces[i];
        place_piece(p, first + i, piece, &taken);
        choose_streams(p, first, pieces, i);
    }
    const int64_t grain = TRN__CPU_CHEAP / trn__i64_max(1, cost);
    first->grain = trn__i64_max(TRN__CPU_DEAR, grain - grain % TRN__CPU_CHUNK);
}

void trn__cpu_fuse(trn_device *dev, trn_program *p)
{
    int32_t n_pieces = 0;
    cut_into_groups(dev, p);
    place_the_rest(p);
    for (int32_t i = 0; i < p->n_steps; i += p->steps[i].span) {
        if (p->steps[i].span == 1)
            continue;
        p->steps[i].piece = n_pieces;
        make_pieces(dev, p, i, p->pieces + n_pieces);
        n_pieces += p->steps[i].span;
    }
}
