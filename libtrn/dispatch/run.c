/* SPDX-License-Identifier: Apache-2.0
 *
 * Handing a call to the device and telling what it found.
 */
#include "libtrn/dispatch/dispatch.h"

void trn__operands_fill(trn__operands *o, const trn__call *k)
{
    for (int i = 0; i < k->n_in; i++)
        o->in[i] = &k->in[i]->arg;
    o->out[0] = k->out == NULL ? NULL : &k->out->arg;
    o->report.kind = TRN_REPORT_NONE;
    o->call = (trn_op_call){
        .size = (uint32_t)sizeof o->call,
        .op = k->op,
        .n_in = (uint32_t)k->n_in,
        .n_out = k->out == NULL ? 0 : 1,
        .in = o->in,
        .out = o->out,
        .attrs = k->attrs,
        .attrs_size = k->attrs_size,
    };
}

/* From the question to the call. */
static void add_values(trn__operands *o, const trn__call *k)
{
    o->call.n_values = (uint32_t)k->n_values;
    o->call.values = k->values;
    o->call.key = k->key;
    o->call.draw = k->draw;
    o->call.report = &o->report;
}

bool trn__knows(const trn_backend *b, uint32_t op)
{
    return op < (b->op_limit == 0 ? TRN__OPS_OF_THE_FREEZE : b->op_limit);
}

bool trn__takes(const trn_backend *b, trn_device *device,
                const trn_op_call *question)
{
    return trn__knows(b, question->op) &&
           (b->supports == NULL || b->supports(device, question));
}

trn__way trn__way_of(trn_context *c, const trn__operands *o, bool composite)
{
    const trn_backend *b = c->backend;
    if (b->run_op != NULL && trn__takes(b, c->device, &o->call))
        return TRN__WAY_NATIVE;
    return composite ? TRN__WAY_DECOMPOSE : TRN__WAY_NONE;
}

trn_status trn__raise_report(trn_context *c, const char *name,
                             const trn_op_report *r, trn_status status)
{
    switch (r->kind) {
    case TRN_REPORT_INDEX:
        return trn__fail(c, TRN_ERR_INDEX,
                         "%s: index %lld at position %lld; expected 0 to %lld",
                         name, (long long)r->value, (long long)r->position,
                         (long long)r->limit - 1);
    case TRN_REPORT_ZERO_DIVISOR:
        return trn__fail(c, TRN_ERR_VALUE,
                         "%s: integer division by zero at position %lld", name,
                         (long long)r->position);
    case TRN_REPORT_NOT_FINITE:
        return trn__fail(c, TRN_ERR_NUMERIC,
                         "%s: the value at position %lld is infinite or NaN; "
                         "expected finite values",
                         name, (long long)r->position);
    default:
        return trn__fail(c, status, "%s: device %s: %s", name, c->backend->name,
                         trn_status_text(status));
    }
}

trn_status trn__run(const trn__call *k, const char *name, trn__operands *o)
{
    trn_context *c = k->c;
    trn__fp_env saved;
    add_values(o, k);
    trn__fp_enter(&saved); /* which keeps the host's flags, too */
    trn_status status = (trn_status)c->backend->run_op(c->device, &o->call);
    trn__fp_leave(&saved);
    if (status == TRN_ERR_NOMEM)
        return trn__fail_memory(c, name, 0);
    if (status != TRN_OK)
        return trn__raise_report(c, name, &o->report, status);
    return TRN_OK;
}
