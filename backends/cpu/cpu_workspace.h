/* SPDX-License-Identifier: Apache-2.0
 *
 * Workspace: memory that an op takes while it runs, and how much it will be.
 *
 * An execution brings a block for the workspaces of its ops, whose size compile
 * has found by the same expressions; eager ops take theirs from the host.  What
 * is taken is freed in reverse order, before the op ends.
 */
#ifndef TRN_BACKENDS_CPU_WORKSPACE_H
#define TRN_BACKENDS_CPU_WORKSPACE_H

#include "backends/cpu/cpu.h"

/* 64-byte aligned; NULL: out of memory. */
void *trn__cpu_work_alloc(trn_device *dev, size_t bytes);
void trn__cpu_work_free(trn_device *dev, void *memory);

/* The most that a call takes at once, each piece rounded up. */
size_t trn__cpu_workspace(trn_device *dev, const trn_op_call *call);

/* Of single families; cpu_matmul.c, cpu_index.c, cpu_cross_entropy.c. */
size_t trn__cpu_matmul_workspace(trn_device *dev, const trn_op_call *call);
size_t trn__cpu_sums_workspace(const trn_op_call *call);
size_t trn__cpu_loss_workspace(const trn_op_call *call);

/* What a piece of a block takes. */
static inline size_t trn__cpu_up64(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

#endif
