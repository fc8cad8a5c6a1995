/* SPDX-License-Identifier: Apache-2.0
 *
 * What a device's compiler may be given.
 */
#ifndef TRN_BACKENDS_HLO_PROFILE_H
#define TRN_BACKENDS_HLO_PROFILE_H

#include "backends/hlo/hlo_ir.h"

struct trn__hlo_profile {
    const char *name;
    uint64_t ops;         /* bit of each enum trn__hlo_op */
    uint32_t types;       /* bit of each enum trn__hlo_type */
    uint32_t stores;      /* TRN_DTYPE_BITs of tensors */
    int64_t max_size;     /* of a dimension, and of a tensor's elements */
    bool random_on_host;  /* draws are parameters with the values */
    bool integer_dot;     /* dot of integers */
    bool integer_scatter; /* scatter that adds integers */
};

extern const trn__hlo_profile trn__hlo_xla, trn__hlo_neuron;

#endif
