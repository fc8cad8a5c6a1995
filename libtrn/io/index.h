/* SPDX-License-Identifier: Apache-2.0
 *
 * The index of a checkpoint: lines of text before the HDF5 part of the file
 * that say where each dataset lies and what its bytes hash to.
 */
#ifndef TRN_LIBTRN_INDEX_H
#define TRN_LIBTRN_INDEX_H

#include "libtrn/data/sha256.h"
#include "libtrn/io/checkpoint.h"

#define TRN__INDEX_MAGIC "libtrn checkpoint "
#define TRN__INDEX_FORMAT 1
#define TRN__INDEX_PIECE 65536 /* bytes that are hashed at a time */
/* HDF5 looks for its part at 0, 512, 1024, 2048, ... */
#define TRN__INDEX_LEAST 512
#define TRN__INDEX_MOST ((uint64_t)1 << 26)

/* Bytes to leave for the index of l's items; 0 with the error raised. */
uint64_t trn__index_room(const trn__items *l);

/* Writes the index of l, whose items have offset, bytes and SHA-256, to the
 * file, whose other bytes are final.  Raises nothing: false with the reason
 * kept in f, or the error pending. */
bool trn__index_write(trn__file *f, trn__items *l, uint64_t room,
                      uint64_t size);

/* Adds bytes [from, to) of a file; piece: room for TRN__INDEX_PIECE bytes.
 * False with the reason kept in f. */
bool trn__file_hash(trn__file *f, trn__sha256 *sha, char *piece, uint64_t from,
                    uint64_t to);

/* The bytes of a file that are neither index nor dataset: what is HDF5's own.
 */
typedef struct trn__gap {
    uint64_t from, to, place; /* bytes[place] is that at `from` */
} trn__gap;

typedef struct trn__gaps {
    trn__gap *at; /* in the order of the file */
    int64_t n;
    char *bytes;
    uint64_t n_bytes;
} trn__gaps;

/* The first gap that ends behind `at`; NULL: none. */
const trn__gap *trn__gaps_find(const trn__gaps *g, uint64_t at);
void trn__gaps_free(trn_context *c, trn__gaps *g);

/* Reads the index and checks it and all other bytes of the file.  The items get
 * path, offset, bytes, SHA-256, in the order of their places.  Gives the size
 * of the index and the gaps, to be freed also after an error.  Raises. */
trn_status trn__index_check(trn__file *f, uint64_t size, trn__items *out,
                            uint64_t *room, trn__gaps *gaps);

#endif
