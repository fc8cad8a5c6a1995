/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise integer kernels: integer_loops.h for each integer type.
 */
#include "kernels/integer_kernels.h"

#define INT int64_t
#define WORD uint64_t
#define IS_SIGNED 1
#define TYPED(name) name##_i64
#include "kernels/integer_loops.h"

#define INT int32_t
#define WORD uint32_t
#define IS_SIGNED 1
#define TYPED(name) name##_i32
#include "kernels/integer_loops.h"

#define INT uint32_t
#define WORD uint32_t
#define IS_SIGNED 0
#define TYPED(name) name##_u32
#include "kernels/integer_loops.h"

#define INT uint8_t
#define WORD uint32_t
#define IS_SIGNED 0
#define TYPED(name) name##_u8
#include "kernels/integer_loops.h"

const trn__integer_kernels *trn__integer_kernels_of(trn_dtype dtype)
{
    static const struct {
        trn_dtype dtype;
        const trn__integer_kernels *kernels;
    } table[] = {
        {TRN_I64, &kernels_i64},
        {TRN_I32, &kernels_i32},
        {TRN_U32, &kernels_u32},
        {TRN_U8, &kernels_u8},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].dtype == dtype)
            return table[i].kernels;
    }
    return NULL;
}
