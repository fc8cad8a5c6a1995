/* SPDX-License-Identifier: Apache-2.0
 *
 * The oracle of rows with indices, and of random rows.
 *
 * Random rows have no expected value from outside; what their elements are is
 * told in kernels/philox.h and computed here from its blocks.
 */
#include <math.h>

#include "kernels/philox.h"
#include "oracle.h"

static void embedding(const case_args *a, oracle_result *r)
{
    const case_input *w = &a->in[0], *index = &a->in[1];
    int64_t dim[TRN_MAX_RANK], width = w->dim[1];
    memcpy(dim, index->dim, sizeof dim);
    dim[index->rank] = width;
    oracle_tensor *y = oracle_make(r, 0, a->dtype, index->rank + 1, dim);
    for (int64_t i = 0; i < y->n; i++)
        y->v[i] = w->v[(int64_t)index->v[i / width] * width + i % width];
}

static void embedding_grad(const case_args *a, oracle_result *r)
{
    const case_input *g = &a->in[0], *index = &a->in[1];
    int64_t width = g->dim[g->rank - 1];
    int64_t dim[2] = {attr_int(a->tc, "rows", 1), width};
    oracle_tensor *y = oracle_make(r, 0, a->dtype, 2, dim);
    for (int64_t i = 0; i < g->n; i++) {
        int64_t row = (int64_t)index->v[i / width];
        if (row == attr_int(a->tc, "padding", -1))
            continue;
        y->v[row * width + i % width] += g->v[i];
        y->size[row * width + i % width] += fabsl(g->v[i]);
    }
    r->length = index->n;
    r->tolerance = TOLERANCE_SCATTER;
}

static void gather(const case_args *a, oracle_result *r)
{
    const case_input *x = &a->in[0], *index = &a->in[1];
    int axis = attr_axis(a->tc, x->rank);
    int64_t at[TRN_MAX_RANK];
    oracle_tensor *y = oracle_make(r, 0, a->dtype, index->rank, index->dim);
    for (int64_t i = 0; i < y->n; i++) {
        oracle_index(index->rank, index->dim, i, at);
        at[axis] = (int64_t)index->v[i];
        y->v[i] = x->v[oracle_flat(x->rank, x->dim, at)];
    }
}

static void scatter_add(const case_args *a, oracle_result *r)
{
    const case_input *x = &a->in[0], *index = &a->in[1];
    int axis = attr_axis(a->tc, x->rank);
    int64_t at[TRN_MAX_RANK], dim[TRN_MAX_RANK];
    memcpy(dim, x->dim, sizeof dim);
    dim[axis] = attr_int(a->tc, "size", 1);
    oracle_tensor *y = oracle_make(r, 0, a->dtype, x->rank, dim);
    for (int64_t i = 0; i < x->n; i++) {
        oracle_index(x->rank, x->dim, i, at);
        at[axis] = (int64_t)index->v[i];
        int64_t j = oracle_flat(x->rank, dim, at);
        y->v[j] += x->v[i];
        y->size[j] += fabsl(x->v[i]);
    }
    r->length = x->dim[axis];
    r->tolerance = TOLERANCE_SCATTER;
}

static void index_select(const case_args *a, oracle_result *r)
{
    const case_input *x = &a->in[0], *index = &a->in[1];
    int axis = attr_axis(a->tc, x->rank);
    int64_t at[TRN_MAX_RANK], dim[TRN_MAX_RANK];
    memcpy(dim, x->dim, sizeof dim);
    dim[axis] = index->n;
    oracle_tensor *y = oracle_make(r, 0, a->dtype, x->rank, dim);
    for (int64_t i = 0; i < y->n; i++) {
        oracle_index(x->rank, dim, i, at);
        at[axis] = (int64_t)index->v[at[axis]];
        y->v[i] = x->v[oracle_flat(x->rank, x->dim, at)];
    }
}

static void one_hot(const case_args *a, oracle_result *r)
{
    const case_input *index = &a->in[0];
    int64_t dim[TRN_MAX_RANK], n = attr_int(a->tc, "classes", 1);
    memcpy(dim, index->dim, sizeof dim);
    dim[index->rank] = n;
    oracle_tensor *y = oracle_make(r, 0, a->dtype, index->rank + 1, dim);
    for (int64_t i = 0; i < index->n; i++)
        y->v[i * n + (int64_t)index->v[i]] = 1;
}

void oracle_index_ops(const case_args *a, oracle_result *r)
{
    r->tolerance = TOLERANCE_EXACT;
    switch (a->tc->op) {
    case TRN_OP_embedding:
        embedding(a, r);
        break;
    case TRN_OP_embedding_grad:
        embedding_grad(a, r);
        break;
    case TRN_OP_gather:
        gather(a, r);
        break;
    case TRN_OP_index_select:
        index_select(a, r);
        break;
    case TRN_OP_one_hot:
        one_hot(a, r);
        break;
    default:
        scatter_add(a, r);
        break;
    }
}

/* ---- random rows ---- */

static double uniform_at(trn_dtype dtype, int64_t i)
{
    uint64_t n = (uint64_t)i;
    if (dtype == TRN_F64) {
        trn__philox_block b = trn__philox_of(CASE_KEY, CASE_DRAW, n / 2);
        uint64_t high = b.w[n % 2 * 2], low = b.w[n % 2 * 2 + 1];
        return (double)((high << 21) + (low >> 11)) * 0x1p-53;
    }
    trn__philox_block b = trn__philox_of(CASE_KEY, CASE_DRAW, n / 4);
    return (double)(b.w[n % 4] >> 8) * 0x1p-24;
}

static long double normal_at(int64_t i)
{
    trn__philox_block b = trn__philox_of(CASE_KEY, CASE_DRAW, (uint64_t)i / 2);
    uint64_t first = ((uint64_t)b.w[0] << 21) + (b.w[1] >> 11) + 1;
    uint64_t second = ((uint64_t)b.w[2] << 21) + (b.w[3] >> 11);
    long double radius = sqrtl(-2 * logl((long double)first * 0x1p-53L));
    long double turn =
        6.283185307179586476925287L * (long double)second * 0x1p-53L;
    return radius * (i % 2 == 0 ? cosl(turn) : sinl(turn));
}

static void dropout(const case_args *a, oracle_result *r)
{
    const case_input *x = &a->in[0];
    trn_dtype compute = oracle_compute(a->dtype);
    long double p = oracle_value(a->dtype, attr_real(a->tc, "p", 0.5));
    oracle_tensor *y = oracle_make(r, 0, a->dtype, x->rank, x->dim);
    for (int64_t i = 0; i < y->n; i++) {
        bool dropped = (long double)uniform_at(compute, i) < p;
        y->v[i] = dropped ? 0 : x->v[i] / (1 - p);
        y->size[i] = fabsl(y->v[i]);
    }
    r->tolerance = TOLERANCE_COMPOSITE;
}

void oracle_random(const case_args *a, oracle_result *r)
{
    int64_t dim[TRN_MAX_RANK];
    if (a->tc->op == TRN_OP_dropout) {
        dropout(a, r);
        return;
    }
    int rank = attr_list(a->tc, "shape", dim);
    bool normal = a->tc->op == TRN_OP_normal;
    oracle_tensor *y = oracle_make(r, 0, a->dtype, rank, dim);
    for (int64_t i = 0; i < y->n; i++) {
        y->v[i] = normal ? normal_at(i) : (long double)uniform_at(a->dtype, i);
        y->size[i] = 6; /* the angle is rounded once more */
    }
    r->tolerance = normal ? TOLERANCE_SUM
                   : a->dtype == TRN_F64 || a->dtype == TRN_F32
                       ? TOLERANCE_EXACT
                       : TOLERANCE_ROUNDED;
}

/* The number that words a and a + 1 of a block make. */
static uint64_t number(uint64_t block, int a)
{
    trn__philox_block b = trn__philox_of(CASE_KEY, CASE_DRAW, block);
    return b.w[a] + ((uint64_t)b.w[a + 1] << 32);
}

/* Does the run of n numbers, from a multiple of n on, in which x is reach 2^64?
 */
static bool beyond(uint64_t x, uint64_t n)
{
    return x - x % n > UINT64_MAX - n;
}

static void randint(const case_args *a, oracle_result *r)
{
    int64_t dim[TRN_MAX_RANK], low = attr_int(a->tc, "low", 0);
    int rank = attr_list(a->tc, "shape", dim);
    uint64_t n = (uint64_t)attr_int(a->tc, "high", 10) - (uint64_t)low;
    trn_dtype dtype = attr_dtype(a->tc, "to", TRN_I32);
    oracle_tensor *y = oracle_make(r, 0, dtype, rank, dim);
    for (int64_t i = 0; i < y->n; i++) {
        uint64_t block = (uint64_t)i / 2, x = number(block, i % 2 ? 2 : 0);
        while (beyond(x, n)) {
            block += UINT64_C(1) << 48;
            x = number(block, i % 2 ? 2 : 0);
        }
        y->v[i] = (long double)low + (long double)(x % n);
    }
}

static void permutation(const case_args *a, oracle_result *r)
{
    int64_t n = attr_int(a->tc, "n", 0);
    trn_dtype dtype = attr_dtype(a->tc, "to", TRN_I32);
    oracle_tensor *y = oracle_make(r, 0, dtype, 1, &n);
    uint64_t block = 0;
    for (int64_t i = 0; i < n; i++)
        y->v[i] = (long double)i;
    for (int64_t i = n - 1; i > 0; i--) {
        uint64_t x = number(block++, 0);
        while (beyond(x, (uint64_t)i + 1))
            x = number(block++, 0);
        int64_t j = (int64_t)(x % ((uint64_t)i + 1));
        long double t = y->v[i];
        y->v[i] = y->v[j];
        y->v[j] = t;
    }
}

void oracle_random_integers(const case_args *a, oracle_result *r)
{
    r->tolerance = TOLERANCE_EXACT;
    if (a->tc->op == TRN_OP_randint)
        randint(a, r);
    else
        permutation(a, r);
}
