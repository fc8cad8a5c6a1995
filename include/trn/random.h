/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers: generators and draws.
 *
 * Philox4x32-10 (Salmon et al. 2011), keyed by the context's seed and the
 * generator's stream.  A generator counts its draws; element i of a draw
 * depends on seed, stream, number of the draw and i alone: not on threads,
 * device, or what other generators do.  Draws of a step that fails are taken
 * back. Errors: NULL, with the error in the context.
 */
#ifndef TRN_RANDOM_H
#define TRN_RANDOM_H

#include "trn/types.h"

TRN_BEGIN_DECLS

/* A generator of its own stream, owned by the context. */
TRN_API trn_generator *trn_generator_new(trn_context *c, uint64_t stream);

/* The context's generator of stream 0. */
TRN_API trn_generator *trn_generator_default(trn_context *c);

/* The number of draws made so far. */
TRN_API uint64_t trn_generator_draws(const trn_generator *g);

/* y ~ U[0, 1)               dtype: float.  f32: multiples of 2^-24, f64 of
 * 2^-53; bf16 and f16 are rounded from f32.  No gradient. */
TRN_API trn_tensor *trn_uniform(trn_generator *g, trn_dtype dtype, int rank,
                                const int64_t *shape);

/* y ~ N(0, 1)               dtype: float.  Box-Muller in f64, rounded once.
 * No gradient. */
TRN_API trn_tensor *trn_normal(trn_generator *g, trn_dtype dtype, int rank,
                               const int64_t *shape);

/* y ~ the integers of [low, high), each as likely (rejection: kernels/philox.h
 * states the method).   dtype: i32, i64, or 0 for i32; low < high, and
 * [low, high) within dtype: TRN_ERR_ARG.  low and high are STATIC.  No
 * gradient. */
TRN_API trn_tensor *trn_randint(trn_generator *g, trn_dtype dtype, int64_t low,
                                int64_t high, int rank, const int64_t *shape);

/* y = 0 .. n - 1 in random order, each order as likely (Fisher-Yates, in the
 * order of kernels/philox.h).   y: [n], i32 or i64 (dtype 0: i32), n >= 0.  No
 * gradient. */
TRN_API trn_tensor *trn_permutation(trn_generator *g, trn_dtype dtype,
                                    int64_t n);

/* y = 0 with probability p, else x / (1 - p)         x: float, p in [0, 1]
 * p = 0 is the identity, p = 1 gives zeros.  p is a VALUE. */
TRN_API trn_tensor *trn_dropout(trn_tensor *x, double p, trn_generator *g);

TRN_END_DECLS

#endif
