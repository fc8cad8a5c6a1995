/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products with all transposes and broadcast batches.
 */
#include <string.h>

#include "libtrn/ops/op_table.h"

static int64_t rows_of(const trn_arg *x, bool trans)
{
    return x->shape[x->rank - (trans ? 1 : 2)];
}

static int64_t cols_of(const trn_arg *x, bool trans)
{
    return x->shape[x->rank - (trans ? 2 : 1)];
}

static bool check_ranks(const trn__call *k)
{
    const trn_arg *a = &k->in[0]->arg, *b = &k->in[1]->arg;
    if (a->rank < 2 || b->rank < 2) {
        trn__fail(k->c, TRN_ERR_SHAPE,
                  "matmul: a is %s, b is %s; expected a [..,M,K], b [..,K,N]",
                  trn__describe(a).s, trn__describe(b).s);
        return false;
    }
    if (a->dtype != b->dtype || a->dtype == TRN_BOOL) {
        trn__fail(k->c, TRN_ERR_DTYPE,
                  "matmul: a is %s, b is %s; expected numbers",
                  trn__describe(a).s, trn__describe(b).s);
        return false;
    }
    return true;
}

bool trn__infer_matmul(const trn__call *k, trn__desc *out)
{
    const trn_matmul_attrs *at = k->attrs;
    const trn_arg *a = &k->in[0]->arg, *b = &k->in[1]->arg;
    if (!check_ranks(k))
        return false;
    if (cols_of(a, at->trans_a) != rows_of(b, at->trans_b)) {
        trn__fail(k->c, TRN_ERR_SHAPE,
                  "matmul: inner dimensions differ: a is %s%s, b is %s%s; "
                  "expected a [..,M,K], b [..,K,N]",
                  trn__describe(a).s, at->trans_a ? " transposed" : "",
                  trn__describe(b).s, at->trans_b ? " transposed" : "");
        return false;
    }
    trn_arg batch_a = *a, batch_b = *b;
    int64_t shape[TRN_MAX_RANK];
    uint32_t rank;
    uint64_t bytes;
    batch_a.rank -= 2;
    batch_b.rank -= 2;
    if (!trn__broadcast(&batch_a, &batch_b, &rank, shape)) {
        trn__fail(k->c, TRN_ERR_SHAPE,
                  "matmul: leading dimensions do not broadcast: a is %s, b is "
                  "%s",
                  trn__describe(a).s, trn__describe(b).s);
        return false;
    }
    shape[rank++] = rows_of(a, at->trans_a);
    shape[rank++] = cols_of(b, at->trans_b);
    return trn__desc_make(k->c, "matmul", a->dtype, (int)rank, shape, out,
                          &bytes) == TRN_OK;
}

trn_tensor *trn_matmul_trans(trn_tensor *a, trn_tensor *b, bool trans_a,
                             bool trans_b)
{
    trn_matmul_attrs at;
    memset(&at, 0, sizeof at);
    trn__call k = trn__call_of(TRN_OP_matmul, a, b, &at, sizeof at);
    if (trn__check_inputs(&k) != TRN_OK)
        return NULL;
    at.trans_a = trans_a;
    at.trans_b = trans_b;
    if (a->arg.dtype == b->arg.dtype)
        return trn__apply(&k);
    trn__scope scope;
    uint32_t to = trn__promote(a->arg.dtype, b->arg.dtype);
    trn__scope_enter(k.c, &scope);
    k.in[0] = trn__down(a, to);
    k.in[1] = trn__down(b, to);
    return trn__scope_leave(k.c, &scope, trn__apply(&k));
}

trn_tensor *trn_matmul(trn_tensor *a, trn_tensor *b)
{
    return trn_matmul_trans(a, b, false, false);
}

/* g summed over the batch axes that `to` does not have or has as 1. */
static trn_tensor *unbroadcast(trn_tensor *g, const trn_tensor *to)
{
    if (g == NULL || trn__same_shape(&g->arg, &to->arg))
        return g;
    uint32_t extra = g->arg.rank - to->arg.rank, axes = 0;
    for (uint32_t d = 0; d < g->arg.rank; d++) {
        if (d < extra || to->arg.shape[d - extra] != g->arg.shape[d])
            axes |= TRN_AXIS(d);
    }
    return trn_reshape(trn_sum(g, axes, true), (int)to->arg.rank,
                       to->arg.shape);
}

void trn__grad_matmul(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    const trn_matmul_attrs *at = k->attrs;
    trn_tensor *a = k->in[0], *b = k->in[1];
    bool ta = at->trans_a, tb = at->trans_b;
    /* y = A B with A = a or a^T: gA = g B^T, gB = A^T g */
    if (trn__needs_grad(a)) {
        trn_tensor *ga = ta ? trn_matmul_trans(b, g, tb, true)
                            : trn_matmul_trans(g, b, false, !tb);
        gin[0] = unbroadcast(ga, a);
    }
    if (trn__needs_grad(b)) {
        trn_tensor *gb = tb ? trn_matmul_trans(g, a, true, ta)
                            : trn_matmul_trans(a, g, !ta, false);
        gin[1] = unbroadcast(gb, b);
    }
}
