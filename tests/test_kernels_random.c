/* SPDX-License-Identifier: Apache-2.0
 *
 * Philox against its published vectors, and the draws made of it: which word
 * an element takes, that any range of a draw can be made alone, and moments.
 */
#include "kernel_sets.h"

#include <math.h>

#include "kernels/philox.h"

static trn__kernel_set sets[MAX_SETS];
static int n_sets;

enum { N_MANY = 1 << 20 };
static double many[N_MANY];

/* From the file kat_vectors of the authors' library Random123. */
static void philox_gives_the_published_vectors(void **state)
{
    (void)state;
    static const struct {
        uint64_t key;
        trn__philox_block counter, want;
    } known[] = {
        {
            0,
            {{0, 0, 0, 0}},
            {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        },
        {
            UINT64_MAX,
            {{UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}},
            {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        },
        {
            UINT64_C(0x299f31d0a4093822),
            {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
            {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
        },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const trn__philox_block b = trn__philox(known[i].key, known[i].counter);
        assert_memory_equal(&b, &known[i].want, sizeof b);
    }
}

static void a_generators_key_is_two_words_of_its_seed_and_stream(void **state)
{
    (void)state;
    const uint64_t seed = UINT64_C(0x123456789abcdef0);
    const uint64_t stream = UINT64_C(0x0fedcba987654321);
    const trn__philox_block counter = {{0x87654321, 0x0fedcba9, 0x74726e00, 0}};
    const trn__philox_block b = trn__philox(seed, counter);
    const uint64_t want = (uint64_t)b.w[1] * (UINT64_C(1) << 32) + b.w[0];
    assert_true(trn__philox_key(seed, stream) == want);
    assert_true(trn__philox_key(seed, stream + 1) != want);
    assert_true(trn__philox_key(seed + 1, stream) != want);
}

static const uint64_t key = UINT64_C(0xfeedc0dedeadbeef);
static const uint64_t draw = UINT64_C(0x0000000100000002);

/* Around 0 and where the low word of the block number overflows. */
static const uint64_t starts[] = {0, UINT64_C(0x3ffffff00),
                                  UINT64_C(0x1ffffff00)};
enum { N_STARTS = sizeof starts / sizeof starts[0], N_DRAW = 700 };

static void uniform_elements_are_the_stated_words(void **state)
{
    (void)state;
    float y32[N_DRAW];
    double y64[N_DRAW];
    for (int q = 0; q < n_sets * N_STARTS; q++) {
        const trn__kernel_set *s = &sets[q / N_STARTS];
        const uint64_t first = starts[q % N_STARTS] + 1;
        s->uniform_f32(N_DRAW, key, draw, first, y32);
        s->uniform_f64(N_DRAW, key, draw, first, y64);
        for (uint64_t i = 0; i < N_DRAW; i++) {
            const uint64_t e = first + i;
            trn__philox_block c = {{(uint32_t)(e / 4), (uint32_t)(e / 4 >> 32),
                                    (uint32_t)draw, (uint32_t)(draw >> 32)}};
            trn__philox_block b = trn__philox(key, c);
            assert_true(y32[i] == ldexpf((float)(b.w[e % 4] >> 8), -24));
            c.w[0] = (uint32_t)(e / 2);
            c.w[1] = (uint32_t)(e / 2 >> 32);
            b = trn__philox(key, c);
            const double high = ldexp(b.w[2 * (e % 2)], -32);
            const double low = ldexp(b.w[2 * (e % 2) + 1] >> 11, -53);
            assert_true(y64[i] == high + low);
        }
    }
}

static void normal_elements_are_box_muller_pairs(void **state)
{
    (void)state;
    float y32[N_DRAW];
    double y64[N_DRAW], u[N_DRAW + 2];
    for (int q = 0; q < n_sets; q++) {
        sets[q].normal_f32(N_DRAW, key, draw, 0, y32);
        sets[q].normal_f64(N_DRAW, key, draw, 0, y64);
        sets[q].uniform_f64(N_DRAW, key, draw, 0, u);
        for (int i = 0; i < N_DRAW; i += 2) {
            const double r = sqrt(-2.0 * log(u[i] + 0x1p-53));
            const double t = 2.0 * 3.14159265358979323846 * u[i + 1];
            assert_true(fabs(y64[i] - r * cos(t)) < 1e-14 * (1.0 + r));
            assert_true(fabs(y64[i + 1] - r * sin(t)) < 1e-14 * (1.0 + r));
        }
        for (int i = 0; i < N_DRAW; i++)
            assert_true(y32[i] == (float)y64[i]);
    }
}

/* Elements [from, from + n) alone equal those of the whole draw. */
static void check_piece(const trn__kernel_set *s, uint64_t first, int from,
                        int n)
{
    static float all[N_DRAW], part[N_DRAW];
    static double all64[N_DRAW], part64[N_DRAW];
    const size_t size = (size_t)n;
    const uint64_t at = first + (uint64_t)from;
    sets[0].uniform_f32(N_DRAW, key, draw, first, all);
    s->uniform_f32(n, key, draw, at, part);
    assert_memory_equal(all + from, part, size * sizeof part[0]);
    sets[0].uniform_f64(N_DRAW, key, draw, first, all64);
    s->uniform_f64(n, key, draw, at, part64);
    assert_memory_equal(all64 + from, part64, size * sizeof part64[0]);
    sets[0].normal_f32(N_DRAW, key, draw, first, all);
    s->normal_f32(n, key, draw, at, part);
    assert_memory_equal(all + from, part, size * sizeof part[0]);
    sets[0].normal_f64(N_DRAW, key, draw, first, all64);
    s->normal_f64(n, key, draw, at, part64);
    assert_memory_equal(all64 + from, part64, size * sizeof part64[0]);
}

static void any_range_of_a_draw_can_be_made_alone(void **state)
{
    (void)state;
    for (int q = 0; q < n_sets * N_STARTS; q++) {
        const trn__kernel_set *s = &sets[q / N_STARTS];
        const uint64_t first = starts[q % N_STARTS];
        uint64_t seed = 5;
        for (int n = 1; n < 90; n++)
            check_piece(s, first, (int)(next_bits(&seed) % (N_DRAW - 90)), n);
        check_piece(s, first, 3, N_DRAW - 3);
    }
}

static void nothing_beyond_the_range_is_written(void **state)
{
    (void)state;
    for (int q = 0; q < n_sets; q++) {
        for (int n = 0; n < 70; n++) {
            float y32[72];
            double y64[72];
            y32[n] = y32[n + 1] = 7.0f;
            y64[n] = y64[n + 1] = 7.0;
            sets[q].uniform_f32(n, key, draw, 3, y32);
            sets[q].uniform_f64(n, key, draw, 3, y64);
            assert_true(y32[n] == 7.0f && y32[n + 1] == 7.0f);
            assert_true(y64[n] == 7.0 && y64[n + 1] == 7.0);
            sets[q].normal_f32(n, key, draw, 3, y32);
            sets[q].normal_f64(n, key, draw, 3, y64);
            assert_true(y32[n] == 7.0f && y64[n] == 7.0);
        }
    }
}

/* The k-th central moment within 5 of its standard deviations */
static void check_moment(int k, double centre, double want, double deviation)
{
    double sum = 0.0;
    for (int i = 0; i < N_MANY; i++)
        sum += pow(many[i] - centre, k);
    const double off = fabs(sum / N_MANY - want);
    CHECK(off < 5.0 * deviation / sqrt(N_MANY), "moment %d is off by %g\n", k,
          off);
}

static void moments_are_those_of_the_distributions(void **state)
{
    (void)state;
    const trn__kernel_set *s = &sets[n_sets - 1];
    s->uniform_f64(N_MANY, key, 0, 0, many);
    for (int i = 0; i < N_MANY; i++)
        assert_true(many[i] >= 0.0 && many[i] < 1.0);
    /* E u^k = 2^-k / (k + 1) for even k, u uniform in [-1/2, 1/2) */
    check_moment(1, 0.5, 0.0, sqrt(1.0 / 12.0));
    check_moment(2, 0.5, 1.0 / 12.0, sqrt(1.0 / 80.0 - 1.0 / 144.0));
    check_moment(3, 0.5, 0.0, sqrt(1.0 / 448.0));
    s->normal_f64(N_MANY, key, 0, 0, many);
    /* E z^k = 1, 3, 15, 105 for k = 2, 4, 6, 8 */
    check_moment(1, 0.0, 0.0, 1.0);
    check_moment(2, 0.0, 1.0, sqrt(3.0 - 1.0));
    check_moment(3, 0.0, 0.0, sqrt(15.0));
    check_moment(4, 0.0, 3.0, sqrt(105.0 - 9.0));
    double product = 0.0;
    for (int i = 0; i < N_MANY; i += 2)
        product += many[i] * many[i + 1];
    assert_true(fabs(product) < 5.0 * sqrt(N_MANY / 2.0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_published_vectors),
        cmocka_unit_test(a_generators_key_is_two_words_of_its_seed_and_stream),
        cmocka_unit_test(uniform_elements_are_the_stated_words),
        cmocka_unit_test(normal_elements_are_box_muller_pairs),
        cmocka_unit_test(any_range_of_a_draw_can_be_made_alone),
        cmocka_unit_test(nothing_beyond_the_range_is_written),
        cmocka_unit_test(moments_are_those_of_the_distributions),
    };
    n_sets = kernel_sets(sets);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
