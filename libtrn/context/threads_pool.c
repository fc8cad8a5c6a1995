/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool engine: worker threads that spin for a moment, then sleep.
 *
 * A call must not wait for a thread that sleeps or has lost its CPU, so no
 * worker takes part in every call: whoever is awake, the caller included, takes
 * the next chunk by counting `remaining` down.  The invariant is that the job
 * may only be read by a thread that holds a chunk which it has taken and not
 * yet subtracted from `pending`; the caller rewrites the job only after
 * `pending` has reached 0.  A late worker finds `remaining` at 0, or takes a
 * chunk of the newer job, which is as good.
 *
 * Sleep and wake-up are two flags crossed: a sleeper announces itself, then
 * looks for work; a waker makes work visible, then looks for sleepers.  Both
 * orders rest on the sequential consistency of the plain atomic operations.
 * The begin of a region wakes sleepers, as work does.  While one is open
 * (`held`) a worker spins longer before it sleeps, and offers its CPU to others
 * again and again.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* for sched_getaffinity and CPU_COUNT */
#endif
#include "libtrn/context/threads.h"
#include "libtrn/context/process.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

/* About the price of a sleep and wake-up: waiting longer would not pay. */
#define SPIN_NS 40000
#define SPIN_PROBE 64
/* In a region: so many such waits, about 200 us, with the CPU offered between
 * them.  On a busy machine a worker that spins on takes the caller's share. */
#define IDLE_SPINS 5
/* A wait that took that long has lost its CPU: others need it, so sleep, and
 * keep nobody awake for so many regions. */
#define BUSY_NS (2 * SPIN_NS)
#define BUSY_REGIONS 32

/* Keeps a word that one thread hammers off the cache line of its neighbour. */
#define CACHE_LINE 64

struct trn__pool {
    trn__job job;
    pthread_t *workers;
    int n_workers;
    int n_started;
    int spin_rounds;
    bool start_tried;
    unsigned forks; /* as of the start */
    char gap0[CACHE_LINE];
    _Atomic int64_t remaining; /* chunks that nobody has taken */
    char gap1[CACHE_LINE];
    _Atomic int64_t pending; /* chunks that are not done */
    char gap2[CACHE_LINE];
    atomic_int n_sleeping;
    atomic_bool caller_sleeps;
    atomic_bool stop;
    atomic_int held;       /* open regions */
    atomic_uint n_regions; /* outermost ones that woke, ever */
    atomic_int n_busy;     /* regions to come that hold nobody */
    pthread_mutex_t lock;
    pthread_cond_t work;
    pthread_cond_t done;
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" : : : "memory");
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

int trn__cpu_count(void)
{
    long online;
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
#endif
    online = sysconf(_SC_NPROCESSORS_ONLN);
    if (online < 1)
        return 1;
    return online > 1024 ? 1024 : (int)online;
}

static int64_t clock_ns(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/*
 * How many rounds of waiting make SPIN_NS.  A pause takes 3 to 50 ns, depending
 * on the processor, so it is measured; the best of three, lest a lost time
 * slice be counted.  Where threads outnumber CPUs, the one that is waited for
 * may need the waiter's CPU: then nobody spins.
 */
static int measure_spin_rounds(int n_threads)
{
    int64_t best = SPIN_NS;
    if (n_threads > trn__cpu_count())
        return 0;
    for (int i = 0; i < 3; ++i) {
        int64_t start = clock_ns();
        int64_t taken;
        for (int k = 0; k < SPIN_PROBE; ++k)
            relax();
        taken = clock_ns() - start;
        if (taken < best)
            best = taken;
    }
    return (int)(SPIN_NS / (best / SPIN_PROBE + 1));
}

static bool take_chunk(trn__pool *p, int64_t *left)
{
    int64_t seen = atomic_load(&p->remaining);
    while (seen > 0) {
        if (atomic_compare_exchange_weak(&p->remaining, &seen, seen - 1)) {
            *left = seen;
            return true;
        }
    }
    return false;
}

/* Takes and does chunks until none is left; returns how many it did. */
static int64_t do_chunks(trn__pool *p)
{
    int64_t left = 0;
    int64_t n_done = 0;
    while (take_chunk(p, &left)) {
        trn__job_run_chunk(&p->job, p->job.n_chunks - left);
        ++n_done;
    }
    return n_done;
}

/* True when the chunks reported here were the last ones of the call. */
static bool report(trn__pool *p, int64_t n_done)
{
    return atomic_fetch_sub(&p->pending, n_done) == n_done;
}

/*
 * The empty critical section lets a sleeper that has announced itself reach its
 * wait, where the signal after it arrives.
 */
static void pass_lock(trn__pool *p)
{
    pthread_mutex_lock(&p->lock);
    pthread_mutex_unlock(&p->lock);
}

/* Returns true for work, and for a region that has begun. */
static bool wait_for_work(trn__pool *p)
{
    const unsigned seen = atomic_load(&p->n_regions);
    for (int n_idle = 1;; ++n_idle) {
        const int64_t start = clock_ns();
        for (int i = 0; i < p->spin_rounds; ++i) {
            if (atomic_load(&p->remaining) > 0)
                return true;
            if (atomic_load(&p->stop))
                return false;
            relax();
        }
        if (atomic_load(&p->held) == 0 || atomic_load(&p->n_busy) > 0 ||
            n_idle == IDLE_SPINS)
            break;
        sched_yield();
        if (clock_ns() - start > BUSY_NS)
            atomic_store(&p->n_busy, BUSY_REGIONS);
    }
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->n_sleeping, 1);
    while (atomic_load(&p->remaining) <= 0 &&
           atomic_load(&p->n_regions) == seen && !atomic_load(&p->stop))
        pthread_cond_wait(&p->work, &p->lock);
    atomic_fetch_sub(&p->n_sleeping, 1);
    pthread_mutex_unlock(&p->lock);
    return !atomic_load(&p->stop);
}

static void wait_until_done(trn__pool *p)
{
    for (int i = 0; i < p->spin_rounds; ++i) {
        if (atomic_load(&p->pending) == 0)
            return;
        relax();
    }
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->caller_sleeps, true);
    while (atomic_load(&p->pending) != 0)
        pthread_cond_wait(&p->done, &p->lock);
    atomic_store(&p->caller_sleeps, false);
    pthread_mutex_unlock(&p->lock);
}

static void wake_workers(trn__pool *p, int64_t n_useful)
{
    int n_sleeping = atomic_load(&p->n_sleeping);
    if (n_sleeping == 0)
        return;
    pass_lock(p);
    if (n_useful >= n_sleeping) {
        pthread_cond_broadcast(&p->work);
        return;
    }
    for (int64_t i = 0; i < n_useful; ++i)
        pthread_cond_signal(&p->work);
}

static void *worker_main(void *arg)
{
    trn__pool *p = arg;
    while (wait_for_work(p)) {
        trn__region region;
        int64_t n_done;
        trn__region_enter(&region);
        n_done = do_chunks(p);
        trn__region_leave(&region);
        if (n_done > 0 && report(p, n_done) && atomic_load(&p->caller_sleeps)) {
            pass_lock(p);
            pthread_cond_signal(&p->done);
        }
    }
    return NULL;
}

/*
 * Starts what can be started, once.  Workers take over the signal mask of this
 * moment: with all signals blocked, the host's handlers run in its own threads.
 */
static void start_workers(trn__pool *p)
{
    sigset_t all, before;
    p->start_tried = true;
    p->forks = trn__process_forks();
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return;
    while (p->n_started < p->n_workers) {
        if (pthread_create(&p->workers[p->n_started], NULL, worker_main, p))
            break;
        ++p->n_started;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* All three or none. */
static bool init_locks(trn__pool *p)
{
    if (pthread_mutex_init(&p->lock, NULL) != 0)
        return false;
    if (pthread_cond_init(&p->work, NULL) != 0)
        goto no_work;
    if (pthread_cond_init(&p->done, NULL) != 0)
        goto no_done;
    return true;
no_done:
    pthread_cond_destroy(&p->work);
no_work:
    pthread_mutex_destroy(&p->lock);
    return false;
}

/*
 * In the child of a fork the workers do not exist, but what they left does:
 * they are waiting, perhaps with the lock.  All of that is made anew; then
 * workers are started again when there is work.
 */
static void forget_workers_of_parent(trn__pool *p)
{
    if (!p->start_tried || p->forks == trn__process_forks())
        return;
    p->start_tried = false;
    p->n_started = 0;
    if (!init_locks(p)) /* then all work is done alone */
        p->n_workers = 0;
    atomic_store(&p->remaining, 0);
    atomic_store(&p->pending, 0);
    atomic_store(&p->n_sleeping, 0);
    atomic_store(&p->caller_sleeps, false);
}

static void ready_workers(trn__pool *p)
{
    forget_workers_of_parent(p);
    if (!p->start_tried)
        start_workers(p);
}

/* Without CPUs to spare, spinning would take the caller's: then no hold. */
void trn__pool_hold(trn__pool *p)
{
    if (p->spin_rounds == 0)
        return;
    ready_workers(p);
    if (atomic_fetch_add(&p->held, 1) > 0)
        return;
    if (atomic_load(&p->n_busy) > 0) {
        atomic_fetch_sub(&p->n_busy, 1);
        return;
    }
    atomic_fetch_add(&p->n_regions, 1);
    if (atomic_load(&p->n_sleeping) == 0)
        return;
    pass_lock(p);
    pthread_cond_broadcast(&p->work);
}

void trn__pool_let_go(trn__pool *p)
{
    if (p->spin_rounds > 0)
        atomic_fetch_sub(&p->held, 1);
}

void trn__pool_run(trn__pool *p, const trn__job *job)
{
    trn__region region;
    trn__region_enter(&region);
    ready_workers(p);
    p->job = *job;
    atomic_store(&p->pending, job->n_chunks);
    atomic_store(&p->remaining, job->n_chunks);
    wake_workers(p, job->n_chunks - 1);
    if (!report(p, do_chunks(p)))
        wait_until_done(p);
    trn__region_leave(&region);
}

trn__pool *trn__pool_create(const trn__threads_config *cfg)
{
    int n_workers = cfg->n_threads - 1;
    size_t bytes = (size_t)n_workers * sizeof(pthread_t);
    trn__pool *p = cfg->alloc(cfg->alloc_user, sizeof *p);
    pthread_t *workers = cfg->alloc(cfg->alloc_user, bytes);
    if (p == NULL || workers == NULL)
        goto fail;
    p->workers = workers;
    p->n_workers = n_workers;
    p->n_started = 0;
    p->spin_rounds = measure_spin_rounds(cfg->n_threads);
    p->start_tried = false;
    p->forks = 0;
    atomic_init(&p->remaining, 0);
    atomic_init(&p->pending, 0);
    atomic_init(&p->n_sleeping, 0);
    atomic_init(&p->caller_sleeps, false);
    atomic_init(&p->stop, false);
    atomic_init(&p->held, 0);
    atomic_init(&p->n_regions, 0);
    atomic_init(&p->n_busy, 0);
    if (init_locks(p))
        return p;
fail:
    if (workers != NULL)
        cfg->dealloc(cfg->alloc_user, workers);
    if (p != NULL)
        cfg->dealloc(cfg->alloc_user, p);
    return NULL;
}

void trn__pool_destroy(trn__pool *p, const trn__threads_config *cfg)
{
    if (p == NULL)
        return;
    forget_workers_of_parent(p);
    atomic_store(&p->stop, true);
    if (p->n_started > 0) {
        pass_lock(p);
        pthread_cond_broadcast(&p->work);
    }
    for (int i = 0; i < p->n_started; ++i)
        pthread_join(p->workers[i], NULL);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    cfg->dealloc(cfg->alloc_user, p->workers);
    cfg->dealloc(cfg->alloc_user, p);
}
