/* SPDX-License-Identifier: Apache-2.0
 *
 * A plug-in that gives no table.
 */
#include "trn/backend.h"

TRN_API const trn_backend *trn_plugin_backend(uint32_t host_version);

const trn_backend *trn_plugin_backend(uint32_t host_version)
{
    (void)host_version;
    return NULL;
}
