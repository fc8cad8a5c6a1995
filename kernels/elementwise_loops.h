/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops around elementwise_ops.h: a pair of kernels for each UNARY, BINARY
 * and COMPARE row of ops.def, by expansion.
 *
 * Whoever includes it has included vec_<set>.h and the set's prototypes, and
 * defines TRN__KERNEL(name), the kernel's name in the set.  A row whose op is
 * missing in elementwise_ops.h does not build, and the compiler or linker names
 * it.
 */
#include "kernels/elementwise_ops.h"

#define LOOP_UNARY(fn, op, v, T, LANES)            \
    void fn(int64_t n, const T *x, T *y)           \
    {                                              \
        int64_t i = 0;                             \
        for (; i + LANES <= n; i += LANES)         \
            v##_store(y + i, op(v##_load(x + i))); \
        if (i < n) {                               \
            v r = op(v##_load_tail(x + i, n - i)); \
            v##_store_tail(y + i, n - i, r);       \
        }                                          \
    }

#define LOOP_BINARY(fn, op, v, T, LANES)                            \
    void fn(int64_t n, const T *a, const T *b, T *y)                \
    {                                                               \
        int64_t i = 0;                                              \
        for (; i + LANES <= n; i += LANES)                          \
            v##_store(y + i, op(v##_load(a + i), v##_load(b + i))); \
        if (i < n) {                                                \
            v ta = v##_load_tail(a + i, n - i);                     \
            v tb = v##_load_tail(b + i, n - i);                     \
            v##_store_tail(y + i, n - i, op(ta, tb));               \
        }                                                           \
    }

#define LOOP_COMPARE(fn, op, v, mask, T, LANES)                      \
    void fn(int64_t n, const T *a, const T *b, uint8_t *y)           \
    {                                                                \
        int64_t i = 0;                                               \
        for (; i + LANES <= n; i += LANES)                           \
            mask##_store_bool(y + i, LANES,                          \
                              op(v##_load(a + i), v##_load(b + i))); \
        if (i < n) {                                                 \
            v ta = v##_load_tail(a + i, n - i);                      \
            v tb = v##_load_tail(b + i, n - i);                      \
            mask##_store_bool(y + i, n - i, op(ta, tb));             \
        }                                                            \
    }

#define KERNELS_UNARY(nm)                                            \
    LOOP_UNARY(TRN__KERNEL(nm##_f32), nm##_f32, vf, float, VF_LANES) \
    LOOP_UNARY(TRN__KERNEL(nm##_f64), nm##_f64, vd, double, VD_LANES)
#define KERNELS_BINARY(nm)                                            \
    LOOP_BINARY(TRN__KERNEL(nm##_f32), nm##_f32, vf, float, VF_LANES) \
    LOOP_BINARY(TRN__KERNEL(nm##_f64), nm##_f64, vd, double, VD_LANES)
#define KERNELS_COMPARE(nm)                                                \
    LOOP_COMPARE(TRN__KERNEL(nm##_f32), nm##_f32, vf, vi, float, VF_LANES) \
    LOOP_COMPARE(TRN__KERNEL(nm##_f64), nm##_f64, vd, vl, double, VD_LANES)
#define KERNELS_VIEW(nm)
#define KERNELS_REDUCE(nm)
#define KERNELS_RANDOM(nm)
#define KERNELS_UPDATE(nm)
#define KERNELS_SPECIAL(nm)
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    KERNELS_##cls(nm)
#include "trn/ops.def"
