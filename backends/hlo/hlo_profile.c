/* SPDX-License-Identifier: Apache-2.0
 *
 * The profiles.
 *
 * "neuron" is the list of opcodes that AWS's own generator of HLO emits, and
 * the addition of floats by scatter, which the compiler's list of errors does
 * not refuse; f64 and 64-bit integers do not exist there.
 */
#include <string.h>

#include "backends/hlo/hlo_profile.h"

#define OP(name) (1ull << TRN__HLO_OP_##name)
#define TYPE(name) (1u << TRN__HLO_##name)

#define ALL_OPS ((1ull << TRN__HLO_OP_LIMIT) - 1)

/* Typed out: what is added to the list of opcodes is not allowed by itself. */
#define NEURON_OPS                                                            \
    (OP(PARAMETER) | OP(CONSTANT) | OP(TUPLE_OF) | OP(COPY) | OP(CONVERT) |   \
     OP(RESHAPE) | OP(BROADCAST) | OP(TRANSPOSE) | OP(SLICE) |                \
     OP(CONCATENATE) | OP(PAD) | OP(IOTA) | OP(SELECT) | OP(COMPARE) |        \
     OP(ADD) | OP(SUBTRACT) | OP(MULTIPLY) | OP(DIVIDE) | OP(MAXIMUM) |       \
     OP(MINIMUM) | OP(AND) | OP(OR) | OP(NOT) | OP(ABS) | OP(NEGATE) |        \
     OP(SIGN) | OP(EXP) | OP(LOG) | OP(SQRT) | OP(SIN) | OP(COS) | OP(TANH) | \
     OP(FLOOR) | OP(CEIL) | OP(ATAN2) | OP(REDUCE) | OP(DOT) | OP(GATHER) |   \
     OP(SCATTER))

#define SMALL_TYPES                                                          \
    (TYPE(PRED) | TYPE(S32) | TYPE(U8) | TYPE(U32) | TYPE(F16) | TYPE(F32) | \
     TYPE(BF16) | TYPE(TUPLE))
#define SMALL_DTYPES                                    \
    (TRN_DTYPE_BIT(TRN_F32) | TRN_DTYPE_BIT(TRN_BF16) | \
     TRN_DTYPE_BIT(TRN_F16) | TRN_DTYPE_BIT(TRN_I32) |  \
     TRN_DTYPE_BIT(TRN_U32) | TRN_DTYPE_BIT(TRN_U8) | TRN_DTYPE_BIT(TRN_BOOL))

const trn__hlo_profile trn__hlo_xla = {
    .name = "xla",
    .ops = ALL_OPS,
    .types = SMALL_TYPES | TYPE(S64) | TYPE(U64) | TYPE(F64),
    .stores = SMALL_DTYPES | TRN_DTYPE_BIT(TRN_F64) | TRN_DTYPE_BIT(TRN_I64),
    .max_size = (int64_t)1 << 53, /* sums of a few still fit */
    .integer_dot = true,
    .integer_scatter = true,
};

const trn__hlo_profile trn__hlo_neuron = {
    .name = "neuron",
    .ops = NEURON_OPS,
    .types = SMALL_TYPES,
    .stores = SMALL_DTYPES,
    .max_size = INT32_MAX,
    .random_on_host = true,
};

const trn__hlo_profile *trn__hlo_profile_named(const char *name)
{
    static const trn__hlo_profile *const all[] = {&trn__hlo_xla,
                                                  &trn__hlo_neuron};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(name, all[i]->name) == 0)
            return all[i];
    }
    return NULL;
}

bool trn__hlo_supports(const trn__hlo_profile *profile, const trn_op_call *call)
{
    static const bool is_primitive[TRN_OP_LIMIT] = {
#define PRIM true
#define COMP false
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    [id] = kind,
#include "trn/ops.def"
#undef PRIM
#undef COMP
    };
    for (uint32_t i = 0; i < call->n_in; i++) {
        if (!(TRN_DTYPE_BIT(call->in[i]->dtype) & profile->stores))
            return false;
    }
    for (uint32_t i = 0; i < call->n_out; i++) {
        if (!(TRN_DTYPE_BIT(call->out[i]->dtype) & profile->stores))
            return false;
    }
    return call->op < TRN_OP_LIMIT && is_primitive[call->op];
}
