/* SPDX-License-Identifier: Apache-2.0
 *
 * `trn graph`: prints the captured step of a small model that is built in.
 *
 * One training step of an embedding and two linear layers, on whatever device
 * TRN_DEVICE names; the CPU captures for it.  --traced shows the graph as the
 * calls made it, --prepared (the default) as the device compiled it, --hlo as
 * an HLO module, for XLA or for the compiler that --profile names.
 */
#include <stdio.h>
#include <string.h>

#include "tools/tool.h"

enum { WORDS = 11, WIDTH = 3, CONTEXT = 4, HIDDEN = 8, BATCH = 6 };

static void put(void *user, const char *text)
{
    fputs(text, user);
}

static trn_status open_captured(trn_context **c)
{
    trn_options o = TRN_OPTIONS_INIT;
    o.exec = TRN_EXEC_CAPTURED;
    o.log = tool_log;
    return trn_open(c, &o);
}

static void train_once(trn_context *c)
{
    int32_t x[BATCH * CONTEXT], y[BATCH];
    for (int i = 0; i < BATCH * CONTEXT; i++)
        x[i] = i * 5 % WORDS;
    for (int i = 0; i < BATCH; i++)
        y[i] = i * 3 % WORDS;
    trn_tensor *inputs =
        trn_tensor_from(c, TRN_I32, 2, (int64_t[]){BATCH, CONTEXT}, x);
    trn_tensor *targets = trn_tensor_from(c, TRN_I32, 1, (int64_t[]){BATCH}, y);
    trn_module *net = trn_nn_sequential(
        c, trn_nn_embedding(c, WORDS, WIDTH), trn_nn_flatten(c),
        trn_nn_linear(c, CONTEXT * WIDTH, HIDDEN), trn_nn_relu(c),
        trn_nn_dropout(c, 0.1), trn_nn_linear(c, HIDDEN, WORDS), NULL);
    trn_optim *optim = trn_optim_adamw(net, NULL);
    trn_step_begin(c);
    trn_backward(trn_cross_entropy(trn_nn_forward(net, inputs), targets, NULL));
    trn_optim_clip_norm(optim, 1.0);
    trn_optim_step(optim);
    trn_step_end(c);
}

/* How it is to be printed. */
typedef struct form {
    bool dot, prepared, traced, hlo, named;
    const char *profile;
} form;

static int read_form(int argc, char **argv, form *f)
{
    const tool_flag flags[] = {
        {"--dot", &f->dot, NULL},
        {"--prepared", &f->prepared, NULL},
        {"--traced", &f->traced, NULL},
        {"--hlo", &f->hlo, NULL},
        {"--profile", &f->named, &f->profile},
    };
    int status = tool_flags("graph", argc, argv, 5, flags);
    const char *wrong = NULL;
    if (f->prepared && f->traced)
        wrong = "--prepared and --traced exclude each other";
    else if (f->hlo && (f->dot || f->prepared || f->traced))
        wrong = "--hlo has no other form beside it";
    else if (f->named && !f->hlo)
        wrong = "--profile is for --hlo";
    if (status != TOOL_OK || wrong == NULL)
        return status;
    fprintf(stderr, "trn graph: %s\n", wrong);
    return TOOL_USAGE;
}

int trn_graph_main(int argc, char **argv)
{
    form f = {.profile = "xla"};
    int status = read_form(argc, argv, &f);
    if (status != TOOL_OK)
        return status;
    trn_context *c;
    if (open_captured(&c) == TRN_OK)
        train_once(c);
    if (trn_errcode(c) == TRN_OK && trn_sync(c) == TRN_OK) {
        if (f.hlo)
            trn_capture_print_hlo(c, f.profile, put, stdout);
        else
            trn_capture_print(c, !f.traced, f.dot, put, stdout);
    }
    if (trn_errcode(c) != TRN_OK)
        status = tool_error("graph", c);
    trn_close(c);
    return status;
}
