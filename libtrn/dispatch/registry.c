/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of built-in devices, and opening the one that a context names.
 */
#include <string.h>

#include "libtrn/context/context.h"

extern const trn_backend trn__cpu_backend; /* backends/cpu */

static const trn_backend *const built_in[] = {
    &trn__cpu_backend,
};

static void *host_alloc(void *host, size_t bytes)
{
    return trn__alloc(host, bytes);
}

static void host_dealloc(void *host, void *memory)
{
    trn__free(host, memory);
}

static void host_parallel_for(void *host, int64_t n, int64_t grain,
                              trn_range_fn fn, void *arg)
{
    trn_context *c = host;
    trn__parallel_for(c->threads, n, grain, fn, arg);
}

static int32_t host_n_threads(void *host)
{
    trn_context *c = host;
    return trn__threads_count(c->threads);
}

static void host_log(void *host, uint32_t level, const char *text)
{
    trn_context *c = host;
    if (c->log != NULL)
        c->log(c->log_user, (trn_log_level)level, text);
}

static const char *host_option(void *host, const char *name)
{
    trn_context *c = host;
    return strcmp(name, "cpu_isa") == 0 ? c->cpu_isa : NULL;
}

static int32_t host_fail(void *host, int32_t status, const char *message)
{
    return trn__fail(host, (trn_status)status, "%s", message);
}

/* Is `name` the backend's, alone or before a ':'?  Gives what follows. */
static bool named(const trn_backend *b, const char *name, const char **argument)
{
    size_t n = strlen(b->name);
    if (strncmp(name, b->name, n) != 0 || (name[n] != '\0' && name[n] != ':'))
        return false;
    *argument = name[n] == ':' ? name + n + 1 : "";
    return true;
}

trn_status trn__device_open(trn_context *c, const char *name)
{
    const char *argument = "";
    const trn_backend *found = NULL;
    for (size_t i = 0; i < sizeof built_in / sizeof built_in[0]; i++) {
        if (named(built_in[i], name, &argument))
            found = built_in[i];
    }
    if (found == NULL)
        return trn__fail(c, TRN_ERR_UNSUPPORTED,
                         "trn_open: device \"%.80s\" is not known; expected "
                         "cpu",
                         name);
    c->services = (trn_host_services){
        .size = (uint32_t)sizeof c->services,
        .version = TRN_BACKEND_VERSION,
        .host = c,
        .alloc = host_alloc,
        .dealloc = host_dealloc,
        .parallel_for = host_parallel_for,
        .n_threads = host_n_threads,
        .log = host_log,
        .option = host_option,
        .fail = host_fail,
    };
    int32_t status = found->open(&c->services, argument, &c->device);
    if (status != TRN_OK) {
        c->device = NULL;
        return trn__fail(c, (trn_status)status,
                         "trn_open: device \"%.80s\" did not open", name);
    }
    c->backend = found;
    return TRN_OK;
}

void trn__device_close(trn_context *c)
{
    if (c->device != NULL)
        c->backend->close(c->device);
    c->device = NULL;
}
