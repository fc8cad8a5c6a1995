/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of dropout, for the eager op and for fused groups: an element
 * is kept unless p > u, and what is dropped is +0, whatever x is.  y may be x.
 */
#ifndef TRN_BACKENDS_CPU_DROP_H
#define TRN_BACKENDS_CPU_DROP_H

#include <stdint.h>

static inline void trn__cpu_drop_f32(int64_t n, float p, const float *u,
                                     const float *x, float *y)
{
    const float scale = 1.0f / (1.0f - p);
    for (int64_t i = 0; i < n; i++) {
        const float kept = x[i] * scale;
        y[i] = p > u[i] ? 0.0f : kept;
    }
}

static inline void trn__cpu_drop_f64(int64_t n, double p, const double *u,
                                     const double *x, double *y)
{
    const double scale = 1.0 / (1.0 - p);
    for (int64_t i = 0; i < n; i++) {
        const double kept = x[i] * scale;
        y[i] = p > u[i] ? 0.0 : kept;
    }
}

#endif
