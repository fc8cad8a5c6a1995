/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole life of a context; see host_job.h.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/host_job.h"

enum {
    WINDOW = 8,
    WIDTH = 16,
    HIDDEN = 256, /* with BATCH: enough for several threads */
    BATCH = 128,
    STEPS = 4,
    PIXELS = 12 * 12,
    LABELS = 10
};

/* A job that is running, and all that its calls gave so far. */
typedef struct life {
    host_job *j;
    trn_context *c;
    char sum[65]; /* SHA-256 of the sum before it and what was added */
} life;

static void told(life *l, const char *call)
{
    l->j->n_calls++;
    if (l->j->after != NULL)
        l->j->after(l->j->user, call);
}

static void *told_pointer(life *l, const char *call, const void *p)
{
    union {
        const void *in;
        void *out;
    } both = {p};
    told(l, call);
    return both.out;
}

static long long told_number(life *l, const char *call, long long n)
{
    told(l, call);
    return n;
}

static double told_double(life *l, const char *call, double x)
{
    told(l, call);
    return x;
}

/* A call, with what it gives, and the word that it has been made. */
#define P(call) told_pointer(l, #call, (call))
#define N(call) told_number(l, #call, (long long)(call))
#define X(call) told_double(l, #call, (call))

static void add(life *l, const void *data, size_t n)
{
    char both[2 * 65] = "";
    memcpy(both, l->sum, 65);
    trn_sha256(data, n, both + 65);
    trn_sha256(both, sizeof both, l->sum);
}

static void add_double(life *l, double x)
{
    add(l, &x, sizeof x);
}

static void add_text(void *user, const char *text)
{
    add(user, text, strlen(text));
}

/* ---- training ---- */

static trn_batch next_batch(life *l, trn_loader *data)
{
    trn_batch b = {NULL, NULL, 0, 0, 0};
    if (!N(trn_data_next(data, &b)))
        N(trn_data_next(data, &b)); /* of the next pass */
    return b;
}

static void step(life *l, trn_loader *data, trn_module *net, trn_optim *optim)
{
    N(trn_step_begin(l->c));
    trn_batch b = next_batch(l, data);
    trn_tensor *logits = P(trn_nn_forward(net, b.inputs));
    trn_tensor *loss = P(trn_cross_entropy(logits, b.targets, NULL));
    N(trn_backward(loss));
    P(trn_optim_clip_norm(optim, 0.5));
    N(trn_optim_step(optim));
    N(trn_step_end(l->c));
    add_double(l, X(trn_step_loss(l->c)));
    add_double(l, X(trn_optim_learning_rate(optim)));
}

static void add_parameters(life *l, trn_module *net)
{
    char digest[65] = "";
    N(trn_digest(net, digest));
    add(l, digest, sizeof digest);
}

/* What a model says of a batch, in evaluation. */
static void evaluate(life *l, trn_loader *data, trn_module *net)
{
    float mean[3] = {0, 0, 0};
    N(trn_nn_train(net, false));
    N(trn_step_begin(l->c));
    trn_batch b = next_batch(l, data);
    trn_tensor *y = P(trn_softmax(P(trn_nn_forward(net, b.inputs)), -1));
    trn_tensor *rows = P(trn_mean(P(trn_log(y)), TRN_AXIS(1), false));
    trn_tensor *some = P(trn_keep(P(trn_slice(rows, 0, 0, 3, 1))));
    N(trn_step_end(l->c));
    N(trn_tensor_read(some, mean, sizeof mean));
    add(l, mean, sizeof mean);
    add_double(l, X(trn_tensor_item(P(trn_norm(some, TRN_ALL_AXES, false)))));
    P((trn_tensor_release(some), some));
    N(trn_nn_train(net, true));
}

static void path_of(const life *l, char path[120], const char *name)
{
    snprintf(path, 120, "%s/%s", l->j->folder, name);
}

static void train_on_text(life *l)
{
    trn_context *c = l->c;
    char path[120];
    path_of(l, path, "text");
    const char *const paths[] = {path, path};
    trn_text *text = P(trn_text_read(c, 2, paths, NULL));
    trn_loader *data = P(trn_data_text(c, text, WINDOW, BATCH, NULL));
    const int v = (int)N(trn_text_vocabulary(text));
    trn_module *net = P(trn_nn_sequential(
        c, P(trn_nn_embedding(c, v, WIDTH)), P(trn_nn_flatten(c)),
        P(trn_nn_linear(c, WINDOW * WIDTH, HIDDEN)), P(trn_nn_relu(c)),
        P(trn_nn_dropout(c, 0.1)), P(trn_nn_linear(c, HIDDEN, v)), NULL));
    trn_optim *optim = P(trn_optim_adamw(net, NULL));
    trn_schedule *fall = P(trn_schedule_cosine(c, 20, 0.05));
    N(trn_optim_set_schedule(optim, P(trn_schedule_warmup(c, 3, fall))));
    const int n = l->j->steps == 0 ? STEPS : l->j->steps;
    for (int i = 0; i < n && trn_errcode(c) == TRN_OK; i++)
        step(l, data, net, optim);
    evaluate(l, data, net);
    add_parameters(l, net);
    if (l->j->exec == TRN_EXEC_CAPTURED) {
        N(trn_capture_print(c, true, false, add_text, l));
        N(trn_capture_print(c, false, true, add_text, l));
        N(trn_capture_print_hlo(c, "xla", add_text, l));
    }
}

static void train_on_images(life *l)
{
    trn_context *c = l->c;
    char images[120], labels[120];
    path_of(l, images, "images");
    path_of(l, labels, "labels.gz");
    trn_loader *data = P(trn_data_idx(c, images, labels, 16, NULL));
    trn_module *net = P(trn_nn_linear(c, PIXELS, LABELS));
    trn_sgd_options o = TRN_SGD_INIT;
    o.momentum = 0.9;
    trn_optim *optim = P(trn_optim_sgd(net, &o));
    for (int i = 0; i < 3 && trn_errcode(c) == TRN_OK; i++)
        step(l, data, net, optim);
    add_parameters(l, net);
}

/* Draws, integers, selections, and sums large enough for several threads. */
static void others(life *l)
{
    trn_context *c = l->c;
    trn_generator *g = P(trn_generator_default(c));
    const int64_t shape[] = {300, 200}, row[] = {300};
    trn_tensor *x = P(trn_normal(g, TRN_F32, 2, shape));
    trn_tensor *i = P(trn_randint(g, TRN_I32, 0, 300, 1, row));
    trn_tensor *y = P(trn_index_select(x, 0, i));
    y = P(trn_sigmoid(P(trn_div(y, P(trn_add_scalar(P(trn_exp(x)), 0.1))))));
    add_double(l, X(trn_tensor_item(P(trn_var(y, TRN_ALL_AXES, false, 0)))));
    trn_tensor *p = P(trn_matmul(x, P(trn_transpose(x, 0, 1))));
    p = P(trn_cast(p, TRN_BF16));
    p = P(trn_cast(P(trn_max(p, TRN_ALL_AXES, false)), TRN_F32));
    add_double(l, X(trn_tensor_item(P(trn_sqrt(p)))));
    static const uint32_t awkward[] = {0x7f800001, 1, 0x80000001, 0x7f7fffff};
    for (int k = 0; k < 4;
         k++) { /* a signalling NaN, subnormals, the largest */
        trn_tensor *t = P(trn_tensor_from(c, TRN_F32, 0, NULL, &awkward[k]));
        t = P(trn_mul_scalar(P(trn_cast(t, TRN_BF16)), 1.0 / 3.0));
        const double value = X(trn_tensor_item(t));
        add(l, k == 0 ? "NaN" : (const char *)&value, k == 0 ? 3 : 8);
    }
    add_double(l, X(trn_tensor_item(P(trn_tensor_scalar(c, TRN_F32, 1e-40)))));
}

/* Gradients whose rules divide on the host's side, in f64, where a mode that
 * reached them would show. */
static void slopes(life *l)
{
    trn_context *c = l->c;
    enum { ROWS = 7, CLASSES = 3 };
    const int64_t shape[] = {ROWS, CLASSES};
    double grad[ROWS * CLASSES] = {0};
    trn_generator *g = P(trn_generator_default(c));
    trn_tensor *x = P(trn_uniform(g, TRN_F64, 2, shape));
    trn_tensor *y = P(trn_softmax(P(trn_uniform(g, TRN_F64, 2, shape)), 1));
    trn_tensor *i = P(trn_argmax(y, 1));
    trn_cross_entropy_options o = TRN_CROSS_ENTROPY_INIT;
    o.label_smoothing = 0.1;
    N(trn_set_requires_grad(x, true));
    N(trn_step_begin(c));
    trn_tensor *sum = P(trn_mse_loss(x, y, TRN_REDUCE_MEAN));
    sum = P(trn_add(sum, P(trn_mean(P(trn_mul(x, x)), TRN_ALL_AXES, false))));
    sum = P(trn_add(sum, P(trn_var(x, TRN_ALL_AXES, false, 1))));
    sum = P(trn_add(sum, P(trn_cross_entropy(x, y, NULL))));
    sum = P(trn_add(sum, P(trn_cross_entropy(x, y, &o))));
    sum = P(trn_add(sum, P(trn_cross_entropy(x, i, &o))));
    N(trn_backward(sum));
    N(trn_step_end(c));
    N(trn_tensor_read(P(trn_grad_of(x)), grad, sizeof grad));
    add(l, grad, sizeof grad);
    add_double(l, X(trn_step_loss(c)));
}

/* ---- errors ---- */

/* The pending error, which there must be, becomes part of the digest. */
static void expect(life *l, trn_status status)
{
    const char *text = P(trn_errmsg(l->c));
    if (N(trn_errcode(l->c)) != status && l->j->status == TRN_OK) {
        l->j->status = TRN_ERR_STATE;
        snprintf(l->j->said, sizeof l->j->said, "expected %s, found: %.200s",
                 trn_status_name(status), text);
    }
    if (strstr(text, l->j->folder) == NULL) /* whose name is not always same */
        add_text(l, text);
    trn_clear(l->c);
    told(l, "trn_clear");
}

static void errors_of_files(life *l)
{
    trn_context *c = l->c;
    char there[120], none[120], damaged[120];
    path_of(l, there, "text");
    path_of(l, none, "none");
    path_of(l, damaged, "damaged.gz");
    P(trn_data_idx(c, none, none, 4, NULL));
    expect(l, TRN_ERR_IO);
    P(trn_data_idx(c, there, there, 4, NULL));
    expect(l, TRN_ERR_FORMAT);
    P(trn_data_idx(c, damaged, there, 4, NULL));
    expect(l, TRN_ERR_FORMAT);
    P(trn_text_read(c, 1, (const char *[]){none}, NULL));
    expect(l, TRN_ERR_IO);
    P(trn_text_read(c, 1, (const char *[]){l->j->folder}, NULL));
    expect(l, TRN_ERR_IO);
}

static void errors_of_values(life *l, trn_tensor *x)
{
    trn_context *c = l->c;
    const int32_t far = 77;
    const float zeros[2] = {0, 0};
    const int64_t two[] = {2};
    trn_tensor *i = P(trn_tensor_from(c, TRN_I32, 0, NULL, &far));
    P(trn_embedding(x, i, -1));
    N(trn_sync(c));
    expect(l, TRN_ERR_INDEX);
    trn_tensor *z = P(trn_tensor_from(c, TRN_F32, 1, two, zeros));
    P(trn_check_finite(P(trn_log(z))));
    N(trn_sync(c));
    expect(l, TRN_ERR_NUMERIC);
    P(trn_div(i, P(trn_sub(i, i))));
    N(trn_sync(c));
    expect(l, TRN_ERR_VALUE);
}

/* Numbers that make no sense, among them one that is none. */
static void errors_of_options(life *l)
{
    trn_context *c = l->c;
    trn_module *net = P(trn_nn_linear(c, 2, 2));
    static const double bad[] = {-1234.5, -1e-320, (double)NAN};
    for (int i = 0; i < 3; i++) {
        trn_adamw_options o = TRN_ADAMW_INIT;
        o.learning_rate = bad[i];
        P(trn_optim_adamw(net, &o));
        expect(l, TRN_ERR_ARG);
        trn_optim *optim = P(trn_optim_adamw(net, NULL));
        P(trn_optim_clip_norm(optim, bad[i]));
        expect(l, TRN_ERR_ARG);
        N(trn_optim_set_learning_rate(optim, bad[i]));
        expect(l, TRN_ERR_ARG);
        P(trn_nn_dropout(c, bad[i]));
        expect(l, TRN_ERR_ARG);
        P(trn_schedule_cosine(c, 5, bad[i]));
        expect(l, TRN_ERR_ARG);
        N(trn_set_deadline(c, bad[i]));
        expect(l, TRN_ERR_ARG);
    }
}

static void errors_of_time(life *l)
{
    N(trn_set_deadline(l->c, 1e-9));
    N(trn_step_begin(l->c));
    N(trn_set_deadline(l->c, 0.0));
    P(trn_errmsg(l->c)); /* whose number is not always the same */
    trn_clear(l->c);
    told(l, "trn_clear");
    trn_cancel(l->c);
    told(l, "trn_cancel");
    N(trn_step_begin(l->c));
    expect(l, TRN_ERR_CANCELLED);
}

static void errors(life *l)
{
    trn_context *c = l->c;
    const float data[6] = {1, 2, 3, 4, 5, 6};
    const int64_t shape[] = {2, 3}, huge[] = {INT64_C(1) << 40, 1 << 18};
    trn_tensor *x = P(trn_tensor_from(c, TRN_F32, 2, shape, data));
    P(trn_matmul(x, x));
    expect(l, TRN_ERR_SHAPE);
    P(trn_relu(NULL));
    P(trn_dropout(x, -0.25, P(trn_generator_default(c))));
    expect(l, TRN_ERR_ARG);
    P(trn_relu(P(trn_tensor_zeros(c, TRN_F32, 2, huge))));
    N(trn_sync(c));
    expect(l, TRN_ERR_NOMEM);
    N(trn_backward(x));
    expect(l, TRN_ERR_NOGRAD);
    errors_of_options(l);
    errors_of_time(l);
    errors_of_values(l, x);
    errors_of_files(l);
}

/* ---- life ---- */

/* Keeps what is pending, unless something is kept. */
static void keep_error(life *l)
{
    host_job *j = l->j;
    if (j->status == TRN_OK && N(trn_errcode(l->c)) != TRN_OK) {
        j->status = trn_errcode(l->c);
        snprintf(j->said, sizeof j->said, "%s", trn_errmsg(l->c));
    }
}

/* Which errors can there be before a context is open? */
static void failing_openings(life *l)
{
    static const char *const devices[] = {"no such device", "plugin:/nowhere",
                                          "loop:no=option"};
    for (int i = 0; i < 3; i++) {
        trn_options o = TRN_OPTIONS_INIT;
        trn_context *c = NULL;
        o.device = devices[i];
        o.alloc = l->j->alloc;
        o.free = l->j->free;
        o.memory_user = l->j->memory_user;
        if (N(trn_open(&c, &o)) == TRN_OK && l->j->status == TRN_OK) {
            l->j->status = TRN_ERR_STATE;
            snprintf(l->j->said, sizeof l->j->said, "%s opens", devices[i]);
        }
        N(trn_close(c));
    }
}

bool host_job_open(host_job *j)
{
    life here = {.j = j}, *l = &here;
    trn_options o = TRN_OPTIONS_INIT;
    j->status = TRN_OK;
    j->said[0] = j->digest[0] = '\0';
    j->n_calls = 0;
    o.device = j->device == NULL ? "cpu" : j->device;
    o.exec = (uint32_t)j->exec;
    o.engine = (uint32_t)j->engine;
    o.n_threads = j->n_threads;
    o.alloc = j->alloc;
    o.free = j->free;
    o.memory_user = j->memory_user;
    o.parallel_for = j->parallel_for;
    failing_openings(l);
    N(trn_open(&j->c, &o));
    l->c = j->c;
    keep_error(l);
    return j->status == TRN_OK;
}

bool host_job_go_on(host_job *j)
{
    life here = {.j = j, .c = j->c}, *l = &here;
    train_on_text(l);
    keep_error(l);
    train_on_images(l);
    keep_error(l);
    others(l);
    keep_error(l);
    if (j->device == NULL || strncmp(j->device, "cpu", 3) == 0)
        slopes(l); /* loop does not store f64 */
    keep_error(l);
    if (j->status == TRN_OK)
        errors(l);
    keep_error(l);
    N(trn_close(j->c));
    j->c = NULL;
    memcpy(j->digest, l->sum, sizeof j->digest);
    return j->status == TRN_OK;
}

bool host_job_run(host_job *j)
{
    if (!host_job_open(j)) {
        trn_close(j->c);
        return false;
    }
    return host_job_go_on(j);
}
