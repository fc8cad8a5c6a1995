/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizer updates whose state is stored as it comes: nothing is below a
 * smallest number of 0.
 */
#include "kernels/free_order/free_order.h"

#define REAL float
#define SMALLEST 0.0f
#define SQRT(x) __builtin_sqrtf(x)
#define SGD trn__sgd_f32
#define ADAMW trn__adamw_f32
#define NAME(update) trn__free_##update
#define TYPED(name) name##_f32
#include "kernels/update_loops.h"
