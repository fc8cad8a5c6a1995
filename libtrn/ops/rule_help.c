/* SPDX-License-Identifier: Apache-2.0
 *
 * What several rules need: checks of types and axes, constants in a tensor's
 * shape, VALUE attributes as tensors.
 */
#include <string.h>

#include "libtrn/ops/op_table.h"

bool trn__want_float(const trn__call *k, int i)
{
    const trn_arg *arg = &k->in[i]->arg;
    if (trn__is_float(arg->dtype))
        return true;
    trn__fail(k->c, TRN_ERR_DTYPE,
              "%s: input %d is %s; expected a float type (f64, f32, bf16, f16)",
              trn__ops[k->op].name, i, trn__describe(arg).s);
    return false;
}

bool trn__want_index(const trn__call *k, int i)
{
    const trn_arg *arg = &k->in[i]->arg;
    if (arg->dtype == TRN_I32 || arg->dtype == TRN_I64)
        return true;
    trn__fail(k->c, TRN_ERR_DTYPE,
              "%s: index input %d is %s; expected i32 or i64",
              trn__ops[k->op].name, i, trn__describe(arg).s);
    return false;
}

int trn__axis(trn_context *c, const char *what, const trn_tensor *x, int axis)
{
    int rank = (int)x->arg.rank;
    if (axis >= -rank && axis < rank)
        return axis < 0 ? axis + rank : axis;
    trn__fail(c, TRN_ERR_ARG, "%s: axis is %d; expected one of [%d, %d) for %s",
              what, axis, -rank, rank, trn__describe(&x->arg).s);
    return -1;
}

trn_tensor *trn__constant_like(trn_tensor *x, double value)
{
    if (x == NULL)
        return NULL;
    trn_tensor *one = trn_full(x->c, (trn_dtype)x->arg.dtype, 0, NULL, value);
    return trn__expanded(one, (int)x->arg.rank, x->arg.shape);
}

trn_tensor *trn__zeros_like(trn_tensor *x)
{
    return trn__constant_like(x, 0.0);
}

trn_tensor *trn__up(trn_tensor *x)
{
    if (x == NULL)
        return NULL;
    uint32_t dtype = trn__compute_dtype(x->arg.dtype);
    return dtype == x->arg.dtype ? x : trn_cast(x, (trn_dtype)dtype);
}

trn_tensor *trn__down(trn_tensor *x, uint32_t dtype)
{
    if (x == NULL || x->arg.dtype == dtype)
        return x;
    return trn_cast(x, (trn_dtype)dtype);
}

trn_tensor *trn__value(const trn__call *k, int i, const trn_tensor *x)
{
    uint32_t dtype = trn__compute_dtype(x->arg.dtype);
    return trn_full(k->c, (trn_dtype)dtype, 0, NULL, k->values[i]);
}

trn_tensor *trn__mul_value(trn_tensor *x, const trn__call *k, int i)
{
    return trn_mul_scalar(x, k->values[i]);
}

bool trn__grad_mode(trn_context *c, bool on)
{
    bool was = !c->tape->off;
    c->tape->off = !on;
    return was;
}
