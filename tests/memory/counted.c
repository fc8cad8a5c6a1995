/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that gives a context memory of its own and sees every allocation
 * that is made beside it: it defines malloc and its kin, and notes on whose
 * behalf they are called.
 *
 * counted WAY [past]   one life of a context (host_job.h); "past": the
 *                      hooks are left out, so all must be seen
 *
 * Prints a line "N by what" for each thing that allocated, where "libtrn" is
 * the library itself and another name the function, or the shared object, that
 * it called.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdio.h>

#include "tests/host_job.h"

#ifdef __GLIBC__
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The C library's own, which malloc and its kin are other names of. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

enum { MAX_FRAMES = 40, MAX_SITES = 64, NAME = 80 };

static struct site {
    char name[NAME];
    int n;
} sites[MAX_SITES];
static int n_sites;
static bool counting;
static _Thread_local bool looking; /* what looking takes is not counted */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool in_libtrn(const void *address, Dl_info *about)
{
    return dladdr(address, about) != 0 && about->dli_fname != NULL &&
           strstr(about->dli_fname, "libtrn.so") != NULL;
}

static void count(const char *name)
{
    int i = 0;
    pthread_mutex_lock(&lock);
    while (i < n_sites && strcmp(sites[i].name, name) != 0)
        i++;
    if (i == n_sites && n_sites < MAX_SITES)
        snprintf(sites[n_sites++].name, NAME, "%s", name);
    if (i < MAX_SITES)
        sites[i].n++;
    pthread_mutex_unlock(&lock);
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* The innermost frame of libtrn called what stands inside of it: `direct`, or
 * something of another library.  Without such a frame it is not our doing. */
static void note(const void *caller)
{
    void *frames[MAX_FRAMES];
    Dl_info about, inner;
    if (!counting || looking)
        return;
    looking = true;
    const int n = backtrace(frames, MAX_FRAMES);
    if (in_libtrn(caller, &about)) {
        count("libtrn");
        looking = false;
        return;
    }
    for (int i = 1; i < n; i++) {
        if (!in_libtrn(frames[i], &about))
            continue;
        const bool known = dladdr(frames[i - 1], &inner) != 0;
        if (known && inner.dli_sname != NULL)
            count(inner.dli_sname);
        else
            count(known ? file_name(inner.dli_fname) : "something unknown");
        break;
    }
    looking = false;
}

#define CALLER __builtin_return_address(0)

void *malloc(size_t bytes)
{
    note(CALLER);
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    note(CALLER);
    return __libc_calloc(n, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    note(CALLER);
    return __libc_realloc(memory, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
    note(CALLER);
    return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    note(CALLER);
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    note(CALLER);
    *out = __libc_memalign(alignment, bytes);
    return *out == NULL ? 12 : 0;
}

void free(void *memory)
{
    if (memory != NULL)
        note(CALLER);
    __libc_free(memory);
}

typedef void *mmap_fn(void *at, size_t bytes, int protection, int flags, int fd,
                      off_t offset);

void *mmap(void *at, size_t bytes, int protection, int flags, int fd,
           off_t offset)
{
    static mmap_fn *real;
    if (real == NULL) {
        void *symbol = dlsym(RTLD_NEXT, "mmap");
        memcpy(&real, &symbol, sizeof real);
    }
    note(CALLER);
    return real(at, bytes, protection, flags, fd, offset);
}

/* ---- memory of the program's own ---- */

enum { ARENA = 512 << 20 };

static struct arena {
    size_t used;
    struct piece {
        struct piece *next;
        size_t bytes;
    } * given_back;
    int64_t n_held;
} arena;
static _Alignas(64) char space[ARENA];

static void *take(void *user, size_t bytes)
{
    struct arena *a = user;
    bytes = (bytes + 63) & ~(size_t)63;
    for (struct piece **p = &a->given_back; *p != NULL; p = &(*p)->next) {
        struct piece *found = *p;
        if (found->bytes == bytes) {
            *p = found->next;
            a->n_held++;
            return found;
        }
    }
    if (bytes > ARENA - a->used)
        return NULL;
    a->used += bytes;
    a->n_held++;
    return space + a->used - bytes;
}

static void give_back(void *user, void *memory, size_t bytes)
{
    struct arena *a = user;
    struct piece *p = memory;
    p->bytes = (bytes + 63) & ~(size_t)63;
    p->next = a->given_back;
    a->given_back = p;
    a->n_held--;
}

/* ---- lives ---- */

static const struct way {
    const char *name, *device;
    trn_exec exec;
    trn_engine engine;
    int n_threads;
} ways[] = {
    {"eager-1", "cpu", TRN_EXEC_EAGER, TRN_ENGINE_POOL, 1},
    {"eager-3", "cpu", TRN_EXEC_EAGER, TRN_ENGINE_POOL, 3},
    {"captured-1", "cpu", TRN_EXEC_CAPTURED, TRN_ENGINE_POOL, 1},
    {"captured-3", "cpu", TRN_EXEC_CAPTURED, TRN_ENGINE_POOL, 3},
    {"eager-openmp", "cpu", TRN_EXEC_EAGER, TRN_ENGINE_OPENMP, 2},
    {"loop-3", "loop:strict", TRN_EXEC_AUTO, TRN_ENGINE_POOL, 3},
};

static bool live(const struct way *w, bool past)
{
    host_job j = {
        .folder = host_files(),
        .device = w->device,
        .exec = w->exec,
        .engine = w->engine,
        .n_threads = w->n_threads,
        .alloc = past ? NULL : take,
        .free = past ? NULL : give_back,
        .memory_user = past ? NULL : &arena,
    };
    void *first[2];
    if (j.folder == NULL || backtrace(first, 2) < 1)
        return false;
    counting = true;
    const bool good = host_job_run(&j);
    counting = false;
    host_files_remove();
    for (int i = 0; i < n_sites; i++)
        printf("%d by %s\n", sites[i].n, sites[i].name);
    if (!good)
        printf("failed: %s\n", j.said);
    if (arena.n_held != 0)
        printf("failed: %lld pieces were not given back\n",
               (long long)arena.n_held);
    return good && arena.n_held == 0;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof ways / sizeof ways[0]; i++) {
        if (strcmp(ways[i].name, argv[1]) == 0)
            return live(&ways[i], argc > 2) ? 0 : 1;
    }
    printf("failed: there is no such way\n");
    return 1;
}
#else
int main(void)
{
    printf("not here: the C library is not glibc\n");
    return 0;
}
#endif
