/* SPDX-License-Identifier: Apache-2.0
 *
 * What a device is: a table of functions, and the services the host offers it.
 *
 * A device includes this header and nothing else of libtrn; it may live in a
 * shared object of its own.  Structs grow only at their end and start with
 * their size; enums travel as uint32_t, statuses as int32_t (enum trn_status).
 * A device is called by one thread at a time per trn_device.
 *
 * This table changes until the XLA part of the project is done; docs/devices.md
 * logs each change.
 */
#ifndef TRN_BACKEND_H
#define TRN_BACKEND_H

#include "trn/attrs.h"
#include "trn/types.h"

TRN_BEGIN_DECLS

#define TRN_BACKEND_VERSION 1u

/* Capabilities; each changes what the core does. */
#define TRN_CAP_EAGER 1u       /* has run_op */
#define TRN_CAP_HOST_MEMORY 2u /* a trn_buffer * is a host address */

typedef struct trn_device trn_device; /* one open device, made by the backend */
typedef struct trn_buffer trn_buffer; /* memory of a device, made by it */

/* A tensor operand: element i is at offset + sum of i_d stride_d (elements). */
typedef struct trn_arg {
    trn_buffer *buffer;
    uint32_t dtype;
    uint32_t rank;
    int64_t offset;
    int64_t shape[TRN_MAX_RANK];
    int64_t stride[TRN_MAX_RANK];
} trn_arg;

/* What a device found wrong with a value that the host could not see. */
typedef enum trn_report_kind {
    TRN_REPORT_NONE = 0,
    TRN_REPORT_INDEX = 1,        /* value outside [0, limit) */
    TRN_REPORT_ZERO_DIVISOR = 2, /* integer division by zero */
    TRN_REPORT_NOT_FINITE = 3    /* infinity or NaN */
} trn_report_kind;

typedef struct trn_op_report {
    uint32_t kind;
    uint32_t input;   /* which input holds the value */
    int64_t position; /* row-major index in that input; the lowest one */
    int64_t value;
    int64_t limit;
} trn_op_report;

/*
 * One call of an op.  Shapes and dtypes have been checked against the op's
 * row, outputs are allocated and contiguous; inputs may have any strides
 * (0 where broadcast).  VIEW rows never come here.  UPDATE rows have no
 * outputs: they overwrite the inputs named in the row, which are contiguous.
 * Inputs of BINARY, COMPARE and where rows are already expanded to the
 * output's shape, and all float or all integer of one dtype (where: inputs 1
 * and 2; its input 0 is bool).
 */
typedef struct trn_op_call {
    uint32_t size;
    uint32_t op; /* enum trn_op */
    uint32_t n_in;
    uint32_t n_out;
    const trn_arg *const *in;
    const trn_arg *const *out;
    const void *attrs; /* struct trn_<attrs>_attrs */
    uint32_t attrs_size;
    uint32_t n_values;
    const double *values; /* VALUE attributes, in the row's order */
    uint64_t key;  /* RANDOM rows: Philox key of the generator's stream */
    uint64_t draw; /* RANDOM rows: number of the draw */
    trn_op_report *report;
} trn_op_call;

/* Work on items [begin, end), called from several threads. */
typedef void (*trn_range_fn)(void *arg, int64_t begin, int64_t end);

/* What the host offers; `host` is the first argument of every entry. */
typedef struct trn_host_services {
    uint32_t size;
    uint32_t version;
    void *host;
    /* 64-byte aligned memory, counted by the context; NULL: out of memory */
    void *(*alloc)(void *host, size_t bytes);
    void (*dealloc)(void *host, void *memory);
    /* splits [0, n) at multiples of grain over the context's threads */
    void (*parallel_for)(void *host, int64_t n, int64_t grain, trn_range_fn fn,
                         void *arg);
    int32_t (*n_threads)(void *host);
    void (*log)(void *host, uint32_t level, const char *text);
    /* a device option by name ("cpu_isa"), NULL if not set */
    const char *(*option)(void *host, const char *name);
    /* leaves `message` as the context's error, returns `status` */
    int32_t (*fail)(void *host, int32_t status, const char *message);
} trn_host_services;

typedef struct trn_backend {
    uint32_t size;
    uint32_t version;
    const char *name;
    uint32_t caps;
    uint32_t stores;   /* TRN_DTYPE_BITs that its memory holds */
    uint32_t computes; /* TRN_DTYPE_BITs that its ops accept */

    /* REQUIRED */
    /* `argument` is what follows ':' in the device string, or "" */
    int32_t (*open)(const trn_host_services *host, const char *argument,
                    trn_device **device);
    void (*close)(trn_device *device);
    /* at least `bytes` (> 0) bytes, NULL when out of memory */
    trn_buffer *(*alloc)(trn_device *device, uint64_t bytes);
    void (*free)(trn_device *device, trn_buffer *buffer);
    int32_t (*write)(trn_device *device, trn_buffer *buffer, uint64_t offset,
                     const void *data, uint64_t bytes);
    int32_t (*read)(trn_device *device, const trn_buffer *buffer,
                    uint64_t offset, void *data, uint64_t bytes);

    /* EAGER */
    int32_t (*run_op)(trn_device *device, const trn_op_call *call);

    /* OPTIONAL */
    /* does run_op take this call?  NULL: yes, every call */
    bool (*supports)(trn_device *device, const trn_op_call *call);
    /* one line about what runs ("avx2"); NULL: the name alone */
    const char *(*describe)(trn_device *device);
} trn_backend;

TRN_END_DECLS

#endif
