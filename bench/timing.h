/* SPDX-License-Identifier: Apache-2.0
 *
 * The timing core: runs functions and summarises how long they took.  It knows
 * nothing of what it times.
 *
 * A figure is the median of repeated runs after a warm-up.  A comparison is
 * made of pairs of runs taken in turn, A B A B, with one ratio for each pair,
 * because a shared machine's speed drifts by more than what is compared.
 */
#ifndef TRN_BENCH_TIMING_H
#define TRN_BENCH_TIMING_H

#include <stdint.h>

typedef void (*bench_fn)(void *arg);

typedef struct bench_stats {
    double min, median, max;
    int n; /* runs */
} bench_stats;

/* What is timed: fn(arg), `repeats` times in a row as one run.  Threads of some
 * libraries go on spinning after a call and would slow down what runs next, so
 * a run may be followed by a rest, which is not timed. */
typedef struct bench_work {
    bench_fn fn;
    void *arg;
    int64_t repeats;
    double rest_s;
} bench_work;

typedef struct bench_pair {
    bench_stats a, b;  /* seconds for one call */
    bench_stats ratio; /* time of b / time of a, pair by pair */
} bench_pair;

enum { BENCH_MOST_RUNS = 999 };

/* Seconds of a clock that only goes forward. */
double bench_now(void);

/* Sleeps so long. */
void bench_rest(double seconds);

/* Warms up, and sets repeats so that one run takes about run_s seconds. */
void bench_calibrate(bench_work *w, double run_s);

/* Runs for about budget_s seconds, at least three times; seconds per call. */
bench_stats bench_time(const bench_work *w, double budget_s);

/* Runs a and b in turn for about budget_s seconds, at least three pairs. */
bench_pair bench_compare(const bench_work *a, const bench_work *b,
                         double budget_s);

/* Minimum, median and maximum of n > 0 values, which are put in order. */
bench_stats bench_summary(int n, double *values);

#endif
