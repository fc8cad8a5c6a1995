/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices in shared objects: "plugin:/path/device.so[:argument]" and
 * "loop[:options]".
 */
#ifndef TRN_LIBTRN_PLUGIN_H
#define TRN_LIBTRN_PLUGIN_H

#include "libtrn/context/context.h"

/*
 * Does `name` ask for a plug-in?  Then *backend is its table, copied and filled
 * up to our size, and *argument what its open gets; NULL with the error raised
 * when it cannot be had.
 */
bool trn__plugin_named(trn_context *c, const char *name,
                       const trn_backend **backend, const char **argument);

#endif
