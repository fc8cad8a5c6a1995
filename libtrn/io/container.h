/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of a checkpoint: items in an HDF5 file behind an index of our own.
 * What lies behind these functions knows items, not objects.
 */
#ifndef TRN_LIBTRN_CONTAINER_H
#define TRN_LIBTRN_CONTAINER_H

#include "libtrn/io/checkpoint.h"
#include "trn/step.h"

/* Replaces the file `path` by one with all items of l.  Raises. */
trn_status trn__container_write(trn__items *l, const trn__file_calls *calls,
                                const char *path);

/* Checks the whole file, compares its items with those of l, and reads all of
 * them: numbers to `value`, tensors to `stage`, texts (with their 0) to
 * `stage`. What lies below TRN__NOTES goes to texts as new items with `text`.
 * part: the file may have more than l.  Raises. */
trn_status trn__container_read(trn__items *l, trn__items *texts, bool part,
                               const trn__file_calls *calls, const char *path);

/* Checks the file and prints a line for each item.  Raises. */
trn_status trn__container_print(trn_context *c, const trn__file_calls *calls,
                                const char *path, trn_put_fn put, void *user);

#endif
