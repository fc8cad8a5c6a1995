/* SPDX-License-Identifier: Apache-2.0
 *
 * parallel_for: the one way in which the CPU device uses several threads.
 *
 * A range of items is cut into chunks of `grain` items, wherever they run.  The
 * cut depends on n and grain alone, never on the number of threads, and each
 * chunk runs once, so results have the same bits with every engine and count.
 * Three engines do the running: a small pool of our own, OpenMP, or the host's.
 */
#ifndef TRN_CONTEXT_THREADS_H
#define TRN_CONTEXT_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libtrn/context/threads_fp.h"

/*
 * Does the items [begin, end).  begin is a multiple of the grain, end is one or
 * the end of the range; the range may span several chunks.  It must not
 * return by a jump, and the floating-point environment is the default one.
 */
typedef void trn__range_fn(void *arg, int64_t begin, int64_t end);

typedef struct trn__threads trn__threads;

typedef enum {
    TRN__ENGINE_POOL,
    TRN__ENGINE_OPENMP,
    TRN__ENGINE_HOST
} trn__engine;

typedef struct trn__threads_config {
    /* The caller counts as one; below 1: one per CPU of this process. */
    int n_threads;
    trn__engine engine;
    /*
     * TRN__ENGINE_HOST only: calls fn(arg, chunk) once for each chunk of
     * [0, n_chunks), from any threads, and returns when all have returned.
     */
    void (*host_parallel_for)(void *host_user, int64_t n_chunks,
                              void (*fn)(void *arg, int64_t chunk), void *arg);
    void *host_user;
    void *(*alloc)(void *alloc_user, size_t bytes);
    void (*dealloc)(void *alloc_user, void *p);
    void *alloc_user;
} trn__threads_config;

/*
 * Starts no thread; the pool's workers start at the first call that has work
 * for them.  NULL when out of memory, or when trn__engine_missing(cfg->engine)
 * or a missing host_parallel_for says that the engine cannot be had.
 */
trn__threads *trn__threads_create(const trn__threads_config *cfg);

/* Joins the workers.  NULL is allowed; no parallel_for may be running. */
void trn__threads_destroy(trn__threads *t);

/*
 * Runs fn over [0, n), in any order and by any threads, and returns when all is
 * done.  At most one thread may call it for one `t` at a time; a call from
 * inside fn runs in its caller alone.  Never fails: threads that cannot be
 * started are done without.  t NULL means one thread, grain below 1 means 1.
 * Workers do not survive a fork: the child may exec, not use or destroy `t`.
 */
void trn__parallel_for(trn__threads *t, int64_t n, int64_t grain,
                       trn__range_fn *fn, void *arg);

/*
 * Between begin and end the pool's workers stay awake over short pauses, so
 * that a parallel_for need not wake them, unless other work wants their CPUs:
 * then they sleep at once.  Pairs nest; t NULL, one thread, the other engines,
 * and a pool with more threads than CPUs: nothing happens.  By the thread that
 * calls parallel_for.
 */
void trn__region_begin(trn__threads *t);
void trn__region_end(trn__threads *t);

/* "pool", "openmp", "host". */
const char *trn__engine_name(trn__engine e);

/* NULL when this build has the engine, else the sentence that says why not. */
const char *trn__engine_missing(trn__engine e);

/* The number of threads asked for; 1 for NULL. */
int trn__threads_count(const trn__threads *t);

bool trn__openmp_available(void);

/*
 * For the engines alone.
 *
 * A thread does chunks between enter and leave: it is marked, so that nested
 * calls stay in it, and its floating-point environment is the default.
 */
typedef struct trn__region {
    bool was_inside;
    trn__fp_env fp;
} trn__region;

void trn__region_enter(trn__region *r);
void trn__region_leave(const trn__region *r);

/* The work of one call: 0 < grain < n, so that n_chunks is at least 2. */
typedef struct trn__job {
    trn__range_fn *fn;
    void *arg;
    int64_t n;
    int64_t grain;
    int64_t n_chunks;
} trn__job;

void trn__job_run_chunk(const trn__job *job, int64_t chunk);

typedef struct trn__pool trn__pool;

trn__pool *trn__pool_create(const trn__threads_config *cfg);
void trn__pool_destroy(trn__pool *p, const trn__threads_config *cfg);
void trn__pool_run(trn__pool *p, const trn__job *job);
void trn__pool_hold(trn__pool *p);
void trn__pool_let_go(trn__pool *p);
int trn__cpu_count(void);

/* Does nothing in a build without OpenMP, which trn__openmp_available tells. */
void trn__openmp_run(int n_threads, const trn__job *job);

#endif
