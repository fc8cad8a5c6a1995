/* SPDX-License-Identifier: Apache-2.0
 *
 * Many cases in one program: what each gives on the CPU device, and on the
 * device that is judged, where a step with all of them is compiled at once.
 *
 * A compile has a fixed cost that is far larger than that of one case.  When a
 * batch fails its cases are run one by one, so the message names the culprit.
 */
#ifndef TRN_TESTS_XLA_BATCH_H
#define TRN_TESTS_XLA_BATCH_H

#include "tests/case_build.h"
#include "tests/xla/xla_child.h"

enum { XLA_MAX_OUT = 2 * CASE_MAX_IN + 1, XLA_BATCH = 24 };

/* The numbers of one output; bytes NULL: there is none. */
typedef struct xla_array {
    trn_dtype dtype;
    int64_t n;
    void *bytes;
} xla_array;

typedef struct xla_job {
    case_args a;
    /* for gradients: seed of the output's shape, weights of the inputs' */
    case_input seed, weight[CASE_MAX_IN];
    int n_out;
    xla_array want[XLA_MAX_OUT], got[XLA_MAX_OUT];
} xla_job;

typedef struct xla_judge xla_judge;
struct xla_judge {
    /* Makes the outputs of a job in c's open step, NULL where there is none;
     * returns how many, 0 with the error in c. */
    int (*build)(trn_context *c, const xla_job *job, trn_tensor **out);
    /* Compares; calls xla_fault() for what it finds. */
    void (*compare)(xla_judge *j, const xla_job *job);
    void *user;
    trn_context *cpu, *device;
    int n_jobs, n_done, n_faults;
    xla_job job[XLA_BATCH];
};

/* Opens the contexts. */
void xla_judge_open(xla_judge *j);
/* A job for a case: a place in the batch, its inputs drawn. */
xla_job *xla_judge_case(xla_judge *j, const op_case *tc, trn_dtype dtype);
/* The job is complete; runs the batch when it is full. */
void xla_judge_ready(xla_judge *j);
/* Runs what is left, closes the contexts, fails if there were faults. */
void xla_judge_close(xla_judge *j);

/* Prints what is wrong with a job; the test goes on, and fails at its end. */
void xla_fault(xla_judge *j, const xla_job *job, const char *format, ...)
    TRN_PRINTF(3, 4);

/* A context of that device.  From xla_use_neuron() on, devices other than the
 * CPU lower for the Neuron compiler. */
trn_context *xla_open(const char *device);
void xla_use_neuron(void);
bool xla_is_neuron(void);
/* After a step of c that ran: if it was lowered for Neuron, there is nothing in
 * its module that the compiler is not known to take, or the test fails. */
void xla_check_module(trn_context *c);
/* Is the judged device bound to the CPU's bits? */
bool xla_is_exact(void);

#endif
