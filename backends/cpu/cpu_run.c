/* SPDX-License-Identifier: Apache-2.0
 *
 * From op ids to functions, and from rows to the loops of the kernel set.
 *
 * Both are expansions of ops.def: a primitive that has no trn__cpu_<op> fails
 * the link, which names it.  Composites need none; those with a fused kernel
 * are listed by hand, the others run as their decomposition.
 */
#include "backends/cpu/cpu.h"

#define RUN_UNARY(nm) [TRN_OP_##nm] = trn__cpu_unary,
#define RUN_BINARY(nm) [TRN_OP_##nm] = trn__cpu_binary,
#define RUN_COMPARE(nm) [TRN_OP_##nm] = trn__cpu_compare,
#define RUN_VIEW(nm)
#define RUN_REDUCE(nm) RUN_FUSED(nm)
#define RUN_RANDOM(nm) RUN_FUSED(nm)
#define RUN_UPDATE(nm) RUN_FUSED(nm)
#define RUN_SPECIAL(nm) RUN_FUSED(nm)
#define RUN_FUSED(nm) [TRN_OP_##nm] = trn__cpu_##nm,
#define RUN_PRIM(nm, cls) RUN_##cls(nm)
#define RUN_COMP(nm, cls)

static trn__cpu_fn *const run_table[TRN_OP_LIMIT] = {
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    RUN_##kind(nm, cls)
#include "trn/ops.def"
    /* Composites with a fused kernel. */
    RUN_FUSED(dropout) RUN_FUSED(softmax) RUN_FUSED(log_softmax)
        RUN_FUSED(cross_entropy) RUN_FUSED(cross_entropy_grad)
            RUN_FUSED(sgd_update) RUN_FUSED(sgd_momentum_update)
                RUN_FUSED(adamw_update) RUN_FUSED(concat)
                    RUN_FUSED(index_select) RUN_FUSED(one_hot) RUN_FUSED(min)
    /* Composites that are element by element. */
    RUN_UNARY(abs) RUN_UNARY(sign) RUN_UNARY(ceil) RUN_UNARY(round)
        RUN_UNARY(trunc) RUN_UNARY(rsqrt) RUN_UNARY(silu) RUN_BINARY(minimum)
            RUN_COMPARE(less) RUN_COMPARE(less_equal) RUN_COMPARE(greater_equal)
                RUN_COMPARE(not_equal)};

#define LOOPS_UNARY(nm)                                    \
    dev->loops[TRN_OP_##nm].unary_f32 = dev->set.nm##_f32; \
    dev->loops[TRN_OP_##nm].unary_f64 = dev->set.nm##_f64;
#define LOOPS_BINARY(nm)                                    \
    dev->loops[TRN_OP_##nm].binary_f32 = dev->set.nm##_f32; \
    dev->loops[TRN_OP_##nm].binary_f64 = dev->set.nm##_f64;
#define LOOPS_COMPARE(nm)                                    \
    dev->loops[TRN_OP_##nm].compare_f32 = dev->set.nm##_f32; \
    dev->loops[TRN_OP_##nm].compare_f64 = dev->set.nm##_f64;
#define LOOPS_VIEW(nm)
#define LOOPS_REDUCE(nm)
#define LOOPS_RANDOM(nm)
#define LOOPS_UPDATE(nm)
#define LOOPS_SPECIAL(nm)

void trn__cpu_fill_loops(trn_device *dev)
{
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    LOOPS_##cls(nm)
#include "trn/ops.def"
}

bool trn__cpu_supports(trn_device *dev, const trn_op_call *call)
{
    (void)dev;
    return call->op < TRN_OP_LIMIT && run_table[call->op] != NULL;
}

int32_t trn__cpu_run_op(trn_device *dev, const trn_op_call *call)
{
    if (call->op >= TRN_OP_LIMIT || run_table[call->op] == NULL)
        return dev->host->fail(dev->host->host, TRN_ERR_UNSUPPORTED,
                               "the CPU device has no kernel for this op");
    return run_table[call->op](dev, call);
}
