/* SPDX-License-Identifier: Apache-2.0
 *
 * How far a result may be from the exact value: one table for all ops.
 *
 * bound = stored * ulp(value in the result's type)
 *       + unit * size
 * where unit is `computed` (+ `per_term` for each term of a sum) times the
 * rounding unit of the type in which the row computes, and size is what the
 * oracle says that rounding errors are relative to.
 */
#ifndef TRN_TESTS_TOLERANCES_H
#define TRN_TESTS_TOLERANCES_H

typedef enum tolerance_class {
    TOLERANCE_EXACT,    /* moves values, or picks one */
    TOLERANCE_ROUNDED,  /* one operation, rounded to nearest */
    TOLERANCE_FUNCTION, /* exp, log, tanh, pow: 2 ulp in f32, 4 in f64 */
    TOLERANCE_SUM,      /* in f64 lanes, rounded once */
    TOLERANCE_PRODUCT,  /* matmul: chains of FMA in the computing type */
    TOLERANCE_SCATTER,  /* additions one after the other */
    TOLERANCE_COMPOSITE /* several operations in the computing type */
} tolerance_class;

typedef struct tolerance_row {
    double stored;
    double computed_f64, computed_f32; /* in units of 2^-53, 2^-24 */
    double per_term;
    int in_f64; /* sums are formed in f64 for every type */
} tolerance_row;

/* 0.502 instead of 0.5: the bf16 and f16 results are rounded twice. */
static const tolerance_row tolerance_table[] = {
    [TOLERANCE_EXACT] = {0.0, 0, 0, 0.0, 0},
    [TOLERANCE_ROUNDED] = {0.502, 0, 0, 0.0, 0},
    [TOLERANCE_FUNCTION] = {0.502, 8, 4, 0.0, 0},
    [TOLERANCE_SUM] = {0.502, 40, 40, 0.0, 1},
    [TOLERANCE_PRODUCT] = {0.502, 2, 2, 1.0, 0},
    [TOLERANCE_SCATTER] = {0.502, 2, 2, 1.0, 0},
    [TOLERANCE_COMPOSITE] = {0.502, 16, 16, 0.0, 0},
};

/* Gradients in f64 against central differences of step GRADIENT_STEP times
 * max(1, |x|), relative to the size of what is differentiated. */
#define GRADIENT_STEP 2e-6
#define GRADIENT_TOLERANCE 1e-7

#endif
