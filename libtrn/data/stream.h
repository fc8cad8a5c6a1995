/* SPDX-License-Identifier: Apache-2.0
 *
 * Files as streams of bytes, read without the C library's buffers, which would
 * take memory beside our hooks.
 *
 * A signal whose handler runs meanwhile disturbs neither.
 */
#ifndef TRN_DATA_STREAM_H
#define TRN_DATA_STREAM_H

#include <stddef.h>

/* Opens for reading; a descriptor that a child of exec does not get, or -1 with
 * errno. */
int trn__stream_open(const char *path);

/* Fills `to` as far as the file goes and says how far.  0, or errno: then *got
 * bytes were read before. */
int trn__stream_read(int fd, void *to, size_t size, size_t *got);

#endif
