/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 as FIPS 180-4 writes it down, names and all.
 *
 * The invariant: state is that of all whole blocks added so far, the rest waits
 * in block.
 */
#include <string.h>

#include "libtrn/data/sha256.h"
#include "trn/data.h"

/* First 32 bits of the fractions of the cube roots of the first 64 primes. */
static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotr(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

/* The message schedule W of one block. */
static void schedule(const uint8_t *block, uint32_t w[64])
{
    for (int t = 0; t < 16; t++) {
        const uint8_t *b = block + 4 * t;
        w[t] = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 |
               (uint32_t)b[2] << 8 | b[3];
    }
    for (int t = 16; t < 64; t++) {
        uint32_t x = w[t - 15], y = w[t - 2];
        uint32_t s0 = rotr(x, 7) ^ rotr(x, 18) ^ x >> 3;
        uint32_t s1 = rotr(y, 17) ^ rotr(y, 19) ^ y >> 10;
        w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
}

/* One round.  The working variables a to h move by one place in each; instead
 * of moving them, round t finds them t places further down. */
static inline void round_of(uint32_t v[8], int t, uint32_t k_plus_w)
{
    uint32_t a = v[-t & 7], b = v[(1 - t) & 7], c = v[(2 - t) & 7];
    uint32_t e = v[(4 - t) & 7], f = v[(5 - t) & 7], g = v[(6 - t) & 7];
    uint32_t s1 = rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25);
    uint32_t ch = (e & f) ^ (~e & g);
    uint32_t t1 = v[(7 - t) & 7] + s1 + ch + k_plus_w;
    uint32_t s0 = rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22);
    uint32_t maj = (a & b) ^ (a & c) ^ (b & c);
    v[(3 - t) & 7] += t1;           /* d becomes e */
    v[(7 - t) & 7] = t1 + s0 + maj; /* h's place becomes a's */
}

static void compress(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64], v[8];
    schedule(block, w);
    memcpy(v, state, sizeof v);
    for (int t = 0; t < 64; t += 8) {
        round_of(v, 0, K[t] + w[t]); /* eight rounds: places are constants */
        round_of(v, 1, K[t + 1] + w[t + 1]);
        round_of(v, 2, K[t + 2] + w[t + 2]);
        round_of(v, 3, K[t + 3] + w[t + 3]);
        round_of(v, 4, K[t + 4] + w[t + 4]);
        round_of(v, 5, K[t + 5] + w[t + 5]);
        round_of(v, 6, K[t + 6] + w[t + 6]);
        round_of(v, 7, K[t + 7] + w[t + 7]);
    }
    for (int i = 0; i < 8; i++)
        state[i] += v[i];
}

void trn__sha256_begin(trn__sha256 *s)
{
    /* First 32 bits of the fractions of the square roots of 2, 3, .. 19. */
    *s = (trn__sha256){
        .state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                  0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
    };
}

void trn__sha256_add(trn__sha256 *s, const void *data, size_t n)
{
    const uint8_t *p = data;
    size_t used = (size_t)(s->n % 64);
    s->n += n;
    while (n > 0) {
        size_t part = 64 - used < n ? 64 - used : n;
        if (part == 64) { /* a whole block needs no copy */
            compress(s->state, p);
        } else {
            memcpy(s->block + used, p, part);
            if (used + part == 64)
                compress(s->state, s->block);
        }
        used = (used + part) % 64;
        p += part;
        n -= part;
    }
}

void trn__sha256_end(trn__sha256 *s, char out[65])
{
    static const uint8_t padding[64] = {0x80};
    static const char digits[] = "0123456789abcdef";
    uint64_t bits = 8 * s->n;
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    size_t used = (size_t)(s->n % 64);
    trn__sha256_add(s, padding, (used < 56 ? 56 : 120) - used);
    trn__sha256_add(s, length, sizeof length);
    for (int i = 0; i < 64; i++)
        out[i] = digits[s->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    out[64] = '\0';
}

void trn_sha256(const void *data, size_t n, char out[65])
{
    trn__sha256 s;
    if (out == NULL)
        return;
    out[0] = '\0';
    if (data == NULL && n > 0)
        return;
    trn__sha256_begin(&s);
    trn__sha256_add(&s, data, n);
    trn__sha256_end(&s, out);
}
