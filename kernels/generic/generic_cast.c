/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversions between all element types (op cast).
 *
 * An element is loaded into one of three wide types that hold it exactly: float
 * (f32, bf16, f16), double (f64) or int64_t (integers and bool).  A type is
 * then four macros: its load, and a store from each wide type.  The 81 loops
 * are their combinations, and the table has a row per type to convert from.
 */
#include "kernels/convert.h"
#include "kernels/integer_kernels.h"

typedef void cast_fn(int64_t n, const void *x, void *y);

/* Truncated towards 0 and saturated; NaN fails both comparisons and gives 0. */
#define SATURATE(name, type, low, high, low_value, high_value)            \
    static inline type name(double x)                                     \
    {                                                                     \
        if (x > (low) && x < (high))                                      \
            return (type)x;                                               \
        return x >= (high) ? (high_value) : x <= (low) ? (low_value) : 0; \
    }
SATURATE(to_i64, int64_t, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX)
SATURATE(to_i32, int32_t, -0x1p31, 0x1p31, INT32_MIN, INT32_MAX)
SATURATE(to_u32, uint32_t, 0.0, 0x1p32, 0, UINT32_MAX)
SATURATE(to_u8, uint8_t, 0.0, 0x1p8, 0, UINT8_MAX)

/*
 * Rounded to odd at 53 bits or fewer, for a later rounding to 16 bits: below
 * 2^52 a double holds x, above it the last 12 bits are only noted to exist.
 */
static inline double odd_f64(int64_t x)
{
    const uint64_t size = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
    uint64_t kept = size;
    if (size >> 52)
        kept = (size | ((size & 0xfffu) ? 0x1000u : 0u)) & ~UINT64_C(0xfff);
    return x < 0 ? -(double)kept : (double)kept;
}

static inline uint16_t f64_to_bf16(double x)
{
    return trn__f32_to_bf16(trn__f64_to_f32_odd(x));
}

static inline uint16_t f64_to_f16(double x)
{
    return trn__f32_to_f16(trn__f64_to_f32_odd(x));
}

/* The type of an element in memory. */
#define TYPE_F64 double
#define TYPE_F32 float
#define TYPE_BF16 uint16_t
#define TYPE_F16 uint16_t
#define TYPE_I64 int64_t
#define TYPE_I32 int32_t
#define TYPE_U32 uint32_t
#define TYPE_U8 uint8_t
#define TYPE_BOOL uint8_t

/* Its value, as the wide type holds it. */
#define LOAD_F64(x) (x)
#define LOAD_F32(x) (x)
#define LOAD_BF16(x) trn__bf16_to_f32(x)
#define LOAD_F16(x) trn__f16_to_f32(x)
#define LOAD_I64(x) (x)
#define LOAD_I32(x) (x)
#define LOAD_U32(x) (x)
#define LOAD_U8(x) (x)
#define LOAD_BOOL(x) ((x) != 0)

/* The stores, by the wide type: S float, D double, I int64_t. */
#define F64_FROM_S(v) ((double)(v))
#define F64_FROM_D(v) (v)
#define F64_FROM_I(v) ((double)(v))
#define F32_FROM_S(v) (v)
#define F32_FROM_D(v) ((float)(v))
#define F32_FROM_I(v) ((float)(v))
#define BF16_FROM_S(v) trn__f32_to_bf16(v)
#define BF16_FROM_D(v) f64_to_bf16(v)
#define BF16_FROM_I(v) f64_to_bf16(odd_f64(v))
#define F16_FROM_S(v) trn__f32_to_f16(v)
#define F16_FROM_D(v) f64_to_f16(v)
#define F16_FROM_I(v) f64_to_f16(odd_f64(v))
#define I64_FROM_S(v) to_i64((double)(v))
#define I64_FROM_D(v) to_i64(v)
#define I64_FROM_I(v) (v)
#define I32_FROM_S(v) to_i32((double)(v))
#define I32_FROM_D(v) to_i32(v)
#define I32_FROM_I(v) ((int32_t)(uint32_t)(uint64_t)(v))
#define U32_FROM_S(v) to_u32((double)(v))
#define U32_FROM_D(v) to_u32(v)
#define U32_FROM_I(v) ((uint32_t)(uint64_t)(v))
#define U8_FROM_S(v) to_u8((double)(v))
#define U8_FROM_D(v) to_u8(v)
#define U8_FROM_I(v) ((uint8_t)(uint64_t)(v))
#define BOOL_FROM_S(v) ((v) != 0)
#define BOOL_FROM_D(v) ((v) != 0)
#define BOOL_FROM_I(v) ((v) != 0)

#define CAST(from, to, wide, store)                                     \
    static void cast_##from##_##to(int64_t n, const void *vx, void *vy) \
    {                                                                   \
        const TYPE_##from *x = vx;                                      \
        TYPE_##to *y = vy;                                              \
        for (int64_t i = 0; i < n; i++) {                               \
            const wide v = LOAD_##from(x[i]);                           \
            y[i] = store(v);                                            \
        }                                                               \
    }

/* The nine loops from one type; w is the letter of its wide type. */
#define CASTS_FROM(from, wide, w)         \
    CAST(from, F64, wide, F64_FROM_##w)   \
    CAST(from, F32, wide, F32_FROM_##w)   \
    CAST(from, BF16, wide, BF16_FROM_##w) \
    CAST(from, F16, wide, F16_FROM_##w)   \
    CAST(from, I64, wide, I64_FROM_##w)   \
    CAST(from, I32, wide, I32_FROM_##w)   \
    CAST(from, U32, wide, U32_FROM_##w)   \
    CAST(from, U8, wide, U8_FROM_##w)     \
    CAST(from, BOOL, wide, BOOL_FROM_##w)

CASTS_FROM(F64, double, D)
CASTS_FROM(F32, float, S)
CASTS_FROM(BF16, float, S)
CASTS_FROM(F16, float, S)
CASTS_FROM(I64, int64_t, I)
CASTS_FROM(I32, int64_t, I)
CASTS_FROM(U32, int64_t, I)
CASTS_FROM(U8, int64_t, I)
CASTS_FROM(BOOL, int64_t, I)

#define CELL(from, to) [TRN_##to] = cast_##from##_##to
#define ROW(from)                                           \
    [TRN_##from] = {                                        \
        CELL(from, F64), CELL(from, F32), CELL(from, BF16), \
        CELL(from, F16), CELL(from, I64), CELL(from, I32),  \
        CELL(from, U32), CELL(from, U8),  CELL(from, BOOL), \
    }

/* Indexed by the codes of types.h, which begin with 1. */
static cast_fn *const casts[TRN_BOOL + 1][TRN_BOOL + 1] = {
    ROW(F64), ROW(F32), ROW(BF16), ROW(F16),  ROW(I64),
    ROW(I32), ROW(U32), ROW(U8),   ROW(BOOL),
};

void trn__convert(trn_dtype from, trn_dtype to, int64_t n, const void *x,
                  void *y)
{
    casts[from][to](n, x, y);
}
