/* SPDX-License-Identifier: Apache-2.0
 *
 * index_select and one_hot.  Indices are checked before anything is written.
 */
#include "backends/cpu/cpu_index.h"

#include <string.h>

/* ---- index_select ---- */

/* Lines shorter than this, in bytes, are read element by element. */
enum { SHORT_LINE = 64 };

typedef struct select_job {
    trn__cpu_reader x, index;
    int64_t inner, size, n; /* x: [.., size, inner], y: [.., n, inner] */
    char *y;
} select_job;

/* Lines [begin, end) of y. */
static void select_range(void *arg, int64_t begin, int64_t end)
{
    const select_job *j = arg;
    const int64_t bytes = j->inner * j->x.size;
    for (int64_t line = begin; line < end; line++) {
        trn__cpu_chunk buf;
        const int64_t i = *trn__cpu_load_index(&j->index, line % j->n, 1, &buf);
        trn__cpu_collect(&j->x, (line / j->n * j->size + i) * j->inner,
                         j->inner, j->y + line * bytes);
    }
}

int32_t trn__cpu_index_select(trn_device *dev, const trn_op_call *call)
{
    const trn_axis_attrs *attrs = call->attrs;
    const uint32_t axis = (uint32_t)attrs->axis;
    const trn_arg *x = call->in[0], *y = call->out[0];
    trn_arg index = *call->in[1];
    const int64_t numel = trn__cpu_numel(y);
    select_job j = {
        .inner = 1,
        .size = x->shape[axis],
        .n = index.shape[0],
        .y = trn__cpu_data(y),
    };
    trn__cpu_reader_init(&j.index, &index);
    const int32_t status =
        trn__cpu_check_index(dev, call, &j.index, j.n, j.size, NULL);
    if (status != TRN_OK || numel == 0)
        return status;
    for (uint32_t d = axis + 1; d < x->rank; d++)
        j.inner *= x->shape[d];
    if (j.inner * (int64_t)trn__cpu_size(x->dtype) < SHORT_LINE) {
        const int64_t stride = index.stride[0];
        index.rank = y->rank; /* the same index for all that is around it */
        for (uint32_t d = 0; d < y->rank; d++) {
            index.shape[d] = y->shape[d];
            index.stride[d] = d == axis ? stride : 0;
        }
        trn__cpu_gather_by(dev, x, axis, &index, j.y);
        return TRN_OK;
    }
    trn__cpu_reader_init(&j.x, x);
    trn__cpu_for(dev, numel / j.inner,
                 trn__i64_max(1, TRN__CPU_CHEAP / j.inner), select_range, &j);
    return TRN_OK;
}

/* ---- one_hot ---- */

typedef struct hot_job {
    trn__cpu_reader index;
    int64_t n_classes, size;
    uint64_t one; /* its bits in y's type */
    char *y;
} hot_job;

static uint64_t bits_of_one(uint32_t dtype)
{
    switch (dtype) {
    case TRN_F64:
        return UINT64_C(0x3ff0000000000000);
    case TRN_F32:
        return 0x3f800000;
    case TRN_BF16:
        return 0x3f80;
    case TRN_F16:
        return 0x3c00;
    default:
        return 1;
    }
}

static void put_one(const hot_job *j, char *at)
{
    const uint32_t w32 = (uint32_t)j->one;
    const uint16_t w16 = (uint16_t)j->one;
    if (j->size == 4)
        memcpy(at, &w32, sizeof w32);
    else if (j->size == 8)
        memcpy(at, &j->one, sizeof j->one);
    else if (j->size == 2)
        memcpy(at, &w16, sizeof w16);
    else
        *at = (char)w16;
}

/* Indices [begin, end). */
static void hot_range(void *arg, int64_t begin, int64_t end)
{
    const hot_job *j = arg;
    const int64_t bytes = j->n_classes * j->size;
    trn__cpu_chunk buf;
    memset(j->y + begin * bytes, 0, (size_t)((end - begin) * bytes));
    for (int64_t at = begin; at < end; at += TRN__CPU_CHUNK) {
        const int64_t n = trn__i64_min(end - at, TRN__CPU_CHUNK);
        const int64_t *index = trn__cpu_load_index(&j->index, at, n, &buf);
        for (int64_t i = 0; i < n; i++)
            put_one(j, j->y + (at + i) * bytes + index[i] * j->size);
    }
}

int32_t trn__cpu_one_hot(trn_device *dev, const trn_op_call *call)
{
    const trn_one_hot_attrs *attrs = call->attrs;
    const trn_arg *y = call->out[0];
    const int64_t n = trn__cpu_numel(call->in[0]);
    hot_job j = {
        .n_classes = attrs->n_classes,
        .size = (int64_t)trn__cpu_size(y->dtype),
        .one = bits_of_one(y->dtype),
        .y = trn__cpu_data(y),
    };
    trn__cpu_reader_init(&j.index, call->in[0]);
    const int32_t status =
        trn__cpu_check_index(dev, call, &j.index, n, j.n_classes, NULL);
    if (status != TRN_OK || n == 0)
        return status;
    trn__cpu_for(dev, n, trn__i64_max(1, TRN__CPU_CHEAP / j.n_classes),
                 hot_range, &j);
    return TRN_OK;
}
