/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of math_bounds.def with everything that judges them: where
 * their kernels are, references, draws of inputs, and errors in ulp.
 */
#ifndef TRN_TESTS_MATH_FUNCTIONS_H
#define TRN_TESTS_MATH_FUNCTIONS_H

#include <mpfr.h>
#include "../kernel_sets.h"

typedef int math_exact1_fn(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
typedef int math_exact2_fn(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);

/* References of the C library: double for f32, long double for f64. */
typedef struct math_reference {
    double (*f1)(double);
    double (*f2)(double, double);
    long double (*l1)(long double);
    long double (*l2)(long double, long double);
    math_exact1_fn *exact1;
    math_exact2_fn *exact2;
    /* e^exponent(x), a factor of the result, is 0 where exp is flushed; then
     * times_x: the result has the sign of x, else it is +0 */
    double (*exponent)(double);
    bool times_x;
} math_reference;

typedef struct math_function {
    const char *name;
    int n_in;
    size_t place[2]; /* in a kernel set: f64, f32 */
    double bound[2]; /* the largest error in ulp that is promised: f64, f32 */
    const math_reference *reference;
    void (*draw)(uint64_t *rng, bool f32, double *x, double *y);
} math_function;

extern const math_function math_functions[];
extern const int n_math_functions;

/* Those of rows that are composed of exp or erfc: math_composed.c. */
extern const math_reference math_gelu, math_sigmoid, math_silu, math_gelu_tanh;

const math_function *math_find(const char *name);

/* generic, the sets over it, and generic with hardware FMA, where they run */
enum { MATH_MAX_SETS = MAX_SETS + 1 };
int math_sets(trn__kernel_set *set);
/* Lays generic kernels that were compiled with hardware FMA over s. */
void math_generic_fma(trn__kernel_set *s);

void math_run_f32(const trn__kernel_set *s, const math_function *f, int64_t n,
                  const float *x, const float *y, float *out);
void math_run_f64(const trn__kernel_set *s, const math_function *f, int64_t n,
                  const double *x, const double *y, double *out);

/*
 * Errors in ulp: by MPFR, or from the reference's value, whose own error is
 * below 2^-10 of that.  1e9 where NaN, sign or infinity differ.
 */
double math_ulps(const math_function *f, bool f32, double x, double y,
                 double got);
double math_near_f32(double reference, float got);
double math_near_f64(long double reference, double got);

double math_any(uint64_t *rng, bool f32); /* any bit pattern */
double math_uniform(uint64_t *rng, double low, double high);

void draw_exp(uint64_t *rng, bool f32, double *x, double *y);
void draw_log(uint64_t *rng, bool f32, double *x, double *y);
void draw_tanh(uint64_t *rng, bool f32, double *x, double *y);
void draw_trig(uint64_t *rng, bool f32, double *x, double *y);
void draw_erf(uint64_t *rng, bool f32, double *x, double *y);
void draw_gelu(uint64_t *rng, bool f32, double *x, double *y);
void draw_round(uint64_t *rng, bool f32, double *x, double *y);
void draw_pow(uint64_t *rng, bool f32, double *x, double *y);
void draw_atan2(uint64_t *rng, bool f32, double *x, double *y);

#endif
