/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole life of a context as an embedding program leads it, call by call: it
 * opens, reads files, trains two models, evaluates, meets every kind of error,
 * and closes.
 *
 * It asserts nothing, since it also runs in threads and in signal storms, where
 * a failing assertion would jump out; it tells what came of it.  Its digest
 * covers all that the calls gave: values, losses, messages, printed graphs.
 */
#ifndef TRN_TESTS_HOST_JOB_H
#define TRN_TESTS_HOST_JOB_H

#include <stdbool.h>
#include <stddef.h>

#include "trn.h"

typedef struct host_job {
    /* What to do; all may be zero but the folder. */
    const char *folder; /* of host_files() */
    const char *device; /* NULL: "cpu" */
    trn_exec exec;
    trn_engine engine;
    int n_threads;
    int steps; /* 0: as many as usual */
    trn_alloc_fn alloc;
    trn_free_fn free;
    void *memory_user;
    trn_parallel_for_fn parallel_for;
    /* Called after each public call, with its text. */
    void (*after)(void *user, const char *call);
    void *user;

    /* What came of it. */
    trn_context *c; /* while it is open */
    trn_status status;
    char said[300];
    char digest[65];
    int n_calls;
} host_job;

/* The whole life; false with `status` and `said`. */
bool host_job_run(host_job *j);

/* Its parts, for those who do something between them: the second trains to the
 * end and closes. */
bool host_job_open(host_job *j);
bool host_job_go_on(host_job *j);

/* Makes a folder with the files that the jobs read; its name stays valid. NULL:
 * that failed. */
const char *host_files(void);
void host_files_remove(void);

#endif
