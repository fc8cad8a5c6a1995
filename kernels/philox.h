/* SPDX-License-Identifier: Apache-2.0
 *
 * Philox4x32-10, the counter-based generator of every random number here
 * (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
 * 2011).  A block of four 32-bit words is a function of key and counter alone,
 * so any element of a draw can be made by any thread, in any order.
 *
 * Key words:      (key low half, key high half)
 * Counter words:  (block low, block high, draw low, draw high)
 *
 * What the elements of a draw are; w0 to w3 are the words of a block:
 *
 * uniform f32     element i is word i mod 4 of block i / 4:
 *                 (w >> 8) * 2^-24, in [0, 1)
 * uniform f64     element i is words a = 2 (i mod 2) and b = a + 1 of block
 *                 i / 2: ((wa << 21) + (wb >> 11)) * 2^-53, in [0, 1)
 * normal          elements 2j and 2j + 1 are made of block j by Box-Muller in
 *                 f64, every operation rounded:
 *                     u1 = ((w0 << 21) + (w1 >> 11) + 1) * 2^-53, in (0, 1]
 *                     u2 = ((w2 << 21) + (w3 >> 11)) * 2^-53, in [0, 1)
 *                     r  = sqrt(-2 ln u1)
 *                     t  = 6.283185307179586 u2
 *                     r cos t, r sin t
 *                 f32 is this value rounded once.
 *
 * Integers below n without bias, by rejection.  Two words are a 64-bit number
 * x = wa + (wb << 32), b = a + 1.  It is taken if it lies below the largest
 * multiple of n that is below 2^64, as x mod n; else the next one is looked at.
 *
 * randint         element i, attempts t = 0, 1, ..: words a = 2 (i mod 2) and b
 *                 of block i / 2 + t 2^48; low + (x mod (high - low)).  Attempt
 *                 65535 is taken in any case, which has a probability below
 *                 2^-65535; no memory holds the 2^49 elements whose blocks
 *                 would meet.
 * permutation     Fisher-Yates on 0 .. n - 1: for i = n - 1 down to 1 exchange
 *                 elements i and j, j below i + 1, from w0 and w1 of blocks
 *                 0, 1, 2, .., one for each attempt.
 */
#ifndef TRN_KERNELS_PHILOX_H
#define TRN_KERNELS_PHILOX_H

#include <stdint.h>

#define TRN__PHILOX_M0 0xd2511f53u
#define TRN__PHILOX_M1 0xcd9e8d57u
#define TRN__PHILOX_W0 0x9e3779b9u /* golden ratio */
#define TRN__PHILOX_W1 0xbb67ae85u /* sqrt(3) - 1 */
enum { TRN__PHILOX_ROUNDS = 10 };

typedef struct trn__philox_block {
    uint32_t w[4];
} trn__philox_block;

static inline trn__philox_block trn__philox(uint64_t key,
                                            trn__philox_block counter)
{
    uint32_t k0 = (uint32_t)key;
    uint32_t k1 = (uint32_t)(key >> 32);
    trn__philox_block c = counter;
    for (int round = 0; round < TRN__PHILOX_ROUNDS; round++) {
        const uint64_t p0 = (uint64_t)TRN__PHILOX_M0 * c.w[0];
        const uint64_t p1 = (uint64_t)TRN__PHILOX_M1 * c.w[2];
        c = (trn__philox_block){{
            (uint32_t)(p1 >> 32) ^ c.w[1] ^ k0,
            (uint32_t)p1,
            (uint32_t)(p0 >> 32) ^ c.w[3] ^ k1,
            (uint32_t)p0,
        }};
        k0 += TRN__PHILOX_W0;
        k1 += TRN__PHILOX_W1;
    }
    return c;
}

/* Block number `block` of a draw. */
static inline trn__philox_block trn__philox_of(uint64_t key, uint64_t draw,
                                               uint64_t block)
{
    return trn__philox(key, (trn__philox_block){{
                                (uint32_t)block,
                                (uint32_t)(block >> 32),
                                (uint32_t)draw,
                                (uint32_t)(draw >> 32),
                            }});
}

/*
 * The key of a generator.  Its counter cannot be that of a draw's block before
 * draw 0x74726e00, and its key is the bare seed, which keys nothing else.
 */
static inline uint64_t trn__philox_key(uint64_t seed, uint64_t stream)
{
    const trn__philox_block b = trn__philox_of(seed, 0x74726e00u, stream);
    return (uint64_t)b.w[1] << 32 | b.w[0];
}

/* 53 bits of two words, as an integer below 2^53 */
static inline uint64_t trn__philox_53(uint32_t a, uint32_t b)
{
    return ((uint64_t)a << 21) + (b >> 11);
}

/* ---- integers ---- */

/* 64 bits of two words */
static inline uint64_t trn__philox_64(uint32_t a, uint32_t b)
{
    return (uint64_t)b << 32 | a;
}

/* The largest multiple of n below 2^64. */
static inline uint64_t trn__philox_limit(uint64_t n)
{
    return UINT64_MAX - UINT64_MAX % n;
}

/* Element i of a draw of integers below n; limit is trn__philox_limit(n). */
static inline uint64_t trn__philox_element(uint64_t key, uint64_t draw,
                                           uint64_t i, uint64_t n,
                                           uint64_t limit)
{
    const uint64_t a = 2 * (i % 2);
    for (uint64_t t = 0;; t++) {
        const trn__philox_block b =
            trn__philox_of(key, draw, i / 2 + (t << 48));
        const uint64_t x = trn__philox_64(b.w[a], b.w[a + 1]);
        if (x < limit || t == 65535)
            return x % n;
    }
}

/* The next integer below n of a permutation; *block is the next block. */
static inline uint64_t trn__philox_below(uint64_t key, uint64_t draw,
                                         uint64_t n, uint64_t *block)
{
    const uint64_t limit = trn__philox_limit(n);
    for (;;) {
        const trn__philox_block b = trn__philox_of(key, draw, (*block)++);
        const uint64_t x = trn__philox_64(b.w[0], b.w[1]);
        if (x < limit)
            return x % n;
    }
}

#endif
