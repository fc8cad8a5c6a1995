/* SPDX-License-Identifier: Apache-2.0
 *
 * Ids and STATIC attributes of the ops, expanded from ops.def: the enum
 * TRN_OP_<name> and one struct trn_<attrs>_attrs per kind of attributes.
 * Devices read them; programs call the functions of ops.h instead.
 */
#ifndef TRN_ATTRS_H
#define TRN_ATTRS_H

#include "trn/types.h"

/* A shape: dim[0 .. rank-1]; the rest is 0. */
typedef struct trn_dims {
    int64_t rank;
    int64_t dim[TRN_MAX_RANK];
} trn_dims;

/* A list of axes: axis[0 .. rank-1]; the rest is 0. */
typedef struct trn_axes {
    int32_t rank;
    int32_t axis[TRN_MAX_RANK];
} trn_axes;

/* reduction of losses */
typedef enum trn_reduction {
    TRN_REDUCE_MEAN = 0,
    TRN_REDUCE_SUM = 1,
    TRN_REDUCE_NONE = 2
} trn_reduction;

typedef enum trn_op {
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    TRN_OP_##nm = id,
#include "trn/ops.def"
    TRN_OP_LIMIT = 256 /* every id is below, also of rows to come */
} trn_op;

/* One past the highest id of this header: the size of the largest member. */
union trn__op_ids {
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    char of_##nm[(id) + 1];
#include "trn/ops.def"
};
enum { TRN_OP_KNOWN = (int)sizeof(union trn__op_ids) };

/* Padding bytes of these structs are zero, so they compare by memcmp; a kind
 * without STATIC fields has one unused byte, as C wants a member. */
#define STATIC(type, field) type field;
#define VALUE(field)
#define TRN_ATTRS(nm, fields)               \
    typedef struct trn_##nm##_attrs {       \
        fields uint8_t end_of_##nm##_attrs; \
    } trn_##nm##_attrs;
#include "trn/ops.def"
#undef STATIC
#undef VALUE

#endif
