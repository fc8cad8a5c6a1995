/* SPDX-License-Identifier: Apache-2.0
 *
 * First and second gradients of a case as outputs of a job.
 *
 * First: of sum(seed y) with respect to each input.  Second: of
 * S = sum_i weight_i g_i, where g_i are the first gradients, with respect to
 * the inputs and to the seed.
 */
#ifndef TRN_TESTS_XLA_GRADIENTS_H
#define TRN_TESTS_XLA_GRADIENTS_H

#include "tests/xla/xla_batch.h"

/* Has the row gradients?  (A cast to an integer type has none.) */
bool xla_has_gradients(const op_case *tc);

/* Draws seed and weights; c is used to ask for the output's shape. */
void xla_gradient_draw(trn_context *c, xla_job *job);

/* Builds the outputs: first gradients, then second ones. */
int xla_gradient_build(trn_context *c, const xla_job *job, trn_tensor **out);

/* Every case that has gradients, in that type, on the judged device and on the
 * CPU; with xla_use_neuron() without those of xla_is_wide(). */
void xla_judge_gradients(trn_dtype dtype);

#endif
