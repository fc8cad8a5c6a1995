/* SPDX-License-Identifier: Apache-2.0
 *
 * The check of index operands, shared by the index ops and cross-entropy; and
 * gather's loop.
 */
#ifndef TRN_BACKENDS_CPU_INDEX_H
#define TRN_BACKENDS_CPU_INDEX_H

#include "backends/cpu/cpu_read.h"

/*
 * TRN_OK if all of x's n elements are in [0, limit) (or equal *ignore, unless
 * ignore is NULL); else the lowest bad position is reported as input 1.
 */
int32_t trn__cpu_check_index(trn_device *dev, const trn_op_call *call,
                             const trn__cpu_reader *x, int64_t n, int64_t limit,
                             const int64_t *ignore);

/* y[.., i, ..] = from[.., index[.., i, ..], ..] along axis; indices are good,
 * and there are some. */
void trn__cpu_gather_by(trn_device *dev, const trn_arg *from, uint32_t axis,
                        const trn_arg *index, char *y);

#endif
