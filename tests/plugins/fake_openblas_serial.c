/* SPDX-License-Identifier: Apache-2.0
 *
 * The false OpenBLAS, without threads, which several may not call at once.
 */
#define FAKE_CONFIG "OpenBLAS 1.2.3 Paper SINGLE_THREADED"
#define FAKE_PARALLEL 0
#include "fake_openblas.h"
