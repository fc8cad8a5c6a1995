/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU's own mathematics: errors in ulp against MPFR on seeded samples of
 * the whole range, special values, and that each set gives the same bits.
 */
#include "draws.h"
#include <float.h>
#include <mpfr.h>
#include "kernels/scalar.h"

enum { N_SAMPLES = 200000 };

typedef enum function { EXP, LOG, TANH, POW, SIN, COS } function;

/* A few ulps around x. */
static double near(bool f32, double x)
{
    int k = (int)(next_bits(&rng) % 33) - 16;
    return x + x * k * (f32 ? 0x1p-24 : 0x1p-53);
}

static double draw_exp(bool f32)
{
    const double top = f32 ? 0x1.62e43p+6 : 0x1.62e42fefa39efp+9;
    const double low = f32 ? -87.34 : -708.39;
    switch (next_bits(&rng) % 4) {
    case 0:
        return any_bits(f32);
    case 1:
        return uniform(1.05 * low, 1.05 * top);
    case 2:
        return uniform(-2.0, 2.0);
    default:
        return near(f32, next_bits(&rng) % 2 ? top : low);
    }
}

static double draw_log(bool f32)
{
    switch (next_bits(&rng) % 4) {
    case 0:
        return any_bits(f32);
    case 1:
        return near(f32, 1.0);
    case 2:
        return uniform(0.3, 3.0);
    default: /* subnormal numbers and around them */
        return uniform(0.0, 4.0) * (f32 ? 0x1p-126 : 0x1p-1022);
    }
}

static double draw_tanh(bool f32)
{
    switch (next_bits(&rng) % 4) {
    case 0:
        return any_bits(f32);
    case 1:
        return uniform(-25.0, 25.0);
    case 2:
        return uniform(-1.0, 1.0);
    default:
        return near(f32, 0.5625);
    }
}

static void draw_pow(bool f32, double *x, double *y)
{
    const double top = f32 ? 88.8 : 709.8;
    const double low = f32 ? -104.0 : -745.2;
    switch (next_bits(&rng) % 5) {
    case 0:
        *x = any_bits(f32);
        *y = any_bits(f32);
        return;
    case 1: /* near 1, to large exponents */
        *x = 1.0 + uniform(-1.0, 1.0) * exp(uniform(f32 ? -15.0 : -35.0, -1.0));
        break;
    case 2: /* any base */
        *x = fabs(any_bits(f32));
        break;
    case 3: /* integer exponents of numbers of either sign */
        *x = uniform(-20.0, 20.0);
        *y = floor(uniform(-60.0, 60.0));
        return;
    default:
        *x = uniform(0.0, 10.0);
        *y = uniform(-10.0, 10.0);
        return;
    }
    /* A result anywhere in the range, and one in four at its ends. */
    double t = uniform(low, top);
    if (next_bits(&rng) % 4 == 0)
        t = (next_bits(&rng) % 2 ? low : top) + uniform(-1.0, 1.0);
    *y = t / log((double)(f32 ? (float)*x : *x));
}

static void draw(function f, bool f32, double *x, double *y)
{
    *y = 0.0;
    if (f == EXP)
        *x = draw_exp(f32);
    else if (f == LOG)
        *x = draw_log(f32);
    else if (f == TANH)
        *x = draw_tanh(f32);
    else
        draw_pow(f32, x, y);
}

static void exact(function f, mpfr_t e, double x, double y)
{
    mpfr_t b;
    mpfr_init2(b, 53);
    mpfr_set_d(e, x, MPFR_RNDN);
    mpfr_set_d(b, y, MPFR_RNDN);
    if (f == EXP)
        mpfr_exp(e, e, MPFR_RNDN);
    else if (f == LOG)
        mpfr_log(e, e, MPFR_RNDN);
    else if (f == TANH)
        mpfr_tanh(e, e, MPFR_RNDN);
    else if (f == POW)
        mpfr_pow(e, e, b, MPFR_RNDN);
    else if (f == SIN)
        mpfr_sin(e, e, MPFR_RNDN);
    else
        mpfr_cos(e, e, MPFR_RNDN);
    mpfr_clear(b);
}

/* The error of `got` in ulp of the exact value; 1e9 where the kind differs. */
static double ulps(function f, bool f32, double x, double y, double got)
{
    const long digits = f32 ? 24 : 53, least = f32 ? -149 : -1074;
    const long top = f32 ? 128 : 1024;
    double error = 0.0;
    if (f == EXP && x < (f32 ? (double)-87.34f : -708.39))
        return got == 0.0 && !signbit(got) ? 0.0 : 1e9;
    mpfr_t e, d;
    mpfr_inits2(f32 ? 72 : 100, e, d, (mpfr_ptr)0);
    exact(f, e, x, y);
    if (mpfr_nan_p(e)) {
        error = isnan(got) ? 0.0 : 1e9;
    } else if (isnan(got) || !signbit(got) != !mpfr_signbit(e)) {
        error = 1e9;
    } else if (!mpfr_regular_p(e)) {
        error = mpfr_cmp_d(e, got) == 0 ? 0.0 : 1e9;
    } else if (!isinf(got) || mpfr_get_exp(e) <= top) {
        long unit = mpfr_get_exp(e) - digits;
        mpfr_set_d(d, got, MPFR_RNDN);
        if (isinf(got)) /* as if the format went on */
            mpfr_set_si_2exp(d, signbit(got) ? -1 : 1, top, MPFR_RNDN);
        mpfr_sub(d, d, e, MPFR_RNDN);
        unit = unit < least ? least : unit;
        unit = unit > top - digits ? top - digits : unit;
        mpfr_mul_2si(d, d, -unit, MPFR_RNDN);
        error = fabs(mpfr_get_d(d, MPFR_RNDN));
    }
    mpfr_clears(e, d, (mpfr_ptr)0);
    return error;
}

static float sx[N_SAMPLES], sy[N_SAMPLES], s0[N_SAMPLES], s1[N_SAMPLES];
static double dx[N_SAMPLES], dy[N_SAMPLES], d0[N_SAMPLES], d1[N_SAMPLES];

static void run_f32(const trn__kernel_set *s, function f, int64_t n,
                    const float *x, const float *y, float *out)
{
    if (f == POW)
        s->pow_f32(n, x, y, out);
    else
        (f == EXP   ? s->exp_f32
         : f == LOG ? s->log_f32
                    : s->tanh_f32)(n, x, out);
}

static void run_f64(const trn__kernel_set *s, function f, int64_t n,
                    const double *x, const double *y, double *out)
{
    if (f == POW)
        s->pow_f64(n, x, y, out);
    else
        (f == EXP   ? s->exp_f64
         : f == LOG ? s->log_f64
                    : s->tanh_f64)(n, x, out);
}

static void fill(function f, bool f32)
{
    rng = 1000 + (uint64_t)f;
    for (int i = 0; i < N_SAMPLES; i++) {
        draw(f, f32, &dx[i], &dy[i]);
        if (f32) {
            dx[i] = sx[i] = (float)dx[i];
            dy[i] = sy[i] = (float)dy[i];
        }
    }
}

/* d0 becomes the results of the generic set, which the others must equal. */
static void run_all(function f, bool f32)
{
    trn__kernel_set set[MAX_SETS];
    const int n_sets = kernel_sets(set);
    for (int k = 0; k < n_sets; k++) {
        if (f32) {
            run_f32(&set[k], f, N_SAMPLES, sx, sy, k ? s1 : s0);
            for (int i = 0; i < N_SAMPLES; i++)
                (k ? d1 : d0)[i] = (double)(k ? s1 : s0)[i];
        } else {
            run_f64(&set[k], f, N_SAMPLES, dx, dy, k ? d1 : d0);
        }
        for (int i = 0; k && i < N_SAMPLES; i++)
            if (canonical(d0[i]) != canonical(d1[i]))
                fail_msg("%s: x = %a, y = %a: %a, generic %a", set[k].name,
                         dx[i], dy[i], d1[i], d0[i]);
    }
}

static void check_ulps(function f, const char *name)
{
    for (int f32 = 0; f32 < 2; f32++) {
        double worst = 0.0;
        fill(f, f32);
        run_all(f, f32);
        for (int i = 0; i < N_SAMPLES; i++) {
            double u = ulps(f, f32, dx[i], dy[i], d0[i]);
            worst = u > worst ? u : worst;
            if (u > (f32 ? 2.0 : 4.0))
                fail_msg("%s %s: x = %a, y = %a: %a is %.2f ulp off", name,
                         f32 ? "f32" : "f64", dx[i], dy[i], d0[i], u);
        }
        print_message("%s %s: at most %.3f ulp\n", name, f32 ? "f32" : "f64",
                      worst);
    }
}

static void exp_is_within_its_ulps_and_equal_in_all_sets(void **state)
{
    (void)state;
    check_ulps(EXP, "exp");
}

static void log_is_within_its_ulps_and_equal_in_all_sets(void **state)
{
    (void)state;
    check_ulps(LOG, "log");
}

static void tanh_is_within_its_ulps_and_equal_in_all_sets(void **state)
{
    (void)state;
    check_ulps(TANH, "tanh");
}

static void pow_is_within_its_ulps_and_equal_in_all_sets(void **state)
{
    (void)state;
    check_ulps(POW, "pow");
}

/* MPFR follows Annex F, so the special values of all pairs are checked by it.
 */
static void special_values_are_those_of_annex_f(void **state)
{
    static const double v[] = {
        0.0,        -0.0,        INFINITY,  -INFINITY,  NAN,       1.0,
        -1.0,       0.5,         -0.5,      2.0,        -2.0,      3.0,
        -3.0,       2.5,         -2.5,      0x1p-149,   -0x1p-149, 0x1p-126,
        0x1p23,     -0x1p23,     0x1p24,    0x1p24 + 2, -0x1p24,   8388607.5,
        -1e30,      1e30,        0x1p-1074, -0x1p-1074, 0x1p52,    0x1p53 - 1,
        1 - 0x1p53, -0x1p52 - 1, 0x1p53,    -0x1p53,    DBL_MAX,   -DBL_MAX,
        FLT_MAX,    -FLT_MAX,
    };
    enum { N = sizeof v / sizeof v[0] };
    (void)state;
    for (int f32 = 0; f32 < 2; f32++)
        for (function f = EXP; f <= POW; f++) {
            int n = N * (f == POW ? N : 1);
            for (int i = 0; i < N_SAMPLES; i++) {
                dx[i] = v[i % n % N];
                dy[i] = v[i % n / N];
                if (f32) {
                    dx[i] = sx[i] = (float)dx[i];
                    dy[i] = sy[i] = (float)dy[i];
                }
            }
            run_all(f, f32);
            for (int i = 0; i < n; i++)
                if (ulps(f, f32, dx[i], dy[i], d0[i]) > 4.0)
                    fail_msg("function %d f%d: x = %a, y = %a gives %a", (int)f,
                             f32 ? 32 : 64, dx[i], dy[i], d0[i]);
        }
}

static double draw_angle(int i)
{
    switch (i % 4) {
    case 0:
        return any_bits(false);
    case 1:
        return uniform(-7.0, 7.0);
    case 2:
        return uniform(-0x1p21, 0x1p21);
    default: /* the double next to a multiple of pi/2, or one beside it */
        return near(false,
                    floor(exp(uniform(0.0, 40.0))) * 0x1.921fb54442d18p0);
    }
}

static void sin_and_cos_are_within_4_ulp_everywhere(void **state)
{
    double worst = 0.0;
    (void)state;
    rng = 7;
    for (int i = 0; i < N_SAMPLES / 4; i++) {
        /* The first is the double that is nearest to a multiple of pi/2. */
        double x = i ? draw_angle(i) : 0x1.6ac5b262ca1ffp849;
        double s = ulps(SIN, false, x, 0.0, trn__sin(x));
        double c = ulps(COS, false, x, 0.0, trn__cos(x));
        worst = fmax(worst, fmax(s, c));
        CHECK(s <= 4.0 && c <= 4.0, "x = %a: sin %.2f ulp, cos %.2f ulp\n", x,
              s, c);
    }
    print_message("sin, cos: at most %.3f ulp\n", worst);
    CHECK(signbit(trn__sin(-0.0)), "sin(-0) is +0\n");
}

static void host_scalars_are_the_f64_kernels_and_exact_steps(void **state)
{
    trn__kernel_set set;
    (void)state;
    rng = 8;
    trn__set_generic(&set);
    for (int i = 0; i < N_SAMPLES / 4; i++) {
        double x = i % 2 ? any_bits(false) : uniform(-9.0, 9.0);
        double y = uniform(-4.0, 4.0), e, l, t, p;
        set.exp_f64(1, &x, &e);
        set.log_f64(1, &x, &l);
        set.tanh_f64(1, &x, &t);
        set.pow_f64(1, &x, &y, &p);
        CHECK(canonical(trn__exp(x)) == canonical(e) &&
                  canonical(trn__log(x)) == canonical(l) &&
                  canonical(trn__tanh(x)) == canonical(t) &&
                  canonical(trn__pow(x, y)) == canonical(p),
              "x = %a, y = %a\n", x, y);
        CHECK(canonical(trn__sqrt(x)) == canonical(sqrt(x)), "x = %a\n", x);
        double near_one = i % 3 ? x : floor(x) * (1.0 - 0x1p-53);
        CHECK(canonical(trn__floor(near_one)) == canonical(floor(near_one)),
              "floor of %a is not %a\n", near_one, trn__floor(near_one));
    }
    CHECK(signbit(trn__floor(-0.0)), "floor(-0) is +0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_within_its_ulps_and_equal_in_all_sets),
        cmocka_unit_test(log_is_within_its_ulps_and_equal_in_all_sets),
        cmocka_unit_test(tanh_is_within_its_ulps_and_equal_in_all_sets),
        cmocka_unit_test(pow_is_within_its_ulps_and_equal_in_all_sets),
        cmocka_unit_test(special_values_are_those_of_annex_f),
        cmocka_unit_test(sin_and_cos_are_within_4_ulp_everywhere),
        cmocka_unit_test(host_scalars_are_the_f64_kernels_and_exact_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
