/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizer updates of the generic set: the loops of update_loops.h as this
 * folder's flags compile them.
 */
#include "kernels/generic/generic_kernels.h"

#define REAL float
#define SMALLEST 0x1p-126f
#define SQRT(x) __builtin_sqrtf(x)
#define SGD trn__sgd_f32
#define ADAMW trn__adamw_f32
#define NAME(update) trn__generic_##update##_f32
#define TYPED(name) name##_f32
#include "kernels/update_loops.h"

#define REAL double
#define SMALLEST 0x1p-1022
#define SQRT(x) __builtin_sqrt(x)
#define SGD trn__sgd_f64
#define ADAMW trn__adamw_f64
#define NAME(update) trn__generic_##update##_f64
#define TYPED(name) name##_f64
#include "kernels/update_loops.h"
