/* SPDX-License-Identifier: Apache-2.0
 *
 * From a checked call to a device: which way it goes, and going it.
 */
#ifndef TRN_LIBTRN_DISPATCH_H
#define TRN_LIBTRN_DISPATCH_H

#include "libtrn/graph/tape.h"

/* How a device gets a call done; decided in one function, trn__way(). */
typedef enum trn__way {
    TRN__WAY_NATIVE,    /* its run_op takes it */
    TRN__WAY_DECOMPOSE, /* it takes the primitives that the op is made of */
    TRN__WAY_NONE       /* an error that names op and device */
} trn__way;

/* Where a call's operands stand, for the device. */
typedef struct trn__operands {
    trn_op_call call;
    const trn_arg *in[TRN__MAX_IN];
    const trn_arg *out[1];
    trn_op_report report;
} trn__operands;

/* Fills o with what `supports` may look at; o must not move afterwards. */
void trn__operands_fill(trn__operands *o, const trn__call *k);

/* Op ids of the table as it was frozen: those of a device that names none. */
#define TRN__OPS_OF_THE_FREEZE 94u

/* Was the device built with this op?  If not, it is never given to it. */
bool trn__knows(const trn_backend *b, uint32_t op);

/* ... and does it take this call?  `question` has no values, draws, report. */
bool trn__takes(const trn_backend *b, trn_device *device,
                const trn_op_call *question);

/* composite: the row has a decomposition */
trn__way trn__way_of(trn_context *c, const trn__operands *o, bool composite);

/* Raises what a device reported about the op `name`. */
trn_status trn__raise_report(trn_context *c, const char *name,
                             const trn_op_report *r, trn_status status);

/* Runs the call natively; raises what the device reports, naming the op. */
trn_status trn__run(const trn__call *k, const char *name, trn__operands *o);

#endif
