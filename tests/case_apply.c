/* SPDX-License-Identifier: Apache-2.0
 *
 * Applying the row of a case, by the public function where there is one.
 */
#include "case_build.h"
#include "libtrn/ops/step.h"

bool case_takes(uint32_t op, trn_dtype dtype)
{
    if (dtype_is_float(dtype))
        return true;
    switch (op) {
    case TRN_OP_equal:
    case TRN_OP_not_equal:
    case TRN_OP_where:
    case TRN_OP_cast:
    case TRN_OP_copy:
    case TRN_OP_reshape:
    case TRN_OP_permute:
    case TRN_OP_expand:
    case TRN_OP_slice:
    case TRN_OP_pad:
    case TRN_OP_sum:
    case TRN_OP_gather:
    case TRN_OP_full:
    case TRN_OP_assign:
    case TRN_OP_concat:
    case TRN_OP_flip:
    case TRN_OP_index_select:
    case TRN_OP_randint: /* its type is an attribute */
    case TRN_OP_permutation:
        return true;
    case TRN_OP_neg:
    case TRN_OP_relu:
    case TRN_OP_add:
    case TRN_OP_sub:
    case TRN_OP_mul:
    case TRN_OP_div:
    case TRN_OP_maximum:
    case TRN_OP_greater:
    case TRN_OP_add_scalar:
    case TRN_OP_max:
    case TRN_OP_argmax:
    case TRN_OP_matmul:
    case TRN_OP_one_hot:
    case TRN_OP_abs:
    case TRN_OP_sign:
    case TRN_OP_minimum:
    case TRN_OP_less:
    case TRN_OP_less_equal:
    case TRN_OP_greater_equal:
    case TRN_OP_min:
        return dtype != TRN_BOOL;
    default:
        return false;
    }
}

static void copy_dims(const op_case *tc, const char *name, trn_dims *dims)
{
    memset(dims, 0, sizeof *dims);
    dims->rank = attr_list(tc, name, dims->dim);
}

static void cross_entropy_attrs(const op_case *tc, trn_cross_entropy_attrs *at)
{
    at->reduction = (int32_t)attr_int(tc, "reduction", TRN_REDUCE_MEAN);
    at->has_ignore_index = attr_has(tc, "ignore");
    at->ignore_index = attr_int(tc, "ignore", 0);
}

static void loss_call(const op_case *tc, const case_args *a, void *attrs,
                      trn__call *k)
{
    trn_cross_entropy_weighted_attrs *at = attrs;
    int reduction = (int32_t)attr_int(tc, "reduction", TRN_REDUCE_MEAN);
    double smoothing = attr_real(tc, "smoothing", 0.0);
    int64_t n_classes = a->in[0].dim[1];
    if (tc->op == TRN_OP_soft_cross_entropy) {
        ((trn_soft_cross_entropy_attrs *)attrs)->reduction = reduction;
    } else {
        at->reduction = reduction;
        at->has_ignore_index = attr_has(tc, "ignore");
        at->ignore_index = attr_int(tc, "ignore", 0);
    }
    k->values[0] = 1.0 - smoothing;
    k->values[1] = n_classes == 0 ? 0.0 : smoothing / (double)n_classes;
}

static void random_attrs(const case_args *a, void *attrs)
{
    const op_case *tc = a->tc;
    trn_random_attrs *real = attrs;
    trn_randint_attrs *integer = attrs;
    trn_permutation_attrs *order = attrs;
    switch (tc->op) {
    case TRN_OP_randint:
        copy_dims(tc, "shape", &integer->shape);
        integer->low = attr_int(tc, "low", 0);
        integer->high = attr_int(tc, "high", 10);
        integer->dtype = (int32_t)attr_dtype(tc, "to", TRN_I32);
        break;
    case TRN_OP_permutation:
        order->n = attr_int(tc, "n", 0);
        order->dtype = (int32_t)attr_dtype(tc, "to", TRN_I32);
        break;
    default:
        copy_dims(tc, "shape", &real->shape);
        real->dtype = (int32_t)a->dtype;
        break;
    }
}

static void loss_attrs(const op_case *tc, trn_loss_attrs *at)
{
    at->reduction = (int32_t)attr_int(tc, "reduction", TRN_REDUCE_MEAN);
}

static void reduce_attrs(const op_case *tc, int rank, trn_reduce_attrs *at)
{
    at->axes = attr_axes(tc, rank);
    at->keep_dims = (int32_t)attr_int(tc, "keep", 0);
}

/* VALUE attributes of the optimizers' rows, in the row's order. */
static int optimizer_values(const op_case *tc, double *value)
{
    value[0] = attr_real(tc, "lr", 0.1);
    value[1] = attr_real(tc, "wd", 0.01);
    if (tc->op == TRN_OP_sgd_momentum_update) {
        value[2] = attr_real(tc, "mu", 0.9);
        value[3] = attr_real(tc, "undamped", 1.0);
    } else if (tc->op == TRN_OP_adamw_update) {
        static const double adamw[7] = {0.999, 0.1, 0.999, 0.001,
                                        0.01,  0.5, 1e-8};
        memcpy(value, adamw, sizeof adamw);
    }
    return 0;
}

void case_call(trn_context *c, const case_args *a, trn_tensor **in,
               trn__call *k, void *attrs)
{
    const op_case *tc = a->tc;
    const trn__op_info *info = &trn__ops[tc->op];
    memset(attrs, 0, TRN__MAX_ATTRS);
    *k = trn__call_of(tc->op, NULL, NULL, attrs, info->attrs_size);
    k->c = c;
    for (int i = 0; i < a->n_in; i++)
        k->in[i] = in[i];
    switch (tc->op) {
    case TRN_OP_embedding_grad:
        ((trn_embedding_grad_attrs *)attrs)->n_rows = attr_int(tc, "rows", 1);
        ((trn_embedding_grad_attrs *)attrs)->padding_idx =
            attr_int(tc, "padding", -1);
        break;
    case TRN_OP_softmax:
    case TRN_OP_log_softmax:
    case TRN_OP_concat:
    case TRN_OP_index_select:
        ((trn_axis_attrs *)attrs)->axis = attr_axis(tc, a->in[0].rank);
        break;
    case TRN_OP_cross_entropy:
    case TRN_OP_cross_entropy_grad:
        cross_entropy_attrs(tc, attrs);
        break;
    case TRN_OP_cross_entropy_weighted:
    case TRN_OP_soft_cross_entropy:
        loss_call(tc, a, attrs, k);
        break;
    case TRN_OP_sgd_momentum_update:
        ((trn_sgd_momentum_attrs *)attrs)->nesterov =
            (int32_t)attr_int(tc, "nesterov", 0);
        optimizer_values(tc, k->values);
        break;
    case TRN_OP_sgd_update:
    case TRN_OP_adamw_update:
        optimizer_values(tc, k->values);
        break;
    case TRN_OP_one_hot:
        ((trn_one_hot_attrs *)attrs)->n_classes = attr_int(tc, "classes", 1);
        ((trn_one_hot_attrs *)attrs)->dtype = (int32_t)a->dtype;
        break;
    case TRN_OP_uniform:
    case TRN_OP_normal:
    case TRN_OP_randint:
    case TRN_OP_permutation:
        random_attrs(a, attrs);
        break;
    case TRN_OP_min:
    case TRN_OP_logsumexp:
        reduce_attrs(tc, a->in[0].rank, attrs);
        break;
    case TRN_OP_mse_loss:
        loss_attrs(tc, attrs);
        break;
    default:
        break;
    }
    if (tc->op == TRN_OP_dropout)
        k->values[0] = attr_real(tc, "p", 0.5);
    k->key = CASE_KEY;
    k->draw = CASE_DRAW;
}

/* UPDATE rows overwrite: a leaf is copied first, so that it can be. */
static int apply_update(trn_context *c, const case_args *a, trn_tensor **in,
                        trn_tensor **out)
{
    trn__call k;
    uint64_t attrs[TRN__MAX_ATTRS / 8];
    uint32_t writes = trn__ops[a->tc->op].writes;
    trn_tensor *x[CASE_MAX_IN];
    int n = 0;
    bool assign = a->tc->op == TRN_OP_assign;
    for (int i = 0; i < a->n_in; i++) {
        bool written = (writes >> i) & 1u;
        bool recorded = trn_requires_grad(in[0]) || trn_requires_grad(in[1]);
        bool copied = written && (!assign || recorded);
        x[i] = copied ? trn_copy(in[i]) : in[i];
        if (written)
            out[n++] = x[i];
    }
    if (assign)
        return trn_assign(x[0], x[1]) == TRN_OK ? n : 0;
    case_call(c, a, x, &k, attrs);
    return trn__apply(&k) == NULL ? 0 : n;
}

static trn_tensor *apply_shape(const case_args *a, trn_tensor *x)
{
    const op_case *tc = a->tc;
    int64_t shape[TRN_MAX_RANK] = {0};
    int perm[TRN_MAX_RANK];
    int rank =
        attr_list(tc, tc->op == TRN_OP_permute ? "perm" : "shape", shape);
    for (int d = 0; d < rank; d++)
        perm[d] = (int)shape[d];
    switch (tc->op) {
    case TRN_OP_reshape:
        return trn_reshape(x, rank, shape);
    case TRN_OP_expand:
        return trn_expand(x, rank, shape);
    case TRN_OP_permute:
        return trn_permute(x, perm);
    case TRN_OP_slice:
        return trn_slice(
            x, (int)attr_int(tc, "axis", 0), attr_int(tc, "start", 0),
            attr_int(tc, "stop", INT64_MAX), attr_int(tc, "step", 1));
    default:
        return trn_pad(x, (int)attr_int(tc, "axis", 0),
                       attr_int(tc, "before", 0), attr_int(tc, "after", 0),
                       attr_int(tc, "interior", 0));
    }
}

static trn_tensor *apply_reduce(const case_args *a, trn_tensor *x)
{
    const op_case *tc = a->tc;
    bool keep = attr_int(tc, "keep", 0) != 0;
    uint32_t axes = attr_axes(tc, a->in[0].rank);
    switch (tc->op) {
    case TRN_OP_sum:
        return trn_sum(x, axes, keep);
    case TRN_OP_mean:
        return trn_mean(x, axes, keep);
    case TRN_OP_norm:
        return trn_norm(x, axes, keep);
    case TRN_OP_min:
        return trn_min(x, axes, keep);
    case TRN_OP_var:
        return trn_var(x, axes, keep, attr_int(tc, "correction", 0));
    case TRN_OP_logsumexp:
        return trn_logsumexp(x, axes, keep);
    default:
        return trn_max(x, axes, keep);
    }
}

/* Rows that move elements, by an index or without. */
static trn_tensor *apply_index(const case_args *a, trn_tensor **in)
{
    const op_case *tc = a->tc;
    int axis = (int)attr_int(tc, "axis", 0);
    trn_cross_entropy_options o = TRN_CROSS_ENTROPY_INIT;
    switch (tc->op) {
    case TRN_OP_embedding:
        return trn_embedding(in[0], in[1], attr_int(tc, "padding", -1));
    case TRN_OP_gather:
        return trn_gather(in[0], axis, in[1]);
    case TRN_OP_scatter_add:
        return trn_scatter_add(in[0], axis, in[1], attr_int(tc, "size", 1));
    case TRN_OP_index_select:
        return trn_index_select(in[0], axis, in[1]);
    case TRN_OP_one_hot:
        return trn_one_hot(in[0], attr_int(tc, "classes", 1), a->dtype);
    case TRN_OP_concat:
        return trn_concat(2, in, axis);
    case TRN_OP_flip:
        return trn_flip(in[0], attr_axes(tc, a->in[0].rank));
    default:
        o.reduction = (uint32_t)attr_int(tc, "reduction", TRN_REDUCE_MEAN);
        o.has_ignore_index = attr_has(tc, "ignore");
        o.ignore_index = attr_int(tc, "ignore", 0);
        return trn_cross_entropy(in[0], in[1], &o);
    }
}

static trn_tensor *apply_elementwise(const case_args *a, trn_tensor **in)
{
    switch (a->tc->op) {
#define UNARY(nm)     \
    case TRN_OP_##nm: \
        return trn_##nm(in[0]);
        UNARY(neg)
        UNARY(exp)
        UNARY(log)
        UNARY(tanh)
        UNARY(sqrt)
        UNARY(relu)
        UNARY(copy)
        UNARY(check_finite)
        UNARY(abs)
        UNARY(sign)
        UNARY(floor)
        UNARY(ceil)
        UNARY(round)
        UNARY(rsqrt)
        UNARY(sigmoid)
        UNARY(silu)
        UNARY(gelu_tanh)
        UNARY(sin)
        UNARY(cos)
        UNARY(erf)
        UNARY(trunc)
        UNARY(gelu)
#define BINARY(nm)    \
    case TRN_OP_##nm: \
        return trn_##nm(in[0], in[1]);
        BINARY(add)
        BINARY(sub)
        BINARY(mul)
        BINARY(div)
        BINARY(pow)
        BINARY(maximum)
        BINARY(greater)
        BINARY(equal)
        BINARY(minimum)
        BINARY(less)
        BINARY(less_equal)
        BINARY(greater_equal)
        BINARY(not_equal)
        BINARY(atan2)
    default:
        return NULL;
    }
}

static trn_tensor *apply_one(trn_context *c, const case_args *a,
                             trn_tensor **in)
{
    const op_case *tc = a->tc;
    int64_t shape[TRN_MAX_RANK];
    const int rank = attr_list(tc, "shape", shape);
    trn__call k;
    uint64_t attrs[TRN__MAX_ATTRS / 8];
    const trn__op_class cls = trn__ops[tc->op].cls;
    if (cls == TRN__CLASS_REDUCE)
        return apply_reduce(a, in[0]);
    if (cls == TRN__CLASS_VIEW || tc->op == TRN_OP_pad)
        return apply_shape(a, in[0]);
    switch (tc->op) {
    case TRN_OP_where:
        return trn_where(in[0], in[1], in[2]);
    case TRN_OP_add_scalar:
        return trn_add_scalar(in[0], attr_real(tc, "value", 1.5));
    case TRN_OP_mul_scalar:
        return trn_mul_scalar(in[0], attr_real(tc, "value", 1.5));
    case TRN_OP_cast:
        return trn_cast(in[0], attr_dtype(tc, "to", TRN_F32));
    case TRN_OP_var:
        return apply_reduce(a, in[0]);
    case TRN_OP_mse_loss:
        return trn_mse_loss(
            in[0], in[1],
            (trn_reduction)attr_int(tc, "reduction", TRN_REDUCE_MEAN));
    case TRN_OP_argmax:
        return trn_argmax(in[0], (int)attr_int(tc, "axis", 0));
    case TRN_OP_matmul:
        return trn_matmul_trans(in[0], in[1], attr_int(tc, "ta", 0) != 0,
                                attr_int(tc, "tb", 0) != 0);
    case TRN_OP_embedding:
    case TRN_OP_gather:
    case TRN_OP_scatter_add:
    case TRN_OP_cross_entropy:
    case TRN_OP_index_select:
    case TRN_OP_one_hot:
    case TRN_OP_concat:
    case TRN_OP_flip:
        return apply_index(a, in);
    case TRN_OP_full:
        return trn_full(c, a->dtype, rank, shape, attr_real(tc, "value", 1.0));
    case TRN_OP_softmax:
        return trn_softmax(in[0], (int)attr_int(tc, "axis", 0));
    case TRN_OP_log_softmax:
        return trn_log_softmax(in[0], (int)attr_int(tc, "axis", 0));
    case TRN_OP_flush_subnormal:
    case TRN_OP_embedding_grad:
    case TRN_OP_cross_entropy_grad:
    case TRN_OP_cross_entropy_weighted:
    case TRN_OP_soft_cross_entropy:
    case TRN_OP_uniform:
    case TRN_OP_normal:
    case TRN_OP_dropout:
    case TRN_OP_randint:
    case TRN_OP_permutation:
        case_call(c, a, in, &k, attrs);
        return trn__apply(&k);
    default:
        return apply_elementwise(a, in);
    }
}

int case_apply(trn_context *c, const case_args *a, trn_tensor **in,
               trn_tensor **out)
{
    if (trn__ops[a->tc->op].writes != 0)
        return apply_update(c, a, in, out);
    out[0] = apply_one(c, a, in);
    return out[0] == NULL ? 0 : 1;
}
