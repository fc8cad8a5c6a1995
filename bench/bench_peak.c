/* SPDX-License-Identifier: Apache-2.0
 *
 * The cases "peak:fma:f32", "peak:fma:f64" and "peak:copy": the measured
 * limits that other cases are held against.
 */
#include <string.h>

#include "bench/bench.h"

static void measure(const bench_run *r, const char *name, bench_fn fn,
                    double amount, const char *figure, const char *unit)
{
    bench_work w = {.fn = fn, .arg = r->team};
    bench_calibrate(&w, 0.02);
    bench_figure f = {
        .name = figure,
        .unit = unit,
        .stats = bench_rate(bench_time(&w, 0.4), 1e-9 * amount),
    };
    bench_report(r, name, 1, &f);
}

static bench_outcome run(bench_run *r, const char *name)
{
    const bool f32 = strcmp(name, "peak:fma:f32") == 0;
    if (strcmp(name, "peak:copy") == 0) {
        if (!r->copy_open && !bench_copy_open(r->team))
            return bench_wrong(name, "out of memory");
        r->copy_open = true;
        measure(r, name, bench_copy, bench_copy_bytes(r->team), "rate", "GB/s");
        return BENCH_OK;
    }
    if (!f32 && strcmp(name, "peak:fma:f64") != 0)
        return BENCH_UNKNOWN;
    if (!bench_fma_available())
        return bench_wrong(name, "unavailable: no AVX2 and FMA here");
    measure(r, name, f32 ? bench_fma_f32 : bench_fma_f64,
            bench_fma_flops(r->team, f32 ? 4 : 8), "speed", "GFLOP/s");
    return BENCH_OK;
}

static void list(void (*fn)(void *user, const char *name), void *user)
{
    if (bench_fma_available()) {
        fn(user, "peak:fma:f32");
        fn(user, "peak:fma:f64");
    }
    fn(user, "peak:copy");
}

const bench_family bench_peak = {
    .name = "peak",
    .form = "peak:fma:<f32|f64>, peak:copy",
    .run = run,
    .list = list,
};
