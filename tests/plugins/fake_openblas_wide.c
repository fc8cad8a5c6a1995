/* SPDX-License-Identifier: Apache-2.0
 *
 * The false OpenBLAS, with integers of 64 bits.
 */
#define FAKE_CONFIG "OpenBLAS 1.2.3  USE64BITINT Paper MAX_THREADS=64"
#define FAKE_PARALLEL 1
#include "fake_openblas.h"
