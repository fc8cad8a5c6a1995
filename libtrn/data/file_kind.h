/* SPDX-License-Identifier: Apache-2.0
 *
 * What a file looks like, for messages about files of another kind.
 */
#ifndef TRN_DATA_FILE_KIND_H
#define TRN_DATA_FILE_KIND_H

#include "trn/types.h"

/* "gzip", "HDF5", "text", ... from the first n bytes of a file; NULL: nothing
 * that is known. */
const char *trn__file_kind(const unsigned char *b, size_t n);

#endif
