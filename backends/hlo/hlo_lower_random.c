/* SPDX-License-Identifier: Apache-2.0
 *
 * Random rows: Philox4x32-10 in integer instructions, or values from the host.
 *
 * What the elements of a draw are is written in kernels/philox.h; uniform has
 * the CPU's bits, normal the same integers through the device's logarithm and
 * sine.  Integers without bias take as many words as rejection wants, and an
 * exchange needs the one before: randint and permutation are always the host's.
 */
#include <string.h>

#include "backends/hlo/hlo_lower.h"

#define M0 0xd2511f53u
#define M1 0xcd9e8d57u
#define W0 0x9e3779b9u /* golden ratio */
#define W1 0xbb67ae85u /* sqrt(3) - 1 */
#define ROUNDS 10
#define MAX_U32 0xffffffffll
#define LONG 1024

typedef struct philox {
    trn__hlo_module *m;
    trn__hlo_shape shape; /* u32[blocks] */
    int32_t word[4];
    int32_t key[2];
} philox;

typedef struct range {
    int64_t first, n;
} range;

static int32_t splat_bits(trn__hlo_module *m, uint32_t type, uint64_t bits,
                          const trn__hlo_shape *like)
{
    return trn__hlo_splat(m, trn__hlo_bits(m, type, bits), like);
}

/* High and low words of the product of a word with a constant. */
static void product(const philox *p, int32_t x, uint32_t by, int32_t *high,
                    int32_t *low)
{
    trn__hlo_module *m = p->m;
    const int32_t wide = trn__hlo_binary(
        m, TRN__HLO_OP_MULTIPLY, trn__hlo_convert(m, TRN__HLO_U64, x),
        splat_bits(m, TRN__HLO_U64, by, &p->shape));
    *high = trn__hlo_convert(
        m, TRN__HLO_U32,
        trn__hlo_binary(m, TRN__HLO_OP_SHIFT_RIGHT, wide,
                        splat_bits(m, TRN__HLO_U64, 32, &p->shape)));
    *low = trn__hlo_binary(m, TRN__HLO_OP_MULTIPLY, x,
                           splat_bits(m, TRN__HLO_U32, by, &p->shape));
}

static int32_t xor3(trn__hlo_module *m, int32_t a, int32_t b, int32_t c)
{
    return trn__hlo_binary(m, TRN__HLO_OP_XOR,
                           trn__hlo_binary(m, TRN__HLO_OP_XOR, a, b), c);
}

static void rounds(philox *p)
{
    trn__hlo_module *m = p->m;
    for (int i = 0; i < ROUNDS; i++) {
        int32_t high0, low0, high1, low1;
        product(p, p->word[0], M0, &high0, &low0);
        product(p, p->word[2], M1, &high1, &low1);
        p->word[0] = xor3(m, high1, p->word[1], p->key[0]);
        p->word[2] = xor3(m, high0, p->word[3], p->key[1]);
        p->word[1] = low1;
        p->word[3] = low0;
        p->key[0] = trn__hlo_binary(m, TRN__HLO_OP_ADD, p->key[0],
                                    splat_bits(m, TRN__HLO_U32, W0, &p->shape));
        p->key[1] = trn__hlo_binary(m, TRN__HLO_OP_ADD, p->key[1],
                                    splat_bits(m, TRN__HLO_U32, W1, &p->shape));
    }
}

/* Word `column` of the node's draw, for every block. */
static int32_t draw_word(trn__hlo_lowering *l, int64_t column,
                         const trn__hlo_shape *shape)
{
    trn__hlo_module *m = &l->m;
    const int64_t row = l->node.draw;
    const int64_t start[] = {row, column}, limit[] = {row + 1, column + 1};
    const int64_t stride[] = {1, 1};
    const int32_t word = trn__hlo_slice(m, l->draws, start, limit, stride);
    return trn__hlo_splat(m, trn__hlo_reshape(m, word, 0, NULL), shape);
}

static void make_draws(trn__hlo_lowering *l)
{
    const int64_t dims[] = {l->info.n_draws, 4};
    l->detail->n_draws = l->info.n_draws;
    if (l->draws < 0)
        l->draws = trn__hlo_new_param(l, TRN__HLO_DRAWS, -1, TRN_U32, 2, dims);
}

/* The words of the blocks numbered by `number`, u64 or u32 [n], of the node's
 * draw. */
static philox blocks_of(trn__hlo_lowering *l, int32_t number)
{
    trn__hlo_module *m = &l->m;
    trn__hlo_shape s = trn__hlo_shape_of(m, number);
    const bool wide = s.type == TRN__HLO_U64;
    make_draws(l);
    s.type = TRN__HLO_U32;
    philox p = {.m = m, .shape = s};
    p.word[0] = trn__hlo_convert(m, TRN__HLO_U32, number);
    p.word[1] =
        wide ? trn__hlo_convert(
                   m, TRN__HLO_U32,
                   trn__hlo_binary(m, TRN__HLO_OP_SHIFT_RIGHT, number,
                                   splat_bits(m, TRN__HLO_U64, 32, &p.shape)))
             : splat_bits(m, TRN__HLO_U32, 0, &p.shape);
    p.key[0] = draw_word(l, 0, &p.shape);
    p.key[1] = draw_word(l, 1, &p.shape);
    p.word[2] = draw_word(l, 2, &p.shape);
    p.word[3] = draw_word(l, 3, &p.shape);
    rounds(&p);
    return p;
}

/* The words of blocks 0 .. n - 1. */
static philox blocks(trn__hlo_lowering *l, int64_t n)
{
    return blocks_of(l, trn__hlo_iota(&l->m, TRN__HLO_U64, 1, &n, 0));
}

/*
 * For elements first .. first + n - 1 the words of the block that each lies in,
 * and its place there; 2^shift elements have one block.
 *
 * Each element makes the whole block.  That is more arithmetic than blocks side
 * by side, and much faster where a compiler makes one loop of it: interleaving
 * is a branch in every element, behind which the block is made all the same.
 */
static philox blocks_of_elements(trn__hlo_lowering *l, range r, uint32_t shift,
                                 int32_t *place)
{
    trn__hlo_module *m = &l->m;
    const uint32_t type = r.first + r.n > MAX_U32 ? TRN__HLO_U64 : TRN__HLO_U32;
    const trn__hlo_shape s = trn__hlo_array(type, 1, &r.n);
    const int32_t i =
        trn__hlo_binary(m, TRN__HLO_OP_ADD, trn__hlo_iota(m, type, 1, &r.n, 0),
                        splat_bits(m, type, (uint64_t)r.first, &s));
    *place = trn__hlo_binary(m, TRN__HLO_OP_AND, i,
                             splat_bits(m, type, (1u << shift) - 1, &s));
    return blocks_of(l, trn__hlo_binary(m, TRN__HLO_OP_SHIFT_RIGHT, i,
                                        splat_bits(m, type, shift, &s)));
}

/* `here` where the place is that one, else `other` */
static int32_t at_place(trn__hlo_module *m, int32_t place, uint64_t which,
                        int32_t here, int32_t other)
{
    const trn__hlo_shape s = trn__hlo_shape_of(m, place);
    const int32_t that = trn__hlo_compare(m, TRN__HLO_EQ, place,
                                          splat_bits(m, s.type, which, &s));
    return trn__hlo_select(m, that, here, other);
}

/* columns[each] of [n] side by side: [n * each] */
static int32_t interleaved(trn__hlo_module *m, int32_t each,
                           const int32_t *columns, int64_t n)
{
    int32_t part[4];
    const int64_t column[] = {n, 1}, all = n * each;
    for (int32_t i = 0; i < each; i++)
        part[i] = trn__hlo_reshape(m, columns[i], 2, column);
    return trn__hlo_reshape(m, trn__hlo_concatenate(m, each, part, 1), 1, &all);
}

/* The first elements of x in the output's shape, rounded to its type. */
static int32_t finished(trn__hlo_lowering *l, int32_t x)
{
    const trn_arg y = trn__hlo_out_arg(l);
    x = trn__hlo_range(&l->m, x, 0, trn__hlo_arg_numel(&y));
    x = trn__hlo_reshape(&l->m, x, y.rank, y.shape);
    return trn__hlo_convert(&l->m, trn__hlo_type_of(y.dtype), x);
}

/* ((a << 21) + (b >> 11) + more) 2^-53 */
static int32_t of_53_bits(trn__hlo_module *m, int32_t a, int32_t b,
                          uint64_t more)
{
    trn__hlo_shape s = trn__hlo_shape_of(m, a);
    s.type = TRN__HLO_U64;
    const int32_t high = trn__hlo_binary(m, TRN__HLO_OP_SHIFT_LEFT,
                                         trn__hlo_convert(m, TRN__HLO_U64, a),
                                         splat_bits(m, TRN__HLO_U64, 21, &s));
    const int32_t low = trn__hlo_binary(m, TRN__HLO_OP_SHIFT_RIGHT,
                                        trn__hlo_convert(m, TRN__HLO_U64, b),
                                        splat_bits(m, TRN__HLO_U64, 11, &s));
    int32_t sum = trn__hlo_binary(m, TRN__HLO_OP_ADD, high, low);
    if (more != 0)
        sum = trn__hlo_binary(m, TRN__HLO_OP_ADD, sum,
                              splat_bits(m, TRN__HLO_U64, more, &s));
    const int32_t y = trn__hlo_convert(m, TRN__HLO_F64, sum);
    return trn__hlo_binary(m, TRN__HLO_OP_MULTIPLY, y,
                           trn__hlo_like(m, 0x1p-53, y));
}

static int32_t uniform_f64(trn__hlo_lowering *l, range r)
{
    int32_t place;
    const philox p = blocks_of_elements(l, r, 1, &place);
    return of_53_bits(p.m, at_place(p.m, place, 0, p.word[0], p.word[2]),
                      at_place(p.m, place, 0, p.word[1], p.word[3]), 0);
}

static int32_t uniform_f32(trn__hlo_lowering *l, range r)
{
    int32_t place;
    const philox p = blocks_of_elements(l, r, 2, &place);
    trn__hlo_module *m = p.m;
    int32_t y = p.word[3];
    for (int32_t i = 3; i-- > 0;)
        y = at_place(m, place, (uint64_t)i, p.word[i], y);
    y = trn__hlo_binary(m, TRN__HLO_OP_SHIFT_RIGHT, y,
                        splat_bits(m, TRN__HLO_U32, 8, &p.shape));
    y = trn__hlo_convert(m, TRN__HLO_F32, y);
    return trn__hlo_binary(m, TRN__HLO_OP_MULTIPLY, y,
                           trn__hlo_like(m, 0x1p-24, y));
}

/* Long draws are made in two parts.  XLA keeps a concatenation in memory; what
 * is one expression it makes anew for every reader, and dropout's forward and
 * backward passes are two. */
static int32_t uniform(trn__hlo_lowering *l, uint32_t dtype, int64_t n)
{
    const int64_t half = n < LONG ? n : n / 2;
    const range part[] = {{0, half}, {half, n - half}};
    int32_t made[2] = {-1, -1};
    for (int i = 0; i < 2 && part[i].n > 0; i++)
        made[i] = dtype == TRN_F64 ? uniform_f64(l, part[i])
                                   : uniform_f32(l, part[i]);
    return half == n ? made[0] : trn__hlo_concatenate(&l->m, 2, made, 0);
}

/* Box-Muller in f64. */
static int32_t normal(trn__hlo_lowering *l, int64_t n)
{
    const philox p = blocks(l, (n + 1) / 2);
    trn__hlo_module *m = p.m;
    const int32_t u1 = of_53_bits(m, p.word[0], p.word[1], 1);
    const int32_t u2 = of_53_bits(m, p.word[2], p.word[3], 0);
    const int32_t log = trn__hlo_unary(m, TRN__HLO_OP_LOG, u1);
    const int32_t r =
        trn__hlo_unary(m, TRN__HLO_OP_SQRT,
                       trn__hlo_binary(m, TRN__HLO_OP_MULTIPLY, log,
                                       trn__hlo_like(m, -2.0, log)));
    const int32_t t = trn__hlo_binary(m, TRN__HLO_OP_MULTIPLY, u2,
                                      trn__hlo_like(m, 6.283185307179586, u2));
    const int32_t pair[] = {
        trn__hlo_binary(m, TRN__HLO_OP_MULTIPLY, r,
                        trn__hlo_unary(m, TRN__HLO_OP_COS, t)),
        trn__hlo_binary(m, TRN__HLO_OP_MULTIPLY, r,
                        trn__hlo_unary(m, TRN__HLO_OP_SIN, t)),
    };
    return interleaved(m, 2, pair, (n + 1) / 2);
}

/* The values as a parameter; the call that makes them is kept. */
static int32_t from_host(trn__hlo_lowering *l)
{
    struct trn__hlo_detail *d = l->detail;
    trn_arg y = trn__hlo_out_arg(l);
    d->randoms = trn__hlo_grow(l, d->randoms, d->n_randoms, &d->room_randoms,
                               sizeof *d->randoms);
    if (l->m.status != TRN_OK)
        return -1;
    int64_t stride = 1;
    for (uint32_t i = y.rank; i-- > 0; stride *= y.shape[i])
        y.stride[i] = stride;
    y.offset = 0;
    trn__hlo_random *r = &d->randoms[d->n_randoms];
    memset(r, 0, sizeof *r);
    r->op = l->node.op;
    r->draw = l->node.draw;
    r->attrs_size = l->node.attrs_size;
    memcpy(&r->attrs, l->node.attrs, r->attrs_size);
    r->out = y;
    return trn__hlo_new_param(l, TRN__HLO_RANDOM, d->n_randoms++, y.dtype,
                              y.rank, y.shape);
}

int32_t trn__hlo_lower_uniform(trn__hlo_lowering *l)
{
    const trn_arg y = trn__hlo_out_arg(l);
    const int64_t n = trn__hlo_arg_numel(&y);
    if (l->profile->random_on_host)
        return from_host(l);
    return finished(l, uniform(l, y.dtype, n));
}

/* f32 rounds the f64 value once; 16-bit types round that f32. */
int32_t trn__hlo_lower_normal(trn__hlo_lowering *l)
{
    const trn_arg y = trn__hlo_out_arg(l);
    const int64_t n = trn__hlo_arg_numel(&y);
    if (l->profile->random_on_host)
        return from_host(l);
    const int32_t x = normal(l, n);
    return finished(
        l, y.dtype == TRN_F64 ? x : trn__hlo_convert(&l->m, TRN__HLO_F32, x));
}

int32_t trn__hlo_lower_randint(trn__hlo_lowering *l)
{
    return from_host(l);
}

int32_t trn__hlo_lower_permutation(trn__hlo_lowering *l)
{
    return from_host(l);
}
