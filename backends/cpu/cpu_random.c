/* SPDX-License-Identifier: Apache-2.0
 *
 * uniform, normal and dropout: draws are a function of key, draw and global
 * element index alone, so threads share ranges of elements.
 */
#include "backends/cpu/cpu_drop.h"
#include "backends/cpu/cpu_read.h"

typedef struct random_job {
    trn_device *dev;
    uint64_t key, draw;
    uint32_t dtype;
    char *y;
    bool normal;
    /* dropout */
    trn__cpu_reader x;
    double p;
} random_job;

static void draw_f32(const random_job *j, int64_t first, int64_t n, float *y)
{
    const trn__kernel_set *set = &j->dev->set;
    (j->normal ? set->normal_f32 : set->uniform_f32)(n, j->key, j->draw,
                                                     (uint64_t)first, y);
}

static void draw_f64(const random_job *j, int64_t first, int64_t n, double *y)
{
    const trn__kernel_set *set = &j->dev->set;
    (j->normal ? set->normal_f64 : set->uniform_f64)(n, j->key, j->draw,
                                                     (uint64_t)first, y);
}

static void random_range(void *arg, int64_t begin, int64_t end)
{
    const random_job *j = arg;
    trn__cpu_chunk buf;
    char *y = j->y + begin * (int64_t)trn__cpu_size(j->dtype);
    if (j->dtype == TRN_F32) {
        draw_f32(j, begin, end - begin, (float *)(void *)y);
        return;
    }
    if (j->dtype == TRN_F64) {
        draw_f64(j, begin, end - begin, (double *)(void *)y);
        return;
    }
    for (int64_t at = begin; at < end; at += TRN__CPU_CHUNK) {
        const int64_t n = trn__i64_min(end - at, TRN__CPU_CHUNK);
        draw_f32(j, at, n, buf.f32);
        trn__cpu_store(j->dev, j->dtype, n, buf.f32, y + (at - begin) * 2);
    }
}

static int32_t run_random(trn_device *dev, const trn_op_call *call, bool normal)
{
    random_job j = {
        .dev = dev,
        .key = call->key,
        .draw = call->draw,
        .dtype = call->out[0]->dtype,
        .y = trn__cpu_data(call->out[0]),
        .normal = normal,
    };
    const int64_t n = trn__cpu_numel(call->out[0]);
    if (n > 0)
        trn__cpu_for(dev, n, TRN__CPU_DEAR, random_range, &j);
    return TRN_OK;
}

int32_t trn__cpu_uniform(trn_device *dev, const trn_op_call *call)
{
    return run_random(dev, call, false);
}

int32_t trn__cpu_normal(trn_device *dev, const trn_op_call *call)
{
    return run_random(dev, call, true);
}

static void dropout_range(void *arg, int64_t begin, int64_t end)
{
    const random_job *j = arg;
    trn__cpu_chunk buf, draw, out;
    const int64_t size = (int64_t)trn__cpu_size(j->dtype);
    for (int64_t at = begin; at < end; at += TRN__CPU_CHUNK) {
        const int64_t n = trn__i64_min(end - at, TRN__CPU_CHUNK);
        const void *x = trn__cpu_load(j->dev, &j->x, at, n, &buf);
        if (j->dtype == TRN_F64) {
            draw_f64(j, at, n, draw.f64);
            trn__cpu_drop_f64(n, j->p, draw.f64, x, out.f64);
        } else {
            draw_f32(j, at, n, draw.f32);
            trn__cpu_drop_f32(n, (float)j->p, draw.f32, x, out.f32);
        }
        trn__cpu_store(j->dev, j->dtype, n, &out, j->y + at * size);
    }
}

int32_t trn__cpu_dropout(trn_device *dev, const trn_op_call *call)
{
    random_job j = {
        .dev = dev,
        .key = call->key,
        .draw = call->draw,
        .dtype = call->out[0]->dtype,
        .y = trn__cpu_data(call->out[0]),
        .p = call->values[0],
    };
    const int64_t n = trn__cpu_numel(call->out[0]);
    if (n == 0)
        return TRN_OK;
    trn__cpu_reader_init(&j.x, call->in[0]);
    trn__cpu_for(dev, n, TRN__CPU_DEAR, dropout_range, &j);
    return TRN_OK;
}
