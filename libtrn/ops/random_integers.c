/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws of integers: randint and permutation.  kernels/philox.h states the
 * method.
 */
#include <string.h>

#include "libtrn/ops/op_table.h"
#include "libtrn/ops/randoms.h"

/* i32, i64, or 0 for i32; false with the error raised */
static bool integer_type(trn_context *c, const char *what, trn_dtype dtype,
                         int32_t *out)
{
    *out = dtype == 0 ? (int32_t)TRN_I32 : (int32_t)dtype;
    if (*out == TRN_I32 || *out == TRN_I64)
        return true;
    trn__fail(c, TRN_ERR_DTYPE, "%s: dtype is %s; expected i32 or i64", what,
              trn_dtype_name(dtype));
    return false;
}

/* Applies k with the generator's next draw. */
static trn_tensor *drawn(trn_generator *g, trn__call *k)
{
    k->c = g->c;
    k->key = g->key;
    k->draw = g->draws.value;
    trn_tensor *y = trn__apply(k);
    if (y != NULL)
        g->draws.value++;
    return y;
}

/* ---- randint ---- */

bool trn__infer_randint(const trn__call *k, trn__desc *out)
{
    const trn_randint_attrs *at = k->attrs;
    uint64_t bytes;
    return trn__desc_make(k->c, "randint", (uint32_t)at->dtype,
                          (int)at->shape.rank, at->shape.dim, out,
                          &bytes) == TRN_OK;
}

static bool check_range(trn_context *c, const trn_randint_attrs *at)
{
    const bool narrow = at->dtype == TRN_I32;
    if (at->low >= at->high)
        trn__fail(c, TRN_ERR_ARG,
                  "randint: low is %lld, high is %lld; expected low < high",
                  (long long)at->low, (long long)at->high);
    else if (narrow && (at->low < INT32_MIN || at->high - 1 > INT32_MAX))
        trn__fail(c, TRN_ERR_ARG,
                  "randint: [%lld, %lld) does not fit i32; expected "
                  "[-2147483648, 2147483648) at most, or i64",
                  (long long)at->low, (long long)at->high);
    else
        return true;
    return false;
}

trn_tensor *trn_randint(trn_generator *g, trn_dtype dtype, int64_t low,
                        int64_t high, int rank, const int64_t *shape)
{
    trn_randint_attrs at;
    trn__desc desc;
    uint64_t bytes;
    memset(&at, 0, sizeof at);
    if (g == NULL || trn__pending(g->c) != TRN_OK ||
        !integer_type(g->c, "randint", dtype, &at.dtype))
        return NULL;
    at.low = low;
    at.high = high;
    if (!check_range(g->c, &at) ||
        trn__desc_make(g->c, "randint", (uint32_t)at.dtype, rank, shape, &desc,
                       &bytes) != TRN_OK)
        return NULL;
    at.shape.rank = rank;
    memcpy(at.shape.dim, desc.shape, sizeof desc.shape);
    trn__call k = trn__call_of(TRN_OP_randint, NULL, NULL, &at, sizeof at);
    return drawn(g, &k);
}

/* ---- permutation ---- */

bool trn__infer_permutation(const trn__call *k, trn__desc *out)
{
    const trn_permutation_attrs *at = k->attrs;
    uint64_t bytes;
    return trn__desc_make(k->c, "permutation", (uint32_t)at->dtype, 1, &at->n,
                          out, &bytes) == TRN_OK;
}

trn_tensor *trn_permutation(trn_generator *g, trn_dtype dtype, int64_t n)
{
    trn_permutation_attrs at;
    memset(&at, 0, sizeof at);
    if (g == NULL || trn__pending(g->c) != TRN_OK ||
        !integer_type(g->c, "permutation", dtype, &at.dtype))
        return NULL;
    const bool narrow = at.dtype == TRN_I32;
    if (n < 0 || (narrow && n - 1 > INT32_MAX)) {
        trn__fail(g->c, TRN_ERR_ARG,
                  "permutation: n is %lld; expected 0 or more%s", (long long)n,
                  narrow ? ", 2147483648 at most for i32" : "");
        return NULL;
    }
    at.n = n;
    trn__call k = trn__call_of(TRN_OP_permutation, NULL, NULL, &at, sizeof at);
    return drawn(g, &k);
}
