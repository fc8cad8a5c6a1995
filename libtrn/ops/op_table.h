/* SPDX-License-Identifier: Apache-2.0
 *
 * The op table as data, the rules that its rows promise, and applying a call.
 *
 * Every prototype here is an expansion of ops.def: a row without its rule fails
 * the link with the rule's name.
 */
#ifndef TRN_LIBTRN_OP_TABLE_H
#define TRN_LIBTRN_OP_TABLE_H

#include "libtrn/dispatch/dispatch.h"
#include "trn/ops.h"

typedef enum trn__op_class {
    TRN__CLASS_UNARY,
    TRN__CLASS_BINARY,
    TRN__CLASS_COMPARE,
    TRN__CLASS_VIEW,
    TRN__CLASS_REDUCE,
    TRN__CLASS_RANDOM,
    TRN__CLASS_UPDATE,
    TRN__CLASS_SPECIAL
} trn__op_class;

/* Shape and type of the output; false with the error raised.  It may look at
 * shapes, types and STATIC attributes only: a matched call does not run it.
 * What depends on more is checked by trn__check_inputs or the public call. */
typedef bool trn__infer_fn(const trn__call *k, trn__desc *out);
/* Strides and offset of a view; out has the inferred shape already. */
typedef void trn__view_fn(const trn__call *k, trn_arg *out);
/* The call in primitives, by public ops.  UPDATE rows write by trn_assign and
 * return their first input. */
typedef trn_tensor *trn__decompose_fn(const trn__call *k);
/* gin[i] = gradient for input i (shape and dtype of it), NULL where none. */
typedef void trn__grad_fn(const trn__call *k, trn_tensor *g, trn_tensor **gin);

typedef struct trn__op_info {
    const char *name;
    trn__op_class cls;
    uint8_t n_in;
    uint8_t writes;
    uint8_t n_values;
    uint32_t attrs_size;
    bool differentiable;
    uint32_t saves;
    trn__infer_fn *infer;
    trn__view_fn *view;           /* VIEW rows */
    trn__decompose_fn *decompose; /* COMP rows */
    trn__grad_fn *grad;           /* DIFF rows */
    const char *attrs, *domain, *formula;
} trn__op_info;

/* By id; name is NULL where there is no row. */
extern const trn__op_info trn__ops[TRN_OP_LIMIT];

#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    trn__infer_fn trn__infer_##nm;                                            \
    trn__view_fn trn__view_##nm;                                              \
    trn__decompose_fn trn__decompose_##nm;                                    \
    trn__grad_fn trn__grad_##nm;
#include "trn/ops.def"
trn__infer_fn trn__infer_unary, trn__infer_binary, trn__infer_compare,
    trn__infer_reduce, trn__infer_update;

/*
 * Applies call k: checks, infers, makes the output, runs it, records it.
 *
 * k->c may be NULL when there are inputs.  On success k->out is the result and
 * returned (UPDATE rows: k->in[0]); NULL with the error raised otherwise.
 */
trn_tensor *trn__apply(trn__call *k);

/* A call of op on x, without attributes. */
trn_tensor *trn__apply1(uint32_t op, trn_tensor *x);

/* Begins a call: attributes point at the caller's struct. */
trn__call trn__call_of(uint32_t op, trn_tensor *x, trn_tensor *y,
                       const void *attrs, uint32_t attrs_size);

/* Inputs are there, of one context, alive; the context has no error. */
trn_status trn__check_inputs(trn__call *k);

/* VALUE attribute i of a call as a rank-0 tensor of x's compute type. */
trn_tensor *trn__value(const trn__call *k, int i, const trn_tensor *x);
/* x times VALUE attribute i of a call. */
trn_tensor *trn__mul_value(trn_tensor *x, const trn__call *k, int i);

/* Axis in [-rank, rank) to [0, rank); -1 with the error raised. */
int trn__axis(trn_context *c, const char *what, const trn_tensor *x, int axis);

/* x itself if it has that shape, else trn_expand() of it. */
trn_tensor *trn__expanded(trn_tensor *x, int rank, const int64_t *shape);

/* Both of one type and one shape, by casts and views; false with the error
 * raised. */
bool trn__meet(uint32_t op, trn_tensor **x, trn_tensor **y);

/* 0 and 1 of x's type in x's shape, without memory of that size. */
trn_tensor *trn__zeros_like(trn_tensor *x);
trn_tensor *trn__constant_like(trn_tensor *x, double value);

/* x, or a function of it, as a factor of g: 0 where it is not finite and g is
 * 0, as the branch that a `where` further on did not take has it. */
trn_tensor *trn__factor_of(trn_tensor *g, trn_tensor *x);
/* The same of input i in the type that it is computed in. */
trn_tensor *trn__factor_of_input(const trn__call *k, int i, trn_tensor *g);

/* x as f32 if it is bf16 or f16; back to `dtype`. */
trn_tensor *trn__up(trn_tensor *x);
trn_tensor *trn__down(trn_tensor *x, uint32_t dtype);

/* Does nothing and returns false if k's input i is not of a float type
 * (raises); the same for integer index types. */
bool trn__want_float(const trn__call *k, int i);
bool trn__want_index(const trn__call *k, int i);

/* Grad mode: returns what it was. */
bool trn__grad_mode(trn_context *c, bool on);

#endif
