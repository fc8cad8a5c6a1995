/* SPDX-License-Identifier: Apache-2.0
 *
 * A compiled step of the CPU device: what cpu_program.c reads out of a graph,
 * cpu_fuse.c groups, cpu_execute.c runs and cpu_fused.c runs chunk by chunk.
 *
 * A program is one block of memory.  A step is a node that does something
 * (views do not) or a copy that the graph asks for without a node; a piece is a
 * step inside a fused group.  Only addresses, scalars and draws change from one
 * execution to the next.
 */
#ifndef TRN_BACKENDS_CPU_PROGRAM_H
#define TRN_BACKENDS_CPU_PROGRAM_H

#include "backends/cpu/cpu_read.h"
#include "kernels/integer_kernels.h"

#define TRN__CPU_MAX_IN 8
#define TRN__CPU_MAX_OUT 4
#define TRN__CPU_MAX_SCALARS 8
#define TRN__CPU_PIECE_IN 3

/* Chunk buffers of a fused group, on the stack: 208 KiB.  A group of the core
 * has at most 24 nodes; a tree over 12 scaled values needs one more than that.
 */
#define TRN__CPU_SLOTS 26

/* Steps that may be one fused group; planning takes the square of it. */
#define TRN__CPU_MAX_PIECES 128

typedef enum trn__cpu_placement {
    TRN__CPU_NOWHERE = 0, /* in a chunk buffer of its group, or empty */
    TRN__CPU_ARENA = 1,
    TRN__CPU_INPUT = 2,
    TRN__CPU_OUTPUT = 3
} trn__cpu_placement;

typedef struct trn__cpu_value {
    trn_arg arg;  /* its buffer is set by each execution */
    int32_t base; /* the value that owns the memory */
    /* of an owner: */
    uint32_t where;
    int32_t number;   /* of the input or output */
    uint64_t at;      /* byte in the arena */
    int32_t last_use; /* the last step that uses it or a view of it */
    /* of every value: */
    int64_t low, high; /* the bytes from the owner's start that it spans */
    int32_t maker;     /* step, or -1 */
    int32_t slot;      /* chunk buffer, or -1 */
} trn__cpu_value;

typedef struct trn__cpu_step {
    uint32_t op;
    int32_t node; /* in the graph */
    uint32_t n_in, n_out, n_scalars;
    int32_t in[TRN__CPU_MAX_IN], out[TRN__CPU_MAX_OUT];
    int32_t scalar[TRN__CPU_MAX_SCALARS];
    int32_t draw, group;
    const void *attrs;
    uint32_t attrs_size;
    bool checks;       /* looks at values, which may be wrong */
    bool writes_input; /* overwrites memory that an input brought */
    int32_t head;      /* first step of its fused group, or itself */
    int32_t span;      /* of a head: steps in the group */
    int32_t piece;     /* of a head with span > 1: its first piece */
    int64_t grain;     /* of such a head: elements of a range, at least */
} trn__cpu_step;

typedef struct trn__cpu_piece trn__cpu_piece;

/* n elements from `first`, inputs and y contiguous, in the compute type unless
 * `raw`. */
typedef void trn__cpu_piece_fn(const trn_device *dev, const trn__cpu_piece *p,
                               int64_t first, int64_t n, const void *const *in,
                               void *y);

struct trn__cpu_piece {
    trn__cpu_piece_fn *apply;
    const trn__cpu_loops *loops;
    trn__integer_unary_fn *integer_unary;
    trn__integer_binary_fn *integer_binary;
    uint32_t n_in;
    bool raw;      /* inputs come in their own type, not the compute type */
    bool constant; /* the last input is a scalar, in a chunk buffer */
    uint32_t in_dtype[TRN__CPU_PIECE_IN], out_dtype;
    int64_t cost;
    int32_t in_slot[TRN__CPU_PIECE_IN], out_slot; /* -1: in memory */
    const trn_arg *in_arg[TRN__CPU_PIECE_IN], *out_arg;
    bool
        ahead[TRN__CPU_PIECE_IN]; /* this piece fetches it for the next chunk */
    trn__cpu_reader in[TRN__CPU_PIECE_IN];
    /* set by each execution */
    char *y;
    uint64_t constant_bits;
    uint64_t key, draw;
    double p; /* dropout */
};

struct trn_program {
    int32_t n_values, n_steps, n_inputs, n_outputs, n_scalars, n_draws;
    uint64_t arena_bytes; /* the plan's, and what fusion had to give up */
    uint64_t kept_bytes;  /* copies of inputs, and the head before which they */
    int32_t keep_at;      /* are made; -1: never */
    uint64_t work_bytes;  /* the largest workspace of a step */
    trn__cpu_value *values;
    trn__cpu_step *steps;
    trn__cpu_piece *pieces;
};

typedef enum trn__cpu_class {
    TRN__CPU_CLASS_NONE = 0,
    TRN__CPU_CLASS_UNARY,
    TRN__CPU_CLASS_BINARY,
    TRN__CPU_CLASS_COMPARE,
    TRN__CPU_CLASS_VIEW,
    TRN__CPU_CLASS_REDUCE,
    TRN__CPU_CLASS_RANDOM,
    TRN__CPU_CLASS_UPDATE,
    TRN__CPU_CLASS_SPECIAL
} trn__cpu_class;

/* cpu_program.c: columns of ops.def */
trn__cpu_class trn__cpu_class_of(uint32_t op);

int32_t trn__cpu_compile(trn_device *dev, const trn_graph *graph,
                         trn_program **program);
void trn__cpu_release(trn_device *dev, trn_program *program);

/* cpu_execute.c */
/* What an execution takes beside its buffers: arena, copies, workspace. */
uint64_t trn__cpu_program_bytes(trn_device *dev, trn_program *program);
/* Finds work_bytes, when all else of the program is final. */
void trn__cpu_find_workspace(trn_device *dev, trn_program *p);
int32_t trn__cpu_execute(trn_device *dev, trn_program *program,
                         const trn_execution *e, uint64_t *ticket);
int32_t trn__cpu_wait(trn_device *dev, uint64_t ticket, trn_outcome *outcome);
int32_t trn__cpu_poll(trn_device *dev, uint64_t ticket);

/* cpu_undo.c: finds keep_at and kept_bytes; copies the inputs' memory that a
 * program overwrites, and puts it back. */
void trn__cpu_find_kept(trn_program *p);
void trn__cpu_keep_inputs(const trn_program *p, const trn_execution *e,
                          char *kept);
void trn__cpu_put_back(const trn_program *p, const trn_execution *e,
                       const char *kept);

/* cpu_fuse.c: finds the groups, fills heads, spans, slots and pieces, and gives
 * memory to what crosses groups without having any. */
void trn__cpu_fuse(trn_device *dev, trn_program *program);

/* cpu_fused.c: false if the step cannot be a piece; `piece` then is undefined.
 * Slots and readers are left to the caller. */
bool trn__cpu_piece_of(const trn_device *dev, const trn_program *program,
                       const trn__cpu_step *step, trn__cpu_piece *piece);
/* Runs the group of a head with span > 1; it cannot fail. */
void trn__cpu_run_fused(trn_device *dev, const trn_program *program,
                        const trn__cpu_step *head, const trn_execution *e);

#endif
