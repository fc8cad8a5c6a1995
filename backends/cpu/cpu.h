/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU device: its table, and what its families of ops share.
 *
 * A buffer handle is a host address.  Every executor walks the row-major
 * logical elements of its operands; strides only say where they lie, so no
 * result depends on layout, and work is cut by sizes, so none depends on
 * threads.  cpu_read.h has the walk, cpu_run.c the table of functions.
 */
#ifndef TRN_BACKENDS_CPU_H
#define TRN_BACKENDS_CPU_H

#include "trn/backend.h"
#include "kernels/kernel_set.h"

extern const trn_backend trn__cpu_backend;

/* Elements per chunk of the elementwise walks; their buffers are on the stack.
 */
#define TRN__CPU_CHUNK 1024

/* A chunk of parallel work is at least this many elements. */
#define TRN__CPU_CHEAP 32768
#define TRN__CPU_DEAR 4096 /* exp, log, tanh, pow */

/* The loops of one UNARY, BINARY or COMPARE row in the chosen kernel set. */
typedef struct trn__cpu_loops {
    trn__unary_f32_fn *unary_f32;
    trn__unary_f64_fn *unary_f64;
    trn__binary_f32_fn *binary_f32;
    trn__binary_f64_fn *binary_f64;
    trn__compare_f32_fn *compare_f32;
    trn__compare_f64_fn *compare_f64;
} trn__cpu_loops;

/* Outcomes that wait for their question; executions here are done at once. */
#define TRN__CPU_OUTCOMES 4

/* Memory that an execution brings for the workspaces of its ops. */
typedef struct trn__cpu_block {
    char *memory; /* NULL: there is none */
    size_t bytes, taken;
} trn__cpu_block;

typedef struct trn__blas trn__blas; /* cpu_blas.h */

struct trn_device {
    const trn_host_services *host;
    trn__kernel_set set;
    trn__cpu_loops loops[TRN_OP_LIMIT];
    trn__blas *blas; /* NULL: products are those of the kernels */
    char description[160];
    trn__cpu_block work; /* cpu_workspace.h */
    uint64_t last_ticket;
    trn_outcome outcome[TRN__CPU_OUTCOMES]; /* of ticket, modulo */
};

typedef int32_t trn__cpu_fn(trn_device *dev, const trn_op_call *call);

/* cpu_run.c */
int32_t trn__cpu_run_op(trn_device *dev, const trn_op_call *call);
bool trn__cpu_supports(trn_device *dev, const trn_op_call *call);
void trn__cpu_fill_loops(trn_device *dev);

/* Shared executors of cpu_elementwise.c. */
trn__cpu_fn trn__cpu_unary;
trn__cpu_fn trn__cpu_binary;
trn__cpu_fn trn__cpu_compare;

/* One executor per other row, trn__cpu_<op>; VIEW rows never come here. */
#define TRN__CPU_PROTO_UNARY(nm)
#define TRN__CPU_PROTO_BINARY(nm)
#define TRN__CPU_PROTO_COMPARE(nm)
#define TRN__CPU_PROTO_VIEW(nm)
#define TRN__CPU_PROTO_REDUCE(nm) trn__cpu_fn trn__cpu_##nm;
#define TRN__CPU_PROTO_RANDOM(nm) trn__cpu_fn trn__cpu_##nm;
#define TRN__CPU_PROTO_UPDATE(nm) trn__cpu_fn trn__cpu_##nm;
#define TRN__CPU_PROTO_SPECIAL(nm) trn__cpu_fn trn__cpu_##nm;
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    TRN__CPU_PROTO_##cls(nm)
#include "trn/ops.def"

/* cpu_device.c: reports TRN_ERR_NOMEM and returns it. */
int32_t trn__cpu_no_memory(trn_device *dev);

/*
 * fn over [0, n) in pieces that start at multiples of grain; at most one
 * piece runs here at once, without the pool.
 */
static inline void trn__cpu_for(trn_device *dev, int64_t n, int64_t grain,
                                trn_range_fn fn, void *arg)
{
    if (n <= grain)
        fn(arg, 0, n);
    else
        dev->host->parallel_for(dev->host->host, n, grain, fn, arg);
}

static inline void *trn__cpu_alloc(trn_device *dev, size_t bytes)
{
    return dev->host->alloc(dev->host->host, bytes);
}

static inline void trn__cpu_free(trn_device *dev, void *memory)
{
    dev->host->dealloc(dev->host->host, memory);
}

static inline int64_t trn__i64_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t trn__i64_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline size_t trn__cpu_size(uint32_t dtype)
{
    static const uint8_t size[] = {0,
#define X(name, code, text, bytes) bytes,
                                   TRN_DTYPE_LIST(X)
#undef X
    };
    return size[dtype];
}

/* The type that arithmetic on dtype is done in. */
static inline uint32_t trn__cpu_compute(uint32_t dtype)
{
    return dtype == TRN_BF16 || dtype == TRN_F16 ? (uint32_t)TRN_F32 : dtype;
}

static inline bool trn__cpu_is_float(uint32_t dtype)
{
    return dtype <= TRN_F16;
}

static inline int64_t trn__cpu_numel(const trn_arg *a)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < a->rank; d++)
        n *= a->shape[d];
    return n;
}

/* The address of element 0. */
static inline char *trn__cpu_data(const trn_arg *a)
{
    return (char *)(void *)a->buffer +
           a->offset * (int64_t)trn__cpu_size(a->dtype);
}

/* Do the elements lie in row-major order without gaps? */
static inline bool trn__cpu_linear(const trn_arg *a)
{
    int64_t next = 1;
    for (uint32_t d = a->rank; d-- > 0;) {
        if (a->shape[d] != 1 && a->stride[d] != next)
            return false;
        next *= a->shape[d];
    }
    return true;
}

#endif
