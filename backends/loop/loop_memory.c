/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the loop device: a file without a name, mapped twice.
 *
 * A handle points into a mapping that nobody may access, so a host that takes
 * it for an address dies at once; the worker uses the second mapping.  Blocks
 * have a header in front and are found first-fit in a list in order of address;
 * the file grows as blocks need it, below a range that is reserved once.
 */
#define _GNU_SOURCE /* memfd_create, mkstemp */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loop.h"

#define HEADER 64
#define RESERVE ((uint64_t)64 << 30)
#define RESERVE_LEAST ((uint64_t)256 << 20)
#define GROWTH ((uint64_t)1 << 20)

typedef struct block {
    uint64_t bytes; /* with this header */
    uint64_t next;  /* free ones: the next one; 0: none */
    uint64_t form;  /* of the tensor that it is for; 0: any */
} block;

/* Offset 0 means "none", so the first block starts at HEADER. */
static block *block_at(const trn__loop_pool *p, uint64_t offset)
{
    return (block *)(void *)(p->worker_base + offset);
}

static int anonymous_file(void)
{
#ifdef MFD_CLOEXEC
    int fd = memfd_create("trn-loop", MFD_CLOEXEC);
    if (fd >= 0)
        return fd;
#endif
    char shm[] = "/dev/shm/trn-loop-XXXXXX", tmp[] = "/tmp/trn-loop-XXXXXX";
    char *const names[] = {shm, tmp};
    for (int i = 0; i < 2; i++) {
        int file = mkstemp(names[i]);
        if (file >= 0) {
            unlink(names[i]);
            return file;
        }
    }
    return -1;
}

static bool map_both(trn__loop_pool *p, uint64_t bytes)
{
    const int flags = MAP_SHARED | MAP_NORESERVE;
    void *host = mmap(NULL, bytes, PROT_NONE, flags, p->fd, 0);
    if (host == MAP_FAILED)
        return false;
    void *worker = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, p->fd, 0);
    if (worker == MAP_FAILED) {
        munmap(host, bytes);
        return false;
    }
    p->host_base = host;
    p->worker_base = worker;
    p->reserved = bytes;
    return true;
}

bool trn__loop_pool_open(trn__loop_pool *p)
{
    *p = (trn__loop_pool){.fd = anonymous_file(), .top = HEADER};
    if (p->fd < 0)
        return false;
    for (uint64_t bytes = RESERVE; bytes >= RESERVE_LEAST; bytes /= 2) {
        if (map_both(p, bytes))
            return true;
    }
    close(p->fd);
    return false;
}

void trn__loop_pool_close(trn__loop_pool *p)
{
    munmap(p->host_base, p->reserved);
    munmap(p->worker_base, p->reserved);
    close(p->fd);
}

/* Makes the file reach up to `bytes`. */
static bool grow(trn__loop_pool *p, uint64_t bytes)
{
    if (bytes <= p->file_bytes)
        return true;
    if (bytes > p->reserved)
        return false;
    uint64_t want = p->file_bytes + p->file_bytes / 2 + GROWTH;
    want = want < bytes ? bytes : want;
    want = (want + GROWTH - 1) / GROWTH * GROWTH;
    want = want > p->reserved ? p->reserved : want;
    if (ftruncate(p->fd, (off_t)want) != 0)
        return false;
    p->file_bytes = want;
    return true;
}

/* Takes `need` bytes of the first free block that has them; 0: none has. */
static uint64_t take_free(trn__loop_pool *p, uint64_t need)
{
    uint64_t *link = &p->first_free;
    for (; *link != 0; link = &block_at(p, *link)->next) {
        uint64_t at = *link;
        block *b = block_at(p, at);
        if (b->bytes < need)
            continue;
        if (b->bytes - need >= 2 * HEADER) {
            *block_at(p, at + need) =
                (block){.bytes = b->bytes - need, .next = b->next};
            *link = at + need;
            b->bytes = need;
        } else {
            *link = b->next;
        }
        return at;
    }
    return 0;
}

trn_buffer *trn__loop_pool_alloc(trn__loop_pool *p, uint64_t bytes)
{
    if (bytes > p->reserved)
        return NULL;
    uint64_t need = HEADER + (bytes + HEADER - 1) / HEADER * HEADER;
    uint64_t at = take_free(p, need);
    if (at == 0) {
        if (!grow(p, p->top + need))
            return NULL;
        at = p->top;
        p->top += need;
        block_at(p, at)->bytes = need;
    }
    block_at(p, at)->form = 0;
    return (trn_buffer *)(void *)(p->host_base + at + HEADER);
}

/* Joins the free block at `at` with the free one right behind it. */
static void join(trn__loop_pool *p, uint64_t at)
{
    block *b = block_at(p, at);
    if (b->next == 0 || at + b->bytes != b->next)
        return;
    const block *behind = block_at(p, b->next);
    b->bytes += behind->bytes;
    b->next = behind->next;
}

void trn__loop_pool_free(trn__loop_pool *p, trn_buffer *buffer)
{
    if (buffer == NULL)
        return;
    uint64_t at = (uint64_t)((char *)(void *)buffer - p->host_base) - HEADER;
    uint64_t before = 0, *link = &p->first_free;
    while (*link != 0 && *link < at) {
        before = *link;
        link = &block_at(p, before)->next;
    }
    block_at(p, at)->next = *link;
    *link = at;
    join(p, at);
    if (before != 0)
        join(p, before);
}

uint64_t trn__loop_form(const trn_arg *arg)
{
    uint64_t h = (uint64_t)arg->dtype << 32 | arg->rank;
    for (uint32_t d = 0; d < arg->rank; d++) {
        h = (h ^ (uint64_t)arg->shape[d]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    return h | 1;
}

uint64_t *trn__loop_form_of(const trn__loop_pool *p, const trn_buffer *buffer)
{
    char *memory = trn__loop_address(p, buffer);
    return &((block *)(void *)(memory - HEADER))->form;
}

char *trn__loop_address(const trn__loop_pool *p, const trn_buffer *buffer)
{
    if (buffer == NULL) /* of an empty tensor: nobody goes there */
        return p->worker_base;
    uintptr_t offset = (uintptr_t)buffer - (uintptr_t)p->host_base;
    return p->worker_base + offset;
}
