/* SPDX-License-Identifier: Apache-2.0
 *
 * The digest over all rows: how inputs are made and results are added.
 *
 * Results are read when their step has ended, so that the step can be captured
 * as a whole.
 *
 * A result is hashed as little-endian elements in row-major order, every NaN
 * as one value, because a NaN's sign and payload are not promised.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/verify_rows.h"

/* ---- results ---- */

static uint64_t load_element(const unsigned char *at, size_t size)
{
    uint8_t v8;
    uint16_t v16;
    uint32_t v32;
    uint64_t v64;
    switch (size) {
    case 1:
        memcpy(&v8, at, sizeof v8);
        return v8;
    case 2:
        memcpy(&v16, at, sizeof v16);
        return v16;
    case 4:
        memcpy(&v32, at, sizeof v32);
        return v32;
    default:
        memcpy(&v64, at, sizeof v64);
        return v64;
    }
}

/* The bits of +infinity: a float whose magnitude is above is a NaN. */
static uint64_t infinity_of(trn_dtype dtype)
{
    if (dtype == TRN_F64)
        return 0x7ff0000000000000u;
    if (dtype == TRN_F32)
        return 0x7f800000u;
    if (dtype == TRN_BF16)
        return 0x7f80u;
    return dtype == TRN_F16 ? 0x7c00u : 0;
}

static void canonical(trn_dtype dtype, unsigned char *data, int64_t n)
{
    const size_t size = trn_dtype_size(dtype);
    const uint64_t infinity = infinity_of(dtype);
    const uint64_t sign = (uint64_t)1 << (8 * size - 1);
    for (int64_t i = 0; i < n; i++) {
        unsigned char *at = data + (size_t)i * size;
        uint64_t v = load_element(at, size);
        if (infinity != 0 && (v & ~sign) > infinity)
            v = infinity + 1;
        for (size_t b = 0; b < size; b++)
            at[b] = (unsigned char)(v >> (8 * b));
    }
}

/* Appends; false when there is no memory. */
static bool append(verify_sink *s, const char *name, const char *digest)
{
    const size_t n = strlen(name) + strlen(digest) + 3;
    if (s->n_text + n > s->room) {
        size_t room = 2 * s->room + n;
        char *text = realloc(s->text, room);
        if (text == NULL)
            return false;
        s->text = text;
        s->room = room;
    }
    int written = snprintf(s->text + s->n_text, n, "%s %s\n", name, digest);
    s->n_text += (size_t)written;
    return true;
}

void verify_put(verify_sink *s, const char *name, trn_tensor *y)
{
    if (y == NULL)
        return;
    if (s->n_rows == s->room_rows) {
        const int room = 2 * s->room_rows + 64;
        verify_result_row *rows = realloc(s->rows, (size_t)room * sizeof *rows);
        if (rows == NULL)
            return;
        s->rows = rows;
        s->room_rows = room;
    }
    verify_result_row *row = &s->rows[s->n_rows++];
    snprintf(row->name, sizeof row->name, "%s", name);
    row->y = trn_tensor_retain(y);
}

/* The digest of one result; false: it could not be read, or no memory. */
static bool hash_row(verify_sink *s, const char *name, trn_tensor *y)
{
    char digest[VERIFY_DIGEST];
    bool added = false;
    const int64_t n = trn_tensor_numel(y);
    const size_t bytes = (size_t)n * trn_dtype_size(trn_tensor_dtype(y));
    unsigned char *data = malloc(bytes == 0 ? 1 : bytes);
    if (data != NULL && trn_tensor_read(y, data, bytes) == TRN_OK) {
        canonical(trn_tensor_dtype(y), data, n);
        trn_sha256(data, bytes, digest);
        added = append(s, name, digest);
        if (added && s->each != NULL)
            s->each(s->user, name, digest);
    }
    free(data);
    return added;
}

/* The results of the step that has ended, in their order. */
static bool hash_rows(verify_sink *s)
{
    bool added = true;
    for (int i = 0; i < s->n_rows; i++) {
        added = added && hash_row(s, s->rows[i].name, s->rows[i].y);
        trn_tensor_release(s->rows[i].y);
    }
    s->n_rows = 0;
    return added;
}

/* Not normal: in f64 without FMA such a draw is as slow as all else. */
static trn_tensor *draw(verify_sink *s, int rank, const int64_t *shape,
                        double scale)
{
    trn_tensor *u = trn_uniform(s->g, s->dtype, rank, shape);
    return trn_mul_scalar(trn_add_scalar(u, -0.5), 2.0 * scale);
}

/* The sum of squares of all gradients, as something to differentiate. */
static trn_tensor *sum_of_squares(int n, trn_tensor *const *g)
{
    trn_tensor *all = NULL;
    for (int i = 0; i < n; i++) {
        trn_tensor *one = trn_sum(trn_mul(g[i], g[i]), TRN_ALL_AXES, false);
        all = all == NULL ? one : trn_add(all, one);
    }
    return all;
}

static void put_each(verify_sink *s, const char *name, const char *what, int n,
                     trn_tensor *const *t)
{
    char text[80];
    for (int i = 0; i < n; i++) {
        snprintf(text, sizeof text, "%s/%s%d", name, what, i);
        verify_put(s, text, t[i]);
    }
}

void verify_put_all(verify_sink *s, const char *name, trn_tensor *y, int n,
                    trn_tensor *const *inputs, bool second)
{
    trn_tensor *g[3] = {NULL}, *gg[3] = {NULL}, *seed = NULL;
    int64_t shape[TRN_MAX_RANK];
    verify_put(s, name, y);
    if (y == NULL || n == 0)
        return;
    for (int d = 0; d < trn_tensor_rank(y); d++)
        shape[d] = trn_tensor_dim(y, d);
    seed = draw(s, trn_tensor_rank(y), shape, 1.0);
    trn_grad_options o = TRN_GRAD_INIT;
    o.retain_graph = true; /* a row's input may be another one's result */
    o.create_graph = second;
    o.zeros = true;
    if (trn_grad(1, &y, n, inputs, &seed, &o, g) != TRN_OK)
        return;
    put_each(s, name, "g", n, g);
    if (!second)
        return;
    trn_tensor *root = sum_of_squares(n, g);
    o.create_graph = false;
    if (trn_grad(1, &root, n, inputs, NULL, &o, gg) == TRN_OK)
        put_each(s, name, "gg", n, gg);
}

/* ---- inputs ---- */

trn_tensor *verify_uniform(verify_sink *s, int rank, const int64_t *shape,
                           double scale)
{
    trn_tensor *x = draw(s, rank, shape, scale);
    trn_set_requires_grad(x, true);
    return x;
}

trn_tensor *verify_positive(verify_sink *s, int rank, const int64_t *shape,
                            double scale, double floor)
{
    trn_tensor *x = draw(s, rank, shape, scale);
    x = trn_add_scalar(trn_maximum(x, trn_neg(x)), floor);
    trn_set_requires_grad(x, true);
    return x;
}

trn_tensor *verify_indices(verify_sink *s, int rank, const int64_t *shape,
                           int limit)
{
    trn_tensor *u = trn_uniform(s->g, TRN_F32, rank, shape);
    return trn_cast(trn_mul_scalar(u, limit), TRN_I32);
}

/* ---- all rows ---- */

trn_status verify_rows(trn_context *c, trn_dtype dtype, verify_row_fn each,
                       void *user, char out[VERIFY_DIGEST])
{
    static void (*const families[])(verify_sink *) = {
        verify_rows_elementwise, verify_rows_shape,     verify_rows_reduce,
        verify_rows_matmul,      verify_rows_index,     verify_rows_random,
        verify_rows_composite,   verify_rows_update,    verify_rows_losses,
        verify_rows_moves,       verify_rows_functions,
    };
    verify_sink s = {
        .c = c,
        .g = trn_generator_new(c, 1000),
        .dtype = dtype,
        .each = each,
        .user = user,
    };
    const size_t n = sizeof families / sizeof families[0];
    trn_status status = trn_nn_set_dtype(c, dtype);
    for (size_t i = 0; status == TRN_OK && i < n; i++) {
        trn_step_begin(c);
        families[i](&s);
        status = trn_step_end(c);
        if (status == TRN_OK && !hash_rows(&s))
            status = trn_errcode(c) == TRN_OK ? TRN_ERR_NOMEM : trn_errcode(c);
    }
    trn_sha256(s.text, s.n_text, out);
    free(s.text);
    free(s.rows);
    return status;
}
