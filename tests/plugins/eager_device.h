/* SPDX-License-Identifier: Apache-2.0
 *
 * A tiny device for plug-ins of the tests: host memory, each op by the host's
 * reference_op.  The file that includes this has chosen a header of the table.
 */
#ifndef TRN_TESTS_EAGER_DEVICE_H
#define TRN_TESTS_EAGER_DEVICE_H

#include <string.h>

struct trn_device {
    const trn_host_services *host;
};

static int32_t eager_open(const trn_host_services *host, const char *argument,
                          trn_device **device)
{
    if (strcmp(argument, "refuse") == 0)
        return host->fail(host->host, TRN_ERR_DEVICE, "refused as asked for");
    if (strcmp(argument, "ask") == 0)
        host->option(host->host, "wanted");
    if (host->size <
        offsetof(trn_host_services, reference_op) + sizeof host->reference_op)
        return host->fail(host->host, TRN_ERR_UNSUPPORTED, "host is too old");
    *device = host->alloc(host->host, sizeof **device);
    if (*device == NULL)
        return TRN_ERR_NOMEM;
    (*device)->host = host;
    return TRN_OK;
}

static void eager_close(trn_device *device)
{
    device->host->dealloc(device->host->host, device);
}

static trn_buffer *eager_alloc(trn_device *device, uint64_t bytes)
{
    return device->host->alloc(device->host->host, (size_t)bytes);
}

static void eager_free(trn_device *device, trn_buffer *buffer)
{
    device->host->dealloc(device->host->host, buffer);
}

static int32_t eager_write(trn_device *device, trn_buffer *buffer,
                           uint64_t offset, const void *data, uint64_t bytes)
{
    (void)device;
    if (bytes > 0)
        memcpy((char *)(void *)buffer + offset, data, (size_t)bytes);
    return TRN_OK;
}

static int32_t eager_read(trn_device *device, const trn_buffer *buffer,
                          uint64_t offset, void *data, uint64_t bytes)
{
    (void)device;
    if (bytes > 0)
        memcpy(data, (const char *)(const void *)buffer + offset,
               (size_t)bytes);
    return TRN_OK;
}

/* The ids that the device was built with, where not all are. */
#ifndef EAGER_OP_LIMIT
#define EAGER_OP_LIMIT TRN_OP_LIMIT
#endif

static int32_t eager_run_op(trn_device *device, const trn_op_call *call)
{
    if (call->op >= EAGER_OP_LIMIT)
        __builtin_trap(); /* how should it know that op? */
    return device->host->reference_op(device->host->host, call);
}

#define EAGER_DTYPES                                    \
    (TRN_DTYPE_BIT(TRN_F64) | TRN_DTYPE_BIT(TRN_F32) |  \
     TRN_DTYPE_BIT(TRN_BF16) | TRN_DTYPE_BIT(TRN_F16) | \
     TRN_DTYPE_BIT(TRN_I64) | TRN_DTYPE_BIT(TRN_I32) |  \
     TRN_DTYPE_BIT(TRN_U32) | TRN_DTYPE_BIT(TRN_U8) | TRN_DTYPE_BIT(TRN_BOOL))

/* The fields of a table, in their order. */
#define EAGER_FIELDS(bytes, device_name, capabilities)                   \
    .size = (uint32_t)(bytes), .version = TRN_BACKEND_VERSION,           \
    .name = device_name, .caps = (capabilities), .stores = EAGER_DTYPES, \
    .computes = EAGER_DTYPES, .open = eager_open, .close = eager_close,  \
    .alloc = eager_alloc, .free = eager_free, .write = eager_write,      \
    .read = eager_read, .run_op = eager_run_op

TRN_API const trn_backend *trn_plugin_backend(uint32_t host_version);

#endif
