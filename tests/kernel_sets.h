/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of kernels: the sets this machine can run, seeded inputs, and
 * equality by bits.
 */
#ifndef TRN_TESTS_KERNEL_SETS_H
#define TRN_TESTS_KERNEL_SETS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "generic_set.h"
#include "kernels/kernel_set.h"

enum { MAX_SETS = 2 };

/* set[0] is generic; returns how many there are. */
static inline int kernel_sets(trn__kernel_set *set)
{
    trn__set_generic(&set[0]);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        set[1] = set[0];
        trn__overlay_avx2(&set[1]);
        return 2;
    }
#endif
    print_message("only the generic set runs here: avx2 is not tested\n");
    return 1;
}

/* SplitMix64: nothing that is tested makes the inputs. */
static inline uint64_t next_bits(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* In [-1, 1) with up to 24 bits, times 2^-8 to 2^8; sometimes a zero. */
static inline float next_f32(uint64_t *state)
{
    const uint64_t z = next_bits(state);
    const int32_t mantissa = (int32_t)(z >> 40) - (1 << 23);
    const int exponent = (int)(z & 15) - 7;
    if ((z >> 4 & 63) == 0)
        return z >> 10 & 1 ? -0.0f : 0.0f;
    return (float)mantissa * 0x1p-23f *
           (exponent < 0 ? 1.0f / (float)(1 << -exponent)
                         : (float)(1 << exponent));
}

static inline double next_f64(uint64_t *state)
{
    const double high = (double)next_f32(state);
    return high + (double)next_f32(state) * 0x1p-30;
}

static inline bool same_f32(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}

static inline bool same_f64(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}

/* A failure says where: cmocka's own message would only say "false". */
#define CHECK(condition, ...)                     \
    do {                                          \
        if (!(condition)) {                       \
            print_error(__VA_ARGS__);             \
            fail_msg("not true: %s", #condition); \
        }                                         \
    } while (0)

#endif
