/* SPDX-License-Identifier: Apache-2.0
 *
 * The floating-point environment of a thread, as far as it decides bits.
 *
 * The bits of the CPU device assume round to nearest and gradual underflow.  A
 * host may have set something else in its own threads, and a new thread takes
 * over what its creator had; so work happens between enter and leave, and the
 * host finds its modes, its unmasked exceptions and its sticky flags as they
 * were.  On a processor that is not known here both calls do nothing.
 */
#ifndef TRN_CONTEXT_THREADS_FP_H
#define TRN_CONTEXT_THREADS_FP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct trn__fp_env {
    uint64_t control;
    uint64_t status;
} trn__fp_env;

/*
 * Saves the calling thread's environment, then sets the default: round to
 * nearest even, no flush to zero, subnormal inputs kept, no exception traps.
 */
void trn__fp_enter(trn__fp_env *saved);

/* Sets the default alone: for a thread that is between enter and leave, and may
 * have run foreign code since. */
void trn__fp_renew(void);

/* Puts back what trn__fp_enter saved in the same thread. */
void trn__fp_leave(const trn__fp_env *saved);

/*
 * Host arithmetic that is not between the two: a / b in the default modes, and
 * whether low <= x <= high, false for a NaN, without a trap that the host may
 * have set.
 */
double trn__fp_quotient(double a, double b);
bool trn__fp_within(double x, double low, double high);

/* True when the calling thread's modes are the default ones. */
bool trn__fp_is_default(void);

#endif
