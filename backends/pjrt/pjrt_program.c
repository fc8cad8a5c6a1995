/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs: lowering, the plug-in's compiler, and what executions need again
 * and again.
 */
#include <stdio.h>
#include <string.h>

#include "trn/context.h"
#include "backends/pjrt/pjrt.h"

static void *take(trn_device *dev, uint64_t bytes)
{
    void *memory = dev->host->alloc(dev->host->host, (size_t)bytes + 1);
    if (memory == NULL)
        trn__pjrt_say(&dev->fault, TRN_ERR_NOMEM,
                      "pjrt: compile: no memory on the host");
    else
        memset(memory, 0, (size_t)bytes + 1);
    return memory;
}

/* Arrays and rooms, by the sizes that the lowering found. */
static int32_t prepare(trn_device *dev, trn_program *p)
{
    const trn__hlo_program *hlo = p->hlo;
    uint64_t staging = 0, check = 0;
    for (int32_t i = 0; i < hlo->n_params; i++) {
        const trn__hlo_param *param = &hlo->params[i];
        if (param->source != TRN__HLO_INPUT && param->bytes > staging)
            staging = param->bytes;
        p->n_aliased += param->source == TRN__HLO_INPUT && param->alias >= 0;
    }
    if (hlo->check >= 0)
        check = hlo->results[hlo->check].bytes;
    p->arguments = take(dev, (uint64_t)hlo->n_params * sizeof *p->arguments);
    p->ours = take(dev, (uint64_t)hlo->n_params * sizeof *p->ours);
    p->results = take(dev, (uint64_t)hlo->n_results * sizeof *p->results);
    p->staging = take(dev, staging);
    p->check = take(dev, check);
    return p->arguments != NULL && p->ours != NULL && p->results != NULL &&
                   p->staging != NULL && p->check != NULL
               ? TRN_OK
               : TRN_ERR_NOMEM;
}

/* A call of the plug-in's compiler, and what it said. */
typedef struct compilation {
    const pjrt_calls *api;
    pjrt_compile_args *args;
    pjrt_error *error;
} compilation;

static void *call_compiler(void *arg)
{
    compilation *k = arg;
    k->error = k->api->compile(k->args);
    return NULL;
}

/* In a thread with a large stack, since compilers recurse; without one here. */
static pjrt_error *call_deep(const pjrt_calls *api, pjrt_compile_args *args)
{
    compilation k = {.api = api, .args = args};
    pthread_t thread;
    if (trn__pjrt_thread_start(&thread, call_compiler, &k))
        pthread_join(thread, NULL);
    else
        call_compiler(&k);
    return k.error;
}

static int32_t compile_once(trn_device *dev, trn_program *p)
{
    static const char format[] = "hlo";
    pjrt_source source = PJRT_INIT(pjrt_source, format_size);
    source.code = p->hlo->bytes;
    source.code_size = p->hlo->n_bytes;
    source.format = format;
    source.format_size = sizeof format - 1;
    pjrt_compile_args args = PJRT_INIT(pjrt_compile_args, loaded);
    args.client = dev->client;
    args.source = &source;
    const trn__pjrt_encoded *o = &dev->compile_options[p->hlo->plain_products];
    args.options = o->bytes;
    args.options_size = o->n;
    int32_t status = trn__pjrt_check(dev->api, call_deep(dev->api, &args),
                                     "compile", &dev->fault);
    p->loaded = status == TRN_OK ? args.loaded : NULL;
    return status;
}

/* A default of ours that this plug-in does not know is left out from now on. */
static bool drop_default(trn_device *dev)
{
    char line[160];
    const char *words = dev->fault.text, *name = NULL;
    for (int i = 0; i < 2; i++) {
        const char *dropped =
            trn__pjrt_drop_default(&dev->compile_options[i], words);
        name = dropped != NULL ? dropped : name;
    }
    if (name == NULL)
        return false;
    snprintf(line, sizeof line,
             "pjrt: the plug-in has no compile option %s, a default of "
             "libtrn; it is left out",
             name);
    dev->host->log(dev->host->host, TRN_LOG_WARNING, line);
    return true;
}

static int32_t give_to_compiler(trn_device *dev, trn_program *p)
{
    int32_t status = compile_once(dev, p);
    while (status != TRN_OK && drop_default(dev))
        status = compile_once(dev, p);
    /* Nobody reads the module again. */
    dev->host->dealloc(dev->host->host, p->hlo->bytes);
    p->hlo->bytes = NULL;
    p->hlo->n_bytes = 0;
    return status;
}

static int32_t check_results(trn_device *dev, const trn_program *p,
                             pjrt_executable *executable)
{
    pjrt_n_outputs_args args = PJRT_INIT(pjrt_n_outputs_args, n_outputs);
    args.executable = executable;
    int32_t status = trn__pjrt_check(dev->api, dev->api->n_outputs(&args),
                                     "compile", &dev->fault);
    if (status == TRN_OK && args.n_outputs != (size_t)p->hlo->n_results)
        status = trn__pjrt_say(&dev->fault, TRN_ERR_INTERNAL,
                               "pjrt: compile: the plug-in's program has %zu "
                               "results; expected %d",
                               args.n_outputs, (int)p->hlo->n_results);
    return status;
}

/* A plug-in that cannot tell leaves the estimate. */
static void ask_bytes(trn_device *dev, trn_program *p,
                      pjrt_executable *executable)
{
    pjrt_memory_stats_args args = PJRT_INIT(pjrt_memory_stats_args, total);
    args.executable = executable;
    if (dev->api->memory_stats == NULL)
        return;
    pjrt_error *error = dev->api->memory_stats(&args);
    if (error == NULL && args.temporary >= 0)
        p->bytes = (uint64_t)args.temporary;
    trn__pjrt_ignore(dev->api, error);
}

static int32_t look_at_it(trn_device *dev, trn_program *p)
{
    pjrt_get_executable_args args =
        PJRT_INIT(pjrt_get_executable_args, executable);
    args.loaded = p->loaded;
    int32_t status = trn__pjrt_check(dev->api, dev->api->get_executable(&args),
                                     "compile", &dev->fault);
    if (status != TRN_OK)
        return status;
    status = check_results(dev, p, args.executable);
    if (status == TRN_OK)
        ask_bytes(dev, p, args.executable);
    pjrt_executable_destroy_args end =
        PJRT_INIT(pjrt_executable_destroy_args, executable);
    end.executable = args.executable;
    trn__pjrt_ignore(dev->api, dev->api->executable_destroy(&end));
    return status;
}

static int32_t build(trn_device *dev, const trn_graph *graph, trn_program *p)
{
    trn_graph_info info = {.size = sizeof info};
    if (!dev->host->graph_info(graph, &info))
        return dev->host->fail(dev->host->host, TRN_ERR_ARG,
                               "pjrt: compile: this is no graph");
    p->n_inputs = (uint32_t)info.n_inputs;
    p->n_outputs = (uint32_t)info.n_outputs;
    p->n_scalars = (uint32_t)info.n_scalars;
    p->n_draws = (uint32_t)info.n_draws;
    p->bytes = info.arena_bytes;
    int32_t status = trn__hlo_lower(dev->host, graph, dev->profile, &p->hlo);
    if (status != TRN_OK)
        return status; /* the host has its message */
    status = prepare(dev, p);
    if (status == TRN_OK)
        status = give_to_compiler(dev, p);
    if (status == TRN_OK)
        status = look_at_it(dev, p);
    return status == TRN_OK ? TRN_OK : trn__pjrt_raise(dev);
}

int32_t trn__pjrt_compile(trn_device *dev, const trn_graph *graph,
                          trn_program **program)
{
    trn_program *p = take(dev, sizeof *p);
    *program = NULL;
    if (p == NULL)
        return trn__pjrt_raise(dev);
    p->next = dev->programs;
    p->link = &dev->programs;
    if (p->next != NULL)
        p->next->link = &p->next;
    dev->programs = p;
    int32_t status = build(dev, graph, p);
    if (status == TRN_OK)
        *program = p;
    else
        trn__pjrt_release(dev, p);
    return status;
}

void trn__pjrt_release(trn_device *dev, trn_program *p)
{
    const trn_host_services *host = dev->host;
    if (p == NULL)
        return;
    trn__pjrt_drain(dev, p);
    *p->link = p->next;
    if (p->next != NULL)
        p->next->link = p->link;
    if (p->loaded != NULL) {
        pjrt_loaded_destroy_args args =
            PJRT_INIT(pjrt_loaded_destroy_args, loaded);
        args.loaded = p->loaded;
        trn__pjrt_ignore(dev->api, dev->api->loaded_destroy(&args));
    }
    if (p->hlo != NULL)
        trn__hlo_free(host, p->hlo);
    host->dealloc(host->host, p->arguments);
    host->dealloc(host->host, p->ours);
    host->dealloc(host->host, p->results);
    host->dealloc(host->host, p->staging);
    host->dealloc(host->host, p->check);
    host->dealloc(host->host, p);
}

uint64_t trn__pjrt_program_bytes(trn_device *dev, trn_program *p)
{
    (void)dev;
    return p->bytes;
}
