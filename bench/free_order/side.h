/* SPDX-License-Identifier: Apache-2.0
 *
 * One side of the case "rules": the demo's step with a library of its own.
 *
 * A side is a shared object that holds a whole library and exports bench_side
 * alone, so that two builds of the library can be timed in one process, in
 * turn.
 */
#ifndef TRN_BENCH_SIDE_H
#define TRN_BENCH_SIDE_H

#include <stdbool.h>

typedef struct bench_side_table {
    bool free_order; /* built without the rules of order */
    /* Opens the CPU with so many threads, trains some steps and gives their
     * last loss; NULL if that fails or the loss does not fall. */
    void *(*open)(int n_threads, double *loss);
    void (*steps)(void *model, int n);
    /* SHA-256 of the parameters, as text */
    bool (*digest)(void *model, char text[65]);
    void (*close)(void *model);
} bench_side_table;

#define BENCH_SIDE_NAME "bench_side"

#endif
