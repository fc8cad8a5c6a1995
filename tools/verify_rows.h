/* SPDX-License-Identifier: Apache-2.0
 *
 * The digest that rows are added to, shared by the files that run them.
 *
 * Errors stick to the context, so nothing here returns one.
 */
#ifndef TRN_TOOLS_VERIFY_ROWS_H
#define TRN_TOOLS_VERIFY_ROWS_H

#include "tools/verify.h"

/* A result of the open step, to be read when the step has ended. */
typedef struct verify_result_row {
    char name[80];
    trn_tensor *y;
} verify_result_row;

typedef struct verify_sink {
    trn_context *c;
    trn_generator *g; /* of all inputs */
    trn_dtype dtype;  /* of all float inputs */
    verify_row_fn each;
    void *user;
    verify_result_row *rows; /* of the open step */
    int n_rows, room_rows;
    char *text; /* "name digest\n" for each result */
    size_t n_text, room;
} verify_sink;

/* Adds the bits that y has at the end of the step, under a name. */
void verify_put(verify_sink *s, const char *name, trn_tensor *y);

/* Adds y, and the gradients of its product with a random seed with respect to
 * the n inputs; second: also those of the gradients' sum of squares. */
void verify_put_all(verify_sink *s, const char *name, trn_tensor *y, int n,
                    trn_tensor *const *inputs, bool second);

/* Leaves with gradient: x ~ U[-scale, scale), and floor + |x|. */
trn_tensor *verify_uniform(verify_sink *s, int rank, const int64_t *shape,
                           double scale);
trn_tensor *verify_positive(verify_sink *s, int rank, const int64_t *shape,
                            double scale, double floor);
/* i32 in [0, limit). */
trn_tensor *verify_indices(verify_sink *s, int rank, const int64_t *shape,
                           int limit);

/* The families of rows. */
void verify_rows_elementwise(verify_sink *s);
void verify_rows_shape(verify_sink *s);
void verify_rows_reduce(verify_sink *s);
void verify_rows_matmul(verify_sink *s);
void verify_rows_index(verify_sink *s);
void verify_rows_random(verify_sink *s);
void verify_rows_composite(verify_sink *s);
void verify_rows_update(verify_sink *s);
void verify_rows_losses(verify_sink *s);
void verify_rows_moves(verify_sink *s);
void verify_rows_functions(verify_sink *s); /* sin, cos, erf, ... */

#endif
