/* SPDX-License-Identifier: Apache-2.0
 *
 * Is it a regular file, with all bytes that its own header promises?
 *
 * dlopen() waits for a writer where it is given a pipe, and the process dies by
 * SIGBUS where segments lie behind the end of the file, as after a download
 * that was interrupted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/pjrt/pjrt_object.h"

#if defined(__ELF__) && UINTPTR_MAX == UINT64_MAX
#include <elf.h>

static bool read_at(int file, void *to, size_t n, uint64_t offset)
{
    ssize_t got;
    do { /* signals end reads on some file systems */
        got = pread(file, to, n, (off_t)offset);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)n;
}

/* Do all segments lie in the file?  What is no such file is dlopen's to tell.
 */
static bool is_whole(int file, uint64_t size)
{
    Elf64_Ehdr head;
    if (!read_at(file, &head, sizeof head, 0) ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_phentsize != sizeof(Elf64_Phdr))
        return true;
    if (head.e_phoff > size)
        return false;
    for (uint64_t i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr segment;
        if (!read_at(file, &segment, sizeof segment,
                     head.e_phoff + i * sizeof segment))
            return false;
        if (segment.p_type == PT_LOAD &&
            (segment.p_offset > size ||
             segment.p_filesz > size - segment.p_offset))
            return false;
    }
    return true;
}

#else

static bool is_whole(int file, uint64_t size)
{
    (void)file;
    (void)size;
    return true;
}

#endif

const char *trn__object_fault(const char *path)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return NULL;
    if (!S_ISREG(about.st_mode))
        return "is not a regular file";
    int file;
    do {
        file = open(path, O_RDONLY | O_CLOEXEC);
    } while (file < 0 && errno == EINTR);
    if (file < 0)
        return NULL;
    bool whole = is_whole(file, (uint64_t)about.st_size);
    close(file);
    return whole ? NULL
                 : "is cut off: segments that its header names lie behind its "
                   "end; was a copy or download interrupted?";
}
