/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests that run in processes of their own, since a compiler in a plug-in may
 * abort, crash or hang: then one test has failed, and says what was running.
 *
 * The program starts itself again for each test; the process that cmocka counts
 * in never loads a plug-in.  A test that died is run once more, in steps as
 * small as it knows, to find the culprit.
 */
#ifndef TRN_TESTS_XLA_CHILD_H
#define TRN_TESTS_XLA_CHILD_H

#include "tests/harness.h"

typedef struct xla_test {
    const char *name;
    void (*body)(void **state);
    bool anywhere; /* needs no plug-in */
    bool hidden;   /* run by xla_child_run() alone */
} xla_test;

#define XLA_TEST(name_)               \
    {                                 \
        .name = #name_, .body = name_ \
    }
#define XLA_TEST_ANYWHERE(name_)                        \
    {                                                   \
        .name = #name_, .body = name_, .anywhere = true \
    }
#define XLA_TEST_HIDDEN(name_)                        \
    {                                                 \
        .name = #name_, .body = name_, .hidden = true \
    }

/* The main of a program of tests/xla/. */
int xla_main(int argc, char **argv, int n, const xla_test *tests);

/* ---- in a test ---- */

/* Says what runs from now on, for the case that it is the last thing; before
 * skip(), why. */
void xla_running(const char *format, ...) TRN_PRINTF(1, 2);
/* Should the test take the smallest steps? */
bool xla_one_by_one(void);
/* The device that is judged: the plug-in, or what TRN_XLA_DEVICE names. */
const char *xla_device(void);
/* TRN_VERBOSE=1: measured numbers are printed. */
bool xla_verbose(void);

/* ---- below xla_main ---- */

typedef struct xla_report {
    bool passed, timed_out;
    int signal;         /* that ended it, or 0 */
    char running[256];  /* what it said last */
    char output[20000]; /* the end of what it printed */
} xla_report;

/* Runs a test of this program in a process; at most that many seconds. */
void xla_child_run(const char *name, int seconds, bool one_by_one,
                   xla_report *r);

#endif
