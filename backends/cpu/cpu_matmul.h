/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the matrix product share: operands as strided matrices.
 */
#ifndef TRN_BACKENDS_CPU_MATMUL_H
#define TRN_BACKENDS_CPU_MATMUL_H

#include "backends/cpu/cpu_read.h"

/* The k-block of the numerics rule "matmul", and the largest there is. */
#ifdef TRN_FREE_ORDER /* the benchmark's "rules" shows what another one saves \
                       */
#include "kernels/free_order/free_order.h"
#define TRN__CPU_KC trn__free_kc
#define TRN__CPU_KC_MOST TRN__FREE_KC
#else
#define TRN__CPU_KC 256
#define TRN__CPU_KC_MOST TRN__CPU_KC
#endif

/* Element (i, p) of one factor is at x + i outer + p inner, p along k. */
typedef struct trn__cpu_factor {
    const char *x;
    int64_t outer, inner;
    uint32_t dtype;
} trn__cpu_factor;

/* c[m, n] = a[m, k] b[k, n]; c has rows of n elements of type c_dtype. */
typedef struct trn__cpu_product {
    trn_device *dev;
    int64_t m, n, k;
    trn__cpu_factor a, b;
    char *c;
    uint32_t c_dtype; /* f32 or f64; of the plain loops any */
} trn__cpu_product;

/* The products of a batch. */
typedef struct trn__cpu_products {
    trn__cpu_product one; /* of the first item */
    int64_t n_batch;
    trn__cpu_reader a, b; /* the batch dimensions of the factors */
    size_t c_bytes;       /* of one item */
} trn__cpu_products;

/*
 * Packs elements [0, m) x [0, k) of x into panels of `width` rows, each
 * [k, width] and padded with zeros; f16 becomes f32.
 */
void trn__cpu_pack(const trn_device *dev, const trn__cpu_factor *x, int64_t m,
                   int64_t k, int width, void *panels);

/* One product by one thread, without allocation. */
void trn__cpu_multiply_serial(const trn__cpu_product *p);

/* One product by all threads, and the workspace that it takes; TRN_ERR_NOMEM
 * without a message. */
int32_t trn__cpu_multiply_shared(const trn__cpu_product *p);
size_t trn__cpu_shared_bytes(const trn__cpu_product *p);

/* Element (i, j) of a bf16 product by its definition, before it is rounded to
 * bf16. */
float trn__cpu_dot_bf16(const trn__cpu_product *p, int64_t i, int64_t j);

/* Rows of bf16 and integer products, numbered over the whole batch. */
void trn__cpu_multiply_bf16(void *products, int64_t begin, int64_t end);
void trn__cpu_multiply_integers(void *products, int64_t begin, int64_t end);

static inline trn__cpu_product trn__cpu_product_of(const trn__cpu_products *p,
                                                   int64_t item)
{
    trn__cpu_product one = p->one;
    one.a.x = trn__cpu_locate(&p->a, item);
    one.b.x = trn__cpu_locate(&p->b, item);
    one.c += (size_t)item * p->c_bytes;
    return one;
}

/* Element (i, p) of a factor as an address. */
static inline const char *trn__cpu_factor_at(const trn__cpu_factor *x,
                                             int64_t i, int64_t p)
{
    return x->x +
           (i * x->outer + p * x->inner) * (int64_t)trn__cpu_size(x->dtype);
}

/* The factor from row i and place p on. */
static inline trn__cpu_factor trn__cpu_factor_from(const trn__cpu_factor *x,
                                                   int64_t i, int64_t p)
{
    trn__cpu_factor from = *x;
    from.x = trn__cpu_factor_at(x, i, p);
    return from;
}

#endif
