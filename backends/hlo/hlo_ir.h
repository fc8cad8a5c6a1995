/* SPDX-License-Identifier: Apache-2.0
 *
 * A module on its way: a list of instructions, each of which uses earlier ones
 * only.  hlo_build.c makes them and infers their shapes, hlo_verify.c checks a
 * finished module on its own, hlo_encode.c and hlo_text.c write it.
 *
 * Semantics of the opcodes: "XLA operation semantics", openxla.org.
 */
#ifndef TRN_BACKENDS_HLO_IR_H
#define TRN_BACKENDS_HLO_IR_H

#include "backends/hlo/hlo.h"

#define TRN__HLO_MAX_RANK 10 /* that of a tensor, and two more on the way */

/* Element types, by the numbers of XLA's PrimitiveType. */
#define TRN__HLO_TYPE_LIST(X) \
    X(PRED, 1, "pred", 1)     \
    X(S32, 4, "s32", 4)       \
    X(S64, 5, "s64", 8)       \
    X(U8, 6, "u8", 1)         \
    X(U32, 8, "u32", 4)       \
    X(U64, 9, "u64", 8)       \
    X(F16, 10, "f16", 2)      \
    X(F32, 11, "f32", 4)      \
    X(F64, 12, "f64", 8)      \
    X(BF16, 16, "bf16", 2)

typedef enum trn__hlo_type {
#define X(name, number, text, bytes) TRN__HLO_##name = number,
    TRN__HLO_TYPE_LIST(X)
#undef X
        TRN__HLO_TUPLE = 13
} trn__hlo_type;

/*
 * Opcodes.   X(NAME, "hlo name", operands)   operands -1: any number
 *
 * What list[0..3], number and helper of an instruction hold:
 *   parameter     number: of the parameter
 *   constant      literal: a scalar's bits (its bytes, low ones first)
 *   broadcast     list[0]: to which dimension of the result each one goes
 *   transpose     list[0]: permutation; result dim d is operand's list[0][d]
 *   reverse       list[0]: the dimensions that run backwards
 *   slice         list[0] start, list[1] limit, list[2] stride
 *   concatenate   list[0][0]: the dimension
 *   pad           list[0] low, list[1] high, list[2] interior; operand 1: value
 *   iota          list[0][0]: the dimension
 *   compare       number: enum trn__hlo_direction
 *   reduce        list[0]: dimensions; operand 1: start; helper
 *   dot           list[0] lhs contracting, [1] rhs contracting, [2] lhs batch,
 *                 [3] rhs batch
 *   gather        list[0] offset_dims, [1] collapsed_slice_dims,
 *                 [2] start_index_map, [3] slice_sizes; number:
 *                 index_vector_dim
 *   scatter       list[0] update_window_dims, [1] inserted_window_dims,
 *                 [2] scatter_dims_to_operand_dims; number: index_vector_dim;
 *                 helper; operands: into, indices, updates
 *   tuple         shape.type is TUPLE: the shapes of its operands
 */
#define TRN__HLO_OP_LIST(X)                  \
    X(PARAMETER, "parameter", 0)             \
    X(CONSTANT, "constant", 0)               \
    X(TUPLE_OF, "tuple", -1)                 \
    X(COPY, "copy", 1)                       \
    X(CONVERT, "convert", 1)                 \
    X(RESHAPE, "reshape", 1)                 \
    X(BROADCAST, "broadcast", 1)             \
    X(TRANSPOSE, "transpose", 1)             \
    X(REVERSE, "reverse", 1)                 \
    X(SLICE, "slice", 1)                     \
    X(CONCATENATE, "concatenate", -1)        \
    X(PAD, "pad", 2)                         \
    X(IOTA, "iota", 0)                       \
    X(SELECT, "select", 3)                   \
    X(COMPARE, "compare", 2)                 \
    X(ADD, "add", 2)                         \
    X(SUBTRACT, "subtract", 2)               \
    X(MULTIPLY, "multiply", 2)               \
    X(DIVIDE, "divide", 2)                   \
    X(POWER, "power", 2)                     \
    X(MAXIMUM, "maximum", 2)                 \
    X(MINIMUM, "minimum", 2)                 \
    X(AND, "and", 2)                         \
    X(OR, "or", 2)                           \
    X(XOR, "xor", 2)                         \
    X(NOT, "not", 1)                         \
    X(SHIFT_LEFT, "shift-left", 2)           \
    X(SHIFT_RIGHT, "shift-right-logical", 2) \
    X(ABS, "abs", 1)                         \
    X(NEGATE, "negate", 1)                   \
    X(SIGN, "sign", 1)                       \
    X(EXP, "exponential", 1)                 \
    X(LOG, "log", 1)                         \
    X(SQRT, "sqrt", 1)                       \
    X(SIN, "sine", 1)                        \
    X(COS, "cosine", 1)                      \
    X(TANH, "tanh", 1)                       \
    X(FLOOR, "floor", 1)                     \
    X(CEIL, "ceil", 1)                       \
    X(ATAN2, "atan2", 2)                     \
    X(ERF, "erf", 1)                         \
    X(REDUCE, "reduce", 2)                   \
    X(DOT, "dot", 2)                         \
    X(GATHER, "gather", 2)                   \
    X(SCATTER, "scatter", 3)

typedef enum trn__hlo_op {
#define X(name, text, operands) TRN__HLO_OP_##name,
    TRN__HLO_OP_LIST(X)
#undef X
        TRN__HLO_OP_LIMIT
} trn__hlo_op;

/* compare: EQ NE LT LE GT GE, for numbers of the operands' type (floats: the
 * partial order of IEEE 754; NaN is unequal to all) */
#define TRN__HLO_DIRECTION_LIST(X) X(EQ) X(NE) X(LT) X(LE) X(GT) X(GE)
typedef enum trn__hlo_direction {
#define X(name) TRN__HLO_##name,
    TRN__HLO_DIRECTION_LIST(X)
#undef X
} trn__hlo_direction;

typedef struct trn__hlo_shape {
    uint32_t type; /* enum trn__hlo_type */
    uint32_t rank;
    int64_t dims[TRN__HLO_MAX_RANK];
} trn__hlo_shape;

typedef struct trn__hlo_list {
    int32_t n;
    int64_t at[TRN__HLO_MAX_RANK];
} trn__hlo_list;

typedef struct trn__hlo_inst {
    uint32_t op; /* enum trn__hlo_op */
    trn__hlo_shape shape;
    int32_t first_operand; /* in the module's list of operands */
    int32_t n_operands;
    int32_t helper; /* number of the helper computation, -1: none */
    int32_t number;
    int32_t node; /* of the graph, that it comes from; -1: of none */
    uint64_t literal;
    trn__hlo_list list[4];
} trn__hlo_inst;

/* A computation of two scalars of one type, a and b: op(a, b); COPY: b. */
typedef struct trn__hlo_helper {
    uint32_t op;
    uint32_t type;
} trn__hlo_helper;

/* Result `result` of the root takes over the memory of parameter `param`. */
typedef struct trn__hlo_alias {
    int32_t result;
    int32_t param;
} trn__hlo_alias;

typedef struct trn__hlo_module {
    const trn_host_services *host;
    trn__hlo_inst *insts; /* the root is the last one, a tuple */
    int32_t *operands;    /* numbers of instructions */
    trn__hlo_helper *helpers;
    trn__hlo_alias *aliases;
    int32_t *constants; /* instructions, each constant once */
    int32_t *params;    /* instructions, by number */
    int32_t n_constants, room_constants, room_params;
    int32_t n_insts, n_operands, n_helpers, n_aliases, n_params;
    int32_t room_insts, room_operands, room_helpers, room_aliases;
    int32_t status; /* of the first failure while building */
    char message[256];
} trn__hlo_module;

/* Instruction i's operand k, as a number of an instruction. */
static inline int32_t trn__hlo_operand(const trn__hlo_module *m,
                                       const trn__hlo_inst *inst, int32_t k)
{
    return m->operands[inst->first_operand + k];
}

const char *trn__hlo_op_text(uint32_t op);
const char *trn__hlo_type_text(uint32_t type);
uint32_t trn__hlo_type_bytes(uint32_t type); /* 0: no such type */
bool trn__hlo_is_float(uint32_t type);
bool trn__hlo_is_signed(uint32_t type);

/*
 * Checks a finished module as XLA's verifier would, and against the profile:
 * opcodes, types, operands before their use, shapes of every instruction, one
 * root, parameters numbered without gaps, each alias between equal shapes, each
 * parameter and each result aliased once at most, helpers of the right type,
 * numbers below 2^31.  True, or false with a sentence in `message`.
 */
bool trn__hlo_verify(const trn__hlo_module *m, const trn__hlo_profile *profile,
                     char *message, size_t size);

/* The module as the bytes of an HloModuleProto, from host->alloc; NULL: out of
 * memory, or a build without protobuf-c.  Equal modules give equal bytes. */
void *trn__hlo_encode(const trn__hlo_module *m, size_t *n_bytes);

/* The module as HLO text. */
void trn__hlo_write_text(const trn__hlo_module *m, trn__hlo_put put,
                         void *user);

#endif
