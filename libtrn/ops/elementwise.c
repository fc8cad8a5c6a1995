/* SPDX-License-Identifier: Apache-2.0
 *
 * Element by element: unary, binary, comparison, where, with a scalar.
 *
 * Operands of the binary rows are promoted and expanded here, by recorded ops,
 * so that devices and gradient rules see one type and one shape.
 */
#include <string.h>

#include "libtrn/ops/op_table.h"

static void desc_like(const trn_tensor *x, trn__desc *out)
{
    out->dtype = x->arg.dtype;
    out->rank = x->arg.rank;
    memcpy(out->shape, x->arg.shape, sizeof out->shape);
}

static bool takes_integers(uint32_t op)
{
    return op == TRN_OP_neg || op == TRN_OP_relu || op == TRN_OP_abs ||
           op == TRN_OP_sign;
}

bool trn__infer_unary(const trn__call *k, trn__desc *out)
{
    const trn_arg *x = &k->in[0]->arg;
    if (!takes_integers(k->op) && !trn__want_float(k, 0))
        return false;
    if (x->dtype == TRN_BOOL) {
        trn__fail(k->c, TRN_ERR_DTYPE, "%s: x is %s; expected numbers",
                  trn__ops[k->op].name, trn__describe(x).s);
        return false;
    }
    desc_like(k->in[0], out);
    return true;
}

bool trn__infer_binary(const trn__call *k, trn__desc *out)
{
    if (k->in[0]->arg.dtype == TRN_BOOL && k->op != TRN_OP_equal &&
        k->op != TRN_OP_not_equal) {
        trn__fail(k->c, TRN_ERR_DTYPE,
                  "%s: both inputs are bool; expected numbers",
                  trn__ops[k->op].name);
        return false;
    }
    if ((k->op == TRN_OP_pow || k->op == TRN_OP_atan2) &&
        !trn__want_float(k, 0))
        return false;
    desc_like(k->in[0], out);
    return true;
}

bool trn__infer_compare(const trn__call *k, trn__desc *out)
{
    if (!trn__infer_binary(k, out))
        return false;
    out->dtype = TRN_BOOL;
    return true;
}

bool trn__meet(uint32_t op, trn_tensor **x, trn_tensor **y)
{
    trn_tensor *a = *x, *b = *y;
    if (a->arg.dtype != b->arg.dtype) {
        trn_dtype to = (trn_dtype)trn__promote(a->arg.dtype, b->arg.dtype);
        a = a->arg.dtype == to ? a : trn_cast(a, to);
        b = b->arg.dtype == to ? b : trn_cast(b, to);
        if (a == NULL || b == NULL)
            return false;
    }
    if (!trn__same_shape(&a->arg, &b->arg)) {
        uint32_t rank;
        int64_t shape[TRN_MAX_RANK];
        trn__desc desc;
        uint64_t bytes;
        if (!trn__broadcast(&a->arg, &b->arg, &rank, shape)) {
            trn__fail(a->c, TRN_ERR_SHAPE,
                      "%s: shapes do not broadcast: a is %s, b is %s; expected "
                      "equal dimensions, or 1, from the last axis on",
                      trn__ops[op].name, trn__describe(&(*x)->arg).s,
                      trn__describe(&(*y)->arg).s);
            return false;
        }
        if (trn__desc_make(a->c, trn__ops[op].name, a->arg.dtype, (int)rank,
                           shape, &desc, &bytes) != TRN_OK)
            return false;
        a = trn__expanded(a, (int)rank, shape);
        b = trn__expanded(b, (int)rank, shape);
    }
    *x = a;
    *y = b;
    return a != NULL && b != NULL;
}

static trn_tensor *binary(uint32_t op, trn_tensor *a, trn_tensor *b)
{
    trn__call k = trn__call_of(op, a, b, NULL, 0);
    if (a != NULL && b != NULL &&
        (a->arg.dtype != b->arg.dtype || !trn__same_shape(&a->arg, &b->arg))) {
        if (trn__check_inputs(&k) != TRN_OK)
            return NULL;
        trn__scope scope;
        trn__scope_enter(k.c, &scope);
        trn_tensor *y =
            trn__meet(op, &k.in[0], &k.in[1]) ? trn__apply(&k) : NULL;
        return trn__scope_leave(k.c, &scope, y);
    }
    return trn__apply(&k);
}

#define UNARY(nm)                           \
    trn_tensor *trn_##nm(trn_tensor *x)     \
    {                                       \
        return trn__apply1(TRN_OP_##nm, x); \
    }
UNARY(neg)
UNARY(exp)
UNARY(log)
UNARY(tanh)
UNARY(sqrt)
UNARY(relu)
UNARY(copy)
UNARY(check_finite)
UNARY(abs)
UNARY(sign)
UNARY(floor)
UNARY(ceil)
UNARY(round)
UNARY(rsqrt)
UNARY(sigmoid)
UNARY(silu)
UNARY(gelu_tanh)
UNARY(sin)
UNARY(cos)
UNARY(erf)
UNARY(trunc)
UNARY(gelu)

#define BINARY(nm)                                     \
    trn_tensor *trn_##nm(trn_tensor *a, trn_tensor *b) \
    {                                                  \
        return binary(TRN_OP_##nm, a, b);              \
    }
BINARY(add)
BINARY(sub)
BINARY(mul)
BINARY(div)
BINARY(pow)
BINARY(maximum)
BINARY(greater)
BINARY(equal)
BINARY(minimum)
BINARY(less)
BINARY(less_equal)
BINARY(greater_equal)
BINARY(not_equal)
BINARY(atan2)

bool trn__infer_copy(const trn__call *k, trn__desc *out)
{
    desc_like(k->in[0], out);
    return true;
}

bool trn__infer_check_finite(const trn__call *k, trn__desc *out)
{
    desc_like(k->in[0], out);
    return trn__want_float(k, 0);
}

bool trn__infer_where(const trn__call *k, trn__desc *out)
{
    if (k->in[0]->arg.dtype != TRN_BOOL) {
        trn__fail(k->c, TRN_ERR_DTYPE,
                  "where: the condition is %s; expected bool",
                  trn__describe(&k->in[0]->arg).s);
        return false;
    }
    desc_like(k->in[1], out);
    return true;
}

/* Condition and branches of one shape, branches of one type, chosen from. */
static trn_tensor *choose(trn__call *k)
{
    uint32_t rank;
    int64_t shape[TRN_MAX_RANK];
    if (!trn__meet(TRN_OP_where, &k->in[1], &k->in[2]))
        return NULL;
    if (!trn__broadcast(&k->in[0]->arg, &k->in[1]->arg, &rank, shape)) {
        trn__fail(k->c, TRN_ERR_SHAPE,
                  "where: shapes do not broadcast: the condition is %s, the "
                  "branches are %s",
                  trn__describe(&k->in[0]->arg).s,
                  trn__describe(&k->in[1]->arg).s);
        return NULL;
    }
    for (int i = 0; i < 3; i++)
        k->in[i] = trn__expanded(k->in[i], (int)rank, shape);
    return trn__apply(k);
}

trn_tensor *trn_where(trn_tensor *condition, trn_tensor *a, trn_tensor *b)
{
    trn__scope scope;
    trn__call k = trn__call_of(TRN_OP_where, condition, a, NULL, 0);
    k.in[2] = b;
    if (trn__check_inputs(&k) != TRN_OK)
        return NULL;
    trn__scope_enter(k.c, &scope);
    return trn__scope_leave(k.c, &scope, choose(&k));
}

bool trn__infer_add_scalar(const trn__call *k, trn__desc *out)
{
    desc_like(k->in[0], out);
    if (out->dtype != TRN_BOOL)
        return true;
    trn__fail(k->c, TRN_ERR_DTYPE, "add_scalar: x is %s; expected numbers",
              trn__describe(&k->in[0]->arg).s);
    return false;
}

bool trn__infer_mul_scalar(const trn__call *k, trn__desc *out)
{
    desc_like(k->in[0], out);
    return trn__want_float(k, 0);
}

static trn_tensor *with_scalar(uint32_t op, trn_tensor *x, double value)
{
    static const trn_scalar_attrs none;
    trn__call k = trn__call_of(op, x, NULL, &none, sizeof none);
    k.values[0] = value;
    return trn__apply(&k);
}

trn_tensor *trn_add_scalar(trn_tensor *x, double value)
{
    return with_scalar(TRN_OP_add_scalar, x, value);
}

trn_tensor *trn_mul_scalar(trn_tensor *x, double value)
{
    return with_scalar(TRN_OP_mul_scalar, x, value);
}

bool trn__infer_cast(const trn__call *k, trn__desc *out)
{
    const trn_dtype_attrs *at = k->attrs;
    uint64_t bytes;
    const trn_arg *x = &k->in[0]->arg;
    return trn__desc_make(k->c, "cast", (uint32_t)at->dtype, (int)x->rank,
                          x->shape, out, &bytes) == TRN_OK;
}

trn_tensor *trn_cast(trn_tensor *x, trn_dtype dtype)
{
    trn_dtype_attrs at;
    memset(&at, 0, sizeof at);
    at.dtype = (int32_t)dtype;
    trn__call k = trn__call_of(TRN_OP_cast, x, NULL, &at, sizeof at);
    return trn__apply(&k);
}
