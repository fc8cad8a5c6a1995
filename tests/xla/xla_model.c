/* SPDX-License-Identifier: Apache-2.0
 *
 * The models of the examples; see xla_model.h.
 */
#include <math.h>
#include <stdlib.h>

#include "tests/xla/xla_model.h"

enum { WINDOW = 8, WIDTH = 6, HIDDEN = 48, BATCH = 32, SAMPLES = 512 };
enum { PIXELS = 36, CLASSES = 10, MOST_ELEMENTS = 24 * 24 };

const char *const xla_model_names[XLA_MODEL_KINDS] = {
    [XLA_CHARACTERS] = "characters",
    [XLA_IMAGES] = "images",
    [XLA_REGRESSION] = "regression",
};

/* Sentences of a few words, so that there is something to learn. */
static trn_text *make_text(trn_context *c)
{
    static const char *const words[] = {"the ",  "licence ", "of ",    "a ",
                                        "work ", "may ",     "copy, ", "and ",
                                        "you ",  "change "};
    static char text[SAMPLES * 4];
    size_t n = 0;
    uint64_t seed = 3;
    while (n < sizeof text) {
        const char *word = words[harness_random(&seed) % 10];
        for (; *word != '\0' && n < sizeof text; word++)
            text[n++] = *word;
    }
    return trn_text_from(c, text, n, NULL);
}

static trn_tensor *floats(trn_context *c, trn_dtype dtype, int64_t n,
                          int64_t width, const double *v)
{
    static double data[SAMPLES * PIXELS];
    for (int64_t i = 0; i < n * width; i++)
        dtype_put(dtype, data, i, (long double)v[i]);
    return trn_tensor_from(c, dtype, 2, (int64_t[]){n, width}, data);
}

static void build_characters(xla_model *m)
{
    trn_context *c = m->c;
    trn_loader_options order = TRN_LOADER_INIT;
    order.drop_last = true;
    trn_text *text = make_text(c);
    int v = trn_text_vocabulary(text);
    m->data = trn_data_text(c, text, WINDOW, BATCH, &order);
    m->net = trn_nn_sequential(
        c, trn_nn_embedding(c, v, WIDTH), trn_nn_flatten(c),
        trn_nn_linear(c, WINDOW * WIDTH, HIDDEN), trn_nn_relu(c),
        trn_nn_dropout(c, 0.1), trn_nn_linear(c, HIDDEN, v), NULL);
    trn_adamw_options o = TRN_ADAMW_INIT;
    o.learning_rate = 0.002;
    m->optim = trn_optim_adamw(m->net, &o);
    trn_optim_set_schedule(
        m->optim,
        trn_schedule_warmup(c, 60, trn_schedule_cosine(c, 400, 0.05)));
}

static void build_images(xla_model *m, trn_dtype dtype)
{
    trn_context *c = m->c;
    static double pixels[SAMPLES * PIXELS];
    int32_t labels[SAMPLES];
    uint64_t seed = 4;
    for (int i = 0; i < SAMPLES; i++) {
        labels[i] = (int32_t)(harness_random(&seed) % CLASSES);
        for (int k = 0; k < PIXELS; k++)
            pixels[i * PIXELS + k] = harness_uniform(&seed, 0, 0.5) +
                                     (k % CLASSES == labels[i] ? 0.5 : 0.0);
    }
    m->data = trn_data_tensors(
        c, floats(c, dtype, SAMPLES, PIXELS, pixels),
        trn_tensor_from(c, TRN_I32, 1, (int64_t[]){SAMPLES}, labels), BATCH,
        NULL);
    m->net = trn_nn_sequential(c, trn_nn_linear(c, PIXELS, HIDDEN),
                               trn_nn_relu(c), trn_nn_dropout(c, 0.2),
                               trn_nn_linear(c, HIDDEN, CLASSES), NULL);
    m->optim = trn_optim_adamw(m->net, NULL);
}

static void build_regression(xla_model *m, trn_dtype dtype)
{
    trn_context *c = m->c;
    double x[SAMPLES], y[SAMPLES];
    uint64_t seed = 5;
    for (int i = 0; i < SAMPLES; i++) {
        x[i] = -1 + 2.0 * i / (SAMPLES - 1);
        y[i] = sin(3 * x[i]) + harness_uniform(&seed, -0.1, 0.1);
    }
    m->data = trn_data_tensors(c, floats(c, dtype, SAMPLES, 1, x),
                               floats(c, dtype, SAMPLES, 1, y), BATCH, NULL);
    m->net = trn_nn_sequential(c, trn_nn_linear(c, 1, 24), trn_nn_tanh(c),
                               trn_nn_linear(c, 24, 24), trn_nn_tanh(c),
                               trn_nn_linear(c, 24, 1), NULL);
    trn_sgd_options o = TRN_SGD_INIT;
    o.learning_rate = 0.01;
    o.momentum = 0.9;
    m->optim = trn_optim_sgd(m->net, &o);
}

void xla_model_build(xla_model *m, trn_context *c, xla_model_kind kind,
                     trn_dtype dtype)
{
    *m = (xla_model){.c = c, .kind = kind};
    trn_nn_set_dtype(c, dtype);
    if (kind == XLA_CHARACTERS)
        build_characters(m);
    else if (kind == XLA_IMAGES)
        build_images(m, dtype);
    else
        build_regression(m, dtype);
    trn_sync(c);
    harness_ok(c);
}

trn_batch xla_model_batch(xla_model *m)
{
    trn_batch b;
    if (!trn_data_next(m->data, &b)) /* the end of a pass */
        trn_data_next(m->data, &b);
    harness_ok(m->c);
    return b;
}

static trn_tensor *loss_of(xla_model *m, trn_tensor *x, trn_tensor *target)
{
    trn_tensor *y = trn_nn_forward(m->net, x);
    if (m->kind != XLA_REGRESSION)
        return trn_cross_entropy(y, target, NULL);
    trn_tensor *d = trn_sub(y, target);
    return trn_mean(trn_mul(d, d), TRN_ALL_AXES, false);
}

/* Adds the absolute values of a gradient, over n, to sums of its elements. */
static void add_absolute(trn_tensor *g, double *sums, int64_t n)
{
    void *bytes = harness_bytes_of(g, NULL);
    for (int64_t i = 0; i < trn_tensor_numel(g); i++)
        sums[i] +=
            fabs((double)dtype_get(trn_tensor_dtype(g), bytes, i)) / (double)n;
    free(bytes);
}

static void add_sample(xla_model *m, const trn_batch *b, int64_t i,
                       double (*sums)[MOST_ELEMENTS])
{
    trn_step_begin(m->c);
    trn_backward(loss_of(m, trn_slice(b->inputs, 0, i, i + 1, 1),
                         trn_slice(b->targets, 0, i, i + 1, 1)));
    trn_step_end(m->c);
    for (int64_t k = 0; k < trn_nn_parameter_count(m->net); k++)
        add_absolute(trn_grad_of(trn_nn_parameter_at(m->net, k)), sums[k],
                     b->size);
    trn_optim_zero_grad(m->optim);
    harness_ok(m->c);
}

void xla_model_absolute(xla_model *m, const trn_batch *b, double *sums)
{
    static double each[XLA_MODEL_MOST][MOST_ELEMENTS];
    memset(each, 0, sizeof each);
    for (int64_t i = 0; i < b->size; i++)
        add_sample(m, b, i, each);
    for (int64_t k = 0; k < trn_nn_parameter_count(m->net); k++) {
        sums[k] = 0;
        for (int64_t i = 0; i < MOST_ELEMENTS; i++)
            sums[k] = fmax(sums[k], each[k][i]);
    }
}

double xla_model_step(xla_model *m, const trn_batch *b)
{
    trn_step_begin(m->c);
    trn_backward(loss_of(m, b->inputs, b->targets));
    if (m->kind == XLA_CHARACTERS)
        trn_optim_clip_norm(m->optim, 1.0);
    trn_optim_step(m->optim);
    trn_step_end(m->c);
    double loss = trn_step_loss(m->c);
    harness_ok(m->c);
    return loss;
}

static void copy_tensor(trn_tensor *to, trn_tensor *from)
{
    size_t n;
    if (from == NULL && to == NULL)
        return;
    void *bytes = harness_bytes_of(from, &n);
    trn_tensor_write(to, bytes, n);
    harness_ok(trn_tensor_context(to));
    free(bytes);
}

void xla_model_copy(xla_model *to, const xla_model *from)
{
    static const char *const names[] = {"m", "v", "momentum"};
    for (int64_t i = 0; i < trn_nn_parameter_count(to->net); i++) {
        copy_tensor(trn_nn_parameter_at(to->net, i),
                    trn_nn_parameter_at(from->net, i));
        for (int k = 0; k < 3; k++)
            copy_tensor(trn_optim_state(to->optim, i, names[k]),
                        trn_optim_state(from->optim, i, names[k]));
    }
}
