/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of the models of xla_model.h by XLA and on the CPU device.
 */
#ifndef TRN_TESTS_XLA_STEPS_H
#define TRN_TESTS_XLA_STEPS_H

#include "trn.h"

/* The first 100 losses of each model's run. */
void xla_judge_runs(trn_dtype dtype);
/* 100 single steps of each model from the CPU's parameters and moments: losses
 * and gradients. */
void xla_judge_single_steps(trn_dtype dtype);

#endif
