/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise kernels of the generic set, one element at a time.
 */
#include "kernels/generic/generic_kernels.h"
#include "kernels/vec_generic.h"

#define TRN__KERNEL(name) trn__generic_##name
#include "kernels/elementwise_loops.h"
