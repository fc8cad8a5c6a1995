/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of math_functions.h, and its references where the C library and
 * MPFR have no function of just that meaning.
 */
#include "math_functions.h"
#include <math.h>

/* exp is flushed to 0 where reproducibility says so. */
static double exp_f(double x)
{
    return x < (double)-87.34f ? 0.0 : exp(x);
}
static long double exp_l(long double x)
{
    return x < (long double)-708.39 ? 0.0L : expl(x);
}

static double exp_exponent(double x)
{
    return x;
}

static double rsqrt_f(double x)
{
    return 1.0 / sqrt(x);
}
static long double rsqrt_l(long double x)
{
    return 1.0L / sqrtl(x);
}
static int rsqrt_m(mpfr_ptr y, mpfr_srcptr x, mpfr_rnd_t r)
{
    if (mpfr_zero_p(x)) { /* MPFR forgets the sign */
        mpfr_set_inf(y, mpfr_signbit(x) ? -1 : 1);
        return 0;
    }
    return mpfr_rec_sqrt(y, x, r);
}

static double sign_f(double x)
{
    return (double)((x > 0.0) - (x < 0.0));
}
static long double sign_l(long double x)
{
    return (long double)((x > 0.0L) - (x < 0.0L));
}
static int sign_m(mpfr_ptr y, mpfr_srcptr x, mpfr_rnd_t r)
{
    return mpfr_set_si(y, mpfr_nan_p(x) ? 0 : mpfr_sgn(x), r);
}

static int abs_m(mpfr_ptr y, mpfr_srcptr x, mpfr_rnd_t r)
{
    return mpfr_setsign(y, x, 0, r);
}

#define UNARY(nm, f, l, m) \
    static const math_reference reference_##nm = {.f1 = f, .l1 = l, .exact1 = m}
#define BINARY(nm, f, l, m) \
    static const math_reference reference_##nm = {.f2 = f, .l2 = l, .exact2 = m}
static const math_reference reference_exp = {
    .f1 = exp_f,
    .l1 = exp_l,
    .exact1 = mpfr_exp,
    .exponent = exp_exponent,
};
UNARY(log, log, logl, mpfr_log);
UNARY(tanh, tanh, tanhl, mpfr_tanh);
UNARY(sin, sin, sinl, mpfr_sin);
UNARY(cos, cos, cosl, mpfr_cos);
UNARY(erf, erf, erfl, mpfr_erf);
UNARY(sqrt, sqrt, sqrtl, mpfr_sqrt);
UNARY(rsqrt, rsqrt_f, rsqrt_l, rsqrt_m);
UNARY(abs, fabs, fabsl, abs_m);
UNARY(sign, sign_f, sign_l, sign_m);
UNARY(floor, floor, floorl, mpfr_rint_floor);
UNARY(ceil, ceil, ceill, mpfr_rint_ceil);
UNARY(round, rint, rintl, mpfr_rint_roundeven);
UNARY(trunc, trunc, truncl, mpfr_rint_trunc);
BINARY(pow, pow, powl, mpfr_pow);
BINARY(atan2, atan2, atan2l, mpfr_atan2);

#define reference_gelu math_gelu
#define reference_sigmoid math_sigmoid
#define reference_silu math_silu
#define reference_gelu_tanh math_gelu_tanh

const math_function math_functions[] = {
#define MATH(nm, inputs, draws, f32, f64)               \
    {                                                   \
        .name = #nm,                                    \
        .n_in = inputs,                                 \
        .place = {offsetof(trn__kernel_set, nm##_f64),  \
                  offsetof(trn__kernel_set, nm##_f32)}, \
        .bound = {f64, f32},                            \
        .reference = &reference_##nm,                   \
        .draw = draw_##draws,                           \
    },
#include "math_bounds.def"
};
const int n_math_functions = sizeof math_functions / sizeof math_functions[0];

const math_function *math_find(const char *name)
{
    for (int i = 0; i < n_math_functions; i++)
        if (strcmp(math_functions[i].name, name) == 0)
            return &math_functions[i];
    return NULL;
}

int math_sets(trn__kernel_set *set)
{
    int n = kernel_sets(set);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("fma")) {
        trn__set_generic(&set[n]);
        math_generic_fma(&set[n++]);
    }
#endif
    return n;
}

void math_run_f32(const trn__kernel_set *s, const math_function *f, int64_t n,
                  const float *x, const float *y, float *out)
{
    const char *at = (const char *)s + f->place[true];
    trn__unary_f32_fn *unary;
    trn__binary_f32_fn *binary;
    memcpy(&unary, at, sizeof unary);
    memcpy(&binary, at, sizeof binary);
    if (f->n_in == 1)
        unary(n, x, out);
    else
        binary(n, x, y, out);
}

void math_run_f64(const trn__kernel_set *s, const math_function *f, int64_t n,
                  const double *x, const double *y, double *out)
{
    const char *at = (const char *)s + f->place[false];
    trn__unary_f64_fn *unary;
    trn__binary_f64_fn *binary;
    memcpy(&unary, at, sizeof unary);
    memcpy(&binary, at, sizeof binary);
    if (f->n_in == 1)
        unary(n, x, out);
    else
        binary(n, x, y, out);
}
