/* SPDX-License-Identifier: Apache-2.0
 *
 * A PJRT plug-in that forwards every call to another one and adds up the time
 * spent there.
 *
 * TRN_PJRT_PLUGIN names the other one.  bench/bench_graph.c loads this one as
 * pjrt:<this>, and takes pjrt_timer_ns() from a step's time to see what is
 * ours.  Functions of PJRT's table take one pointer and return one or nothing,
 * so they are forwarded by their place in the table and no header is needed.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "trn/types.h"

/* PJRT_Api: its size, an extension, the version's size, extension, major and
 * minor number; then the functions. */
enum { HEAD = 40, MOST = 200 };
typedef void *entry(void *args);
typedef struct api {
    size_t size;
    char rest[HEAD - sizeof(size_t)];
    entry *entries[MOST];
} api;

static api real, ours;
static _Thread_local uint64_t spent_ns, n_calls;

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static void *forward(int place, void *args)
{
    const uint64_t start = now();
    void *result = real.entries[place](args);
    spent_ns += now() - start;
    n_calls++;
    return result;
}

/* Entries 0 to MOST - 1, each of which knows its place. */
#define TEN(X, n) \
    X(n##0)       \
    X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7) X(n##8) X(n##9)
#define HUNDRED(X, n)                                                \
    TEN(X, n##0)                                                     \
    TEN(X, n##1)                                                     \
    TEN(X, n##2) TEN(X, n##3) TEN(X, n##4) TEN(X, n##5) TEN(X, n##6) \
        TEN(X, n##7) TEN(X, n##8) TEN(X, n##9)
#define ALL(X) HUNDRED(X, 1) HUNDRED(X, 2)
#define FUNCTION(n)                    \
    static void *entry_##n(void *args) \
    {                                  \
        return forward(n - 100, args); \
    }
ALL(FUNCTION)
#define NAME(n) entry_##n,
static entry *const entries[MOST] = {ALL(NAME)};

/* Nanoseconds that the calling thread has spent in the other plug-in. */
TRN_API uint64_t pjrt_timer_ns(void);
uint64_t pjrt_timer_ns(void)
{
    return spent_ns;
}

/* How many calls of it that thread has made. */
TRN_API uint64_t pjrt_timer_calls(void);
uint64_t pjrt_timer_calls(void)
{
    return n_calls;
}

static const void *other_api(void)
{
    const char *path = getenv("TRN_PJRT_PLUGIN");
    void *object = path == NULL ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = object == NULL ? NULL : dlsym(object, "GetPjrtApi");
    const void *(*get)(void) = NULL;
    memcpy(&get, &symbol, sizeof get);
    return get == NULL ? NULL : get();
}

TRN_API const void *GetPjrtApi(void);
const void *GetPjrtApi(void)
{
    const void *other = other_api();
    if (other == NULL)
        return NULL;
    size_t size;
    memcpy(&size, other, sizeof size);
    size = size > sizeof real ? sizeof real : size;
    memcpy(&real, other, size);
    ours = real;
    ours.size = real.size = size;
    for (int i = 0; i < MOST; i++)
        ours.entries[i] = real.entries[i] == NULL ? NULL : entries[i];
    return &ours;
}
