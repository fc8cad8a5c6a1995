/* SPDX-License-Identifier: Apache-2.0
 *
 * The services of a context, as a device sees them.
 */
#include <string.h>

#include "libtrn/dispatch/host.h"
#include "libtrn/graph/graph.h"

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
    if (strcmp(name, "cpu_isa") == 0)
        return c->cpu_isa;
    return strcmp(name, "reference_isa") == 0 ? trn__reference_isa(c)
                                              : trn__device_option(c, name);
}

static int32_t host_fail(void *host, int32_t status, const char *message)
{
    return trn__fail(host, (trn_status)status, "%s", message);
}

static void host_region_begin(void *host)
{
    trn_context *c = host;
    trn__region_begin(c->threads);
}

static void host_region_end(void *host)
{
    trn_context *c = host;
    trn__region_end(c->threads);
}

void trn__host_services(trn_context *c, trn_host_services *out)
{
    *out = (trn_host_services){
        .size = (uint32_t)sizeof *out,
        .version = TRN_BACKEND_VERSION,
        .host = c,
        .alloc = host_alloc,
        .dealloc = host_dealloc,
        .parallel_for = host_parallel_for,
        .n_threads = host_n_threads,
        .log = host_log,
        .option = host_option,
        .fail = host_fail,
        .graph_info = trn__graph_get_info,
        .graph_node = trn__graph_get_node,
        .graph_value = trn__graph_get_value,
        .graph_output = trn__graph_get_output,
        .graph_input = trn__graph_get_input,
        .graph_scalar = trn__graph_get_scalar,
        .reference_op = trn__reference_op,
        .reference_supports = trn__reference_supports,
        .region_begin = host_region_begin,
        .region_end = host_region_end,
    };
}
