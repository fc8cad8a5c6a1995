/* SPDX-License-Identifier: Apache-2.0
 *
 * The call path: check, infer, run, record.  No op has a special case here.
 */
#include <string.h>

#include "libtrn/ops/capture.h"
#include "libtrn/ops/flight.h"
#include "libtrn/ops/op_table.h"
#include "libtrn/ops/step.h"
#include "libtrn/ops/trace_parts.h"

trn_status trn__check_inputs(trn__call *k)
{
    const trn__op_info *info = &trn__ops[k->op];
    for (int i = 0; i < k->n_in && k->c == NULL; i++)
        k->c = k->in[i] == NULL ? NULL : k->in[i]->c;
    trn_context *c = k->c;
    if (c == NULL)
        return TRN_ERR_NOMEM; /* every input is NULL: no context to tell */
    TRN_TRY(trn__pending(c));
    if (info->writes == 0 && !trn__step_committing(c))
        TRN_TRY(trn__may_go_on(c));
    for (int i = 0; i < k->n_in; i++) {
        if (k->in[i] == NULL)
            return trn__fail(c, TRN_ERR_ARG,
                             "%s: input %d is NULL; expected a tensor",
                             info->name, i);
        TRN_TRY(trn__check_tensor(c, info->name, k->in[i]));
        if (((info->writes >> i) & 1u) && k->in[i]->storage->read_only)
            return trn__fail(c, TRN_ERR_STATE,
                             "%s: %s wraps the caller's memory and cannot be "
                             "written",
                             info->name, trn__describe(&k->in[i]->arg).s);
        if (k->in[i]->storage != NULL && k->in[i]->storage->deferred)
            TRN_TRY(c->tensors->settle(c, k->in[i]));
    }
    return TRN_OK;
}

bool trn__wants_record(const trn__call *k, const trn__op_info *info)
{
    if (k->c->tape->off || !info->differentiable)
        return false;
    for (int i = 0; i < k->n_in; i++) {
        if (trn__needs_grad(k->in[i]) && trn__is_float(k->in[i]->arg.dtype))
            return true;
    }
    return false;
}

trn_tensor *trn__make_view(trn__call *k, const trn__op_info *info,
                           const trn__desc *desc)
{
    trn_tensor *out = trn__tensor_alias(k->in[0]);
    if (out == NULL)
        return NULL;
    out->arg.rank = desc->rank;
    memcpy(out->arg.shape, desc->shape, sizeof desc->shape);
    info->view(k, &out->arg);
    if (out->view != NULL) {
        out->view->op = k->op;
        out->view->attrs_size = k->attrs_size;
        memcpy(out->view->attrs, k->attrs, k->attrs_size);
    }
    return out;
}

/* The composite's formula, without a record of its parts. */
static bool decompose(trn__call *k, const trn__op_info *info)
{
    trn__scope scope;
    uint32_t inside = k->c->tape->inside;
    bool mode = trn__grad_mode(k->c, false);
    if (inside == 0)
        k->c->tape->inside = k->op;
    trn__scope_enter(k->c, &scope);
    trn_tensor *y = trn__scope_leave(k->c, &scope, info->decompose(k));
    trn__grad_mode(k->c, mode);
    k->c->tape->inside = inside;
    if (y == NULL)
        return false;
    if (info->writes == 0)
        k->out = y;
    return true;
}

/* The storages that an UPDATE row overwrites get ready for it, and count. */
static trn_status prepare_writes(trn__call *k, const trn__op_info *info)
{
    for (int i = 0; i < k->n_in; i++) {
        if ((info->writes >> i) & 1u)
            TRN_TRY(k->c->tensors->before_write(k->c, k->in[i]->storage));
    }
    for (int i = 0; i < k->n_in && !k->counted; i++) {
        if ((info->writes >> i) & 1u)
            k->in[i]->storage->version++;
    }
    return TRN_OK;
}

/* Whose name a report gets: that of the op which the program called. */
static const char *called(const trn__call *k)
{
    uint32_t inside = k->c->tape->inside;
    return trn__ops[inside == 0 ? k->op : inside].name;
}

static bool compute(trn__call *k, const trn__op_info *info,
                    const trn__desc *desc)
{
    trn__operands operands;
    if (info->view != NULL) {
        k->out = trn__make_view(k, info, desc);
        return k->out != NULL;
    }
    if (info->writes == 0) {
        k->out = trn__tensor_new(k->c, info->name, desc);
        if (k->out == NULL)
            return false;
    }
    trn__operands_fill(&operands, k);
    trn__way way = trn__way_of(k->c, &operands, info->decompose != NULL);
    if (way == TRN__WAY_DECOMPOSE) {
        trn__unref(k->out);
        k->out = NULL;
        return decompose(k, info);
    }
    if (way == TRN__WAY_NONE) {
        trn__fail(k->c, TRN_ERR_UNSUPPORTED,
                  "%s: device %s does not have it for these types", info->name,
                  k->c->backend->name);
    } else if (info->writes == 0 || prepare_writes(k, info) == TRN_OK) {
        trn__run(k, called(k), &operands);
    }
    if (k->c->status == TRN_OK)
        return true;
    trn__unref(k->out);
    k->out = NULL;
    return false;
}

/* A result of a captured step that nobody kept never had memory. */
static trn_status check_memory(const trn__call *k, const trn__op_info *info)
{
    for (int i = 0; i < k->n_in; i++) {
        TRN_ASSERT(k->in[i] != NULL);
        const trn__storage *s = k->in[i]->storage;
        if (s != NULL && s->buffer == NULL && s->bytes > 0)
            return trn__fail(k->c, TRN_ERR_STALE,
                             "%s: %s is used after its step ended; expected "
                             "trn_keep() before trn_step_end()",
                             info->name, trn__describe(&k->in[i]->arg).s);
    }
    return TRN_OK;
}

trn_tensor *trn__apply(trn__call *k)
{
    const trn__op_info *info = &trn__ops[k->op];
    trn__desc desc;
    k->out = NULL;
    if (trn__check_inputs(k) != TRN_OK)
        return NULL;
    if (trn__capture_on(k->c))
        return trn__trace_op(k, info);
    if (k->c->capture != NULL && trn__flights_finish(k->c) != TRN_OK)
        return NULL; /* run_op comes when nothing is in flight */
    if (check_memory(k, info) != TRN_OK || !info->infer(k, &desc))
        return NULL;
    bool record = trn__wants_record(k, info);
    if (!compute(k, info, &desc))
        return NULL;
    if (info->writes != 0)
        return k->in[0];
    if (record && trn__is_float(k->out->arg.dtype) &&
        trn__tape_record(k, info->saves) != TRN_OK) {
        trn__unref(k->out);
        return NULL;
    }
    return k->out;
}

trn__call trn__call_of(uint32_t op, trn_tensor *x, trn_tensor *y,
                       const void *attrs, uint32_t attrs_size)
{
    trn__call k; /* values, key and draw stay unset: most ops have none */
    k.c = NULL;
    k.op = op;
    k.n_in = trn__ops[op].n_in;
    k.n_values = trn__ops[op].n_values;
    k.in[0] = x;
    k.in[1] = y;
    k.in[2] = k.in[3] = NULL;
    k.out = NULL;
    k.attrs = attrs;
    k.attrs_size = attrs_size;
    k.key = k.draw = 0;
    k.counted = false;
    k.sourced = false;
    k.foreign = false;
    k.repeated = false;
    k.numbered = 0;
    k.draw_no = -1;
    return k;
}

trn_tensor *trn__apply1(uint32_t op, trn_tensor *x)
{
    trn__call k = trn__call_of(op, x, NULL, NULL, 0);
    return trn__apply(&k);
}
