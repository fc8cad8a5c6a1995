/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a data file, piece by piece, unpacked when it is a gzip file.
 *
 * The invariant: piece[begin, fill) is the content that has arrived and was not
 * used, and `position` is the place of piece[begin] in the content.  The first
 * failure writes the message.
 */
#ifndef TRN_DATA_IDX_SOURCE_H
#define TRN_DATA_IDX_SOURCE_H

#include "libtrn/data/idx.h"

#ifdef TRN_HAVE_ZLIB
#include <zlib.h>
#endif

#define TRN__PIECE 65536

typedef struct trn__source {
    const char *path;
    const trn__alloc_hooks *mem;
    char *message;
    size_t message_size;
    int fd;
    int64_t file_size; /* -1 when it is not a regular file */
    int64_t raw_read;  /* bytes of the file read so far */
    bool packed;
    size_t begin, fill; /* piece[begin, fill) has not been used */
    int64_t position;   /* of piece[begin] in the content */
#ifdef TRN_HAVE_ZLIB
    z_stream z;
    bool z_open;
    bool member_done;
#endif
    unsigned char piece[TRN__PIECE];
    unsigned char raw[TRN__PIECE];
} trn__source;

/* Opens s->path and reads the first piece. */
trn_status trn__source_open(trn__source *s);

/* Allowed after a failed open too. */
void trn__source_close(trn__source *s);

/*
 * Moves what is left to the front and fills the piece as far as possible; no
 * more than before means that the content has ended, and a gzip checksum fits.
 */
trn_status trn__source_refill(trn__source *s);

/*
 * Writes "path: byte <at>: " and the formatted text to the message, without the
 * byte when `at` is negative, and returns `status`.
 */
TRN_PRINTF(4, 5)
trn_status trn__source_fail(trn__source *s, trn_status status, int64_t at,
                            const char *fmt, ...);

#endif
