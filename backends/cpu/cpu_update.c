/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizer updates.  Parameters and state are contiguous and overwritten; the
 * gradient may have any strides.  f32 and f64 are updated in place; 16-bit
 * tensors are computed in f32 chunks, each written tensor rounded once.
 *
 * Nothing here can fail or allocates: a step is all or nothing.
 */
#include "backends/cpu/cpu_read.h"

#include <string.h>

#define MAX_STATE 3 /* tensors that are overwritten: p and up to two more */

typedef struct update_job {
    trn_device *dev;
    uint32_t dtype;
    bool adamw;
    int n_state; /* p, then buf or m and v */
    char *state[MAX_STATE];
    trn__cpu_reader g;
    trn__sgd_f32 sgd_f32;
    trn__sgd_f64 sgd_f64;
    trn__adamw_f32 adamw_f32;
    trn__adamw_f64 adamw_f64;
} update_job;

static void update_f32(const update_job *j, int64_t n, const float *g,
                       void *const *s)
{
    if (j->adamw)
        j->dev->set.adamw_f32(n, &j->adamw_f32, s[0], g, s[1], s[2]);
    else
        j->dev->set.sgd_f32(n, &j->sgd_f32, s[0], g,
                            j->n_state > 1 ? s[1] : NULL);
}

static void update_f64(const update_job *j, int64_t n, const double *g,
                       void *const *s)
{
    if (j->adamw)
        j->dev->set.adamw_f64(n, &j->adamw_f64, s[0], g, s[1], s[2]);
    else
        j->dev->set.sgd_f64(n, &j->sgd_f64, s[0], g,
                            j->n_state > 1 ? s[1] : NULL);
}

static void update_range(void *arg, int64_t begin, int64_t end)
{
    const update_job *j = arg;
    trn__cpu_chunk g, wide[MAX_STATE];
    const int64_t size = (int64_t)trn__cpu_size(j->dtype);
    for (int64_t at = begin; at < end; at += TRN__CPU_CHUNK) {
        const int64_t n = trn__i64_min(end - at, TRN__CPU_CHUNK);
        const void *from = trn__cpu_load(j->dev, &j->g, at, n, &g);
        void *state[MAX_STATE] = {NULL, NULL, NULL};
        for (int i = 0; i < j->n_state; i++) {
            state[i] = j->state[i] + at * size;
            if (size == 2) {
                trn__cpu_widen(j->dev, j->dtype, n, state[i], wide[i].f32);
                state[i] = &wide[i];
            }
        }
        if (j->dtype == TRN_F64)
            update_f64(j, n, from, state);
        else
            update_f32(j, n, from, state);
        for (int i = 0; size == 2 && i < j->n_state; i++)
            trn__cpu_store(j->dev, j->dtype, n, &wide[i],
                           j->state[i] + at * size);
    }
}

static int32_t run_update(trn_device *dev, const trn_op_call *call,
                          update_job *j)
{
    const int64_t n = trn__cpu_numel(call->in[0]);
    if (n == 0)
        return TRN_OK;
    j->dev = dev;
    j->dtype = call->in[0]->dtype;
    j->n_state = (int)call->n_in - 1;
    j->state[0] = trn__cpu_data(call->in[0]);
    for (int i = 1; i < j->n_state; i++)
        j->state[i] = trn__cpu_data(call->in[i + 1]);
    trn__cpu_reader_init(&j->g, call->in[1]);
    trn__cpu_for(dev, n, TRN__CPU_CHEAP, update_range, j);
    return TRN_OK;
}

static int32_t run_sgd(trn_device *dev, const trn_op_call *call, bool momentum,
                       bool nesterov)
{
    const double *v = call->values;
    update_job j = {.adamw = false};
    j.sgd_f64 = (trn__sgd_f64){
        .lr = v[0],
        .weight_decay = v[1],
        .momentum = momentum ? v[2] : 0.0,
        .one_minus_dampening = momentum ? v[3] : 0.0,
        .nesterov = nesterov,
    };
    j.sgd_f32 = (trn__sgd_f32){
        .lr = (float)j.sgd_f64.lr,
        .weight_decay = (float)j.sgd_f64.weight_decay,
        .momentum = (float)j.sgd_f64.momentum,
        .one_minus_dampening = (float)j.sgd_f64.one_minus_dampening,
        .nesterov = nesterov,
    };
    return run_update(dev, call, &j);
}

int32_t trn__cpu_sgd_update(trn_device *dev, const trn_op_call *call)
{
    return run_sgd(dev, call, false, false);
}

int32_t trn__cpu_sgd_momentum_update(trn_device *dev, const trn_op_call *call)
{
    const trn_sgd_momentum_attrs *attrs = call->attrs;
    return run_sgd(dev, call, true, attrs->nesterov != 0);
}

int32_t trn__cpu_adamw_update(trn_device *dev, const trn_op_call *call)
{
    const double *v = call->values;
    update_job j = {.adamw = true};
    j.adamw_f64 = (trn__adamw_f64){
        .decay = v[0],
        .one_minus_beta1 = v[1],
        .beta2 = v[2],
        .one_minus_beta2 = v[3],
        .step_size = v[4],
        .sqrt_correction2 = v[5],
        .eps = v[6],
    };
    j.adamw_f32 = (trn__adamw_f32){
        .decay = (float)v[0],
        .one_minus_beta1 = (float)v[1],
        .beta2 = (float)v[2],
        .one_minus_beta2 = (float)v[3],
        .step_size = (float)v[4],
        .sqrt_correction2 = (float)v[5],
        .eps = (float)v[6],
    };
    return run_update(dev, call, &j);
}
