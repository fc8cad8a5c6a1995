/* SPDX-License-Identifier: Apache-2.0
 *
 * What a context opens, in order; it closes in the reverse order.
 */
#include "libtrn/graph/tape.h"
#include "libtrn/ops/capture.h"
#include "libtrn/ops/randoms.h"
#include "libtrn/ops/step.h"

const trn__layer *const trn__layers[] = {
    &trn__tensor_layer,  &trn__tape_layer,    &trn__step_layer,
    &trn__capture_layer, &trn__randoms_layer,
};
const int trn__n_layers = (int)(sizeof trn__layers / sizeof trn__layers[0]);
