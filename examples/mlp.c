/* SPDX-License-Identifier: Apache-2.0
 *
 * An MLP on images and labels in IDX files (MNIST and its kin).
 *
 *   mlp IMAGES LABELS [N_TRAIN [N_TEST [EPOCHS [SEED]]]]
 *
 * The first N_TRAIN images are for training, the last N_TEST for testing.
 */
#include <stdio.h>
#include <stdlib.h>

#include "trn.h"

static int64_t argument(int argc, char **argv, int i, int64_t otherwise)
{
    return i < argc ? strtoll(argv[i], NULL, 10) : otherwise;
}

static int64_t right_answers(trn_context *c, trn_module *net, trn_loader *test)
{
    int64_t right = 0;
    trn_batch b;
    trn_nn_train(net, false);
    while (trn_data_next(test, &b)) {
        trn_step_begin(c);
        trn_tensor *guess = trn_argmax(trn_nn_forward(net, b.inputs), 1);
        trn_tensor *hits =
            trn_keep(trn_sum(trn_equal(guess, b.targets), TRN_ALL_AXES, false));
        trn_step_end(c);
        right += (int64_t)trn_tensor_item(hits);
        trn_tensor_release(hits);
    }
    trn_nn_train(net, true);
    return right;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: mlp IMAGES LABELS [N_TRAIN [N_TEST [EPOCHS "
                        "[SEED]]]]\n");
        return 2;
    }
    int64_t n_train = argument(argc, argv, 3, 8000);
    int64_t n_test = argument(argc, argv, 4, 2000);
    int64_t epochs = argument(argc, argv, 5, 10);
    trn_context *c;
    trn_options options = TRN_OPTIONS_INIT;
    options.seed = (uint64_t)argument(argc, argv, 6, 1);
    if (trn_open(&c, &options) != TRN_OK)
        goto out;
    trn_loader_options first = TRN_LOADER_INIT, last = TRN_LOADER_INIT;
    first.count = n_train;
    last.first = n_train;
    last.count = n_test;
    last.shuffle = false;
    trn_loader *data = trn_data_idx(c, argv[1], argv[2], 64, &first);
    trn_loader *test = trn_data_idx(c, argv[1], argv[2], 500, &last);
    trn_module *net = trn_nn_sequential(c, trn_nn_linear(c, 784, 256),
                                        trn_nn_relu(c), trn_nn_dropout(c, 0.2),
                                        trn_nn_linear(c, 256, 10), NULL);
    trn_optim *optim = trn_optim_adamw(net, NULL);
    for (int64_t epoch = 1; epoch <= epochs && !trn_errcode(c); epoch++) {
        trn_batch b;
        while (trn_data_next(data, &b)) {
            trn_step_begin(c);
            trn_backward(trn_cross_entropy(trn_nn_forward(net, b.inputs),
                                           b.targets, NULL));
            trn_optim_step(optim);
            trn_step_end(c);
        }
        printf("epoch %lld  loss %.4f  accuracy %.2f %%\n", (long long)epoch,
               trn_step_loss(c),
               100.0 * (double)right_answers(c, net, test) /
                   (double)trn_data_samples(test));
    }
out:
    if (trn_errcode(c) != TRN_OK)
        fprintf(stderr, "%s\n", trn_errmsg(c));
    return trn_close(c) == TRN_OK ? 0 : 1;
}
