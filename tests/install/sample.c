/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program that links an installed libtrn looks like: a line is fitted to
 * points that lie on one.  Clean as C17 and as C++.
 */
#include <stdio.h>
#include <trn.h>

enum { N = 64, STEPS = 400 };

static double fit(trn_context *c)
{
    const int64_t shape[] = {N, 1};
    float x[N], y[N];
    for (int i = 0; i < N; i++) {
        x[i] = (float)i / N;
        y[i] = 3.0F * x[i] - 1.0F;
    }
    trn_tensor *inputs = trn_tensor_from(c, TRN_F32, 2, shape, x);
    trn_tensor *targets = trn_tensor_from(c, TRN_F32, 2, shape, y);
    trn_module *line = trn_nn_linear(c, 1, 1);
    trn_adamw_options o = TRN_ADAMW_INIT;
    o.learning_rate = 0.05;
    o.weight_decay = 0.0;
    trn_optim *optim = trn_optim_adamw(line, &o);
    for (int i = 0; i < STEPS; i++) {
        trn_step_begin(c);
        trn_tensor *d = trn_sub(trn_nn_forward(line, inputs), targets);
        trn_backward(trn_mean(trn_mul(d, d), TRN_ALL_AXES, false));
        trn_optim_step(optim);
        trn_step_end(c);
    }
    return trn_step_loss(c);
}

int main(void)
{
    trn_context *c = NULL;
    double loss = 1.0;
    if (trn_open(&c, NULL) == TRN_OK)
        loss = fit(c);
    if (trn_errcode(c) != TRN_OK)
        fprintf(stderr, "%s\n", trn_errmsg(c));
    else
        printf("libtrn %s: loss %s\n", trn_version(),
               loss < 1e-6 ? "below 1e-6" : "too large");
    return trn_close(c) == TRN_OK && loss < 1e-6 ? 0 : 1;
}
