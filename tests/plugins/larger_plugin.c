/* SPDX-License-Identifier: Apache-2.0
 *
 * A plug-in from the future: its table has entries that no host here knows, and
 * so is one of its capabilities.
 */
#include "trn/backend.h"

#include "eager_device.h"

#define CAP_FROM_THE_FUTURE (1u << 30)

typedef struct larger_backend {
    trn_backend known;
    void (*one_more)(trn_device *device);
    void (*another)(trn_device *device);
} larger_backend;

/* Nobody may call this. */
static void trap(trn_device *device)
{
    (void)device;
    __builtin_trap();
}

static const larger_backend table = {
    .known = {EAGER_FIELDS(sizeof table, "larger",
                           TRN_CAP_EAGER | TRN_CAP_HOST_MEMORY |
                               CAP_FROM_THE_FUTURE)},
    .one_more = trap,
    .another = trap,
};

const trn_backend *trn_plugin_backend(uint32_t host_version)
{
    (void)host_version;
    return &table.known;
}
