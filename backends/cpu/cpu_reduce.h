/* SPDX-License-Identifier: Apache-2.0
 *
 * What the reductions share: the split of an operand into kept and reduced
 * axes, and the tree that adds block sums in the order of the rule
 * "reductions" of the reproducibility contract.
 */
#ifndef TRN_BACKENDS_CPU_REDUCE_H
#define TRN_BACKENDS_CPU_REDUCE_H

#include "backends/cpu/cpu_read.h"

#define TRN__CPU_BLOCK 4096 /* elements of one block sum */

/* Output columns that one unit of work reduces side by side. */
#define TRN__CPU_COLS 64

/* More blocks than 2^48 do not fit into any memory. */
#define TRN__CPU_LEVELS 49

/*
 * Sums of complete subtrees, at most one per level: adding blocks one after
 * another works like counting in binary.  What is left at the end is merged
 * from the smallest subtree up.  That is the tree of "adjacent pairs are added,
 * level by level, an odd last one is carried up": the incomplete subtree at
 * the end is carried exactly until a complete one of the next bit of the
 * count stands alone at its left.
 */
typedef struct trn__cpu_tree {
    uint64_t full; /* bit l: level l holds a sum of 2^l blocks */
    int64_t width; /* values side by side */
    double *part;  /* [TRN__CPU_LEVELS, width] */
} trn__cpu_tree;

/* Adds a complete subtree of 2^level blocks at the right; v is changed. */
static inline void trn__cpu_tree_push(trn__cpu_tree *t, int level, double *v)
{
    while (t->full >> level & 1) {
        const double *left = t->part + level * t->width;
        for (int64_t c = 0; c < t->width; c++)
            v[c] = left[c] + v[c];
        t->full &= ~(UINT64_C(1) << level);
        level++;
    }
    for (int64_t c = 0; c < t->width; c++)
        t->part[level * t->width + c] = v[c];
    t->full |= UINT64_C(1) << level;
}

/*
 * The sum of all, into v; with `rest` v holds the sum of an incomplete subtree
 * at the right end already.
 */
static inline void trn__cpu_tree_total(const trn__cpu_tree *t, bool rest,
                                       double *v)
{
    if (!rest)
        for (int64_t c = 0; c < t->width; c++)
            v[c] = 0.0;
    for (int level = 0; level < TRN__CPU_LEVELS; level++) {
        if (!(t->full >> level & 1))
            continue;
        const double *left = t->part + level * t->width;
        for (int64_t c = 0; c < t->width; c++)
            v[c] = rest ? left[c] + v[c] : left[c];
        rest = true;
    }
}

/* How the reduced elements lie, which chooses the kernels. */
typedef enum trn__cpu_reduce_way {
    TRN__CPU_ROWS,    /* reduced elements contiguous */
    TRN__CPU_COLUMNS, /* kept elements contiguous, reduced ones at one stride */
    TRN__CPU_SCATTERED /* neither: gathered first */
} trn__cpu_reduce_way;

/*
 * Output o, element r lies at kept(o) + red(r).  Work is cut in units of
 * consecutive outputs: 1, or up to TRN__CPU_COLS when the way is COLUMNS.
 */
typedef struct trn__cpu_reduction {
    trn_device *dev;
    trn__cpu_reader kept, red;
    trn__cpu_reduce_way way;
    int64_t n_out, n_red;
    int64_t n_cols;    /* COLUMNS: outputs that lie side by side */
    int64_t col_units; /* units that they are cut into */
    int64_t n_units;
    uint32_t y_dtype;
    bool smallest;      /* min, not max */
    int64_t correction; /* of var */
    char *y;
} trn__cpu_reduction;

typedef struct trn__cpu_unit {
    int64_t first; /* output */
    int64_t width;
    char *x; /* element 0 of output `first` */
} trn__cpu_unit;

void trn__cpu_reduction_init(trn__cpu_reduction *r, trn_device *dev,
                             const trn_op_call *call);

trn__cpu_unit trn__cpu_unit_of(const trn__cpu_reduction *r, int64_t index);

/* sum, mean, norm or var of float elements. */
int32_t trn__cpu_float_sum(const trn__cpu_reduction *r, uint32_t op);

#endif
