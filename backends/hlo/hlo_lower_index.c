/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows with indices.  Each is checked, and cut to its range, since what a
 * device does with a bad one is up to it; a step with a bad one changes
 * nothing.
 *
 * gather and scatter_add work on one flat axis, so that one form of gather and
 * one of scatter, by rows, serve all.
 */
#include "backends/hlo/hlo_lower.h"

#define MAX_S32 0x7fffffffll

static int64_t product_of(const int64_t *dims, uint32_t begin, uint32_t end)
{
    int64_t n = 1;
    for (uint32_t d = begin; d < end; d++)
        n *= dims[d];
    return n;
}

int32_t trn__hlo_lower_embedding(trn__hlo_lowering *l)
{
    trn__hlo_module *m = &l->m;
    const trn_arg weight = trn__hlo_in_arg(l, 0), y = trn__hlo_out_arg(l);
    const int32_t index =
        trn__hlo_check_index(l, trn__hlo_in(l, 1), weight.shape[0]);
    if (trn__hlo_in(l, 0) == TRN__HLO_EMPTY)
        return trn__hlo_zeros(l);
    const int32_t rows =
        trn__hlo_gather_rows(m, trn__hlo_in(l, 0), trn__hlo_flat(m, index));
    return trn__hlo_reshape(m, rows, y.rank, y.shape);
}

/* The rows of g that count; those of padding_idx are zeros. */
static int32_t without_padding(trn__hlo_lowering *l, int32_t g, int32_t index)
{
    const trn_embedding_grad_attrs *at = l->node.attrs;
    trn__hlo_module *m = &l->m;
    const trn__hlo_shape s = trn__hlo_shape_of(m, g);
    const int64_t rows = 0;
    if (at->padding_idx < 0)
        return g;
    const int32_t padding =
        trn__hlo_compare(m, TRN__HLO_EQ, index,
                         trn__hlo_like(m, (double)at->padding_idx, index));
    return trn__hlo_select(
        m, trn__hlo_broadcast(m, padding, s.rank, s.dims, &rows),
        trn__hlo_like(m, 0.0, g), g);
}

int32_t trn__hlo_lower_embedding_grad(trn__hlo_lowering *l)
{
    const trn_embedding_grad_attrs *at = l->node.attrs;
    trn__hlo_module *m = &l->m;
    const trn_arg g = trn__hlo_in_arg(l, 0);
    const uint32_t type = trn__hlo_compute_type(g.dtype);
    trn__hlo_shape into = trn__hlo_out_shape(l);
    if (trn__hlo_in(l, 1) == TRN__HLO_EMPTY)
        return trn__hlo_zeros(l);
    const int32_t index = trn__hlo_flat(
        m, trn__hlo_check_index(l, trn__hlo_in(l, 1), at->n_rows));
    const int64_t rows[] = {trn__hlo_shape_of(m, index).dims[0],
                            g.shape[g.rank - 1]};
    const int32_t updates = without_padding(
        l, trn__hlo_reshape(m, trn__hlo_up(l, 0), 2, rows), index);
    into.type = type;
    const int32_t zeros =
        trn__hlo_splat(m, trn__hlo_number(m, type, 0.0), &into);
    return trn__hlo_down(l, trn__hlo_scatter_rows(m, zeros, index, updates));
}

/* An axis and what is outside and inside of it: three axes. */
typedef struct lines {
    int64_t outer, inner;
    uint32_t axis;
} lines;

static lines lines_of(const trn_arg *x, int32_t axis)
{
    return (lines){
        .outer = product_of(x->shape, 0, (uint32_t)axis),
        .inner = product_of(x->shape, (uint32_t)axis + 1, x->rank),
        .axis = (uint32_t)axis,
    };
}

/* index [outer, n, inner] along an axis of `size` as places in the flat
 * [outer * size * inner]. */
static int32_t flat_places(trn__hlo_lowering *l, const lines *at, int32_t index,
                           int64_t size)
{
    trn__hlo_module *m = &l->m;
    const trn__hlo_shape s = trn__hlo_shape_of(m, index);
    const int64_t n = trn__hlo_numel(&s);
    const bool wide = at->outer * size * at->inner > MAX_S32;
    const uint32_t type = wide ? TRN__HLO_S64 : TRN__HLO_S32;
    const int64_t dims[] = {at->outer, n / (at->outer * at->inner), at->inner};
    int32_t y = trn__hlo_reshape(m, trn__hlo_convert(m, type, index), 3, dims);
    const int32_t step = trn__hlo_like(m, (double)at->inner, y);
    y = trn__hlo_binary(m, TRN__HLO_OP_MULTIPLY, y, step);
    y = trn__hlo_binary(m, TRN__HLO_OP_ADD, y,
                        trn__hlo_iota(m, type, 3, dims, 2));
    const int32_t far = trn__hlo_like(m, (double)(size * at->inner), y);
    const int32_t base = trn__hlo_binary(
        m, TRN__HLO_OP_MULTIPLY, trn__hlo_iota(m, type, 3, dims, 0), far);
    return trn__hlo_flat(m, trn__hlo_binary(m, TRN__HLO_OP_ADD, y, base));
}

int32_t trn__hlo_lower_gather(trn__hlo_lowering *l)
{
    const trn_axis_attrs *axis = l->node.attrs;
    trn__hlo_module *m = &l->m;
    const trn_arg x = trn__hlo_in_arg(l, 0), y = trn__hlo_out_arg(l);
    const int64_t size = x.shape[axis->axis];
    const int32_t index = trn__hlo_check_index(l, trn__hlo_in(l, 1), size);
    const lines at = lines_of(&y, axis->axis);
    if (trn__hlo_in(l, 0) == TRN__HLO_EMPTY)
        return trn__hlo_zeros(l);
    const int32_t places = flat_places(l, &at, index, size);
    const int32_t taken =
        trn__hlo_gather_rows(m, trn__hlo_flat(m, trn__hlo_in(l, 0)), places);
    return trn__hlo_reshape(m, taken, y.rank, y.shape);
}

/* One index a line: each place of the line compares itself with it. */
static int32_t one_hot(trn__hlo_lowering *l, const lines *at, int32_t index,
                       int32_t x)
{
    trn__hlo_module *m = &l->m;
    const trn_arg y = trn__hlo_out_arg(l);
    const int64_t line[] = {at->outer, at->inner}, map[] = {0, 2};
    const int64_t dims[] = {at->outer, y.shape[at->axis], at->inner};
    const uint32_t type = trn__hlo_shape_of(m, index).type;
    const int32_t wanted = trn__hlo_broadcast(
        m, trn__hlo_reshape(m, index, 2, line), 3, dims, map);
    const int32_t here = trn__hlo_compare(m, TRN__HLO_EQ, wanted,
                                          trn__hlo_iota(m, type, 3, dims, 1));
    const int32_t wide =
        trn__hlo_broadcast(m, trn__hlo_reshape(m, x, 2, line), 3, dims, map);
    const int32_t hot =
        trn__hlo_select(m, here, wide, trn__hlo_like(m, 0.0, wide));
    return trn__hlo_reshape(m, hot, y.rank, y.shape);
}

int32_t trn__hlo_lower_scatter_add(trn__hlo_lowering *l)
{
    const trn_scatter_attrs *attrs = l->node.attrs;
    trn__hlo_module *m = &l->m;
    const trn_arg x = trn__hlo_in_arg(l, 0), y = trn__hlo_out_arg(l);
    const lines at = lines_of(&x, attrs->axis);
    const uint32_t type = trn__hlo_compute_type(x.dtype);
    if (trn__hlo_in(l, 1) == TRN__HLO_EMPTY)
        return trn__hlo_zeros(l);
    const int32_t index =
        trn__hlo_check_index(l, trn__hlo_in(l, 1), attrs->size);
    if (x.shape[attrs->axis] == 1)
        return one_hot(l, &at, index, trn__hlo_in(l, 0));
    const int64_t n = at.outer * attrs->size * at.inner;
    const trn__hlo_shape into = trn__hlo_array(type, 1, &n);
    const int32_t zeros =
        trn__hlo_splat(m, trn__hlo_number(m, type, 0.0), &into);
    const int32_t places = flat_places(l, &at, index, attrs->size);
    const int32_t sums = trn__hlo_scatter_rows(
        m, zeros, places, trn__hlo_flat(m, trn__hlo_up(l, 0)));
    return trn__hlo_down(l, trn__hlo_reshape(m, sums, y.rank, y.shape));
}
