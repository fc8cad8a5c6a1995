/* SPDX-License-Identifier: Apache-2.0
 *
 * Random loops of steps, run on several contexts whose bits must agree.
 *
 * A program is a list of instructions, each a call of the public API.  An
 * operand is a code: a wish for a tensor.  The nearest tensor at or below it
 * that the instruction can use is taken, so every list is a valid program,
 * and a shorter one is still a program (which is what shrinking needs).
 */
#ifndef TRN_TESTS_RANDOM_PROGRAM_H
#define TRN_TESTS_RANDOM_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "trn.h"

#define RANDOM_MAX_OPS 40
#define RANDOM_MAX_PROGRAMS 4
#define RANDOM_MAX_STEPS 12
#define RANDOM_MAX_ROUNDS 4

/* Operand codes: results of instructions, and what outlives steps. */
enum {
    CODE_SECOND = RANDOM_MAX_OPS, /* the second result of an instruction */
    CODE_PARAMETER = 2 * RANDOM_MAX_OPS,
    CODE_BUFFER = CODE_PARAMETER + 8,
    CODE_VIEW = CODE_BUFFER + 8,
    CODE_KEPT = CODE_VIEW + 5,
    CODE_GRAD = CODE_KEPT + 4, /* the gradient of a parameter */
    N_CODES = CODE_GRAD + 8
};

/* Instructions.   X(name, how often) */
#define RANDOM_OPS(X)   \
    X(nop, 0)           \
    X(unary, 16)        \
    X(steps, 4)         \
    X(binary, 18)       \
    X(compare, 4)       \
    X(where, 4)         \
    X(add_scalar, 4)    \
    X(mul_scalar, 6)    \
    X(cast, 3)          \
    X(copy, 1)          \
    X(reshape, 5)       \
    X(permute, 4)       \
    X(expand, 3)        \
    X(slice, 5)         \
    X(pad, 2)           \
    X(reduce, 10)       \
    X(argmax, 1)        \
    X(matmul, 8)        \
    X(embedding, 3)     \
    X(gather, 2)        \
    X(scatter, 2)       \
    X(uniform, 2)       \
    X(normal, 2)        \
    X(full, 2)          \
    X(data, 8)          \
    X(softmax, 4)       \
    X(cross_entropy, 7) \
    X(mse_loss, 3)      \
    X(dropout, 4)       \
    X(assign, 7)        \
    X(write, 2)         \
    X(detach, 3)        \
    X(no_grad, 2)       \
    X(grad, 5)          \
    X(backward, 7)      \
    X(optim, 6)         \
    X(clip, 2)          \
    X(zero_grad, 1)     \
    X(keep, 4)          \
    X(retain, 1)        \
    X(release, 1)       \
    X(leaf, 1)          \
    X(read, 2)          \
    X(loss, 1)          \
    X(finite, 1)        \
    X(join, 3)          \
    X(flip, 2)          \
    X(select, 2)        \
    X(one_hot, 1)       \
    X(integers, 1)      \
    X(bad_index, 0)     \
    X(bad_shape, 0)

typedef enum random_op {
#define X(name, often) RANDOM_##name,
    RANDOM_OPS(X)
#undef X
        RANDOM_N_OPS
} random_op;

typedef struct random_instr {
    uint8_t op;
    uint8_t a, b, c; /* operand codes */
    uint8_t i, j;    /* choices */
    double value;
} random_instr;

typedef struct random_program {
    int n;
    int64_t batch;
    bool outside; /* not between trn_step_begin and trn_step_end */
    random_instr at[RANDOM_MAX_OPS];
} random_program;

typedef struct random_when {
    uint8_t program;
    bool read;      /* the asynchronous run looks at its results here */
    bool late;      /* if it fails, the next step is begun before it is known */
    uint8_t freeze; /* this parameter's requires_grad flips before; 255: none */
} random_when;

typedef struct random_case {
    uint64_t seed;
    int64_t m, n; /* dimensions */
    int threads;
    bool delays; /* one more run, with a slow device */
    int n_programs, n_steps, n_rounds;
    random_program program[RANDOM_MAX_PROGRAMS];
    random_when step[RANDOM_MAX_STEPS];
} random_case;

/* The case of a seed; loop: several programs and steps, else one program. */
void random_make(random_case *k, uint64_t seed, bool loop);
void random_print(const random_case *k, FILE *out);

/* What a run leaves for comparisons. */
typedef struct random_report {
    char text[600];
    int64_t steps, failed_steps, matches, compilations, early_reads;
} random_report;

/* Runs the case on all contexts; true if all agree, else why. */
bool random_agrees(const random_case *k, random_report *report);

/* ---- one context ---- */

typedef struct random_world {
    trn_context *c;
    const random_case *k;
    bool captured, async;
    trn_module *module[2];
    trn_optim *optim[3];
    trn_generator *generator[2];
    trn_tensor *tensor[N_CODES];
    uint64_t origin[N_CODES]; /* how they were made; views: of what */
    int found;                /* the first operand of the instruction */
    trn_tensor *wants[4];     /* kept in the open step */
    uint64_t wants_from[4];
    trn_tensor *retired[256]; /* to be released when nothing is in flight */
    int n_retired;
    trn_tensor *undo[4]; /* kept ones when nothing was in flight */
    uint64_t undo_from[4];
    /* the open step */
    const random_program *p;
    int which, at, no_grad;
    bool had_errors;    /* versions may have counted what was taken back */
    uint64_t salt;      /* of the data of this step */
    uint64_t signature; /* of what was called; equal: nothing to compile */
    uint64_t *log;      /* one number per instruction, then per value read */
    int failed_at;      /* the instruction after which an error pended */
} random_world;

bool random_open(random_world *w, const random_case *k, const char *device,
                 uint32_t exec);
/* False if memory is not given back. */
bool random_close(random_world *w);
/* Runs the instructions of a program. */
void random_run(random_world *w, const random_program *p, int which);
/* After the step: registers end, kept ones are taken over, or not. */
void random_settle_kept(random_world *w, bool good, bool in_flight);
/* Kept ones go back to these if what follows fails. */
void random_remember(random_world *w);
/* Nothing is in flight: what was replaced is released; good: nothing failed. */
void random_settled(random_world *w, bool good);

uint64_t random_next(uint64_t *state);
uint64_t random_mix(uint64_t h, uint64_t x);

#endif
