/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop device's table: opening, memory, and the plug-in's entry.
 */
#include <stdio.h>
#include <string.h>

#include "loop.h"

TRN_API const trn_backend *trn_plugin_backend(uint32_t host_version);

/* What this device calls of the host, up to the last of it. */
static bool host_has_all(const trn_host_services *host)
{
    return host->size >= offsetof(trn_host_services, reference_op) +
                             sizeof host->reference_op &&
           host->graph_info != NULL && host->reference_op != NULL;
}

static int32_t open_parts(trn_device *dev)
{
    if (!trn__loop_pool_open(&dev->pool))
        return trn__loop_fail(dev, TRN_ERR_NOMEM,
                              "loop: no range of addresses for its memory");
    if (trn__loop_queue_open(dev))
        return TRN_OK;
    trn__loop_pool_close(&dev->pool);
    return trn__loop_fail(dev, TRN_ERR_DEVICE, "loop: its thread won't start");
}

static int32_t loop_open(const trn_host_services *host, const char *argument,
                         trn_device **device)
{
    trn__loop_options options;
    *device = NULL;
    if (!host_has_all(host))
        return host->fail(host->host, TRN_ERR_UNSUPPORTED,
                          "loop: the host has no graphs or no reference_op");
    int32_t status = trn__loop_parse(host, argument, &options);
    if (status != TRN_OK)
        return status;
    trn_device *dev = host->alloc(host->host, sizeof *dev);
    if (dev == NULL)
        return host->fail(host->host, TRN_ERR_NOMEM, "loop: no memory");
    memset(dev, 0, sizeof *dev);
    dev->host = host;
    dev->options = options;
    const char *isa = host->option(host->host, "reference_isa");
    snprintf(dev->description, sizeof dev->description,
             "%.20s%sreference kernels%s, %u in flight", isa == NULL ? "" : isa,
             isa == NULL ? "" : " ", options.strict ? ", strict" : "",
             (unsigned)options.queue);
    status = trn__loop_call(dev, TRN__LOOP_open)
                 ? trn__loop_fail(dev, TRN_ERR_DEVICE,
                                  "loop: open failed, as asked for")
                 : open_parts(dev);
    if (status == TRN_OK)
        *device = dev;
    else
        host->dealloc(host->host, dev);
    return status;
}

static void loop_close(trn_device *dev)
{
    if (dev == NULL)
        return;
    trn__loop_call(dev, TRN__LOOP_close);
    trn__loop_queue_close(dev);
    trn__loop_pool_close(&dev->pool);
    dev->host->dealloc(dev->host->host, dev);
}

static trn_buffer *loop_alloc(trn_device *dev, uint64_t bytes)
{
    if (trn__loop_call(dev, TRN__LOOP_alloc)) {
        trn__loop_fail(dev, TRN_ERR_DEVICE, "loop: alloc failed, as asked for");
        return NULL;
    }
    return trn__loop_pool_alloc(&dev->pool, bytes);
}

static trn_buffer *loop_alloc_like(trn_device *dev, const trn_arg *like,
                                   uint64_t bytes)
{
    uint64_t need = trn__loop_size(like->dtype);
    for (uint32_t d = like->rank; d-- > 0;) {
        if (like->stride[d] * (int64_t)trn__loop_size(like->dtype) !=
            (int64_t)need)
            return NULL;
        need *= (uint64_t)like->shape[d];
    }
    if (like->buffer != NULL || like->offset != 0 || need != bytes)
        return NULL;
    trn_buffer *buffer = loop_alloc(dev, bytes);
    if (buffer != NULL)
        *trn__loop_form_of(&dev->pool, buffer) = trn__loop_form(like);
    return buffer;
}

static void loop_free(trn_device *dev, trn_buffer *buffer)
{
    trn__loop_call(dev, TRN__LOOP_free);
    if (buffer == NULL)
        return;
    trn__loop_drain(dev, buffer, NULL);
    trn__loop_pool_free(&dev->pool, buffer);
}

static int32_t loop_write(trn_device *dev, trn_buffer *buffer, uint64_t offset,
                          const void *data, uint64_t bytes)
{
    if (trn__loop_call(dev, TRN__LOOP_write))
        return trn__loop_fail(dev, TRN_ERR_DEVICE,
                              "loop: write failed, as asked for");
    trn__loop_drain(dev, buffer, NULL);
    if (bytes > 0)
        memcpy(trn__loop_address(&dev->pool, buffer) + offset, data,
               (size_t)bytes);
    return TRN_OK;
}

static int32_t loop_read(trn_device *dev, const trn_buffer *buffer,
                         uint64_t offset, void *data, uint64_t bytes)
{
    if (trn__loop_call(dev, TRN__LOOP_read))
        return trn__loop_fail(dev, TRN_ERR_DEVICE,
                              "loop: read failed, as asked for");
    trn__loop_drain(dev, buffer, NULL);
    if (bytes > 0)
        memcpy(data, trn__loop_address(&dev->pool, buffer) + offset,
               (size_t)bytes);
    return TRN_OK;
}

static void loop_release(trn_device *dev, trn_program *program)
{
    trn__loop_call(dev, TRN__LOOP_release);
    trn__loop_release(dev, program);
}

static bool takes(const trn_device *dev, const trn_arg *a)
{
    return !dev->options.strict || (a->dtype != TRN_F64 && a->dtype != TRN_I64);
}

/* The host asks for a type by `copy` of a thing to itself: that is no call. */
static bool asks_for_type(const trn_op_call *call)
{
    return call->op == TRN_OP_copy && call->n_in == 1 && call->n_out == 1 &&
           call->in[0] == call->out[0];
}

/* A host that cannot tell has kernels for all that it knew then. */
static bool has_kernel(const trn_device *dev, const trn_op_call *call)
{
    const trn_host_services *host = dev->host;
#ifdef TRN_HAS_REFERENCE_SUPPORTS
    if (host->size >= offsetof(trn_host_services, reference_supports) +
                          sizeof host->reference_supports)
        return host->reference_supports(host->host, call);
#endif
    (void)host;
    (void)call;
    return true;
}

static bool loop_supports(trn_device *dev, const trn_op_call *call)
{
    if (!asks_for_type(call) && trn__loop_call(dev, TRN__LOOP_supports))
        return false;
    for (uint32_t i = 0; i < call->n_in; i++) {
        if (!takes(dev, call->in[i]))
            return false;
    }
    for (uint32_t i = 0; i < call->n_out; i++) {
        if (!takes(dev, call->out[i]))
            return false;
    }
    return call->op < TRN_OP_LIMIT &&
           (asks_for_type(call) ||
            (!dev->options.lacks[call->op] && has_kernel(dev, call)));
}

static const char *loop_describe(trn_device *dev)
{
    return dev->description;
}

#define ALL_DTYPES                                      \
    (TRN_DTYPE_BIT(TRN_F64) | TRN_DTYPE_BIT(TRN_F32) |  \
     TRN_DTYPE_BIT(TRN_BF16) | TRN_DTYPE_BIT(TRN_F16) | \
     TRN_DTYPE_BIT(TRN_I64) | TRN_DTYPE_BIT(TRN_I32) |  \
     TRN_DTYPE_BIT(TRN_U32) | TRN_DTYPE_BIT(TRN_U8) | TRN_DTYPE_BIT(TRN_BOOL))

#ifdef TRN_HAS_REPRODUCIBLE
/* The kernels are the host's reference. */
static bool loop_reproducible(trn_device *dev)
{
    (void)dev;
    return true;
}
#endif

static const trn_backend loop_backend = {
    .size = sizeof(trn_backend),
    .version = TRN_BACKEND_VERSION,
    .name = "loop",
    .caps = TRN_CAP_GRAPH | TRN_CAP_ASYNC | TRN_CAP_HOST_NODES,
    .stores = ALL_DTYPES,
    .computes = ALL_DTYPES,
    /* REQUIRED */
    .open = loop_open,
    .close = loop_close,
    .alloc = loop_alloc,
    .free = loop_free,
    .write = loop_write,
    .read = loop_read,
    /* GRAPH */
    .compile = trn__loop_compile,
    .execute = trn__loop_execute,
    .wait = trn__loop_wait,
    .poll = trn__loop_poll,
    .release = loop_release,
    /* OPTIONAL */
    .supports = loop_supports,
    .describe = loop_describe,
    .alloc_like = loop_alloc_like,
    .op_limit = TRN_OP_KNOWN,
#ifdef TRN_HAS_REPRODUCIBLE
    .reproducible = loop_reproducible,
#endif
};

const trn_backend *trn_plugin_backend(uint32_t host_version)
{
    return host_version >= 1 ? &loop_backend : NULL;
}
