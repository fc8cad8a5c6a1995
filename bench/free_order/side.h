/* SPDX-License-Identifier: Apache-2.0
 *
 * One side of the cases "rules": the demo's step with a library of its own.
 *
 * A side is a shared object that holds a whole library, built with
 * TRN_FREE_ORDER, and exports bench_side alone.
 */
#ifndef TRN_BENCH_SIDE_H
#define TRN_BENCH_SIDE_H

#include <stdbool.h>

typedef struct bench_side_table {
    /* Opens the device with so many threads and without the rules `left_out`
     * (TRN__FREE_...), trains some steps and gives their last loss; NULL if
     * that fails or the loss does not fall. */
    void *(*open)(const char *device, int n_threads, unsigned left_out,
                  double *loss);
    void (*steps)(void *model, int n);
    /* SHA-256 of the parameters, as text */
    bool (*digest)(void *model, char text[65]);
    void (*close)(void *model);
} bench_side_table;

#define BENCH_SIDE_NAME "bench_side"

#endif
