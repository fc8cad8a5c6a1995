/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops with index operands: embedding, gather, and their sums of duplicates,
 * embedding_grad and scatter_add.
 *
 * Indices are checked before anything is written.  Sums of duplicates use no
 * atomics: threads share out the elements of the output, and each element gets
 * its addends in index order.
 */
#include "backends/cpu/cpu_index.h"
#include "backends/cpu/cpu_workspace.h"

#include <stdatomic.h>
#include <string.h>

typedef struct check_job {
    const trn__cpu_reader *x;
    int64_t limit;
    const int64_t *ignore;
    _Atomic int64_t bad;
} check_job;

static void check_range(void *arg, int64_t begin, int64_t end)
{
    check_job *j = arg;
    trn__cpu_chunk buf;
    for (int64_t at = begin; at < end; at += TRN__CPU_CHUNK) {
        const int64_t n = trn__i64_min(end - at, TRN__CPU_CHUNK);
        const int64_t *x = trn__cpu_load_index(j->x, at, n, &buf);
        for (int64_t i = 0; i < n; i++) {
            if (x[i] >= 0 && x[i] < j->limit)
                continue;
            if (j->ignore != NULL && x[i] == *j->ignore)
                continue;
            int64_t seen = atomic_load(&j->bad);
            while (at + i < seen &&
                   !atomic_compare_exchange_weak(&j->bad, &seen, at + i))
                ;
            return;
        }
    }
}

int32_t trn__cpu_check_index(trn_device *dev, const trn_op_call *call,
                             const trn__cpu_reader *x, int64_t n, int64_t limit,
                             const int64_t *ignore)
{
    check_job j = {.x = x, .limit = limit, .ignore = ignore};
    trn__cpu_chunk buf;
    if (n == 0)
        return TRN_OK;
    atomic_init(&j.bad, INT64_MAX);
    trn__cpu_for(dev, n, TRN__CPU_CHEAP, check_range, &j);
    const int64_t bad = atomic_load(&j.bad);
    if (bad == INT64_MAX)
        return TRN_OK;
    if (call->report != NULL)
        *call->report = (trn_op_report){
            .kind = TRN_REPORT_INDEX,
            .input = 1,
            .position = bad,
            .value = *trn__cpu_load_index(x, bad, 1, &buf),
            .limit = limit,
        };
    return TRN_ERR_INDEX;
}

/* Everything that the four ops hand to their ranges. */
typedef struct index_job {
    trn_device *dev;
    trn__cpu_reader x, index;
    uint32_t dtype; /* of sums: the compute type */
    char *y;
    int64_t n; /* number of indices */
    int64_t n_rows, width;
    int64_t padding;
    bool by_columns;
    int64_t lines, inner, length; /* scatter_add: index is [.., length, ..] */
    int64_t axis_stride;          /* gather: of x; scatter_add: of g */
    int64_t index_stride;
} index_job;

static void embedding_range(void *arg, int64_t begin, int64_t end)
{
    const index_job *j = arg;
    trn__cpu_chunk buf;
    const int64_t bytes = j->width * j->x.size;
    for (int64_t at = begin; at < end; at += TRN__CPU_CHUNK) {
        const int64_t n = trn__i64_min(end - at, TRN__CPU_CHUNK);
        const int64_t *index = trn__cpu_load_index(&j->index, at, n, &buf);
        for (int64_t i = 0; i < n; i++)
            trn__cpu_collect(&j->x, index[i] * j->width, j->width,
                             j->y + (at + i) * bytes);
    }
}

int32_t trn__cpu_embedding(trn_device *dev, const trn_op_call *call)
{
    const trn_arg *weight = call->in[0];
    index_job j = {.y = trn__cpu_data(call->out[0])};
    j.n = trn__cpu_numel(call->in[1]);
    j.width = weight->shape[1];
    trn__cpu_reader_init(&j.index, call->in[1]);
    const int32_t status =
        trn__cpu_check_index(dev, call, &j.index, j.n, weight->shape[0], NULL);
    if (status != TRN_OK || trn__cpu_numel(call->out[0]) == 0)
        return status;
    trn__cpu_reader_init(&j.x, weight);
    trn__cpu_for(dev, j.n, trn__i64_max(1, TRN__CPU_CHEAP / j.width),
                 embedding_range, &j);
    return TRN_OK;
}

#define ADD_ROW(type, plus)                     \
    {                                           \
        type *to = y;                           \
        const type *from = x;                   \
        for (int64_t i = 0; i < n; i++)         \
            to[i] = (type)(to[i] plus from[i]); \
        break;                                  \
    }

/* y += x of a compute type; integers wrap as unsigned ones do. */
static void add_row(uint32_t dtype, int64_t n, const void *x, void *y)
{
    switch (dtype) {
    case TRN_F32:
        ADD_ROW(float, +)
    case TRN_F64:
        ADD_ROW(double, +)
    case TRN_I64:
        ADD_ROW(uint64_t, +)
    case TRN_I32:
    case TRN_U32:
        ADD_ROW(uint32_t, +)
    case TRN_U8:
        ADD_ROW(uint8_t, +)
    default:
        ADD_ROW(uint8_t, |)
    }
}

/* Rows [begin, end) of y, or columns. */
static void embedding_grad_range(void *arg, int64_t begin, int64_t end)
{
    const index_job *j = arg;
    trn__cpu_chunk buf, row;
    const int64_t size = (int64_t)trn__cpu_size(j->dtype);
    const int64_t col_end = j->by_columns ? end : j->width;
    for (int64_t at = 0; at < j->n; at += TRN__CPU_CHUNK) {
        const int64_t n = trn__i64_min(j->n - at, TRN__CPU_CHUNK);
        const int64_t *index = trn__cpu_load_index(&j->index, at, n, &buf);
        for (int64_t i = 0; i < n; i++) {
            if (index[i] == j->padding ||
                (!j->by_columns && (index[i] < begin || index[i] >= end)))
                continue;
            int64_t c = j->by_columns ? begin : 0;
            for (int64_t m; c < col_end; c += m) {
                m = trn__i64_min(col_end - c, TRN__CPU_CHUNK);
                add_row(j->dtype, m,
                        trn__cpu_load(j->dev, &j->x, (at + i) * j->width + c, m,
                                      &row),
                        j->y + (index[i] * j->width + c) * size);
            }
        }
    }
}

/* Sums in 16-bit types are kept in f32 until all are added. */
static bool has_own_sums(const trn_arg *y)
{
    return trn__cpu_compute(y->dtype) != y->dtype;
}

static size_t sums_bytes(const trn_arg *y, int64_t n)
{
    return (size_t)n * trn__cpu_size(trn__cpu_compute(y->dtype));
}

size_t trn__cpu_sums_workspace(const trn_op_call *call)
{
    const trn_arg *y = call->out[0];
    return has_own_sums(y) ? trn__cpu_up64(sums_bytes(y, trn__cpu_numel(y)))
                           : 0;
}

static void *begin_sums(trn_device *dev, const trn_arg *y, int64_t n)
{
    const size_t bytes = sums_bytes(y, n);
    void *sums = trn__cpu_data(y);
    if (has_own_sums(y))
        sums = trn__cpu_work_alloc(dev, bytes);
    if (sums != NULL)
        memset(sums, 0, bytes);
    return sums;
}

static void end_sums(trn_device *dev, const trn_arg *y, int64_t n, void *sums)
{
    if (!has_own_sums(y))
        return;
    trn__cpu_store(dev, y->dtype, n, sums, trn__cpu_data(y));
    trn__cpu_work_free(dev, sums);
}

int32_t trn__cpu_embedding_grad(trn_device *dev, const trn_op_call *call)
{
    const trn_embedding_grad_attrs *attrs = call->attrs;
    const trn_arg *y = call->out[0];
    const int64_t numel = trn__cpu_numel(y);
    const int64_t threads = dev->host->n_threads(dev->host->host);
    index_job j = {.dev = dev, .dtype = trn__cpu_compute(y->dtype)};
    j.n = trn__cpu_numel(call->in[1]);
    trn__cpu_reader_init(&j.x, call->in[0]);
    trn__cpu_reader_init(&j.index, call->in[1]);
    const int32_t status =
        trn__cpu_check_index(dev, call, &j.index, j.n, attrs->n_rows, NULL);
    if (status != TRN_OK || numel == 0)
        return status;
    j.n_rows = attrs->n_rows;
    j.width = y->shape[1];
    j.padding = attrs->padding_idx < 0 ? -1 : attrs->padding_idx;
    j.y = begin_sums(dev, y, numel);
    if (j.y == NULL)
        return trn__cpu_no_memory(dev);
    j.by_columns = j.width >= 32 * threads;
    const int64_t all = j.by_columns ? j.width : j.n_rows;
    const int64_t pieces =
        j.n * j.width < TRN__CPU_CHEAP ? 1 : trn__i64_max(1, threads);
    trn__cpu_for(dev, all, (all + pieces - 1) / pieces, embedding_grad_range,
                 &j);
    end_sums(dev, y, numel, j.y);
    return TRN_OK;
}

#define PICK(type)                                             \
    {                                                          \
        const type *x = (const type *)(const void *)j->x.base; \
        type *y = (type *)(void *)j->y + at;                   \
        for (int64_t i = 0; i < n; i++)                        \
            y[i] = x[offset[i] + index[i] * j->axis_stride];   \
    }

static void gather_range(void *arg, int64_t begin, int64_t end)
{
    const index_job *j = arg;
    trn__cpu_chunk buf;
    int64_t offset[TRN__CPU_CHUNK];
    for (int64_t at = begin; at < end; at += TRN__CPU_CHUNK) {
        const int64_t n = trn__i64_min(end - at, TRN__CPU_CHUNK);
        const int64_t *index = trn__cpu_load_index(&j->index, at, n, &buf);
        trn__cpu_offsets(&j->x, at, n, offset);
        if (j->x.size == 4)
            PICK(uint32_t)
        else if (j->x.size == 8)
            PICK(uint64_t)
        else if (j->x.size == 2)
            PICK(uint16_t)
        else
            PICK(uint8_t)
    }
}

static uint32_t axis_of(const trn_arg *x, int32_t axis)
{
    return (uint32_t)(axis < 0 ? axis + (int32_t)x->rank : axis);
}

void trn__cpu_gather_by(trn_device *dev, const trn_arg *from, uint32_t axis,
                        const trn_arg *index, char *y)
{
    trn_arg x = *from; /* as seen from the output: the axis stands still */
    index_job j = {
        .y = y,
        .axis_stride = x.stride[axis],
        .n = trn__cpu_numel(index),
    };
    trn__cpu_reader_init(&j.index, index);
    x.shape[axis] = index->shape[axis];
    x.stride[axis] = 0;
    trn__cpu_reader_init(&j.x, &x);
    trn__cpu_for(dev, j.n, TRN__CPU_CHEAP, gather_range, &j);
}

int32_t trn__cpu_gather(trn_device *dev, const trn_op_call *call)
{
    const trn_axis_attrs *attrs = call->attrs;
    const trn_arg *x = call->in[0], *index = call->in[1];
    const uint32_t axis = axis_of(x, attrs->axis);
    const int64_t n = trn__cpu_numel(index);
    trn__cpu_reader reader;
    trn__cpu_reader_init(&reader, index);
    const int32_t status =
        trn__cpu_check_index(dev, call, &reader, n, x->shape[axis], NULL);
    if (status == TRN_OK && n > 0)
        trn__cpu_gather_by(dev, x, axis, index, trn__cpu_data(call->out[0]));
    return status;
}

/* Lines are what remains when the axis is taken away, in row-major order. */
static void scatter_add_range(void *arg, int64_t begin, int64_t end)
{
    const index_job *j = arg;
    const int64_t size = (int64_t)trn__cpu_size(j->dtype);
    for (int64_t line = begin; line < end; line++) {
        const int64_t outer = line / j->inner, in = line % j->inner;
        char *y = j->y + (outer * j->n_rows * j->inner + in) * size;
        trn__cpu_reader g = j->x, index = j->index;
        g.base = trn__cpu_locate(&j->x, line);
        index.base = trn__cpu_locate(&j->index, line);
        g.rank = index.rank = 1;
        g.dim[0] = index.dim[0] = j->length;
        g.stride[0] = j->axis_stride;
        index.stride[0] = j->index_stride;
        for (int64_t at = 0; at < j->length; at += TRN__CPU_CHUNK) {
            trn__cpu_chunk buf, row;
            const int64_t n = trn__i64_min(j->length - at, TRN__CPU_CHUNK);
            const int64_t *to = trn__cpu_load_index(&index, at, n, &buf);
            const char *x = trn__cpu_load(j->dev, &g, at, n, &row);
            for (int64_t i = 0; i < n; i++)
                add_row(j->dtype, 1, x + i * size, y + to[i] * j->inner * size);
        }
    }
}

int32_t trn__cpu_scatter_add(trn_device *dev, const trn_op_call *call)
{
    const trn_scatter_attrs *attrs = call->attrs;
    const trn_arg *y = call->out[0];
    trn_arg g = *call->in[0], index = *call->in[1];
    const uint32_t axis = axis_of(&g, attrs->axis);
    const int64_t numel = trn__cpu_numel(y);
    index_job j = {
        .dev = dev,
        .dtype = trn__cpu_compute(y->dtype),
        .n_rows = attrs->size,
        .length = g.shape[axis],
        .axis_stride = g.stride[axis],
        .index_stride = index.stride[axis],
        .inner = 1,
        .lines = 1,
        .n = trn__cpu_numel(&index),
    };
    trn__cpu_reader_init(&j.index, &index);
    const int32_t status =
        trn__cpu_check_index(dev, call, &j.index, j.n, attrs->size, NULL);
    if (status != TRN_OK || numel == 0)
        return status;
    j.y = begin_sums(dev, y, numel);
    if (j.y == NULL)
        return trn__cpu_no_memory(dev);
    g.shape[axis] = index.shape[axis] = 1;
    for (uint32_t d = 0; d < g.rank; d++) {
        j.lines *= g.shape[d];
        j.inner *= d > axis ? g.shape[d] : 1;
    }
    trn__cpu_reader_init(&j.x, &g);
    trn__cpu_reader_init(&j.index, &index);
    if (j.n > 0)
        trn__cpu_for(dev, j.lines, trn__i64_max(1, TRN__CPU_DEAR / j.length),
                     scatter_add_range, &j);
    end_sums(dev, y, numel, j.y);
    return TRN_OK;
}
