/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops that change shapes and move elements; trn/ops.h, which includes this,
 * says what is common to all ops.  Errors: NULL, as there.
 */
#ifndef TRN_OPS_SHAPE_H
#define TRN_OPS_SHAPE_H

#include "trn/types.h"

TRN_BEGIN_DECLS

/* y = x in another shape, elements in row-major order.   One dimension may be
 * -1: what is left.  A view where strides allow, else a copy. */
TRN_API trn_tensor *trn_reshape(trn_tensor *x, int rank, const int64_t *shape);
/* y[i_perm0, i_perm1, ..] = x[i_0, i_1, ..]: axis d of y is axis perm[d] of x;
 * perm has rank entries.  A view. */
TRN_API trn_tensor *trn_permute(trn_tensor *x, const int *perm);
/* trn_permute that swaps two axes.  A view. */
TRN_API trn_tensor *trn_transpose(trn_tensor *x, int axis0, int axis1);
/* y = x broadcast to shape: axes of size 1, and new ones in front, repeat.
 * A view whose elements share memory. */
TRN_API trn_tensor *trn_expand(trn_tensor *x, int rank, const int64_t *shape);
/* y = x[start : stop : step] along axis, step >= 1; negative start and stop
 * count from the end, both are cut to the size.  A view. */
TRN_API trn_tensor *trn_slice(trn_tensor *x, int axis, int64_t start,
                              int64_t stop, int64_t step);
/* y = x with `before` zeros in front, `after` behind and `interior` between
 * neighbours along axis; none negative. */
TRN_API trn_tensor *trn_pad(trn_tensor *x, int axis, int64_t before,
                            int64_t after, int64_t interior);
/* y = the n tensors one after the other along axis.   n >= 1, one shape but
 * along axis, where any may be empty; types are promoted, bools stay bool.
 * n = 0: NULL, and no context to tell. */
TRN_API trn_tensor *trn_concat(int n, trn_tensor *const *tensors, int axis);
/* trn_concat along a new axis: y[.., i, ..] = tensors[i], of one shape.   axis
 * counts in y: one of [-rank - 1, rank + 1) */
TRN_API trn_tensor *trn_stack(int n, trn_tensor *const *tensors, int axis);
/* y[.., i, ..] = x[.., n - 1 - i, ..] along axes: bit d for axis d, or
 * TRN_ALL_AXES; 0 is a copy */
TRN_API trn_tensor *trn_flip(trn_tensor *x, uint32_t axes);

TRN_END_DECLS

#endif
