/* SPDX-License-Identifier: Apache-2.0
 *
 * Decompositions of the elementwise composites into primitives.
 *
 * They give the bits of the CPU's kernels, the sign of zero included.
 */
#include "libtrn/ops/op_table.h"

static bool is_unsigned(const trn_tensor *x)
{
    return x->arg.dtype == TRN_U8 || x->arg.dtype == TRN_U32;
}

static trn_tensor *greater_or_equal(trn_tensor *a, trn_tensor *b)
{
    trn_tensor *greater = trn_greater(a, b);
    return trn_where(greater, greater, trn_equal(a, b));
}

trn_tensor *trn__decompose_abs(const trn__call *k)
{
    trn_tensor *x = k->in[0]; /* max(x, -x): +0 for -0 */
    return is_unsigned(x) ? trn_copy(x) : trn_maximum(x, trn_neg(x));
}

trn_tensor *trn__decompose_sign(const trn__call *k)
{
    trn_tensor *x = k->in[0], *zero = trn__zeros_like(x);
    trn_dtype dtype = (trn_dtype)x->arg.dtype;
    trn_tensor *above = trn_cast(trn_greater(x, zero), dtype);
    if (is_unsigned(x))
        return above;
    return trn_sub(above, trn_cast(trn_greater(zero, x), dtype));
}

trn_tensor *trn__decompose_ceil(const trn__call *k)
{
    return trn_neg(trn_floor(trn_neg(k->in[0])));
}

/* Both keep the sign of a zero. */
trn_tensor *trn__decompose_trunc(const trn__call *k)
{
    trn_tensor *x = k->in[0];
    trn_tensor *below = trn_less(x, trn__zeros_like(x));
    return trn_where(below, trn_ceil(x), trn_floor(x));
}

/*
 * f = floor x, and 1 more where d = x - f is above 1/2, or is 1/2 and f is odd.
 * d is exact but where x is in (-1/2, 0), for which it rounds to 1/2 or more;
 * f is odd there.  NaN and infinities stay.  A result 0 takes the sign of x.
 */
static trn_tensor *rounded(trn_tensor *x)
{
    trn_tensor *half = trn__constant_like(x, 0.5), *zero = trn__zeros_like(x);
    trn_tensor *f = trn_floor(x), *d = trn_sub(x, f);
    trn_tensor *pairs = trn_mul_scalar(f, 0.5);
    trn_tensor *odd = trn_greater(pairs, trn_floor(pairs));
    trn_tensor *above = trn_greater(d, half);
    trn_tensor *up = trn_where(odd, greater_or_equal(d, half), above);
    trn_tensor *y = trn_where(up, trn_add_scalar(f, 1.0), f);
    return trn_where(trn_equal(y, zero), trn_mul_scalar(x, 0.0), y);
}

trn_tensor *trn__decompose_round(const trn__call *k)
{
    return trn__down(rounded(trn__up(k->in[0])), k->in[0]->arg.dtype);
}

trn_tensor *trn__decompose_rsqrt(const trn__call *k)
{
    trn_tensor *x = trn__up(k->in[0]);
    trn_tensor *y = trn_div(trn__constant_like(x, 1.0), trn_sqrt(x));
    return trn__down(y, k->in[0]->arg.dtype);
}

trn_tensor *trn__decompose_minimum(const trn__call *k)
{
    trn_tensor *a = k->in[0], *b = k->in[1];
    if (!trn__is_float(a->arg.dtype)) /* -INT_MIN is not larger than any */
        return trn_where(trn_greater(b, a), a, b);
    return trn_neg(trn_maximum(trn_neg(a), trn_neg(b)));
}

trn_tensor *trn__decompose_less(const trn__call *k)
{
    return trn_greater(k->in[1], k->in[0]);
}

trn_tensor *trn__decompose_less_equal(const trn__call *k)
{
    return greater_or_equal(k->in[1], k->in[0]);
}

trn_tensor *trn__decompose_greater_equal(const trn__call *k)
{
    return greater_or_equal(k->in[0], k->in[1]);
}

trn_tensor *trn__decompose_not_equal(const trn__call *k)
{
    trn_tensor *equal = trn_equal(k->in[0], k->in[1]);
    return trn_equal(equal, trn__zeros_like(equal));
}
