/* SPDX-License-Identifier: Apache-2.0
 *
 * A plug-in of a version that no host here can drive.
 */
#include "trn/backend.h"

#include "eager_device.h"

static const trn_backend table = {
    EAGER_FIELDS(sizeof table, "newer", TRN_CAP_EAGER),
};

const trn_backend *trn_plugin_backend(uint32_t host_version)
{
    static trn_backend broken;
    (void)host_version;
    broken = table;
    broken.version = TRN_BACKEND_VERSION + 1;
    return &broken;
}
