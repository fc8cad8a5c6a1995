/* SPDX-License-Identifier: Apache-2.0
 *
 * What the instructions of random programs share.
 */
#ifndef TRN_TESTS_RANDOM_PARTS_H
#define TRN_TESTS_RANDOM_PARTS_H

#include "random_program.h"

typedef bool (*random_fits)(const trn_tensor *t, const void *user);

/* The nearest tensor at or below a code that fits; NULL: none. */
trn_tensor *random_find(random_world *w, uint8_t code, random_fits fits,
                        const void *user);
bool random_is_float(const trn_tensor *t, const void *user);
bool random_is_float2(const trn_tensor *t, const void *user); /* rank >= 2 */
bool random_is_small(const trn_tensor *t);                    /* may grow */
bool random_is_small_float(const trn_tensor *t, const void *user);
bool random_is_bool(const trn_tensor *t, const void *user);
bool random_is_any(const trn_tensor *t, const void *user);
/* user: a tensor that t broadcasts with, into its shape or together. */
bool random_goes_into(const trn_tensor *t, const void *user);
bool random_broadcasts(const trn_tensor *t, const void *user);
void random_shape(const trn_tensor *t, int64_t *shape);
/* Host data: of small numbers, or of indices below limit. */
trn_tensor *random_data(random_world *w, trn_dtype dtype, int rank,
                        const int64_t *shape, int64_t limit);
double random_value(const random_world *w, const random_instr *in);
trn_tensor *random_one_plus_square(trn_tensor *x);

#define X(name, often) \
    trn_tensor *random_do_##name(random_world *w, const random_instr *in);
RANDOM_OPS(X)
#undef X

#endif
