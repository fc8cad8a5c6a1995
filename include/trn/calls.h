/* SPDX-License-Identifier: Apache-2.0
 *
 * What a device is called with: operands, calls of ops, graphs, executions.
 * A part of trn/backend.h, which says what holds for all of it.
 *
 * trn_arg, trn_op_report and TRN_MAX_RANK are fixed for ever: they have no size
 * of their own and stand inside of other structs.  What comes to an operand
 * goes to the end of trn_graph_value or into a new accessor; trn_outcome grows
 * behind `report`.
 */
#ifndef TRN_CALLS_H
#define TRN_CALLS_H

#include "trn/attrs.h"
#include "trn/types.h"

TRN_BEGIN_DECLS

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
 * One call of an op, or a question about one (trn_backend.supports).  Shapes
 * and dtypes have been checked against the op's row, outputs are allocated and
 * contiguous; inputs may have any strides (0 where broadcast).  VIEW rows never
 * come here.  UPDATE rows have no outputs: they overwrite the inputs named in
 * the row, which are contiguous.  Inputs of BINARY, COMPARE and where rows are
 * already expanded to the output's shape, and all float or all integer of one
 * dtype (where: inputs 1 and 2; its input 0 is bool).
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
    uint64_t hash;        /* structural; equal in every process, not a key
                             across versions of libtrn */
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
    /* NULL in these: the value has no elements */
    trn_buffer *const *inputs;  /* an aliased output's input: written */
    trn_buffer *const *outputs; /* of an aliased output: its input's buffer */
    const double *scalars;
    const uint64_t (*draws)[2]; /* key, draw */
} trn_execution;

/* What became of an execution.  If it failed, all that it would have
 * overwritten is as before, or inputs_lost is set; outputs of its own hold
 * anything. */
typedef struct trn_outcome {
    uint32_t size;
    int32_t status;
    int32_t node;         /* that failed, -1: not known */
    uint32_t inputs_lost; /* the written inputs hold no value any more */
    trn_op_report report;
} trn_outcome;

TRN_END_DECLS

#endif
