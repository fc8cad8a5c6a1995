/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph: one step as data.  Devices read it through the accessors of
 * trn_host_services; the passes here rewrite it.
 *
 * Values and nodes are numbered; nodes stand in an order that may be run as it
 * stands.  Nothing in a graph points into a tensor, so it outlives its trace.
 */
#ifndef TRN_LIBTRN_GRAPH_H
#define TRN_LIBTRN_GRAPH_H

#include "libtrn/graph/tape.h"

#define TRN__MAX_OUT 3

typedef struct trn__graph_value {
    int32_t node, input; /* as in trn_graph_value */
    trn_arg arg;         /* layout within base; buffer NULL */
    int32_t base, state, output;
    int64_t arena_at;
    /* by nodes; the last node that reads its base's memory, -1: none */
    int32_t n_uses, last_use;
} trn__graph_value;

typedef struct trn__graph_node {
    uint32_t op;
    uint8_t n_in, n_out, n_scalars;
    bool dead;
    uint32_t origin; /* the composite that it is a part of; else op */
    bool on_host;    /* by the reference kernel, inside the program */
    int32_t in[TRN__MAX_IN], out[TRN__MAX_OUT];
    uint64_t attrs[TRN__MAX_ATTRS / 8];
    uint32_t attrs_size;
    int32_t scalar[TRN__MAX_VALUES];
    int32_t draw, group;
    uint32_t fused_only;
} trn__graph_node;

/* A scalar that is the same in every execution: a rule's 0 or 1. */
typedef struct trn__graph_literal {
    int32_t scalar;
    double value;
} trn__graph_literal;

typedef struct trn__graph_output {
    int32_t value, alias;
} trn__graph_output;

struct trn_graph {
    trn_context *c;
    trn__graph_node *nodes;
    trn__graph_value *values;
    int32_t *inputs; /* value of input i */
    trn__graph_output *outputs;
    trn__graph_literal *literals; /* by increasing scalar */
    int32_t n_literals, room_literals;
    int32_t n_nodes, n_values, n_inputs, n_outputs, n_scalars, n_draws;
    int32_t room_nodes, room_values, room_inputs, room_outputs;
    int32_t n_groups;
    int32_t n_host; /* nodes placed on the host */
    uint64_t arena_bytes;
    uint64_t hash;
    int64_t work; /* of the passes: what they have looked at, beside walks over
                     the whole graph; it is to grow as the graph does */
};

/* ---- building; all raise when out of memory ---- */

trn_graph *trn__graph_new(trn_context *c);
trn_graph *trn__graph_copy(const trn_graph *g);
void trn__graph_free(trn_graph *g); /* NULL is allowed */
/* A new input of that shape and type: its value, or -1. */
int32_t trn__graph_add_input(trn_graph *g, const trn__desc *desc);
/* Appends a node (its in, op, attrs, scalar, draw are set; n_out and the layout
 * of its outputs are given): the number of its first output, or -1; outputs are
 * numbered one after the other.  VIEW rows: out[0]'s arg holds strides and
 * offset relative to the input's memory. */
int32_t trn__graph_add_node(trn_graph *g, const trn__graph_node *node,
                            int n_out, const trn_arg *out);
/* Scalar s, larger than all literals so far, is always this. */
trn_status trn__graph_add_literal(trn_graph *g, int32_t s, double value);
/* The literal of scalar s, or NULL. */
const trn__graph_literal *trn__graph_literal_of(const trn_graph *g, int32_t s);
trn_status trn__graph_add_output(trn_graph *g, int32_t value, int32_t alias);

/* Equal structure: ops, attributes, wiring, shapes, outputs. */
bool trn__graph_equal(const trn_graph *a, const trn_graph *b);
uint64_t trn__graph_hash(const trn_graph *g);

/* ---- passes ---- */

/*
 * All of them in order, for a device; sets hash, layouts, groups, plan.
 *
 * The hash is taken before anything is rewritten, so it is that of the trace.
 * Nodes and values get new numbers; inputs, outputs, scalars and draws keep
 * theirs.  Then
 * - an output without alias is made whole by a node that is no VIEW or UPDATE,
 *   in the output's own memory; it is no other output;
 * - an output with alias lies in that input's memory, written there by UPDATE
 *   nodes (or it is the input, untouched); no other input is written;
 * - every other value has exactly one place: a base, an input, the arena, or
 *   inside its group (fused_only).  What an UPDATE node makes lies where the
 *   overwritten input lies, and nothing reads that one afterwards.
 * On failure the error is raised, and g may only be freed.
 */
trn_status trn__graph_prepare(trn_graph *g);

/* Has it nodes that check values and report bad ones?  They count as used. */
bool trn__graph_has_checks(const trn_graph *g);
bool trn__op_checks(uint32_t op, uint32_t dtype);
bool trn__graph_node_checks(const trn_graph *g, int32_t node);

/* ---- looking at it ---- */

/* Writes text through `put` piece by piece. */
typedef void trn__put_fn(void *user, const char *text);
void trn__graph_print(const trn_graph *g, trn__put_fn *put, void *user);
void trn__graph_print_dot(const trn_graph *g, trn__put_fn *put, void *user);
/* Floating-point operations of a node, and the bytes that it reads and writes
 * when run alone. */
int64_t trn__graph_node_flops(const trn_graph *g, int32_t node);
int64_t trn__graph_node_bytes(const trn_graph *g, int32_t node);
/* Bytes that the whole graph moves, fused groups in one pass. */
int64_t trn__graph_bytes(const trn_graph *g);

/* The accessors of trn_host_services. */
bool trn__graph_get_info(const trn_graph *g, trn_graph_info *out);
bool trn__graph_get_node(const trn_graph *g, int32_t i, trn_graph_node *out);
/* Gives *node, whose lists are set, to a device; false with the error raised if
 * the device's struct is an older one and does not hold them. */
bool trn__graph_give_node(trn_context *c, trn_graph_node *node,
                          trn_graph_node *out);
bool trn__graph_get_value(const trn_graph *g, int32_t i, trn_graph_value *out);
bool trn__graph_get_output(const trn_graph *g, int32_t i,
                           trn_graph_output *out);
int32_t trn__graph_get_input(const trn_graph *g, int32_t i);
bool trn__graph_get_scalar(const trn_graph *g, int32_t i,
                           trn_graph_scalar *out);

#endif
