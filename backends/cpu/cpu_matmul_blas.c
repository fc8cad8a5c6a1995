/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products by OpenBLAS.
 *
 * The device's threads share a batch, or the tiles of one product, and each
 * calls the library for its own.  No operand is copied: what lies in no way
 * that BLAS can read is left to the kernels.
 */
#include <limits.h>

#include "backends/cpu/cpu_blas.h"

#define TILE_WORK (48 * 48 * 48) /* m n k that a thread is woken for */
#define ITEM_WORK (256 * 256 * 256)
#define MAX_TILES 64 /* the library has memory for so many calls at once */
#define TILE_MULTIPLE 16

/* A factor as BLAS is told of it. */
typedef struct side {
    int turn, step;
} side;

/* Lie `n_rows` rows of `n` elements one after the other, and how far apart? */
static bool has_rows(int64_t n_rows, int64_t row, int64_t n, int64_t element,
                     int *step)
{
    const int64_t apart = n_rows == 1 ? n : row;
    if ((n > 1 && element != 1) || apart < n || apart > INT_MAX)
        return false;
    *step = (int)apart;
    return true;
}

/* `plain`: what it is called if the places along k are neighbours. */
static bool look_at(const trn__cpu_factor *x, int64_t rows, int64_t k,
                    int plain, side *s)
{
    s->turn = plain;
    if (has_rows(rows, x->outer, k, x->inner, &s->step))
        return true;
    s->turn = plain == TRN__BLAS_PLAIN ? TRN__BLAS_TURNED : TRN__BLAS_PLAIN;
    return has_rows(k, x->inner, rows, x->outer, &s->step);
}

static bool sides(const trn__cpu_product *p, side *a, side *b)
{
    return look_at(&p->a, p->m, p->k, TRN__BLAS_PLAIN, a) &&
           look_at(&p->b, p->n, p->k, TRN__BLAS_TURNED, b);
}

bool trn__blas_takes(const trn__cpu_products *all)
{
    const trn__cpu_product *p = &all->one;
    side a, b;
    return p->dev->blas != NULL && p->a.dtype == p->c_dtype &&
           p->b.dtype == p->c_dtype &&
           (p->c_dtype == TRN_F32 || p->c_dtype == TRN_F64) &&
           p->m <= INT_MAX && p->n <= INT_MAX && p->k <= INT_MAX &&
           sides(p, &a, &b);
}

static void multiply(const trn__cpu_product *p, int step_c)
{
    const trn__blas *blas = p->dev->blas;
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k;
    side a = {0}, b = {0};
    sides(p, &a, &b);
    if (p->c_dtype == TRN_F32)
        blas->sgemm(TRN__BLAS_ROW_MAJOR, a.turn, b.turn, m, n, k, 1.0f,
                    (const float *)(const void *)p->a.x, a.step,
                    (const float *)(const void *)p->b.x, b.step, 0.0f,
                    (float *)(void *)p->c, step_c);
    else
        blas->dgemm(TRN__BLAS_ROW_MAJOR, a.turn, b.turn, m, n, k, 1.0,
                    (const double *)(const void *)p->a.x, a.step,
                    (const double *)(const void *)p->b.x, b.step, 0.0,
                    (double *)(void *)p->c, step_c);
}

static void item_range(void *arg, int64_t begin, int64_t end)
{
    const trn__cpu_products *all = arg;
    for (int64_t i = begin; i < end; i++) {
        const trn__cpu_product p = trn__cpu_product_of(all, i);
        multiply(&p, (int)p.n);
    }
}

/* One product in tiles of rows x cols. */
typedef struct tiles {
    const trn__cpu_product *p;
    int64_t rows, cols, across;
} tiles;

static void tile_range(void *arg, int64_t begin, int64_t end)
{
    const tiles *t = arg;
    for (int64_t at = begin; at < end; at++) {
        const int64_t i = at / t->across * t->rows;
        const int64_t j = at % t->across * t->cols;
        trn__cpu_product p = *t->p;
        p.m = trn__i64_min(p.m - i, t->rows);
        p.n = trn__i64_min(p.n - j, t->cols);
        p.a = trn__cpu_factor_from(&p.a, i, 0);
        p.b = trn__cpu_factor_from(&p.b, j, 0);
        p.c += (i * t->p->n + j) * (int64_t)trn__cpu_size(p.c_dtype);
        multiply(&p, (int)t->p->n);
    }
}

static int64_t part(int64_t n, int64_t n_parts)
{
    const int64_t each = (n + n_parts - 1) / n_parts;
    return (each + TILE_MULTIPLE - 1) / TILE_MULTIPLE * TILE_MULTIPLE;
}

/* A tile for each thread, as near to squares as that number allows: each reads
 * its rows of a and columns of b anew. */
static void by_tiles(const trn__cpu_product *p, int64_t n)
{
    tiles best = {.p = p};
    for (int64_t down = 1; down <= n; down++) {
        tiles t = {.p = p, .rows = part(p->m, down)};
        if (n % down != 0)
            continue;
        t.cols = part(p->n, n / down);
        t.across = (p->n + t.cols - 1) / t.cols;
        if (best.across == 0 || t.rows + t.cols < best.rows + best.cols)
            best = t;
    }
    const int64_t down = (p->m + best.rows - 1) / best.rows;
    trn__cpu_for(p->dev, down * best.across, 1, tile_range, &best);
}

void trn__blas_multiply(const trn__cpu_products *all)
{
    trn__cpu_products p = *all;
    trn_device *dev = p.one.dev;
    const double work =
        (double)p.one.m * (double)p.one.n * (double)p.one.k + 1.0;
    const int threads = dev->host->n_threads(dev->host->host);
    const int64_t n = dev->blas->shared ? trn__i64_min(threads, MAX_TILES) : 1;
    trn__blas_enter(dev->blas, threads);
    if (n <= 1 || work * (double)p.n_batch <= TILE_WORK) {
        item_range(&p, 0, p.n_batch);
    } else if (p.n_batch > 1 && work <= ITEM_WORK) {
        const int64_t grain =
            trn__i64_max((p.n_batch + MAX_TILES - 1) / MAX_TILES,
                         (int64_t)(TILE_WORK / work));
        trn__cpu_for(dev, p.n_batch, trn__i64_max(1, grain), item_range, &p);
    } else {
        const int64_t most = (int64_t)(work / TILE_WORK);
        for (int64_t i = 0; i < p.n_batch; i++) {
            const trn__cpu_product one = trn__cpu_product_of(&p, i);
            by_tiles(&one, trn__i64_max(1, trn__i64_min(n, most)));
        }
    }
    trn__blas_leave(dev->blas);
}
