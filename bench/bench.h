/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cases of the benchmark share: where they run and how they report.
 *
 * A case is named by a string, "matmul:f32:64x64x64:nt".  The part before the
 * first ':' is its family; the family reads the whole.  Each case verifies its
 * result before it is timed.
 */
#ifndef TRN_BENCH_BENCH_H
#define TRN_BENCH_BENCH_H

#include "bench/peaks.h"
#include "bench/timing.h"
#include "trn.h"

typedef struct bench_run {
    trn_context *c;
    bench_team *team; /* as many threads as c */
    bool json;
    bool copy_open;     /* the team has memory to copy */
    const char *device; /* device string; NULL: the library's default */
} bench_run;

typedef enum bench_outcome {
    BENCH_OK = 0,
    BENCH_UNKNOWN = 1, /* no such case */
    BENCH_WRONG = 2    /* the result is not right, or the library failed */
} bench_outcome;

typedef struct bench_family {
    const char *name;
    const char *form; /* of its cases, for the usage */
    bench_outcome (*run)(bench_run *r, const char *name);
    /* calls fn for each case that runs when none is named */
    void (*list)(void (*fn)(void *user, const char *name), void *user);
} bench_family;

extern const bench_family bench_peak, bench_matmul, bench_overhead,
    bench_capture, bench_step, bench_graph, bench_rules, bench_openblas;

/* One measured figure: its name ("share_of_peak"), unit and statistics. */
typedef struct bench_figure {
    const char *name, *unit;
    bench_stats stats;
} bench_figure;

/* The statistics of scale / seconds (rates) and of scale * values. */
bench_stats bench_rate(bench_stats seconds, double scale);
bench_stats bench_scaled(bench_stats values, double scale);

/* A line about where all cases run. */
void bench_report_machine(const bench_run *r);
/* A line with the figures of one case. */
void bench_report(const bench_run *r, const char *name, int n,
                  const bench_figure *figures);
/* Says on stderr why a case is wrong; returns BENCH_WRONG. */
bench_outcome bench_wrong(const char *name, const char *why);

/* OpenBLAS as a peer; the core it chose ("Haswell"), NULL without it. */
const char *bench_blas_core(void);
void bench_blas_threads(int n);

#endif
