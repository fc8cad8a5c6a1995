/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products without tiles: bf16 by its definition, and integers.
 *
 * bf16 (reproducibility contract, "bf16 matrix multiply"): blocks of 32 places
 * along k, an FMA chain for the even and one for the odd ones, inputs and
 * results below the smallest normal number flushed to zero.
 */
#include "backends/cpu/cpu_matmul.h"
#include "kernels/convert.h"

#include <string.h>

/*
 * fma(a, b, c), flushed.  The product is exact in f64 and the sum is rounded
 * to odd, so that it lies on the same side of every bound and tie as the exact
 * value.  A result is tiny when its rounding to 24 bits with an unbounded
 * exponent is below 2^-126, that is: below the midpoint under it.
 */
static float fma_flush(float a, float b, float c)
{
    const double p = (double)a * (double)b;
    double s = p + (double)c;
    const double t = s - p;
    const double e = (p - (s - t)) + ((double)c - t);
    uint64_t bits;
    memcpy(&bits, &s, sizeof bits);
    if ((e > 0.0 || e < 0.0) && (bits & 1u) == 0) {
        const bool away = (e > 0.0) != (bits >> 63 != 0);
        bits = away ? bits + 1 : bits - 1;
        memcpy(&s, &bits, sizeof s);
    }
    const double size = s < 0 ? -s : s;
    if (size < 0x1p-126 - 0x1p-151)
        return bits >> 63 ? -0.0f : 0.0f;
    return (float)s;
}

static float load_bf16(const char *x)
{
    uint16_t bits;
    memcpy(&bits, x, sizeof bits);
    if ((bits & 0x7f80u) == 0)
        bits &= 0x8000u;
    return trn__bf16_to_f32(bits);
}

/* c + the chains of places [p, p + 32), those from k on being zeros. */
static float block_of_32(const trn__cpu_product *p, int64_t i, int64_t j,
                         int64_t at, float c)
{
    float chain[2] = {0.0f, 0.0f};
    for (int64_t q = at; q < at + 32; q++) {
        float a = 0.0f, b = 0.0f;
        if (q < p->k) {
            a = load_bf16(trn__cpu_factor_at(&p->a, i, q));
            b = load_bf16(trn__cpu_factor_at(&p->b, j, q));
        }
        chain[q & 1] = fma_flush(a, b, chain[q & 1]);
    }
    return fma_flush(fma_flush(chain[0], 1.0f, chain[1]), 1.0f, c);
}

float trn__cpu_dot_bf16(const trn__cpu_product *p, int64_t i, int64_t j)
{
    float total = 0.0f;
    for (int64_t start = 0; start < p->k; start += 4096) {
        const int64_t end = trn__i64_min(p->k, start + 4096);
        float c = 0.0f;
        for (int64_t at = start; at < end; at += 32)
            c = block_of_32(p, i, j, at, c);
        total = start == 0 ? c : fma_flush(total, 1.0f, c);
    }
    return total;
}

void trn__cpu_multiply_bf16(void *products, int64_t begin, int64_t end)
{
    const trn__cpu_products *all = products;
    for (int64_t row = begin; row < end; row++) {
        const trn__cpu_product p = trn__cpu_product_of(all, row / all->one.m);
        const int64_t i = row % all->one.m;
        uint16_t *c = (uint16_t *)(void *)p.c + i * p.n;
        for (int64_t j = 0; j < p.n; j++)
            c[j] = trn__f32_to_bf16(trn__cpu_dot_bf16(&p, i, j));
    }
}

static uint64_t load_integer(uint32_t dtype, const char *x)
{
    int64_t i64 = 0;
    int32_t i32;
    uint32_t u32;
    if (dtype == TRN_I64) {
        memcpy(&i64, x, sizeof i64);
    } else if (dtype == TRN_I32) {
        memcpy(&i32, x, sizeof i32);
        i64 = i32;
    } else if (dtype == TRN_U32) {
        memcpy(&u32, x, sizeof u32);
        i64 = u32;
    } else {
        i64 = *(const uint8_t *)(const void *)x;
    }
    return (uint64_t)i64;
}

/* Wrap-around in 64 bits, of which the output's type keeps the low ones. */
void trn__cpu_multiply_integers(void *products, int64_t begin, int64_t end)
{
    const trn__cpu_products *all = products;
    const uint32_t dtype = all->one.c_dtype;
    const size_t size = trn__cpu_size(dtype);
    for (int64_t row = begin; row < end; row++) {
        const trn__cpu_product p = trn__cpu_product_of(all, row / all->one.m);
        const int64_t i = row % all->one.m;
        char *c = p.c + (size_t)(i * p.n) * size;
        for (int64_t j = 0; j < p.n; j++) {
            uint64_t sum = 0;
            for (int64_t q = 0; q < p.k; q++)
                sum += load_integer(dtype, trn__cpu_factor_at(&p.a, i, q)) *
                       load_integer(dtype, trn__cpu_factor_at(&p.b, j, q));
            const uint32_t low = (uint32_t)sum;
            const uint8_t byte = (uint8_t)sum;
            memcpy(c + (size_t)j * size,
                   size == 8   ? (const void *)&sum
                   : size == 4 ? (const void *)&low
                               : (const void *)&byte,
                   size);
        }
    }
}
