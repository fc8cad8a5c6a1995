/* SPDX-License-Identifier: Apache-2.0
 *
 * libtrn: tensors, gradients, modules, optimizers and data for training from C.
 * This header pulls in all others; trn/backend.h is for devices.
 */
#ifndef TRN_H
#define TRN_H

#include "trn/version.h"
#include "trn/types.h"
#include "trn/context.h"
#include "trn/tensor.h"
#include "trn/ops.h"
#include "trn/random.h"
#include "trn/autograd.h"
#include "trn/step.h"
#include "trn/nn.h"
#include "trn/optim.h"
#include "trn/data.h"
#include "trn/checkpoint.h"

#endif
