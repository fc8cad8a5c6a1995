/* SPDX-License-Identifier: Apache-2.0
 *
 * VALUE attributes: those that vary are elements of vectors that the host fills
 * for each execution, one vector for each type; literals are constants.
 */
#include <math.h>
#include <string.h>

#include "backends/hlo/hlo_lower.h"

static const uint32_t vector_types[TRN__HLO_N_VECTORS] = {
    TRN_F32, TRN_F64, TRN_I64, TRN_I32, TRN_U32, TRN_U8,
};

/* To f32, to odd: of the two neighbours of an inexact number that whose last
 * bit is 1.  Rounded further to 16 bits it is the number rounded once. */
static float to_odd(double value)
{
    float f = (float)value;
    uint32_t bits;
    if (isnan(value) || isinf(f) || (double)f == value)
        return f;
    memcpy(&bits, &f, sizeof bits);
    if (fabs((double)f) > fabs(value))
        bits--; /* now it is the neighbour towards 0 */
    bits |= 1u;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static int64_t truncated(double value, double least, double above,
                         int64_t lowest, int64_t highest)
{
    if (isnan(value))
        return 0;
    if (value <= least)
        return lowest;
    return value >= above ? highest : (int64_t)value;
}

static int64_t saturated(double value, uint32_t dtype)
{
    switch (dtype) {
    case TRN_I32:
        return truncated(value, -0x1p31, 0x1p31, INT32_MIN, INT32_MAX);
    case TRN_U32:
        return truncated(value, 0.0, 0x1p32, 0, UINT32_MAX);
    case TRN_U8:
        return truncated(value, 0.0, 0x1p8, 0, UINT8_MAX);
    default:
        return truncated(value, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX);
    }
}

uint64_t trn__hlo_round(double value, uint32_t dtype, uint32_t rounding)
{
    uint64_t bits = 0;
    int64_t whole;
    float f;
    switch (rounding) {
    case TRN__HLO_NEAREST:
    case TRN__HLO_ODD:
        f = rounding == TRN__HLO_ODD ? to_odd(value) : (float)value;
        if (dtype == TRN_F64)
            memcpy(&bits, &value, sizeof value);
        else
            memcpy(&bits, &f, sizeof f);
        return bits;
    case TRN__HLO_TRUTH:
        return value != 0.0;
    default:
        whole = saturated(value, rounding == TRN__HLO_WRAP ? (uint32_t)TRN_I64
                                                           : dtype);
        bits = (uint64_t)whole;
        return dtype == TRN_I64  ? bits
               : dtype == TRN_U8 ? bits & 0xffu
                                 : bits & 0xffffffffu;
    }
}

static trn__hlo_vector *vector_of(trn__hlo_lowering *l, uint32_t dtype)
{
    for (int i = 0; i < TRN__HLO_N_VECTORS; i++) {
        if (vector_types[i] == dtype)
            return &l->detail->vectors[i];
    }
    return NULL;
}

/* The place of a scalar in its vector, -1 after a failure. */
static int32_t place_of(trn__hlo_lowering *l, trn__hlo_vector *v,
                        int32_t number, uint32_t rounding)
{
    for (int32_t i = 0; i < v->n; i++) {
        if (v->list[i].number == number && v->list[i].rounding == rounding)
            return i;
    }
    v->list = trn__hlo_grow(l, v->list, v->n, &v->room, sizeof *v->list);
    if (l->m.status != TRN_OK)
        return -1;
    v->list[v->n] = (trn__hlo_scalar){.number = number, .rounding = rounding};
    return v->n++;
}

/* The vector as a parameter, as long as it has become. */
static int32_t as_param(trn__hlo_lowering *l, trn__hlo_vector *v,
                        uint32_t dtype)
{
    const int64_t n = v->n;
    if (v->inst < 0) {
        v->dtype = dtype;
        v->param = l->program->n_params;
        v->inst = trn__hlo_new_param(l, TRN__HLO_SCALARS, -1, dtype, 1, &n);
    }
    if (v->inst >= 0) {
        trn__hlo_param *p = &l->program->params[v->param];
        p->bytes = p->bytes / (uint64_t)p->shape[0] * (uint64_t)n;
        p->shape[0] = n;
        l->m.insts[v->inst].shape.dims[0] = n;
    }
    return v->inst;
}

int32_t trn__hlo_value(trn__hlo_lowering *l, int k, uint32_t dtype,
                       trn__hlo_rounding rounding)
{
    trn__hlo_module *m = &l->m;
    const int32_t number = l->node.scalar[k];
    trn_graph_scalar scalar = {.size = (uint32_t)sizeof scalar};
    if (!l->host->graph_scalar(l->graph, number, &scalar))
        return trn__hlo_fail(m, TRN_ERR_INTERNAL, "hlo: no such scalar");
    if (scalar.is_literal)
        return trn__hlo_bits(m, trn__hlo_type_of(dtype),
                             trn__hlo_round(scalar.value, dtype, rounding));
    trn__hlo_vector *v = vector_of(l, dtype);
    const int32_t place = place_of(l, v, number, rounding);
    if (place < 0)
        return -1;
    const int32_t all = as_param(l, v, dtype);
    const int64_t begin = place, end = begin + 1, step = 1;
    return trn__hlo_reshape(m, trn__hlo_slice(m, all, &begin, &end, &step), 0,
                            NULL);
}

static void fill_scalars(const trn__hlo_vector *v, const double *scalars,
                         char *out)
{
    const size_t size = v->dtype == TRN_F64 || v->dtype == TRN_I64 ? 8
                        : v->dtype == TRN_U8                       ? 1
                                                                   : 4;
    for (int32_t i = 0; i < v->n; i++) {
        const uint64_t bits = trn__hlo_round(scalars[v->list[i].number],
                                             v->dtype, v->list[i].rounding);
        const uint32_t low = (uint32_t)bits;
        const uint8_t byte = (uint8_t)bits;
        const void *from = size == 8   ? (const void *)&bits
                           : size == 4 ? (const void *)&low
                                       : (const void *)&byte;
        memcpy(out + (size_t)i * size, from, size);
    }
}

static void fill_draws(int32_t n, const uint64_t (*draws)[2], uint32_t *out)
{
    for (int32_t i = 0; i < n; i++) {
        for (int w = 0; w < 4; w++)
            out[4 * i + w] = (uint32_t)(draws[i][w / 2] >> (w % 2 ? 32 : 0));
    }
}

static int32_t fill_random(const trn_host_services *host,
                           const trn__hlo_random *r, const trn_execution *e,
                           void *out)
{
    trn_arg arg = r->out;
    const trn_arg *outs[] = {&arg};
    arg.buffer = out;
    const trn_op_call call = {
        .size = (uint32_t)sizeof call,
        .op = r->op,
        .n_out = 1,
        .out = outs,
        .attrs = &r->attrs,
        .attrs_size = r->attrs_size,
        .key = e->draws[r->draw][0],
        .draw = e->draws[r->draw][1],
    };
    return host->reference_op(host->host, &call);
}

int32_t trn__hlo_fill(const trn_host_services *host,
                      const trn__hlo_program *program, int32_t param,
                      const trn_execution *e, void *out)
{
    const trn__hlo_param *p = &program->params[param];
    const struct trn__hlo_detail *d = program->detail;
    switch (p->source) {
    case TRN__HLO_SCALARS:
        for (int i = 0; i < TRN__HLO_N_VECTORS; i++) {
            if (d->vectors[i].param == param)
                fill_scalars(&d->vectors[i], e->scalars, out);
        }
        return TRN_OK;
    case TRN__HLO_DRAWS:
        fill_draws(d->n_draws, e->draws, out);
        return TRN_OK;
    case TRN__HLO_RANDOM:
        return fill_random(host, &d->randoms[p->index], e, out);
    default:
        return TRN_ERR_ARG;
    }
}
