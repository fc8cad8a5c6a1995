/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of checkpoints share: a folder of their own, files as bytes,
 * and a checkpoint of the model that tests train.
 */
#ifndef TRN_TESTS_CHECKPOINT_HELP_H
#define TRN_TESTS_CHECKPOINT_HELP_H

#include "captured.h"

/* A new empty folder for this program, removed at its end with all in it. */
const char *checkpoint_folder(void);
/* A path in it; each of the last eight stays valid. */
const char *checkpoint_path(const char *name);
/* The number of files in a folder, hidden ones too; in that folder. */
int checkpoint_count(const char *path);
int checkpoint_files(void);

/* A whole file, to be freed; NULL if there is none. */
char *checkpoint_bytes(const char *path, size_t *n);
void checkpoint_put(const char *path, const void *bytes, size_t n);

/* A checkpoint of all that there is of a model. */
trn_checkpoint *checkpoint_of(captured_net *m);

/* True where this build has HDF5; else says that the test is skipped. */
bool checkpoint_possible(void);
/* The only test of a program that needs it, where there is none. */
void checkpoint_skips(void **state);

#endif
