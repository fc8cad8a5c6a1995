/* SPDX-License-Identifier: Apache-2.0
 *
 * The false OpenBLAS, with threads of its own, as Debian installs it.
 */
#define FAKE_CONFIG "OpenBLAS 1.2.3 NO_AFFINITY Paper MAX_THREADS=64"
#define FAKE_PARALLEL 1
#include "fake_openblas.h"
