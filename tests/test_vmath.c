/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU's own mathematics: errors in ulp against MPFR on seeded samples of
 * the whole range, special values, and that each set gives the same bits,
 * generic both with and without hardware FMA.  `make test-math` does the same
 * for all f32 and many more f64.
 */
#ifdef TRN_HAVE_MPFR
#include "math/math_functions.h"
#include "draws.h"
#include <float.h>
#include "kernels/scalar.h"

enum { N_SAMPLES = 50000 };

static float sx[N_SAMPLES], sy[N_SAMPLES], s0[N_SAMPLES], s1[N_SAMPLES];
static double dx[N_SAMPLES], dy[N_SAMPLES], d0[N_SAMPLES], d1[N_SAMPLES];

static void narrow(int i)
{
    dx[i] = sx[i] = (float)dx[i];
    dy[i] = sy[i] = (float)dy[i];
}

/* d0 becomes the results of the generic set, which the others must equal. */
static void run_all(const math_function *f, bool f32)
{
    trn__kernel_set set[MATH_MAX_SETS];
    const int n_sets = math_sets(set);
    for (int k = 0; k < n_sets; k++) {
        if (f32) {
            math_run_f32(&set[k], f, N_SAMPLES, sx, sy, k ? s1 : s0);
            for (int i = 0; i < N_SAMPLES; i++)
                (k ? d1 : d0)[i] = (double)(k ? s1 : s0)[i];
        } else {
            math_run_f64(&set[k], f, N_SAMPLES, dx, dy, k ? d1 : d0);
        }
        for (int i = 0; k && i < N_SAMPLES; i++)
            if (canonical(d0[i]) != canonical(d1[i]))
                fail_msg("%s %s: x = %a, y = %a: %a, generic %a", f->name,
                         set[k].name, dx[i], dy[i], d1[i], d0[i]);
    }
}

static void check_ulps(const math_function *f, bool f32)
{
    double worst = 0.0;
    uint64_t seed = 1000;
    for (int i = 0; i < N_SAMPLES; i++) {
        f->draw(&seed, f32, &dx[i], &dy[i]);
        if (f32)
            narrow(i);
    }
    run_all(f, f32);
    for (int i = 0; i < N_SAMPLES; i++) {
        double u = math_ulps(f, f32, dx[i], dy[i], d0[i]);
        worst = u > worst ? u : worst;
        if (u > f->bound[f32])
            fail_msg("%s %s: x = %a, y = %a: %a is %.3f ulp off", f->name,
                     f32 ? "f32" : "f64", dx[i], dy[i], d0[i], u);
    }
    print_message("%s %s: at most %.3f ulp\n", f->name, f32 ? "f32" : "f64",
                  worst);
}

static bool is_composite(const char *name)
{
#define PRIM false
#define COMP true
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    if (strcmp(name, #nm) == 0)                                               \
        return kind;
#include "trn/ops.def"
#undef PRIM
#undef COMP
    return false;
}

static void each_function_is_within_its_ulps_and_equal_in_all_sets(void **state)
{
    (void)state;
    for (int i = 0; i < n_math_functions; i++)
        for (int f32 = 0; f32 < 2; f32++) {
            /* No bound may be looser than the contract's; composites are
             * rounded step by step and state their own. */
            assert_true(math_functions[i].bound[f32] <= (f32 ? 2.0 : 4.0) ||
                        is_composite(math_functions[i].name));
            check_ulps(&math_functions[i], f32 != 0);
        }
}

/* The mantissas 0, 1, all ones and a random one with each exponent and sign. */
static void every_exponent_is_within_its_ulps_in_all_sets(void **state)
{
    enum { N = 2 * 4 * 256 }; /* of f64, each eighth exponent and the ends */
    uint64_t seed = 1001;
    (void)state;
    for (int i = 0; i < N_SAMPLES; i++) {
        uint64_t e = (uint64_t)(i / 8 % 256), m = next_bits(&seed);
        m = i % 4 == 0 ? 0 : i % 4 == 1 ? 1 : i % 4 == 2 ? UINT64_MAX : m;
        uint32_t b = (uint32_t)((i & 4 ? 256u : 0u) + e) << 23;
        b |= (uint32_t)m & 0x7fffffu;
        memcpy(&sx[i], &b, sizeof b);
        uint64_t wide = e < 8 ? e : e > 247 ? 1792 + e : e * 8;
        uint64_t u = ((i & 4 ? UINT64_C(2048) : 0) + wide) << 52;
        u |= m & UINT64_C(0xfffffffffffff);
        memcpy(&dx[i], &u, sizeof u);
        sy[i] = sx[(i * 7 + 3) % (i + 1)];
        dy[i] = dx[(i * 7 + 3) % (i + 1)];
    }
    for (int k = 0; k < n_math_functions; k++) {
        const math_function *f = &math_functions[k];
        for (int f32 = 0; f32 < 2; f32++) {
            run_all(f, f32 != 0);
            for (int i = 0; i < N; i++) {
                double x = f32 ? (double)sx[i] : dx[i];
                double y = f32 ? (double)sy[i] : dy[i];
                double u = math_ulps(f, f32 != 0, x, y, d0[i]);
                CHECK(u <= f->bound[f32], "%s f%d: x = %a, y = %a: %a\n",
                      f->name, f32 ? 32 : 64, x, y, d0[i]);
            }
        }
    }
}

/* MPFR follows Annex F, so the special values of all pairs are checked by it.
 */
static void special_values_are_those_of_annex_f(void **state)
{
    static const double v[] = {
        0.0,        -0.0,        INFINITY,   -INFINITY,    NAN,
        1.0,        -1.0,        0.5,        -0.5,         2.0,
        -2.0,       3.0,         -3.0,       2.5,          -2.5,
        0x1p-149,   -0x1p-149,   0x1p-126,   0x1p23,       -0x1p23,
        0x1p24,     0x1p24 + 2,  -0x1p24,    8388607.5,    -1e30,
        1e30,       0x1p-1074,   -0x1p-1074, 0x1p52,       0x1p53 - 1,
        1 - 0x1p53, -0x1p52 - 1, 0x1p53,     -0x1p53,      DBL_MAX,
        -DBL_MAX,   FLT_MAX,     -FLT_MAX,   0x1p52 - 0.5,
    };
    enum { N = sizeof v / sizeof v[0] };
    (void)state;
    for (int f32 = 0; f32 < 2; f32++)
        for (int k = 0; k < n_math_functions; k++) {
            const math_function *f = &math_functions[k];
            int n = N * (f->n_in == 2 ? N : 1);
            for (int i = 0; i < N_SAMPLES; i++) {
                dx[i] = v[i % n % N];
                dy[i] = v[i % n / N];
                if (f32)
                    narrow(i);
            }
            run_all(f, f32 != 0);
            for (int i = 0; i < n; i++)
                if (math_ulps(f, f32 != 0, dx[i], dy[i], d0[i]) > f->bound[f32])
                    fail_msg("%s f%d: x = %a, y = %a gives %a", f->name,
                             f32 ? 32 : 64, dx[i], dy[i], d0[i]);
        }
}

/* Some of those again, by hand: what MPFR could share with a mistake of ours.
 */
static const struct {
    const char *name;
    double x, y, want;
} by_hand[] = {
    {"sin", -0.0, 0.0, -0.0},
    {"sin", INFINITY, 0.0, NAN},
    {"cos", -0.0, 0.0, 1.0},
    {"cos", -INFINITY, 0.0, NAN},
    {"erf", -0.0, 0.0, -0.0},
    {"erf", INFINITY, 0.0, 1.0},
    {"erf", -INFINITY, 0.0, -1.0},
    {"erf", NAN, 0.0, NAN},
    {"rsqrt", 0.0, 0.0, INFINITY},
    {"rsqrt", -0.0, 0.0, -INFINITY},
    {"rsqrt", INFINITY, 0.0, 0.0},
    {"rsqrt", -1.0, 0.0, NAN},
    {"atan2", 0.0, 0.0, 0.0},
    {"atan2", -0.0, 0.0, -0.0},
    {"atan2", 0.0, 5.0, 0.0},
    {"atan2", -0.0, INFINITY, -0.0},
    {"atan2", 7.0, INFINITY, 0.0},
    {"abs", -0.0, 0.0, 0.0},
    {"abs", -INFINITY, 0.0, INFINITY},
    {"sign", -0.0, 0.0, 0.0},
    {"sign", NAN, 0.0, 0.0},
    {"sign", -0x1p-149, 0.0, -1.0},
    {"floor", -0.5, 0.0, -1.0},
    {"floor", 0.5, 0.0, 0.0},
    {"ceil", -0.5, 0.0, -0.0},
    {"ceil", 0.5, 0.0, 1.0},
    {"round", 0.5, 0.0, 0.0},
    {"round", -0.5, 0.0, -0.0},
    {"round", 1.5, 0.0, 2.0},
    {"round", 2.5, 0.0, 2.0},
    {"trunc", -1.75, 0.0, -1.0},
    {"trunc", -0.75, 0.0, -0.0},
    {"gelu", -0.0, 0.0, -0.0},
    {"gelu", INFINITY, 0.0, INFINITY},
    {"gelu", -INFINITY, 0.0, NAN},
    {"gelu", -50.0, 0.0, -0.0},
    {"gelu", 0.0, 0.0, 0.0},
    {"gelu", 50.0, 0.0, 50.0},
    {"silu", -INFINITY, 0.0, NAN},
    {"silu", -800.0, 0.0, -0.0},
    {"sigmoid", -INFINITY, 0.0, 0.0},
    {"sigmoid", 0.0, 0.0, 0.5},
    {"gelu_tanh", -INFINITY, 0.0, NAN},
    {"gelu_tanh", -50.0, 0.0, -0.0},
};

static void zeros_and_infinities_of_the_functions_by_hand(void **state)
{
    trn__kernel_set set[MATH_MAX_SETS];
    const int n_sets = math_sets(set);
    (void)state;
    for (int k = 0; k < n_sets; k++)
        for (size_t i = 0; i < sizeof by_hand / sizeof by_hand[0]; i++) {
            const math_function *f = math_find(by_hand[i].name);
            float x = (float)by_hand[i].x, y = (float)by_hand[i].y, s;
            double d;
            math_run_f32(&set[k], f, 1, &x, &y, &s);
            math_run_f64(&set[k], f, 1, &by_hand[i].x, &by_hand[i].y, &d);
            CHECK(canonical(d) == canonical(by_hand[i].want) &&
                      canonical((double)s) == canonical(by_hand[i].want),
                  "%s: %s(%a, %a) = %a, %a\n", set[k].name, by_hand[i].name,
                  by_hand[i].x, by_hand[i].y, d, (double)s);
        }
}

/* The last numbers whose exp is not 0, and the first whose exp is. */
static void exp_becomes_zero_where_the_page_says(void **state)
{
    const float x[] = {-87.34f, -87.5f, -100.0f, -87.3f};
    const double x64[] = {-708.39, -708.4, -740.0, -708.38};
    trn__kernel_set set[MATH_MAX_SETS];
    const int n_sets = math_sets(set);
    (void)state;
    for (int k = 0; k < n_sets; k++)
        for (int i = 0; i < 4; i++) {
            const bool gone = i == 1 || i == 2;
            float y;
            double z;
            set[k].exp_f32(1, &x[i], &y);
            set[k].exp_f64(1, &x64[i], &z);
            CHECK((y == 0.0f) == gone && (z == 0.0) == gone, "%s %a: %a, %a\n",
                  set[k].name, x64[i], (double)y, z);
            CHECK(gone || (y < 0x1.2p-126f && z < 0x1.2p-1022),
                  "%s %a: %a, %a\n", set[k].name, x64[i], (double)y, z);
        }
}

static void host_scalars_are_the_f64_kernels(void **state)
{
    static const struct {
        const char *name;
        double (*f)(double);
    } row[] = {
        {"exp", trn__exp},     {"log", trn__log}, {"tanh", trn__tanh},
        {"sin", trn__sin},     {"cos", trn__cos}, {"sqrt", trn__sqrt},
        {"floor", trn__floor},
    };
    trn__kernel_set set;
    uint64_t seed = 8;
    (void)state;
    trn__set_generic(&set);
    for (int i = 0; i < N_SAMPLES; i++) {
        double x, y, got;
        math_functions[i % n_math_functions].draw(&seed, false, &x, &y);
        for (size_t k = 0; k < sizeof row / sizeof row[0]; k++) {
            math_run_f64(&set, math_find(row[k].name), 1, &x, &y, &got);
            CHECK(canonical(got) == canonical(row[k].f(x)), "%s %a\n",
                  row[k].name, x);
        }
        set.pow_f64(1, &x, &y, &got);
        CHECK(canonical(got) == canonical(trn__pow(x, y)), "%a %a\n", x, y);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            each_function_is_within_its_ulps_and_equal_in_all_sets),
        cmocka_unit_test(every_exponent_is_within_its_ulps_in_all_sets),
        cmocka_unit_test(special_values_are_those_of_annex_f),
        cmocka_unit_test(zeros_and_infinities_of_the_functions_by_hand),
        cmocka_unit_test(exp_becomes_zero_where_the_page_says),
        cmocka_unit_test(host_scalars_are_the_f64_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else
#include "harness.h"

static void each_function_is_within_its_ulps_and_equal_in_all_sets(void **state)
{
    (void)state;
    print_message("built without MPFR\n");
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            each_function_is_within_its_ulps_and_equal_in_all_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
