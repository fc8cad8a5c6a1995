/* SPDX-License-Identifier: Apache-2.0
 *
 * What belongs to the program around the library, looked at as a whole: modes
 * of arithmetic, locale, signals, OpenMP, files, the environment.
 */
#ifndef TRN_TESTS_HOST_STATE_H
#define TRN_TESTS_HOST_STATE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

enum { HOST_SIGNALS = 65 };

typedef struct host_state {
    /* Modes of the calling thread; `flags`: what arithmetic has raised. */
    unsigned modes, flags, x87;
    int rounding;
    char locale[160]; /* of the process, and of the thread */
    const void *thread_locale;
    sigset_t mask;
    struct sigaction actions[HOST_SIGNALS];
    stack_t stack;
    int omp[8]; /* what can be set of OpenMP; all 0 without it */
    unsigned umask;
    char folder[200];
    uint64_t environment;
    int n_files; /* that are open */
    /* A library that is used and has settings of the process (HDF5: how errors
     * are printed) gets a field here. */
} host_state;

void host_state_look(host_state *s);
/* What differs first, "" if nothing does.  The text is static. */
const char *host_state_differs(const host_state *a, const host_state *b);

/* For a child: a crash ends it, and does not jump into the test. */
void host_default_handlers(void);

int host_count_files(void);
int host_count_threads(void);

/* ---- setting modes, where the processor has them ---- */

/* FTZ and DAZ, or all exceptions as traps; false: not on this processor. */
bool host_set_flushing(void);
bool host_set_traps(void);
/* x87: 53 bits and upwards. */
bool host_set_x87(void);
/* Everything as a program finds it at its start. */
void host_set_default_modes(void);

#endif
