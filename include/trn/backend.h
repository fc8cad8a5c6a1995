/* SPDX-License-Identifier: Apache-2.0
 *
 * What a device is: a table of functions, and the services the host offers it.
 *
 * A device includes this header and nothing else of libtrn; it may live in a
 * shared object of its own.  Structs grow only at their end and start with
 * their size; enums travel as uint32_t, statuses as int32_t (enum trn_status).
 * A device is called by one thread at a time per trn_device.
 *
 * This table is frozen: it grows at the ends of its structs only, and a device
 * built with an older header goes on working; docs/devices.md logs each change.
 */
#ifndef TRN_BACKEND_H
#define TRN_BACKEND_H

#include "trn/attrs.h"
#include "trn/types.h"

TRN_BEGIN_DECLS

#define TRN_BACKEND_VERSION 1u

/* Capabilities; each changes what the core does. */
#define TRN_CAP_EAGER 1u       /* has run_op */
#define TRN_CAP_HOST_MEMORY 2u /* a trn_buffer * is a host address */
#define TRN_CAP_GRAPH 4u       /* has compile .. release: takes whole steps */
#define TRN_CAP_ASYNC 8u       /* execute returns before the work is done */
#define TRN_CAP_HOST_NODES 16u /* programs may hold nodes for the host */

typedef struct trn_device trn_device; /* one open device, made by the backend */
typedef struct trn_buffer trn_buffer; /* memory of a device, made by it */
typedef struct trn_program trn_program; /* a compiled graph, made by it */
typedef struct trn_graph trn_graph;     /* the host's; read by accessors */

/* A tensor operand: element i is at offset + sum of i_d stride_d (elements). */
typedef struct trn_arg {
    trn_buffer *buffer;
    uint32_t dtype;
    uint32_t rank;
    int64_t offset;
    int64_t shape[TRN_MAX_RANK];
    int64_t stride[TRN_MAX_RANK];
} trn_arg;

/* What a device found wrong with a value that the host could not see. */
typedef enum trn_report_kind {
    TRN_REPORT_NONE = 0,
    TRN_REPORT_INDEX = 1,        /* value outside [0, limit) */
    TRN_REPORT_ZERO_DIVISOR = 2, /* integer division by zero */
    TRN_REPORT_NOT_FINITE = 3    /* infinity or NaN */
} trn_report_kind;

typedef struct trn_op_report {
    uint32_t kind;
    uint32_t input;   /* which input holds the value */
    int64_t position; /* row-major index in that input; the lowest one */
    int64_t value;
    int64_t limit;
} trn_op_report;

/*
 * One call of an op.  Shapes and dtypes have been checked against the op's
 * row, outputs are allocated and contiguous; inputs may have any strides
 * (0 where broadcast).  VIEW rows never come here.  UPDATE rows have no
 * outputs: they overwrite the inputs named in the row, which are contiguous.
 * Inputs of BINARY, COMPARE and where rows are already expanded to the
 * output's shape, and all float or all integer of one dtype (where: inputs 1
 * and 2; its input 0 is bool).
 */
typedef struct trn_op_call {
    uint32_t size;
    uint32_t op; /* enum trn_op */
    uint32_t n_in;
    uint32_t n_out;
    const trn_arg *const *in;
    const trn_arg *const *out;
    const void *attrs; /* struct trn_<attrs>_attrs */
    uint32_t attrs_size;
    uint32_t n_values;
    const double *values; /* VALUE attributes, in the row's order */
    uint64_t key;  /* RANDOM rows: Philox key of the generator's stream */
    uint64_t draw; /* RANDOM rows: number of the draw */
    trn_op_report *report;
} trn_op_call;

/*
 * A graph: a step as a list of nodes in an order that may be run as it stands.
 *
 * Values are numbered from 0.  A value is an input of the graph or an output of
 * a node, and is made once; an UPDATE row's node gives a new value for each
 * input that it overwrites (in the order of the bits of the row's `writes`).
 * Scalars are the VALUE attributes of the nodes: host doubles that come with
 * each execution.  Draws are the (key, draw) pairs of the RANDOM nodes.
 */
typedef struct trn_graph_info {
    uint32_t size;
    int32_t n_nodes;
    int32_t n_values;
    int32_t n_inputs;
    int32_t n_outputs;
    int32_t n_scalars;
    int32_t n_draws;
    int32_t n_groups;     /* fusion groups */
    uint64_t arena_bytes; /* memory plan: for all values with arena_at >= 0 */
    uint64_t hash;        /* structural; equal in every process */
} trn_graph_info;

typedef struct trn_graph_value {
    uint32_t size;
    int32_t node;   /* that makes it, -1: an input of the graph */
    int32_t input;  /* its number, if it is an input; else -1 */
    trn_arg arg;    /* dtype, rank, shape; offset and stride within `base`;
                       buffer is NULL */
    int32_t base;   /* the value whose memory it lies in: itself, or for a view
                       what it is a view of */
    int32_t state;  /* its memory is that of this input (an overwritten state or
                       an output that replaces it in place), else -1 */
    int32_t output; /* the graph's output that it is, else -1 */
    int64_t arena_at; /* byte offset in the arena; -1: not in the arena */
} trn_graph_value;

typedef struct trn_graph_node {
    uint32_t size;
    uint32_t op; /* enum trn_op */
    uint32_t n_in, n_out;
    int32_t in[8], out[4]; /* the first ones; all are in ins, outs */
    const void *attrs;
    uint32_t attrs_size;
    uint32_t n_scalars;
    int32_t scalar[8];   /* numbers of its VALUE attributes: the first ones */
    int32_t draw;        /* number of its draw, -1: none */
    int32_t group;       /* nodes of one number >= 0 are neighbours in the list,
                            element by element over one shape, and may be run in
                            one pass; -1: alone */
    uint32_t fused_only; /* bit i: output i is used inside the group only */
    uint32_t on_host;    /* 1: to be run by reference_op on host memory, in its
                            place in the program (TRN_CAP_HOST_NODES only) */
    uint32_t origin;     /* the op that the program called: op itself, or the
                            composite that this node is a part of */
    uint32_t checks;     /* 1: it looks at values and may report a bad one */
    /* all n_in, n_out, n_scalars of them; valid as long as the graph.  To a
     * device whose struct ends before these the host refuses a node that has
     * more than in, out or scalar hold. */
    const int32_t *ins, *outs, *scalars;
} trn_graph_node;

/* Scalar i of a graph.  A literal is the same in every execution (a rule's 0 or
 * 1) and may be compiled in; others must not be. */
typedef struct trn_graph_scalar {
    uint32_t size;
    uint32_t is_literal;
    double value; /* of a literal */
} trn_graph_scalar;

/* Output i of a graph: a value, and the input whose memory it takes over. */
typedef struct trn_graph_output {
    uint32_t size;
    int32_t value;
    int32_t alias; /* input number, -1: memory of its own */
} trn_graph_output;

/* What varies from execution to execution, besides buffers. */
typedef struct trn_execution {
    uint32_t size;
    uint32_t n_inputs, n_outputs, n_scalars, n_draws;
    trn_buffer *const *inputs;  /* an aliased output's input: written */
    trn_buffer *const *outputs; /* of an aliased output: its input's buffer */
    const double *scalars;
    const uint64_t (*draws)[2]; /* key, draw */
} trn_execution;

/* What became of an execution. */
typedef struct trn_outcome {
    uint32_t size;
    int32_t status;
    int32_t node;         /* that failed, -1: not known */
    uint32_t inputs_lost; /* the written inputs hold no value any more */
    trn_op_report report;
} trn_outcome;

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
    /* an option by name, NULL if not set: "cpu_isa", and what the program has
     * set for devices (trn_options.device_options) */
    const char *(*option)(void *host, const char *name);
    /* leaves `message` as the context's error, returns `status` */
    int32_t (*fail)(void *host, int32_t status, const char *message);
    /* graphs; false: no such number */
    bool (*graph_info)(const trn_graph *g, trn_graph_info *out);
    bool (*graph_node)(const trn_graph *g, int32_t i, trn_graph_node *out);
    bool (*graph_value)(const trn_graph *g, int32_t i, trn_graph_value *out);
    bool (*graph_output)(const trn_graph *g, int32_t i, trn_graph_output *out);
    /* the value that is input i of the graph */
    int32_t (*graph_input)(const trn_graph *g, int32_t i);
    /* runs a call by the reference kernels on host memory: each buffer is a
     * host address.  VIEW rows copy.  Any thread, one call at a time per host.
     */
    int32_t (*reference_op)(void *host, const trn_op_call *call);
    /* keeps the context's threads awake between parallel_for calls */
    void (*region_begin)(void *host);
    void (*region_end)(void *host);
    bool (*graph_scalar)(const trn_graph *g, int32_t i, trn_graph_scalar *out);
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
    /* checks and prepares; *ticket names the execution until wait has told its
     * outcome.  ASYNC: at most two are in flight, they run in order, and all
     * that `e` points to, buffers excepted, may vanish when the call returns.
     */
    int32_t (*execute)(trn_device *device, trn_program *program,
                       const trn_execution *e, uint64_t *ticket);
    /* blocks until that execution is done; an execution behind a failed one
     * does not run and fails with TRN_ERR_CANCELLED */
    int32_t (*wait)(trn_device *device, uint64_t ticket, trn_outcome *outcome);
    /* OPTIONAL, here for the order of fields: has it been done?  1, 0.  The
     * core waits and does not ask. */
    int32_t (*poll)(trn_device *device, uint64_t ticket);
    void (*release)(trn_device *device, trn_program *program);

    /* OPTIONAL */
    /* does run_op (or a graph) take this call?  NULL: yes, every call */
    bool (*supports)(trn_device *device, const trn_op_call *call);
    /* one line about what runs ("avx2"); NULL: the name alone */
    const char *(*describe)(trn_device *device);
    /* memory that an execution takes beside its buffers, exactly; the plan
     * shows it.  NULL: the graph's arena_bytes */
    uint64_t (*program_bytes)(trn_device *device, trn_program *program);
    /* memory for a contiguous tensor of this type and shape; NULL: alloc */
    trn_buffer *(*alloc_like)(trn_device *device, const trn_arg *like,
                              uint64_t bytes);
};

TRN_END_DECLS

#endif
