/* SPDX-License-Identifier: Apache-2.0
 *
 * The timing core; see timing.h.
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime, nanosleep */
#include <stdlib.h>
#include <time.h>

#include "bench/timing.h"

enum { LEAST_RUNS = 3 };

double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void bench_rest(double seconds)
{
    const struct timespec t = {
        .tv_sec = (time_t)seconds,
        .tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds)),
    };
    if (seconds > 0.0)
        nanosleep(&t, NULL);
}

static double one_run(const bench_work *w)
{
    double start = bench_now();
    for (int64_t i = 0; i < w->repeats; i++)
        w->fn(w->arg);
    const double spent = bench_now() - start;
    bench_rest(w->rest_s);
    return spent;
}

void bench_calibrate(bench_work *w, double run_s)
{
    const int64_t most = INT64_C(1) << 40;
    w->repeats = 1;
    w->fn(w->arg); /* touches memory, starts threads */
    double s = one_run(w);
    while (s < 0.3 * run_s && w->repeats < most) {
        double factor = s > 0.0 ? run_s / s : 10.0;
        factor = factor > 10.0 ? 10.0 : factor;
        w->repeats = 1 + (int64_t)((double)w->repeats * factor);
        s = one_run(w);
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bench_stats bench_summary(int n, double *values)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    const double low = values[(n - 1) / 2], high = values[n / 2];
    return (bench_stats){
        .min = values[0],
        .median = 0.5 * (low + high),
        .max = values[n - 1],
        .n = n,
    };
}

bench_stats bench_time(const bench_work *w, double budget_s)
{
    double s[BENCH_MOST_RUNS];
    int n = 0;
    const double end = bench_now() + budget_s;
    while (n < BENCH_MOST_RUNS && (n < LEAST_RUNS || bench_now() < end))
        s[n++] = one_run(w) / (double)w->repeats;
    return bench_summary(n, s);
}

bench_pair bench_compare(const bench_work *a, const bench_work *b,
                         double budget_s)
{
    double sa[BENCH_MOST_RUNS], sb[BENCH_MOST_RUNS], ratio[BENCH_MOST_RUNS];
    int n = 0;
    const double end = bench_now() + budget_s;
    while (n < BENCH_MOST_RUNS && (n < LEAST_RUNS || bench_now() < end)) {
        sa[n] = one_run(a) / (double)a->repeats;
        sb[n] = one_run(b) / (double)b->repeats;
        ratio[n] = sb[n] / sa[n];
        n++;
    }
    return (bench_pair){
        .a = bench_summary(n, sa),
        .b = bench_summary(n, sb),
        .ratio = bench_summary(n, ratio),
    };
}
