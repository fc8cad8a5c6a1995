/* SPDX-License-Identifier: Apache-2.0
 *
 * A temporary file in the folder of its target, and the change of names.
 *
 * The name of the temporary file follows from that of its target, so that one
 * which a killed process left is used again and never more than one is left
 * over.  A lock, which ends with its process, tells a file that is left over
 * from one that another process is writing.
 */
#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700 /* realpath */
#endif
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#include "libtrn/io/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libtrn/ops/randoms.h"

/* The file that a path leads to, and the mode of the file that is there. */
static trn_status resolve(trn__replace *r, const char *path)
{
    trn_context *c = r->file.c;
    struct stat s;
    r->mode = -1;
    if (strlen(path) >= sizeof r->target)
        return trn__path_fail(c, path, "be saved", ENAMETOOLONG);
    if (lstat(path, &s) != 0) {
        if (errno != ENOENT)
            return trn__path_fail(c, path, "be saved", errno);
        memcpy(r->target, path, strlen(path) + 1);
        return TRN_OK;
    }
    if (realpath(path, r->target) == NULL || stat(r->target, &s) != 0)
        return trn__path_fail(c, path, "be saved", errno);
    if (!S_ISREG(s.st_mode))
        return trn__fail(c, TRN_ERR_IO,
                         "%.600s: found %s; expected a file, or nothing", path,
                         S_ISDIR(s.st_mode) ? "a folder" : "a device or pipe");
    r->mode = (int)(s.st_mode & 07777u);
    return TRN_OK;
}

/* ".run.h5.0123456789abcdef.saving": the start of the name for the eye, and a
 * hash of all of it. */
static trn_status make_names(trn__replace *r)
{
    const char *slash = strrchr(r->target, '/');
    const char *name = slash == NULL ? r->target : slash + 1;
    size_t n = (size_t)(name - r->target);
    if (name[0] == '\0')
        return trn__path_fail(r->file.c, r->file.path, "be saved", EISDIR);
    memcpy(r->folder, r->target, n);
    memcpy(r->folder + n, ".", 2); /* "folder/." is the folder, "." as well */
    int used = snprintf(r->temporary, sizeof r->temporary,
                        "%.*s.%.100s.%016llx.saving", (int)n, r->target, name,
                        (unsigned long long)trn__hash_text(name));
    if (used < 0 || (size_t)used >= sizeof r->temporary || n + 2 > PATH_MAX)
        return trn__path_fail(r->file.c, r->file.path, "be saved",
                              ENAMETOOLONG);
    return TRN_OK;
}

static trn_status open_folder(trn__replace *r)
{
    trn__file *f = &r->file;
    do
        r->folder_fd =
            f->calls->open(r->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    while (r->folder_fd < 0 && errno == EINTR);
    if (r->folder_fd < 0)
        return trn__path_fail(f->c, f->path,
                              "be saved, since its folder cannot be opened",
                              errno);
    return TRN_OK;
}

/* Is what we have locked still what the name stands for?  Its last writer may
 * have given it the target's name in between. */
static trn_status check_temporary(trn__replace *r, bool *again)
{
    trn__file *f = &r->file;
    struct stat mine, named;
    if (f->calls->fstat(f->fd, &mine) != 0) {
        r->there = true; /* locked by us: nobody else is writing it */
        return trn__path_fail(f->c, r->temporary, "be looked at", errno);
    }
    *again = lstat(r->temporary, &named) != 0 || mine.st_ino != named.st_ino ||
             mine.st_dev != named.st_dev;
    if (*again)
        return TRN_OK;
    if (!S_ISREG(mine.st_mode) || mine.st_nlink != 1 ||
        mine.st_uid != geteuid())
        return trn__fail(f->c, TRN_ERR_IO,
                         "%.600s: found something that is not a temporary file "
                         "of this user; expected to make one",
                         r->temporary);
    return TRN_OK;
}

static void open_as(trn__replace *r, int flags)
{
    trn__file *f = &r->file;
    flags |= O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    do
        f->fd = f->calls->open(r->temporary, flags, 0666);
    while (f->fd < 0 && errno == EINTR);
}

/* One that is left over is taken away, and the next try makes one: its mode was
 * for another file. */
static trn_status open_temporary(trn__replace *r, bool *again)
{
    trn__file *f = &r->file;
    open_as(r, O_CREAT | O_EXCL);
    const bool old = f->fd < 0 && errno == EEXIST;
    if (old)
        open_as(r, 0);
    *again = old && f->fd < 0 && errno == ENOENT;
    if (*again)
        return TRN_OK;
    if (f->fd < 0)
        return trn__path_fail(f->c, r->temporary, "be made", errno);
    /* A file system without locks has none; the rest holds all the same. */
    if (f->calls->lock(f->fd) != 0 && (errno == EACCES || errno == EAGAIN))
        return trn__path_fail(f->c, f->path, "be saved", EAGAIN);
    TRN_TRY(check_temporary(r, again));
    if (!old || *again)
        return TRN_OK;
    *again = true;
    if (f->calls->unlink(r->temporary) != 0 && errno != ENOENT)
        return trn__path_fail(f->c, r->temporary, "be taken away", errno);
    return TRN_OK;
}

/* The old file's mode; while it is being written, one that lets a later save
 * open what a killed process leaves. */
static trn_status set_mode(trn__replace *r, unsigned more)
{
    trn__file *f = &r->file;
    if (r->mode < 0 || f->calls->fchmod(f->fd, (unsigned)r->mode | more) == 0)
        return TRN_OK;
    return trn__path_fail(f->c, r->temporary, "get the old file's mode", errno);
}

trn_status trn__replace_begin(trn__replace *r, trn_context *c,
                              const trn__file_calls *calls, const char *path)
{
    bool again = true;
    r->file = (trn__file){.c = c, .calls = calls, .path = path, .fd = -1};
    r->folder_fd = -1;
    r->there = false;
    TRN_TRY(resolve(r, path));
    TRN_TRY(make_names(r));
    TRN_TRY(open_folder(r));
    for (int tries = 0; again && tries < 100; tries++) {
        trn__file_close(&r->file);
        TRN_TRY(open_temporary(r, &again));
    }
    if (again)
        return trn__path_fail(c, path, "be saved", EAGAIN);
    r->there = true;
    TRN_TRY(set_mode(r, 0600));
    if (!trn__file_resize(&r->file, 0))
        return trn__file_raise(&r->file);
    return TRN_OK;
}

static bool sync_folder(trn__replace *r)
{
    trn__file folder = r->file;
    folder.fd = r->folder_fd;
    return trn__file_sync(&folder);
}

trn_status trn__replace_commit(trn__replace *r)
{
    trn__file *f = &r->file;
    TRN_TRY(set_mode(r, 0));
    /* A folder that cannot be brought to the disk is found out before. */
    if (!trn__file_sync(f))
        return trn__file_raise(f);
    if (!sync_folder(r))
        return trn__path_fail(f->c, r->folder, "be brought to the disk", errno);
    if (f->calls->rename(r->temporary, r->target) != 0)
        return trn__path_fail(f->c, f->path, "be replaced", errno);
    r->there = false;
    if (!sync_folder(r))
        return trn__path_fail(
            f->c, f->path,
            "be sure to survive a loss of power, though it is "
            "replaced: its folder cannot be brought to the "
            "disk",
            errno);
    return TRN_OK;
}

void trn__replace_end(trn__replace *r)
{
    if (r->there)
        r->file.calls->unlink(r->temporary);
    r->there = false;
    /* What a close could report, fsync has reported. */
    trn__file_close(&r->file);
    if (r->folder_fd >= 0)
        r->file.calls->close(r->folder_fd);
    r->folder_fd = -1;
}
