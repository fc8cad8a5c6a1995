/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes to and from a plug-in, and waiting for it.
 *
 * Elements are packed with the last dimension fastest on our side, whatever
 * their order is on the device.
 */
#include "backends/pjrt/pjrt.h"

static uint32_t type_of(uint32_t dtype)
{
    static const uint8_t types[] = {
        [TRN_F64] = PJRT_F64, [TRN_F32] = PJRT_F32, [TRN_BF16] = PJRT_BF16,
        [TRN_F16] = PJRT_F16, [TRN_I64] = PJRT_S64, [TRN_I32] = PJRT_S32,
        [TRN_U32] = PJRT_U32, [TRN_U8] = PJRT_U8,   [TRN_BOOL] = PJRT_PRED,
    };
    return types[dtype];
}

int32_t trn__pjrt_await(trn_device *dev, pjrt_event *event, const char *what)
{
    if (event == NULL)
        return TRN_OK;
    pjrt_event_await_args wait = PJRT_INIT(pjrt_event_await_args, event);
    wait.event = event;
    int32_t status = trn__pjrt_check(dev->api, dev->api->event_await(&wait),
                                     what, &dev->fault);
    pjrt_event_destroy_args end = PJRT_INIT(pjrt_event_destroy_args, event);
    end.event = event;
    trn__pjrt_ignore(dev->api, dev->api->event_destroy(&end));
    return status;
}

void trn__pjrt_drop(trn_device *dev, pjrt_buffer *buffer)
{
    if (buffer == NULL)
        return;
    pjrt_buffer_destroy_args args = PJRT_INIT(pjrt_buffer_destroy_args, buffer);
    args.buffer = buffer;
    trn__pjrt_ignore(dev->api, dev->api->buffer_destroy(&args));
}

int32_t trn__pjrt_upload(trn_device *dev, const void *data, uint32_t dtype,
                         uint32_t rank, const int64_t *shape, pjrt_buffer **out)
{
    pjrt_upload_args args = PJRT_INIT(pjrt_upload_args, buffer);
    args.client = dev->client;
    args.data = data;
    args.type = type_of(dtype);
    args.dims = shape;
    args.n_dims = rank;
    args.semantics = PJRT_DURING_CALL;
    args.device = dev->device;
    int32_t status = trn__pjrt_check(dev->api, dev->api->upload(&args),
                                     "upload", &dev->fault);
    if (status != TRN_OK)
        return status;
    /* The data is ours again already; the event tells whether it arrived. */
    status = trn__pjrt_await(dev, args.done, "upload");
    if (status != TRN_OK) {
        trn__pjrt_drop(dev, args.buffer);
        return status;
    }
    *out = args.buffer;
    return TRN_OK;
}

int32_t trn__pjrt_download(trn_device *dev, pjrt_buffer *from, uint32_t rank,
                           void *to, uint64_t bytes)
{
    int64_t order[TRN_MAX_RANK];
    pjrt_layout layout = PJRT_INIT(pjrt_layout, kind);
    for (uint32_t d = 0; d < rank; d++)
        order[d] = (int64_t)rank - 1 - d;
    layout.tiled.size = sizeof layout.tiled;
    layout.tiled.minor_to_major = order;
    layout.tiled.n_minor_to_major = rank;
    pjrt_download_args args = PJRT_INIT(pjrt_download_args, done);
    args.buffer = from;
    args.host_layout = &layout;
    args.to = to;
    args.to_size = (size_t)bytes;
    int32_t status = trn__pjrt_check(dev->api, dev->api->download(&args),
                                     "download", &dev->fault);
    if (status != TRN_OK)
        return status;
    return trn__pjrt_await(dev, args.done, "download");
}
