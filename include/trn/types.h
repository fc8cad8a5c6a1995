/* SPDX-License-Identifier: Apache-2.0
 *
 * What every other header needs: export and attribute macros, element types,
 * status codes.  No functions of the library are declared here.
 */
#ifndef TRN_TYPES_H
#define TRN_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TRN_API __attribute__((visibility("default")))
#define TRN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define TRN_API
#define TRN_PRINTF(fmt, args)
#endif

#ifdef __cplusplus
#define TRN_BEGIN_DECLS extern "C" {
#define TRN_END_DECLS }
#else
#define TRN_BEGIN_DECLS
#define TRN_END_DECLS
#endif

/* The largest number of dimensions of a tensor; rank 0 is a scalar. */
#define TRN_MAX_RANK 8

/*
 * Element types.   X(name, code, text, bytes)
 *
 * bf16 and f16 are storage formats: arithmetic on them is done in f32 and
 * rounded once.  bool is one byte, 0 or 1.  The codes are ABI.
 */
#define TRN_DTYPE_LIST(X) \
    X(F64, 1, "f64", 8)   \
    X(F32, 2, "f32", 4)   \
    X(BF16, 3, "bf16", 2) \
    X(F16, 4, "f16", 2)   \
    X(I64, 5, "i64", 8)   \
    X(I32, 6, "i32", 4)   \
    X(U32, 7, "u32", 4)   \
    X(U8, 8, "u8", 1)     \
    X(BOOL, 9, "bool", 1)

typedef enum trn_dtype {
#define X(name, code, text, bytes) TRN_##name = code,
    TRN_DTYPE_LIST(X)
#undef X
} trn_dtype;

#define TRN_DTYPE_BIT(dtype) (1u << (dtype))

/*
 * Status codes.   X(name, code, text)
 *
 * 0 is success, errors are negative.  The codes are ABI.
 */
#define TRN_STATUS_LIST(X)                                            \
    X(OK, 0, "success")                                               \
    X(ERR_ARG, -1, "invalid argument")                                \
    X(ERR_SHAPE, -2, "shapes do not fit")                             \
    X(ERR_DTYPE, -3, "element type not accepted")                     \
    X(ERR_INDEX, -4, "index out of range")                            \
    X(ERR_VALUE, -5, "value out of range")                            \
    X(ERR_NUMERIC, -6, "a value is not finite")                       \
    X(ERR_STATE, -7, "call not allowed in this state")                \
    X(ERR_STALE, -8, "handle outlived its step")                      \
    X(ERR_MODIFIED, -9, "a tensor needed for gradients was modified") \
    X(ERR_NOGRAD, -10, "no gradient exists")                          \
    X(ERR_NOMEM, -11, "out of memory")                                \
    X(ERR_IO, -12, "file could not be read or written")               \
    X(ERR_FORMAT, -13, "file content is not valid")                   \
    X(ERR_DEVICE, -14, "device failed")                               \
    X(ERR_UNSUPPORTED, -15, "not supported")                          \
    X(ERR_CANCELLED, -16, "cancelled")                                \
    X(ERR_LOST, -17, "parameters were lost")                          \
    X(ERR_INTERNAL, -18, "internal error; please report it")          \
    X(ERR_DEADLINE, -19, "deadline passed")

typedef enum trn_status {
#define X(name, code, text) TRN_##name = code,
    TRN_STATUS_LIST(X)
#undef X
} trn_status;

/* Opaque objects.  Each hangs on one context and is freed with it at last. */
typedef struct trn_context trn_context;
typedef struct trn_tensor trn_tensor;
typedef struct trn_generator trn_generator;
typedef struct trn_module trn_module;
typedef struct trn_optim trn_optim;
typedef struct trn_schedule trn_schedule;
typedef struct trn_loader trn_loader;

#endif
