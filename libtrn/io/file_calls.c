/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole reads and writes over system calls that may be interrupted or do a part
 * of what they were asked for.
 *
 * Reasons have words of our own: those of strerror() follow the locale.
 */
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#include "libtrn/io/file_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int call_open(const char *path, int flags, unsigned mode)
{
    return open(path, flags, (mode_t)mode);
}

static ssize_t call_pread(int fd, void *data, size_t n, int64_t at)
{
    return pread(fd, data, n, (off_t)at);
}

static ssize_t call_pwrite(int fd, const void *data, size_t n, int64_t at)
{
    return pwrite(fd, data, n, (off_t)at);
}

static int call_ftruncate(int fd, int64_t size)
{
    return ftruncate(fd, (off_t)size);
}

static int call_fstat(int fd, struct stat *out)
{
    return fstat(fd, out);
}

static int call_fchmod(int fd, unsigned mode)
{
    return fchmod(fd, (mode_t)mode);
}

static int call_lock(int fd)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_SETLK, &all);
}

const trn__file_calls trn__system_calls = {
    .open = call_open,
    .close = close,
    .pread = call_pread,
    .pwrite = call_pwrite,
    .ftruncate = call_ftruncate,
    .fsync = fsync,
    .fstat = call_fstat,
    .fchmod = call_fchmod,
    .lock = call_lock,
    .rename = rename,
    .unlink = unlink,
};

/* ---- reasons ---- */

static const char *reason(int error, char *text, size_t size)
{
    static const struct {
        int error;
        const char *text;
    } reasons[] = {
        {TRN__FILE_ENDS, "the file ends before"},
        {EACCES, "permission denied"},
        {EPERM, "operation not permitted"},
        {ENOENT, "no such file or folder"},
        {ENOTDIR, "a part of the path is no folder"},
        {EISDIR, "it is a folder"},
        {EEXIST, "it exists"},
        {ENOSPC, "no space left on the device"},
        {EDQUOT, "the disk quota is used up"},
        {EFBIG, "the file would be too large"},
        {EIO, "input or output error"},
        {EROFS, "the file system is read-only"},
        {EMFILE, "too many open files in the process"},
        {ENFILE, "too many open files in the system"},
        {ENAMETOOLONG, "the name is too long"},
        {ELOOP, "too many links"},
        {EBUSY, "it is busy"},
        {ETXTBSY, "it is busy"},
        {EAGAIN, "another process is saving there"},
        {ENOMEM, "out of memory"},
        {EINVAL, "invalid argument"},
        {EXDEV, "it lies on another file system"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        if (reasons[i].error == error)
            return reasons[i].text;
    }
    snprintf(text, size, "error %d of the system", error);
    return text;
}

trn_status trn__path_fail(trn_context *c, const char *path, const char *deed,
                          int error)
{
    char text[40];
    return trn__fail(c, TRN_ERR_IO, "%.600s: cannot %s: %s", path, deed,
                     reason(error, text, sizeof text));
}

trn_status trn__file_raise(trn__file *f)
{
    char text[40];
    return trn__fail(f->c, TRN_ERR_IO, "%.600s: cannot %s at byte %llu: %s",
                     f->path, f->deed, (unsigned long long)f->at,
                     reason(f->error, text, sizeof text));
}

bool trn__file_failed(trn__file *f, const char *deed, uint64_t at)
{
    if (f->error == 0) {
        f->error = errno == 0 ? EIO : errno;
        f->deed = deed;
        f->at = at;
    }
    return false;
}

/* ---- whole reads and writes ---- */

/* Large pieces are asked for in parts: some systems take at most 2 GiB. */
static size_t part_of(size_t n)
{
    const size_t most = (size_t)1 << 30;
    return n > most ? most : n;
}

bool trn__file_read(trn__file *f, uint64_t at, void *data, size_t n)
{
    char *to = data;
    while (n > 0) {
        ssize_t got = f->calls->pread(f->fd, to, part_of(n), (int64_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            errno = TRN__FILE_ENDS;
        if (got <= 0)
            return trn__file_failed(f, "be read", at);
        to += got;
        at += (uint64_t)got;
        n -= (size_t)got;
    }
    return true;
}

bool trn__file_write(trn__file *f, uint64_t at, const void *data, size_t n)
{
    const char *from = data;
    while (n > 0) {
        ssize_t put = f->calls->pwrite(f->fd, from, part_of(n), (int64_t)at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put == 0)
            errno = EIO; /* no progress and no reason: do not turn in a ring */
        if (put <= 0)
            return trn__file_failed(f, "be written", at);
        from += put;
        at += (uint64_t)put;
        n -= (size_t)put;
    }
    return true;
}

bool trn__file_resize(trn__file *f, uint64_t size)
{
    int bad;
    do
        bad = f->calls->ftruncate(f->fd, (int64_t)size);
    while (bad != 0 && errno == EINTR);
    return bad == 0 || trn__file_failed(f, "be resized", size);
}

bool trn__file_sync(trn__file *f)
{
    int bad;
    do
        bad = f->calls->fsync(f->fd);
    while (bad != 0 && errno == EINTR);
    return bad == 0 || trn__file_failed(f, "be brought to the disk", 0);
}

/* ---- opening ---- */

trn_status trn__file_open(trn__file *f, uint64_t *size)
{
    struct stat s;
    do /* O_NONBLOCK: a pipe must not make us wait for its other end */
        f->fd = f->calls->open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    while (f->fd < 0 && errno == EINTR);
    if (f->fd < 0)
        return trn__path_fail(f->c, f->path, "be opened", errno);
    if (f->calls->fstat(f->fd, &s) != 0)
        return trn__path_fail(f->c, f->path, "be looked at", errno);
    if (!S_ISREG(s.st_mode))
        return trn__fail(f->c, TRN_ERR_IO, "%.600s: found %s; expected a file",
                         f->path,
                         S_ISDIR(s.st_mode) ? "a folder" : "a device or pipe");
    *size = (uint64_t)s.st_size;
    return TRN_OK;
}

void trn__file_close(trn__file *f)
{
    if (f->fd >= 0)
        f->calls->close(f->fd);
    f->fd = -1;
}
