/* SPDX-License-Identifier: Apache-2.0
 *
 * `trn verify`: rows that add: reductions, products, indices, composites and
 * optimizer updates.
 *
 * Shapes are such that every rule about the order of additions shows: several
 * blocks of 4096 with an odd one, more than one k-block of 256, tiles that are
 * not full, rows and columns.
 */
#include <stdio.h>

#include "tools/verify_rows.h"

typedef trn_tensor *reduce_fn(trn_tensor *x, uint32_t axes, bool keep_dims);

static void reduce_one(verify_sink *s, const char *name, reduce_fn *fn)
{
    static const struct {
        const char *what;
        int64_t shape[4];
        int rank;
        uint32_t axes;
    } cases[] = {
        {"rows", {3, 9001}, 2, TRN_AXIS(1)},
        {"columns", {9001, 3}, 2, TRN_AXIS(0)},
        {"wide", {37, 301}, 2, TRN_AXIS(0)},
        {"all", {5, 4099}, 2, TRN_ALL_AXES},
        {"mixed", {4, 5, 6, 77}, 4, TRN_AXIS(1) | TRN_AXIS(3)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s/%s", name, cases[i].what);
        trn_tensor *x = verify_uniform(s, cases[i].rank, cases[i].shape, 1.0);
        verify_put_all(s, text, fn(x, cases[i].axes, false), 1, &x, false);
        snprintf(text, sizeof text, "%s/%s/permuted", name, cases[i].what);
        trn_tensor *t = trn_transpose(x, 0, cases[i].rank - 1);
        verify_put(s, text, fn(t, cases[i].axes, true));
    }
}

static trn_tensor *variance(trn_tensor *x, uint32_t axes, bool keep_dims)
{
    return trn_var(x, axes, keep_dims, 1);
}

void verify_rows_reduce(verify_sink *s)
{
    reduce_one(s, "sum", trn_sum);
    reduce_one(s, "mean", trn_mean);
    reduce_one(s, "norm", trn_norm);
    reduce_one(s, "max", trn_max);
    reduce_one(s, "min", trn_min);
    reduce_one(s, "var", variance);
    reduce_one(s, "logsumexp", trn_logsumexp);
    trn_tensor *x = verify_uniform(s, 2, (int64_t[]){9, 4099}, 1.0);
    verify_put(s, "argmax/rows", trn_argmax(x, 1));
    verify_put(s, "argmax/columns", trn_argmax(x, 0));
}

/* ---- products ---- */

static void matmul_one(verify_sink *s, const char *name, int64_t m, int64_t n,
                       int64_t k, bool second)
{
    for (int way = 0; way < 4; way++) {
        char text[64];
        const bool ta = (way & 2) != 0, tb = (way & 1) != 0;
        snprintf(text, sizeof text, "matmul/%s/%c%c", name, ta ? 't' : 'n',
                 tb ? 't' : 'n');
        const int64_t a[] = {ta ? k : m, ta ? m : k};
        const int64_t b[] = {tb ? n : k, tb ? k : n};
        trn_tensor *in[2];
        in[0] = verify_uniform(s, 2, a, 1.0);
        in[1] = verify_uniform(s, 2, b, 1.0);
        trn_tensor *y = trn_matmul_trans(in[0], in[1], ta, tb);
        verify_put_all(s, text, y, 2, in, second);
    }
}

void verify_rows_matmul(verify_sink *s)
{
    matmul_one(s, "square", 37, 29, 31, true);
    matmul_one(s, "deep", 7, 17, 600, false);
    matmul_one(s, "deeper", 1, 2, 4500, false);
    matmul_one(s, "row", 1, 45, 260, false);
    const int64_t a[] = {2, 1, 7, 33}, b[] = {3, 33, 9};
    trn_tensor *in[2];
    in[0] = verify_uniform(s, 4, a, 1.0);
    in[1] = verify_uniform(s, 3, b, 1.0);
    verify_put_all(s, "matmul/batch", trn_matmul(in[0], in[1]), 2, in, false);
}

/* ---- indices: duplicates add up in their order ---- */

void verify_rows_index(verify_sink *s)
{
    trn_tensor *w = verify_uniform(s, 2, (int64_t[]){50, 13}, 1.0);
    trn_tensor *i = verify_indices(s, 2, (int64_t[]){7, 131}, 50);
    verify_put_all(s, "embedding", trn_embedding(w, i, 3), 1, &w, false);
    trn_tensor *x = verify_uniform(s, 2, (int64_t[]){40, 31}, 1.0);
    i = verify_indices(s, 2, (int64_t[]){40, 77}, 31);
    verify_put_all(s, "gather/1", trn_gather(x, 1, i), 1, &x, false);
    i = verify_indices(s, 2, (int64_t[]){99, 31}, 40);
    verify_put_all(s, "gather/0", trn_gather(x, 0, i), 1, &x, false);
    i = verify_indices(s, 2, (int64_t[]){40, 31}, 6);
    trn_tensor *y = trn_scatter_add(x, 0, i, 6);
    verify_put_all(s, "scatter_add/0", y, 1, &x, false);
    y = trn_scatter_add(x, 1, i, 6);
    verify_put_all(s, "scatter_add/1", y, 1, &x, false);
}

/* ---- composites ---- */

static void cross_entropy_one(verify_sink *s, const char *name, int64_t n,
                              int classes, uint32_t reduction)
{
    trn_cross_entropy_options o = TRN_CROSS_ENTROPY_INIT;
    o.reduction = reduction;
    o.has_ignore_index = reduction != TRN_REDUCE_SUM;
    o.ignore_index = 1;
    const int64_t shape[] = {n, classes};
    trn_tensor *x = verify_uniform(s, 2, shape, 3.0);
    trn_tensor *target = verify_indices(s, 1, &n, classes);
    trn_tensor *y = trn_cross_entropy(x, target, &o);
    verify_put_all(s, name, y, 1, &x, n < 100);
}

void verify_rows_composite(verify_sink *s)
{
    trn_tensor *x = verify_uniform(s, 2, (int64_t[]){3, 4500}, 3.0);
    trn_tensor *z = verify_uniform(s, 2, (int64_t[]){301, 7}, 3.0);
    verify_put_all(s, "softmax/rows", trn_softmax(x, 1), 1, &x, false);
    verify_put_all(s, "softmax/columns", trn_softmax(z, 0), 1, &z, true);
    verify_put_all(s, "log_softmax/rows", trn_log_softmax(x, 1), 1, &x, false);
    verify_put_all(s, "log_softmax/columns", trn_log_softmax(z, 0), 1, &z,
                   true);
    cross_entropy_one(s, "cross_entropy/mean", 37, 301, TRN_REDUCE_MEAN);
    cross_entropy_one(s, "cross_entropy/sum", 37, 301, TRN_REDUCE_SUM);
    cross_entropy_one(s, "cross_entropy/none", 37, 301, TRN_REDUCE_NONE);
    cross_entropy_one(s, "cross_entropy/many", 9001, 3, TRN_REDUCE_MEAN);
    trn_tensor *in[2];
    in[0] = verify_uniform(s, 2, (int64_t[]){3, 4500}, 1.0);
    in[1] = verify_uniform(s, 1, (int64_t[]){4500}, 1.0);
    trn_tensor *y = trn_mse_loss(in[0], in[1], TRN_REDUCE_MEAN);
    verify_put_all(s, "mse_loss", y, 2, in, true);
}

/* ---- updates: three steps of each optimizer on one parameter ---- */

enum { N_UPDATED = 5003 };

static trn_tensor *identity(trn_module *m, trn_tensor *x, void *user)
{
    (void)m;
    (void)user;
    return x;
}

static trn_module *one_parameter(verify_sink *s)
{
    trn_module *m = trn_nn_custom(s->c, identity, NULL);
    trn_tensor *p = verify_uniform(s, 1, (int64_t[]){N_UPDATED}, 1.0);
    trn_nn_add_parameter(m, "p", p);
    return m;
}

static void update_one(verify_sink *s, const char *name, trn_module *m,
                       trn_optim *o)
{
    const int64_t n = N_UPDATED;
    trn_tensor *p = trn_nn_parameter(m, "p");
    for (int i = 0; i < 3; i++) {
        trn_tensor *g = trn_uniform(s->g, s->dtype, 1, &n);
        trn_backward_with(trn_copy(p), g, false);
        trn_optim_step(o);
    }
    verify_put(s, name, p);
}

void verify_rows_update(verify_sink *s)
{
    trn_sgd_options sgd = TRN_SGD_INIT;
    trn_adamw_options adamw = TRN_ADAMW_INIT;
    sgd.learning_rate = adamw.learning_rate = 0.1;
    sgd.weight_decay = 0.01;
    trn_module *m = one_parameter(s);
    update_one(s, "sgd_update", m, trn_optim_sgd(m, &sgd));
    sgd.momentum = 0.9;
    sgd.dampening = 0.1;
    m = one_parameter(s);
    update_one(s, "sgd_momentum_update", m, trn_optim_sgd(m, &sgd));
    m = one_parameter(s);
    update_one(s, "adamw_update", m, trn_optim_adamw(m, &adamw));
    trn_tensor *x = trn_uniform(s->g, s->dtype, 1, (int64_t[]){N_UPDATED});
    trn_tensor *y = trn_uniform(s->g, s->dtype, 1, (int64_t[]){1});
    trn_assign(trn_slice(x, 0, 1, 4000, 3), y);
    verify_put(s, "assign", x);
}
