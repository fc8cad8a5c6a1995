/* SPDX-License-Identifier: Apache-2.0
 *
 * The system calls of checkpoints, made to fail, to be interrupted, or to do a
 * part of what they were asked for.
 */
#ifndef TRN_TESTS_FILE_FAULTS_H
#define TRN_TESTS_FILE_FAULTS_H

#include "libtrn/io/file_calls.h"

typedef enum fault_kind {
    CALL_OPEN,
    CALL_CLOSE,
    CALL_PREAD,
    CALL_PWRITE,
    CALL_FTRUNCATE,
    CALL_FSYNC,
    CALL_FSTAT,
    CALL_FCHMOD,
    CALL_LOCK,
    CALL_RENAME,
    CALL_UNLINK,
    N_CALLS
} fault_kind;

extern const char *const fault_names[N_CALLS];

/* What is to fail, and how often that call was made since the plan was set. */
typedef struct fault_plan {
    fault_kind kind; /* which call is counted */
    int at;          /* that one fails: 0: none; 1: the first */
    bool ever;       /* and all behind it */
    int error;       /* the errno that it gives */
    int n;           /* calls so far */
    bool interrupts; /* each call is interrupted once before */
    size_t piece;    /* bytes that a read or write takes at most; 0: all */
    bool odd;        /* the call before was interrupted */
} fault_plan;

extern fault_plan fault;

/* What wrote, brought to the disk or renamed, in order, while `on`; beyond the
 * last place it is only counted. */
typedef struct fault_call {
    fault_kind kind;
    dev_t device; /* with `file`: what the call was for */
    ino_t file;
} fault_call;

enum { MOST_CALLS = 1024 };

typedef struct fault_record {
    bool on;
    int n;
    fault_call call[MOST_CALLS];
} fault_record;

extern fault_record fault_calls_made;

/* Those of the system behind the plan. */
extern const trn__file_calls fault_calls;

#endif
