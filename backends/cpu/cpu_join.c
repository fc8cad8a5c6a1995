/* SPDX-License-Identifier: Apache-2.0
 *
 * concat and flip: copies in another order.
 */
#include "backends/cpu/cpu_read.h"

/* Both parts of concat as lines: what lies inside of the axis, one after the
 * other.  Line l of y is line l of a and line l of b. */
typedef struct concat_job {
    trn__cpu_reader x[2];
    int64_t length[2]; /* of their lines */
    char *y;
} concat_job;

/* Elements [begin, end) of y. */
static void concat_range(void *arg, int64_t begin, int64_t end)
{
    const concat_job *j = arg;
    const int64_t line = j->length[0] + j->length[1];
    for (int64_t at = begin; at < end;) {
        const int64_t l = at / line, in = at % line;
        const int which = in < j->length[0] ? 0 : 1;
        const int64_t first = which == 0 ? in : in - j->length[0];
        const int64_t n = trn__i64_min(end - at, j->length[which] - first);
        trn__cpu_collect(&j->x[which], l * j->length[which] + first, n,
                         j->y + at * j->x[which].size);
        at += n;
    }
}

int32_t trn__cpu_concat(trn_device *dev, const trn_op_call *call)
{
    const trn_axis_attrs *attrs = call->attrs;
    const int64_t n = trn__cpu_numel(call->out[0]);
    concat_job j = {.y = trn__cpu_data(call->out[0])};
    if (n == 0)
        return TRN_OK;
    for (int i = 0; i < 2; i++) {
        const trn_arg *x = call->in[i];
        trn__cpu_reader_init(&j.x[i], x);
        j.length[i] = 1;
        for (uint32_t d = (uint32_t)attrs->axis; d < x->rank; d++)
            j.length[i] *= x->shape[d];
    }
    trn__cpu_for(dev, n, TRN__CPU_CHEAP, concat_range, &j);
    return TRN_OK;
}

typedef struct flip_job {
    trn__cpu_reader x;
    char *y;
} flip_job;

static void flip_range(void *arg, int64_t begin, int64_t end)
{
    const flip_job *j = arg;
    trn__cpu_collect(&j->x, begin, end - begin, j->y + begin * j->x.size);
}

/* Read from the far end of each axis, with the opposite stride. */
int32_t trn__cpu_flip(trn_device *dev, const trn_op_call *call)
{
    const trn_flip_attrs *attrs = call->attrs;
    const int64_t n = trn__cpu_numel(call->out[0]);
    flip_job j = {.y = trn__cpu_data(call->out[0])};
    trn_arg x = *call->in[0];
    if (n == 0)
        return TRN_OK;
    for (uint32_t d = 0; d < x.rank; d++) {
        if (((attrs->axes >> d) & 1u) == 0)
            continue;
        x.offset += (x.shape[d] - 1) * x.stride[d];
        x.stride[d] = -x.stride[d];
    }
    trn__cpu_reader_init(&j.x, &x);
    trn__cpu_for(dev, n, TRN__CPU_CHEAP, flip_range, &j);
    return TRN_OK;
}
