/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a data file, plain or unpacked by zlib.
 *
 * zlib is driven directly and not through its file functions: so its memory
 * comes from our hooks, several gzip members in one file are read, and what
 * follows the last one is noticed.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#include "libtrn/data/idx_source.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libtrn/data/stream.h"

trn_status trn__source_fail(trn__source *s, trn_status status, int64_t at,
                            const char *fmt, ...)
{
    va_list args;
    size_t used = 0;
    int n;
    if (s->message_size == 0)
        return status;
    if (at >= 0)
        n = snprintf(s->message, s->message_size, "%s: byte %lld%s: ", s->path,
                     (long long)at, s->packed ? " of the unpacked data" : "");
    else
        n = snprintf(s->message, s->message_size, "%s: ", s->path);
    if (n > 0)
        used = (size_t)n;
    if (used >= s->message_size)
        return status;
    va_start(args, fmt);
    vsnprintf(s->message + used, s->message_size - used, fmt, args);
    va_end(args);
    return status;
}

/* Fills `to` as far as the file goes. */
static trn_status read_raw(trn__source *s, unsigned char *to, size_t size,
                           size_t *got)
{
    const int error = trn__stream_read(s->fd, to, size, got);
    s->raw_read += (int64_t)*got;
    if (error != 0)
        return trn__source_fail(s, TRN_ERR_IO, -1,
                                "byte %lld: cannot be read: %s",
                                (long long)s->raw_read, strerror(error));
    return TRN_OK;
}

#ifdef TRN_HAVE_ZLIB

static void *z_alloc(void *user, unsigned items, unsigned size)
{
    const trn__alloc_hooks *mem = user;
    size_t bytes = (size_t)items * size;
    if (size != 0 && bytes / size != items)
        return NULL;
    return mem->alloc(mem->user, bytes);
}

static void z_dealloc(void *user, void *p)
{
    const trn__alloc_hooks *mem = user;
    mem->dealloc(mem->user, p);
}

/* An error in the gzip wrapping: the offset counts bytes of the file itself. */
static trn_status fail_packed(trn__source *s, const char *text)
{
    return trn__source_fail(s, TRN_ERR_FORMAT, -1, "byte %lld: %s",
                            (long long)(s->raw_read - (int64_t)s->z.avail_in),
                            text);
}

static trn_status start_unpacking(trn__source *s)
{
    static const char what[] = "out of memory for unpacking";
    memcpy(s->raw, s->piece, s->fill);
    s->z.next_in = s->raw;
    s->z.avail_in = (unsigned)s->fill;
    s->z.zalloc = z_alloc;
    s->z.zfree = z_dealloc;
    /* zlib hands the pointer back to z_alloc, which only reads through it. */
    s->z.opaque = (void *)(uintptr_t)s->mem;
    s->fill = 0;
    s->packed = true;
    if (inflateInit2(&s->z, 16 + MAX_WBITS) != Z_OK)
        return trn__source_fail(s, TRN_ERR_NOMEM, -1, "%s", what);
    s->z_open = true;
    return TRN_OK;
}

/* Between members: true when another one follows, false at the end. */
static trn_status next_member(trn__source *s, bool *more)
{
    *more = s->z.avail_in > 0;
    if (!*more)
        return TRN_OK;
    if (*s->z.next_in != 0x1F)
        return fail_packed(s, "found more bytes after the gzip data; expected "
                              "the end of the file");
    s->member_done = false;
    inflateReset(&s->z);
    return TRN_OK;
}

static trn_status inflate_once(trn__source *s)
{
    char text[96];
    int result = inflate(&s->z, Z_NO_FLUSH);
    switch (result) {
    case Z_OK:
    case Z_BUF_ERROR:
        return TRN_OK;
    case Z_STREAM_END:
        s->member_done = true;
        return TRN_OK;
    case Z_MEM_ERROR:
        return trn__source_fail(s, TRN_ERR_NOMEM, -1,
                                "out of memory for unpacking");
    default:
        snprintf(text, sizeof text, "found damaged gzip data: %s",
                 s->z.msg != NULL ? s->z.msg : "no details");
        return fail_packed(s, text);
    }
}

static trn_status read_unpacked(trn__source *s, unsigned char *to, size_t size,
                                size_t *got)
{
    trn_status status = TRN_OK;
    s->z.next_out = to;
    s->z.avail_out = (unsigned)size;
    while (status == TRN_OK && s->z.avail_out > 0) {
        bool more = true;
        if (s->z.avail_in == 0) {
            size_t n = 0;
            status = read_raw(s, s->raw, sizeof s->raw, &n);
            s->z.next_in = s->raw;
            s->z.avail_in = (unsigned)n;
        }
        if (status == TRN_OK && s->member_done)
            status = next_member(s, &more);
        if (status != TRN_OK || !more)
            break;
        if (s->z.avail_in == 0)
            status = fail_packed(s, "the gzip data ends too early; expected "
                                    "its end mark (truncated file)");
        else
            status = inflate_once(s);
    }
    *got = size - s->z.avail_out;
    return status;
}

#else

static trn_status start_unpacking(trn__source *s)
{
    return trn__source_fail(
        s, TRN_ERR_UNSUPPORTED, 0,
        "found a gzip file, and this build has no zlib; expected a "
        "plain IDX file");
}

static trn_status read_unpacked(trn__source *s, unsigned char *to, size_t size,
                                size_t *got)
{
    (void)s;
    (void)to;
    (void)size;
    *got = 0;
    return TRN_ERR_UNSUPPORTED;
}

#endif

trn_status trn__source_refill(trn__source *s)
{
    size_t left = s->fill - s->begin;
    size_t got = 0;
    trn_status status;
    memmove(s->piece, s->piece + s->begin, left);
    s->begin = 0;
    s->fill = left;
    if (s->packed)
        status = read_unpacked(s, s->piece + left, TRN__PIECE - left, &got);
    else
        status = read_raw(s, s->piece + left, TRN__PIECE - left, &got);
    s->fill += got;
    return status;
}

trn_status trn__source_open(trn__source *s)
{
    struct stat about;
    trn_status status;
    s->fd = trn__stream_open(s->path);
    if (s->fd < 0)
        return trn__source_fail(s, TRN_ERR_IO, -1, "cannot be opened: %s",
                                strerror(errno));
    if (fstat(s->fd, &about) == 0 && S_ISREG(about.st_mode))
        s->file_size = (int64_t)about.st_size;
    status = trn__source_refill(s);
    if (status != TRN_OK)
        return status;
    if (s->fill >= 2 && s->piece[0] == 0x1F && s->piece[1] == 0x8B) {
        status = start_unpacking(s);
        if (status == TRN_OK)
            status = trn__source_refill(s);
    }
    return status;
}

void trn__source_close(trn__source *s)
{
#ifdef TRN_HAVE_ZLIB
    if (s->z_open)
        inflateEnd(&s->z);
#endif
    if (s->fd >= 0)
        close(s->fd);
}
