/* SPDX-License-Identifier: Apache-2.0
 *
 * Making instructions.  Each call infers the shape of its result and gives its
 * number; -1 after a failure, which stays in m->status, and -1 as an operand
 * passes through, so calls can be nested without a test.
 */
#ifndef TRN_BACKENDS_HLO_BUILD_H
#define TRN_BACKENDS_HLO_BUILD_H

#include "backends/hlo/hlo_ir.h"

void trn__hlo_module_init(trn__hlo_module *m, const trn_host_services *host);
void trn__hlo_module_free(trn__hlo_module *m);

/* Leaves the first failure; gives -1. */
int32_t trn__hlo_fail(trn__hlo_module *m, int32_t status, const char *message);

/* The shape of instruction i; of -1 that of a scalar without a type. */
trn__hlo_shape trn__hlo_shape_of(const trn__hlo_module *m, int32_t i);
trn__hlo_shape trn__hlo_array(uint32_t type, uint32_t rank,
                              const int64_t *dims);
int64_t trn__hlo_numel(const trn__hlo_shape *s);

/* A new instruction with its operands, for the makers below; NULL if one is
 * missing.  And its number. */
trn__hlo_inst *trn__hlo_add(trn__hlo_module *m, uint32_t op, int32_t n,
                            const int32_t *x, const trn__hlo_shape *shape);
int32_t trn__hlo_number_of(const trn__hlo_module *m, const trn__hlo_inst *inst);
/* The number of the helper computation; made if there is none yet. */
int32_t trn__hlo_helper_of(trn__hlo_module *m, uint32_t op, uint32_t type);

int32_t trn__hlo_parameter(trn__hlo_module *m, const trn__hlo_shape *shape);
/* A scalar of these bits; of this number, exactly representable in type. */
int32_t trn__hlo_bits(trn__hlo_module *m, uint32_t type, uint64_t bits);
int32_t trn__hlo_number(trn__hlo_module *m, uint32_t type, double value);
/* A scalar everywhere; a number everywhere, in the type and shape of x. */
int32_t trn__hlo_splat(trn__hlo_module *m, int32_t scalar,
                       const trn__hlo_shape *shape);
int32_t trn__hlo_like(trn__hlo_module *m, double value, int32_t x);

int32_t trn__hlo_unary(trn__hlo_module *m, uint32_t op, int32_t x);
int32_t trn__hlo_binary(trn__hlo_module *m, uint32_t op, int32_t a, int32_t b);
int32_t trn__hlo_compare(trn__hlo_module *m, trn__hlo_direction direction,
                         int32_t a, int32_t b);
int32_t trn__hlo_select(trn__hlo_module *m, int32_t condition, int32_t a,
                        int32_t b);
/* x itself if it has that type */
int32_t trn__hlo_convert(trn__hlo_module *m, uint32_t type, int32_t x);
/* x itself if it has that shape */
int32_t trn__hlo_reshape(trn__hlo_module *m, int32_t x, uint32_t rank,
                         const int64_t *dims);
/* x with one dimension */
int32_t trn__hlo_flat(trn__hlo_module *m, int32_t x);
/* dimension d of x becomes dimension map[d] of the result; rising */
int32_t trn__hlo_broadcast(trn__hlo_module *m, int32_t x, uint32_t rank,
                           const int64_t *dims, const int64_t *map);
int32_t trn__hlo_transpose(trn__hlo_module *m, int32_t x, const int64_t *perm);
/* x backwards along the dimensions of `mask`; x itself if there are none */
int32_t trn__hlo_reverse(trn__hlo_module *m, int32_t x, uint32_t mask);
int32_t trn__hlo_slice(trn__hlo_module *m, int32_t x, const int64_t *start,
                       const int64_t *limit, const int64_t *stride);
/* x[begin, end) of a rank-1 x */
int32_t trn__hlo_range(trn__hlo_module *m, int32_t x, int64_t begin,
                       int64_t end);
int32_t trn__hlo_pad(trn__hlo_module *m, int32_t x, int32_t value,
                     const int64_t *low, const int64_t *high,
                     const int64_t *interior);
int32_t trn__hlo_iota(trn__hlo_module *m, uint32_t type, uint32_t rank,
                      const int64_t *dims, int64_t dim);
int32_t trn__hlo_concatenate(trn__hlo_module *m, int32_t n, const int32_t *x,
                             int64_t dim);
/* over the dimensions of `mask`, which vanish */
int32_t trn__hlo_reduce(trn__hlo_module *m, uint32_t op, int32_t x,
                        uint32_t mask, int32_t start);
typedef struct trn__hlo_dot_dims {
    trn__hlo_list lhs_contracting, rhs_contracting, lhs_batch, rhs_batch;
} trn__hlo_dot_dims;
int32_t trn__hlo_dot(trn__hlo_module *m, uint32_t type, int32_t lhs,
                     int32_t rhs, const trn__hlo_dot_dims *dims);
/* Rows of x by index[n]: result [n, the rest of x]. */
int32_t trn__hlo_gather_rows(trn__hlo_module *m, int32_t x, int32_t index);
/* into with update[i] added to row index[i], in the order of i. */
int32_t trn__hlo_scatter_rows(trn__hlo_module *m, int32_t into, int32_t index,
                              int32_t updates);
int32_t trn__hlo_tuple(trn__hlo_module *m, int32_t n, const int32_t *x);

void trn__hlo_add_alias(trn__hlo_module *m, int32_t result, int32_t param);

#endif
