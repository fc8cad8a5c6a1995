/* SPDX-License-Identifier: Apache-2.0
 *
 * The built-in layers: linear, embedding, dropout, activations, flatten,
 * sequential.
 */
#include <stdarg.h>
#include <stdio.h>

#include "kernels/scalar.h"
#include "libtrn/nn/module.h"
#include "libtrn/ops/randoms.h"
#include "trn/ops.h"

trn_dtype trn__parameter_dtype(trn_context *c)
{
    return c->parameter_dtype == 0 ? TRN_F32 : (trn_dtype)c->parameter_dtype;
}

trn_status trn_nn_set_dtype(trn_context *c, trn_dtype dtype)
{
    TRN_TRY(trn__pending(c));
    if (!trn__is_float((uint32_t)dtype))
        return trn__fail(c, TRN_ERR_DTYPE,
                         "trn_nn_set_dtype: %s; expected a float type",
                         trn_dtype_name(dtype));
    c->parameter_dtype = (uint32_t)dtype;
    return TRN_OK;
}

static trn_status check_width(trn_context *c, const char *what,
                              const char *name, int64_t n)
{
    TRN_TRY(trn__pending(c));
    if (n < 1)
        return trn__fail(c, TRN_ERR_ARG, "%s: %s is %lld; expected 1 or more",
                         what, name, (long long)n);
    return TRN_OK;
}

/* ---- linear ---- */

static trn_tensor *linear_forward(trn_module *m, trn_tensor *x, void *user)
{
    (void)user;
    trn_tensor *weight = m->first_parameter->tensor;
    trn__parameter *bias = m->first_parameter->next;
    if (x->arg.rank == 0) {
        trn__fail(m->c, TRN_ERR_SHAPE, "linear: x is %s; expected [..,%lld]",
                  trn__describe(&x->arg).s, (long long)weight->arg.shape[1]);
        return NULL;
    }
    /* One product over all rows, whatever the leading dimensions are. */
    int64_t shape[TRN_MAX_RANK];
    int rank = (int)x->arg.rank;
    trn_tensor *rows = x;
    if (rank != 2)
        rows =
            trn_reshape(x, 2,
                        (int64_t[]){trn__numel(x->arg.rank - 1, x->arg.shape),
                                    x->arg.shape[rank - 1]});
    trn_tensor *y = trn_matmul_trans(rows, weight, false, true);
    if (bias != NULL)
        y = trn_add(y, bias->tensor);
    if (rank == 2)
        return y;
    for (int d = 0; d + 1 < rank; d++)
        shape[d] = x->arg.shape[d];
    shape[rank - 1] = weight->arg.shape[0];
    return trn_reshape(y, rank, shape);
}

static trn_module *linear(trn_context *c, int64_t n_in, int64_t n_out,
                          bool bias)
{
    const char *what = "trn_nn_linear";
    if (check_width(c, what, "n_in", n_in) != TRN_OK ||
        check_width(c, what, "n_out", n_out) != TRN_OK)
        return NULL;
    trn_module *m = trn__module_new(c, what, linear_forward, NULL);
    if (m == NULL)
        return NULL;
    trn__fp_env saved;
    trn__fp_enter(&saved);
    double bound = 1.0 / trn__sqrt((double)n_in);
    trn__fp_leave(&saved);
    trn__module_draw(m, "weight", TRN__INIT_UNIFORM, bound, 2,
                     (int64_t[]){n_out, n_in});
    if (bias && c->status == TRN_OK)
        trn__module_draw(m, "bias", TRN__INIT_UNIFORM, bound, 1, &n_out);
    if (c->status == TRN_OK)
        return m;
    trn__module_drop(m);
    return NULL;
}

trn_module *trn_nn_linear(trn_context *c, int64_t n_in, int64_t n_out)
{
    return linear(c, n_in, n_out, true);
}

trn_module *trn_nn_linear_no_bias(trn_context *c, int64_t n_in, int64_t n_out)
{
    return linear(c, n_in, n_out, false);
}

/* ---- embedding ---- */

static trn_tensor *embedding_forward(trn_module *m, trn_tensor *x, void *user)
{
    (void)user;
    return trn_embedding(m->first_parameter->tensor, x, -1);
}

trn_module *trn_nn_embedding(trn_context *c, int64_t n_rows, int64_t width)
{
    const char *what = "trn_nn_embedding";
    if (check_width(c, what, "n_rows", n_rows) != TRN_OK ||
        check_width(c, what, "width", width) != TRN_OK)
        return NULL;
    trn_module *m = trn__module_new(c, what, embedding_forward, NULL);
    if (m == NULL)
        return NULL;
    if (trn__module_draw(m, "weight", TRN__INIT_NORMAL, 1.0, 2,
                         (int64_t[]){n_rows, width}) == TRN_OK)
        return m;
    trn__module_drop(m);
    return NULL;
}

/* ---- dropout ---- */

uint64_t trn__dropout_stream(const trn_module *m)
{
    char path[TRN__MESSAGE_SIZE / 2];
    if (m->generator != NULL)
        return m->generator->stream;
    trn__module_path(m, path, sizeof path);
    return trn__hash_text(path);
}

trn_generator *trn__dropout_generator(trn_module *m)
{
    if (m->generator == NULL) /* now m's place in the tree is known */
        m->generator = trn_generator_new(m->c, trn__dropout_stream(m));
    return m->generator;
}

static trn_tensor *dropout_forward(trn_module *m, trn_tensor *x, void *user)
{
    (void)user;
    if (!m->training)
        return x;
    trn_generator *g = trn__dropout_generator(m);
    return g == NULL ? NULL : trn_dropout(x, m->p, g);
}

static trn_status check_p(trn_context *c, const char *what, double p)
{
    char text[32];
    TRN_TRY(trn__pending(c));
    if (!trn__fp_within(p, 0.0, 1.0))
        return trn__fail(c, TRN_ERR_ARG, "%s: p is %s; expected 0 to 1", what,
                         trn__format_double(p, text, sizeof text));
    return TRN_OK;
}

trn_module *trn_nn_dropout(trn_context *c, double p)
{
    if (check_p(c, "trn_nn_dropout", p) != TRN_OK)
        return NULL;
    trn_module *m = trn__module_new(c, "trn_nn_dropout", dropout_forward, NULL);
    if (m != NULL) {
        m->is_dropout = true;
        m->p = p;
    }
    return m;
}

trn_status trn_nn_set_dropout(trn_module *m, double p)
{
    if (m == NULL)
        return TRN_ERR_ARG;
    TRN_TRY(check_p(m->c, "trn_nn_set_dropout", p));
    if (!m->is_dropout)
        return trn__fail(m->c, TRN_ERR_ARG,
                         "trn_nn_set_dropout: the module is not a dropout");
    m->p = p;
    return TRN_OK;
}

/* ---- without parameters ---- */

static trn_tensor *relu_forward(trn_module *m, trn_tensor *x, void *user)
{
    (void)m;
    (void)user;
    return trn_relu(x);
}

trn_module *trn_nn_relu(trn_context *c)
{
    return trn__module_new(c, "trn_nn_relu", relu_forward, NULL);
}

static trn_tensor *tanh_forward(trn_module *m, trn_tensor *x, void *user)
{
    (void)m;
    (void)user;
    return trn_tanh(x);
}

trn_module *trn_nn_tanh(trn_context *c)
{
    return trn__module_new(c, "trn_nn_tanh", tanh_forward, NULL);
}

static trn_tensor *flatten_forward(trn_module *m, trn_tensor *x, void *user)
{
    (void)user;
    if (x->arg.rank == 0) {
        trn__fail(m->c, TRN_ERR_SHAPE, "flatten: x is %s; expected rank 1 up",
                  trn__describe(&x->arg).s);
        return NULL;
    }
    int64_t rest = trn__numel(x->arg.rank - 1, x->arg.shape + 1);
    return trn_reshape(x, 2, (int64_t[]){x->arg.shape[0], rest});
}

trn_module *trn_nn_flatten(trn_context *c)
{
    return trn__module_new(c, "trn_nn_flatten", flatten_forward, NULL);
}

/* ---- sequential ---- */

static trn_tensor *sequential_forward(trn_module *m, trn_tensor *x, void *user)
{
    (void)user;
    for (trn_module *k = m->first_child; k != NULL && x != NULL; k = k->next)
        x = trn_nn_forward(k, x);
    return x;
}

trn_module *trn_nn_sequential(trn_context *c, ...)
{
    trn_module *m =
        trn__module_new(c, "trn_nn_sequential", sequential_forward, NULL);
    if (m == NULL)
        return NULL;
    va_list modules;
    va_start(modules, c);
    trn_module *child;
    for (int i = 0; (child = va_arg(modules, trn_module *)) != NULL; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        if (trn_nn_add_child(m, name, child) != TRN_OK)
            break; /* the children so far stay in m, freed with the context */
    }
    va_end(modules);
    return c->status == TRN_OK ? m : NULL;
}
