/* SPDX-License-Identifier: Apache-2.0
 *
 * A context: the root of everything, its options, its error, its memory.
 *
 * Every object hangs on one context and is freed by trn_close() at the latest.
 * A context is used by one thread at a time; different contexts may be used by
 * different threads at once.  Functions here return trn_status (0, or a
 * negative code) unless they say otherwise.
 */
#ifndef TRN_CONTEXT_H
#define TRN_CONTEXT_H

#include "trn/types.h"

TRN_BEGIN_DECLS

/* How work is spread over threads; the bits are the same for each. */
typedef enum trn_engine {
    TRN_ENGINE_AUTO = 0,   /* OpenMP if an OMP_ variable is set, else pool */
    TRN_ENGINE_POOL = 1,   /* threads of the context's own */
    TRN_ENGINE_OPENMP = 2, /* the process's OpenMP threads */
    TRN_ENGINE_HOST = 3    /* the parallel_for hook of the options */
} trn_engine;

typedef enum trn_log_level {
    TRN_LOG_INFO = 0,
    TRN_LOG_WARNING = 1,
    TRN_LOG_ERROR = 2
} trn_log_level;

/* When ops are run; the bits are the same. */
typedef enum trn_exec {
    TRN_EXEC_AUTO = 0,    /* as the device likes it: the CPU eagerly */
    TRN_EXEC_EAGER = 1,   /* each op at its call */
    TRN_EXEC_CAPTURED = 2 /* the ops of a step as one program, at its end */
} trn_exec;

/* Memory hook: `bytes` bytes aligned as malloc's, or NULL. */
typedef void *(*trn_alloc_fn)(void *user, size_t bytes);
/* Memory hook: takes back what the alloc hook gave; bytes as asked for. */
typedef void (*trn_free_fn)(void *user, void *memory, size_t bytes);
/* Log hook: one line of text without a newline.  The library never prints. */
typedef void (*trn_log_fn)(void *user, trn_log_level level, const char *text);
/* Calls fn(arg, i) once for each i in [0, n_chunks), on any threads, and
 * returns when all calls have returned. */
typedef void (*trn_parallel_for_fn)(void *user, int64_t n_chunks,
                                    void (*fn)(void *arg, int64_t chunk),
                                    void *arg);

/* How far the work of a context is. */
typedef struct trn_progress {
    uint32_t size;         /* sizeof(trn_progress) */
    int64_t steps;         /* that succeeded */
    double seconds;        /* since trn_open() */
    uint64_t bytes_in_use; /* as of trn_memory() */
} trn_progress;
/* Progress hook: false cancels, as trn_cancel() does.  It may call
 * trn_cancel(c) and no other function with its context. */
typedef bool (*trn_progress_fn)(void *user, const trn_progress *p);

/*
 * Options of trn_open.  Start from TRN_OPTIONS_INIT, then override.  A string
 * that is NULL and a number that is 0 leave the choice to the environment
 * variable named beside it, then to the default.
 */
typedef struct trn_options {
    uint32_t size;         /* sizeof(trn_options) */
    const char *device;    /* "cpu", "loop", "pjrt:/path/plugin.so", ...: see
                              docs/devices.md (TRN_DEVICE) */
    const char *cpu_isa;   /* "auto", "generic", "avx2" (TRN_CPU_ISA) */
    int32_t n_threads;     /* 1 .. 1024 (TRN_NUM_THREADS), default: the cores
                              that this process may run on */
    uint32_t engine;       /* trn_engine (TRN_ENGINE: pool, openmp) */
    uint64_t seed;         /* of every generator of the context; default 0 */
    uint32_t batch_blocks; /* reserved: 1 */
    trn_alloc_fn alloc;    /* alloc and free: both or none */
    trn_free_fn free;
    void *memory_user;
    trn_log_fn log;
    void *log_user;
    trn_parallel_for_fn parallel_for; /* for TRN_ENGINE_HOST */
    void *parallel_user;
    uint32_t exec;          /* trn_exec (TRN_EXEC: eager, captured) */
    bool refuse_early_read; /* a value read inside an open step is an error
                               where steps are captured (TRN_EARLY_READ: allow,
                               refuse) */
    bool allow_fallback;    /* ops that a graph device lacks may be run by the
                               host, counted; else they are an error
                               (TRN_FALLBACK: allow, refuse) */
    uint64_t plan_limit; /* bytes that compiled steps may take before the least
                            used are forgotten; 0: 1 GiB */
    const char *device_options; /* "name=value;name=value": what the device
                                   knows (TRN_DEVICE_OPTIONS).  A name is of
                                   letters, digits, '_', '.' and '-' and comes
                                   once, a value has no ';' */
    uint64_t memory_limit; /* bytes of host memory that the context may hold,
                              cached ones included; beyond, what asks for more
                              is TRN_ERR_NOMEM; 0: no limit */
    double deadline;       /* as of trn_set_deadline(); 0: none */
    trn_progress_fn progress;
    void *progress_user;
    double progress_interval; /* least seconds between calls of progress; 0 is
                                 0.1 */
} trn_options;

#define TRN_OPTIONS_INIT                                                     \
    {                                                                        \
        (uint32_t)sizeof(trn_options), NULL, NULL, 0, TRN_ENGINE_AUTO, 0, 1, \
            NULL, NULL, NULL, NULL, NULL, NULL, NULL, TRN_EXEC_AUTO, false,  \
            false, 0, NULL, 0, 0.0, NULL, NULL, 0.0                          \
    }

/*
 * Opens a context.   options: NULL for the defaults
 *
 * As with SQLite, *out is a context even when the call fails, so that
 * trn_errmsg() tells why; close it in either case.  (Only when there is no
 * memory for a context is *out NULL, which every function accepts.)
 * Errors: TRN_ERR_ARG (an option or environment variable that makes no sense,
 *         named in the message), TRN_ERR_UNSUPPORTED (a device, instruction
 *         set or engine that is not there, or a file that is no PJRT plug-in),
 *         TRN_ERR_IO and TRN_ERR_FORMAT (no such file after "plugin:", one
 *         that is no device), TRN_ERR_DEVICE (a PJRT plug-in that is not
 *         there, does not load, or has no hardware), TRN_ERR_NOMEM.
 */
TRN_API trn_status trn_open(trn_context **out, const trn_options *options);

/*
 * Closes a context and frees everything that hangs on it.  NULL is allowed.
 *
 * Returns the error pending at that time, so `return trn_close(c);` ends main.
 */
TRN_API trn_status trn_close(trn_context *c);

/*
 * The pending error.  The first error sticks until trn_clear(): until then
 * calls that make something return NULL, and mutating calls do nothing and
 * return it.  For c NULL: TRN_ERR_NOMEM.
 */
TRN_API trn_status trn_errcode(const trn_context *c);

/* What happened: op or file, the numbers, what was expected.  Valid until the
 * next call with c; "" when no error is pending. */
TRN_API const char *trn_errmsg(const trn_context *c);

/* Forgets the pending error, and a trn_cancel() that no call has met yet.  A
 * context that failed to open keeps its. */
TRN_API void trn_clear(trn_context *c);

/*
 * Asks the work of c to end: the next call that would compute, begin or end a
 * step, or hand out a batch fails with TRN_ERR_CANCELLED, so an open step has
 * not happened.  What runs at this moment (an op, a step on its device, a
 * compilation) is not cut short.
 *
 * The one function that any thread may call, also a signal handler, while
 * another thread uses c; not after trn_close(c) has begun.  trn_clear() forgets
 * it.  NULL is allowed.
 */
TRN_API void trn_cancel(trn_context *c);

/*
 * From `seconds` after this call on the same calls fail with TRN_ERR_DEADLINE,
 * until a later deadline is set; infinity, or 0: none.  It may be set while an
 * error is pending, which it leaves.
 * Errors: TRN_ERR_ARG (negative or NaN), which becomes pending if none is.
 */
TRN_API trn_status trn_set_deadline(trn_context *c, double seconds);

/* The name ("TRN_ERR_SHAPE") and the text of a status; "unknown" if none. */
TRN_API const char *trn_status_name(trn_status status);
TRN_API const char *trn_status_text(trn_status status);

/* The name ("f32") of an element type, or "unknown"; its bytes, or 0. */
TRN_API const char *trn_dtype_name(trn_dtype dtype);
TRN_API size_t trn_dtype_size(trn_dtype dtype);

/* Bytes and blocks that the context holds; all its memory is counted. */
typedef struct trn_memory_info {
    uint32_t size;          /* sizeof(trn_memory_info) */
    uint64_t bytes_in_use;  /* handed out and not yet given back */
    uint64_t bytes_peak;    /* the most that bytes_in_use ever was */
    uint64_t bytes_cached;  /* given back, kept for the next request */
    uint64_t blocks_in_use; /* number of blocks handed out */
    uint64_t blocks_asked;  /* calls of the memory hook so far */
} trn_memory_info;

#define TRN_MEMORY_INFO_INIT                             \
    {                                                    \
        (uint32_t)sizeof(trn_memory_info), 0, 0, 0, 0, 0 \
    }

TRN_API trn_status trn_memory(const trn_context *c, trn_memory_info *out);

/* Gives cached memory back to the memory hook. */
TRN_API trn_status trn_memory_trim(trn_context *c);

/* Lowers bytes_peak to bytes_in_use. */
TRN_API trn_status trn_memory_reset_peak(trn_context *c);

/* What runs: device ("cpu"), its description (the instruction set: "avx2"),
 * thread engine ("pool", "openmp", "host"), number of threads.  Never NULL. */
TRN_API const char *trn_device_name(const trn_context *c);
TRN_API const char *trn_device_description(const trn_context *c);
TRN_API const char *trn_engine_name(const trn_context *c);
TRN_API int trn_thread_count(const trn_context *c);

/*
 * Does what c computes have the bits of trn_numerics_version(), which are the
 * same on every machine and for any number of threads?  On the CPU unless
 * matrix products are OpenBLAS's (TRN_MATMUL); not on a device that computes
 * in an order of its own, as PJRT plug-ins do.  For c NULL: no.
 */
TRN_API bool trn_reproducible(const trn_context *c);

/* The version of the library that runs ("0.1.0"), its numerics version, and
 * one optional part after the other ("openmp", "zlib", "protobuf-c", "hdf5",
 * "openblas") by index from 0, with whether this build has it; NULL past the
 * last. */
TRN_API const char *trn_version(void);
TRN_API const char *trn_numerics_version(void);
TRN_API const char *trn_build_part(int index, bool *present);

TRN_END_DECLS

#endif
