/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows that move elements: views, pad, full.
 */
#include <string.h>

#include "backends/hlo/hlo_lower.h"

int32_t trn__hlo_lower_reshape(trn__hlo_lowering *l)
{
    const trn_arg y = trn__hlo_out_arg(l);
    return trn__hlo_reshape(&l->m, trn__hlo_in(l, 0), y.rank, y.shape);
}

int32_t trn__hlo_lower_permute(trn__hlo_lowering *l)
{
    const trn_perm_attrs *at = l->node.attrs;
    int64_t perm[TRN_MAX_RANK];
    for (int32_t d = 0; d < at->perm.rank; d++)
        perm[d] = at->perm.axis[d];
    return trn__hlo_transpose(&l->m, trn__hlo_in(l, 0), perm);
}

/* Axes of size 1 that grow are taken away first: a broadcast only adds axes. */
int32_t trn__hlo_lower_expand(trn__hlo_lowering *l)
{
    const trn_arg x = trn__hlo_in_arg(l, 0), y = trn__hlo_out_arg(l);
    const uint32_t front = y.rank - x.rank;
    int64_t dims[TRN_MAX_RANK], map[TRN_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t d = 0; d < x.rank; d++) {
        if (x.shape[d] == 1 && y.shape[d + front] != 1)
            continue;
        dims[n] = x.shape[d];
        map[n++] = d + front;
    }
    const int32_t kept = trn__hlo_reshape(&l->m, trn__hlo_in(l, 0), n, dims);
    return trn__hlo_broadcast(&l->m, kept, y.rank, y.shape, map);
}

int32_t trn__hlo_lower_slice(trn__hlo_lowering *l)
{
    const trn_slice_attrs *at = l->node.attrs;
    const trn_arg x = trn__hlo_in_arg(l, 0);
    int64_t start[TRN_MAX_RANK], limit[TRN_MAX_RANK], stride[TRN_MAX_RANK];
    for (uint32_t d = 0; d < x.rank; d++) {
        start[d] = 0;
        limit[d] = x.shape[d];
        stride[d] = 1;
    }
    start[at->axis] = at->start;
    limit[at->axis] = at->stop;
    stride[at->axis] = at->step;
    /* a step longer than the axis, which takes one element */
    if (at->step > x.shape[at->axis])
        stride[at->axis] = x.shape[at->axis];
    return trn__hlo_slice(&l->m, trn__hlo_in(l, 0), start, limit, stride);
}

int32_t trn__hlo_lower_pad(trn__hlo_lowering *l)
{
    const trn_pad_attrs *at = l->node.attrs;
    const int32_t x = trn__hlo_in(l, 0);
    const trn_arg arg = trn__hlo_in_arg(l, 0);
    int64_t low[TRN_MAX_RANK] = {0}, high[TRN_MAX_RANK] = {0};
    int64_t interior[TRN_MAX_RANK] = {0};
    if (x == TRN__HLO_EMPTY)
        return trn__hlo_zeros(l);
    low[at->axis] = at->before;
    high[at->axis] = at->after;
    interior[at->axis] = arg.shape[at->axis] > 1 ? at->interior : 0;
    const int32_t zero =
        trn__hlo_number(&l->m, trn__hlo_type_of(arg.dtype), 0.0);
    return trn__hlo_pad(&l->m, x, zero, low, high, interior);
}

int32_t trn__hlo_lower_full(trn__hlo_lowering *l)
{
    const trn__hlo_shape s = trn__hlo_out_shape(l);
    uint32_t dtype = trn__hlo_out_arg(l).dtype;
    trn__hlo_rounding rounding = TRN__HLO_NEAREST;
    if (dtype == TRN_BF16 || dtype == TRN_F16) {
        dtype = TRN_F32;
        rounding = TRN__HLO_ODD;
    } else if (!trn__hlo_is_float(s.type)) {
        dtype = dtype == TRN_BOOL ? (uint32_t)TRN_U8 : dtype;
        rounding = TRN__HLO_SATURATE;
        if (s.type == TRN__HLO_PRED) /* not 0, also where it truncates to 0 */
            rounding = TRN__HLO_TRUTH;
    }
    const int32_t value = trn__hlo_value(l, 0, dtype, rounding);
    return trn__hlo_splat(&l->m, trn__hlo_cast(&l->m, s.type, value), &s);
}

/* x backwards along axis by rows: axis in front, its rows by number, back. */
static int32_t flipped_by_rows(trn__hlo_module *m, int32_t x, uint32_t axis)
{
    const trn__hlo_shape s = trn__hlo_shape_of(m, x);
    const int64_t n = s.dims[axis];
    int64_t front[TRN__HLO_MAX_RANK], back[TRN__HLO_MAX_RANK];
    for (uint32_t d = 0; d < s.rank; d++) {
        front[d] = d == 0 ? axis : d <= axis ? d - 1 : d;
        back[d] = d == axis ? 0 : d < axis ? d + 1 : d;
    }
    const int32_t up = trn__hlo_iota(m, TRN__HLO_S32, 1, &n, 0);
    const int32_t last = trn__hlo_like(m, (double)(n - 1), up);
    const int32_t down = trn__hlo_binary(m, TRN__HLO_OP_SUBTRACT, last, up);
    x = trn__hlo_gather_rows(m, trn__hlo_transpose(m, x, front), down);
    return trn__hlo_transpose(m, x, back);
}

int32_t trn__hlo_lower_flip(trn__hlo_lowering *l)
{
    const trn_flip_attrs *at = l->node.attrs;
    const trn_arg arg = trn__hlo_in_arg(l, 0);
    const bool native = (l->profile->ops >> TRN__HLO_OP_REVERSE) & 1u;
    int32_t x = trn__hlo_in(l, 0);
    if (native)
        return trn__hlo_reverse(&l->m, x, at->axes);
    for (uint32_t d = 0; d < arg.rank; d++) {
        if (((at->axes >> d) & 1u) != 0 && arg.shape[d] > 1)
            x = flipped_by_rows(&l->m, x, d);
    }
    return x;
}
