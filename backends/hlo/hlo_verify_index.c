/* SPDX-License-Identifier: Apache-2.0
 *
 * Verifier: gather and scatter.
 *
 * Both have indices i: [batch..., vector], where one dimension, index_vector_
 * dim, holds the coordinates of a window; if it is the rank of i, each element
 * is a coordinate.  The windows are dimensions of the gathered result, or of
 * the scattered updates, between those of the batch.
 */
#include "backends/hlo/hlo_verify.h"

/* How many coordinates, and i's shape without their dimension. */
static bool split_indices(const trn__hlo_check *c, int64_t *coordinates,
                          trn__hlo_shape *batch)
{
    const trn__hlo_shape *i = c->in[1];
    const int64_t vector = c->inst->number;
    *batch = (trn__hlo_shape){.type = i->type};
    if (!trn__hlo_is_integer(i->type))
        return trn__hlo_bad(c, "the indices are %s; expected integers",
                            trn__hlo_type_text(i->type));
    if (vector < 0 || vector > (int64_t)i->rank)
        return trn__hlo_bad(c, "index_vector_dim is %lld; expected 0 to %u",
                            (long long)vector, (unsigned)i->rank);
    *coordinates = vector < (int64_t)i->rank ? i->dims[vector] : 1;
    for (uint32_t d = 0; d < i->rank; d++)
        if (d != (uint32_t)vector)
            batch->dims[batch->rank++] = i->dims[d];
    return true;
}

/* The window's dimensions in the order of the operand: sizes without those at
 * the dimensions that `dropped` names. */
static void kept(const trn__hlo_shape *operand, const int64_t *sizes,
                 const trn__hlo_list *dropped, trn__hlo_shape *window)
{
    *window = (trn__hlo_shape){.type = operand->type};
    for (uint32_t d = 0; d < operand->rank; d++)
        if (!trn__hlo_contains(dropped, d))
            window->dims[window->rank++] = sizes[d];
}

/* What both say of coordinates, windows, and dimensions without one. */
static bool lists_fit(const trn__hlo_check *c, const char *const *names,
                      int64_t coordinates, uint32_t result_rank)
{
    const trn__hlo_list *list = c->inst->list;
    const uint32_t rank = c->in[0]->rank;
    return trn__hlo_dimensions(c, &list[1], names[1], rank, true) &&
           trn__hlo_counts(c, &list[0], names[0], (int64_t)rank - list[1].n) &&
           trn__hlo_dimensions(c, &list[0], names[0], result_rank, true) &&
           trn__hlo_counts(c, &list[2], names[2], coordinates) &&
           trn__hlo_dimensions(c, &list[2], names[2], rank, false);
}

static bool window_fits(const trn__hlo_check *c)
{
    const trn__hlo_shape *x = c->in[0];
    const trn__hlo_list *list = c->inst->list;
    if (!trn__hlo_counts(c, &list[3], "slice_sizes", x->rank))
        return false;
    for (uint32_t d = 0; d < x->rank; d++) {
        const int64_t size = list[3].at[d];
        const bool one = trn__hlo_contains(&list[1], d);
        if (size < 0 || size > x->dims[d] || (one && size != 1))
            return trn__hlo_bad(c,
                                "slice_sizes has %lld for dimension %u, "
                                "which is %lld%s",
                                (long long)size, (unsigned)d,
                                (long long)x->dims[d],
                                one ? "; expected 1, as it is collapsed" : "");
    }
    return true;
}

bool trn__hlo_rule_gather(const trn__hlo_check *c, trn__hlo_shape *want)
{
    static const char *const names[] = {"offset_dims", "collapsed_slice_dims",
                                        "start_index_map"};
    const trn__hlo_list *list = c->inst->list;
    trn__hlo_shape batch, window;
    int64_t coordinates = 0;
    if (!split_indices(c, &coordinates, &batch))
        return false;
    const uint32_t rank = batch.rank + (uint32_t)list[0].n;
    if (rank > TRN__HLO_MAX_RANK)
        return trn__hlo_bad(c,
                            "the result has %u dimensions; expected at "
                            "most %d",
                            (unsigned)rank, TRN__HLO_MAX_RANK);
    if (!lists_fit(c, names, coordinates, rank) || !window_fits(c))
        return false;
    kept(c->in[0], list[3].at, &list[1], &window);
    want->type = c->in[0]->type;
    want->rank = rank;
    for (uint32_t d = 0, b = 0, w = 0; d < rank; d++)
        want->dims[d] =
            trn__hlo_contains(&list[0], d) ? window.dims[w++] : batch.dims[b++];
    return true;
}

static bool scatter_helper_fits(const trn__hlo_check *c)
{
    const trn__hlo_helper *h = &c->m->helpers[c->inst->helper];
    const uint32_t type = c->in[0]->type;
    if (h->type != type)
        return trn__hlo_bad(c, "the helper is of %s; expected %s",
                            trn__hlo_type_text(h->type),
                            trn__hlo_type_text(type));
    if (h->op != TRN__HLO_OP_COPY && !trn__hlo_reduces(h->op))
        return trn__hlo_bad(c, "the helper is %s, which takes values in order",
                            trn__hlo_op_text(h->op));
    if (h->op != TRN__HLO_OP_COPY && !trn__hlo_is_float(type) &&
        !c->profile->integer_scatter)
        return trn__hlo_bad(c, "scatter with %s of %s is not in profile %s",
                            trn__hlo_op_text(h->op), trn__hlo_type_text(type),
                            c->profile->name);
    return true;
}

/* Each dimension of the updates is the batch's, or within the operand's. */
static bool updates_fit(const trn__hlo_check *c, const trn__hlo_shape *batch,
                        const trn__hlo_shape *window)
{
    const trn__hlo_shape *u = c->in[2];
    for (uint32_t d = 0, b = 0, w = 0; d < u->rank; d++) {
        const bool in_window = trn__hlo_contains(&c->inst->list[0], d);
        const int64_t limit = in_window ? window->dims[w++] : batch->dims[b++];
        if (in_window ? u->dims[d] > limit : u->dims[d] != limit)
            return trn__hlo_bad(c,
                                "dimension %u of the updates is %lld; "
                                "expected %s%lld",
                                (unsigned)d, (long long)u->dims[d],
                                in_window ? "at most " : "", (long long)limit);
    }
    return true;
}

bool trn__hlo_rule_scatter(const trn__hlo_check *c, trn__hlo_shape *want)
{
    static const char *const names[] = {"update_window_dims",
                                        "inserted_window_dims",
                                        "scatter_dims_to_operand_dims"};
    const trn__hlo_list *list = c->inst->list;
    const trn__hlo_shape *x = c->in[0], *u = c->in[2];
    trn__hlo_shape batch, window;
    int64_t coordinates = 0;
    if (!split_indices(c, &coordinates, &batch))
        return false;
    if (u->type != x->type)
        return trn__hlo_bad(c, "the updates are %s; expected %s",
                            trn__hlo_type_text(u->type),
                            trn__hlo_type_text(x->type));
    if (u->rank != batch.rank + (uint32_t)list[0].n)
        return trn__hlo_bad(c, "the updates have %u dimensions; expected %u",
                            (unsigned)u->rank,
                            (unsigned)batch.rank + (unsigned)list[0].n);
    if (!lists_fit(c, names, coordinates, u->rank))
        return false;
    kept(x, x->dims, &list[1], &window);
    *want = *x;
    return updates_fit(c, &batch, &window) && scatter_helper_fits(c);
}
