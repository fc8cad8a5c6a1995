/* SPDX-License-Identifier: Apache-2.0
 *
 * Replacing a file as a whole: its new content is written beside it and takes
 * its name when it has reached the disk.  Until then the old file stays as it
 * is, whatever happens.
 */
#ifndef TRN_LIBTRN_REPLACE_H
#define TRN_LIBTRN_REPLACE_H

#include <limits.h>

#include "libtrn/io/file_calls.h"

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

typedef struct trn__replace {
    trn__file file;           /* the new content, for reading and writing */
    int folder_fd;            /* -1: not open */
    int mode;                 /* of the old file; -1: there is none */
    bool there;               /* the temporary file is ours to remove */
    char target[PATH_MAX];    /* without links */
    char folder[PATH_MAX];    /* of the target */
    char temporary[PATH_MAX]; /* in that folder */
} trn__replace;

/* Opens an empty temporary file; raises TRN_ERR_IO. */
trn_status trn__replace_begin(trn__replace *r, trn_context *c,
                              const trn__file_calls *calls, const char *path);
/* Brings it to the disk and gives it the target's name. */
trn_status trn__replace_commit(trn__replace *r);
/* Removes what was not committed and closes; allowed after a failed begin. */
void trn__replace_end(trn__replace *r);

#endif
