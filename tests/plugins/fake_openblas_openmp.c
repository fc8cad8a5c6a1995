/* SPDX-License-Identifier: Apache-2.0
 *
 * The false OpenBLAS, on OpenMP, which is asked for the number of threads, too.
 */
#define FAKE_CONFIG "OpenBLAS 1.2.3 USE_OPENMP Paper MAX_THREADS=64"
#define FAKE_PARALLEL 2
#include "fake_openblas.h"

int omp_get_max_threads(void);
void omp_set_num_threads(int n);

static atomic_int omp_threads = 6;

EXPORT int omp_get_max_threads(void)
{
    return atomic_load(&omp_threads);
}

EXPORT void omp_set_num_threads(int n)
{
    atomic_store(&omp_threads, n);
}
