/* SPDX-License-Identifier: Apache-2.0
 *
 * How far a program's outputs go when every value in it is off by what its op's
 * bound allows.
 */
#ifndef TRN_TESTS_XLA_SHAKE_H
#define TRN_TESTS_XLA_SHAKE_H

#include "tests/xla/xla_record.h"

/* Runs the program some more times on the CPU, where each element that was
 * rounded is moved, at random, by its node's bound or one ulp, whichever is
 * more.  moved[i]: the farthest that output i went, over all its elements.
 * False: a bool or an integer in the program changed, or an infinity or NaN
 * came or went. */
bool xla_shake(trn_context *c, const xla_program *p, double *moved);

#endif
