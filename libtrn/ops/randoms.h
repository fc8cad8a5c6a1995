/* SPDX-License-Identifier: Apache-2.0
 *
 * Generators: a key, and a counter of draws that follows the steps' success.
 */
#ifndef TRN_LIBTRN_RANDOMS_H
#define TRN_LIBTRN_RANDOMS_H

#include "libtrn/context/context.h"
#include "trn/random.h"

struct trn_generator {
    trn__owned owned; /* first */
    trn_context *c;
    uint64_t key, stream;
    trn__counter draws;
};

typedef struct trn__randoms {
    trn_generator *default_generator;
} trn__randoms;

extern const trn__layer trn__randoms_layer;

/* 64-bit FNV-1a: streams from names. */
uint64_t trn__hash_text(const char *text);

/* perm[0 .. n-1]: a permutation by Fisher-Yates from one draw of g's stream,
 * numbered `draw`; no counter moves. */
void trn__permutation(const trn_generator *g, uint64_t draw, int64_t n,
                      int64_t *perm);

#endif
