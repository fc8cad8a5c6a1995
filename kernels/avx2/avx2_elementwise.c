/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise kernels of the AVX2+FMA set: 8 lanes of f32, 4 of f64, a masked
 * tail.
 */
#include "kernels/avx2/avx2_kernels.h"
#include "kernels/vec_avx2.h"

#define TRN__KERNEL(name) trn__avx2_##name
#include "kernels/elementwise_loops.h"
