/* SPDX-License-Identifier: Apache-2.0
 *
 * How far XLA may be from the CPU device: one table for all rows.
 *
 * bound = ulp * ulp(value in the result's type)
 *       + (units + per_term * n) * unit * size
 * where unit is the rounding unit of the type in which the row computes, n the
 * length of the sums inside, and size what the oracle says that rounding errors
 * are relative to: for sums, the same sum of absolute values.
 */
#ifndef TRN_TESTS_XLA_BOUNDS_H
#define TRN_TESTS_XLA_BOUNDS_H

#include "tests/oracle.h"

typedef struct xla_bound {
    bool moves;                         /* bits, NaN excepted */
    double ulp_f32, ulp_f64, ulp_small; /* small: bf16 and f16 */
    double units, per_term;
} xla_bound;

/* By op. */
extern const xla_bound xla_bounds[TRN_OP_LIMIT];

/* The worst of a row in a type. */
typedef struct xla_worst {
    bool seen;
    double ulps;  /* of the result's type */
    double units; /* in units of unit * size */
    double share; /* of the bound; 1: all of it */
} xla_worst;

/* The first element of `got` that is too far from `want`, or -1.  y: the same
 * result from the oracle, for its sizes. */
int64_t xla_too_far(const case_args *a, const oracle_result *r,
                    const oracle_tensor *y, const void *want, const void *got,
                    xla_worst *worst);

/* Numbers below which XLA and its processor may put 0, and may read 0: the
 * smallest normal number of the computing type. */
long double xla_tiny(trn_dtype dtype);

/* Makes subnormal inputs of rows that compute zeros, since that is what XLA
 * reads in their place. */
void xla_flush_inputs(case_args *a);

#endif
