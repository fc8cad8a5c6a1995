/* SPDX-License-Identifier: Apache-2.0
 *
 * An HDF5 file over a file of ours: the library's lock, its silence, and a file
 * driver that does what we do with files.
 */
#ifndef TRN_LIBTRN_H5_FILE_H
#define TRN_LIBTRN_H5_FILE_H

#include <hdf5.h>
#if H5_VERSION_GE(1, 14, 0)
#include <H5FDdevelop.h>
#endif

#include "libtrn/io/index.h"

/* What HDF5 holds as the open file. */
typedef struct trn__h5_handle {
    H5FD_t pub; /* first */
    struct trn__h5 *h5;
} trn__h5_handle;

/*
 * Invariant: between trn__h5_begin and trn__h5_end the lock of HDF5 is ours and
 * the host's setting for error printing is put aside.
 */
typedef struct trn__h5 {
    trn__file *f;
    uint64_t end;       /* of the file as far as it is written */
    uint64_t claimed;   /* of what HDF5 has given out, may be beyond `end` */
    hid_t driver, file; /* < 0: none */
    trn__h5_handle handle;
    struct {
        unsigned is_v2;
        H5E_auto2_t print2;
        void *data;
#ifndef H5_NO_DEPRECATED_SYMBOLS
        H5E_auto1_t print1;
#endif
    } host;
} trn__h5;

/* Raises TRN_ERR_UNSUPPORTED where the library in this process is not of the
 * version of the headers; to be called before anything else here. */
trn_status trn__h5_check(trn_context *c, const trn__file_calls *calls,
                         const char *path);
void trn__h5_begin(trn__h5 *h, trn__file *f);
/* Makes the file's HDF5 part, which begins at byte `room`; false: it failed. */
bool trn__h5_create(trn__h5 *h, uint64_t room);
/* Closes the HDF5 part; false if that failed.  Nothing of it stays open. */
bool trn__h5_close(trn__h5 *h);
void trn__h5_end(trn__h5 *h);

/* Gives back an id of any kind; a negative one is allowed. */
void trn__h5_drop(hid_t id);

/* The type of an item in the file, and in our memory; text: with `bytes` bytes,
 * its 0 included. */
hid_t trn__h5_type(uint32_t type, uint64_t bytes, bool in_memory);
/* The name that the attribute "dtype" gives to what HDF5 has no type for:
 * "bf16", "bool"; else NULL. */
const char *trn__h5_type_name(uint32_t type);

#endif
