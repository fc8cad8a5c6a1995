/* SPDX-License-Identifier: Apache-2.0
 *
 * An entry `supports` of devices that take primitives alone.
 */
#ifndef TRN_TESTS_PRIMITIVES_H
#define TRN_TESTS_PRIMITIVES_H

#include "trn/backend.h"

static inline bool takes_primitives(trn_device *device, const trn_op_call *call)
{
    (void)device;
    switch (call->op) {
#define PRIM(nm) case TRN_OP_##nm:
#define COMP(nm)
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    kind(nm)
#include "trn/ops.def"
#undef PRIM
#undef COMP
        return true;
    default:
        return false;
    }
}

#endif
