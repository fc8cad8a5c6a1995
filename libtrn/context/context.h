/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside a context: error, memory, threads, device, and the lists that upper
 * folders hang their state on.  Nothing here knows a tensor.
 */
#ifndef TRN_LIBTRN_CONTEXT_H
#define TRN_LIBTRN_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>

#include "trn/backend.h"
#include "trn/context.h"
#include "libtrn/context/threads.h"

#define TRN__MESSAGE_SIZE 1024

/* Invariants of our own; checked in check builds only. */
#ifdef TRN_CHECK
#define TRN_ASSERT(condition) ((condition) ? (void)0 : __builtin_trap())
#else
#define TRN_ASSERT(condition) ((void)0)
#endif

/* Returns the status of an expression from this function if it is an error. */
#define TRN_TRY(expression)                \
    do {                                   \
        trn_status status_ = (expression); \
        if (status_ != TRN_OK)             \
            return status_;                \
    } while (0)

/* An object that the context destroys at close, newest first. */
typedef struct trn__owned {
    struct trn__owned *prev, *next;
    void (*destroy)(struct trn__owned *self);
} trn__owned;

/*
 * A host counter (draws of a generator, steps of an optimizer, position of a
 * loader).  What a step adds to `value` counts only when the step succeeds:
 * then `committed` follows; else `value` goes back to it.
 */
typedef struct trn__counter {
    struct trn__counter *prev, *next;
    uint64_t value, committed;
    bool held; /* committed by its owner and by steps, not at a step's begin */
} trn__counter;

typedef struct trn__memory {
    trn_alloc_fn alloc;
    trn_free_fn free;
    void *user;
    struct trn__block **free_lists; /* by size class */
    /* The thread of the context changes them, those of devices read them. */
    _Atomic uint64_t bytes_in_use, bytes_cached;
    uint64_t bytes_peak;
    uint64_t blocks_in_use, blocks_asked;
    /* What threads of devices ask for; one call of the hooks at a time. */
    pthread_mutex_t hook_lock;
    _Atomic uint64_t shared_bytes, shared_peak, shared_blocks, shared_asked;
} trn__memory;

/* What may end the work of a context early (limits.c). */
typedef struct trn__limits {
    uint64_t memory;               /* bytes; 0: no limit */
    atomic_bool cancelled;         /* by any thread or signal handler */
    bool watched;                  /* there is a deadline or a progress hook */
    bool telling;                  /* the hook is running */
    double opened, deadline, told; /* seconds of a clock that only goes on */
    trn_progress_fn progress;
    void *user;
    double interval;
} trn__limits;

/* A CPU device of its own, for calls that another device gives back; it may be
 * called by any thread (libtrn/dispatch/reference.c). */
typedef struct trn__reference {
    bool ready; /* the lock exists */
    pthread_mutex_t lock;
    trn_host_services services;
    trn_device *device; /* opened by the first call */
} trn__reference;

struct trn_context {
    trn_status status;
    bool broken; /* did not open: the error stays */
    char message[TRN__MESSAGE_SIZE];
    trn__memory memory;
    trn__limits limits;
    trn_log_fn log;
    void *log_user;
    trn__threads *threads;
    const char *engine;
    char cpu_isa[16];
    char *device_options;         /* name, value, name, value, ..., "" */
    bool *options_asked;          /* for each of them: a device has asked */
    char name[TRN__MESSAGE_SIZE]; /* what trn_nn_parameter_name gave last */
    uint64_t modules_made;
    uint32_t parameter_dtype; /* of new modules; 0: f32 */
    uint64_t seed;
    const trn_backend *backend; /* &table, once a device is open */
    trn_backend table;          /* the device's, with the types it has left */
    trn_device *device;
    trn_host_services services;
    trn__reference reference;
    trn__owned owned; /* heads of rings */
    trn__counter counters;
    struct trn__tensors *tensors; /* libtrn/tensor */
    struct trn__tape *tape;       /* libtrn/graph */
    struct trn__step *step;       /* libtrn/ops */
    struct trn__randoms *randoms; /* libtrn/ops */
    struct trn__capture *capture; /* libtrn/ops */
    uint32_t exec;                /* trn_exec, of options or environment */
    bool refuse_early_read;
    bool allow_fallback;
    uint64_t plan_limit;
    uint64_t bytes_to_host, bytes_to_device; /* through read and write */
};

/* Makes the error pending, unless one is, and returns the pending one.  The
 * message reads "op or file: fact with numbers; expected". */
trn_status trn__fail(trn_context *c, trn_status status, const char *format, ...)
    TRN_PRINTF(3, 4);

/* TRN_ERR_NOMEM for `what` ("relu"), naming the bytes. */
trn_status trn__fail_memory(trn_context *c, const char *what, uint64_t bytes);

/* The pending error or TRN_OK; TRN_ERR_NOMEM for NULL. */
trn_status trn__pending(const trn_context *c);

/* TRN_ERR_CANCELLED or TRN_ERR_DEADLINE, raised, if the work is to end; calls
 * the progress hook when it is time.  Only where stopping loses nothing. */
trn_status trn__limits_check(trn_context *c);
trn_status trn__limits_open(trn_context *c, const trn_options *o);
static inline trn_status trn__may_go_on(trn_context *c)
{
    return c->limits.watched || atomic_load_explicit(&c->limits.cancelled,
                                                     memory_order_relaxed)
               ? trn__limits_check(c)
               : TRN_OK;
}

/* Memory of the context: 64-byte aligned, not cleared; NULL: out of memory
 * (no error is raised).  trn__free accepts NULL. */
void *trn__alloc(trn_context *c, size_t bytes);
void *trn__alloc_zeroed(trn_context *c, size_t bytes);
void trn__free(trn_context *c, void *memory);
/* The same from any thread: slower, each block from the hook.  A block goes
 * back by trn__free_shared. */
void *trn__alloc_shared(trn_context *c, size_t bytes);
void trn__free_shared(trn_context *c, void *memory);
trn_status trn__memory_open(trn_context *c);
void trn__memory_close(trn_context *c);
void trn__memory_trim(trn_context *c);

/* The context's own struct, through the hooks of its options (NULL: malloc). */
trn_context *trn__context_alloc(trn_alloc_fn alloc, trn_free_fn release,
                                void *user);
void trn__context_free(trn_context *c);

void trn__own(trn_context *c, trn__owned *object,
              void (*destroy)(trn__owned *self));
void trn__disown(trn__owned *object);

void trn__counter_add(trn_context *c, trn__counter *counter);
void trn__counter_remove(trn__counter *counter);
void trn__counters_begin(trn_context *c);         /* all but the held ones */
void trn__counters_commit(trn_context *c);        /* all */
void trn__counters_rollback(trn_context *c);      /* all */
void trn__counters_rollback_held(trn_context *c); /* those only */

/* Environment, read at trn_open only, in one file: value or NULL. */
const char *trn__env(const char *name);
bool trn__env_any_openmp(void);
int trn__online_cores(void);

/* Options of devices, from a text that `source` is the name of (NULL: none) and
 * from variables that stand for single ones. */
trn_status trn__device_options_open(trn_context *c, const char *source,
                                    const char *text);
void trn__device_options_close(trn_context *c);
/* A device asks: the value of that option, NULL: it is not set. */
const char *trn__device_option(trn_context *c, const char *name);
/* Logs the options that nobody has asked for. */
void trn__device_options_unasked(trn_context *c, const char *device);

/* a * b into *out; false on overflow or a negative factor. */
bool trn__mul_size(int64_t a, int64_t b, int64_t *out);

/* Shortest text of a double that messages need ("0.5"), locale-free. */
const char *trn__format_double(double value, char *text, size_t size);

/* From libtrn/dispatch: the device of the context's string; sets the error. */
trn_status trn__device_open(trn_context *c, const char *name);
void trn__device_close(trn_context *c);

/* From libtrn/ops: waits for steps in flight and forgets them. */
void trn__flights_end(trn_context *c);

/* From the upper folders, in the order of their opening. */
typedef struct trn__layer {
    trn_status (*open)(trn_context *c);
    void (*close)(trn_context *c);
} trn__layer;
extern const trn__layer *const trn__layers[];
extern const int trn__n_layers;

#endif
