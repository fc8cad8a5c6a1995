/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors in ulp of the exact value.
 *
 * The unit is that of the exact value's binade, at least the smallest subnormal
 * number, at most that of the largest binade; an infinity counts as the power
 * of two at which the format ends.
 */
#include "math_functions.h"
#include <math.h>

static const double other_kind = 1e9;

static void exact_value(const math_function *f, mpfr_t e, double x, double y)
{
    mpfr_t a, b;
    mpfr_inits2(53, a, b, (mpfr_ptr)0);
    mpfr_set_d(a, x, MPFR_RNDN);
    mpfr_set_d(b, y, MPFR_RNDN);
    if (f->n_in == 1)
        f->reference->exact1(e, a, MPFR_RNDN);
    else
        f->reference->exact2(e, a, b, MPFR_RNDN);
    mpfr_clears(a, b, (mpfr_ptr)0);
}

static double finite_ulps(mpfr_t e, bool f32, double got)
{
    const long digits = f32 ? 24 : 53, least = f32 ? -149 : -1074;
    const long top = f32 ? 128 : 1024;
    long unit = mpfr_get_exp(e) - digits;
    mpfr_t d;
    if (isinf(got) && mpfr_get_exp(e) > top)
        return 0.0;
    mpfr_init2(d, mpfr_get_prec(e));
    mpfr_set_d(d, got, MPFR_RNDN);
    if (isinf(got))
        mpfr_set_si_2exp(d, signbit(got) ? -1 : 1, top, MPFR_RNDN);
    mpfr_sub(d, d, e, MPFR_RNDN);
    unit = unit < least ? least : unit;
    unit = unit > top - digits ? top - digits : unit;
    mpfr_mul_2si(d, d, -unit, MPFR_RNDN);
    const double error = fabs(mpfr_get_d(d, MPFR_RNDN));
    mpfr_clear(d);
    return error;
}

/*
 * Where the kernel's e^z is 0 instead of a tiny number; *must: and nothing else
 * is right.  At the limit itself a rounded z may lie on either side.
 */
static bool flushed(const math_reference *r, bool f32, double x, bool *must)
{
    const double limit = f32 ? (double)-87.34f : -708.39;
    if (r->exponent == NULL || isinf(x))
        return false;
    const double z = r->exponent(x), off = z == x ? 0.0 : 0x1p-20 * -limit;
    *must = z < limit - off;
    return z < limit + off;
}

double math_ulps(const math_function *f, bool f32, double x, double y,
                 double got)
{
    double error;
    bool must;
    mpfr_t e;
    if (flushed(f->reference, f32, x, &must)) {
        const bool minus = f->reference->times_x && signbit(x);
        if (got == 0.0 && !signbit(got) == !minus)
            return 0.0;
        if (must)
            return other_kind;
    }
    mpfr_init2(e, f32 ? 72 : 100);
    exact_value(f, e, x, y);
    if (mpfr_nan_p(e))
        error = isnan(got) ? 0.0 : other_kind;
    else if (isnan(got) || !signbit(got) != !mpfr_signbit(e))
        error = other_kind;
    else if (!mpfr_regular_p(e))
        error = mpfr_cmp_d(e, got) == 0 ? 0.0 : other_kind;
    else
        error = finite_ulps(e, f32, got);
    mpfr_clear(e);
    return error;
}

static double power_of_two(int exponent) /* of a normal number */
{
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

double math_near_f32(double reference, float got)
{
    const double r = reference, top = 0x1p128;
    if (r != r || got != got)
        return (r != r) == (got != got) ? 0.0 : other_kind;
    uint64_t bits;
    memcpy(&bits, &r, sizeof bits);
    if ((bits >> 63) != (signbit(got) != 0))
        return other_kind;
    if (isinf(got) && fabs(r) >= top)
        return 0.0;
    int unit = (int)(bits >> 52 & 0x7ff) - 1023 - 23;
    unit = unit < -149 ? -149 : unit;
    unit = unit > 104 ? 104 : unit;
    const double g = isinf(got) ? copysign(top, r) : (double)got;
    return fabs(g - r) * power_of_two(-unit);
}

double math_near_f64(long double reference, double got)
{
    const long double r = reference, top = 0x1p1024L;
    if (r != r || got != got)
        return (r != r) == (got != got) ? 0.0 : other_kind;
    if (!signbit(r) != !signbit(got))
        return other_kind;
    if (isinf(got) && fabsl(r) >= top)
        return 0.0;
    if (isinf(r))
        return other_kind;
    int unit;
    (void)frexpl(r, &unit);
    unit = r == 0.0L || unit - 53 < -1074 ? -1074 : unit - 53;
    unit = unit > 971 ? 971 : unit;
    const long double g = isinf(got) ? copysignl(top, r) : (long double)got;
    return (double)ldexpl(fabsl(g - r), -unit);
}
