/* SPDX-License-Identifier: Apache-2.0
 *
 * randint and permutation; kernels/philox.h states which numbers they are.
 */
#include "backends/cpu/cpu.h"
#include "kernels/philox.h"

typedef struct randint_job {
    uint64_t key, draw;
    uint64_t low, n, limit;
    uint32_t dtype;
    char *y;
} randint_job;

/* Sums modulo 2^64: low may be negative. */
#define DRAW_RANGE(type, unsigned_type)                                        \
    {                                                                          \
        type *y = (type *)(void *)j->y;                                        \
        for (int64_t i = begin; i < end; i++)                                  \
            y[i] = (type)(unsigned_type)(j->low +                              \
                                         trn__philox_element(j->key, j->draw,  \
                                                             (uint64_t)i,      \
                                                             j->n, j->limit)); \
    }

static void randint_range(void *arg, int64_t begin, int64_t end)
{
    const randint_job *j = arg;
    if (j->dtype == TRN_I64)
        DRAW_RANGE(int64_t, uint64_t)
    else
        DRAW_RANGE(int32_t, uint32_t)
}

int32_t trn__cpu_randint(trn_device *dev, const trn_op_call *call)
{
    const trn_randint_attrs *attrs = call->attrs;
    const uint64_t n = (uint64_t)attrs->high - (uint64_t)attrs->low;
    randint_job j = {
        .key = call->key,
        .draw = call->draw,
        .low = (uint64_t)attrs->low,
        .n = n,
        .limit = trn__philox_limit(n),
        .dtype = call->out[0]->dtype,
        .y = trn__cpu_data(call->out[0]),
    };
    const int64_t numel = trn__cpu_numel(call->out[0]);
    if (numel > 0)
        trn__cpu_for(dev, numel, TRN__CPU_DEAR, randint_range, &j);
    return TRN_OK;
}

/* One exchange needs the one before it: no threads. */
#define SHUFFLE(type)                                                      \
    {                                                                      \
        type *y = (type *)(void *)trn__cpu_data(call->out[0]);             \
        for (int64_t i = 0; i < n; i++)                                    \
            y[i] = (type)i;                                                \
        for (int64_t i = n - 1; i > 0; i--) {                              \
            const uint64_t k = trn__philox_below(call->key, call->draw,    \
                                                 (uint64_t)i + 1, &block); \
            const type t = y[i];                                           \
            y[i] = y[k];                                                   \
            y[k] = t;                                                      \
        }                                                                  \
    }

int32_t trn__cpu_permutation(trn_device *dev, const trn_op_call *call)
{
    const int64_t n = trn__cpu_numel(call->out[0]);
    uint64_t block = 0;
    (void)dev;
    if (call->out[0]->dtype == TRN_I64)
        SHUFFLE(int64_t)
    else
        SHUFFLE(int32_t)
    return TRN_OK;
}
