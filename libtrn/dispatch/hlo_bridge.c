/* SPDX-License-Identifier: Apache-2.0
 *
 * From a raw graph to HLO text: it is fitted to a device that has nothing but
 * the lowering of backends/hlo/, prepared as for any device, and printed.
 */
#include <stdio.h>

#include "backends/hlo/hlo.h"
#include "libtrn/dispatch/hlo_bridge.h"

struct trn_device {
    const trn__hlo_profile *profile;
};

static bool hlo_supports(trn_device *device, const trn_op_call *call)
{
    return trn__hlo_supports(device->profile, call);
}

static trn_status print(trn_context *c, trn_graph *g,
                        const trn__hlo_profile *profile, trn_put_fn put,
                        void *user)
{
    TRN_TRY(trn__graph_prepare(g));
    int32_t status = trn__hlo_print(&c->services, g, profile, put, user);
    if (status != TRN_OK)
        trn__fail(c, (trn_status)status, "hlo: the step was not lowered: %s",
                  trn_status_text((trn_status)status));
    return c->status;
}

trn_status trn__hlo_print_raw(trn_context *c, const trn_graph *raw,
                              const char *profile, trn__lower_fn *lower,
                              trn_put_fn put, void *user)
{
    char name[24];
    trn_device device = {.profile = NULL};
    if (profile != NULL)
        device.profile = trn__hlo_profile_named(profile);
    if (device.profile == NULL)
        return trn__fail(c, TRN_ERR_ARG,
                         "trn_capture_print_hlo: profile \"%.40s\" is not "
                         "known; expected xla or neuron",
                         profile == NULL ? "" : profile);
    snprintf(name, sizeof name, "hlo:%.16s", profile);
    const trn_backend table = {
        .size = (uint32_t)sizeof table,
        .version = TRN_BACKEND_VERSION,
        .name = name,
        .caps = TRN_CAP_GRAPH,
        .supports = hlo_supports,
        .op_limit = TRN_OP_KNOWN,
    };
    trn_graph *g = lower(c, raw, &table, &device);
    if (g == NULL)
        return c->status;
    trn_status status = print(c, g, device.profile, put, user);
    trn__graph_free(g);
    return status;
}
