/* SPDX-License-Identifier: Apache-2.0
 *
 * One call of every row for tests of the CPU as a graph device: operands in
 * different layouts, attributes, values.
 */
#ifndef TRN_TESTS_CPU_ROW_CASE_H
#define TRN_TESTS_CPU_ROW_CASE_H

#include "cpu_graph_run.h"

typedef struct row_case {
    uint32_t op;
    int n_in;
    trn_arg in[4];
    trn_arg out;
    const void *attrs;
    size_t attrs_size;
    double values[8];
    int n_values;
} row_case;

enum { CLASS_UNARY, CLASS_BINARY, CLASS_COMPARE, CLASS_VIEW };
enum { CLASS_REDUCE = 10, CLASS_RANDOM, CLASS_UPDATE, CLASS_SPECIAL };

typedef struct row {
    uint32_t op;
    int cls, n_in;
    uint32_t writes;
    const char *name;
} row;

static const row rows[] = {
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    {id, CLASS_##cls, n_in, writes, #nm},
#include "trn/ops.def"
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

static const int64_t xs[] = {6, 10}, fives[] = {5}, tall[] = {10, 6};
static const trn_reduce_attrs reduce_last = {.axes = 2};
static const trn_var_attrs var_last = {.axes = 2, .correction = 1};
static const trn_axis_attrs last_axis = {.axis = 1};
static const trn_dtype_attrs to_f64 = {.dtype = TRN_F64};
static const trn_pad_attrs wider = {
    .axis = 1, .before = 1, .after = 2, .interior = 1};
static const trn_matmul_attrs plain_matmul = {.trans_a = 0};
static const trn_embedding_attrs embedding = {.padding_idx = -1};
static const trn_embedding_grad_attrs embedding_grad = {.n_rows = 6,
                                                        .padding_idx = -1};
static const trn_scatter_attrs scatter = {.axis = 1, .size = 10};
static const trn_random_attrs drawn = {.shape = {2, {6, 10}}, .dtype = TRN_F32};
static const trn_full_attrs filled = {.shape = {2, {6, 10}}, .dtype = TRN_F32};
static const trn_cross_entropy_attrs mean_loss = {.reduction = 0};
static const trn_sgd_momentum_attrs nesterov = {.nesterov = 1};

static const trn_flip_attrs both_axes = {.axes = 3};
static const trn_one_hot_attrs six_classes = {.n_classes = 6, .dtype = TRN_F32};
static const trn_randint_attrs integers = {
    .shape = {2, {6, 10}}, .low = -3, .high = 90, .dtype = TRN_I32};
static const trn_permutation_attrs sixty = {.n = 60, .dtype = TRN_I32};

static trn_arg small_index(int rank, const int64_t *shape)
{
    trn_arg a = zeros(TRN_I32, rank, shape, PLAIN);
    for (int64_t i = 0; i < numel(&a); i++)
        set(&a, i, (double)(i * 7 % 6));
    return a;
}

#define ATTRS(name) c->attrs = &(name), c->attrs_size = sizeof(name)

static void indexed_case(row_case *c)
{
    static const int64_t narrow[] = {6, 4}, rows5[] = {5, 10};
    switch (c->op) {
    case TRN_OP_embedding:
        c->in[1] = small_index(1, fives);
        c->out = like(TRN_F32, 2, rows5);
        ATTRS(embedding);
        break;
    case TRN_OP_embedding_grad:
        c->in[0] = ones_of(TRN_F32, 2, rows5, SWAPPED, 5);
        c->in[1] = small_index(1, fives);
        ATTRS(embedding_grad);
        break;
    case TRN_OP_gather:
        c->in[1] = small_index(2, narrow);
        c->out = like(TRN_F32, 2, narrow);
        ATTRS(last_axis);
        break;
    default:
        c->in[0] = ones_of(TRN_F32, 2, narrow, SWAPPED, 5);
        c->in[1] = small_index(2, narrow);
        ATTRS(scatter);
    }
}

static void loss_case(row_case *c)
{
    static const int64_t six[] = {6};
    c->in[1] = small_index(1, six);
    if (c->op == TRN_OP_cross_entropy)
        c->out.rank = 0;
    else
        c->in[2] = ones_of(TRN_F32, 0, NULL, PLAIN, 3);
    ATTRS(mean_loss);
}

static void moved_case(row_case *c)
{
    static const int64_t twice[] = {6, 20}, picked[] = {6, 5}, hot[] = {5, 6};
    switch (c->op) {
    case TRN_OP_concat:
        c->out = like(TRN_F32, 2, twice);
        ATTRS(last_axis);
        break;
    case TRN_OP_flip:
        ATTRS(both_axes);
        break;
    case TRN_OP_index_select:
        c->in[1] = small_index(1, fives);
        c->out = like(TRN_F32, 2, picked);
        ATTRS(last_axis);
        break;
    default:
        c->in[0] = small_index(1, fives);
        c->out = like(TRN_F32, 2, hot);
        ATTRS(six_classes);
    }
}

static void random_case(row_case *c)
{
    static const int64_t line[] = {60};
    if (c->op == TRN_OP_randint) {
        c->out = like(TRN_I32, 2, xs);
        ATTRS(integers);
    } else if (c->op == TRN_OP_permutation) {
        c->out = like(TRN_I32, 1, line);
        ATTRS(sixty);
    } else {
        ATTRS(drawn);
    }
}

static void special_case(row_case *c)
{
    static const int64_t padded[] = {6, 22}, square[] = {6, 6};
    switch (c->op) {
    case TRN_OP_where:
        c->in[0] = ones_of(TRN_BOOL, 2, xs, GAPS, 9);
        break;
    case TRN_OP_add_scalar:
    case TRN_OP_mul_scalar:
        c->n_values = 1;
        break;
    case TRN_OP_cast:
        c->out.dtype = TRN_F64;
        ATTRS(to_f64);
        break;
    case TRN_OP_pad:
        c->out = like(TRN_F32, 2, padded);
        ATTRS(wider);
        break;
    case TRN_OP_argmax:
        c->out = like(TRN_I32, 1, xs);
        ATTRS(last_axis);
        break;
    case TRN_OP_var:
        c->out = like(TRN_F32, 1, xs);
        ATTRS(var_last);
        break;
    case TRN_OP_matmul:
        c->in[1] = ones_of(TRN_F32, 2, tall, SWAPPED, 2);
        c->out = like(TRN_F32, 2, square);
        ATTRS(plain_matmul);
        break;
    case TRN_OP_var:
        c->out = like(TRN_F32, 1, xs);
        ATTRS(var_last);
        break;
    case TRN_OP_full:
        c->n_values = 1;
        ATTRS(filled);
        break;
    case TRN_OP_softmax:
    case TRN_OP_log_softmax:
        ATTRS(last_axis);
        break;
    case TRN_OP_cross_entropy:
    case TRN_OP_cross_entropy_grad:
        loss_case(c);
        break;
    case TRN_OP_embedding:
    case TRN_OP_embedding_grad:
    case TRN_OP_gather:
    case TRN_OP_scatter_add:
        indexed_case(c);
        break;
    case TRN_OP_concat:
    case TRN_OP_flip:
    case TRN_OP_index_select:
    case TRN_OP_one_hot:
        moved_case(c);
        break;
    default:
        break;
    }
}

static void fill_case(row_case *c, const row *r)
{
    static const double values[] = {0.3, 0.1, 0.9, 0.2, 0.01, 0.7, 1e-8};
    *c = (row_case){.op = r->op, .n_in = r->n_in};
    memcpy(c->values, values, sizeof values);
    c->out = like(r->cls == CLASS_COMPARE ? TRN_BOOL : TRN_F32, 2, xs);
    for (int i = 0; i < r->n_in; i++)
        c->in[i] = ones_of(TRN_F32, 2, xs,
                           r->writes >> i & 1u ? PLAIN : (layout)(i % 3),
                           r->op + (uint64_t)i);
    if (r->cls == CLASS_REDUCE) {
        c->out = like(TRN_F32, 1, xs);
        ATTRS(reduce_last);
    } else if (r->op == TRN_OP_dropout) {
        c->n_values = 1;
    } else if (r->cls == CLASS_RANDOM) {
        random_case(c);
    } else if (r->cls == CLASS_SPECIAL) {
        special_case(c);
    } else if (r->cls == CLASS_UPDATE) {
        c->n_values = r->op == TRN_OP_assign                ? 0
                      : r->op == TRN_OP_sgd_update          ? 2
                      : r->op == TRN_OP_sgd_momentum_update ? 4
                                                            : 7;
        if (r->op == TRN_OP_sgd_momentum_update)
            ATTRS(nesterov);
        if (r->op == TRN_OP_adamw_update)
            for (int64_t i = 0; i < 60; i++)
                set(&c->in[3], i, fabs(get(&c->in[3], i)));
    }
}

#endif
