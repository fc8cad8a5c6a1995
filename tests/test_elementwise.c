/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of the elementwise rows: edge cases of the simple ops, the same
 * bits in each set at any length and address, and the emulated FMA under them.
 */
#include <float.h>

#include "draws.h"
#include "kernels/fma.h"

enum { N_LENGTHS = 41, N_FMA = 2000000 };

static void simple_ops_answer_zeros_nan_and_subnormals_as_promised(void **state)
{
    static const float a[] = {0.0f,      -0.0f,      NAN,      1.0f, -1.0f,
                              INFINITY,  2.0f,       2.0f,     NAN,  3.0f,
                              0x1p-130f, -0x1p-130f, 0x1p-126f};
    static const float b[] = {-0.0f, 0.0f, 1.0f, NAN,  -2.0f, 1.0f, -INFINITY,
                              2.0f,  NAN,  4.0f, 0.0f, 0.0f,  -1.0f};
    static const float max[] = {0.0f,      0.0f, NAN,      NAN, -1.0f,
                                INFINITY,  2.0f, 2.0f,     NAN, 4.0f,
                                0x1p-130f, 0.0f, 0x1p-126f};
    static const float relu[] = {0.0f,      0.0f, NAN,      1.0f, 0.0f,
                                 INFINITY,  2.0f, 2.0f,     NAN,  3.0f,
                                 0x1p-130f, 0.0f, 0x1p-126f};
    static const float flush[] = {0.0f, 0.0f, NAN,  1.0f, -1.0f, INFINITY, 2.0f,
                                  2.0f, NAN,  3.0f, 0.0f, 0.0f,  0x1p-126f};
    static const uint8_t greater[] = {0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 0, 1};
    static const uint8_t equal[] = {1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0};
    enum { N = sizeof a / sizeof a[0] };
    trn__kernel_set set[MAX_SETS];
    const int n_sets = kernel_sets(set);
    float m[N], r[N], z[N], g[N];
    uint8_t gr[N], eq[N];
    (void)state;
    for (int k = 0; k < n_sets; k++) {
        set[k].maximum_f32(N, a, b, m);
        set[k].relu_f32(N, a, r);
        set[k].flush_subnormal_f32(N, a, z);
        set[k].neg_f32(N, a, g);
        set[k].greater_f32(N, a, b, gr);
        set[k].equal_f32(N, a, b, eq);
        for (int i = 0; i < N; i++) {
            CHECK(same_f32(m[i], max[i]), "%s %d\n", set[k].name, i);
            CHECK(same_f32(r[i], relu[i]), "%s %d\n", set[k].name, i);
            CHECK(same_f32(z[i], flush[i]), "%s %d\n", set[k].name, i);
            CHECK(same_f32(g[i], -a[i]), "%s %d\n", set[k].name, i);
            CHECK(gr[i] == greater[i], "%s %d\n", set[k].name, i);
            CHECK(eq[i] == equal[i], "%s %d\n", set[k].name, i);
        }
    }
}

/*
 * + - * / and the root of f32 have the bits of f64 arithmetic rounded once
 * more, which changes nothing there; an f64 quotient is the nearest by its
 * exact rest.
 */
static void check_arithmetic(const trn__kernel_set *s, double a, double b)
{
    const float x = (float)a, y = (float)b;
    const double u = (double)x, v = (double)y;
    const double want[] = {u + v, u - v, u * v, u / v, sqrt(u)};
    float got[5];
    double q, r;
    s->add_f32(1, &x, &y, &got[0]);
    s->sub_f32(1, &x, &y, &got[1]);
    s->mul_f32(1, &x, &y, &got[2]);
    s->div_f32(1, &x, &y, &got[3]);
    s->sqrt_f32(1, &x, &got[4]);
    for (int i = 0; i < 5; i++)
        CHECK(same_f32(got[i], (float)want[i]), "%s %d of %a, %a: %a\n",
              s->name, i, u, v, (double)got[i]);
    s->div_f64(1, &a, &b, &q);
    s->sqrt_f64(1, &a, &r);
    /* The rest of the nearest quotient is below half a unit times b. */
    const double next = nextafter(q, 2.0 * q) - q;
    CHECK(fabs(fma(-q, b, a)) <= fabs(0.5 * next * b), "%s: %a / %a = %a\n",
          s->name, a, b, q);
    CHECK(same_f64(r, sqrt(a)), "%s: sqrt %a = %a\n", s->name, a, r);
}

static void arithmetic_is_correctly_rounded(void **state)
{
    trn__kernel_set set[MAX_SETS];
    const int n_sets = kernel_sets(set);
    (void)state;
    rng = 4;
    for (int i = 0; i < 100000; i++) {
        const double a = uniform(0.5, 8.0), b = uniform(0.5, 8.0);
        check_arithmetic(&set[i % n_sets], a, i % 3 ? b : -b);
    }
}

/* The elementwise rows of ops.def, with the places of their two loops. */
typedef struct row {
    const char *name;
    int n_in;
    bool compare;
    size_t place[2]; /* f32, f64 */
} row;

static const row rows[] = {
#define ROW(nm, n_in, compare)             \
    {#nm,                                  \
     n_in,                                 \
     compare,                              \
     {offsetof(trn__kernel_set, nm##_f32), \
      offsetof(trn__kernel_set, nm##_f64)}},
#define ROW_UNARY(nm) ROW(nm, 1, false)
#define ROW_BINARY(nm) ROW(nm, 2, false)
#define ROW_COMPARE(nm) ROW(nm, 2, true)
#define ROW_VIEW(nm)
#define ROW_REDUCE(nm)
#define ROW_RANDOM(nm)
#define ROW_UPDATE(nm)
#define ROW_SPECIAL(nm)
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    ROW_##cls(nm)
#include "trn/ops.def"
};

static void run_row(const trn__kernel_set *s, const row *r, bool f64, int64_t n,
                    const void *a, const void *b, void *y)
{
    union {
        trn__unary_f32_fn *u32;
        trn__unary_f64_fn *u64;
        trn__binary_f32_fn *b32;
        trn__binary_f64_fn *b64;
        trn__compare_f32_fn *c32;
        trn__compare_f64_fn *c64;
    } f;
    memcpy(&f, (const char *)s + r->place[f64], sizeof f);
    if (r->compare && f64)
        f.c64(n, a, b, y);
    else if (r->compare)
        f.c32(n, a, b, y);
    else if (r->n_in == 2 && f64)
        f.b64(n, a, b, y);
    else if (r->n_in == 2)
        f.b32(n, a, b, y);
    else if (f64)
        f.u64(n, a, y);
    else
        f.u32(n, a, y);
}

enum { SPACE = 48 };

/* n results of `size` bytes agree, NaN by place; nothing follows them. */
static bool same_results(const char *x, const char *y, size_t size, int n)
{
    for (int i = 0; i < n; i++) {
        float f = 0.0f, g = 0.0f;
        double d = 0.0, e = 0.0;
        if (size == sizeof f) {
            memcpy(&f, x + (size_t)i * size, size);
            memcpy(&g, y + (size_t)i * size, size);
        } else if (size == sizeof d) {
            memcpy(&d, x + (size_t)i * size, size);
            memcpy(&e, y + (size_t)i * size, size);
        }
        if (memcmp(x + (size_t)i * size, y + (size_t)i * size, size) != 0 &&
            !(isnan(f) && isnan(g)) && !(isnan(d) && isnan(e)))
            return false;
    }
    for (size_t i = (size_t)n * size; i < (size_t)(n + 4) * size; i++)
        if (x[i] != 0x5a || y[i] != 0x5a)
            return false;
    return true;
}

static void check_length(const trn__kernel_set *set, const row *r, bool f64,
                         int n)
{
    static double in[2][SPACE], out[2][SPACE + 1], copy[SPACE];
    const size_t size = f64 ? sizeof(double) : sizeof(float);
    const size_t out_size = r->compare ? 1 : size;
    char *a = (char *)in[0] + (size_t)(n % 4) * size;
    const char *b = (const char *)in[1] + (size_t)(n % 3) * size;
    char *y = (char *)out[1] + (size_t)(n % 2) * size;
    for (int i = 0; i < 2 * SPACE; i++) {
        double v = next_bits(&rng) % 4 ? uniform(-3.0, 3.0) : any_bits(!f64);
        if (next_bits(&rng) % 8 == 0) /* zeros of both signs */
            v = next_bits(&rng) % 2 ? 0.0 : -0.0;
        float w = (float)v;
        char *p = (char *)in[i / SPACE] + (size_t)(i % SPACE) * size;
        memcpy(p, f64 ? (const void *)&v : (const void *)&w, size);
    }
    memset(out, 0x5a, sizeof out);
    run_row(&set[0], r, f64, n, a, b, out[0]);
    run_row(&set[1], r, f64, n, a, b, y);
    CHECK(same_results((char *)out[0], y, out_size, n), "%s f%d, n = %d\n",
          r->name, f64 ? 64 : 32, n);
    if (r->compare)
        return;
    memset(copy, 0x5a, sizeof copy);
    memcpy(copy, a, (size_t)n * size);
    run_row(&set[1], r, f64, n, copy, b, copy);
    CHECK(same_results((char *)out[0], (char *)copy, size, n),
          "%s f%d in place, n = %d\n", r->name, f64 ? 64 : 32, n);
}

static void every_row_is_equal_in_all_sets_at_any_length_and_address(void **st)
{
    trn__kernel_set set[MAX_SETS];
    (void)st;
    if (kernel_sets(set) < 2)
        skip();
    rng = 5;
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        for (int n = 0; n < N_LENGTHS; n++)
            for (int repeat = 0; repeat < 4; repeat++) {
                check_length(set, &rows[k], false, n);
                check_length(set, &rows[k], true, n);
            }
}

static double double_of(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static uint64_t bits_of_f64(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static void emulated_fma_equals_the_c_library_in_hard_cases(void **state)
{
    (void)state;
    rng = 6;
    for (int i = 0; i < N_FMA; i++) {
        const uint64_t u = next_bits(&rng), v = next_bits(&rng);
        float a = float_of((uint32_t)u), b = float_of((uint32_t)(u >> 32));
        float c = float_of((uint32_t)v);
        if (v >> 32 & 1) { /* few digits: ties and exact results */
            a = float_of((uint32_t)u & 0xfffff000u);
            b = float_of((uint32_t)(u >> 32) & 0xfff00000u);
        }
        if (v >> 33 & 1) /* c next to the product, or 2^+-24 from it */
            c = (float)(-(double)a * (double)b *
                        (1.0 + (double)(v >> 40 & 3) * 0x1p-23) *
                        (v >> 34 & 1   ? 1.0
                         : v >> 35 & 1 ? 0x1p24
                                       : 0x1p-24));
        if ((v >> 36 & 7) == 2) { /* just beside a tie: f64 alone is wrong */
            const float k = (float)(v >> 40 & 255) * 0x1p-23f;
            const uint32_t e = (uint32_t)v >> 23 & 255;
            c = float_of(((uint32_t)v & 0x807fffffu) | (e % 200 + 40) << 23);
            a = float_of((e % 200 + 16) << 23) * (1.0f + k);
            b = u & 1 ? 1.0f - k : k - 1.0f;
        }
        if ((v >> 36 & 7) == 0) /* subnormal results */
            b = (float)(uniform(0.5, 2.0) * 0x1p-149 / (double)a);
        if ((v >> 36 & 7) == 1)
            c = float_of((uint32_t)v & 0x807fffffu);
        float got = trn__fma_f32_exact(a, b, c), want = fmaf(a, b, c);
        CHECK(same_f32(got, want), "fma(%a, %a, %a) = %a, not %a\n", (double)a,
              (double)b, (double)c, (double)want, (double)got);
    }
}

/* Of any exponent; near 1; of few digits. */
static double hard_f64(uint64_t *at)
{
    const uint64_t z = next_bits(at), more = next_bits(at);
    uint64_t exponent = 1023 - 30 + more % 60;
    uint64_t fraction = z & (UINT64_MAX >> 12);
    if (more >> 32 & 1)
        exponent = more % 2047;
    else if (more >> 33 & 1)
        fraction &= UINT64_MAX << (more >> 40 & 31) << 20;
    return double_of((z & UINT64_C(1) << 63) | exponent << 52 | fraction);
}

static void emulated_f64_fma_equals_the_c_library_in_hard_cases(void **state)
{
    (void)state;
    int n_plain = 0;
    rng = 7;
    for (int i = 0; i < N_FMA; i++) {
        const uint64_t u = next_bits(&rng);
        const double a = hard_f64(&rng), b = hard_f64(&rng);
        double c = hard_f64(&rng);
        if (u & 1) { /* next to the product, or far below it */
            uint64_t bits = bits_of_f64(-(a * b)) + (u >> 1 & 3) - 2;
            c = double_of(bits);
            if (u >> 3 & 1)
                c *= double_of((1023 - (u >> 8) % 110) << 52);
        }
        const double got = trn__fma_f64(a, b, c), want = fma(a, b, c);
        CHECK(same_f64(got, want), "fma(%a, %a, %a) = %a, not %a\n", a, b, c,
              want, got);
        if (!trn__fma_f64_is_plain(a, b, c))
            continue;
        n_plain++;
        CHECK(same_f64(trn__fma_f64_exact(a, b, c), want),
              "fma(%a, %a, %a) is not %a\n", a, b, c, want);
    }
    assert_true(n_plain > N_FMA / 4);
}

static void f64_fma_answers_zeros_infinities_and_the_ends_of_f64(void **state)
{
    (void)state;
    static const double ends[] = {
        0.0,      -0.0,      1.0,     -1.0,     5e-324,     -5e-324,  0x1p-1022,
        -0x1p-53, 0x1p-960,  0x1p994, -0x1p995, 0x1p996,    DBL_MAX,  -DBL_MAX,
        INFINITY, -INFINITY, NAN,     0x1p-537, 0x1.8p-538, -0x1p500,
    };
    enum { N = sizeof ends / sizeof ends[0] };
    for (int i = 0; i < N * N * N; i++) {
        const double a = ends[i % N], b = ends[i / N % N], c = ends[i / N / N];
        const double got = trn__fma_f64(a, b, c), want = fma(a, b, c);
        CHECK(same_f64(got, want), "fma(%a, %a, %a) = %a, not %a\n", a, b, c,
              want, got);
        if (trn__fma_f64_is_plain(a, b, c))
            assert_true(same_f64(trn__fma_f64_exact(a, b, c), want));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            simple_ops_answer_zeros_nan_and_subnormals_as_promised),
        cmocka_unit_test(arithmetic_is_correctly_rounded),
        cmocka_unit_test(
            every_row_is_equal_in_all_sets_at_any_length_and_address),
        cmocka_unit_test(emulated_fma_equals_the_c_library_in_hard_cases),
        cmocka_unit_test(emulated_f64_fma_equals_the_c_library_in_hard_cases),
        cmocka_unit_test(f64_fma_answers_zeros_infinities_and_the_ends_of_f64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
