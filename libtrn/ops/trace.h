/* SPDX-License-Identifier: Apache-2.0
 *
 * Tracing: the calls of a step as a list, matched position by position when
 * the step runs again, and the graph that they build.
 *
 * A slot is the number of a value in the trace's graph.  While a step is traced
 * each tensor that it touches knows its slot; a call of the next step that has
 * the op, the attributes and the input slots of the call at its position gives
 * the prepared tensor back, without inference, allocation or hashing.
 */
#ifndef TRN_LIBTRN_TRACE_H
#define TRN_LIBTRN_TRACE_H

#include "libtrn/graph/graph.h"
#include "libtrn/ops/op_table.h"
#include "trn/step.h"

typedef enum trn__entry_kind {
    TRN__ENTRY_OP,       /* a node */
    TRN__ENTRY_ALIAS,    /* the same value under another handle */
    TRN__ENTRY_BACKWARD, /* a walk; its calls follow, up to `end` */
    TRN__ENTRY_GRAD      /* trn_grad, likewise */
} trn__entry_kind;

/* One entry of a trace. */
typedef struct trn__entry {
    uint8_t kind;
    bool needs_grad;    /* the result was recorded on the tape */
    uint8_t kinds;      /* of its inputs: trn__input_kinds */
    bool nested;        /* inside a walk: never matched by itself */
    bool sourced;       /* scalars are those of another call */
    int32_t node;       /* OP */
    int32_t in, out;    /* ALIAS and walks: slots */
    trn_tensor *handle; /* prepared result; NULL: to be made */
    int32_t end;        /* walks: the entry behind the last one inside */
    int32_t n_inputs;   /* inputs of the graph that are known before this */
    /* walks */
    int32_t effect, n_effects; /* what they leave behind */
    uint32_t flags;
    uint64_t hash; /* of this entry and all before it */
} trn__entry;

/* A walk's result: the gradient of a leaf, or an entry of trn_grad's out. */
typedef struct trn__effect {
    int32_t leaf;  /* slot of the leaf (BACKWARD), of the input (GRAD) */
    int32_t old;   /* slot of the leaf's gradient before; -1: none */
    int32_t slot;  /* slot of the result; -1: none */
    int32_t entry; /* that makes it; -1: none inside the walk */
    int32_t user;  /* BACKWARD: an entry with the leaf as input `number`; -1: */
    int32_t number; /* ... the leaf is the root itself */
} trn__effect;

/* The tensors of an entry in the open step.  Two may have one slot: a value and
 * what was detached from it, of which one needs a gradient. */
typedef struct trn__used {
    trn_tensor *in[TRN__MAX_IN]; /* walks: in[0] is the root */
    trn_tensor *out;
    trn_tensor *through; /* assign: the view of in[0] that was written to */
} trn__used;

typedef struct trn__trace {
    struct trn__trace *prev, *next; /* most recently used first */
    trn_graph *graph;               /* raw: no pass has seen it */
    trn__entry *entries;
    int32_t n_entries, room_entries;
    trn__effect *effects;
    int32_t n_effects, room_effects;
    bool complete;          /* the step that made it has ended well */
    struct trn__plan *plan; /* libtrn/ops/plan.h */
} trn__trace;

/* The device that a graph is to fit: that of the context, or one that is not
 * open, of which a program is wanted all the same. */
typedef struct trn__target {
    const trn_backend *table;
    trn_device *device;
} trn__target;

/* What a context keeps about tracing; c->capture. */
typedef struct trn__capture {
    bool steps;    /* steps are captured */
    bool loose;    /* so are ops outside of steps */
    bool on;       /* calls go to the trace now */
    bool matching; /* ... and are compared with `trace` */
    uint64_t serial;
    trn__trace *trace;
    uint32_t calling;    /* the op whose inputs are looked up, for reasons */
    int32_t at;          /* entries matched or recorded so far */
    int32_t depth;       /* of open walks */
    bool walking;        /* a walk is compared: inputs may be of its calls */
    trn_tensor *through; /* the view whose assign is made of its base now */
    int32_t n_bound;     /* inputs bound so far */
    trn_tensor **bound;  /* the tensor of each input, with a reference */
    int32_t room_bound;
    trn_tensor **tensors; /* by slot: the handle in this step (borrowed) */
    int32_t room_tensors;
    trn__used *used; /* by entry */
    int32_t room_used;
    trn_tensor **held; /* references that last until the step's end */
    int32_t n_held, room_held;
    trn_tensor **marked; /* handles that someone wants after the step */
    int32_t n_marked, room_marked;
    double *scalars;
    int32_t room_scalars;
    uint64_t (*draws)[2];
    int32_t room_draws;
    trn__trace *first, *last; /* all traces */
    int32_t n_traces;
    struct trn__plan *plans;
    struct trn__flight *flights;
    bool flight_failed; /* the oldest one, not yet undone */
    char reason[512];   /* of the last trace that did not match */
    bool refuse_early_read;
    const trn__target
        *target; /* bodies: for whom; NULL: the context's device */
    uint64_t plan_limit;
    trn_capture_info info;
} trn__capture;

/* The slot of t in the open step: binds it as an input, or derives a view anew
 * when its base has been written since.  -1 with the error raised. */
int32_t trn__slot_of(trn_context *c, trn_tensor *t);

/* Traces call k, which has been checked.  desc: inferred by `infer` only when
 * it does not match.  Gives k->out (or the written input). */
trn_tensor *trn__trace_op(trn__call *k, const trn__op_info *info);

/* Notes that the step has a use for t beyond its end. */
trn_status trn__trace_mark(trn_tensor *t);

/* Compares entry `at` with an OP; leaves a reason if it does not match. */
void trn__trace_begin(trn_context *c, bool loose);

/* Gives up matching at the current entry: another trace that agrees so far and
 * goes on as `probe` wants takes over, or a new one begins with the prefix. */
trn_status trn__trace_diverge(trn_context *c,
                              bool (*probe)(trn_context *c, const trn__trace *t,
                                            void *user),
                              void *user);

trn__entry *trn__trace_add_entry(trn_context *c, uint8_t kind);
trn_status trn__trace_add_effect(trn_context *c, trn__effect effect);
void trn__trace_free(trn_context *c, trn__trace *t);
/* Frees a capture with its lists, after its traces and plans. */
void trn__capture_free(trn_context *c, trn__capture *p);
/* Drops what the open step holds. */
void trn__trace_end(trn_context *c);

/* Grows *list to n elements, doubling; raises. */
trn_status trn__grow(trn_context *c, void **list, int32_t *room, int32_t n,
                     size_t element);

#endif
