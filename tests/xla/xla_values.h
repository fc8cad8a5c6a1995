/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of every case in given types, on the judged device and on the CPU.
 */
#ifndef TRN_TESTS_XLA_VALUES_H
#define TRN_TESTS_XLA_VALUES_H

#include "tests/xla/xla_batch.h"

/* Every case that takes one of the types; with xla_use_neuron() without those
 * of xla_is_wide(). */
void xla_judge_values(int n, const trn_dtype *types);

/* Builds the outputs of a case; of a view its copy, since a kept view of an
 * input would be read from the input, and nothing computed. */
int xla_value_build(trn_context *c, const xla_job *job, trn_tensor **out);

/* Has the case f64 or i64 in it, as an index or a result too? */
bool xla_is_wide(const case_args *a);

#endif
