/* SPDX-License-Identifier: Apache-2.0
 *
 * What fused groups share with the elementwise ops: which integer kernel a row
 * has for a type.
 */
#ifndef TRN_BACKENDS_CPU_ELEMENTWISE_H
#define TRN_BACKENDS_CPU_ELEMENTWISE_H

#include "kernels/integer_kernels.h"

/* NULL for floats; bool has the kernels of u8 where they keep 0 and 1. */
const trn__integer_kernels *trn__cpu_integers(uint32_t dtype);

/* Does an element cost several times a memory access? */
bool trn__cpu_is_dear(uint32_t op);

/* NULL: none. */
trn__integer_unary_fn *trn__cpu_integer_unary(uint32_t op, uint32_t dtype);

/* NULL: none, or (division) one that can fail. */
trn__integer_binary_fn *trn__cpu_integer_binary(uint32_t op, uint32_t dtype);

/* A VALUE of add_scalar or mul_scalar as that type: floats rounded once,
 * integers truncated and wrapped. */
void trn__cpu_scalar(uint32_t dtype, double value, void *out);

#endif
