/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads IDX files, the format of MNIST and its kin, plain or packed by gzip.
 *
 * An IDX file is 00 00, a type code, the rank, the dimensions as big-endian
 * 32-bit counts, then the elements in row-major order, big-endian.  No count of
 * a file is believed before the file has shown the bytes for it.
 */
#ifndef TRN_DATA_IDX_H
#define TRN_DATA_IDX_H

#include "trn/types.h"

typedef struct trn__alloc_hooks {
    void *(*alloc)(void *user, size_t bytes);
    void (*dealloc)(void *user, void *p);
    void *user;
} trn__alloc_hooks;

typedef struct trn__idx {
    trn_dtype dtype;
    int rank;
    int64_t dims[8];
    void *data;   /* native byte order; NULL when a dimension is 0 */
    size_t bytes; /* of data */
} trn__idx;

/*
 * Reads the whole file into memory.  u8, i32, f32 and f64 are kept, i8 and i16
 * become i32.  Whether a file is packed is seen from its content, not its name.
 *
 * On success out->data is the caller's, to be given to mem->dealloc.  On
 * failure nothing is left allocated, *out is all zero, and message (NULL is
 * allowed) holds path, byte offset, what was found and what was expected:
 * ERR_ARG (no path), ERR_IO (cannot be opened or read), ERR_FORMAT (content),
 * ERR_UNSUPPORTED (packed, and no zlib in this build) or ERR_NOMEM.
 */
trn_status trn__idx_load(const char *path, const trn__alloc_hooks *mem,
                         trn__idx *out, char *message, size_t message_size);

#endif
