/* SPDX-License-Identifier: Apache-2.0
 *
 * trn/backend.h and what it includes, as they were when the table was frozen
 * (version 1, part 3), without comments.  Never to be changed: where the table
 * grows, this file stays as it is.  The loop device is built from it once more.
 */
#ifndef FROZEN_BACKEND_V1_PART3_H
#define FROZEN_BACKEND_V1_PART3_H

/* clang-format off */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#if defined(__GNUC__)
#define TRN_API __attribute__((visibility("default")))
#else
#define TRN_API
#endif
#ifdef __cplusplus
#define TRN_BEGIN_DECLS extern "C" {
#define TRN_END_DECLS }
#else
#define TRN_BEGIN_DECLS
#define TRN_END_DECLS
#endif
#define TRN_MAX_RANK 8
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
    X(ERR_INTERNAL, -18, "internal error; please report it")
typedef enum trn_status {
#define X(name, code, text) TRN_##name = code,
    TRN_STATUS_LIST(X)
#undef X
} trn_status;
typedef struct trn_dims { int64_t rank; int64_t dim[TRN_MAX_RANK]; } trn_dims;
typedef struct trn_axes { int32_t rank; int32_t axis[TRN_MAX_RANK]; }
    trn_axes;
typedef enum trn_reduction { TRN_REDUCE_MEAN = 0, TRN_REDUCE_SUM = 1,
    TRN_REDUCE_NONE = 2 } trn_reduction;
typedef enum trn_op {
    TRN_OP_neg = 1, TRN_OP_exp = 2, TRN_OP_log = 3, TRN_OP_tanh = 4,
    TRN_OP_sqrt = 5, TRN_OP_relu = 6, TRN_OP_flush_subnormal = 7, TRN_OP_add =
    10, TRN_OP_sub = 11, TRN_OP_mul = 12, TRN_OP_div = 13, TRN_OP_pow = 14,
    TRN_OP_maximum = 15, TRN_OP_greater = 16, TRN_OP_equal = 17, TRN_OP_where
    = 18, TRN_OP_add_scalar = 20, TRN_OP_mul_scalar = 21, TRN_OP_cast = 22,
    TRN_OP_copy = 23, TRN_OP_check_finite = 24, TRN_OP_reshape = 30,
    TRN_OP_permute = 31, TRN_OP_expand = 32, TRN_OP_slice = 33, TRN_OP_pad =
    34, TRN_OP_sum = 40, TRN_OP_mean = 41, TRN_OP_norm = 42, TRN_OP_max = 43,
    TRN_OP_argmax = 44, TRN_OP_matmul = 50, TRN_OP_embedding = 60,
    TRN_OP_embedding_grad = 61, TRN_OP_gather = 62, TRN_OP_scatter_add = 63,
    TRN_OP_uniform = 70, TRN_OP_normal = 71, TRN_OP_full = 72, TRN_OP_dropout
    = 80, TRN_OP_softmax = 81, TRN_OP_log_softmax = 82, TRN_OP_cross_entropy =
    83, TRN_OP_cross_entropy_grad = 84, TRN_OP_assign = 90, TRN_OP_sgd_update
    = 91, TRN_OP_sgd_momentum_update = 93, TRN_OP_adamw_update = 92,
    TRN_OP_LIMIT = 256
} trn_op;
enum { TRN_OP_KNOWN = 94 };
typedef struct trn_none_attrs { uint8_t end_of_none_attrs; } trn_none_attrs;
typedef struct trn_scalar_attrs { uint8_t end_of_scalar_attrs; }
    trn_scalar_attrs;
typedef struct trn_dtype_attrs { int32_t dtype; uint8_t end_of_dtype_attrs; }
    trn_dtype_attrs;
typedef struct trn_shape_attrs { trn_dims shape; uint8_t end_of_shape_attrs; }
    trn_shape_attrs;
typedef struct trn_perm_attrs { trn_axes perm; uint8_t end_of_perm_attrs; }
    trn_perm_attrs;
typedef struct trn_slice_attrs { int32_t axis; int64_t start; int64_t stop;
    int64_t step; uint8_t end_of_slice_attrs; } trn_slice_attrs;
typedef struct trn_pad_attrs { int32_t axis; int64_t before; int64_t after;
    int64_t interior; uint8_t end_of_pad_attrs; } trn_pad_attrs;
typedef struct trn_reduce_attrs { uint32_t axes; int32_t keep_dims; uint8_t
    end_of_reduce_attrs; } trn_reduce_attrs;
typedef struct trn_axis_attrs { int32_t axis; uint8_t end_of_axis_attrs; }
    trn_axis_attrs;
typedef struct trn_matmul_attrs { int32_t trans_a; int32_t trans_b; uint8_t
    end_of_matmul_attrs; } trn_matmul_attrs;
typedef struct trn_embedding_attrs { int64_t padding_idx; uint8_t
    end_of_embedding_attrs; } trn_embedding_attrs;
typedef struct trn_embedding_grad_attrs { int64_t n_rows; int64_t padding_idx;
    uint8_t end_of_embedding_grad_attrs; } trn_embedding_grad_attrs;
typedef struct trn_scatter_attrs { int32_t axis; int64_t size; uint8_t
    end_of_scatter_attrs; } trn_scatter_attrs;
typedef struct trn_full_attrs { trn_dims shape; int32_t dtype; uint8_t
    end_of_full_attrs; } trn_full_attrs;
typedef struct trn_random_attrs { trn_dims shape; int32_t dtype; uint8_t
    end_of_random_attrs; } trn_random_attrs;
typedef struct trn_dropout_attrs { uint8_t end_of_dropout_attrs; }
    trn_dropout_attrs;
typedef struct trn_cross_entropy_attrs { int32_t reduction; int32_t
    has_ignore_index; int64_t ignore_index; uint8_t
    end_of_cross_entropy_attrs; } trn_cross_entropy_attrs;
typedef struct trn_sgd_attrs { uint8_t end_of_sgd_attrs; } trn_sgd_attrs;
typedef struct trn_sgd_momentum_attrs { int32_t nesterov; uint8_t
    end_of_sgd_momentum_attrs; } trn_sgd_momentum_attrs;
typedef struct trn_adamw_attrs { uint8_t end_of_adamw_attrs; }
    trn_adamw_attrs;
TRN_BEGIN_DECLS
typedef struct trn_device trn_device;
typedef struct trn_buffer trn_buffer;
typedef struct trn_program trn_program;
typedef struct trn_graph trn_graph;
typedef struct trn_arg {
    trn_buffer *buffer;
    uint32_t dtype;
    uint32_t rank;
    int64_t offset;
    int64_t shape[TRN_MAX_RANK];
    int64_t stride[TRN_MAX_RANK];
} trn_arg;
typedef enum trn_report_kind { TRN_REPORT_NONE = 0, TRN_REPORT_INDEX = 1,
    TRN_REPORT_ZERO_DIVISOR = 2, TRN_REPORT_NOT_FINITE = 3 } trn_report_kind;
typedef struct trn_op_report {
    uint32_t kind;
    uint32_t input;
    int64_t position;
    int64_t value;
    int64_t limit;
} trn_op_report;
typedef struct trn_op_call {
    uint32_t size;
    uint32_t op;
    uint32_t n_in;
    uint32_t n_out;
    const trn_arg *const *in;
    const trn_arg *const *out;
    const void *attrs;
    uint32_t attrs_size;
    uint32_t n_values;
    const double *values;
    uint64_t key;
    uint64_t draw;
    trn_op_report *report;
} trn_op_call;
typedef struct trn_graph_info {
    uint32_t size;
    int32_t n_nodes;
    int32_t n_values;
    int32_t n_inputs;
    int32_t n_outputs;
    int32_t n_scalars;
    int32_t n_draws;
    int32_t n_groups;
    uint64_t arena_bytes;
    uint64_t hash;
} trn_graph_info;
typedef struct trn_graph_value {
    uint32_t size;
    int32_t node;
    int32_t input;
    trn_arg arg;
    int32_t base;
    int32_t state;
    int32_t output;
    int64_t arena_at;
} trn_graph_value;
typedef struct trn_graph_node {
    uint32_t size;
    uint32_t op;
    uint32_t n_in, n_out;
    int32_t in[8], out[4];
    const void *attrs;
    uint32_t attrs_size;
    uint32_t n_scalars;
    int32_t scalar[8];
    int32_t draw;
    int32_t group;
    uint32_t fused_only;
    uint32_t on_host;
    uint32_t origin;
    uint32_t checks;
    const int32_t *ins, *outs, *scalars;
} trn_graph_node;
typedef struct trn_graph_scalar {
    uint32_t size;
    uint32_t is_literal;
    double value;
} trn_graph_scalar;
typedef struct trn_graph_output {
    uint32_t size;
    int32_t value;
    int32_t alias;
} trn_graph_output;
typedef struct trn_execution {
    uint32_t size;
    uint32_t n_inputs, n_outputs, n_scalars, n_draws;
    trn_buffer *const *inputs;
    trn_buffer *const *outputs;
    const double *scalars;
    const uint64_t (*draws)[2];
} trn_execution;
typedef struct trn_outcome {
    uint32_t size;
    int32_t status;
    int32_t node;
    uint32_t inputs_lost;
    trn_op_report report;
} trn_outcome;
#define TRN_BACKEND_VERSION 1u
#define TRN_CAP_EAGER 1u
#define TRN_CAP_HOST_MEMORY 2u
#define TRN_CAP_GRAPH 4u
#define TRN_CAP_ASYNC 8u
#define TRN_CAP_HOST_NODES 16u
typedef void (*trn_range_fn)(void *arg, int64_t begin, int64_t end);
typedef struct trn_host_services {
    uint32_t size;
    uint32_t version;
    void *host;
    void *(*alloc)(void *host, size_t bytes);
    void (*dealloc)(void *host, void *memory);
    void (*parallel_for)(void *host, int64_t n, int64_t grain, trn_range_fn fn,
                         void *arg);
    int32_t (*n_threads)(void *host);
    void (*log)(void *host, uint32_t level, const char *text);
    const char *(*option)(void *host, const char *name);
    int32_t (*fail)(void *host, int32_t status, const char *message);
    bool (*graph_info)(const trn_graph *g, trn_graph_info *out);
    bool (*graph_node)(const trn_graph *g, int32_t i, trn_graph_node *out);
    bool (*graph_value)(const trn_graph *g, int32_t i, trn_graph_value *out);
    bool (*graph_output)(const trn_graph *g, int32_t i, trn_graph_output *out);
    int32_t (*graph_input)(const trn_graph *g, int32_t i);
    int32_t (*reference_op)(void *host, const trn_op_call *call);
    void (*region_begin)(void *host);
    void (*region_end)(void *host);
    bool (*graph_scalar)(const trn_graph *g, int32_t i, trn_graph_scalar *out);
} trn_host_services;
typedef struct trn_backend trn_backend;
typedef const trn_backend *(*trn_plugin_fn)(uint32_t host_version);
#define TRN_PLUGIN_ENTRY "trn_plugin_backend"
struct trn_backend {
    uint32_t size;
    uint32_t version;
    const char *name;
    uint32_t caps;
    uint32_t stores;
    uint32_t computes;
    int32_t (*open)(const trn_host_services *host, const char *argument,
                    trn_device **device);
    void (*close)(trn_device *device);
    trn_buffer *(*alloc)(trn_device *device, uint64_t bytes);
    void (*free)(trn_device *device, trn_buffer *buffer);
    int32_t (*write)(trn_device *device, trn_buffer *buffer, uint64_t offset,
                     const void *data, uint64_t bytes);
    int32_t (*read)(trn_device *device, const trn_buffer *buffer,
                    uint64_t offset, void *data, uint64_t bytes);
    int32_t (*run_op)(trn_device *device, const trn_op_call *call);
    int32_t (*compile)(trn_device *device, const trn_graph *graph,
                       trn_program **program);
    int32_t (*execute)(trn_device *device, trn_program *program,
                       const trn_execution *e, uint64_t *ticket);
    int32_t (*wait)(trn_device *device, uint64_t ticket, trn_outcome *outcome);
    int32_t (*poll)(trn_device *device, uint64_t ticket);
    void (*release)(trn_device *device, trn_program *program);
    bool (*supports)(trn_device *device, const trn_op_call *call);
    const char *(*describe)(trn_device *device);
    uint64_t (*program_bytes)(trn_device *device, trn_program *program);
    trn_buffer *(*alloc_like)(trn_device *device, const trn_arg *like,
                              uint64_t bytes);
    uint32_t op_limit;
};
TRN_END_DECLS
#endif
