/* SPDX-License-Identifier: Apache-2.0
 *
 * The oracle of unary, binary and comparing rows, where, scalars and cast.
 */
#include <float.h>
#include <math.h>

#include "oracle.h"

/* Below the logarithms of the smallest normal numbers exp gives exactly 0. */
long double oracle_exp(trn_dtype dtype, long double x)
{
    return x < (dtype == TRN_F64 ? -708.39L : -87.34L) ? 0 : expl(x);
}

/* The smallest normal number of a type (bf16: that of f32). */
static long double smallest_normal(trn_dtype dtype)
{
    return dtype == TRN_F64   ? 0x1p-1022L
           : dtype == TRN_F16 ? 0x1p-14L
                              : 0x1p-126L;
}

static long double unary(const case_args *a, long double x)
{
    switch (a->tc->op) {
    case TRN_OP_neg:
        return -x;
    case TRN_OP_exp:
        return oracle_exp(a->dtype, x);
    case TRN_OP_log:
        return logl(x);
    case TRN_OP_tanh:
        return tanhl(x);
    case TRN_OP_sqrt:
        return sqrtl(x);
    case TRN_OP_relu:
        return isnan(x) ? x : x > 0 ? x : 0;
    case TRN_OP_flush_subnormal:
        return fabsl(x) < smallest_normal(oracle_compute(a->dtype)) ? 0 : x;
    case TRN_OP_abs:
        return fabsl(x);
    case TRN_OP_sign:
        return (long double)((x > 0) - (x < 0));
    case TRN_OP_floor:
        return floorl(x);
    case TRN_OP_ceil:
        return ceill(x);
    case TRN_OP_round: /* remainder: to the even multiple in the middle */
        return isfinite(x) ? copysignl(x - remainderl(x, 1), x) : x;
    case TRN_OP_rsqrt:
        return 1 / sqrtl(x);
    case TRN_OP_sin:
        return sinl(x);
    case TRN_OP_cos:
        return cosl(x);
    case TRN_OP_erf:
        return erfl(x);
    case TRN_OP_trunc:
        return truncl(x);
    case TRN_OP_gelu: /* the complement keeps the digits of the lower tail */
        return x * erfcl(-x * 0.70710678118654752440L) / 2;
    case TRN_OP_add_scalar:
        return x + oracle_value(a->dtype, attr_real(a->tc, "value", 1.5));
    default:
        return x * oracle_value(a->dtype, attr_real(a->tc, "value", 1.5));
    }
}

static long double binary(uint32_t op, long double x, long double y)
{
    switch (op) {
    case TRN_OP_add:
        return x + y;
    case TRN_OP_sub:
        return x - y;
    case TRN_OP_mul:
        return x * y;
    case TRN_OP_div:
        return x / y;
    case TRN_OP_pow:
        return powl(x, y);
    case TRN_OP_atan2:
        return atan2l(x, y);
    case TRN_OP_maximum:
        return oracle_maximum(x, y);
    case TRN_OP_greater:
        return x > y;
    case TRN_OP_minimum:
        return oracle_minimum(x, y);
    case TRN_OP_less:
        return x < y;
    case TRN_OP_less_equal:
        return x <= y;
    case TRN_OP_greater_equal:
        return x >= y;
    case TRN_OP_not_equal:
        return x != y;
    default:
        return x == y;
    }
}

static long double divide_integers(trn_dtype dtype, long double x,
                                   long double y)
{
    long double q = truncl(x / y);
    return dtype_round(dtype, oracle_wrap(dtype, oracle_bits(q)));
}

/* Integers: x and y as 64-bit words, the result wrapped to the type. */
static long double integer_op(const case_args *a, long double x, long double y)
{
    uint64_t u = oracle_bits(x), v = oracle_bits(y);
    switch (a->tc->op) {
    case TRN_OP_neg:
        return oracle_wrap(a->dtype, 0 - u);
    case TRN_OP_add:
        return oracle_wrap(a->dtype, u + v);
    case TRN_OP_add_scalar:
        v = (uint64_t)(int64_t)attr_real(a->tc, "value", 1.5);
        return oracle_wrap(a->dtype, u + v);
    case TRN_OP_sub:
        return oracle_wrap(a->dtype, u - v);
    case TRN_OP_mul:
        return oracle_wrap(a->dtype, u * v);
    case TRN_OP_div:
        return divide_integers(a->dtype, x, y);
    case TRN_OP_relu:
        return x > 0 ? x : 0;
    case TRN_OP_abs:
        return oracle_wrap(a->dtype, x < 0 ? 0 - u : u);
    case TRN_OP_sign:
        return (x > 0) - (x < 0);
    default:
        return binary(a->tc->op, x, y);
    }
}

/* Floats to integers saturate and truncate, NaN gives 0; integers wrap. */
static long double cast_value(trn_dtype from, trn_dtype to, long double x)
{
    if (dtype_is_float(to))
        return x;
    if (to == TRN_BOOL)
        return isnan(x) || x != 0;
    return dtype_is_float(from) ? oracle_saturate(to, x)
                                : oracle_wrap(to, oracle_bits(x));
}

void oracle_shape_of_all(const case_args *a, int *rank, int64_t *dim)
{
    *rank = 0;
    for (int i = 0; i < a->n_in; i++)
        *rank = a->in[i].rank > *rank ? a->in[i].rank : *rank;
    for (int d = 0; d < *rank; d++) {
        dim[d] = 1;
        for (int i = 0; i < a->n_in; i++) {
            int at = d - (*rank - a->in[i].rank);
            if (at >= 0 && a->in[i].dim[at] != 1)
                dim[d] = a->in[i].dim[at];
        }
    }
}

static tolerance_class class_of(const case_args *a)
{
    switch (a->tc->op) {
    case TRN_OP_exp:
    case TRN_OP_log:
    case TRN_OP_tanh:
    case TRN_OP_pow:
    case TRN_OP_rsqrt:
    case TRN_OP_sin:
    case TRN_OP_cos:
    case TRN_OP_erf:
    case TRN_OP_gelu:
    case TRN_OP_atan2:
        return TOLERANCE_FUNCTION;
    case TRN_OP_sqrt:
    case TRN_OP_add:
    case TRN_OP_sub:
    case TRN_OP_mul:
    case TRN_OP_div:
    case TRN_OP_add_scalar:
    case TRN_OP_mul_scalar:
    case TRN_OP_cast:
        return dtype_is_float(a->dtype) ? TOLERANCE_ROUNDED : TOLERANCE_EXACT;
    default:
        return TOLERANCE_EXACT;
    }
}

static long double element(const case_args *a, int rank, const int64_t *index,
                           trn_dtype out)
{
    long double v[3] = {0, 0, 0};
    for (int i = 0; i < a->n_in; i++)
        v[i] = a->in[i].v[oracle_broadcast(&a->in[i], rank, index)];
    if (a->tc->op == TRN_OP_where)
        return v[0] != 0 ? v[1] : v[2];
    if (a->tc->op == TRN_OP_cast)
        return cast_value(a->dtype, out, v[0]);
    if (!dtype_is_float(a->dtype))
        return integer_op(a, v[0], v[1]);
    return a->n_in == 1 ? unary(a, v[0]) : binary(a->tc->op, v[0], v[1]);
}

void oracle_elementwise(const case_args *a, oracle_result *r)
{
    int rank;
    int64_t dim[TRN_MAX_RANK], index[TRN_MAX_RANK];
    bool compares = trn__ops[a->tc->op].cls == TRN__CLASS_COMPARE;
    trn_dtype dtype = compares ? TRN_BOOL : a->dtype;
    trn_dtype computes = oracle_compute(a->dtype);
    if (a->tc->op == TRN_OP_cast)
        dtype = attr_dtype(a->tc, "to", TRN_F32);
    oracle_shape_of_all(a, &rank, dim);
    oracle_tensor *y = oracle_make(r, 0, dtype, rank, dim);
    for (int64_t i = 0; i < y->n; i++) {
        oracle_index(rank, dim, i, index);
        y->v[i] = element(a, rank, index, dtype);
        y->size[i] = fabsl(y->v[i]);
        if (a->tc->op == TRN_OP_atan2) /* a tiny quotient is rounded twice */
            y->size[i] = fmaxl(y->size[i], smallest_normal(computes));
    }
    r->tolerance = class_of(a);
}
