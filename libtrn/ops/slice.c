/* SPDX-License-Identifier: Apache-2.0
 *
 * Slice and pad: each is the other's gradient.
 */
#include <string.h>

#include "libtrn/ops/op_table.h"

bool trn__infer_slice(const trn__call *k, trn__desc *out)
{
    const trn_slice_attrs *at = k->attrs;
    const trn_arg *x = &k->in[0]->arg;
    *out = (trn__desc){.dtype = x->dtype, .rank = x->rank};
    memcpy(out->shape, x->shape, sizeof out->shape);
    int64_t span = at->stop - at->start;
    out->shape[at->axis] = span <= 0 ? 0 : (span - 1) / at->step + 1;
    return true;
}

void trn__view_slice(const trn__call *k, trn_arg *out)
{
    const trn_slice_attrs *at = k->attrs;
    const trn_arg *x = &k->in[0]->arg;
    memcpy(out->stride, x->stride, sizeof out->stride);
    if (out->shape[at->axis] > 0)
        out->offset += at->start * x->stride[at->axis];
    if (out->shape[at->axis] > 1) /* a longer step overflows nothing then */
        out->stride[at->axis] *= at->step;
}

void trn__grad_slice(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    const trn_slice_attrs *at = k->attrs;
    int64_t size = k->in[0]->arg.shape[at->axis];
    int64_t n = g->arg.shape[at->axis];
    int64_t interior = n > 1 ? at->step - 1 : 0;
    int64_t used = n == 0 ? 0 : n + (n - 1) * interior;
    int64_t before = n == 0 ? 0 : at->start;
    gin[0] = trn_pad(g, at->axis, before, size - before - used, interior);
}

/* NumPy's rule: negative counts from the end, then cut to [0, size]. */
static int64_t clamp_index(int64_t i, int64_t size)
{
    i = i < 0 ? i + size : i;
    return i < 0 ? 0 : i > size ? size : i;
}

trn_tensor *trn_slice(trn_tensor *x, int axis, int64_t start, int64_t stop,
                      int64_t step)
{
    trn_slice_attrs at;
    memset(&at, 0, sizeof at);
    trn__call k = trn__call_of(TRN_OP_slice, x, NULL, &at, sizeof at);
    if (trn__check_inputs(&k) != TRN_OK)
        return NULL;
    axis = trn__axis(k.c, "slice", x, axis);
    if (axis < 0)
        return NULL;
    if (step < 1) {
        trn__fail(k.c, TRN_ERR_ARG, "slice: step is %lld; expected 1 or more",
                  (long long)step);
        return NULL;
    }
    int64_t size = x->arg.shape[axis];
    at.axis = axis;
    at.start = clamp_index(start, size);
    at.stop = clamp_index(stop, size);
    at.stop = at.stop < at.start ? at.start : at.stop;
    at.step = step;
    return trn__apply(&k);
}

bool trn__infer_pad(const trn__call *k, trn__desc *out)
{
    const trn_pad_attrs *at = k->attrs;
    const trn_arg *x = &k->in[0]->arg;
    int64_t shape[TRN_MAX_RANK], n = x->shape[at->axis];
    memcpy(shape, x->shape, sizeof shape);
    int64_t gaps = n > 1 ? n - 1 : 0, inside;
    uint64_t bytes;
    bool fits = trn__mul_size(gaps, at->interior, &inside) &&
                !__builtin_add_overflow(n, inside, &n) &&
                !__builtin_add_overflow(n, at->before, &n) &&
                !__builtin_add_overflow(n, at->after, &n);
    if (!fits) {
        trn__fail(k->c, TRN_ERR_ARG, "pad: the size of axis %d overflows",
                  at->axis);
        return false;
    }
    shape[at->axis] = n;
    return trn__desc_make(k->c, "pad", x->dtype, (int)x->rank, shape, out,
                          &bytes) == TRN_OK;
}

void trn__grad_pad(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    const trn_pad_attrs *at = k->attrs;
    int64_t stop = g->arg.shape[at->axis] - at->after;
    gin[0] = trn_slice(g, at->axis, at->before, stop, at->interior + 1);
}

trn_tensor *trn_pad(trn_tensor *x, int axis, int64_t before, int64_t after,
                    int64_t interior)
{
    trn_pad_attrs at;
    memset(&at, 0, sizeof at);
    trn__call k = trn__call_of(TRN_OP_pad, x, NULL, &at, sizeof at);
    if (trn__check_inputs(&k) != TRN_OK)
        return NULL;
    axis = trn__axis(k.c, "pad", x, axis);
    if (axis < 0)
        return NULL;
    if (before < 0 || after < 0 || interior < 0 || interior == INT64_MAX) {
        trn__fail(k.c, TRN_ERR_ARG,
                  "pad: before %lld, after %lld, interior %lld; expected none "
                  "negative",
                  (long long)before, (long long)after, (long long)interior);
        return NULL;
    }
    at.axis = axis;
    at.before = before;
    at.after = after;
    at.interior = interior;
    return trn__apply(&k);
}
