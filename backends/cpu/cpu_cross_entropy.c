/* SPDX-License-Identifier: Apache-2.0
 *
 * cross_entropy and cross_entropy_grad, row by row on cpu_softmax_rows.h.
 *
 * Equal, bit for bit, to the decomposition in the compute type:
 *     l = where(ignored, 0, -log_softmax(logits)[n, target n])
 *     NONE: y = l;  SUM: y = sum(l);  MEAN: y = sum(l) / count, 0 of none
 * and to its gradient
 *     y = where(ignored, 0, (softmax(logits) - one_hot(target)) w)
 * with w = g / count for MEAN (0 of none), else g.
 */
#include "backends/cpu/cpu_index.h"
#include "backends/cpu/cpu_reduce.h"
#include "backends/cpu/cpu_workspace.h"

#include <math.h>
#include <string.h>

#define REAL float
#define ROW(name) name##_f32
#include "backends/cpu/cpu_softmax_rows.h"
#undef REAL
#undef ROW
#define REAL double
#define ROW(name) name##_f64
#include "backends/cpu/cpu_softmax_rows.h"
#undef REAL
#undef ROW

/* Losses of this many rows need no memory. */
#define STACK_ROWS 512

typedef struct loss_job {
    trn_device *dev;
    const trn_cross_entropy_attrs *attrs;
    trn__cpu_reader target, g;
    const trn_arg *logits;
    int64_t n_rows, n_classes;
    int64_t count; /* targets that are not ignored */
    double weight; /* w of every row, unless g has one per row */
    bool f64;
    uint32_t y_dtype;
    char *y; /* grad: the output; else losses in the compute type */
} loss_job;

static bool ignored(const loss_job *j, int64_t target)
{
    return j->attrs->has_ignore_index && target == j->attrs->ignore_index;
}

static trn__cpu_reader logits_row(const loss_job *j, int64_t row)
{
    const int64_t size = (int64_t)trn__cpu_size(j->logits->dtype);
    return (trn__cpu_reader){
        .base = trn__cpu_data(j->logits) + row * j->logits->stride[0] * size,
        .dtype = j->logits->dtype,
        .size = (uint32_t)size,
        .rank = 1,
        .dim = {j->n_classes},
        .stride = {j->logits->stride[1]},
    };
}

static void loss_range(void *arg, int64_t begin, int64_t end)
{
    const loss_job *j = arg;
    union {
        row_f32 f32;
        row_f64 f64;
    } r;
    trn__cpu_chunk buf;
    for (int64_t i = begin; i < end; i++) {
        const int64_t t = *trn__cpu_load_index(&j->target, i, 1, &buf);
        float *y_f32 = (float *)(void *)j->y + i;
        double *y_f64 = (double *)(void *)j->y + i;
        if (ignored(j, t)) {
            memset(j->f64 ? (void *)y_f64 : y_f32, 0, j->f64 ? 8 : 4);
        } else if (j->f64) {
            r.f64.dev = j->dev;
            r.f64.n = j->n_classes;
            r.f64.in = logits_row(j, i);
            begin_f64(&r.f64);
            *y_f64 = loss_f64(&r.f64, t);
        } else {
            r.f32.dev = j->dev;
            r.f32.n = j->n_classes;
            r.f32.in = logits_row(j, i);
            begin_f32(&r.f32);
            *y_f32 = loss_f32(&r.f32, t);
        }
    }
}

/* Checks and counts targets. */
static int32_t begin_loss(loss_job *j, const trn_op_call *call)
{
    const trn_arg *x = call->in[0];
    trn__cpu_chunk buf;
    j->attrs = call->attrs;
    j->logits = x;
    j->n_rows = x->shape[0];
    j->n_classes = x->shape[1];
    j->f64 = x->dtype == TRN_F64;
    j->y_dtype = call->out[0]->dtype;
    trn__cpu_reader_init(&j->target, call->in[1]);
    const int32_t status = trn__cpu_check_index(
        j->dev, call, &j->target, j->n_rows, j->n_classes,
        j->attrs->has_ignore_index ? &j->attrs->ignore_index : NULL);
    j->count = 0;
    for (int64_t at = 0; status == TRN_OK && at < j->n_rows;
         at += TRN__CPU_CHUNK) {
        const int64_t n = trn__i64_min(j->n_rows - at, TRN__CPU_CHUNK);
        const int64_t *t = trn__cpu_load_index(&j->target, at, n, &buf);
        for (int64_t i = 0; i < n; i++)
            j->count += !ignored(j, t[i]);
    }
    return status;
}

static int64_t row_grain(const loss_job *j)
{
    return trn__i64_max(1, TRN__CPU_DEAR / trn__i64_max(1, j->n_classes));
}

/* The sum of all losses by the rule "reductions", divided for a mean. */
static void reduce_losses(const loss_job *j, const trn_op_call *call)
{
    double part[TRN__CPU_LEVELS], sum;
    trn__cpu_tree tree = {.full = 0, .width = 1, .part = part};
    const trn__kernel_set *set = &j->dev->set;
    for (int64_t at = 0; at < j->n_rows; at += TRN__CPU_BLOCK) {
        const int64_t n = trn__i64_min(j->n_rows - at, TRN__CPU_BLOCK);
        sum = j->f64 ? set->block_sum_f64(n, (double *)(void *)j->y + at, 0.0)
                     : set->block_sum_f32(n, (float *)(void *)j->y + at, 0.0);
        trn__cpu_tree_push(&tree, 0, &sum);
    }
    trn__cpu_tree_total(&tree, false, &sum);
    float sum_f32 = (float)sum;
    if (j->attrs->reduction == TRN_REDUCE_MEAN) {
        sum = j->count == 0 ? 0.0 : sum / (double)j->count;
        sum_f32 = j->count == 0 ? 0.0f : sum_f32 / (float)j->count;
    }
    trn__cpu_store(j->dev, j->y_dtype, 1,
                   j->f64 ? (const void *)&sum : &sum_f32,
                   trn__cpu_data(call->out[0]));
}

/* Are losses computed right in the output? */
static bool in_output(const trn_op_call *call)
{
    const trn_cross_entropy_attrs *attrs = call->attrs;
    const uint32_t dtype = call->out[0]->dtype;
    return attrs->reduction == TRN_REDUCE_NONE &&
           trn__cpu_compute(dtype) == dtype;
}

static size_t losses_bytes(const trn_arg *logits)
{
    return (size_t)logits->shape[0] *
           trn__cpu_size(trn__cpu_compute(logits->dtype));
}

size_t trn__cpu_loss_workspace(const trn_op_call *call)
{
    const trn_arg *x = call->in[0];
    return in_output(call) || x->shape[0] <= STACK_ROWS
               ? 0
               : trn__cpu_up64(losses_bytes(x));
}

int32_t trn__cpu_cross_entropy(trn_device *dev, const trn_op_call *call)
{
    loss_job j = {.dev = dev};
    double few[STACK_ROWS];
    const trn_arg *y = call->out[0];
    const int32_t status = begin_loss(&j, call);
    const bool none = j.attrs->reduction == TRN_REDUCE_NONE;
    char *losses = (char *)few;
    if (status != TRN_OK || (none && j.n_rows == 0)) /* no output memory */
        return status;
    if (in_output(call))
        losses = trn__cpu_data(y);
    else if (j.n_rows > STACK_ROWS)
        losses = trn__cpu_work_alloc(dev, losses_bytes(call->in[0]));
    if (losses == NULL)
        return trn__cpu_no_memory(dev);
    j.y = losses;
    if (j.n_rows > 0)
        trn__cpu_for(dev, j.n_rows, row_grain(&j), loss_range, &j);
    if (!none)
        reduce_losses(&j, call);
    else
        trn__cpu_store(dev, y->dtype, j.n_rows, losses, trn__cpu_data(y));
    if (losses != (char *)few && losses != trn__cpu_data(y))
        trn__cpu_work_free(dev, losses);
    return TRN_OK;
}

static void grad_range(void *arg, int64_t begin, int64_t end)
{
    const loss_job *j = arg;
    union {
        row_f32 f32;
        row_f64 f64;
    } r;
    trn__cpu_chunk buf, g;
    const int64_t bytes = j->n_classes * (int64_t)trn__cpu_size(j->y_dtype);
    const bool per_row = j->attrs->reduction == TRN_REDUCE_NONE;
    for (int64_t i = begin; i < end; i++) {
        const int64_t t = *trn__cpu_load_index(&j->target, i, 1, &buf);
        const void *w = per_row ? trn__cpu_load(j->dev, &j->g, i, 1, &g) : NULL;
        char *y = j->y + i * bytes;
        if (ignored(j, t)) {
            memset(y, 0, (size_t)bytes);
        } else if (j->f64) {
            r.f64.dev = j->dev;
            r.f64.n = j->n_classes;
            r.f64.in = logits_row(j, i);
            begin_f64(&r.f64);
            loss_grad_f64(&r.f64, t, w ? *(const double *)w : j->weight,
                          j->y_dtype, y);
        } else {
            r.f32.dev = j->dev;
            r.f32.n = j->n_classes;
            r.f32.in = logits_row(j, i);
            begin_f32(&r.f32);
            loss_grad_f32(&r.f32, t, w ? *(const float *)w : (float)j->weight,
                          j->y_dtype, y);
        }
    }
}

/* w of every row in the compute type, from the rank-0 g. */
static double shared_weight(const loss_job *j)
{
    trn__cpu_chunk buf;
    const void *g = trn__cpu_load(j->dev, &j->g, 0, 1, &buf);
    const bool mean = j->attrs->reduction == TRN_REDUCE_MEAN;
    if (j->f64)
        return mean ? *(const double *)g / (double)j->count
                    : *(const double *)g;
    return (double)(mean ? *(const float *)g / (float)j->count
                         : *(const float *)g);
}

int32_t trn__cpu_cross_entropy_grad(trn_device *dev, const trn_op_call *call)
{
    loss_job j = {.dev = dev};
    const int32_t status = begin_loss(&j, call);
    if (status != TRN_OK || trn__cpu_numel(call->out[0]) == 0)
        return status;
    j.y = trn__cpu_data(call->out[0]);
    trn__cpu_reader_init(&j.g, call->in[2]);
    if (j.attrs->reduction != TRN_REDUCE_NONE && j.count > 0)
        j.weight = shared_weight(&j);
    trn__cpu_for(dev, j.n_rows, row_grain(&j), grad_range, &j);
    return TRN_OK;
}
