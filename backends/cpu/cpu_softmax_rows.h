/* SPDX-License-Identifier: Apache-2.0
 *
 * One row of softmax in one compute type, for every op that needs it.
 *
 * No include guard: whoever includes it defines REAL (float or double) and
 * ROW(name), which appends the type's name, and includes it once per type.
 *
 * The arithmetic is that of the decomposition, step by step and rounded to
 * REAL, so the fused ops have its bits:
 *
 *     m = max(x)
 *     d = where(x = m, 0, x - m)          inf - inf does not arise
 *     e = where(x = -inf, 0, exp(d))      a row of -inf has the sum 0
 *     s = sum(e)                          rule "reductions"
 *     softmax      y = where(s = 0, 0, e / s)
 *     log_softmax  y = where(x = -inf, -inf, d - log(s))
 */

typedef struct ROW(row) {
    const trn_device *dev;
    trn__cpu_reader in; /* the row's elements, of any float type */
    int64_t n;
    REAL max, sum;
    int64_t held; /* the block whose x, d and e are here, or -1 */
    REAL x[TRN__CPU_BLOCK], d[TRN__CPU_BLOCK], e[TRN__CPU_BLOCK];
} ROW(row);

/* Makes x, d and e of a block present; returns its number of elements. */
static inline int64_t ROW(hold)(ROW(row) * r, int64_t block)
{
    const int64_t first = block * TRN__CPU_BLOCK;
    const int64_t n = trn__i64_min(r->n - first, TRN__CPU_BLOCK);
    const REAL m = r->max, low = (REAL)-INFINITY;
    if (r->held == block)
        return n;
    for (int64_t at = 0; at < n; at += TRN__CPU_CHUNK) {
        const int64_t part = trn__i64_min(n - at, TRN__CPU_CHUNK);
        trn__cpu_chunk buf;
        const REAL *x = trn__cpu_load(r->dev, &r->in, first + at, part, &buf);
        for (int64_t i = 0; i < part; i++) {
            r->x[at + i] = x[i];
            r->d[at + i] = x[i] == m ? 0 : x[i] - m;
        }
    }
    r->dev->set.ROW(exp)(n, r->d, r->e);
    for (int64_t i = 0; i < n; i++)
        r->e[i] = r->x[i] == low ? 0 : r->e[i];
    r->held = block;
    return n;
}

/* Finds max and sum of the n >= 1 elements of r->in. */
static inline void ROW(begin)(ROW(row) * r)
{
    double part[TRN__CPU_LEVELS], sum;
    trn__cpu_tree tree = {.full = 0, .width = 1, .part = part};
    trn__cpu_chunk buf;
    for (int64_t at = 0; at < r->n; at += TRN__CPU_CHUNK) {
        const int64_t n = trn__i64_min(r->n - at, TRN__CPU_CHUNK);
        const REAL m =
            r->dev->set.ROW(max)(n, trn__cpu_load(r->dev, &r->in, at, n, &buf));
        if (at == 0)
            r->max = m;
        else
            r->dev->set.ROW(maximum)(1, &r->max, &m, &r->max);
    }
    r->held = -1;
    for (int64_t b = 0; b * TRN__CPU_BLOCK < r->n; b++) {
        const int64_t n = ROW(hold)(r, b);
        sum = r->dev->set.ROW(block_sum)(n, r->e, 0.0);
        trn__cpu_tree_push(&tree, 0, &sum);
    }
    trn__cpu_tree_total(&tree, false, &sum);
    r->sum = (REAL)sum;
}

/* softmax of the n elements of the held block, into d. */
static inline const REAL *ROW(softmax)(ROW(row) * r, int64_t n)
{
    const REAL s = r->sum;
    for (int64_t i = 0; i < n; i++)
        r->d[i] = s == 0 ? 0 : r->e[i] / s;
    r->held = -1;
    return r->d;
}

static inline const REAL *ROW(log_softmax)(ROW(row) * r, int64_t n)
{
    const REAL low = (REAL)-INFINITY;
    REAL log_sum;
    r->dev->set.ROW(log)(1, &r->sum, &log_sum);
    for (int64_t i = 0; i < n; i++)
        r->d[i] = r->x[i] == low ? low : r->d[i] - log_sum;
    r->held = -1;
    return r->d;
}

/* -log_softmax of one element of a row that has begun. */
static inline REAL ROW(loss)(const ROW(row) * r, int64_t target)
{
    const REAL low = (REAL)-INFINITY;
    trn__cpu_chunk buf;
    REAL log_sum;
    const REAL *x = trn__cpu_load(r->dev, &r->in, target, 1, &buf);
    const REAL d = *x == r->max ? 0 : *x - r->max;
    r->dev->set.ROW(log)(1, &r->sum, &log_sum);
    return -(*x == low ? low : d - log_sum);
}

/* w (softmax - one_hot(target)) of the whole row, to y of dtype. */
static inline void ROW(loss_grad)(ROW(row) * r, int64_t target, REAL w,
                                  uint32_t dtype, char *y)
{
    for (int64_t b = 0; b * TRN__CPU_BLOCK < r->n; b++) {
        const int64_t first = b * TRN__CPU_BLOCK;
        const int64_t n = ROW(hold)(r, b);
        ROW(softmax)(r, n);
        if (target >= first && target < first + n)
            r->d[target - first] -= 1;
        for (int64_t i = 0; i < n; i++)
            r->d[i] *= w;
        trn__cpu_store(r->dev, dtype, n, r->d,
                       y + first * (int64_t)trn__cpu_size(dtype));
    }
}
