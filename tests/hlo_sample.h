/* SPDX-License-Identifier: Apache-2.0
 *
 * A sound module in which nearly every kind of opcode is there once.
 */
#ifndef TRN_TESTS_HLO_SAMPLE_H
#define TRN_TESTS_HLO_SAMPLE_H

#include "hlo_modules.h"

/* Numbers of its instructions, which keep this order. */
enum {
    S_X,
    S_W,
    S_I,
    S_HALF,
    S_DOT,
    S_HALVES,
    S_SUM,
    S_MORE,
    S_SELECT,
    S_REDUCE,
    S_GATHER,
    S_SCATTER,
    S_TRANSPOSE,
    S_SLICE,
    S_PAD,
    S_CONCATENATE,
    S_RESHAPE,
    S_IOTA,
    S_CONVERT,
    S_NEGATE,
    S_AND,
    S_SHIFT,
    S_COPY,
    S_ROOT,
};

static inline trn__hlo_list *sample_list(hlo_world *w, int32_t i, int list)
{
    return &w->insts[i].list[list];
}

static inline void sample_products(hlo_world *w)
{
    param(w, SHAPE(F32, 2, 3));
    param(w, SHAPE(F32, 3, 4));
    param(w, SHAPE(S32, 2));
    constant_f32(w, 0.5f);
    PUT(w, DOT, SHAPE(F32, 2, 4), S_X, S_W);
    *sample_list(w, S_DOT, 0) = LIST(1);
    *sample_list(w, S_DOT, 1) = LIST(0);
    PUT(w, BROADCAST, SHAPE(F32, 2, 4), S_HALF);
    PUT(w, ADD, SHAPE(F32, 2, 4), S_DOT, S_HALVES);
    PUT(w, COMPARE, SHAPE(PRED, 2, 4), S_SUM, S_HALVES);
    w->insts[S_MORE].number = TRN__HLO_GT;
    PUT(w, SELECT, SHAPE(F32, 2, 4), S_MORE, S_SUM, S_HALVES);
    PUT(w, REDUCE, SHAPE(F32, 2), S_SELECT, S_HALF);
    *sample_list(w, S_REDUCE, 0) = LIST(1);
    w->insts[S_REDUCE].helper = helper(w, TRN__HLO_OP_ADD, TRN__HLO_F32);
}

static inline void sample_index(hlo_world *w)
{
    PUT(w, GATHER, SHAPE(F32, 2, 4), S_W, S_I);
    *sample_list(w, S_GATHER, 0) = LIST(1);
    *sample_list(w, S_GATHER, 1) = LIST(0);
    *sample_list(w, S_GATHER, 2) = LIST(0);
    *sample_list(w, S_GATHER, 3) = LIST(1, 4);
    w->insts[S_GATHER].number = 1;
    PUT(w, SCATTER, SHAPE(F32, 3, 4), S_W, S_I, S_GATHER);
    *sample_list(w, S_SCATTER, 0) = LIST(1);
    *sample_list(w, S_SCATTER, 1) = LIST(0);
    *sample_list(w, S_SCATTER, 2) = LIST(0);
    w->insts[S_SCATTER].number = 1;
    w->insts[S_SCATTER].helper = helper(w, TRN__HLO_OP_COPY, TRN__HLO_F32);
}

static inline void sample_moves(hlo_world *w)
{
    PUT(w, TRANSPOSE, SHAPE(F32, 3, 2), S_X);
    *sample_list(w, S_TRANSPOSE, 0) = LIST(1, 0);
    PUT(w, SLICE, SHAPE(F32, 2, 1), S_TRANSPOSE);
    *sample_list(w, S_SLICE, 0) = LIST(0, 1);
    *sample_list(w, S_SLICE, 1) = LIST(3, 2);
    *sample_list(w, S_SLICE, 2) = LIST(2, 1);
    PUT(w, PAD, SHAPE(F32, 3, 3), S_SLICE, S_HALF);
    *sample_list(w, S_PAD, 0) = LIST(1, 0);
    *sample_list(w, S_PAD, 1) = LIST(-1, 2);
    *sample_list(w, S_PAD, 2) = LIST(1, 0);
    PUT(w, CONCATENATE, SHAPE(F32, 5, 3), S_X, S_PAD);
    *sample_list(w, S_CONCATENATE, 0) = LIST(0);
    PUT(w, RESHAPE, SHAPE(F32, 15), S_CONCATENATE);
}

static inline void sample_begin(hlo_world *w)
{
    world_begin(w);
    sample_products(w);
    sample_index(w);
    sample_moves(w);
    put(w, TRN__HLO_OP_IOTA, SHAPE(S32, 2, 3), 0, NULL);
    *sample_list(w, S_IOTA, 0) = LIST(1);
    PUT(w, CONVERT, SHAPE(F32, 2, 3), S_IOTA);
    PUT(w, NEGATE, SHAPE(F32, 2, 3), S_X);
    PUT(w, AND, SHAPE(S32, 2), S_I, S_I);
    PUT(w, SHIFT_LEFT, SHAPE(S32, 2), S_I, S_AND);
    PUT(w, COPY, SHAPE(F32, 3, 4), S_W);
    ROOT(w, S_REDUCE, S_SCATTER, S_NEGATE, S_RESHAPE, S_CONVERT, S_SHIFT,
         S_COPY);
    take_over(w, 1, 1);
    take_over(w, 2, 0);
}

#endif
