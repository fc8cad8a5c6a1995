/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 piece by piece: begin, add any number of times, end.
 */
#ifndef TRN_DATA_SHA256_H
#define TRN_DATA_SHA256_H

#include "trn/types.h"

typedef struct trn__sha256 {
    uint32_t state[8];
    uint64_t n;        /* bytes added so far */
    uint8_t block[64]; /* the first n % 64 of them wait here */
} trn__sha256;

void trn__sha256_begin(trn__sha256 *s);
void trn__sha256_add(trn__sha256 *s, const void *data, size_t n);
/* The digest as 64 hexadecimal digits and a 0; s must begin anew after it. */
void trn__sha256_end(trn__sha256 *s, char out[65]);

#endif
