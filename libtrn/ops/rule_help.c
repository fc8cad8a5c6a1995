/* SPDX-License-Identifier: Apache-2.0
 *
 * What several rules need: checks of types and axes, constants in a tensor's
 * shape, VALUE attributes as tensors.
 */
#include <string.h>

#include "libtrn/ops/capture.h"
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

/* A VALUE attribute of call k as that of call `to`, from the same source. */
static void take_value(const trn__call *k, int i, trn__call *to)
{
    to->values[0] = k->values[i];
    to->scalar[0] = k->scalar[i];
    to->sourced = !k->foreign && trn__capture_on(k->c);
}

trn_tensor *trn__value(const trn__call *k, int i, const trn_tensor *x)
{
    trn_full_attrs at;
    memset(&at, 0, sizeof at);
    at.dtype = (int32_t)trn__compute_dtype(x->arg.dtype);
    trn__call full = trn__call_of(TRN_OP_full, NULL, NULL, &at, sizeof at);
    full.c = k->c;
    take_value(k, i, &full);
    return trn__apply(&full);
}

trn_tensor *trn__mul_value(trn_tensor *x, const trn__call *k, int i)
{
    static const trn_scalar_attrs none;
    trn__call mul =
        trn__call_of(TRN_OP_mul_scalar, x, NULL, &none, sizeof none);
    take_value(k, i, &mul);
    return trn__apply(&mul);
}

bool trn__grad_mode(trn_context *c, bool on)
{
    bool was = !c->tape->off;
    c->tape->off = !on;
    return was;
}
