/* SPDX-License-Identifier: Apache-2.0
 *
 * Joining tensors along an axis, and turning axes round: concat, stack, flip.
 *
 * The row joins two tensors.  Many are joined in halves, so that an element is
 * copied about log2 n times.
 */
#include <string.h>

#include "libtrn/ops/op_table.h"

/* ---- concat ---- */

/* Do a and b fit but for axis? */
static bool fits(const trn_arg *a, const trn_arg *b, int axis)
{
    bool same = a->rank == b->rank;
    for (int d = 0; same && d < (int)a->rank; d++)
        same = d == axis || a->shape[d] == b->shape[d];
    return same;
}

bool trn__infer_concat(const trn__call *k, trn__desc *out)
{
    const trn_axis_attrs *at = k->attrs;
    const trn_arg *a = &k->in[0]->arg, *b = &k->in[1]->arg;
    int64_t shape[TRN_MAX_RANK];
    uint64_t bytes;
    memcpy(shape, a->shape, sizeof shape);
    if (__builtin_add_overflow(a->shape[at->axis], b->shape[at->axis],
                               &shape[at->axis])) {
        trn__fail(k->c, TRN_ERR_ARG, "concat: the size of axis %d overflows",
                  at->axis);
        return false;
    }
    return trn__desc_make(k->c, "concat", a->dtype, (int)a->rank, shape, out,
                          &bytes) == TRN_OK;
}

/* true where y is a, false where it is b: [.., na + nb, ..], else of size 1 */
static trn_tensor *first_part(const trn__call *k, int axis)
{
    int64_t shape[TRN_MAX_RANK];
    int rank = (int)k->in[0]->arg.rank;
    for (int d = 0; d < rank; d++)
        shape[d] = 1;
    shape[axis] = k->in[0]->arg.shape[axis];
    trn_tensor *yes = trn_full(k->c, TRN_BOOL, rank, shape, 1.0);
    return trn_pad(yes, axis, 0, k->in[1]->arg.shape[axis], 0);
}

trn_tensor *trn__decompose_concat(const trn__call *k)
{
    const trn_axis_attrs *at = k->attrs;
    trn_tensor *a = k->in[0], *b = k->in[1]; /* a sum would lose -0 */
    return trn_where(first_part(k, at->axis),
                     trn_pad(a, at->axis, 0, b->arg.shape[at->axis], 0),
                     trn_pad(b, at->axis, a->arg.shape[at->axis], 0, 0));
}

void trn__grad_concat(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    const trn_axis_attrs *at = k->attrs;
    const int64_t n = k->in[0]->arg.shape[at->axis];
    gin[0] = trn_slice(g, at->axis, 0, n, 1);
    gin[1] = trn_slice(g, at->axis, n, INT64_MAX, 1);
}

/* ---- many ---- */

typedef struct join {
    trn_context *c;
    trn_tensor *const *in;
    uint32_t dtype;
    int axis;
    bool adds_axis; /* stack */
} join;

static trn_tensor *part(const join *j, int i)
{
    trn_tensor *x = trn__down(j->in[i], j->dtype);
    int64_t shape[TRN_MAX_RANK];
    if (x == NULL || !j->adds_axis)
        return x;
    const int rank = (int)x->arg.rank;
    for (int d = 0; d <= rank; d++)
        shape[d] = d == j->axis ? 1 : x->arg.shape[d - (d > j->axis)];
    return trn_reshape(x, rank + 1, shape);
}

/* Parts [begin, end), of which there are two at least. */
static trn_tensor *joined(const join *j, int begin, int end)
{
    const int middle = begin + (end - begin) / 2;
    trn_axis_attrs at;
    trn__scope scope;
    memset(&at, 0, sizeof at);
    at.axis = j->axis;
    trn__scope_enter(j->c, &scope);
    trn_tensor *a =
        middle - begin == 1 ? part(j, begin) : joined(j, begin, middle);
    trn_tensor *b =
        end - middle == 1 ? part(j, middle) : joined(j, middle, end);
    trn__call k = trn__call_of(TRN_OP_concat, a, b, &at, sizeof at);
    trn_tensor *y = j->c->status == TRN_OK ? trn__apply(&k) : NULL;
    return trn__scope_leave(j->c, &scope, y);
}

/* All there, of one context, alive; the type of the result. */
static trn_status check_parts(join *j, const char *what, int n)
{
    for (int i = 0; i < n && j->c == NULL; i++)
        j->c = j->in[i] == NULL ? NULL : j->in[i]->c;
    if (j->c == NULL)
        return TRN_ERR_ARG; /* every one is NULL: no context to tell */
    TRN_TRY(trn__pending(j->c));
    for (int i = 0; i < n; i++) {
        if (j->in[i] == NULL)
            return trn__fail(j->c, TRN_ERR_ARG,
                             "%s: input %d is NULL; expected a tensor", what,
                             i);
        TRN_TRY(trn__check_tensor(j->c, what, j->in[i]));
        const uint32_t dtype = j->in[i]->arg.dtype;
        j->dtype = i == 0 ? dtype : trn__promote(j->dtype, dtype);
    }
    return TRN_OK;
}

static trn_status check_shapes(const join *j, const char *what, int n)
{
    const trn_arg *first = &j->in[0]->arg;
    for (int i = 1; i < n; i++) {
        const trn_arg *x = &j->in[i]->arg;
        if (!fits(first, x, j->adds_axis ? -1 : j->axis))
            return trn__fail(j->c, TRN_ERR_SHAPE,
                             "%s: input 0 is %s, input %d is %s; expected "
                             "equal shapes%s",
                             what, trn__describe(first).s, i,
                             trn__describe(x).s,
                             j->adds_axis ? "" : " but along axis");
    }
    return TRN_OK;
}

static trn_tensor *join_all(join *j, int n)
{
    trn__scope scope;
    if (n > 1)
        return joined(j, 0, n);
    trn__scope_enter(j->c, &scope);
    return trn__scope_leave(j->c, &scope, trn_copy(part(j, 0)));
}

trn_tensor *trn_concat(int n, trn_tensor *const *tensors, int axis)
{
    join j = {.in = tensors};
    if (n < 1 || tensors == NULL || check_parts(&j, "concat", n) != TRN_OK)
        return NULL;
    j.axis = trn__axis(j.c, "concat", tensors[0], axis);
    if (j.axis < 0 || check_shapes(&j, "concat", n) != TRN_OK)
        return NULL;
    return join_all(&j, n);
}

trn_tensor *trn_stack(int n, trn_tensor *const *tensors, int axis)
{
    join j = {.in = tensors, .adds_axis = true};
    if (n < 1 || tensors == NULL || check_parts(&j, "stack", n) != TRN_OK)
        return NULL;
    const trn_arg *x = &tensors[0]->arg;
    const int rank = (int)x->rank;
    if (rank == TRN_MAX_RANK) {
        trn__fail(j.c, TRN_ERR_SHAPE,
                  "stack: input 0 is %s; expected a rank below %d",
                  trn__describe(x).s, TRN_MAX_RANK);
        return NULL;
    }
    if (axis < -rank - 1 || axis > rank) {
        trn__fail(j.c, TRN_ERR_ARG,
                  "stack: axis is %d; expected one of [%d, %d) for parts %s",
                  axis, -rank - 1, rank + 1, trn__describe(x).s);
        return NULL;
    }
    j.axis = axis < 0 ? axis + rank + 1 : axis;
    return check_shapes(&j, "stack", n) == TRN_OK ? join_all(&j, n) : NULL;
}

/* ---- flip ---- */

bool trn__infer_flip(const trn__call *k, trn__desc *out)
{
    const trn_arg *x = &k->in[0]->arg;
    *out = (trn__desc){.dtype = x->dtype, .rank = x->rank};
    memcpy(out->shape, x->shape, sizeof out->shape);
    return true;
}

trn_tensor *trn_flip(trn_tensor *x, uint32_t axes)
{
    trn_flip_attrs at;
    memset(&at, 0, sizeof at);
    trn__call k = trn__call_of(TRN_OP_flip, x, NULL, &at, sizeof at);
    if (trn__check_inputs(&k) != TRN_OK)
        return NULL;
    const uint32_t all = (1u << x->arg.rank) - 1u;
    at.axes = axes == TRN_ALL_AXES ? all : axes;
    if ((at.axes & ~all) == 0)
        return trn__apply(&k);
    trn__fail(k.c, TRN_ERR_ARG,
              "flip: axes 0x%x name an axis that %s does not have",
              (unsigned)axes, trn__describe(&x->arg).s);
    return NULL;
}

void trn__grad_flip(const trn__call *k, trn_tensor *g, trn_tensor **gin)
{
    const trn_flip_attrs *at = k->attrs;
    gin[0] = trn_flip(g, at->axes);
}
