/* SPDX-License-Identifier: Apache-2.0
 *
 * The exceptions to "no global state", all of them, each behind a lock:
 *
 *   plug-ins   A shared object is loaded once in a process and never unloaded,
 *              since devices of several contexts may run its code, and threads
 *              that it started may end late.  So is our copy of its table.
 *   forks      A number that goes up in the child of a fork, where the threads
 *              of the parent do not exist.
 *   HDF5       The library has state of its own and, as most systems build it,
 *              no lock: one thread at a time calls it for us.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "libtrn/context/context.h"
#include "libtrn/context/process.h"

static pthread_mutex_t plugins_lock = PTHREAD_MUTEX_INITIALIZER;
static const trn__plugin *plugins; /* newest first */
static pthread_mutex_t hdf5_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_once_t watch_forks_once = PTHREAD_ONCE_INIT;
static atomic_uint n_forks;

/* A fork waits for other threads to come out of the locks: in the child there
 * would be nobody to open them. */
static void hold_locks(void)
{
    pthread_mutex_lock(&plugins_lock);
    pthread_mutex_lock(&hdf5_lock);
}

static void open_locks(void)
{
    pthread_mutex_unlock(&hdf5_lock);
    pthread_mutex_unlock(&plugins_lock);
}

static void open_and_count(void)
{
    open_locks();
    atomic_fetch_add(&n_forks, 1);
}

static void watch_forks(void)
{
    /* out of memory: not watched */
    pthread_atfork(hold_locks, open_locks, open_and_count);
}

unsigned trn__process_forks(void)
{
    pthread_once(&watch_forks_once, watch_forks);
    return atomic_load(&n_forks);
}

void trn__process_lock(void)
{
    pthread_once(&watch_forks_once, watch_forks);
    pthread_mutex_lock(&plugins_lock);
}

void trn__process_unlock(void)
{
    pthread_mutex_unlock(&plugins_lock);
}

const trn__plugin *trn__process_find(const char *path)
{
    for (const trn__plugin *p = plugins; p != NULL; p = p->next) {
        if (strcmp(p->path, path) == 0)
            return p;
    }
    return NULL;
}

const trn__plugin *trn__process_add(const char *path, const trn_backend *table,
                                    uint32_t unknown)
{
    size_t length = strlen(path) + 1;
    trn__plugin *p = trn__process_alloc(sizeof *p + length);
    if (p == NULL)
        return NULL;
    *p = (trn__plugin){
        .next = plugins,
        .path = (char *)(p + 1),
        .table = *table,
        .unknown = unknown,
    };
    memcpy(p->path, path, length);
    plugins = p;
    return p;
}

void trn__process_hdf5_lock(void)
{
    pthread_once(&watch_forks_once, watch_forks);
    pthread_mutex_lock(&hdf5_lock);
}

void trn__process_hdf5_unlock(void)
{
    pthread_mutex_unlock(&hdf5_lock);
}
