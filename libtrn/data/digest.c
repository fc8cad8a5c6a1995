/* SPDX-License-Identifier: Apache-2.0
 *
 * The digest of a module: one SHA-256 over all its parameters.
 *
 * Hashed for each parameter, in the order of the tree: name and a 0, name of
 * the type and a 0, rank as u32, dimensions as i64, values; all little-endian.
 * Each NaN is hashed as the quiet NaN without sign and payload, because the
 * place of a NaN is promised, its bits are not.
 */
#include <string.h>

#include "libtrn/data/data.h"
#include "libtrn/data/sha256.h"
#include "trn/nn.h"

/* Bits above which, without the sign, an element is a NaN, and the NaN that
 * stands for all; 0 for types that have none. */
typedef struct nan_rule {
    uint64_t infinity, nan;
} nan_rule;

static nan_rule nan_rule_of(trn_dtype dtype)
{
    static const nan_rule rules[] = {
        [TRN_F64] = {UINT64_C(0x7ff0000000000000),
                     UINT64_C(0x7ff8000000000000)},
        [TRN_F32] = {0x7f800000, 0x7fc00000},
        [TRN_BF16] = {0x7f80, 0x7fc0},
        [TRN_F16] = {0x7c00, 0x7e00},
        [TRN_BOOL] = {0, 0},
    };
    return rules[dtype];
}

static uint64_t load_bits(const void *element, size_t size)
{
    uint8_t b1;
    uint16_t b2;
    uint32_t b4;
    uint64_t b8;
    switch (size) {
    case 1:
        return memcpy(&b1, element, 1), b1;
    case 2:
        return memcpy(&b2, element, 2), b2;
    case 4:
        return memcpy(&b4, element, 4), b4;
    default:
        return memcpy(&b8, element, 8), b8;
    }
}

static void store_little_endian(uint64_t bits, size_t size, uint8_t *to)
{
    for (size_t i = 0; i < size; i++)
        to[i] = (uint8_t)(bits >> (8 * i));
}

static void add_number(trn__sha256 *s, uint64_t number, size_t size)
{
    uint8_t bytes[8];
    store_little_endian(number, size, bytes);
    trn__sha256_add(s, bytes, size);
}

/* Hashes n elements after bringing them to their one form, in place. */
static void add_values(trn__sha256 *s, trn_dtype dtype, uint8_t *values,
                       int64_t n)
{
    size_t size = trn_dtype_size(dtype);
    nan_rule rule = nan_rule_of(dtype);
    uint64_t sign = UINT64_C(1) << (8 * size - 1);
    for (int64_t i = 0; i < n; i++) {
        uint8_t *element = values + (size_t)i * size;
        uint64_t bits = load_bits(element, size);
        if (rule.nan != 0 && (bits & ~sign) > rule.infinity)
            bits = rule.nan;
        store_little_endian(bits, size, element);
    }
    trn__sha256_add(s, values, (size_t)n * size);
}

static trn_status add_tensor(trn__sha256 *s, trn_tensor *t)
{
    trn_context *c = t->c;
    const trn_arg *arg = &t->arg;
    trn_dtype dtype = (trn_dtype)arg->dtype;
    const char *type = trn_dtype_name(dtype);
    int64_t n = trn__numel(arg->rank, arg->shape);
    size_t bytes = (size_t)n * trn_dtype_size(dtype);
    trn__sha256_add(s, type, strlen(type) + 1);
    add_number(s, arg->rank, 4);
    for (uint32_t d = 0; d < arg->rank; d++)
        add_number(s, (uint64_t)arg->shape[d], 8);
    uint8_t *values = trn__alloc(c, bytes);
    if (values == NULL)
        return trn__fail_memory(c, "trn_digest", bytes);
    trn_status status = trn_tensor_read(t, values, bytes);
    if (status == TRN_OK)
        add_values(s, dtype, values, n);
    trn__free(c, values);
    return status;
}

trn_status trn_digest(trn_module *m, char out[65])
{
    if (out == NULL)
        return TRN_ERR_ARG;
    out[0] = '\0';
    if (m == NULL)
        return TRN_ERR_ARG;
    TRN_TRY(trn__pending(trn_nn_context(m)));
    trn__sha256 s;
    trn__sha256_begin(&s);
    int64_t n = trn_nn_parameter_count(m);
    for (int64_t i = 0; i < n; i++) {
        const char *name = trn_nn_parameter_name(m, i);
        if (name == NULL)
            return trn__pending(trn_nn_context(m));
        trn__sha256_add(&s, name, strlen(name) + 1);
        TRN_TRY(add_tensor(&s, trn_nn_parameter_at(m, i)));
    }
    trn__sha256_end(&s, out);
    return TRN_OK;
}
