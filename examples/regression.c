/* SPDX-License-Identifier: Apache-2.0
 *
 * Regression: a small network learns y = sin(3 x) from 256 noisy points.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "trn.h"

#define N 256

int main(void)
{
    trn_context *c;
    float x[N], y[N];
    if (trn_open(&c, NULL) != TRN_OK)
        goto out;
    trn_tensor *noise =
        trn_normal(trn_generator_default(c), TRN_F32, 1, (int64_t[]){N});
    if (trn_tensor_read(noise, y, sizeof y) != TRN_OK)
        goto out;
    for (int i = 0; i < N; i++) {
        x[i] = -1.0f + 2.0f * (float)i / (N - 1);
        y[i] = sinf(3.0f * x[i]) + 0.05f * y[i];
    }
    int64_t shape[] = {N, 1};
    trn_loader *data =
        trn_data_tensors(c, trn_tensor_from(c, TRN_F32, 2, shape, x),
                         trn_tensor_from(c, TRN_F32, 2, shape, y), 32, NULL);
    trn_module *net = trn_nn_sequential(
        c, trn_nn_linear(c, 1, 32), trn_nn_tanh(c), trn_nn_linear(c, 32, 32),
        trn_nn_tanh(c), trn_nn_linear(c, 32, 1), NULL);
    trn_adamw_options o = TRN_ADAMW_INIT;
    o.learning_rate = 5e-3;
    o.weight_decay = 0;
    trn_optim *optim = trn_optim_adamw(net, &o);
    for (int epoch = 0; epoch < 200; epoch++) {
        trn_batch b;
        while (trn_data_next(data, &b)) {
            trn_step_begin(c);
            trn_tensor *d = trn_sub(trn_nn_forward(net, b.inputs), b.targets);
            trn_backward(trn_mean(trn_mul(d, d), TRN_ALL_AXES, false));
            trn_optim_step(optim);
            trn_step_end(c);
        }
        if (epoch % 40 == 39)
            printf("epoch %3d  mean squared error %.5f\n", epoch + 1,
                   trn_step_loss(c));
    }
out:
    if (trn_errcode(c) != TRN_OK)
        fprintf(stderr, "%s\n", trn_errmsg(c));
    return trn_close(c) == TRN_OK ? 0 : 1;
}
