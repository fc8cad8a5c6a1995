/* SPDX-License-Identifier: Apache-2.0
 *
 * The models of `trn verify`: small, so that one generic thread trains all of
 * them in seconds, and between them using every layer and optimizer.
 *
 * Layers are made one in a statement: C leaves the order of a call's arguments
 * to the compiler, and initial values depend on the order.
 *
 * Sizes are odd on purpose: sums of products longer than one k-block of 256,
 * batches that do not fill a tile.  f64 and bf16 models are smaller still, as
 * a CPU without FMA takes several times longer for each product.
 */
#include <string.h>

#include "tools/verify.h"

enum { N_CLASSES = 10, N_CHARACTERS = 28, WIDTH = 12 };

/* Samples of a uniform distribution, labelled by a random linear teacher. */
static trn_loader *classes(trn_context *c, const verify_model *m)
{
    const int64_t n = 8 * m->batch + 5; /* the last batch is smaller */
    trn_generator *g = trn_generator_new(c, 101);
    trn_tensor *u = trn_uniform(g, m->dtype, 2, (int64_t[]){n, m->n_in});
    trn_tensor *x = trn_mul_scalar(trn_add_scalar(u, -0.5), 3.0);
    trn_tensor *teacher =
        trn_normal(g, m->dtype, 2, (int64_t[]){m->n_in, N_CLASSES});
    trn_tensor *label = trn_argmax(trn_matmul(x, teacher), 1);
    return trn_data_tensors(c, x, label, m->batch, NULL);
}

static trn_status make_mlp(trn_context *c, const verify_model *m,
                           trn_module **net, trn_optim **opt, trn_loader **data)
{
    *data = classes(c, m);
    trn_module *first = trn_nn_linear(c, m->n_in, m->hidden);
    trn_module *second = trn_nn_linear(c, m->hidden, m->hidden);
    trn_module *third = trn_nn_linear(c, m->hidden, N_CLASSES);
    *net = trn_nn_sequential(c, first, trn_nn_relu(c), trn_nn_dropout(c, 0.1),
                             second, trn_nn_relu(c), third, NULL);
    trn_adamw_options o = TRN_ADAMW_INIT;
    o.learning_rate = 1e-2;
    *opt = trn_optim_adamw(*net, &o);
    trn_schedule *cosine = trn_schedule_cosine(c, m->n_steps, 0.1);
    return trn_optim_set_schedule(*opt, trn_schedule_warmup(c, 5, cosine));
}

/* Windows of random characters; the target is the later in the alphabet of a
 * window's first and last one. */
static trn_loader *characters(trn_context *c, const verify_model *m)
{
    const int64_t n = 8 * m->batch + 5, last = m->n_in - 1;
    trn_generator *g = trn_generator_new(c, 102);
    trn_tensor *u = trn_uniform(g, TRN_F32, 2, (int64_t[]){n, m->n_in});
    trn_tensor *x = trn_cast(trn_mul_scalar(u, N_CHARACTERS), TRN_I32);
    trn_tensor *y = trn_maximum(trn_slice(x, 1, 0, 1, 1),
                                trn_slice(x, 1, last, last + 1, 1));
    return trn_data_tensors(c, x, trn_reshape(y, 1, (int64_t[]){n}), m->batch,
                            NULL);
}

static trn_status make_char(trn_context *c, const verify_model *m,
                            trn_module **net, trn_optim **opt,
                            trn_loader **data)
{
    *data = characters(c, m);
    trn_module *table = trn_nn_embedding(c, N_CHARACTERS, WIDTH);
    trn_module *first = trn_nn_linear(c, m->n_in * WIDTH, m->hidden);
    trn_module *second = trn_nn_linear(c, m->hidden, N_CHARACTERS);
    *net = trn_nn_sequential(c, table, trn_nn_flatten(c), first, trn_nn_tanh(c),
                             second, NULL);
    trn_sgd_options o = TRN_SGD_INIT;
    o.learning_rate = 0.05;
    o.momentum = 0.9;
    o.weight_decay = 1e-4;
    o.nesterov = true;
    *opt = trn_optim_sgd(*net, &o);
    return trn_errcode(c);
}

const verify_model verify_models[] = {
    {
        .name = "mlp",
        .dtype = TRN_F32,
        .n_in = 300,
        .hidden = 51,
        .batch = 32,
        .n_steps = 60,
        .make = make_mlp,
        .clip = 1.0,
    },
    {
        .name = "mlp",
        .dtype = TRN_F64,
        .n_in = 260,
        .hidden = 21,
        .batch = 16,
        .n_steps = 20,
        .make = make_mlp,
        .clip = 1.0,
    },
    {
        .name = "mlp",
        .dtype = TRN_BF16,
        .n_in = 300,
        .hidden = 35,
        .batch = 16,
        .n_steps = 30,
        .make = make_mlp,
        .clip = 1.0,
    },
    {
        .name = "char",
        .dtype = TRN_F32,
        .n_in = 8,
        .hidden = 67,
        .batch = 32,
        .n_steps = 60,
        .make = make_char,
    },
    {
        .name = "char",
        .dtype = TRN_F64,
        .n_in = 8,
        .hidden = 27,
        .batch = 16,
        .n_steps = 20,
        .make = make_char,
    },
    {
        .name = "char",
        .dtype = TRN_BF16,
        .n_in = 8,
        .hidden = 35,
        .batch = 16,
        .n_steps = 30,
        .make = make_char,
    },
};
const int verify_n_models = (int)(sizeof verify_models / sizeof *verify_models);

/* Loaders end with each pass and begin the next one when asked again. */
static bool next_batch(trn_loader *data, trn_batch *b)
{
    int more = trn_data_next(data, b);
    if (more == 0)
        more = trn_data_next(data, b);
    return more == 1;
}

static trn_status train_step(trn_context *c, const verify_model *m,
                             trn_module *net, trn_optim *opt, trn_loader *data)
{
    trn_batch b;
    if (!next_batch(data, &b))
        return trn_errcode(c);
    trn_step_begin(c);
    trn_tensor *y = trn_nn_forward(net, b.inputs);
    trn_backward(trn_cross_entropy(y, b.targets, NULL));
    if (m->clip > 0.0)
        trn_optim_clip_norm(opt, m->clip);
    trn_optim_step(opt);
    return trn_step_end(c);
}

trn_status verify_train(trn_context *c, const verify_model *m, bool quick,
                        verify_result *out)
{
    trn_module *net = NULL;
    trn_optim *opt = NULL;
    trn_loader *data = NULL;
    memset(out, 0, sizeof *out);
    memcpy(out->end, "-", 2);
    trn_nn_set_dtype(c, m->dtype);
    trn_status status = m->make(c, m, &net, &opt, &data);
    const int64_t n = quick ? VERIFY_EARLY : m->n_steps;
    for (int64_t step = 1; status == TRN_OK && step <= n; step++) {
        status = train_step(c, m, net, opt, data);
        out->last_loss = trn_step_loss(c);
        if (step == 1)
            out->first_loss = out->last_loss;
        if (step == VERIFY_EARLY && status == TRN_OK)
            status = trn_digest(net, out->early);
    }
    if (status == TRN_OK && !quick)
        status = trn_digest(net, out->end);
    return status;
}
