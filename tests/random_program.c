/* SPDX-License-Identifier: Apache-2.0
 *
 * Making and printing random loops of steps; see random_program.h.
 */
#include <string.h>

#include "random_program.h"

uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t random_mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ (h >> 29);
}

static int below(uint64_t *s, int n)
{
    return (int)(random_next(s) % (uint64_t)n);
}

static const int how_often[RANDOM_N_OPS] = {
#define X(name, often) often,
    RANDOM_OPS(X)
#undef X
};

static uint8_t pick_op(uint64_t *s)
{
    int total = 0;
    for (int i = 0; i < RANDOM_N_OPS; i++)
        total += how_often[i];
    int at = below(s, total);
    for (int i = 0; i < RANDOM_N_OPS; i++) {
        at -= how_often[i];
        if (at < 0)
            return (uint8_t)i;
    }
    return RANDOM_nop;
}

/* Mostly one of the last results, else what outlives steps. */
static uint8_t pick_code(uint64_t *s, int at)
{
    int kind = below(s, 20);
    if (kind < 11 && at > 0) {
        int back = 1 + below(s, kind < 8 && at > 4 ? 4 : at);
        return (uint8_t)(at - back);
    }
    if (kind < 15)
        return (uint8_t)(CODE_PARAMETER + below(s, 8));
    if (kind < 18)
        return (uint8_t)(CODE_BUFFER + below(s, 13));
    return (uint8_t)(CODE_KEPT + below(s, 12));
}

static void make_instr(random_instr *in, uint64_t *s, int at)
{
    *in = (random_instr){
        .op = pick_op(s),
        .a = pick_code(s, at),
        .b = pick_code(s, at),
        .c = pick_code(s, at),
        .i = (uint8_t)below(s, 256),
        .j = (uint8_t)below(s, 256),
        .value = (double)(below(s, 64) - 24) / 16.0,
    };
}

/* A program that trains: after some calls, backward and an update.  Half keep
 * a late result, else little of what they compute would have to be. */
static void make_program(random_program *p, uint64_t *s, int from, int most)
{
    p->n = from + 1 + below(s, most - from);
    p->batch = 1 + below(s, 6);
    p->outside = false;
    for (int i = from; i < p->n; i++)
        make_instr(&p->at[i], s, i);
    if (p->n - from > 4 && below(s, 4) > 0) {
        int at = from + (p->n - from) * 2 / 3;
        p->at[at].op = RANDOM_backward;
        if (below(s, 2) > 0)
            p->at[p->n - 1].op = RANDOM_optim;
    }
    if (p->n - from > 2 && below(s, 2) > 0) {
        p->at[p->n - 2].op = RANDOM_keep;
        p->at[p->n - 2].a = (uint8_t)(p->n - 3);
    }
}

/* A program that is much like another one. */
static void vary(random_program *p, const random_program *of, uint64_t *s)
{
    *p = *of;
    p->outside = false;
    switch (below(s, 6)) {
    case 0: /* a smaller last batch */
        p->batch = 1 + below(s, 6);
        break;
    case 1: /* a common beginning */
        make_program(p, s, below(s, p->n), RANDOM_MAX_OPS);
        p->batch = of->batch;
        break;
    case 2: /* values are looked at on the way */
        for (int i = 0; i < 3; i++)
            p->at[below(s, p->n)].op =
                below(s, 3) > 0 ? RANDOM_read : RANDOM_loss;
        break;
    case 3: /* calls left out */
        for (int i = 0; i < 2; i++)
            p->at[below(s, p->n)].op = RANDOM_nop;
        break;
    case 4: /* recorded or not: the same calls */
        p->at[below(s, p->n)].op = RANDOM_no_grad;
        break;
    default: /* evaluation, micro-batches: no update */
        for (int i = 0; i < p->n; i++) {
            if (p->at[i].op == RANDOM_optim)
                p->at[i].op = RANDOM_nop;
        }
        break;
    }
}

/* A few calls between steps, whose errors would not take anything back. */
static void move_outside(random_program *p)
{
    p->n = p->n > 8 ? 8 : p->n;
    p->outside = true;
    for (int i = 0; i < p->n; i++) {
        uint8_t op = p->at[i].op;
        if (op == RANDOM_bad_index || op == RANDOM_finite || op == RANDOM_clip)
            p->at[i].op = RANDOM_nop;
    }
}

static void make_programs(random_case *k, uint64_t *s)
{
    make_program(&k->program[0], s, 0, RANDOM_MAX_OPS);
    for (int i = 1; i < k->n_programs; i++) {
        if (below(s, 5) == 0)
            make_program(&k->program[i], s, 0, RANDOM_MAX_OPS);
        else
            vary(&k->program[i], &k->program[below(s, i)], s);
        random_program *p = &k->program[i];
        int fate = below(s, 12);
        if (fate == 0)
            p->at[below(s, p->n)].op = RANDOM_bad_index;
        if (fate == 1)
            p->at[below(s, p->n)].op = RANDOM_bad_shape;
        if (fate == 2)
            move_outside(p);
    }
}

void random_make(random_case *k, uint64_t seed, bool loop)
{
    uint64_t s = random_mix(seed, loop ? 7 : 3);
    memset(k, 0, sizeof *k);
    k->seed = seed;
    k->m = 1 + below(&s, 5);
    k->n = 1 + below(&s, 5);
    if (below(&s, 12) == 0)
        k->n = 0;
    if (below(&s, 12) == 0)
        k->n = 40;
    k->threads = 1 + below(&s, 2);
    k->n_programs = loop ? 1 + below(&s, RANDOM_MAX_PROGRAMS) : 1;
    k->n_steps = loop ? 3 + below(&s, RANDOM_MAX_STEPS - 2) : 1;
    k->n_rounds = loop ? 2 : RANDOM_MAX_ROUNDS;
    k->delays = loop && below(&s, 4) == 0;
    make_programs(k, &s);
    for (int i = 0; i < k->n_steps; i++) {
        k->step[i] = (random_when){
            .program = (uint8_t)below(&s, k->n_programs),
            .read = below(&s, 3) == 0,
            .late = below(&s, 2) == 0,
            .freeze = (uint8_t)(below(&s, 16) == 0 ? below(&s, 8) : 255),
        };
    }
}

/* ---- printing ---- */

static const char *const names[RANDOM_N_OPS] = {
#define X(name, often) #name,
    RANDOM_OPS(X)
#undef X
};

static const char *code_name(uint8_t code, char *text, size_t size)
{
    static const struct {
        int from;
        const char *name;
    } kinds[] = {
        {CODE_GRAD, "grad"},
        {CODE_KEPT, "kept"},
        {CODE_VIEW, "view"},
        {CODE_BUFFER, "buffer"},
        {CODE_PARAMETER, "par"},
        {CODE_SECOND, "second"},
        {0, "%"},
    };
    int i = 0;
    while (code < kinds[i].from)
        i++;
    snprintf(text, size, "%s%d", kinds[i].name, code - kinds[i].from);
    return text;
}

static void print_program(const random_program *p, int which, FILE *out)
{
    char a[16], b[16], c[16];
    fprintf(out, "program %d: batch %d%s\n", which, (int)p->batch,
            p->outside ? ", outside of steps" : "");
    for (int i = 0; i < p->n; i++) {
        const random_instr *in = &p->at[i];
        if (in->op != RANDOM_nop)
            fprintf(out, "  %%%-2d %-13s %-8s %-8s %-8s i=%d j=%d value=%g\n",
                    i, names[in->op], code_name(in->a, a, sizeof a),
                    code_name(in->b, b, sizeof b),
                    code_name(in->c, c, sizeof c), in->i, in->j, in->value);
    }
}

void random_print(const random_case *k, FILE *out)
{
    fprintf(out, "seed %llu: m %d, n %d, %d threads, %d rounds of\n ",
            (unsigned long long)k->seed, (int)k->m, (int)k->n, k->threads,
            k->n_rounds);
    for (int i = 0; i < k->n_steps; i++) {
        const random_when *w = &k->step[i];
        if (w->freeze != 255)
            fprintf(out, " flip%d", w->freeze);
        fprintf(out, " %d%s%s", w->program, w->read ? "r" : "",
                w->late ? "l" : "");
    }
    fprintf(out, "\n");
    for (int i = 0; i < k->n_programs; i++) {
        bool used = false;
        for (int j = 0; j < k->n_steps; j++)
            used = used || k->step[j].program == i;
        if (used)
            print_program(&k->program[i], i, out);
    }
}
