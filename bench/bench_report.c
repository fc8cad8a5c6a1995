/* SPDX-License-Identifier: Apache-2.0
 *
 * How results are written: a table for people, or one JSON object a line.
 *
 * Names, units and the library's answers hold no character that JSON would
 * want escaped.
 */
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"

bench_stats bench_rate(bench_stats s, double scale)
{
    return (bench_stats){scale / s.max, scale / s.median, scale / s.min, s.n};
}

bench_stats bench_scaled(bench_stats s, double scale)
{
    return (bench_stats){scale * s.min, scale * s.median, scale * s.max, s.n};
}

void bench_report_machine(const bench_run *r)
{
    const char *core = bench_blas_core();
    if (!r->json) {
        printf("libtrn %s on %s, %s, %s engine, %d threads; OpenBLAS: %s\n"
               "figures: median [least .. most]; share_of_peak: of an FMA "
               "loop on AVX2\nregisters, same threads, run in turn; "
               "openblas_ratio: its time / ours, in turn\n\n",
               trn_version(), trn_device_name(r->c),
               trn_device_description(r->c), trn_engine_name(r->c),
               trn_thread_count(r->c), core == NULL ? "not here" : core);
        return;
    }
    printf("{\"machine\": {\"version\": \"%s\", \"numerics_version\": \"%s\", "
           "\"device\": \"%s\", \"instruction_set\": \"%s\", \"engine\": "
           "\"%s\", \"threads\": %d, ",
           trn_version(), trn_numerics_version(), trn_device_name(r->c),
           trn_device_description(r->c), trn_engine_name(r->c),
           trn_thread_count(r->c));
    if (core == NULL)
        printf("\"openblas_core\": null}}\n");
    else
        printf("\"openblas_core\": \"%s\"}}\n", core);
}

void bench_report(const bench_run *r, const char *name, int n,
                  const bench_figure *f)
{
    printf(r->json ? "{\"case\": \"%s\", \"threads\": %d" : "%-32s", name,
           trn_thread_count(r->c));
    for (int i = 0; i < n; i++) {
        const bench_stats *s = &f[i].stats;
        if (r->json)
            printf(", \"%s\": {\"unit\": \"%s\", \"median\": %.6g, \"min\": "
                   "%.6g, \"max\": %.6g, \"runs\": %d}",
                   f[i].name, f[i].unit, s->median, s->min, s->max, s->n);
        else
            printf("  %s %.4g%s%s [%.4g .. %.4g]", f[i].name, s->median,
                   f[i].unit[0] == '\0' ? "" : " ", f[i].unit, s->min, s->max);
    }
    printf(r->json ? "}\n" : "\n");
    fflush(stdout);
}

bench_outcome bench_wrong(const char *name, const char *why)
{
    fprintf(stderr, "bench-trn: %s: %s\n", name, why);
    return BENCH_WRONG;
}
