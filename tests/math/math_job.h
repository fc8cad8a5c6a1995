/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs of `make test-math`: many equal parts, shared among processes.
 */
#ifndef TRN_TESTS_MATH_JOB_H
#define TRN_TESTS_MATH_JOB_H

#include "math_functions.h"

/* What one process found. */
typedef struct math_found {
    uint64_t n_inputs, n_mpfr, n_bad;
    double worst, worst_x, worst_y;
    char first_bad[256];
} math_found;

typedef struct math_job {
    char name[32];
    const math_function *function; /* NULL: conversions */
    bool f32;
    uint64_t n_parts; /* of MATH_PART inputs */
    void (*run)(const struct math_job *job, uint64_t part, math_found *found);
} math_job;

enum { MATH_PART = 1 << 14, MATH_MAX_JOBS = 64 };

/* Counts a wrong result and keeps the first. */
void math_bad(math_found *found, const char *format, ...);

int math_jobs(math_job *job); /* returns how many, at most MATH_MAX_JOBS */

/* Part of all f32 through the conversions to bf16 and f16. */
void math_convert_part(const math_job *job, uint64_t part, math_found *found);

/* Runs every step-th part on n processes; found is the sum of all. */
void math_run_job(const math_job *job, uint64_t step, int n_processes,
                  math_found *found);

#endif
