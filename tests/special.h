/* SPDX-License-Identifier: Apache-2.0
 *
 * Infinity and NaN as doubles, which functions with any number of arguments
 * want.  Not for files that also have HLO's list of opcodes: it has a NOT.
 */
#ifndef TRN_TESTS_SPECIAL_H
#define TRN_TESTS_SPECIAL_H

#include <math.h>

#define INF ((double)INFINITY)
#define NOT ((double)NAN)

#endif
