/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of our own in which the plug-in works.
 *
 * A compiler recurses, as deep as the program that it is given, and the caller
 * may have a small stack: a thread of 64 KiB, or a step of some thousand ops in
 * one chain, would end the process.  So stacks here are large; memory is taken
 * only for what is used of them.
 */
#include <signal.h>

#include "backends/pjrt/pjrt.h"

enum { MIB = 1 << 20 };

/* The largest stack that may be had (a limit on the address space may forbid
 * it); at last the usual one. */
static bool create(pthread_t *thread, void *(*fn)(void *), void *arg)
{
    static const size_t sizes[] = {(size_t)256 * MIB, (size_t)64 * MIB,
                                   (size_t)8 * MIB};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        pthread_attr_t attr;
        if (pthread_attr_init(&attr) != 0)
            break;
        bool made = pthread_attr_setstacksize(&attr, sizes[i]) == 0 &&
                    pthread_create(thread, &attr, fn, arg) == 0;
        pthread_attr_destroy(&attr);
        if (made)
            return true;
    }
    return pthread_create(thread, NULL, fn, arg) == 0;
}

/* The plug-in's threads inherit that all signals are blocked, so the program's
 * handlers run in the program's own threads. */
bool trn__pjrt_thread_start(pthread_t *thread, void *(*fn)(void *), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return false;
    bool started = create(thread, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}
