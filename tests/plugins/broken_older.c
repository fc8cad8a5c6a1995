/* SPDX-License-Identifier: Apache-2.0
 *
 * A plug-in that says it is older than the first version.
 */
#include "trn/backend.h"

#include "eager_device.h"

static const trn_backend table = {
    EAGER_FIELDS(sizeof table, "older", TRN_CAP_EAGER),
};

const trn_backend *trn_plugin_backend(uint32_t host_version)
{
    static trn_backend broken;
    (void)host_version;
    broken = table;
    broken.version = 0;
    return &broken;
}
