/* SPDX-License-Identifier: Apache-2.0
 *
 * Choice of the thread engine, dispatch of a parallel_for, nested calls.
 *
 * A thread that is already doing a chunk runs a nested call alone: its pool is
 * busy, and more threads than CPUs would only wait for each other.
 */
#include "libtrn/context/threads.h"

/* A count above this is surely a mistake, and its array would be large. */
#define MAX_THREADS 1024

struct trn__threads {
    trn__threads_config config;
    trn__pool *pool; /* NULL for the other engines, and for one thread. */
};

static _Thread_local bool inside_region;

void trn__region_enter(trn__region *r)
{
    r->was_inside = inside_region;
    inside_region = true;
    trn__fp_enter(&r->fp);
}

void trn__region_leave(const trn__region *r)
{
    trn__fp_leave(&r->fp);
    inside_region = r->was_inside;
}

void trn__job_run_chunk(const trn__job *job, int64_t chunk)
{
    int64_t begin = chunk * job->grain;
    int64_t size = job->n - begin;
    if (size > job->grain)
        size = job->grain;
    /* A device's chunk may have left other modes, also one of the job before:
     * a worker of the pool goes from job to job in one region. */
    trn__fp_renew();
    job->fn(job->arg, begin, begin + size);
}

/* What the host's parallel_for hands back to us for each chunk. */
static void run_host_chunk(void *arg, int64_t chunk)
{
    const trn__job *job = arg;
    trn__region region;
    if (chunk < 0 || chunk >= job->n_chunks)
        return;
    trn__region_enter(&region);
    trn__job_run_chunk(job, chunk);
    trn__region_leave(&region);
}

trn__threads *trn__threads_create(const trn__threads_config *cfg)
{
    trn__threads *t;
    if (trn__engine_missing(cfg->engine) != NULL)
        return NULL;
    if (cfg->engine == TRN__ENGINE_HOST && cfg->host_parallel_for == NULL)
        return NULL;
    t = cfg->alloc(cfg->alloc_user, sizeof *t);
    if (t == NULL)
        return NULL;
    t->config = *cfg;
    t->pool = NULL;
    if (t->config.n_threads < 1)
        t->config.n_threads = trn__cpu_count();
    if (t->config.n_threads > MAX_THREADS)
        t->config.n_threads = MAX_THREADS;
    if (cfg->engine == TRN__ENGINE_POOL && t->config.n_threads > 1) {
        t->pool = trn__pool_create(&t->config);
        if (t->pool == NULL) {
            cfg->dealloc(cfg->alloc_user, t);
            return NULL;
        }
    }
    return t;
}

void trn__threads_destroy(trn__threads *t)
{
    if (t == NULL)
        return;
    trn__pool_destroy(t->pool, &t->config);
    t->config.dealloc(t->config.alloc_user, t);
}

static void run_job(trn__threads *t, trn__job *job)
{
    switch (t->config.engine) {
    case TRN__ENGINE_POOL:
        trn__pool_run(t->pool, job);
        break;
    case TRN__ENGINE_OPENMP:
        trn__openmp_run(t->config.n_threads, job);
        break;
    case TRN__ENGINE_HOST:
        t->config.host_parallel_for(t->config.host_user, job->n_chunks,
                                    run_host_chunk, job);
        break;
    }
}

void trn__parallel_for(trn__threads *t, int64_t n, int64_t grain,
                       trn__range_fn *fn, void *arg)
{
    trn__region region;
    if (n <= 0)
        return;
    if (grain < 1)
        grain = 1;
    if (n <= grain || inside_region || t == NULL || t->config.n_threads == 1) {
        trn__region_enter(&region);
        fn(arg, 0, n);
        trn__region_leave(&region);
        return;
    }
    trn__job job = {
        .fn = fn,
        .arg = arg,
        .n = n,
        .grain = grain,
        .n_chunks = n / grain + (n % grain != 0),
    };
    run_job(t, &job);
}

void trn__region_begin(trn__threads *t)
{
    if (t != NULL && t->pool != NULL)
        trn__pool_hold(t->pool);
}

void trn__region_end(trn__threads *t)
{
    if (t != NULL && t->pool != NULL)
        trn__pool_let_go(t->pool);
}

const char *trn__engine_name(trn__engine e)
{
    switch (e) {
    case TRN__ENGINE_POOL:
        return "pool";
    case TRN__ENGINE_OPENMP:
        return "openmp";
    case TRN__ENGINE_HOST:
        return "host";
    }
    return "unknown";
}

const char *trn__engine_missing(trn__engine e)
{
    switch (e) {
    case TRN__ENGINE_POOL:
    case TRN__ENGINE_HOST:
        return NULL;
    case TRN__ENGINE_OPENMP:
        return trn__openmp_available() ? NULL : "this build has no OpenMP";
    }
    return "this thread engine does not exist";
}

int trn__threads_count(const trn__threads *t)
{
    return t == NULL ? 1 : t->config.n_threads;
}
