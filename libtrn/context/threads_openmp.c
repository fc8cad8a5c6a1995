/* SPDX-License-Identifier: Apache-2.0
 *
 * The OpenMP engine: for programs that manage their threads by OpenMP.
 *
 * No setting of the host's OpenMP is changed: the number of threads is asked
 * for in the region itself.  Inside a region of the caller, OpenMP's own
 * nesting rules decide, by default a team of one.  The file is built with
 * -fopenmp when TRN_HAVE_OPENMP is defined; otherwise the engine is absent.
 */
#include "libtrn/context/threads.h"

#ifdef TRN_HAVE_OPENMP

#ifndef _OPENMP
#error "TRN_HAVE_OPENMP needs -fopenmp: else this engine would run one thread"
#endif

bool trn__openmp_available(void)
{
    return true;
}

void trn__openmp_run(int n_threads, const trn__job *job)
{
    int team = n_threads;
    if (job->n_chunks < team)
        team = (int)job->n_chunks;
#pragma omp parallel num_threads(team)
    {
        trn__region region;
        trn__region_enter(&region);
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t chunk = 0; chunk < job->n_chunks; ++chunk)
            trn__job_run_chunk(job, chunk);
        trn__region_leave(&region);
    }
}

#else

bool trn__openmp_available(void)
{
    return false;
}

void trn__openmp_run(int n_threads, const trn__job *job)
{
    (void)n_threads;
    (void)job;
}

#endif
