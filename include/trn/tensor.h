/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors: making, reading, writing, owning them.
 *
 * A tensor has an element type, a shape (rank 0 to TRN_MAX_RANK; a dimension
 * may be 0), strides and a share in some memory of its context's device.
 *
 * Ownership.  What is made inside an open step ends with it, unless trn_keep()
 * moved it out; what is made outside belongs to the context.  Nothing has to be
 * freed; trn_tensor_release() gives memory back earlier.
 *
 * Error forms.  Functions that return trn_tensor * give NULL and leave the
 * error in the context; those that return trn_status return it; the plain
 * questions (rank, dim, ...) answer 0 for NULL.
 */
#ifndef TRN_TENSOR_H
#define TRN_TENSOR_H

#include "trn/types.h"

TRN_BEGIN_DECLS

/* ---- making ---- */

/*
 * All zeros.   y: shape, dtype
 *
 * Errors: TRN_ERR_ARG (rank outside [0, 8], a negative dimension, a size that
 * overflows), TRN_ERR_DTYPE (the device does not store it), TRN_ERR_NOMEM.
 */
TRN_API trn_tensor *trn_tensor_zeros(trn_context *c, trn_dtype dtype, int rank,
                                     const int64_t *shape);

/* A copy of row-major data of the given dtype and shape, taken before return.
 * Errors: as trn_tensor_zeros; TRN_ERR_ARG if data is NULL and the size is
 * not 0. */
TRN_API trn_tensor *trn_tensor_from(trn_context *c, trn_dtype dtype, int rank,
                                    const int64_t *shape, const void *data);

/* A rank-0 tensor of a float type.   y: [] */
TRN_API trn_tensor *trn_tensor_scalar(trn_context *c, trn_dtype dtype,
                                      double value);

/* Called once when the library has no more use for wrapped memory. */
typedef void (*trn_release_fn)(void *user, void *data);

/*
 * A tensor over the caller's memory, without a copy where the device allows.
 *
 * The memory must not change until `release` (may be NULL) is called.  The
 * tensor cannot be written to.  data must be aligned to its element size.
 * On failure release is not called.  Errors: as trn_tensor_from.
 */
TRN_API trn_tensor *trn_tensor_wrap(trn_context *c, trn_dtype dtype, int rank,
                                    const int64_t *shape, const void *data,
                                    trn_release_fn release, void *user);

/* ---- owning ---- */

/* Moves a tensor of the open step out of it, to the context; returns it. */
TRN_API trn_tensor *trn_keep(trn_tensor *t);

/* One more reference, which outlives steps; returns t. */
TRN_API trn_tensor *trn_tensor_retain(trn_tensor *t);

/* Gives a reference back: one of trn_tensor_retain's, else the one that the
 * step or the context holds.  NULL is allowed. */
TRN_API void trn_tensor_release(trn_tensor *t);

/* ---- data in and out ---- */

/*
 * Copies row-major data into t, or out of it.  `bytes` must be exactly the
 * tensor's size: numel * trn_dtype_size.  Strided tensors are handled.
 *
 * A write counts as an in-place change (trn_tensor_version).
 * Errors: TRN_ERR_ARG (bytes wrong, data NULL), TRN_ERR_STATE (write to
 * wrapped memory, or to a tensor that a gradient is recorded for).
 */
TRN_API trn_status trn_tensor_write(trn_tensor *t, const void *data,
                                    size_t bytes);
TRN_API trn_status trn_tensor_read(trn_tensor *t, void *data, size_t bytes);

/* The value of a one-element tensor as a double; NaN on error (pending). */
TRN_API double trn_tensor_item(trn_tensor *t);

/*
 * The tensor's elements as host memory, row-major, for reading until
 * trn_tensor_unmap().  A contiguous tensor on a device that shares the host's
 * memory is not copied.  One map per tensor at a time.
 * Errors: NULL, TRN_ERR_STATE (mapped already), TRN_ERR_NOMEM.
 */
TRN_API const void *trn_tensor_map(trn_tensor *t);
TRN_API trn_status trn_tensor_unmap(trn_tensor *t);

/* ---- questions ---- */

TRN_API trn_context *trn_tensor_context(const trn_tensor *t);
TRN_API trn_dtype trn_tensor_dtype(const trn_tensor *t);
TRN_API int trn_tensor_rank(const trn_tensor *t);
/* Dimension or stride (in elements) of an axis; negative counts from the end;
 * 0 if there is no such axis. */
TRN_API int64_t trn_tensor_dim(const trn_tensor *t, int axis);
TRN_API int64_t trn_tensor_stride(const trn_tensor *t, int axis);
TRN_API int64_t trn_tensor_numel(const trn_tensor *t);
TRN_API bool trn_tensor_is_contiguous(const trn_tensor *t);

/* Number of in-place changes of the memory that t has a share in. */
TRN_API uint64_t trn_tensor_version(const trn_tensor *t);

/* "f32[64,784]" into text (cut to size); returns text. */
TRN_API const char *trn_tensor_describe(const trn_tensor *t, char *text,
                                        size_t size);

TRN_END_DECLS

#endif
