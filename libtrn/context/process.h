/* SPDX-License-Identifier: Apache-2.0
 *
 * What belongs to the process and not to a context: the plug-ins it has loaded,
 * the lock of the HDF5 library.
 */
#ifndef TRN_LIBTRN_PROCESS_H
#define TRN_LIBTRN_PROCESS_H

#include <stddef.h>

#include "trn/backend.h"

/* A loaded plug-in; it stays until the process ends. */
typedef struct trn__plugin {
    const struct trn__plugin *next;
    char *path;        /* absolute */
    trn_backend table; /* its table; entries that it lacks are NULL */
    uint32_t unknown;  /* capability bits that mean nothing here */
} trn__plugin;

/* One thread at a time looks for a plug-in and loads what is missing. */
void trn__process_lock(void);
void trn__process_unlock(void);
/* With the lock held: the plug-in of that path, or NULL. */
const trn__plugin *trn__process_find(const char *path);
/* With the lock held: keeps a copy; NULL when out of memory. */
const trn__plugin *trn__process_add(const char *path, const trn_backend *table,
                                    uint32_t unknown);

/* One thread at a time is inside the HDF5 library for us. */
void trn__process_hdf5_lock(void);
void trn__process_hdf5_unlock(void);

/* From memory.c: memory that is never given back; NULL: there is none. */
void *trn__process_alloc(size_t bytes);

#endif
