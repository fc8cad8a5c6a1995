/* SPDX-License-Identifier: Apache-2.0
 *
 * System calls that fail as planned; see file_faults.h.
 */
#include <errno.h>

#include "file_faults.h"

fault_plan fault;
fault_record fault_calls_made;

const char *const fault_names[N_CALLS] = {
    "open",  "close",  "pread", "pwrite", "ftruncate", "fsync",
    "fstat", "fchmod", "lock",  "rename", "unlink",
};

static bool fails(fault_kind kind)
{
    if (fault.interrupts && kind != CALL_CLOSE && kind != CALL_RENAME &&
        kind != CALL_UNLINK && kind != CALL_FSTAT && kind != CALL_FCHMOD &&
        kind != CALL_LOCK) {
        fault.odd = !fault.odd;
        if (fault.odd) {
            errno = EINTR;
            return true;
        }
    }
    if (kind != fault.kind || fault.at == 0)
        return false;
    fault.n++;
    if (fault.n != fault.at && !(fault.ever && fault.n > fault.at))
        return false;
    errno = fault.error;
    return true;
}

static void note_file(fault_kind kind, const struct stat *s)
{
    fault_record *r = &fault_calls_made;
    if (r->on && r->n < MOST_CALLS)
        r->call[r->n] = (fault_call){kind, s->st_dev, s->st_ino};
    r->n += r->on;
}

static void note(fault_kind kind, int fd)
{
    struct stat s = {0};
    fstat(fd, &s);
    note_file(kind, &s);
}

static void note_name(fault_kind kind, const char *path)
{
    struct stat s = {0};
    lstat(path, &s);
    note_file(kind, &s);
}

static size_t piece_of(size_t n)
{
    return fault.piece > 0 && n > fault.piece ? fault.piece : n;
}

static int bad_open(const char *path, int flags, unsigned mode)
{
    return fails(CALL_OPEN) ? -1 : trn__system_calls.open(path, flags, mode);
}

/* It is closed all the same, as Linux does. */
static int bad_close(int fd)
{
    int result = trn__system_calls.close(fd);
    return fails(CALL_CLOSE) ? -1 : result;
}

static ssize_t bad_pread(int fd, void *data, size_t n, int64_t at)
{
    return fails(CALL_PREAD)
               ? -1
               : trn__system_calls.pread(fd, data, piece_of(n), at);
}

static ssize_t bad_pwrite(int fd, const void *data, size_t n, int64_t at)
{
    note(CALL_PWRITE, fd);
    return fails(CALL_PWRITE)
               ? -1
               : trn__system_calls.pwrite(fd, data, piece_of(n), at);
}

static int bad_ftruncate(int fd, int64_t size)
{
    note(CALL_FTRUNCATE, fd);
    return fails(CALL_FTRUNCATE) ? -1 : trn__system_calls.ftruncate(fd, size);
}

static int bad_fsync(int fd)
{
    note(CALL_FSYNC, fd);
    return fails(CALL_FSYNC) ? -1 : trn__system_calls.fsync(fd);
}

static int bad_fstat(int fd, struct stat *out)
{
    return fails(CALL_FSTAT) ? -1 : trn__system_calls.fstat(fd, out);
}

static int bad_fchmod(int fd, unsigned mode)
{
    return fails(CALL_FCHMOD) ? -1 : trn__system_calls.fchmod(fd, mode);
}

static int bad_lock(int fd)
{
    return fails(CALL_LOCK) ? -1 : trn__system_calls.lock(fd);
}

static int bad_rename(const char *from, const char *to)
{
    note_name(CALL_RENAME, from);
    return fails(CALL_RENAME) ? -1 : trn__system_calls.rename(from, to);
}

static int bad_unlink(const char *path)
{
    return fails(CALL_UNLINK) ? -1 : trn__system_calls.unlink(path);
}

const trn__file_calls fault_calls = {
    .open = bad_open,
    .close = bad_close,
    .pread = bad_pread,
    .pwrite = bad_pwrite,
    .ftruncate = bad_ftruncate,
    .fsync = bad_fsync,
    .fstat = bad_fstat,
    .fchmod = bad_fchmod,
    .lock = bad_lock,
    .rename = bad_rename,
    .unlink = bad_unlink,
};
