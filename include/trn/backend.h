/* SPDX-License-Identifier: Apache-2.0
 *
 * What a device is: a table of functions, and the services the host offers it.
 *
 * A device includes this header and nothing else of libtrn; it may live in a
 * shared object of its own.  What it is called with stands in trn/calls.h.
 *
 * This table is frozen: a device built with an older header goes on working.
 * Structs start with their size and grow at their ends only; what has no size
 * never changes.  An entry or field past the end of the other side's struct is
 * not there: of the services a device uses what lies within host->size and is
 * not NULL, into a struct it writes what lies within its size.  Enums travel as
 * uint32_t, statuses as int32_t (enum trn_status).  docs/devices.md logs each
 * change.
 *
 * Threads.  A trn_device is called by one thread at a time.  Services are for
 * that thread, while it is inside of an entry; a device's own threads may call
 * reference_op and nothing else: neither alloc nor log is safe there.
 *
 * Executions.  One is in flight from execute until wait has told its outcome:
 *   - at most one, with ASYNC two.  They run in the order of execute; the
 *     second may use and overwrite what the first writes.
 *   - The host waits once for each ticket, the oldest first, also after a
 *     failure.  What is behind a failed execution does not run and fails with
 *     TRN_ERR_CANCELLED; before all of that has been told, nothing is executed.
 *   - Meanwhile every entry but run_op and close may be called, but a buffer
 *     that an execution in flight uses is not written, read or freed, and its
 *     program is not released.
 *   - close is the last call: nothing is in flight, all buffers are freed and
 *     all programs released.
 */
#ifndef TRN_BACKEND_H
#define TRN_BACKEND_H

#include "trn/calls.h"

TRN_BEGIN_DECLS

#define TRN_BACKEND_VERSION 1u

/* Capabilities; each changes what the core does. */
#define TRN_CAP_EAGER 1u       /* has run_op */
#define TRN_CAP_HOST_MEMORY 2u /* a trn_buffer * is a host address */
#define TRN_CAP_GRAPH 4u       /* has compile .. release: takes whole steps */
#define TRN_CAP_ASYNC 8u       /* execute returns before the work is done */
#define TRN_CAP_HOST_NODES 16u /* programs may hold nodes for the host */

/* Work on items [begin, end), called from several threads. */
typedef void (*trn_range_fn)(void *arg, int64_t begin, int64_t end);

/* What the host offers; `host` is the first argument of every entry. */
typedef struct trn_host_services {
    uint32_t size;
    uint32_t version;
    void *host;
    /* 64-byte aligned memory, counted by the context; NULL: out of memory */
    void *(*alloc)(void *host, size_t bytes);
    void (*dealloc)(void *host, void *memory);
    /* splits [0, n) at multiples of grain over the context's threads */
    void (*parallel_for)(void *host, int64_t n, int64_t grain, trn_range_fn fn,
                         void *arg);
    int32_t (*n_threads)(void *host);
    void (*log)(void *host, uint32_t level, const char *text);
    /* an option by name, NULL if not set: "cpu_isa", "reference_isa" (the set
     * of the kernels behind reference_op: "avx2"), and what the program has set
     * for devices (trn_options.device_options, and TRN_MATMUL for "matmul") */
    const char *(*option)(void *host, const char *name);
    /* leaves `message` as the context's error, unless one is pending; returns
     * `status` */
    int32_t (*fail)(void *host, int32_t status, const char *message);
    /* graphs, while compile runs; false: no such number */
    bool (*graph_info)(const trn_graph *g, trn_graph_info *out);
    bool (*graph_node)(const trn_graph *g, int32_t i, trn_graph_node *out);
    bool (*graph_value)(const trn_graph *g, int32_t i, trn_graph_value *out);
    bool (*graph_output)(const trn_graph *g, int32_t i, trn_graph_output *out);
    /* the value that is input i of the graph */
    int32_t (*graph_input)(const trn_graph *g, int32_t i);
    /* runs a call by the reference kernels on host memory: each buffer is a
     * host address.  VIEW rows copy.  Any thread; calls wait for each other */
    int32_t (*reference_op)(void *host, const trn_op_call *call);
    /* keeps the context's threads awake between parallel_for calls */
    void (*region_begin)(void *host);
    void (*region_end)(void *host);
    bool (*graph_scalar)(const trn_graph *g, int32_t i, trn_graph_scalar *out);
    /* does reference_op take this call?  Composites without a kernel it does
     * not; the question is that of `supports`, from any thread */
    bool (*reference_supports)(void *host, const trn_op_call *call);
#define TRN_HAS_REFERENCE_SUPPORTS 1
} trn_host_services;

/* One entry for a device in a shared object: TRN_PLUGIN_ENTRY.  Gives the
 * device's table, which must stay valid; NULL with nothing else. */
typedef struct trn_backend trn_backend;
typedef const trn_backend *(*trn_plugin_fn)(uint32_t host_version);
#define TRN_PLUGIN_ENTRY "trn_plugin_backend"

struct trn_backend {
    uint32_t size;
    uint32_t version;
    const char *name;
    uint32_t caps;
    uint32_t stores;   /* TRN_DTYPE_BITs that its memory holds */
    uint32_t computes; /* TRN_DTYPE_BITs that its ops accept */

    /* REQUIRED */
    /* `argument` is what follows ':' in the device string, or "" */
    int32_t (*open)(const trn_host_services *host, const char *argument,
                    trn_device **device);
    void (*close)(trn_device *device);
    /* at least `bytes` (> 0) bytes, NULL when out of memory */
    trn_buffer *(*alloc)(trn_device *device, uint64_t bytes);
    void (*free)(trn_device *device, trn_buffer *buffer);
    /* [offset, offset + bytes) of the buffer, bytes > 0; done, and `data`
     * copied, when they return */
    int32_t (*write)(trn_device *device, trn_buffer *buffer, uint64_t offset,
                     const void *data, uint64_t bytes);
    int32_t (*read)(trn_device *device, const trn_buffer *buffer,
                    uint64_t offset, void *data, uint64_t bytes);

    /* EAGER */
    int32_t (*run_op)(trn_device *device, const trn_op_call *call);

    /* GRAPH: all but poll */
    /* the graph is valid during the call only */
    int32_t (*compile)(trn_device *device, const trn_graph *graph,
                       trn_program **program);
    /* *ticket names the execution until wait has told its outcome.  An error:
     * there is no ticket, nothing has begun, nothing is overwritten.  All that
     * `e` points to, buffers excepted, may vanish when the call returns */
    int32_t (*execute)(trn_device *device, trn_program *program,
                       const trn_execution *e, uint64_t *ticket);
    /* blocks until that execution is done, forgets the ticket, returns
     * outcome->status.  Should they differ, an error in either is one, and
     * outcome->status counts first */
    int32_t (*wait)(trn_device *device, uint64_t ticket, trn_outcome *outcome);
    /* OPTIONAL, here for the order of fields: has it been done?  1, 0.  The
     * core waits and does not ask. */
    int32_t (*poll)(trn_device *device, uint64_t ticket);
    void (*release)(trn_device *device, trn_program *program);

    /* OPTIONAL */
    /*
     * Does run_op (or a graph) take this call?  NULL: yes, every one of an id
     * below op_limit.  VIEW rows, and ids from there on, are not asked for.
     *
     * The call has op, attributes, inputs and outputs (none of UPDATE rows)
     * with dtype, rank and shape.  n_values, key and draw are 0, values and
     * report NULL, buffers, offsets and strides without meaning.  The answer
     * depends on op, attributes, types and shapes alone and stays the same.
     *
     * After open the host asks which types of `stores` this device has: by
     * `copy` with in[0] == out[0], rank 0 and attrs NULL, which is no call.
     */
    bool (*supports)(trn_device *device, const trn_op_call *call);
    /* one line about what runs ("avx2"); NULL: the name alone */
    const char *(*describe)(trn_device *device);
    /* memory that an execution takes beside its buffers, exactly; the plan
     * shows it.  NULL: the graph's arena_bytes */
    uint64_t (*program_bytes)(trn_device *device, trn_program *program);
    /* memory for a contiguous tensor of this type and shape; NULL: alloc */
    trn_buffer *(*alloc_like)(trn_device *device, const trn_arg *like,
                              uint64_t bytes);
    /* TRN_OP_KNOWN: op ids below this existed when the device was built. Others
     * are decomposed or refused and never come to it.  0 or absent: 94, the
     * ids of the freeze */
    uint32_t op_limit;
    /* has all that it computes the bits of reference_op?  NULL: it need not */
    bool (*reproducible)(trn_device *device);
#define TRN_HAS_REPRODUCIBLE 1
};

TRN_END_DECLS

#endif
