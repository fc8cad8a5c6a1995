/* SPDX-License-Identifier: Apache-2.0
 *
 * Sum, mean, norm and variance of float elements, by the rules "reductions" and
 * "mean, variance" of the reproducibility contract.
 *
 * Blocks of 4096 elements are summed by kernels, and block sums are added in a
 * fixed tree.  GROUP blocks are a complete subtree of it, so that threads can
 * share the blocks of one output without changing the order.
 *
 * f64 means and norms could overflow on the way: the largest magnitude is
 * found in the same pass, and the few outputs that need it are computed again
 * from scaled elements.  A variance is a mean and then a sum of squares of the
 * differences from it.
 */
#include "backends/cpu/cpu_reduce.h"
#include "kernels/integer_kernels.h"
#include "kernels/scalar.h"

#include <float.h>
#include <string.h>

#define GROUP_LEVEL 4
#define GROUP (1 << GROUP_LEVEL) /* blocks per group */
#define BATCH 32                 /* groups whose sums wait side by side */
#define TOP_LANES 8

typedef struct sum_job {
    const trn__cpu_reduction *r;
    uint32_t op;
    int64_t n_blocks;
    bool track; /* the largest magnitude is wanted */
    /* one unit shared by threads: */
    trn__cpu_unit u;
    const double *shift;
    int64_t first_group;
    double *group_sum, *group_top; /* [BATCH, width] */
} sum_job;

typedef union block_buffer {
    float f32[TRN__CPU_BLOCK];
    double f64[TRN__CPU_BLOCK];
} block_buffer;

static double magnitude(double x)
{
    return x < 0 ? -x : x;
}

/* A comparison with NaN is false: magnitudes of NaNs do not count. */
static double larger(double top, double size)
{
    return size > top ? size : top;
}

/* In lanes, which a compiler makes vectors of: a maximum has no order. */
static double top_of(int64_t n, const double *x, double top)
{
    double lane[TOP_LANES] = {0};
    int64_t i = 0;
    for (; i + TOP_LANES <= n; i += TOP_LANES) {
        for (int l = 0; l < TOP_LANES; l++)
            lane[l] = larger(lane[l], magnitude(x[i + l]));
    }
    for (; i < n; i++)
        top = larger(top, magnitude(x[i]));
    for (int l = 0; l < TOP_LANES; l++)
        top = larger(top, lane[l]);
    return top;
}

static double sum_contiguous(const sum_job *j, uint32_t dtype, int64_t n,
                             const void *x, double shift)
{
    const trn__kernel_set *set = &j->r->dev->set;
    const bool squares = j->op != TRN_OP_sum && j->op != TRN_OP_mean;
    if (dtype == TRN_F64)
        return squares ? set->block_sum_sq_f64(n, x, shift)
                       : set->block_sum_f64(n, x, shift);
    return squares ? set->block_sum_sq_f32(n, x, shift)
                   : set->block_sum_f32(n, x, shift);
}

/* Elements [first, first + n) of one output, in f32 or f64. */
static const void *gather_block(const sum_job *j, const char *base,
                                int64_t first, int64_t n, block_buffer *buf)
{
    uint16_t raw[TRN__CPU_BLOCK];
    trn__cpu_reader x = j->r->red;
    memcpy(&x.base, &base, sizeof base);
    if (x.size != 2)
        return trn__cpu_fetch(&x, first, n, buf);
    trn__cpu_widen(j->r->dev, x.dtype, n, trn__cpu_fetch(&x, first, n, raw),
                   buf->f32);
    return buf->f32;
}

static void sum_columns(const sum_job *j, const trn__cpu_unit *u, int64_t first,
                        int64_t n, double *sum, double *top)
{
    const trn__kernel_set *set = &j->r->dev->set;
    const trn__cpu_reader *red = &j->r->red;
    const bool squares = j->op != TRN_OP_sum && j->op != TRN_OP_mean;
    const int64_t step = red->rank == 0 ? 0 : red->stride[0];
    double lanes[16 * TRN__CPU_COLS];
    const void *x = u->x + first * step * red->size;
    if (red->dtype == TRN_F32) {
        (squares ? set->block_cols_sum_sq_f32 : set->block_cols_sum_f32)(
            n, u->width, x, step, j->shift, lanes, sum);
        return;
    }
    (squares ? set->block_cols_sum_sq_f64 : set->block_cols_sum_f64)(
        n, u->width, x, step, j->shift, lanes, sum);
    const double *row = x;
    for (int64_t i = 0; j->track && i < n; i++, row += step)
        for (int64_t c = 0; c < u->width; c++)
            top[c] = larger(top[c], magnitude(row[c]));
}

/* The sums of one block; top is raised to the largest magnitude. */
static void sum_block(const sum_job *j, const trn__cpu_unit *u, int64_t block,
                      double *sum, double *top)
{
    const int64_t first = block * TRN__CPU_BLOCK;
    const int64_t n = trn__i64_min(j->r->n_red - first, TRN__CPU_BLOCK);
    const uint32_t dtype = trn__cpu_compute(j->r->kept.dtype);
    block_buffer buf;
    if (j->r->way == TRN__CPU_COLUMNS && j->r->kept.size != 2) {
        sum_columns(j, u, first, n, sum, top);
        return;
    }
    for (int64_t c = 0; c < u->width; c++) {
        /* COLUMNS of 16 bits: side by side, but gathered one by one. */
        const void *x =
            gather_block(j, u->x + c * j->r->kept.size, first, n, &buf);
        sum[c] = sum_contiguous(j, dtype, n, x, j->shift ? j->shift[c] : 0.0);
        if (j->track)
            top[c] = top_of(n, x, top[c]);
    }
}

/* The subtree over blocks [first, first + n). */
static void sum_subtree(const sum_job *j, const trn__cpu_unit *u, int64_t first,
                        int64_t n, double *sum, double *top)
{
    double part[TRN__CPU_LEVELS * TRN__CPU_COLS];
    trn__cpu_tree tree = {.full = 0, .width = u->width, .part = part};
    for (int64_t c = 0; c < u->width; c++)
        top[c] = 0;
    if (n == 1) {
        sum_block(j, u, first, sum, top);
        return;
    }
    for (int64_t b = first; b < first + n; b++) {
        sum_block(j, u, b, sum, top);
        trn__cpu_tree_push(&tree, 0, sum);
    }
    trn__cpu_tree_total(&tree, false, sum);
}

static void group_range(void *arg, int64_t begin, int64_t end)
{
    const sum_job *j = arg;
    for (int64_t g = begin; g < end; g++) {
        const int64_t first = (j->first_group + g) * GROUP;
        sum_subtree(j, &j->u, first, trn__i64_min(j->n_blocks - first, GROUP),
                    j->group_sum + g * j->u.width,
                    j->group_top + g * j->u.width);
    }
}

/* The sums of one unit by all threads. */
static void sum_shared(sum_job *j, double *sum, double *top)
{
    double part[TRN__CPU_LEVELS * TRN__CPU_COLS];
    double group_sum[BATCH * TRN__CPU_COLS], group_top[BATCH * TRN__CPU_COLS];
    const int64_t width = j->u.width;
    const int64_t n_groups = (j->n_blocks + GROUP - 1) / GROUP;
    const bool rest = j->n_blocks % GROUP != 0;
    trn__cpu_tree tree = {.full = 0, .width = width, .part = part};
    j->group_sum = group_sum;
    j->group_top = group_top;
    for (int64_t c = 0; c < width; c++)
        top[c] = 0;
    for (int64_t at = 0; at < n_groups; at += BATCH) {
        const int64_t n = trn__i64_min(n_groups - at, BATCH);
        j->first_group = at;
        trn__cpu_for(j->r->dev, n, 1, group_range, j);
        for (int64_t g = 0; g < n; g++) {
            double *s = group_sum + g * width;
            for (int64_t c = 0; c < width; c++)
                top[c] = larger(top[c], group_top[g * width + c]);
            if (rest && at + g == n_groups - 1)
                memcpy(sum, s, (size_t)width * sizeof *s);
            else
                trn__cpu_tree_push(&tree, GROUP_LEVEL, s);
        }
    }
    trn__cpu_tree_total(&tree, rest, sum);
}

/* One output from elements times scale, a power of two. */
static double sum_scaled(const sum_job *j, const char *base, double shift,
                         double scale)
{
    double part[TRN__CPU_LEVELS], sum;
    trn__cpu_tree tree = {.full = 0, .width = 1, .part = part};
    block_buffer buf, scaled;
    for (int64_t b = 0; b < j->n_blocks; b++) {
        const int64_t first = b * TRN__CPU_BLOCK;
        const int64_t n = trn__i64_min(j->r->n_red - first, TRN__CPU_BLOCK);
        const double *x = gather_block(j, base, first, n, &buf);
        for (int64_t i = 0; i < n; i++)
            scaled.f64[i] = x[i] * scale;
        sum = sum_contiguous(j, TRN_F64, n, scaled.f64, shift * scale);
        trn__cpu_tree_push(&tree, 0, &sum);
    }
    trn__cpu_tree_total(&tree, false, &sum);
    return sum;
}

/* The power of two that an output's elements must be scaled by, or 1. */
static double scale_of(const sum_job *j, double top)
{
    if (j->op == TRN_OP_mean)
        return top > 0x1p960 ? 0x1p-64 : 1.0;
    if (j->op == TRN_OP_var) /* a vanishing square is smaller than any result */
        return top > 0x1p480 ? 0x1p-600 : 1.0;
    if (top > 0x1p500)
        return 0x1p-600;
    return top > 0 && top < 0x1p-500 ? 0x1p600 : 1.0;
}

static double finish(const sum_job *j, double sum, double shift)
{
    if (j->op == TRN_OP_mean)
        /* A shift of 0 leaves the mean as it is, up to the sign of a zero. */
        return shift + sum / (double)j->r->n_red;
    return j->op == TRN_OP_norm ? trn__sqrt(sum) : sum;
}

/* The first elements where they are finite, else 0. */
static void load_shift(const sum_job *j, const trn__cpu_unit *u, double *shift)
{
    trn__convert((trn_dtype)j->r->kept.dtype, TRN_F64, u->width, u->x, shift);
    for (int64_t c = 0; c < u->width; c++)
        if (!(magnitude(shift[c]) <= DBL_MAX))
            shift[c] = 0.0;
}

/* The sums of one unit, with j's shift; and the largest magnitudes. */
static void sum_unit(const sum_job *j, bool shared, double *sum, double *top)
{
    sum_job own = *j;
    if (shared)
        sum_shared(&own, sum, top);
    else
        sum_subtree(&own, &own.u, 0, j->n_blocks, sum, top);
}

/* Sums, means or norms of the unit j->u; top: the largest magnitudes. */
static void values_of(const sum_job *j, bool shared, double *sum, double *top)
{
    double shift[TRN__CPU_COLS] = {0};
    const int64_t size = j->r->kept.size;
    sum_job own = *j;
    if (j->op == TRN_OP_mean) {
        load_shift(j, &j->u, shift);
        own.shift = shift;
    }
    sum_unit(&own, shared, sum, top);
    for (int64_t c = 0; c < j->u.width; c++) {
        const double scale = j->track ? scale_of(j, top[c]) : 1.0;
        if (scale == 1.0) {
            sum[c] = finish(j, sum[c], shift[c]);
            continue;
        }
        sum[c] = sum_scaled(&own, j->u.x + c * size, shift[c], scale);
        sum[c] = finish(j, sum[c], shift[c] * scale) / scale;
    }
}

static void variances_of(const sum_job *j, bool shared, double *sum)
{
    double mean[TRN__CPU_COLS], top[TRN__CPU_COLS], unused[TRN__CPU_COLS];
    const double zero = 0.0, n = (double)(j->r->n_red - j->r->correction);
    sum_job own = *j;
    own.op = TRN_OP_mean;
    values_of(&own, shared, mean, top);
    own.op = TRN_OP_var;
    own.shift = mean;
    sum_unit(&own, shared, sum, unused);
    for (int64_t c = 0; c < j->u.width; c++) {
        const double scale = j->track ? scale_of(j, top[c]) : 1.0;
        if (scale != 1.0)
            sum[c] =
                sum_scaled(&own, j->u.x + c * j->r->kept.size, mean[c], scale);
        sum[c] = n > 0 ? sum[c] / n / scale / scale : zero / zero;
    }
}

static void reduce_unit(const sum_job *j, const trn__cpu_unit *u, bool shared)
{
    double sum[TRN__CPU_COLS], top[TRN__CPU_COLS];
    const trn__cpu_reduction *r = j->r;
    sum_job own = *j;
    own.u = *u;
    own.shift = NULL;
    if (j->op == TRN_OP_var)
        variances_of(&own, shared, sum);
    else
        values_of(&own, shared, sum, top);
    trn__convert(TRN_F64, (trn_dtype)r->y_dtype, u->width, sum,
                 r->y + u->first * (int64_t)trn__cpu_size(r->y_dtype));
}

static void unit_range(void *arg, int64_t begin, int64_t end)
{
    const sum_job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        const trn__cpu_unit u = trn__cpu_unit_of(j->r, i);
        reduce_unit(j, &u, false);
    }
}

static void fill_empty(const trn__cpu_reduction *r, uint32_t op)
{
    const double zero = 0.0;
    const bool divides = op == TRN_OP_mean || op == TRN_OP_var;
    const double value = divides ? zero / zero : zero;
    const int64_t size = (int64_t)trn__cpu_size(r->y_dtype);
    for (int64_t o = 0; o < r->n_out; o++)
        trn__convert(TRN_F64, (trn_dtype)r->y_dtype, 1, &value,
                     r->y + o * size);
}

int32_t trn__cpu_float_sum(const trn__cpu_reduction *r, uint32_t op)
{
    sum_job j = {
        .r = r,
        .op = op,
        .n_blocks = (r->n_red + TRN__CPU_BLOCK - 1) / TRN__CPU_BLOCK,
        .track = r->kept.dtype == TRN_F64 && op != TRN_OP_sum,
    };
    if (r->n_red == 0) {
        fill_empty(r, op);
        return TRN_OK;
    }
    const int64_t threads = r->dev->host->n_threads(r->dev->host->host);
    if (threads > 1 && r->n_units < 2 * threads && j.n_blocks >= 2 * GROUP) {
        for (int64_t i = 0; i < r->n_units; i++) {
            const trn__cpu_unit u = trn__cpu_unit_of(r, i);
            reduce_unit(&j, &u, true);
        }
        return TRN_OK;
    }
    const int64_t width = trn__i64_min(r->n_cols, TRN__CPU_COLS);
    trn__cpu_for(r->dev, r->n_units,
                 trn__i64_max(1, TRN__CPU_CHEAP / (width * r->n_red)),
                 unit_range, &j);
    return TRN_OK;
}
