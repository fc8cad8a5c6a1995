/* SPDX-License-Identifier: Apache-2.0
 *
 * Measured peaks; see peaks.h.
 *
 * The FMA loop is written as machine code, so that no compiler can shorten it:
 * 12 independent chains hide the latency of the unit (4 cycles, 2 units).  The
 * threads are this file's own and not those of what is measured.
 */
#define _POSIX_C_SOURCE 200809L /* barriers */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bench/peaks.h"

enum {
    /* Of 12 instructions: some 5 ms, long beside the waking of a thread. */
    FMA_LOOPS = 2500000,
    COPY_PART = 32 << 20
};

typedef struct member {
    bench_team *team;
    pthread_t thread;
    char *from, *to; /* its part of the copy */
} member;

struct bench_team {
    int n;
    void (*job)(member *m); /* NULL: the threads end */
    pthread_barrier_t start, done;
    member members[];
};

static void *thread_main(void *arg)
{
    member *m = arg;
    for (;;) {
        pthread_barrier_wait(&m->team->start);
        if (m->team->job == NULL)
            return NULL;
        m->team->job(m);
        pthread_barrier_wait(&m->team->done);
    }
}

bench_team *bench_team_open(int n)
{
    bench_team *t =
        calloc(1, sizeof *t + (size_t)(n > 0 ? n : 0) * sizeof t->members[0]);
    if (t == NULL || n < 1) {
        free(t);
        return NULL;
    }
    t->n = n;
    pthread_barrier_init(&t->start, NULL, (unsigned)n);
    pthread_barrier_init(&t->done, NULL, (unsigned)n);
    for (int i = 0; i < n; i++) {
        t->members[i].team = t;
        /* Threads that wait for one that is missing cannot be called back;
         * the program is about to end and they end with it. */
        if (i > 0 && pthread_create(&t->members[i].thread, NULL, thread_main,
                                    &t->members[i]) != 0)
            return NULL;
    }
    return t;
}

void bench_team_close(bench_team *t)
{
    if (t == NULL)
        return;
    t->job = NULL;
    pthread_barrier_wait(&t->start);
    for (int i = 0; i < t->n; i++) {
        if (i > 0)
            pthread_join(t->members[i].thread, NULL);
        free(t->members[i].from);
        free(t->members[i].to);
    }
    pthread_barrier_destroy(&t->start);
    pthread_barrier_destroy(&t->done);
    free(t);
}

int bench_team_threads(const bench_team *t)
{
    return t->n;
}

static void run_all(bench_team *t, void (*job)(member *m))
{
    t->job = job;
    pthread_barrier_wait(&t->start);
    job(&t->members[0]);
    pthread_barrier_wait(&t->done);
}

/* ---- floating point ---- */

#if defined(__x86_64__)
bool bench_fma_available(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

#define CLEAR(r) "vxorps %%ymm" #r ", %%ymm" #r ", %%ymm" #r "\n\t"
#define FMA(type, r) "vfmadd231" type " %%ymm14, %%ymm15, %%ymm" #r "\n\t"
#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define FMA_PS(r) FMA("ps", r)
#define FMA_PD(r) FMA("pd", r)
#define LOOP(FMA_ONE)                                                        \
    long n = FMA_LOOPS;                                                      \
    __asm__ volatile(EACH(CLEAR) CLEAR(14)                                   \
                         CLEAR(15) ".p2align 4\n\t"                          \
                                   "1:\n\t" EACH(FMA_ONE) "dec %0\n\t"       \
                                                          "jnz 1b\n\t"       \
                                                          "vzeroupper"       \
                     : "+r"(n)                                               \
                     :                                                       \
                     : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", \
                       "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",     \
                       "xmm12", "xmm13", "xmm14", "xmm15")

static void fma_f32(member *m)
{
    (void)m;
    LOOP(FMA_PS);
}

static void fma_f64(member *m)
{
    (void)m;
    LOOP(FMA_PD);
}
#else
bool bench_fma_available(void)
{
    return false;
}

static void fma_f32(member *m)
{
    (void)m;
}

static void fma_f64(member *m)
{
    (void)m;
}
#endif

void bench_fma_f32(void *team)
{
    run_all(team, fma_f32);
}

void bench_fma_f64(void *team)
{
    run_all(team, fma_f64);
}

double bench_fma_flops(const bench_team *t, size_t element)
{
    return (double)t->n * FMA_LOOPS * 12.0 * 2.0 * (32.0 / (double)element);
}

/* ---- memory ---- */

bool bench_copy_open(bench_team *t)
{
    for (int i = 0; i < t->n; i++) {
        member *m = &t->members[i];
        m->from = malloc(COPY_PART);
        m->to = malloc(COPY_PART);
        if (m->from == NULL || m->to == NULL)
            return false;
        memset(m->from, 1, COPY_PART);
        memset(m->to, 0, COPY_PART);
    }
    return true;
}

static void copy_part(member *m)
{
    memcpy(m->to, m->from, COPY_PART);
}

void bench_copy(void *team)
{
    run_all(team, copy_part);
}

double bench_copy_bytes(const bench_team *t)
{
    return 2.0 * (double)t->n * COPY_PART;
}
