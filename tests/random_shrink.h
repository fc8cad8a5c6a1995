/* SPDX-License-Identifier: Apache-2.0
 *
 * Making a failing random case smaller.
 */
#ifndef TRN_TESTS_RANDOM_SHRINK_H
#define TRN_TESTS_RANDOM_SHRINK_H

#include "random_program.h"

typedef bool (*random_fails)(const random_case *k);

/* k, which fails, becomes one with fewer steps and calls that fails, too. */
void random_shrink(random_case *k, random_fails fails);

#endif
