/* SPDX-License-Identifier: Apache-2.0
 *
 * The elementwise kernels of the generic set once more, compiled with hardware
 * FMA: the set itself is compiled without, and both must give the same bits.
 */
#include "math_functions.h"

#ifdef __FMA__
#include "kernels/vec_generic.h"

#define PROTO_UNARY(nm)                        \
    trn__unary_f32_fn math_generic_##nm##_f32; \
    trn__unary_f64_fn math_generic_##nm##_f64;
#define PROTO_BINARY(nm)                        \
    trn__binary_f32_fn math_generic_##nm##_f32; \
    trn__binary_f64_fn math_generic_##nm##_f64;
#define PROTO_COMPARE(nm)                        \
    trn__compare_f32_fn math_generic_##nm##_f32; \
    trn__compare_f64_fn math_generic_##nm##_f64;
#define PROTO_VIEW(nm)
#define PROTO_REDUCE(nm)
#define PROTO_RANDOM(nm)
#define PROTO_UPDATE(nm)
#define PROTO_SPECIAL(nm)
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    PROTO_##cls(nm)
#include "trn/ops.def"

#define TRN__KERNEL(name) math_generic_##name
#include "kernels/elementwise_loops.h"

void math_generic_fma(trn__kernel_set *s)
{
    s->name = "generic with FMA";
#define MATH(nm, inputs, draws, f32, f64)  \
    s->nm##_f32 = math_generic_##nm##_f32; \
    s->nm##_f64 = math_generic_##nm##_f64;
#include "math_bounds.def"
}
#else
void math_generic_fma(trn__kernel_set *s)
{
    (void)s;
}
#endif
