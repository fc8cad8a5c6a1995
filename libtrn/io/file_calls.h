/* SPDX-License-Identifier: Apache-2.0
 *
 * Files as checkpoints use them: whole reads and writes at a place, and the
 * first failure kept.
 *
 * The system calls stand in a table, so that tests can make each of them fail.
 */
#ifndef TRN_LIBTRN_FILE_CALLS_H
#define TRN_LIBTRN_FILE_CALLS_H

#include <sys/stat.h>
#include <sys/types.h>

#include "libtrn/context/context.h"

/* Each as the POSIX function of that name; errno tells why one failed. */
typedef struct trn__file_calls {
    int (*open)(const char *path, int flags, unsigned mode);
    int (*close)(int fd);
    ssize_t (*pread)(int fd, void *data, size_t n, int64_t at);
    ssize_t (*pwrite)(int fd, const void *data, size_t n, int64_t at);
    int (*ftruncate)(int fd, int64_t size);
    int (*fsync)(int fd);
    int (*fstat)(int fd, struct stat *out);
    int (*fchmod)(int fd, unsigned mode);
    int (*lock)(int fd); /* for us alone, or EACCES or EAGAIN at once */
    int (*rename)(const char *from, const char *to);
    int (*unlink)(const char *path);
    /* The version of HDF5 in this process, < 0: failed; NULL: ask HDF5. */
    int (*hdf5_version)(unsigned *major, unsigned *minor, unsigned *release);
} trn__file_calls;

extern const trn__file_calls trn__system_calls;

typedef struct trn__file {
    trn_context *c;
    const trn__file_calls *calls;
    const char *path; /* for messages */
    int fd;           /* -1: none */
    int error;        /* errno of the first call that failed; 0: none did */
    const char *deed; /* what it was: "be written" */
    uint64_t at;      /* and where */
} trn__file;

/* Opens an existing file for reading; gives its size.  Raises TRN_ERR_IO, also
 * where it is no regular file. */
trn_status trn__file_open(trn__file *f, uint64_t *size);
/* Allowed after a failed open too. */
void trn__file_close(trn__file *f);

/* Everything or false, with the reason kept.  A file that ends before is
 * TRN__FILE_ENDS. */
#define TRN__FILE_ENDS (-1)
bool trn__file_read(trn__file *f, uint64_t at, void *data, size_t n);
bool trn__file_write(trn__file *f, uint64_t at, const void *data, size_t n);
bool trn__file_resize(trn__file *f, uint64_t size);
bool trn__file_sync(trn__file *f);
/* Keeps what has just failed (errno), unless something had before; false. */
bool trn__file_failed(trn__file *f, const char *deed, uint64_t at);

/* Raises TRN_ERR_IO with what was kept: "run.h5: cannot be written at byte
 * 4096: no space left on the device". */
trn_status trn__file_raise(trn__file *f);
/* The same for another path and an errno. */
trn_status trn__path_fail(trn_context *c, const char *path, const char *deed,
                          int error);

#endif
