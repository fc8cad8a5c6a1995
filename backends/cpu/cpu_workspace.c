/* SPDX-License-Identifier: Apache-2.0
 *
 * Workspace: from the block of the execution that is running, else from the
 * host.
 *
 * Pieces are freed in reverse order, so the block needs one number: up to where
 * it is taken.  A piece that does not fit (the host has other threads now than
 * when the step was compiled) comes from the host, too.
 */
#include "backends/cpu/cpu_workspace.h"

static bool in_block(const trn__cpu_block *block, const void *memory)
{
    const uintptr_t at = (uintptr_t)memory, begin = (uintptr_t)block->memory;
    return block->memory != NULL && at >= begin && at - begin < block->bytes;
}

void *trn__cpu_work_alloc(trn_device *dev, size_t bytes)
{
    trn__cpu_block *block = &dev->work;
    const size_t left = block->bytes - block->taken;
    if (block->memory == NULL || bytes > left || trn__cpu_up64(bytes) > left)
        return trn__cpu_alloc(dev, bytes);
    void *memory = block->memory + block->taken;
    block->taken += trn__cpu_up64(bytes);
    return memory;
}

void trn__cpu_work_free(trn_device *dev, void *memory)
{
    trn__cpu_block *block = &dev->work;
    if (in_block(block, memory))
        block->taken = (size_t)((char *)memory - block->memory);
    else
        trn__cpu_free(dev, memory);
}

size_t trn__cpu_workspace(trn_device *dev, const trn_op_call *call)
{
    switch (call->op) {
    case TRN_OP_matmul:
        return trn__cpu_matmul_workspace(dev, call);
    case TRN_OP_embedding_grad:
    case TRN_OP_scatter_add:
        return trn__cpu_sums_workspace(call);
    case TRN_OP_cross_entropy:
        return trn__cpu_loss_workspace(call);
    default:
        return 0;
    }
}
