/* SPDX-License-Identifier: Apache-2.0
 *
 * mse_loss.  (cross_entropy is with softmax, whose parts it takes.)
 */
#include <string.h>

#include "libtrn/ops/op_table.h"

bool trn__infer_mse_loss(const trn__call *k, trn__desc *out)
{
    const trn_loss_attrs *at = k->attrs;
    const trn_arg *x = &k->in[0]->arg;
    if (!trn__want_float(k, 0))
        return false;
    if (at->reduction < TRN_REDUCE_MEAN || at->reduction > TRN_REDUCE_NONE) {
        trn__fail(k->c, TRN_ERR_ARG,
                  "mse_loss: reduction is %d; expected a trn_reduction",
                  at->reduction);
        return false;
    }
    *out = (trn__desc){.dtype = x->dtype};
    if (at->reduction == TRN_REDUCE_NONE) {
        out->rank = x->rank;
        memcpy(out->shape, x->shape, sizeof out->shape);
    }
    return true;
}

trn_tensor *trn__decompose_mse_loss(const trn__call *k)
{
    const trn_loss_attrs *at = k->attrs;
    trn_tensor *d = trn_sub(trn__up(k->in[0]), trn__up(k->in[1]));
    trn_tensor *y = trn_mul(d, d);
    if (at->reduction == TRN_REDUCE_MEAN)
        y = trn_mean(y, TRN_ALL_AXES, false);
    else if (at->reduction == TRN_REDUCE_SUM)
        y = trn_sum(y, TRN_ALL_AXES, false);
    return trn__down(y, k->in[0]->arg.dtype);
}

void trn__grad_mse_loss(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    const trn_loss_attrs *at = k->attrs;
    trn_tensor *a = k->in[0], *b = k->in[1]; /* ga = g 2 (a - b) / n = -gb */
    int64_t n = trn__numel(a->arg.rank, a->arg.shape);
    bool mean = at->reduction == TRN_REDUCE_MEAN;
    trn_tensor *d = trn_sub(trn__up(a), trn__up(b));
    d = trn_mul_scalar(d,
                       mean && n > 0 ? trn__fp_quotient(2.0, (double)n) : 2.0);
    trn_tensor *ga = trn__down(trn_mul(d, trn__up(g)), a->arg.dtype);
    gin[0] = ga;
    gin[1] = trn__needs_grad(b) ? trn_neg(ga) : NULL;
}

trn_tensor *trn_mse_loss(trn_tensor *input, trn_tensor *target,
                         trn_reduction reduction)
{
    trn_loss_attrs at;
    trn__scope scope;
    memset(&at, 0, sizeof at);
    at.reduction = (int32_t)reduction;
    trn__call k = trn__call_of(TRN_OP_mse_loss, input, target, &at, sizeof at);
    if (trn__check_inputs(&k) != TRN_OK)
        return NULL;
    trn__scope_enter(k.c, &scope);
    trn_tensor *y =
        trn__meet(TRN_OP_mse_loss, &k.in[0], &k.in[1]) ? trn__apply(&k) : NULL;
    return trn__scope_leave(k.c, &scope, y);
}
