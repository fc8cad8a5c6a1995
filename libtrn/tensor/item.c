/* SPDX-License-Identifier: Apache-2.0
 *
 * One element of a tensor as a double.
 */
#include <math.h>
#include <string.h>

#include "libtrn/tensor/tensor.h"

static double from_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return (double)value;
}

static double from_f16(uint16_t bits)
{
    int exponent = (bits >> 10) & 0x1f;
    double fraction = (double)(bits & 0x3ff) / 1024.0;
    double scale = 1.0, value;
    for (int e = exponent == 0 ? 1 : exponent; e < 15; e++)
        scale *= 0.5;
    for (int e = exponent; e > 15; e--)
        scale *= 2.0;
    if (exponent == 0x1f)
        value = fraction == 0.0 ? (double)INFINITY : (double)NAN;
    else
        value = scale * (fraction + (exponent == 0 ? 0.0 : 1.0));
    return bits & 0x8000 ? -value : value;
}

trn_status trn__first_element(trn_tensor *t, double *value)
{
    union {
        double f64;
        float f32;
        int64_t i64;
        int32_t i32;
        uint32_t u32;
        uint16_t u16;
        uint8_t u8;
    } x;
    size_t element = trn_dtype_size((trn_dtype)t->arg.dtype);
    x.f64 = 0.0;
    TRN_TRY(trn__storage_read(t->storage, (uint64_t)t->arg.offset * element, &x,
                              element));
    trn__fp_env saved; /* a subnormal must not be read as 0 */
    trn__fp_enter(&saved);
    switch ((trn_dtype)t->arg.dtype) {
    case TRN_F64:
        *value = x.f64;
        break;
    case TRN_F32:
        *value = (double)x.f32;
        break;
    case TRN_BF16:
        *value = from_bf16(x.u16);
        break;
    case TRN_F16:
        *value = from_f16(x.u16);
        break;
    case TRN_I64:
        *value = (double)x.i64;
        break;
    case TRN_I32:
        *value = (double)x.i32;
        break;
    case TRN_U32:
        *value = (double)x.u32;
        break;
    case TRN_U8:
    case TRN_BOOL:
        *value = (double)x.u8;
        break;
    }
    trn__fp_leave(&saved);
    return TRN_OK;
}

double trn_tensor_item(trn_tensor *t)
{
    double value = (double)NAN;
    if (t == NULL || trn__pending(t->c) != TRN_OK ||
        trn__check_tensor(t->c, "trn_tensor_item", t) != TRN_OK ||
        t->c->tensors->settle(t->c, t) != TRN_OK)
        return value;
    if (trn__numel(t->arg.rank, t->arg.shape) != 1) {
        trn__fail(t->c, TRN_ERR_SHAPE,
                  "trn_tensor_item: %s has %lld elements; expected one",
                  trn__describe(&t->arg).s,
                  (long long)trn__numel(t->arg.rank, t->arg.shape));
        return value;
    }
    return trn__first_element(t, &value) == TRN_OK ? value : (double)NAN;
}
