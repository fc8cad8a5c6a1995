/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of a PJRT plug-in, as far as this device calls it.
 *
 * A plug-in exports GetPjrtApi, which gives a table: a head, then one function
 * pointer per slot.  Slots are only ever added at the end.  The names here are
 * ours, the published name of each entry stands in the list.
 */
#ifndef TRN_BACKENDS_PJRT_API_H
#define TRN_BACKENDS_PJRT_API_H

#include "pjrt_args.h"

#define PJRT_ENTRY "GetPjrtApi"
#define PJRT_MAJOR 0

/*
 * The entries.   X(slot, name, published name, needed)
 *
 * Each but the first two, which give nothing, returns an error or NULL.  What
 * is not needed may be absent from a plug-in.
 */
#define PJRT_VOID_ENTRIES(X)                     \
    X(0, error_destroy, "PJRT_Error_Destroy", 1) \
    X(1, error_message, "PJRT_Error_Message", 1)

#define PJRT_ENTRIES(X)                                             \
    X(2, error_code, "PJRT_Error_GetCode", 1)                       \
    X(3, initialize, "PJRT_Plugin_Initialize", 1)                   \
    X(5, event_destroy, "PJRT_Event_Destroy", 1)                    \
    X(8, event_await, "PJRT_Event_Await", 1)                        \
    X(10, client_create, "PJRT_Client_Create", 1)                   \
    X(11, client_destroy, "PJRT_Client_Destroy", 1)                 \
    X(12, platform_name, "PJRT_Client_PlatformName", 1)             \
    X(16, client_devices, "PJRT_Client_AddressableDevices", 1)      \
    X(20, compile, "PJRT_Client_Compile", 1)                        \
    X(22, upload, "PJRT_Client_BufferFromHostBuffer", 1)            \
    X(40, executable_destroy, "PJRT_Executable_Destroy", 1)         \
    X(44, n_outputs, "PJRT_Executable_NumOutputs", 1)               \
    X(50, loaded_destroy, "PJRT_LoadedExecutable_Destroy", 1)       \
    X(51, get_executable, "PJRT_LoadedExecutable_GetExecutable", 1) \
    X(55, execute, "PJRT_LoadedExecutable_Execute", 1)              \
    X(58, buffer_destroy, "PJRT_Buffer_Destroy", 1)                 \
    X(68, is_deleted, "PJRT_Buffer_IsDeleted", 1)                   \
    X(70, download, "PJRT_Buffer_ToHostBuffer", 1)                  \
    X(96, memory_stats, "PJRT_Executable_GetCompiledMemoryStats", 0)

typedef void pjrt_any_fn(void);

/* The plug-in's table. */
typedef struct pjrt_api {
    PJRT_HEAD;
    struct {
        PJRT_HEAD;
        int major, minor;
    } version;
    pjrt_any_fn *slot[];
} pjrt_api;

typedef const pjrt_api *pjrt_entry_fn(void);

/* What we call of it, by its right type; NULL: it is absent. */
typedef struct pjrt_calls {
#define X(slot, name, published, needed) void (*name)(pjrt_##name##_args *);
    PJRT_VOID_ENTRIES(X)
#undef X
#define X(slot, name, published, needed) \
    pjrt_error *(*name)(pjrt_##name##_args *);
    PJRT_ENTRIES(X)
#undef X
} pjrt_calls;

#endif
