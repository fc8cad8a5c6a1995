/* SPDX-License-Identifier: Apache-2.0
 *
 * Element types for the tests: every type to and from long double, which holds
 * all values of each of them.  The formats are spelt out here once more, so
 * that the library's own conversions are not what is compared with themselves.
 */
#include <float.h>
#include <math.h>

#include "harness.h"

_Static_assert(LDBL_MANT_DIG >= 64, "an i64 must fit a long double");

bool dtype_is_float(trn_dtype dtype)
{
    return dtype == TRN_F64 || dtype == TRN_F32 || dtype == TRN_BF16 ||
           dtype == TRN_F16;
}

/* Bits of the stored fraction, and the exponent's bias. */
static void format_of(trn_dtype dtype, int *fraction, int *bias)
{
    *fraction = dtype == TRN_F64   ? 52
                : dtype == TRN_F32 ? 23
                : dtype == TRN_F16 ? 10
                                   : 7;
    *bias = dtype == TRN_F64 ? 1023 : dtype == TRN_F16 ? 15 : 127;
}

static int exponent_at(long double a, int bias)
{
    int e;
    frexpl(a, &e);
    e = a == 0 ? 1 - bias : e - 1;
    return e < 1 - bias ? 1 - bias : e;
}

static uint16_t encode16(trn_dtype dtype, long double v)
{
    int fraction, bias;
    format_of(dtype, &fraction, &bias);
    uint32_t sign = signbit(v) ? 0x8000u : 0;
    uint32_t infinite = (uint32_t)(2 * bias + 1) << fraction;
    if (isnan(v))
        return (uint16_t)(infinite | 1u << (fraction - 1));
    long double a = fabsl(v);
    if (isinf(v))
        return (uint16_t)(sign | infinite);
    int e = exponent_at(a, bias);
    long double units = rintl(ldexpl(a, fraction - e)); /* ties to even */
    if (units >= ldexpl(1, fraction + 1)) {
        units /= 2;
        e++;
    }
    if (e > bias)
        return (uint16_t)(sign | infinite);
    /* A subnormal number has units below 2^fraction and exponent field 0. */
    uint32_t field = (uint32_t)(e + bias - 1) << fraction;
    return (uint16_t)(sign | (field + (uint32_t)units));
}

static long double decode16(trn_dtype dtype, uint16_t bits)
{
    int fraction, bias;
    format_of(dtype, &fraction, &bias);
    int field = (bits & 0x7fff) >> fraction;
    int low = bits & ((1 << fraction) - 1);
    long double sign = bits & 0x8000 ? -1 : 1;
    if (field == 2 * bias + 1)
        return low != 0 ? (long double)NAN : sign * (long double)INFINITY;
    if (field == 0)
        return sign * ldexpl(low, 1 - bias - fraction);
    return sign * ldexpl(low + (1 << fraction), field - bias - fraction);
}

#define GET(type)                                        \
    {                                                    \
        type x;                                          \
        memcpy(&x, p + i * (int64_t)sizeof x, sizeof x); \
        return (long double)x;                           \
    }

long double dtype_get(trn_dtype dtype, const void *data, int64_t i)
{
    const char *p = data;
    uint16_t half;
    switch (dtype) {
    case TRN_F64:
        GET(double)
    case TRN_F32:
        GET(float)
    case TRN_I64:
        GET(int64_t)
    case TRN_I32:
        GET(int32_t)
    case TRN_U32:
        GET(uint32_t)
    case TRN_U8:
    case TRN_BOOL:
        GET(uint8_t)
    case TRN_BF16:
    case TRN_F16:
    default:
        memcpy(&half, p + i * 2, 2);
        return decode16(dtype, half);
    }
}

#define PUT(type, value)                                 \
    {                                                    \
        type x = (type)(value);                          \
        memcpy(p + i * (int64_t)sizeof x, &x, sizeof x); \
        return;                                          \
    }

void dtype_put(trn_dtype dtype, void *data, int64_t i, long double v)
{
    char *p = data;
    uint16_t half;
    uint64_t wide = 0; /* the low bits of an integer */
    if (!dtype_is_float(dtype))
        wide = v < 0 ? ~(uint64_t)(-(v + 1)) : (uint64_t)v;
    switch (dtype) {
    case TRN_F64:
        PUT(double, v)
    case TRN_F32:
        PUT(float, v)
    case TRN_I64:
        PUT(uint64_t, wide)
    case TRN_I32:
    case TRN_U32:
        PUT(uint32_t, wide)
    case TRN_U8:
        PUT(uint8_t, wide)
    case TRN_BOOL:
        PUT(uint8_t, wide != 0)
    case TRN_BF16:
    case TRN_F16:
    default:
        half = encode16(dtype, v);
        memcpy(p + i * 2, &half, 2);
    }
}

long double dtype_round(trn_dtype dtype, long double v)
{
    char element[16];
    dtype_put(dtype, element, 0, v);
    return dtype_get(dtype, element, 0);
}

long double dtype_ulp(trn_dtype dtype, long double v)
{
    int fraction, bias;
    format_of(dtype, &fraction, &bias);
    return ldexpl(1, exponent_at(fabsl(v), bias) - fraction);
}

int64_t dtype_differ(trn_dtype dtype, const void *a, const void *b, int64_t n)
{
    size_t size = trn_dtype_size(dtype);
    if (n == 0 || memcmp(a, b, (size_t)n * size) == 0)
        return -1;
    for (int64_t i = 0; i < n; i++) {
        size_t at = (size_t)i * size;
        if (memcmp((const char *)a + at, (const char *)b + at, size) != 0 &&
            !(isnan(dtype_get(dtype, a, i)) && isnan(dtype_get(dtype, b, i))))
            return i;
    }
    return -1;
}
