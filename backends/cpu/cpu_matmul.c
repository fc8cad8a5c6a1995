/* SPDX-License-Identifier: Apache-2.0
 *
 * The matmul row: batches, transposes, and the choice of a way.
 *
 * A transpose only swaps strides.  Small products and big batches are computed
 * one item per thread, others by all threads together; the bits are the same.
 * OpenBLAS, where it was asked for, comes before both; its bits are not.
 */
#include "backends/cpu/cpu_blas.h"
#include "backends/cpu/cpu_matmul.h"
#include "backends/cpu/cpu_workspace.h"

#include <string.h>

#define SERIAL_WORK (48 * 48 * 48)   /* m n k of one product */
#define BATCH_WORK (256 * 256 * 256) /* of an item of a batch */

/* The batch dimensions of a factor, broadcast to those of the output. */
static void batch_reader(trn__cpu_reader *r, const trn_arg *x, const trn_arg *y)
{
    int64_t stride[TRN_MAX_RANK] = {0};
    const int rank = (int)y->rank - 2, skip = (int)(y->rank - x->rank);
    for (int d = skip; d < rank; d++)
        stride[d] = x->shape[d - skip] == 1 ? 0 : x->stride[d - skip];
    trn__cpu_reader_dims(r, x, rank, y->shape, stride);
}

static void set_up(trn__cpu_products *p, trn_device *dev,
                   const trn_op_call *call)
{
    const trn_matmul_attrs *attrs = call->attrs;
    const trn_arg *a = call->in[0], *b = call->in[1], *y = call->out[0];
    const uint32_t a_m = a->rank - 2 + (attrs->trans_a != 0);
    const uint32_t a_k = a->rank - 1 - (attrs->trans_a != 0);
    const uint32_t b_k = b->rank - 2 + (attrs->trans_b != 0);
    const uint32_t b_n = b->rank - 1 - (attrs->trans_b != 0);
    p->one = (trn__cpu_product){
        .dev = dev,
        .m = a->shape[a_m],
        .n = b->shape[b_n],
        .k = a->shape[a_k],
        .a = {.outer = a->stride[a_m],
              .inner = a->stride[a_k],
              .dtype = a->dtype},
        .b = {.outer = b->stride[b_n],
              .inner = b->stride[b_k],
              .dtype = b->dtype},
        .c = trn__cpu_data(y),
        .c_dtype = y->dtype,
    };
    p->n_batch = 1;
    for (uint32_t d = 0; d + 2 < y->rank; d++)
        p->n_batch *= y->shape[d];
    batch_reader(&p->a, a, y);
    batch_reader(&p->b, b, y);
    /* One b for all rows of all items: the items are one taller matrix. */
    const bool same_b =
        p->b.rank == 0 || (p->b.rank == 1 && p->b.stride[0] == 0);
    if (p->n_batch > 1 && same_b && p->a.rank == 1 &&
        (p->one.m == 1 || p->a.stride[0] == p->one.m * p->one.a.outer)) {
        if (p->one.m == 1)
            p->one.a.outer = p->a.stride[0];
        p->one.m *= p->n_batch;
        p->n_batch = 1;
        p->a.rank = p->b.rank = 0;
    }
    p->c_bytes = (size_t)(p->one.m * p->one.n) * trn__cpu_size(y->dtype);
}

static void batch_range(void *arg, int64_t begin, int64_t end)
{
    const trn__cpu_products *all = arg;
    for (int64_t i = begin; i < end; i++) {
        const trn__cpu_product p = trn__cpu_product_of(all, i);
        trn__cpu_multiply_serial(&p);
    }
}

static double work_of_one(const trn__cpu_products *p)
{
    return (double)p->one.m * (double)p->one.n * (double)p->one.k;
}

/* One item per thread? */
static bool by_items(const trn__cpu_products *p)
{
    const double work = work_of_one(p);
    return work <= SERIAL_WORK || (p->n_batch > 1 && work <= BATCH_WORK);
}

/* f32 and f64 results. */
static int32_t multiply_all(trn__cpu_products *p)
{
    trn_device *dev = p->one.dev;
    if (trn__blas_takes(p)) {
        trn__blas_multiply(p);
        return TRN_OK;
    }
    if (by_items(p)) {
        const double work = work_of_one(p);
        const int64_t grain =
            work < SERIAL_WORK ? (int64_t)(SERIAL_WORK / (work + 1)) : 1;
        trn__cpu_for(dev, p->n_batch, trn__i64_max(1, grain), batch_range, p);
        return TRN_OK;
    }
    for (int64_t i = 0; i < p->n_batch; i++) {
        const trn__cpu_product one = trn__cpu_product_of(p, i);
        const int32_t status = trn__cpu_multiply_shared(&one);
        if (status != TRN_OK)
            return trn__cpu_no_memory(dev);
    }
    return TRN_OK;
}

typedef struct narrow_job {
    const trn_device *dev;
    const float *x;
    uint16_t *y;
    uint32_t dtype;
} narrow_job;

static void narrow_range(void *arg, int64_t begin, int64_t end)
{
    const narrow_job *j = arg;
    trn__cpu_store(j->dev, j->dtype, end - begin, j->x + begin, j->y + begin);
}

static size_t sums_bytes(int64_t numel)
{
    return (size_t)numel * sizeof(float);
}

/* f16: summed in f32 memory, rounded once at the end. */
static int32_t multiply_f16(trn__cpu_products *p, int64_t numel)
{
    trn_device *dev = p->one.dev;
    float *c = trn__cpu_work_alloc(dev, sums_bytes(numel));
    if (c == NULL)
        return trn__cpu_no_memory(dev);
    narrow_job j = {dev, c, (uint16_t *)(void *)p->one.c, TRN_F16};
    p->one.c = (char *)c;
    p->one.c_dtype = TRN_F32;
    p->c_bytes = (size_t)(p->one.m * p->one.n) * sizeof *c;
    const int32_t status = multiply_all(p);
    if (status == TRN_OK)
        trn__cpu_for(dev, numel, TRN__CPU_CHEAP, narrow_range, &j);
    trn__cpu_work_free(dev, c);
    return status;
}

size_t trn__cpu_matmul_workspace(trn_device *dev, const trn_op_call *call)
{
    trn__cpu_products p;
    const trn_arg *y = call->out[0];
    const int64_t numel = trn__cpu_numel(y);
    const bool f16 = y->dtype == TRN_F16;
    if (numel == 0 || (!f16 && y->dtype != TRN_F32 && y->dtype != TRN_F64))
        return 0;
    set_up(&p, dev, call);
    if (p.one.k == 0 || trn__blas_takes(&p))
        return 0;
    if (f16)
        p.one.c_dtype = TRN_F32;
    return (f16 ? trn__cpu_up64(sums_bytes(numel)) : 0) +
           (by_items(&p) ? 0 : trn__cpu_up64(trn__cpu_shared_bytes(&p.one)));
}

int32_t trn__cpu_matmul(trn_device *dev, const trn_op_call *call)
{
    trn__cpu_products p;
    const trn_arg *y = call->out[0];
    const int64_t numel = trn__cpu_numel(y);
    if (numel == 0)
        return TRN_OK;
    set_up(&p, dev, call);
    if (p.one.k == 0) {
        memset(trn__cpu_data(y), 0, (size_t)numel * trn__cpu_size(y->dtype));
        return TRN_OK;
    }
    if (y->dtype == TRN_F32 || y->dtype == TRN_F64)
        return multiply_all(&p);
    if (y->dtype == TRN_F16)
        return multiply_f16(&p, numel);
    const double row = (double)p.one.n * (double)p.one.k + 1;
    trn__cpu_for(dev, p.n_batch * p.one.m,
                 trn__i64_max(1, (int64_t)(TRN__CPU_CHEAP / row)),
                 y->dtype == TRN_BF16 ? trn__cpu_multiply_bf16
                                      : trn__cpu_multiply_integers,
                 &p);
    return TRN_OK;
}
