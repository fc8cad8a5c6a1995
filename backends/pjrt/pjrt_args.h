/* SPDX-License-Identifier: Apache-2.0
 *
 * The structs that a PJRT plug-in takes, as far as this device makes them.
 *
 * Each begins with its size, so that either side may know fewer fields than the
 * other; fields are only ever added at the end.  The names here are ours.
 */
#ifndef TRN_BACKENDS_PJRT_ARGS_H
#define TRN_BACKENDS_PJRT_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Objects of the plug-in. */
typedef struct pjrt_error pjrt_error;
typedef struct pjrt_client pjrt_client;
typedef struct pjrt_device pjrt_device;
typedef struct pjrt_event pjrt_event;
typedef struct pjrt_buffer pjrt_buffer;
typedef struct pjrt_executable pjrt_executable; /* what the compiler made */
typedef struct pjrt_loaded pjrt_loaded;         /* the same, ready to run */

/* How each struct begins.  Extensions are never used here. */
#define PJRT_HEAD \
    size_t size;  \
    void *extensions

/* An empty struct of that type, whose last field is `last`: the size ends
 * there, before any padding. */
#define PJRT_INIT(type, last)                                    \
    {                                                            \
        .size = offsetof(type, last) + sizeof(((type *)0)->last) \
    }

/* The codes of errors. */
typedef enum pjrt_code {
    PJRT_CANCELLED = 1,
    PJRT_UNKNOWN = 2,
    PJRT_INVALID_ARGUMENT = 3,
    PJRT_DEADLINE = 4,
    PJRT_NOT_FOUND = 5,
    PJRT_NO_ROOM = 8, /* out of memory, of the device or the host */
    PJRT_PRECONDITION = 9,
    PJRT_OUT_OF_RANGE = 11,
    PJRT_UNIMPLEMENTED = 12,
    PJRT_INTERNAL = 13,
    PJRT_UNAVAILABLE = 14
} pjrt_code;

/* Element types, as far as trn_dtype has them. */
typedef enum pjrt_type {
    PJRT_PRED = 1, /* one byte each */
    PJRT_S32 = 4,
    PJRT_S64 = 5,
    PJRT_U8 = 6,
    PJRT_U32 = 8,
    PJRT_F16 = 10,
    PJRT_F32 = 11,
    PJRT_F64 = 12,
    PJRT_BF16 = 13
} pjrt_type;

/* How long the host's memory is needed: until the call returns. */
#define PJRT_DURING_CALL 0

typedef enum pjrt_value_kind {
    PJRT_STRING = 0,
    PJRT_INT64 = 1,
    PJRT_FLOAT = 3,
    PJRT_BOOL = 4
} pjrt_value_kind;

typedef struct pjrt_named_value {
    PJRT_HEAD;
    const char *name;
    size_t name_size;
    uint32_t kind;
    union {
        const char *string;
        int64_t integer;
        float real;
        bool truth;
    } value;
    size_t value_size; /* bytes of a string, else 1 */
} pjrt_named_value;

typedef struct pjrt_source {
    PJRT_HEAD;
    char *code;
    size_t code_size;
    const char *format;
    size_t format_size;
} pjrt_source;

/* The order of elements in memory: dimensions from the fastest varying one on,
 * in tiles (of which we have none). */
typedef struct pjrt_layout {
    PJRT_HEAD;
    struct {
        PJRT_HEAD;
        const int64_t *minor_to_major;
        size_t n_minor_to_major;
        const int64_t *tile_dims;
        const size_t *tile_dim_sizes;
        size_t n_tiles;
    } tiled;
    uint32_t kind; /* 0: tiled */
} pjrt_layout;

typedef struct pjrt_execute_options {
    PJRT_HEAD;
    void *send_callbacks;
    void *recv_callbacks;
    size_t n_send;
    size_t n_recv;
    int launch_id;
    const int64_t *kept_inputs; /* must not be donated */
    size_t n_kept_inputs;
    void *context;
    const char *call_location;
    size_t n_tasks;
    int *task_ids;
    int64_t *incarnation_ids;
} pjrt_execute_options;

/* ---- arguments of the entries; what a call fills in comes last ---- */

typedef struct pjrt_error_destroy_args {
    PJRT_HEAD;
    pjrt_error *error;
} pjrt_error_destroy_args;

typedef struct pjrt_error_message_args {
    PJRT_HEAD;
    const pjrt_error *error;
    const char *text; /* of the error; no NUL at its end */
    size_t text_size;
} pjrt_error_message_args;

typedef struct pjrt_error_code_args {
    PJRT_HEAD;
    const pjrt_error *error;
    uint32_t code;
} pjrt_error_code_args;

typedef struct pjrt_initialize_args {
    PJRT_HEAD;
} pjrt_initialize_args;

typedef struct pjrt_event_args {
    PJRT_HEAD;
    pjrt_event *event;
} pjrt_event_destroy_args, pjrt_event_await_args;

typedef struct pjrt_client_create_args {
    PJRT_HEAD;
    const pjrt_named_value *options;
    size_t n_options;
    void *store[4]; /* of several hosts together: none */
    pjrt_client *client;
    void *store_too[2];
} pjrt_client_create_args;

typedef struct pjrt_client_destroy_args {
    PJRT_HEAD;
    pjrt_client *client;
} pjrt_client_destroy_args;

typedef struct pjrt_client_text_args {
    PJRT_HEAD;
    pjrt_client *client;
    const char *text; /* of the client */
    size_t text_size;
} pjrt_platform_name_args;

typedef struct pjrt_client_devices_args {
    PJRT_HEAD;
    pjrt_client *client;
    pjrt_device *const *devices; /* of the client */
    size_t n_devices;
} pjrt_client_devices_args;

typedef struct pjrt_compile_args {
    PJRT_HEAD;
    pjrt_client *client;
    const pjrt_source *source;
    const char *options; /* CompileOptionsProto */
    size_t options_size;
    pjrt_loaded *loaded;
} pjrt_compile_args;

typedef struct pjrt_upload_args {
    PJRT_HEAD;
    pjrt_client *client;
    const void *data;
    uint32_t type;
    const int64_t *dims;
    size_t n_dims;
    const int64_t *byte_strides; /* NULL: packed, the last dimension fastest */
    size_t n_byte_strides;
    uint32_t semantics;
    pjrt_device *device;
    void *memory;
    pjrt_layout *device_layout;
    pjrt_event *done; /* the data is not needed any more */
    pjrt_buffer *buffer;
} pjrt_upload_args;

typedef struct pjrt_executable_destroy_args {
    PJRT_HEAD;
    pjrt_executable *executable;
} pjrt_executable_destroy_args;

typedef struct pjrt_n_outputs_args {
    PJRT_HEAD;
    pjrt_executable *executable;
    size_t n_outputs;
} pjrt_n_outputs_args;

typedef struct pjrt_loaded_destroy_args {
    PJRT_HEAD;
    pjrt_loaded *loaded;
} pjrt_loaded_destroy_args;

typedef struct pjrt_get_executable_args {
    PJRT_HEAD;
    pjrt_loaded *loaded;
    pjrt_executable *executable;
} pjrt_get_executable_args;

typedef struct pjrt_execute_args {
    PJRT_HEAD;
    pjrt_loaded *loaded;
    pjrt_execute_options *options;
    pjrt_buffer *const *const *arguments; /* [devices][arguments] */
    size_t n_devices;
    size_t n_arguments;
    pjrt_buffer **const *results; /* [devices][results], filled in */
    pjrt_event **done;            /* [devices], filled in */
    pjrt_device *device;          /* of a portable program, else NULL */
} pjrt_execute_args;

typedef struct pjrt_buffer_args {
    PJRT_HEAD;
    pjrt_buffer *buffer;
} pjrt_buffer_destroy_args;

typedef struct pjrt_is_deleted_args {
    PJRT_HEAD;
    pjrt_buffer *buffer;
    bool is_deleted;
} pjrt_is_deleted_args;

typedef struct pjrt_download_args {
    PJRT_HEAD;
    pjrt_buffer *buffer;
    pjrt_layout *host_layout;
    void *to;
    size_t to_size;
    pjrt_event *done;
} pjrt_download_args;

typedef struct pjrt_memory_stats_args {
    PJRT_HEAD;
    pjrt_executable *executable;
    int64_t code, arguments, results, aliased;
    int64_t temporary;
    int64_t host[5];
    int64_t peak, total;
} pjrt_memory_stats_args;

#endif
