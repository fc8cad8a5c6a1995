/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop device: a test device that understands whole steps only and runs
 * them behind the program's back, on a thread and in memory of its own.
 *
 * It stands for an accelerator without being one.  Its handles lie in a range
 * that the host may not touch, its worker sees the same memory elsewhere; it is
 * asynchronous; it fails on request.  Its arithmetic is the host's reference
 * kernels.  loop_options.c has its options, loop_queue.c the worker.
 */
#ifndef TRN_BACKENDS_LOOP_H
#define TRN_BACKENDS_LOOP_H

#include <pthread.h>

#include "trn/backend.h"

/* The entries that are counted and may be made to fail. */
#define TRN__LOOP_ENTRIES(X) \
    X(open)                  \
    X(close)                 \
    X(alloc)                 \
    X(free)                  \
    X(write)                 \
    X(read)                  \
    X(compile)               \
    X(execute)               \
    X(wait)                  \
    X(poll)                  \
    X(release)               \
    X(supports)              \
    X(lost) /* an execute that destroys the inputs it writes */

typedef enum trn__loop_entry {
#define X(name) TRN__LOOP_##name,
    TRN__LOOP_ENTRIES(X)
#undef X
        TRN__LOOP_N_ENTRIES
} trn__loop_entry;

#define TRN__LOOP_MAX_FAULTS 8

typedef struct trn__loop_options {
    bool strict;              /* no f64, no i64 */
    bool lacks[TRN_OP_LIMIT]; /* ops that `supports` denies */
    uint32_t compile_ms, execute_ms;
    uint32_t queue; /* executions in flight: 1, 2 */
    uint32_t n_faults;
    struct {
        uint32_t entry;
        uint64_t call; /* from 1 */
    } fault[TRN__LOOP_MAX_FAULTS];
} trn__loop_options;

/* One file, mapped twice. */
typedef struct trn__loop_pool {
    int fd;
    char *host_base;   /* PROT_NONE: what handles point into */
    char *worker_base; /* the same bytes, readable and writable */
    uint64_t reserved; /* bytes of each mapping */
    uint64_t file_bytes;
    uint64_t top;        /* blocks lie below */
    uint64_t first_free; /* offset of a block; 0: none */
} trn__loop_pool;

typedef struct trn__loop_value {
    trn_arg arg; /* layout within the memory of `base` */
    int32_t base;
    int32_t input;  /* of the graph, or -1 */
    uint64_t bytes; /* of the memory, if it is a base */
    int64_t at;     /* of a base that is no input: its place in the arena */
    int32_t last;   /* of a base: the last node that needs it */
} trn__loop_value;

typedef struct trn__loop_node {
    trn_graph_node as_given; /* attrs: our copy */
    uint32_t writes;         /* of the op's row */
    bool idle;               /* a view of memory that exists: nothing to run */
} trn__loop_node;

typedef struct trn__loop_output {
    int32_t value, alias;
    int64_t staged; /* place in the arena where it waits for the end, or -1 */
    bool same;      /* it is the input whose memory it takes over */
} trn__loop_output;

struct trn_program {
    trn_graph_info info;
    trn__loop_node *nodes;
    trn__loop_value *values;
    int32_t *inputs; /* value of each input */
    trn__loop_output *outputs;
    char *attrs;
    uint64_t arena_bytes, undo_bytes;
    trn_buffer *arena; /* executions run one after the other and share it */
};

/* An execution, from execute to wait. */
typedef struct trn__loop_job {
    struct trn__loop_job *next;
    uint64_t ticket;
    const trn_program *program;
    trn_buffer **inputs, **outputs;
    double *scalars;
    uint64_t (*draws)[2];
    trn_buffer *undo; /* room for the inputs that it writes, if it may have to
                         put them back; else NULL */
    uint32_t fault;   /* TRN__LOOP_execute, TRN__LOOP_lost, or 0 */
    bool committed;
    bool done;
    trn_outcome outcome;
} trn__loop_job;

struct trn_device {
    const trn_host_services *host;
    trn__loop_options options;
    trn__loop_pool pool;
    uint64_t calls[TRN__LOOP_N_ENTRIES];
    uint64_t next_ticket;
    char description[64];
    /* shared with the worker, under the lock */
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    pthread_t worker;
    trn__loop_job *jobs; /* that wait has not told about, oldest first */
    uint32_t n_pending;  /* of those, not done */
    uint64_t failed;     /* the ticket that failed first, 0: none; all behind it
                            are cancelled until wait has told about it */
    bool stop;
};

/* loop_options.c */
int32_t trn__loop_parse(const trn_host_services *host, const char *text,
                        trn__loop_options *out);
/* Counts a call; true when it is one that shall fail. */
bool trn__loop_call(trn_device *dev, trn__loop_entry entry);
bool trn__loop_may_fail(const trn_device *dev, trn__loop_entry entry);
void trn__loop_count(const char *name); /* further counters */
void trn__loop_sleep(uint32_t ms);
int32_t trn__loop_fail(trn_device *dev, int32_t status, const char *text);

/* loop_memory.c */
bool trn__loop_pool_open(trn__loop_pool *p);
void trn__loop_pool_close(trn__loop_pool *p);
trn_buffer *trn__loop_pool_alloc(trn__loop_pool *p, uint64_t bytes);
void trn__loop_pool_free(trn__loop_pool *p, trn_buffer *buffer);
/* A number for type and shape, never 0; that of the tensor a block was asked
 * for (alloc_like), 0: it may be any. */
uint64_t trn__loop_form(const trn_arg *arg);
uint64_t *trn__loop_form_of(const trn__loop_pool *p, const trn_buffer *buffer);
/* Where the worker finds a handle's memory. */
char *trn__loop_address(const trn__loop_pool *p, const trn_buffer *buffer);

/* loop_program.c, loop_plan.c */
int32_t trn__loop_compile(trn_device *dev, const trn_graph *graph,
                          trn_program **program);
void trn__loop_release(trn_device *dev, trn_program *program);
bool trn__loop_plan(trn_device *dev, trn_program *p); /* false: no memory */

/* loop_run.c: by the worker */
void trn__loop_run(trn_device *dev, trn__loop_job *job);
/* Puts the inputs that a job wrote back to what they were. */
void trn__loop_undo(trn_device *dev, const trn__loop_job *job);

/* loop_queue.c */
bool trn__loop_queue_open(trn_device *dev);
void trn__loop_queue_close(trn_device *dev);
/* Until no execution is in flight that uses the buffer (NULL: any, program:
 * that runs it; NULL: any). */
void trn__loop_drain(trn_device *dev, const trn_buffer *buffer,
                     const trn_program *program);
int32_t trn__loop_execute(trn_device *dev, trn_program *program,
                          const trn_execution *e, uint64_t *ticket);
int32_t trn__loop_wait(trn_device *dev, uint64_t ticket, trn_outcome *outcome);
int32_t trn__loop_poll(trn_device *dev, uint64_t ticket);

static inline uint64_t trn__loop_size(uint32_t dtype)
{
    static const uint8_t size[] = {0,
#define X(name, code, text, bytes) bytes,
                                   TRN_DTYPE_LIST(X)
#undef X
    };
    return size[dtype];
}

#endif
