/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenBLAS for matrix products of f32 and f64, where the option "matmul" asks
 * for it.  Its bits depend on its version, the processor and the threads.
 *
 * All devices that use a library share its record, which lives as long as the
 * process.
 */
#ifndef TRN_BACKENDS_CPU_BLAS_H
#define TRN_BACKENDS_CPU_BLAS_H

#include "backends/cpu/cpu_matmul.h"

/* As the functions of cblas.h want them; its header is not needed. */
#define TRN__BLAS_ROW_MAJOR 101
#define TRN__BLAS_PLAIN 111
#define TRN__BLAS_TURNED 112

typedef void trn__sgemm_fn(int order, int turn_a, int turn_b, int m, int n,
                           int k, float alpha, const float *a, int step_a,
                           const float *b, int step_b, float beta, float *c,
                           int step_c);
typedef void trn__dgemm_fn(int order, int turn_a, int turn_b, int m, int n,
                           int k, double alpha, const double *a, int step_a,
                           const double *b, int step_b, double beta, double *c,
                           int step_c);

struct trn__blas {
    void *object; /* of dlopen */
    trn__sgemm_fn *sgemm;
    trn__dgemm_fn *dgemm;
    int (*get_threads)(void);
    void (*set_threads)(int n);
    /* of the OpenMP that such a build takes its threads from, else NULL */
    int (*omp_get)(void);
    void (*omp_set)(int n);
    char name[96]; /* "OpenBLAS 0.3.21 SkylakeX" */
    bool shared;   /* threads of ours call it at once; else one does, locked,
                      and what threads it has are its own */
    int n_users, threads_set, threads_before, omp_before;
};

/*
 * The library that the options "matmul" and "openblas_library" name; *blas is
 * NULL where products are those of the kernels.  Raises what it returns.
 */
int32_t trn__blas_open(const trn_host_services *host, trn__blas **blas);

/* Between enter and leave the library uses the threads that it should: the
 * caller's alone if it is shared, else n_threads.  The last that leaves puts
 * back what the process had. */
void trn__blas_enter(trn__blas *blas, int n_threads);
void trn__blas_leave(trn__blas *blas);

/* Is there a library that can read these factors where they lie? */
bool trn__blas_takes(const trn__cpu_products *p);
/* All products of the batch, by the device's threads. */
void trn__blas_multiply(const trn__cpu_products *p);

#endif
