/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers in a line, which move: of two it tells at once which one stands
 * behind the other, by labels that rise along the line.
 */
#ifndef TRN_LIBTRN_GRAPH_LINE_H
#define TRN_LIBTRN_GRAPH_LINE_H

#include "libtrn/graph/graph.h"

typedef struct trn__line_item {
    int64_t label;
    int32_t before, next; /* -1: none */
} trn__line_item;

typedef struct trn__line {
    trn_graph *g; /* whose work is counted */
    trn__line_item *at;
    int32_t first, last; /* -1: none */
    int32_t room;
} trn__line;

/* 0 .. n - 1 in this order.  close is always needed. */
trn_status trn__line_open(trn__line *l, trn_graph *g, int32_t n);
void trn__line_close(trn__line *l);
/* Room for numbers below n; false with the error raised. */
bool trn__line_room(trn__line *l, int32_t n);
/* Puts number q, which is not in the line, before p (-1: at the end). */
void trn__line_insert(trn__line *l, int32_t p, int32_t q);
void trn__line_remove(trn__line *l, int32_t q);
/* Moves n numbers, in this order, right behind `after` (-1: to the front),
 * which is none of them. */
void trn__line_move(trn__line *l, const int32_t *numbers, int32_t n,
                    int32_t after);

static inline bool trn__line_behind(const trn__line *l, int32_t q, int32_t p)
{
    return l->at[q].label > l->at[p].label;
}

/* Puts n numbers into the order of the line; false with the error raised. */
bool trn__line_sort(const trn__line *l, int32_t *numbers, int32_t n);

#endif
