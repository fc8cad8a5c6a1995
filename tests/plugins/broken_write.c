/* SPDX-License-Identifier: Apache-2.0
 *
 * A plug-in without write, which every device has.
 */
#include "trn/backend.h"

#include "eager_device.h"

static const trn_backend table = {
    EAGER_FIELDS(sizeof table, "no write", TRN_CAP_EAGER),
};

const trn_backend *trn_plugin_backend(uint32_t host_version)
{
    static trn_backend broken;
    (void)host_version;
    broken = table;
    broken.write = NULL;
    return &broken;
}
