/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows that work element by element, and conversions.
 */
#include "backends/hlo/hlo_lower.h"

/* A row on floats: in the compute type, rounded once at the end. */
#define UNARY(name, OPCODE)                                       \
    int32_t trn__hlo_lower_##name(trn__hlo_lowering *l)           \
    {                                                             \
        return trn__hlo_down(                                     \
            l, trn__hlo_unary(&l->m, OPCODE, trn__hlo_up(l, 0))); \
    }

UNARY(exp, TRN__HLO_OP_EXP)
UNARY(log, TRN__HLO_OP_LOG)
UNARY(tanh, TRN__HLO_OP_TANH)
UNARY(sqrt, TRN__HLO_OP_SQRT)
UNARY(floor, TRN__HLO_OP_FLOOR)

#define BINARY(name, OPCODE)                                                   \
    int32_t trn__hlo_lower_##name(trn__hlo_lowering *l)                        \
    {                                                                          \
        return trn__hlo_down(l,                                                \
                             trn__hlo_binary(&l->m, OPCODE, trn__hlo_up(l, 0), \
                                             trn__hlo_up(l, 1)));              \
    }

BINARY(add, TRN__HLO_OP_ADD)
BINARY(sub, TRN__HLO_OP_SUBTRACT)
BINARY(mul, TRN__HLO_OP_MULTIPLY)
BINARY(maximum, TRN__HLO_OP_MAXIMUM)

int32_t trn__hlo_lower_neg(trn__hlo_lowering *l)
{
    const int32_t x = trn__hlo_up(l, 0);
    const uint32_t type = trn__hlo_shape_of(&l->m, x).type;
    if (trn__hlo_is_float(type) || trn__hlo_is_signed(type))
        return trn__hlo_down(l, trn__hlo_unary(&l->m, TRN__HLO_OP_NEGATE, x));
    return trn__hlo_binary(&l->m, TRN__HLO_OP_SUBTRACT,
                           trn__hlo_like(&l->m, 0.0, x), x);
}

/* By a comparison: NaN stays on every device, whatever its maximum does. */
int32_t trn__hlo_lower_relu(trn__hlo_lowering *l)
{
    trn__hlo_module *m = &l->m;
    const int32_t x = trn__hlo_up(l, 0), zero = trn__hlo_like(m, 0.0, x);
    const int32_t below = trn__hlo_compare(m, TRN__HLO_LE, x, zero);
    return trn__hlo_down(l, trn__hlo_select(m, below, zero, x));
}

int32_t trn__hlo_lower_flush_subnormal(trn__hlo_lowering *l)
{
    trn__hlo_module *m = &l->m;
    const int32_t x = trn__hlo_up(l, 0);
    const bool wide = trn__hlo_shape_of(m, x).type == TRN__HLO_F64;
    const int32_t least = trn__hlo_like(m, wide ? 0x1p-1022 : 0x1p-126, x);
    const int32_t size = trn__hlo_unary(m, TRN__HLO_OP_ABS, x);
    const int32_t small = trn__hlo_compare(m, TRN__HLO_LT, size, least);
    return trn__hlo_down(
        l, trn__hlo_select(m, small, trn__hlo_like(m, 0.0, x), x));
}

/* A zero among integer divisors is reported, and 1 takes its place, as what
 * becomes of a division by zero is up to the device. */
int32_t trn__hlo_lower_div(trn__hlo_lowering *l)
{
    trn__hlo_module *m = &l->m;
    const int32_t a = trn__hlo_up(l, 0);
    int32_t b = trn__hlo_up(l, 1);
    if (!trn__hlo_is_float(trn__hlo_shape_of(m, b).type)) {
        const int32_t bad =
            trn__hlo_compare(m, TRN__HLO_EQ, b, trn__hlo_like(m, 0.0, b));
        trn__hlo_check_bad(l, TRN_REPORT_ZERO_DIVISOR, 1, bad, -1, 0);
        b = trn__hlo_select(m, bad, trn__hlo_like(m, 1.0, b), b);
    }
    return trn__hlo_down(l, trn__hlo_binary(m, TRN__HLO_OP_DIVIDE, a, b));
}

/* |a|^b; 1 where |a| is 1, whatever b is. */
static int32_t pow_of_magnitude(trn__hlo_module *m, int32_t a, int32_t b)
{
    const int32_t one = trn__hlo_like(m, 1.0, a);
    const int32_t log = trn__hlo_unary(m, TRN__HLO_OP_LOG, a);
    const int32_t y = trn__hlo_unary(
        m, TRN__HLO_OP_EXP, trn__hlo_binary(m, TRN__HLO_OP_MULTIPLY, b, log));
    return trn__hlo_select(m, trn__hlo_compare(m, TRN__HLO_EQ, a, one), one, y);
}

/* Has a the sign bit, NaN excepted?  1 / -0 tells of it. */
static int32_t is_negative(trn__hlo_module *m, int32_t a)
{
    const int32_t zero = trn__hlo_like(m, 0.0, a);
    const int32_t inverse =
        trn__hlo_binary(m, TRN__HLO_OP_DIVIDE, trn__hlo_like(m, 1.0, a), a);
    return trn__hlo_binary(m, TRN__HLO_OP_OR,
                           trn__hlo_compare(m, TRN__HLO_LT, a, zero),
                           trn__hlo_compare(m, TRN__HLO_LT, inverse, zero));
}

static int32_t is_whole(trn__hlo_module *m, int32_t b)
{
    return trn__hlo_compare(m, TRN__HLO_EQ,
                            trn__hlo_unary(m, TRN__HLO_OP_FLOOR, b), b);
}

/* a^b by exponential and logarithm of |a|, with the cases that these miss. */
static int32_t pow_by_log(trn__hlo_module *m, int32_t a, int32_t b)
{
    const int32_t zero = trn__hlo_like(m, 0.0, a);
    const int32_t one = trn__hlo_like(m, 1.0, a);
    const int32_t half = trn__hlo_like(m, 0.5, a);
    const int32_t size = trn__hlo_unary(m, TRN__HLO_OP_ABS, a);
    int32_t y = pow_of_magnitude(m, size, b);
    const int32_t even =
        is_whole(m, trn__hlo_binary(m, TRN__HLO_OP_MULTIPLY, b, half));
    const int32_t signed_y =
        trn__hlo_select(m, even, y, trn__hlo_unary(m, TRN__HLO_OP_NEGATE, y));
    /* The root of a negative number is NaN, but for zero and infinity. */
    const int32_t end = trn__hlo_compare(
        m, TRN__HLO_EQ, trn__hlo_binary(m, TRN__HLO_OP_MULTIPLY, size, half),
        size);
    const int32_t nan = trn__hlo_binary(m, TRN__HLO_OP_DIVIDE, zero, zero);
    const int32_t root = trn__hlo_select(m, end, y, nan);
    const int32_t below = trn__hlo_select(m, is_whole(m, b), signed_y, root);
    y = trn__hlo_select(m, is_negative(m, a), below, y);
    y = trn__hlo_select(m, trn__hlo_compare(m, TRN__HLO_EQ, a, one), one, y);
    return trn__hlo_select(m, trn__hlo_compare(m, TRN__HLO_EQ, b, zero), one,
                           y);
}

int32_t trn__hlo_lower_pow(trn__hlo_lowering *l)
{
    trn__hlo_module *m = &l->m;
    const int32_t a = trn__hlo_up(l, 0), b = trn__hlo_up(l, 1);
    const bool native = (l->profile->ops >> TRN__HLO_OP_POWER) & 1u;
    return trn__hlo_down(l, native ? trn__hlo_binary(m, TRN__HLO_OP_POWER, a, b)
                                   : pow_by_log(m, a, b));
}

int32_t trn__hlo_lower_greater(trn__hlo_lowering *l)
{
    return trn__hlo_compare(&l->m, TRN__HLO_GT, trn__hlo_up(l, 0),
                            trn__hlo_up(l, 1));
}

int32_t trn__hlo_lower_equal(trn__hlo_lowering *l)
{
    return trn__hlo_compare(&l->m, TRN__HLO_EQ, trn__hlo_up(l, 0),
                            trn__hlo_up(l, 1));
}

int32_t trn__hlo_lower_where(trn__hlo_lowering *l)
{
    return trn__hlo_select(&l->m, trn__hlo_in(l, 0), trn__hlo_in(l, 1),
                           trn__hlo_in(l, 2));
}

static int32_t with_scalar(trn__hlo_lowering *l, uint32_t op)
{
    const int32_t x = trn__hlo_up(l, 0);
    const trn__hlo_shape s = trn__hlo_shape_of(&l->m, x);
    const uint32_t dtype = trn__hlo_in_arg(l, 0).dtype;
    const bool narrow = dtype == TRN_BF16 || dtype == TRN_F16;
    const int32_t value = trn__hlo_value(
        l, 0, narrow ? (uint32_t)TRN_F32 : dtype,
        trn__hlo_is_float(s.type) ? TRN__HLO_NEAREST : TRN__HLO_WRAP);
    return trn__hlo_down(
        l, trn__hlo_binary(&l->m, op, x, trn__hlo_splat(&l->m, value, &s)));
}

int32_t trn__hlo_lower_add_scalar(trn__hlo_lowering *l)
{
    return with_scalar(l, TRN__HLO_OP_ADD);
}

int32_t trn__hlo_lower_mul_scalar(trn__hlo_lowering *l)
{
    return with_scalar(l, TRN__HLO_OP_MULTIPLY);
}

int32_t trn__hlo_lower_copy(trn__hlo_lowering *l)
{
    return trn__hlo_in(l, 0);
}

int32_t trn__hlo_lower_assign(trn__hlo_lowering *l)
{
    return trn__hlo_in(l, 1);
}

int32_t trn__hlo_lower_check_finite(trn__hlo_lowering *l)
{
    trn__hlo_module *m = &l->m;
    const int32_t x = trn__hlo_up(l, 0);
    const int32_t difference = trn__hlo_binary(m, TRN__HLO_OP_SUBTRACT, x, x);
    const int32_t bad =
        trn__hlo_compare(m, TRN__HLO_NE, difference, trn__hlo_like(m, 0.0, x));
    trn__hlo_check_bad(l, TRN_REPORT_NOT_FINITE, 0, bad, -1, 0);
    return trn__hlo_in(l, 0);
}

/* The least and the largest number of an integer type. */
static void limits(uint32_t type, double *least, double *above)
{
    const bool is_signed = trn__hlo_is_signed(type);
    const uint32_t bytes = trn__hlo_type_bytes(type);
    const double half = bytes == 1 ? 0x1p7 : bytes == 4 ? 0x1p31 : 0x1p63;
    *least = is_signed ? -half : 0.0;
    *above = is_signed ? half : 2.0 * half;
}

/* Truncated and saturated, NaN to 0; conversion itself only sees what fits. */
static int32_t float_to_integer(trn__hlo_module *m, uint32_t to, int32_t x)
{
    double least, above;
    limits(to, &least, &above);
    const trn__hlo_shape s = trn__hlo_shape_of(m, x);
    trn__hlo_shape t = s;
    t.type = to;
    const uint32_t bits = 8 * trn__hlo_type_bytes(to);
    const uint64_t all = bits == 64 ? ~0ull : (1ull << bits) - 1;
    const uint64_t most = trn__hlo_is_signed(to) ? all >> 1 : all;
    const uint64_t lowest = trn__hlo_is_signed(to) ? all ^ most : 0;
    const int32_t zero = trn__hlo_like(m, 0.0, x);
    const int32_t high =
        trn__hlo_compare(m, TRN__HLO_GE, x, trn__hlo_like(m, above, x));
    const int32_t low =
        trn__hlo_compare(m, TRN__HLO_LE, x, trn__hlo_like(m, least, x));
    const int32_t nan = trn__hlo_compare(m, TRN__HLO_NE, x, x);
    const int32_t outside = trn__hlo_binary(
        m, TRN__HLO_OP_OR, nan, trn__hlo_binary(m, TRN__HLO_OP_OR, high, low));
    int32_t y = trn__hlo_convert(m, to, trn__hlo_select(m, outside, zero, x));
    y = trn__hlo_select(m, high,
                        trn__hlo_splat(m, trn__hlo_bits(m, to, most), &t), y);
    return trn__hlo_select(
        m, low, trn__hlo_splat(m, trn__hlo_bits(m, to, lowest), &t), y);
}

int32_t trn__hlo_cast(trn__hlo_module *m, uint32_t to, int32_t x)
{
    const uint32_t from = trn__hlo_shape_of(m, x).type;
    if (x < 0 || from == to)
        return x;
    if (from == TRN__HLO_F16 || from == TRN__HLO_BF16)
        return trn__hlo_cast(m, to, trn__hlo_convert(m, TRN__HLO_F32, x));
    if (to == TRN__HLO_PRED)
        return trn__hlo_compare(m, TRN__HLO_NE, x, trn__hlo_like(m, 0.0, x));
    if (trn__hlo_is_float(from) && !trn__hlo_is_float(to))
        return float_to_integer(m, to, x);
    return trn__hlo_convert(m, to, x);
}

int32_t trn__hlo_lower_cast(trn__hlo_lowering *l)
{
    return trn__hlo_cast(&l->m, trn__hlo_type_of(trn__hlo_out_arg(l).dtype),
                         trn__hlo_in(l, 0));
}
