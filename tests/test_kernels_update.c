/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizer updates, of every set this machine runs, against the formulas of
 * kernel_set.h computed one operation at a time: each result passes through a
 * volatile variable, so nothing can be fused or reordered.
 */
#include "kernel_sets.h"

#include <math.h>

enum { MAX_N = 40, OFFSETS = 4, SIZE = MAX_N + OFFSETS, STEPS = 3 };

static trn__kernel_set sets[MAX_SETS];
static int n_sets;

/* The formulas in both types; op(a, b) is one rounded operation. */
static float add32(float a, float b)
{
    volatile float y = a + b;
    return y;
}

static float mul32(float a, float b)
{
    volatile float y = a * b;
    return y;
}

static float div32(float a, float b)
{
    volatile float y = a / b;
    return y;
}

static float z32(float x)
{
    return fabsf(x) < 0x1p-126f ? 0.0f : x;
}

static double add64(double a, double b)
{
    volatile double y = a + b;
    return y;
}

static double mul64(double a, double b)
{
    volatile double y = a * b;
    return y;
}

static double div64(double a, double b)
{
    volatile double y = a / b;
    return y;
}

static double z64(double x)
{
    return fabs(x) < 0x1p-1022 ? 0.0 : x;
}

static void literal_sgd_f32(const trn__sgd_f32 *s, float *p, float g,
                            float *buf)
{
    float d = add32(g, mul32(s->weight_decay, *p));
    if (buf) {
        *buf = z32(
            add32(mul32(s->momentum, *buf), mul32(s->one_minus_dampening, d)));
        d = s->nesterov ? add32(d, mul32(s->momentum, *buf)) : *buf;
    }
    *p = add32(*p, -mul32(s->lr, d));
}

static void literal_sgd_f64(const trn__sgd_f64 *s, double *p, double g,
                            double *buf)
{
    double d = add64(g, mul64(s->weight_decay, *p));
    if (buf) {
        *buf = z64(
            add64(mul64(s->momentum, *buf), mul64(s->one_minus_dampening, d)));
        d = s->nesterov ? add64(d, mul64(s->momentum, *buf)) : *buf;
    }
    *p = add64(*p, -mul64(s->lr, d));
}

static void literal_adamw_f32(const trn__adamw_f32 *s, float *p, float g,
                              float *m, float *v)
{
    *m = z32(add32(*m, mul32(s->one_minus_beta1, add32(g, -*m))));
    *v =
        z32(add32(mul32(s->beta2, *v), mul32(s->one_minus_beta2, mul32(g, g))));
    const float root = sqrtf(*v);
    const float scale = add32(div32(root, s->sqrt_correction2), s->eps);
    *p = add32(mul32(*p, s->decay), -div32(mul32(s->step_size, *m), scale));
}

static void literal_adamw_f64(const trn__adamw_f64 *s, double *p, double g,
                              double *m, double *v)
{
    *m = z64(add64(*m, mul64(s->one_minus_beta1, add64(g, -*m))));
    *v =
        z64(add64(mul64(s->beta2, *v), mul64(s->one_minus_beta2, mul64(g, g))));
    const double root = sqrt(*v);
    const double scale = add64(div64(root, s->sqrt_correction2), s->eps);
    *p = add64(mul64(*p, s->decay), -div64(mul64(s->step_size, *m), scale));
}

/*
 * Each test runs a kernel over copies of the same start, and the formula over
 * others.  The moments begin with tiny values, so that flushing happens.
 */
typedef struct state32 {
    float p[SIZE], m[SIZE], v[SIZE], g[SIZE];
} state32;
typedef struct state64 {
    double p[SIZE], m[SIZE], v[SIZE], g[SIZE];
} state64;

static void start(uint64_t seed, state32 *s, state64 *d)
{
    for (int i = 0; i < SIZE; i++) {
        const bool tiny = i % 5 == 3;
        s->p[i] = next_f32(&seed);
        s->g[i] = tiny ? 0.0f : next_f32(&seed);
        s->m[i] = next_f32(&seed) * (tiny ? 0x1p-126f : 1.0f);
        s->v[i] = fabsf(next_f32(&seed)) * (tiny ? 0x1p-126f : 1.0f);
        d->p[i] = next_f64(&seed);
        d->g[i] = tiny ? 0.0 : next_f64(&seed);
        d->m[i] = next_f64(&seed) * (tiny ? 0x1p-1022 : 1.0);
        d->v[i] = fabs(next_f64(&seed)) * (tiny ? 0x1p-1022 : 1.0);
    }
}

static void check_sgd(const trn__kernel_set *k, int n, int at, int way)
{
    const trn__sgd_f32 s32 = {
        .lr = 0.1f,
        .weight_decay = 0.01f,
        .momentum = 0.9f,
        .one_minus_dampening = 0.7f,
        .nesterov = way == 2,
    };
    const trn__sgd_f64 s64 = {
        .lr = 0.1,
        .weight_decay = 0.01,
        .momentum = 0.9,
        .one_minus_dampening = 0.7,
        .nesterov = way == 2,
    };
    state32 got32, want32;
    state64 got64, want64;
    start(7, &got32, &got64);
    want32 = got32;
    want64 = got64;
    for (int t = 0; t < STEPS; t++) {
        k->sgd_f32(n, &s32, got32.p + at, got32.g + at,
                   way ? got32.m + at : NULL);
        k->sgd_f64(n, &s64, got64.p + at, got64.g + at,
                   way ? got64.m + at : NULL);
        for (int i = at; i < at + n; i++) {
            literal_sgd_f32(&s32, want32.p + i, want32.g[i],
                            way ? want32.m + i : NULL);
            literal_sgd_f64(&s64, want64.p + i, want64.g[i],
                            way ? want64.m + i : NULL);
        }
    }
    CHECK(memcmp(&got32, &want32, sizeof got32) == 0, "%s f32 way %d n=%d\n",
          k->name, way, n);
    CHECK(memcmp(&got64, &want64, sizeof got64) == 0, "%s f64 way %d n=%d\n",
          k->name, way, n);
}

static void sgd_rounds_every_operation(void **state)
{
    (void)state;
    for (int i = 0; i < n_sets; i++) {
        for (int n = 0; n <= MAX_N; n++) {
            for (int way = 0; way < 3; way++)
                check_sgd(&sets[i], n, n % OFFSETS, way);
        }
    }
}

static void check_adamw(const trn__kernel_set *k, int n, int at)
{
    const trn__adamw_f32 s32 = {
        .decay = 0.999f,
        .one_minus_beta1 = 0.1f,
        .beta2 = 0.999f,
        .one_minus_beta2 = 0.001f,
        .step_size = 0.01f,
        .sqrt_correction2 = 0.0447f,
        .eps = 1e-8f,
    };
    const trn__adamw_f64 s64 = {
        .decay = 0.999,
        .one_minus_beta1 = 0.1,
        .beta2 = 0.999,
        .one_minus_beta2 = 0.001,
        .step_size = 0.01,
        .sqrt_correction2 = 0.0447,
        .eps = 1e-8,
    };
    state32 got32, want32;
    state64 got64, want64;
    start(8, &got32, &got64);
    want32 = got32;
    want64 = got64;
    for (int t = 0; t < STEPS; t++) {
        k->adamw_f32(n, &s32, got32.p + at, got32.g + at, got32.m + at,
                     got32.v + at);
        k->adamw_f64(n, &s64, got64.p + at, got64.g + at, got64.m + at,
                     got64.v + at);
        for (int i = at; i < at + n; i++) {
            literal_adamw_f32(&s32, want32.p + i, want32.g[i], want32.m + i,
                              want32.v + i);
            literal_adamw_f64(&s64, want64.p + i, want64.g[i], want64.m + i,
                              want64.v + i);
        }
    }
    CHECK(memcmp(&got32, &want32, sizeof got32) == 0, "%s f32 n=%d\n", k->name,
          n);
    CHECK(memcmp(&got64, &want64, sizeof got64) == 0, "%s f64 n=%d\n", k->name,
          n);
}

static void adamw_rounds_every_operation(void **state)
{
    (void)state;
    for (int i = 0; i < n_sets; i++) {
        for (int n = 0; n <= MAX_N; n++)
            check_adamw(&sets[i], n, n % OFFSETS);
    }
}

static void stored_moments_are_never_subnormal(void **state)
{
    (void)state;
    const trn__adamw_f32 s = {
        .decay = 1.0f,
        .one_minus_beta1 = 0.1f,
        .beta2 = 0.999f,
        .one_minus_beta2 = 0.001f,
        .step_size = 0.01f,
        .sqrt_correction2 = 1.0f,
        .eps = 1e-8f,
    };
    for (int i = 0; i < n_sets; i++) {
        float p[8] = {0}, g[8] = {0}, m[8], v[8];
        for (int j = 0; j < 8; j++) {
            m[j] = j % 2 ? -0x1p-126f : 0x1p-126f;
            v[j] = 0x1p-126f;
        }
        sets[i].adamw_f32(8, &s, p, g, m, v);
        for (int j = 0; j < 8; j++) {
            assert_true(same_f32(m[j], 0.0f));
            assert_true(same_f32(v[j], 0.0f));
        }
    }
}

static void flushing_is_that_of_the_op(void **state)
{
    (void)state;
    const float x[] = {0x1p-126f, -0x1p-126f, 0x1.fffffcp-127f, -0x1p-149f,
                       -0.0f,     1.0f,       HUGE_VALF,        NAN};
    const double x64[] = {0x1p-1022, -0x1p-1022, 0x1.ffffffffffffep-1023,
                          -5e-324,   -0.0,       1.0,
                          -HUGE_VAL, (double)NAN};
    for (int i = 0; i < n_sets; i++) {
        float y[8];
        double y64[8];
        sets[i].flush_subnormal_f32(8, x, y);
        sets[i].flush_subnormal_f64(8, x64, y64);
        for (int j = 0; j < 8; j++) {
            assert_true(same_f32(y[j], z32(x[j])));
            assert_true(same_f64(y64[j], z64(x64[j])));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sgd_rounds_every_operation),
        cmocka_unit_test(adamw_rounds_every_operation),
        cmocka_unit_test(stored_moments_are_never_subnormal),
        cmocka_unit_test(flushing_is_that_of_the_op),
    };
    n_sets = kernel_sets(sets);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
