/* SPDX-License-Identifier: Apache-2.0
 *
 * What the ops should give, by their formulas in long double and the C
 * library's functions, in plain loops; nothing here calls the library.
 */
#ifndef TRN_TESTS_ORACLE_H
#define TRN_TESTS_ORACLE_H

#include "case_build.h"
#include "tolerances.h"

typedef struct oracle_tensor {
    trn_dtype dtype;
    int rank;
    int64_t dim[TRN_MAX_RANK];
    int64_t n;
    long double *v;    /* the value */
    long double *size; /* what rounding errors are relative to */
} oracle_tensor;

typedef struct oracle_result {
    int n_out;
    tolerance_class tolerance;
    int64_t length; /* of the sums inside */
    oracle_tensor out[CASE_MAX_OUT];
} oracle_result;

void oracle_run(const case_args *a, oracle_result *r);
void oracle_free(oracle_result *r);

/* ---- for the parts of the oracle ---- */

/* Makes output i; dims may be NULL for rank 0. */
oracle_tensor *oracle_make(oracle_result *r, int i, trn_dtype dtype, int rank,
                           const int64_t *dim);
/* Row-major number to index, and back (index beyond the shape's size 1 or
 * missing axes: as broadcasting reads). */
void oracle_index(int rank, const int64_t *dim, int64_t flat, int64_t *index);
int64_t oracle_flat(int rank, const int64_t *dim, const int64_t *index);
int64_t oracle_broadcast(const case_input *x, int rank, const int64_t *index);
/* An integer result wrapped to its type. */
long double oracle_wrap(trn_dtype dtype, uint64_t bits);
/* A floating value as an integer type holds it: truncated, cut to the range,
 * NaN as 0. */
long double oracle_saturate(trn_dtype dtype, long double v);
/* The low 64 bits of an integer value. */
uint64_t oracle_bits(long double v);
/* f32 for the 16-bit types; a host double as an op of that type takes it. */
trn_dtype oracle_compute(trn_dtype dtype);
long double oracle_value(trn_dtype dtype, double value);
/* e^x, flushed to 0 where the library does. */
long double oracle_exp(trn_dtype dtype, long double x);
/* IEEE 754-2019 maximum and minimum. */
long double oracle_maximum(long double a, long double b);
long double oracle_minimum(long double a, long double b);
/* Which element of the reduced tensor element i of x goes to. */
int64_t oracle_target(const case_input *x, uint32_t axes, int64_t i);
/* Output 0 of a reduction over axes; r->length is set. */
oracle_tensor *oracle_reduced(const case_args *a, oracle_result *r,
                              trn_dtype dtype, uint32_t axes);
/* The shape that the inputs broadcast to. */
void oracle_shape_of_all(const case_args *a, int *rank, int64_t *dim);

void oracle_elementwise(const case_args *a, oracle_result *r);
void oracle_shape(const case_args *a, oracle_result *r);
void oracle_reduce(const case_args *a, oracle_result *r);
/* False if the row is none of its own. */
bool oracle_statistics(const case_args *a, oracle_result *r);
void oracle_argmax(const case_args *a, oracle_result *r);
void oracle_matmul(const case_args *a, oracle_result *r);
void oracle_index_ops(const case_args *a, oracle_result *r);
void oracle_random(const case_args *a, oracle_result *r);
void oracle_random_integers(const case_args *a, oracle_result *r);
void oracle_softmax(const case_args *a, oracle_result *r);
void oracle_cross_entropy(const case_args *a, oracle_result *r);
void oracle_general_cross_entropy(const case_args *a, oracle_result *r);
void oracle_update(const case_args *a, oracle_result *r);

#endif
