/* SPDX-License-Identifier: Apache-2.0
 *
 * A plug-in that was built before the optimizers' updates came: it has no
 * `supports`, so op_limit alone tells the host what not to give it.
 */
#include "trn/backend.h"

#define EAGER_OP_LIMIT 91
#include "eager_device.h"

static const trn_backend table = {
    EAGER_FIELDS(sizeof table, "limited", TRN_CAP_EAGER | TRN_CAP_HOST_MEMORY),
    .op_limit = EAGER_OP_LIMIT,
};

const trn_backend *trn_plugin_backend(uint32_t host_version)
{
    (void)host_version;
    return &table;
}
