/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph whose order changes: its nodes in a line, and who reads each value.
 *
 * While it is open nodes keep their numbers, whatever is put between them, and
 * values[].node is such a number; trn__order_apply numbers them by the line.  A
 * node may move, and get other inputs, at the cost of what moves: nothing here
 * walks over the whole graph, but opening and applying.
 */
#ifndef TRN_LIBTRN_GRAPH_ORDER_H
#define TRN_LIBTRN_GRAPH_ORDER_H

#include "libtrn/graph/graph_line.h"
#include "libtrn/graph/graph_pass.h"

typedef struct trn__order_node {
    /* Input i is read number TRN__MAX_IN node + i; the neighbours of that read
     * among all reads of the same value. */
    int32_t newer[TRN__MAX_IN], older[TRN__MAX_IN];
    /* for walks and searches, whoever makes one */
    int32_t waiting, chain, round, copy;
} trn__order_node;

typedef struct trn__order {
    trn_graph *g;
    trn__line line;
    trn__order_node *at; /* by node */
    int32_t *reads;      /* by value: its newest read, -1: none */
    int32_t room_nodes, room_values;
    int32_t round;
} trn__order;

/* After a failure only close may be called; close is always needed. */
trn_status trn__order_open(trn__order *o, trn_graph *g);
trn_status trn__order_apply(trn__order *o);
void trn__order_close(trn__order *o);

/* Puts `node` before node p (-1: at the end): its first output, or -1. */
int32_t trn__order_insert(trn__order *o, int32_t p, const trn__graph_node *node,
                          int n_out, const trn_arg *out);
/* Puts a copy of value v before node p: the copy, or -1. */
int32_t trn__order_insert_copy(trn__order *o, int32_t p, int32_t v);
/* Input i of node q becomes v; -1: it is none any more. */
void trn__order_rewire(trn__order *o, int32_t q, int i, int32_t v);
/* The n nodes first, at[first].chain, .. in the order of the line; NULL with
 * the error raised.  For trn__free. */
int32_t *trn__order_sorted(trn__order *o, int32_t first, int32_t n);

static inline bool trn__order_behind(const trn__order *o, int32_t q, int32_t p)
{
    return trn__line_behind(&o->line, q, p);
}

/* A walk over the reads of a value and of the views of it, and of theirs. */
typedef struct trn__order_walk {
    int32_t read;    /* the next one */
    int32_t waiting; /* views whose readers are still to come */
} trn__order_walk;

trn__order_walk trn__order_readers(const trn__order *o, int32_t v);
/* The next node that reads, or -1; one that reads twice may come twice. */
int32_t trn__order_next(trn__order *o, trn__order_walk *w);

#endif
