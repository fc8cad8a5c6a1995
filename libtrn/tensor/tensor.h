/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside a tensor: an operand as devices see it, a share in a storage, and its
 * place in the list of the step or the context that owns it.
 */
#ifndef TRN_LIBTRN_TENSOR_H
#define TRN_LIBTRN_TENSOR_H

#include "libtrn/context/context.h"
#include "trn/tensor.h"

/* Memory that tensors share. */
typedef struct trn__storage {
    trn_context *c;
    trn_buffer *buffer;
    uint64_t bytes;
    uint64_t version; /* number of in-place changes */
    uint64_t step;    /* serial of the step that made it; 0: none did */
    int32_t refs;
    bool read_only; /* wrapped host memory, or a copy of it */
    bool borrowed;  /* buffer is the caller's memory */
    bool deferred;  /* an update of it waits for the end of the step */
    bool saved;     /* the open step has kept its old bytes (undo.c) */
    trn_release_fn release;
    void *release_user;
    void *release_data;
    struct trn__storage *next_free;
    /* while steps are captured (libtrn/ops/trace.h) */
    uint64_t trace_step;  /* the last captured step that touched it, */
    int32_t trace_slot;   /* the value it has there now, */
    int32_t trace_writes; /* after that many writes, */
    int32_t trace_input;  /* and the input it is bound as; -1: made there */
    int32_t trace_ahead;  /* writes that a rebuilt tape has yet to reach */
    trn_buffer *peek;     /* its value in the open step, read early */
    bool lost;            /* its value was lost with a failed step */
} trn__storage;

/* What a view was made of, so that it can be made again. */
typedef struct trn__view {
    struct trn_tensor *base;
    uint32_t op; /* 0: the same elements */
    uint32_t attrs_size;
    uint64_t attrs[12];
} trn__view;

/* A ring of tensors: those of the step, those of the context. */
typedef struct trn__ring {
    struct trn_tensor *first, *last;
    int64_t n;
} trn__ring;

struct trn_tensor {
    trn_arg arg; /* first: handed to devices as it is */
    trn_context *c;
    trn__storage *storage;      /* NULL: a shape without data */
    struct trn__record *record; /* how it was computed, for gradients */
    trn_tensor *grad;
    void *map;
    trn_tensor *prev, *next; /* in `ring`, or on a free list */
    trn__ring *ring;
    int32_t refs;
    int32_t user_refs;   /* of those, given out by trn_tensor_retain */
    uint64_t walk;       /* the last backward walk that met this leaf, */
    int64_t slot;        /* and its place in that walk's list */
    trn__view *view;     /* contexts that capture; else NULL */
    uint64_t trace_step; /* as in the storage */
    int32_t trace_slot, trace_writes;
    struct trn__trace *owner; /* of which trace this is a prepared result, */
    int32_t owner_entry;      /* and of which entry */
    uint64_t mark_step;       /* the step that marked it, as number `mark` */
    int32_t mark;
    int32_t holds;      /* who outside of the step has a use for it */
    bool inner;         /* a view of a traced function's own, soon over */
    bool kept;          /* trn_keep gave the context a reference */
    bool traced_grad;   /* needs a gradient, by a matched call */
    bool requires_grad; /* asked for by the user; a leaf */
    bool map_owned;     /* map is a copy */
    bool stale;         /* check builds: freed, memory kept for detection */
};

typedef struct trn__tensors {
    trn__ring step, base;
    trn__ring *scope; /* where new tensors go: one of those, or a local one */
    uint64_t step_serial; /* number of steps begun */
    bool in_step;
    trn_tensor *free_tensors; /* oldest first in check builds */
    trn_tensor *last_free;
    int64_t n_free;
    trn__storage *free_storages;
    /* from upper folders: drop a record; make storage's bytes current */
    bool keep_views; /* views remember what they were made of */
    void (*release_record)(trn_context *c, struct trn__record *record);
    trn_status (*settle)(trn_context *c, struct trn_tensor *t);
    /* t has one more (1) or one fewer (-1) use outside of the step */
    trn_status (*hold)(struct trn_tensor *t, int32_t by);
    /* are calls traced?  then a write of host data is an assign */
    bool (*traces)(trn_context *c);
    trn_status (*assign)(struct trn_tensor *x, struct trn_tensor *y);
    trn_status (*before_write)(trn_context *c, trn__storage *s);
} trn__tensors;

extern const trn__layer trn__tensor_layer;

/* Shape and type of a tensor to be made. */
typedef struct trn__desc {
    uint32_t dtype;
    uint32_t rank;
    int64_t shape[TRN_MAX_RANK];
} trn__desc;

/* Checked: rank, dimensions, bytes; raises with `what`.  Gives the bytes. */
trn_status trn__desc_make(trn_context *c, const char *what, uint32_t dtype,
                          int rank, const int64_t *shape, trn__desc *out,
                          uint64_t *bytes);
int64_t trn__numel(uint32_t rank, const int64_t *shape);
void trn__row_major(trn_arg *arg); /* strides from the shape */
bool trn__is_contiguous(const trn_arg *arg);
bool trn__same_shape(const trn_arg *a, const trn_arg *b);
/* Do two elements of arg share memory (expanded or overlapping strides)? */
bool trn__self_overlaps(const trn_arg *arg);
/* Lowest and one past the highest element that arg touches. */
void trn__extent(const trn_arg *arg, int64_t *low, int64_t *high);

/* NumPy broadcasting of two shapes; false if they do not fit. */
bool trn__broadcast(const trn_arg *a, const trn_arg *b, uint32_t *rank,
                    int64_t *shape);
/* The dtype of an op on two dtypes: the table of docs/ops.md. */
uint32_t trn__promote(uint32_t a, uint32_t b);
bool trn__is_float(uint32_t dtype);
/* f32 for f32, bf16, f16; else the dtype itself. */
uint32_t trn__compute_dtype(uint32_t dtype);

/* "f32[2,3]" for messages. */
typedef struct trn__text {
    char s[160];
} trn__text;
trn__text trn__describe(const trn_arg *arg);

/* A tensor with memory of its own, contiguous, in the current scope. */
trn_tensor *trn__tensor_new(trn_context *c, const char *what,
                            const trn__desc *desc);
/* A tensor that shares t's storage; its shape and strides are the caller's to
 * change.  In the current scope.  NULL with the error raised. */
trn_tensor *trn__tensor_alias(trn_tensor *t);
/* A tensor whose memory comes later, in no scope; refs 1. */
trn_tensor *trn__tensor_lazy(trn_context *c, const trn__desc *desc);
/* Takes t out of its scope with that scope's reference; NULL is allowed. */
trn_tensor *trn__detach_from_scope(trn_tensor *t);
/* A shape without data, in no scope; refs 1. */
trn_tensor *trn__tensor_ghost(trn_context *c, const trn__desc *desc);
/* Memory of the device, `bytes` > 0, for a contiguous tensor of that type and
 * shape; NULL: it has none. */
trn_buffer *trn__buffer_new(trn_context *c, const trn_arg *like,
                            uint64_t bytes);
/* References inside the library. */
trn_tensor *trn__ref(trn_tensor *t);
void trn__unref(trn_tensor *t);
/* Takes t out of its scope: the caller now holds that reference. */
trn_tensor *trn__own_tensor(trn_tensor *t);
/* Gives the caller a reference that outlives steps: the scope's, or a new one
 * where t is in no scope. */
void trn__adopt_tensor(trn_tensor *t);
/* Does t (not NULL) belong to c, and is it alive?  Raises with `what`. */
trn_status trn__check_tensor(trn_context *c, const char *what, trn_tensor *t);
/* Frees what is on a ring, whoever else of the user's holds it. */
void trn__ring_clear(trn__ring *ring);
/* Ends the step's ring; what the user retained moves to the context. */
void trn__step_ring_clear(trn_context *c);
/* A scope for what a function makes on its way: what is left in it at the end
 * is freed, but for `keep` (may be NULL), which goes to the outer scope. */
typedef struct trn__scope {
    trn__ring ring, *outer;
} trn__scope;
void trn__scope_enter(trn_context *c, trn__scope *s);
trn_tensor *trn__scope_leave(trn_context *c, trn__scope *s, trn_tensor *keep);
/* Puts t, which is in no scope, into the current one with the caller's
 * reference. */
void trn__scope_add(trn_context *c, trn_tensor *t);
static inline bool trn__needs_grad(const trn_tensor *t)
{
    return t->requires_grad || t->record != NULL || t->traced_grad;
}

void trn__storage_ref(trn__storage *s);
void trn__storage_unref(trn__storage *s);
/* The first element of t (which has one) as a double. */
trn_status trn__first_element(trn_tensor *t, double *value);
/* Bytes of a storage, in and out. */
trn_status trn__storage_read(trn__storage *s, uint64_t offset, void *data,
                             uint64_t bytes);
trn_status trn__storage_write(trn__storage *s, uint64_t offset,
                              const void *data, uint64_t bytes);

#endif
