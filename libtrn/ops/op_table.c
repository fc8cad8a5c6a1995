/* SPDX-License-Identifier: Apache-2.0
 *
 * The op table, expanded from ops.def.
 */
#include "libtrn/ops/op_table.h"

#define INFER_UNARY(nm) trn__infer_unary
#define INFER_BINARY(nm) trn__infer_binary
#define INFER_COMPARE(nm) trn__infer_compare
#define INFER_REDUCE(nm) trn__infer_reduce
#define INFER_UPDATE(nm) trn__infer_update
#define INFER_VIEW(nm) trn__infer_##nm
#define INFER_RANDOM(nm) trn__infer_##nm
#define INFER_SPECIAL(nm) trn__infer_##nm

#define VIEW_UNARY(nm) NULL
#define VIEW_BINARY(nm) NULL
#define VIEW_COMPARE(nm) NULL
#define VIEW_REDUCE(nm) NULL
#define VIEW_UPDATE(nm) NULL
#define VIEW_VIEW(nm) trn__view_##nm
#define VIEW_RANDOM(nm) NULL
#define VIEW_SPECIAL(nm) NULL

#define DECOMPOSE_PRIM(nm) NULL
#define DECOMPOSE_COMP(nm) trn__decompose_##nm

#define GRAD_NODIFF(nm) NULL
#define GRAD_DIFF_N(nm) trn__grad_##nm
#define GRAD_DIFF_X(nm) trn__grad_##nm
#define GRAD_DIFF_X0(nm) trn__grad_##nm
#define GRAD_DIFF_X1(nm) trn__grad_##nm
#define GRAD_DIFF_Y(nm) trn__grad_##nm
#define GRAD_DIFF_XY(nm) trn__grad_##nm

#define SAVES_NODIFF 0
#define SAVES_DIFF_N 0
#define SAVES_DIFF_X 0x0f
#define SAVES_DIFF_X0 0x01
#define SAVES_DIFF_X1 0x02
#define SAVES_DIFF_Y TRN__SAVE_OUT
#define SAVES_DIFF_XY (0x0f | TRN__SAVE_OUT)

#define IS_DIFF_NODIFF false
#define IS_DIFF_DIFF_N true
#define IS_DIFF_DIFF_X true
#define IS_DIFF_DIFF_X0 true
#define IS_DIFF_DIFF_X1 true
#define IS_DIFF_DIFF_Y true
#define IS_DIFF_DIFF_XY true

/* VALUES_<attrs>: how many VALUE attributes that kind has. */
#define STATIC(type, field)
#define VALUE(field) +1
enum {
#define TRN_ATTRS(nm, fields) VALUES_##nm = 0 fields,
#include "trn/ops.def"
};
#undef STATIC
#undef VALUE

#define TRN_ATTRS(nm, fields)                                  \
    _Static_assert(sizeof(trn_##nm##_attrs) <= TRN__MAX_ATTRS, \
                   "attributes " #nm " do not fit a record");  \
    _Static_assert((int)VALUES_##nm <= TRN__MAX_VALUES,        \
                   "values of " #nm " do not fit a record");
#include "trn/ops.def"

const trn__op_info trn__ops[TRN_OP_LIMIT] = {
#define TRN_OP(id, nm, class_, n, writes_, attrs_, kind, grad_, dom, text) \
    [id] = {                                                               \
        .name = #nm,                                                       \
        .cls = TRN__CLASS_##class_,                                        \
        .n_in = n,                                                         \
        .writes = writes_,                                                 \
        .n_values = VALUES_##attrs_,                                       \
        .attrs_size = (uint32_t)sizeof(trn_##attrs_##_attrs),              \
        .differentiable = IS_DIFF_##grad_,                                 \
        .saves = SAVES_##grad_,                                            \
        .infer = INFER_##class_(nm),                                       \
        .view = VIEW_##class_(nm),                                         \
        .decompose = DECOMPOSE_##kind(nm),                                 \
        .grad = GRAD_##grad_(nm),                                          \
        .attrs = #attrs_,                                                  \
        .domain = #dom,                                                    \
        .formula = text,                                                   \
    },
#include "trn/ops.def"
};
