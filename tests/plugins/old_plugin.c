/* SPDX-License-Identifier: Apache-2.0
 *
 * A plug-in as it was built when the table was new: from a frozen header.
 */
#include "frozen_backend_v1.h"

#include "eager_device.h"

static const char *old_describe(trn_device *device)
{
    (void)device;
    return "built from version 1";
}

static const trn_backend table = {
    EAGER_FIELDS(sizeof table, "old", TRN_CAP_EAGER | TRN_CAP_HOST_MEMORY),
    .describe = old_describe,
};

const trn_backend *trn_plugin_backend(uint32_t host_version)
{
    return host_version >= TRN_BACKEND_VERSION ? &table : NULL;
}
