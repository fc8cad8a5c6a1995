/* SPDX-License-Identifier: Apache-2.0
 *
 * Files as streams of bytes; see stream.h.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#include "libtrn/data/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int trn__stream_open(const char *path)
{
    int fd;
    do {
        fd = open(path, O_RDONLY | O_CLOEXEC);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

int trn__stream_read(int fd, void *to, size_t size, size_t *got)
{
    char *at = to;
    *got = 0;
    while (*got < size) {
        ssize_t n = read(fd, at + *got, size - *got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        if (n == 0)
            break;
        *got += (size_t)n;
    }
    return 0;
}
