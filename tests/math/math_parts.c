/* SPDX-License-Identifier: Apache-2.0
 *
 * One part of a function's inputs: all sets against each other by bits, the
 * generic one against the reference, and against MPFR where the error is within
 * 1 % of the bound; of f64 also each 1024th input.
 */
#include "math_job.h"
#include <math.h>
#include <stdio.h>

static trn__kernel_set sets[MATH_MAX_SETS];
static int n_sets;

static float fx[MATH_PART], fy[MATH_PART], f0[MATH_PART], f1[MATH_PART];
static double dx[MATH_PART], dy[MATH_PART], d0[MATH_PART], d1[MATH_PART];

/* An error by the reference, or by MPFR where it decides. */
static void judge(const math_job *job, double error, bool exactly, double x,
                  double y, double got, math_found *found)
{
    const double bound = job->function->bound[job->f32];
    if (exactly || error > 0.99 * bound) {
        error = math_ulps(job->function, job->f32, x, y, got);
        found->n_mpfr++;
    }
    if (error > found->worst) {
        found->worst = error;
        found->worst_x = x;
        found->worst_y = y;
    }
    if (error > bound)
        math_bad(found, "x = %a, y = %a: %a is %.3f ulp off", x, y, got, error);
}

static void judge_f32(const math_job *job, math_found *found)
{
    const math_reference *r = job->function->reference;
    for (int k = 0; k < n_sets; k++) {
        math_run_f32(&sets[k], job->function, MATH_PART, fx, fy, k ? f1 : f0);
        for (int i = 0; k && i < MATH_PART; i++)
            if (!same_f32(f0[i], f1[i]))
                math_bad(found, "%s: x = %a, y = %a: %a, generic %a",
                         sets[k].name, (double)fx[i], (double)fy[i],
                         (double)f1[i], (double)f0[i]);
    }
    for (int i = 0; i < MATH_PART; i++) {
        const double x = (double)fx[i], y = (double)fy[i];
        const double want = r->f1 ? r->f1(x) : r->f2(x, y);
        judge(job, math_near_f32(want, f0[i]), false, x, y, (double)f0[i],
              found);
    }
}

static void judge_f64(const math_job *job, math_found *found)
{
    const math_reference *r = job->function->reference;
    for (int k = 0; k < n_sets; k++) {
        math_run_f64(&sets[k], job->function, MATH_PART, dx, dy, k ? d1 : d0);
        for (int i = 0; k && i < MATH_PART; i++)
            if (!same_f64(d0[i], d1[i]))
                math_bad(found, "%s: x = %a, y = %a: %a, generic %a",
                         sets[k].name, dx[i], dy[i], d1[i], d0[i]);
    }
    for (int i = 0; i < MATH_PART; i++) {
        const long double x = (long double)dx[i], y = (long double)dy[i];
        const long double want = r->l1 ? r->l1(x) : r->l2(x, y);
        judge(job, math_near_f64(want, d0[i]), i % 1024 == 0, dx[i], dy[i],
              d0[i], found);
    }
}

static void all_f32(const math_job *job, uint64_t part, math_found *found)
{
    for (uint32_t i = 0; i < MATH_PART; i++) {
        const uint32_t bits = (uint32_t)part * MATH_PART + i;
        memcpy(&fx[i], &bits, sizeof bits);
    }
    judge_f32(job, found);
}

static void drawn(const math_job *job, uint64_t part, math_found *found)
{
    uint64_t seed = part * UINT64_C(0xd1342543de82ef95);
    for (int i = 0; i < MATH_PART; i++) {
        job->function->draw(&seed, job->f32, &dx[i], &dy[i]);
        fx[i] = (float)dx[i];
        fy[i] = (float)dy[i];
    }
    if (job->f32)
        judge_f32(job, found);
    else
        judge_f64(job, found);
}

int math_jobs(math_job *job)
{
    const uint64_t whole = (UINT64_C(1) << 32) / MATH_PART;
    int n = 0;
    n_sets = math_sets(sets);
    for (int f32 = 1; f32 >= 0; f32--)
        for (int i = 0; i < n_math_functions; i++) {
            const math_function *f = &math_functions[i];
            const bool all = f32 && f->n_in == 1;
            const uint64_t drawn_parts =
                (f32 ? 1000000000u : 100000000u) / MATH_PART + 1u;
            job[n] = (math_job){
                .function = f,
                .f32 = f32 != 0,
                .n_parts = all ? whole : drawn_parts,
                .run = all ? all_f32 : drawn,
            };
            snprintf(job[n++].name, sizeof job[0].name, "%s:%s", f->name,
                     f32 ? "f32" : "f64");
        }
    job[n++] = (math_job){
        .name = "convert:f32",
        .f32 = true,
        .n_parts = whole,
        .run = math_convert_part,
    };
    return n;
}
