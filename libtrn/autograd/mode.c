/* SPDX-License-Identifier: Apache-2.0
 *
 * What is recorded and what is not: leaves, detach, no-grad regions.
 */
#include "libtrn/ops/op_table.h"
#include "libtrn/ops/step.h"
#include "trn/autograd.h"

trn_status trn_set_requires_grad(trn_tensor *t, bool requires_grad)
{
    if (t == NULL)
        return TRN_ERR_ARG;
    trn_context *c = t->c;
    TRN_TRY(trn__pending(c));
    TRN_TRY(trn__check_tensor(c, "trn_set_requires_grad", t));
    if (requires_grad && !trn__is_float(t->arg.dtype))
        return trn__fail(c, TRN_ERR_DTYPE,
                         "trn_set_requires_grad: %s; expected a float type",
                         trn__describe(&t->arg).s);
    if (t->record != NULL || t->traced_grad)
        return trn__fail(c, TRN_ERR_STATE,
                         "trn_set_requires_grad: %s was computed from other "
                         "tensors; expected a leaf, or trn_detach() of it",
                         trn__describe(&t->arg).s);
    t->requires_grad = requires_grad;
    return TRN_OK;
}

bool trn_requires_grad(const trn_tensor *t)
{
    return t != NULL && trn__needs_grad(t);
}

trn_tensor *trn_grad_of(const trn_tensor *t)
{
    return t == NULL ? NULL : t->grad;
}

trn_status trn_zero_grad(trn_tensor *t)
{
    if (t == NULL)
        return TRN_ERR_ARG;
    TRN_TRY(trn__pending(t->c));
    TRN_TRY(trn__check_tensor(t->c, "trn_zero_grad", t));
    return t->grad == NULL ? TRN_OK : trn__set_grad(t, NULL);
}

trn_tensor *trn_detach(trn_tensor *t)
{
    if (t == NULL || trn__pending(t->c) != TRN_OK ||
        trn__check_tensor(t->c, "trn_detach", t) != TRN_OK)
        return NULL;
    return trn__tensor_alias(t);
}

trn_status trn_no_grad_begin(trn_context *c)
{
    TRN_TRY(trn__pending(c));
    c->tape->no_grad_depth++;
    c->tape->off = true;
    return TRN_OK;
}

trn_status trn_no_grad_end(trn_context *c)
{
    if (c == NULL || c->tape == NULL)
        return trn__pending(c);
    if (c->tape->no_grad_depth == 0)
        return trn__fail(c, TRN_ERR_STATE,
                         "trn_no_grad_end: no region is open; expected "
                         "trn_no_grad_begin() first");
    c->tape->no_grad_depth--;
    c->tape->off = c->tape->no_grad_depth > 0;
    return c->status;
}
