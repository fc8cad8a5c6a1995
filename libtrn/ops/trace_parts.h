/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of tracing share among themselves.
 */
#ifndef TRN_LIBTRN_TRACE_PARTS_H
#define TRN_LIBTRN_TRACE_PARTS_H

#include "libtrn/ops/trace.h"

/* A reference to t until the step's end. */
trn_status trn__trace_hold(trn_context *c, trn_tensor *t);
/* Room for the lists that go by slot, scalar, draw, input. */
trn_status trn__trace_room(trn_context *c, const trn_graph *g);
void trn__trace_to_front(trn_context *c, trn__trace *t);
void trn__trace_hash_entry(trn__trace *t, int32_t i);
/* A new trace with the first n entries of `from`, whose handles it takes. */
trn__trace *trn__trace_fork(trn_context *c, trn__trace *from, int32_t n);
/* The prepared result of entry i, which is no view, in this step; that of the
 * VIEW call k. */
trn_tensor *trn__entry_handle(trn_context *c, int32_t i);
trn_tensor *trn__entry_view(trn__call *k, int32_t i);
/* The first tensor that has this slot in this step; NULL if none has. */
trn_tensor *trn__tensor_at(const trn__capture *p, int32_t slot);
/* Which inputs a recorded call needs gradients of: two bits each, 1 for a
 * computed tensor, 2 for a leaf.  0: the call is not recorded. */
uint8_t trn__input_kinds(const trn__call *k, const trn__op_info *info);
/* A prepared view lets go of what it looks at, until it is handed out. */
void trn__view_park(trn_tensor *t);
/* The step ends: nothing that it recorded is of use any more. */
void trn__trace_forget(trn_context *c);
/* The entry whose prepared result t is; -1: none of the current trace. */
int32_t trn__handle_entry(trn_context *c, const trn_tensor *t);
/* Nodes, values and inputs of `from` before entry n, into the empty `to`. */
trn_status trn__trace_copy_graph(const trn__trace *from, int32_t n,
                                 int32_t n_inputs, trn_graph *to);
/* Entry e's result is t from now on; takes over the caller's reference. */
void trn__entry_take(trn__trace *t, int32_t i, trn_tensor *handle);
/* The entry that owns t lets go of it. */
void trn__entry_let_go(trn_tensor *t);
/* From libtrn/autograd: what a walk from root would have freed is freed. */
void trn__walk_consume(trn_context *c, trn_tensor *root);
/* Tensor t, storage s, is that value now; input: its number, -1: made here. */
void trn__give_slot(trn__capture *p, trn_tensor *t, int32_t slot);
void trn__give_storage(trn__capture *p, trn__storage *s, int32_t slot,
                       int32_t input);
/* t, which has no memory, becomes the next input of the trace (body.c). */
trn_status trn__trace_bind_stand_in(trn_context *c, trn_tensor *t);
/* The scalars of calls that a matched walk does not make again. */
void trn__trace_take_literals(trn_context *c);
/* The VIEW call k of input slot `in`, whose result k->out exists: its slot. */
int32_t trn__trace_view(trn__call *k, int32_t in);

/* Tensors in x's memory that only tracing still holds: where ops run at once
 * they are gone. */
int32_t trn__unseen_shares(const trn_context *c, const trn_tensor *x);

/* apply.c: a view of k->in[0], in the current scope; whether k is recorded. */
trn_tensor *trn__make_view(trn__call *k, const trn__op_info *info,
                           const trn__desc *desc);
bool trn__wants_record(const trn__call *k, const trn__op_info *info);

#endif
