/* SPDX-License-Identifier: Apache-2.0
 *
 * Generators, uniform, normal, dropout, permutations.
 */
#include <string.h>

#include "kernels/philox.h"
#include "libtrn/ops/capture.h"
#include "libtrn/ops/op_table.h"
#include "libtrn/ops/randoms.h"

static void generator_destroy(trn__owned *self)
{
    trn_generator *g = (trn_generator *)self;
    trn__counter_remove(&g->draws);
    trn__free(g->c, g);
}

trn_generator *trn_generator_new(trn_context *c, uint64_t stream)
{
    if (trn__pending(c) != TRN_OK)
        return NULL;
    trn_generator *g = trn__alloc_zeroed(c, sizeof *g);
    if (g == NULL) {
        trn__fail_memory(c, "trn_generator_new", sizeof *g);
        return NULL;
    }
    g->c = c;
    g->stream = stream;
    g->key = trn__philox_key(c->seed, stream);
    trn__counter_add(c, &g->draws);
    trn__own(c, &g->owned, generator_destroy);
    return g;
}

static trn_status randoms_open(trn_context *c)
{
    trn__randoms *r = trn__alloc_zeroed(c, sizeof *r);
    if (r == NULL)
        return trn__fail_memory(c, "trn_open", sizeof *r);
    c->randoms = r;
    r->default_generator = trn_generator_new(c, 0);
    return c->status;
}

static void randoms_close(trn_context *c)
{
    trn__free(c, c->randoms);
    c->randoms = NULL;
}

const trn__layer trn__randoms_layer = {
    .open = randoms_open,
    .close = randoms_close,
};

trn_generator *trn_generator_default(trn_context *c)
{
    return c == NULL || c->randoms == NULL ? NULL
                                           : c->randoms->default_generator;
}

uint64_t trn_generator_draws(const trn_generator *g)
{
    return g == NULL ? 0 : g->draws.value;
}

uint64_t trn__hash_text(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const char *p = text; *p != '\0'; p++)
        hash = (hash ^ (uint8_t)*p) * UINT64_C(0x100000001b3);
    return hash;
}

void trn__permutation(const trn_generator *g, uint64_t draw, int64_t n,
                      int64_t *perm)
{
    uint64_t block = 0;
    for (int64_t i = 0; i < n; i++)
        perm[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j =
            (int64_t)trn__philox_below(g->key, draw, (uint64_t)i + 1, &block);
        int64_t t = perm[i];
        perm[i] = perm[j];
        perm[j] = t;
    }
}

/* ---- uniform and normal ---- */

static bool infer_random(const trn__call *k, trn__desc *out)
{
    const trn_random_attrs *at = k->attrs;
    const char *name = trn__ops[k->op].name;
    uint64_t bytes;
    if (!trn__is_float((uint32_t)at->dtype)) {
        trn__fail(k->c, TRN_ERR_DTYPE, "%s: dtype is %s; expected a float type",
                  name, trn_dtype_name((trn_dtype)at->dtype));
        return false;
    }
    return trn__desc_make(k->c, name, (uint32_t)at->dtype, (int)at->shape.rank,
                          at->shape.dim, out, &bytes) == TRN_OK;
}

bool trn__infer_uniform(const trn__call *k, trn__desc *out)
{
    return infer_random(k, out);
}

bool trn__infer_normal(const trn__call *k, trn__desc *out)
{
    return infer_random(k, out);
}

static trn_tensor *draw(uint32_t op, trn_generator *g, trn_dtype dtype,
                        int rank, const int64_t *shape)
{
    if (g == NULL)
        return NULL;
    trn_random_attrs at;
    memset(&at, 0, sizeof at);
    trn__desc desc;
    uint64_t bytes;
    if (trn__pending(g->c) != TRN_OK ||
        trn__desc_make(g->c, trn__ops[op].name, (uint32_t)dtype, rank, shape,
                       &desc, &bytes) != TRN_OK)
        return NULL;
    at.dtype = (int32_t)dtype;
    at.shape.rank = rank;
    memcpy(at.shape.dim, desc.shape, sizeof desc.shape);
    trn__call k = trn__call_of(op, NULL, NULL, &at, sizeof at);
    k.c = g->c;
    k.key = g->key;
    k.draw = g->draws.value;
    trn_tensor *y = trn__apply(&k);
    if (y != NULL)
        g->draws.value++;
    return y;
}

trn_tensor *trn_uniform(trn_generator *g, trn_dtype dtype, int rank,
                        const int64_t *shape)
{
    return draw(TRN_OP_uniform, g, dtype, rank, shape);
}

trn_tensor *trn_normal(trn_generator *g, trn_dtype dtype, int rank,
                       const int64_t *shape)
{
    return draw(TRN_OP_normal, g, dtype, rank, shape);
}

/* ---- dropout ---- */

bool trn__infer_dropout(const trn__call *k, trn__desc *out)
{
    const trn_arg *x = &k->in[0]->arg;
    *out = (trn__desc){.dtype = x->dtype, .rank = x->rank};
    memcpy(out->shape, x->shape, sizeof out->shape);
    return trn__want_float(k, 0);
}

/* The draw that a call was made with, again. */
static trn_tensor *dropout_again(trn_tensor *x, const trn__call *k)
{
    static const trn_dropout_attrs none;
    trn__call again = trn__call_of(TRN_OP_dropout, x, NULL, &none, sizeof none);
    again.values[0] = k->values[0];
    again.key = k->key;
    again.draw = k->draw;
    again.scalar[0] = k->scalar[0];
    again.draw_no = k->draw_no;
    again.sourced = !k->foreign && trn__capture_on(k->c);
    return trn__apply(&again);
}

void trn__grad_dropout(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    gin[0] = dropout_again(g, k); /* linear: the same mask and scale */
}

trn_tensor *trn__decompose_dropout(const trn__call *k)
{
    trn_tensor *x = trn__up(k->in[0]); /* y = where(p > u, 0, x / (1 - p)) */
    if (x == NULL)
        return NULL;
    trn_tensor *p = trn__value(k, 0, x);
    trn_tensor *one = trn_full(k->c, (trn_dtype)x->arg.dtype, 0, NULL, 1.0);
    trn_tensor *scale = trn_div(one, trn_sub(one, p));
    trn_random_attrs at;
    memset(&at, 0, sizeof at);
    at.dtype = (int32_t)x->arg.dtype;
    at.shape.rank = x->arg.rank;
    memcpy(at.shape.dim, x->arg.shape, sizeof x->arg.shape);
    trn__call uniform =
        trn__call_of(TRN_OP_uniform, NULL, NULL, &at, sizeof at);
    uniform.c = k->c;
    uniform.key = k->key;
    uniform.draw = k->draw;
    uniform.draw_no = k->draw_no;
    uniform.sourced = !k->foreign && trn__capture_on(k->c);
    trn_tensor *u = trn__apply(&uniform);
    trn_tensor *y =
        trn_where(trn_greater(p, u), trn__zeros_like(x), trn_mul(x, scale));
    return trn__down(y, k->in[0]->arg.dtype);
}

trn_tensor *trn_dropout(trn_tensor *x, double p, trn_generator *g)
{
    static const trn_dropout_attrs none;
    trn__call k = trn__call_of(TRN_OP_dropout, x, NULL, &none, sizeof none);
    if (trn__check_inputs(&k) != TRN_OK)
        return NULL;
    if (!trn__fp_within(p, 0.0, 1.0) || g == NULL || g->c != k.c) {
        char text[32];
        trn__fail(k.c, TRN_ERR_ARG,
                  "dropout: p is %s, generator %s; expected p in [0, 1] and a "
                  "generator of this context",
                  trn__format_double(p, text, sizeof text),
                  g == NULL ? "NULL" : "given");
        return NULL;
    }
    k.values[0] = p;
    k.key = g->key;
    k.draw = g->draws.value;
    trn_tensor *y = trn__apply(&k);
    if (y != NULL)
        g->draws.value++;
    return y;
}

/* ---- full ---- */

bool trn__infer_full(const trn__call *k, trn__desc *out)
{
    const trn_full_attrs *at = k->attrs;
    uint64_t bytes;
    return trn__desc_make(k->c, "full", (uint32_t)at->dtype,
                          (int)at->shape.rank, at->shape.dim, out,
                          &bytes) == TRN_OK;
}

trn_tensor *trn_full(trn_context *c, trn_dtype dtype, int rank,
                     const int64_t *shape, double value)
{
    trn_full_attrs at;
    memset(&at, 0, sizeof at);
    trn__desc desc;
    uint64_t bytes;
    if (trn__pending(c) != TRN_OK ||
        trn__desc_make(c, "full", (uint32_t)dtype, rank, shape, &desc,
                       &bytes) != TRN_OK)
        return NULL;
    at.dtype = (int32_t)dtype;
    at.shape.rank = rank;
    memcpy(at.shape.dim, desc.shape, sizeof desc.shape);
    trn__call k = trn__call_of(TRN_OP_full, NULL, NULL, &at, sizeof at);
    k.c = c;
    k.values[0] = value;
    return trn__apply(&k);
}

trn_tensor *trn_tensor_zeros(trn_context *c, trn_dtype dtype, int rank,
                             const int64_t *shape)
{
    return trn_full(c, dtype, rank, shape, 0.0);
}

trn_tensor *trn_tensor_scalar(trn_context *c, trn_dtype dtype, double value)
{
    if (trn__pending(c) == TRN_OK && !trn__is_float((uint32_t)dtype))
        trn__fail(c, TRN_ERR_DTYPE,
                  "trn_tensor_scalar: dtype is %s; expected a float type",
                  trn_dtype_name(dtype));
    return trn_full(c, dtype, 0, NULL, value);
}
