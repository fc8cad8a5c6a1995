/* SPDX-License-Identifier: Apache-2.0
 *
 * For groups of tests that run the jobs of host_job.h: their files as set-up
 * and tear-down, the job of each way to run, and what it gives alone.
 */
#ifndef TRN_TESTS_HOST_SETUP_H
#define TRN_TESTS_HOST_SETUP_H

#include "captured.h"
#include "host_job.h"

static const char *folder;

static inline int make_files(void **state)
{
    (void)state;
    folder = host_files();
    return folder == NULL;
}

static inline int remove_files(void **state)
{
    (void)state;
    host_files_remove();
    return 0;
}

static inline host_job job_of_way(int way, int n_threads, int steps)
{
    return (host_job){
        .folder = folder,
        .device = captured_ways[way].device,
        .exec = captured_ways[way].exec,
        .engine = TRN_ENGINE_POOL,
        .n_threads = n_threads,
        .steps = steps,
    };
}

/* The digest of a life alone; a program asks for one number of steps. */
static inline const char *alone(int way, int steps)
{
    static char digests[N_WAYS][65];
    if (digests[way][0] == '\0') {
        host_job j = job_of_way(way, 1, steps);
        CHECK(host_job_run(&j), "%s: %s\n", captured_ways[way].name, j.said);
        memcpy(digests[way], j.digest, sizeof j.digest);
    }
    return digests[way];
}

#endif
