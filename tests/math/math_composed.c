/* SPDX-License-Identifier: Apache-2.0
 *
 * References of gelu, sigmoid, silu and gelu_tanh, each by a formula that does
 * not cancel; of the C library, and by MPFR on 300 bits.
 */
#include "math_functions.h"
#include <math.h>

enum { PRECISION = 300 };

/* ---- gelu: x/2 erfc(-x / sqrt 2) ---- */

static double gelu_f(double x)
{
    return x * 0.5 * erfc(-x * 0.7071067811865476);
}

/* u = -x / sqrt 2 is rounded; its error d counts -2/sqrt(pi) e^(-u^2) times. */
static long double gelu_l(long double x)
{
    const long double high = 0xb.504f333f9de6484p-4L;
    const long double low = 0xb.2fb1366ea957d3ep-69L;
    const long double u = -x * high;
    long double c = erfcl(u);
    if (isfinite(x)) {
        const long double d = fmal(-x, high, -u) - x * low;
        c -= d * 1.12837916709551257390L * expl(-u * u);
    }
    return x * 0.5L * c;
}

static int gelu_m(mpfr_ptr y, mpfr_srcptr x, mpfr_rnd_t r)
{
    mpfr_t u;
    mpfr_init2(u, PRECISION);
    mpfr_sqrt_ui(u, 2, MPFR_RNDN);
    mpfr_div(u, x, u, MPFR_RNDN);
    mpfr_neg(u, u, MPFR_RNDN);
    mpfr_erfc(u, u, MPFR_RNDN);
    mpfr_mul(u, u, x, MPFR_RNDN); /* -inf 0: NaN */
    const int inexact = mpfr_div_2ui(y, u, 1, r);
    mpfr_clear(u);
    return inexact;
}

const math_reference math_gelu = {.f1 = gelu_f, .l1 = gelu_l, .exact1 = gelu_m};

/* ---- sigmoid and its products ---- */

/* 1 + e^-z; infinite, so that its inverse is 0, where e^z is flushed. */
static double one_plus_f(double z)
{
    return z < (double)-87.34f ? (double)INFINITY : 1.0 + exp(-z);
}
static long double one_plus_l(long double z)
{
    return z < (long double)-708.39 ? (long double)INFINITY : 1.0L + expl(-z);
}

static double sigmoid_f(double x)
{
    return 1.0 / one_plus_f(x);
}
static long double sigmoid_l(long double x)
{
    return 1.0L / one_plus_l(x);
}
/* y = factor / (1 + e^-z) */
static int over_one_plus_exp(mpfr_ptr y, mpfr_srcptr factor, mpfr_srcptr z,
                             mpfr_rnd_t r)
{
    mpfr_t e;
    mpfr_init2(e, PRECISION);
    mpfr_neg(e, z, MPFR_RNDN);
    mpfr_exp(e, e, MPFR_RNDN);
    mpfr_add_ui(e, e, 1, MPFR_RNDN);
    const int inexact = mpfr_div(y, factor, e, r); /* -inf / inf: NaN */
    mpfr_clear(e);
    return inexact;
}
static int sigmoid_m(mpfr_ptr y, mpfr_srcptr x, mpfr_rnd_t r)
{
    mpfr_t one;
    mpfr_init2(one, 2);
    mpfr_set_ui(one, 1, MPFR_RNDN);
    const int inexact = over_one_plus_exp(y, one, x, r);
    mpfr_clear(one);
    return inexact;
}
static double same(double x)
{
    return x;
}

const math_reference math_sigmoid = {
    .f1 = sigmoid_f,
    .l1 = sigmoid_l,
    .exact1 = sigmoid_m,
    .exponent = same,
};

static double silu_f(double x)
{
    return x / one_plus_f(x);
}
static long double silu_l(long double x)
{
    return x / one_plus_l(x);
}
static int silu_m(mpfr_ptr y, mpfr_srcptr x, mpfr_rnd_t r)
{
    return over_one_plus_exp(y, x, x, r);
}

const math_reference math_silu = {
    .f1 = silu_f,
    .l1 = silu_l,
    .exact1 = silu_m,
    .exponent = same,
    .times_x = true,
};

/* ---- gelu_tanh: x / (1 + e^-z), z = 2 sqrt(2/pi) (x + 0.044715 x^3) ---- */

/* z as result + *low: e^z has |z| times its relative error. */
static long double gelu_tanh_z(long double x, long double *low)
{
    const long double c1 = 1.5957691216057307118L, c1_low = 0x1.f9678ap-65L;
    const long double c3 = 0.044715L, c3_low = 0x1.355476p-71L;
    const long double square = x * x, p = c3 * square;
    const long double p_low =
        fmal(c3, square, -p) + c3_low * square + c3 * fmal(x, x, -square);
    const long double f = 1.0L + p, t = f - 1.0L; /* either may be larger */
    const long double f_low = (1.0L - (f - t)) + (p - t) + p_low;
    const long double w = c1 * f;
    const long double w_low = fmal(c1, f, -w) + c1 * f_low + c1_low * f;
    const long double z = x * w;
    *low = fmal(x, w, -z) + x * w_low;
    return z;
}
static double gelu_tanh_f(double x)
{
    const double z = 1.5957691216057308 * (x + 0.044715 * x * x * x);
    return x / one_plus_f(z);
}
static long double gelu_tanh_l(long double x)
{
    long double low, z = gelu_tanh_z(x, &low);
    if (!(fabsl(x) < 100.0L)) /* squares overflow */
        return x > 0.0L ? x : x * 0.0L;
    if (z < (long double)-708.39)
        return x * 0.0L;
    return x / (1.0L + expl(-z) * (1.0L - low));
}
static int gelu_tanh_m(mpfr_ptr y, mpfr_srcptr x, mpfr_rnd_t r)
{
    mpfr_t z, k;
    mpfr_inits2(PRECISION, z, k, (mpfr_ptr)0);
    mpfr_mul(z, x, x, MPFR_RNDN);
    mpfr_mul_ui(z, z, 44715, MPFR_RNDN);
    mpfr_div_ui(z, z, 1000000, MPFR_RNDN);
    mpfr_add_ui(z, z, 1, MPFR_RNDN);
    mpfr_mul(z, z, x, MPFR_RNDN);
    mpfr_const_pi(k, MPFR_RNDN); /* 2 sqrt(2/pi) = sqrt(8/pi) */
    mpfr_ui_div(k, 8, k, MPFR_RNDN);
    mpfr_sqrt(k, k, MPFR_RNDN);
    mpfr_mul(z, z, k, MPFR_RNDN);
    const int inexact = over_one_plus_exp(y, x, z, r);
    mpfr_clears(z, k, (mpfr_ptr)0);
    return inexact;
}
static double gelu_tanh_exponent(double x)
{
    long double low;
    return (double)gelu_tanh_z((long double)x, &low);
}

const math_reference math_gelu_tanh = {
    .f1 = gelu_tanh_f,
    .l1 = gelu_tanh_l,
    .exact1 = gelu_tanh_m,
    .exponent = gelu_tanh_exponent,
    .times_x = true,
};
