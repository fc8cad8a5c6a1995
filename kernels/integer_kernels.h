/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise kernels of the integer types, and conversions between all types.
 *
 * They belong to no instruction set: integers are the same everywhere, and the
 * vectoriser does well enough.  As in kernel_set.h any n and any alignment of
 * the type is allowed, and y may be one of the inputs.
 */
#ifndef TRN_KERNELS_INTEGER_KERNELS_H
#define TRN_KERNELS_INTEGER_KERNELS_H

#include "trn/types.h"

typedef void trn__integer_unary_fn(int64_t n, const void *x, void *y);
typedef void trn__integer_binary_fn(int64_t n, const void *a, const void *b,
                                    void *y);
typedef int64_t trn__integer_div_fn(int64_t n, const void *a, const void *b,
                                    void *y);

/* One type's kernels.  The pointers are to elements of that type. */
typedef struct trn__integer_kernels {
    trn__integer_unary_fn *neg, *relu, *abs, *sign;

    /* Arithmetic wraps around, of signed types too. */
    trn__integer_binary_fn *add, *sub, *mul, *maximum, *minimum;

    /* y: bool, one byte each */
    trn__integer_binary_fn *greater, *equal, *less, *less_equal, *greater_equal,
        *not_equal;

    /*
     * Division truncates towards 0; smallest / -1 = smallest.  Returns -1, or
     * the position of the first divisor that is 0: then y[0 .. position - 1]
     * are written and nothing after them.
     */
    trn__integer_div_fn *div;
} trn__integer_kernels;

/* The kernels of I64, I32, U32 or U8; NULL for every other type. */
const trn__integer_kernels *trn__integer_kernels_of(trn_dtype dtype);

/*
 * y[i] = x[i] as another type, for every pair of types.
 *
 * To a float type: rounded once, to nearest even.  From a float to an integer:
 * truncated towards 0, saturated, NaN gives 0.  From an integer to an integer:
 * modulo 2^bits.  To bool: x is not 0 (a NaN is not).  bool counts as 0 or 1.
 * y may be x where both types have the same size.
 */
void trn__convert(trn_dtype from, trn_dtype to, int64_t n, const void *x,
                  void *y);

#endif
