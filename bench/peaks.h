/* SPDX-License-Identifier: Apache-2.0
 *
 * What the machine can do at most, measured: floating-point operations in
 * registers, and copying of memory, on a number of threads.
 */
#ifndef TRN_BENCH_PEAKS_H
#define TRN_BENCH_PEAKS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct bench_team bench_team;

/* n_threads - 1 waiting threads beside the caller; NULL: they do not start. */
bench_team *bench_team_open(int n_threads);
void bench_team_close(bench_team *t);
int bench_team_threads(const bench_team *t);

/* Can this CPU and build run the FMA loop (AVX2 and FMA, x86-64)? */
bool bench_fma_available(void);

/*
 * One call of either: an equal share of loops of fused multiply-adds on AVX2
 * registers in every thread.  The flops of one call, all threads together,
 * are bench_fma_flops(t, bytes per element).
 */
void bench_fma_f32(void *team);
void bench_fma_f64(void *team);
double bench_fma_flops(const bench_team *t, size_t element);

/* One call copies bench_copy_bytes(t) / 2 bytes, each thread its part; the
 * bytes count reading and writing.  false: no memory. */
bool bench_copy_open(bench_team *t);
void bench_copy(void *team);
double bench_copy_bytes(const bench_team *t);

#endif
