/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of built-in devices, and opening the one that a context names.
 */
#include <string.h>

#include "libtrn/dispatch/dispatch.h"
#include "libtrn/dispatch/host.h"
#include "libtrn/dispatch/plugin.h"

extern const trn_backend trn__cpu_backend;  /* backends/cpu */
extern const trn_backend trn__pjrt_backend; /* backends/pjrt */

static const trn_backend *const built_in[] = {
    &trn__cpu_backend,
    &trn__pjrt_backend,
};

/* Is `name` the backend's, alone or before a ':'?  Gives what follows. */
static bool named(const trn_backend *b, const char *name, const char **argument)
{
    size_t n = strlen(b->name);
    if (strncmp(name, b->name, n) != 0 || (name[n] != '\0' && name[n] != ':'))
        return false;
    *argument = name[n] == ':' ? name + n + 1 : "";
    return true;
}

static const trn_backend *find(trn_context *c, const char *name,
                               const char **argument)
{
    const trn_backend *found = NULL;
    for (size_t i = 0; i < sizeof built_in / sizeof built_in[0]; i++) {
        if (named(built_in[i], name, argument))
            return built_in[i];
    }
    if (!trn__plugin_named(c, name, &found, argument))
        trn__fail(c, TRN_ERR_UNSUPPORTED,
                  "trn_open: device \"%.80s\" is not known; expected cpu, "
                  "loop, pjrt:/path/plugin.so or plugin:/path/device.so",
                  name);
    return found;
}

/*
 * A device may hold fewer types than its table, as its argument tells (a table
 * is one for all devices of its kind): it is asked, by `copy` of one element.
 */
static void narrow_types(trn_context *c)
{
    trn_backend *b = &c->table;
    if (b->supports == NULL)
        return;
    for (uint32_t dtype = TRN_F64; dtype <= TRN_BOOL; dtype++) {
        trn_arg arg = {.dtype = dtype};
        const trn_arg *args[1] = {&arg};
        const trn_op_call call = {
            .size = (uint32_t)sizeof call,
            .op = TRN_OP_copy,
            .n_in = 1,
            .n_out = 1,
            .in = args,
            .out = args,
        };
        uint32_t bit = TRN_DTYPE_BIT(dtype);
        if ((b->stores & bit) && !trn__takes(b, c->device, &call)) {
            b->stores &= ~bit;
            b->computes &= ~bit;
        }
    }
}

trn_status trn__device_open(trn_context *c, const char *name)
{
    const char *argument = "";
    const trn_backend *found = find(c, name, &argument);
    if (found == NULL)
        return c->status;
    TRN_TRY(trn__reference_open(c));
    trn__host_services(c, &c->services);
    trn__fp_env saved; /* threads of the device inherit the modes */
    trn__fp_enter(&saved);
    int32_t status = found->open(&c->services, argument, &c->device);
    trn__fp_leave(&saved);
    if (status == TRN_OK && c->device == NULL)
        status = TRN_ERR_DEVICE;
    if (status != TRN_OK) {
        c->device = NULL;
        return trn__fail(c, (trn_status)status,
                         "trn_open: device \"%.80s\" did not open", name);
    }
    c->table = *found;
    c->backend = &c->table;
    narrow_types(c);
    trn__device_options_unasked(c, c->backend->name);
    return TRN_OK;
}

void trn__device_close(trn_context *c)
{
    if (c->device != NULL)
        c->backend->close(c->device);
    c->device = NULL;
    trn__reference_close(c);
}
