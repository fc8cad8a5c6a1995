/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening and closing a context: options, environment, threads, device.
 *
 * As with SQLite, trn_open leaves a context even when it fails; such a context
 * is `broken`: it keeps its error and refuses all work, until it is closed.
 */
#include <stdio.h>
#include <string.h>

#include "libtrn/context/context.h"
#include "libtrn/context/struct_size.h"
#include "trn/step.h"
#include "trn/version.h"

#define MAX_THREADS 1024

/* A decimal number of [1, MAX_THREADS] and nothing else; 0 if it is not. */
static int parse_threads(const char *text)
{
    int n = 0;
    for (const char *p = text; *p != '\0'; p++) {
        if (*p < '0' || *p > '9' || n > MAX_THREADS)
            return 0;
        n = 10 * n + (*p - '0');
    }
    return n <= MAX_THREADS ? n : 0;
}

static trn_status choose_thread_count(trn_context *c, const trn_options *o,
                                      int *n)
{
    const char *env = trn__env("TRN_NUM_THREADS");
    if (o->n_threads < 0 || o->n_threads > MAX_THREADS)
        return trn__fail(c, TRN_ERR_ARG,
                         "trn_open: n_threads is %d; expected 1 to %d, or 0 "
                         "to choose",
                         o->n_threads, MAX_THREADS);
    if (o->n_threads > 0) {
        *n = o->n_threads;
    } else if (env != NULL) {
        *n = parse_threads(env);
        if (*n == 0)
            return trn__fail(c, TRN_ERR_ARG,
                             "trn_open: TRN_NUM_THREADS is \"%s\"; expected a "
                             "number from 1 to %d",
                             env, MAX_THREADS);
    } else {
        *n = trn__online_cores();
        *n = *n > MAX_THREADS ? MAX_THREADS : *n;
    }
    return TRN_OK;
}

static trn_status engine_of_environment(trn_context *c, uint32_t *engine)
{
    const char *env = trn__env("TRN_ENGINE");
    if (env == NULL)
        *engine = trn__openmp_available() && trn__env_any_openmp()
                      ? TRN_ENGINE_OPENMP
                      : TRN_ENGINE_POOL;
    else if (strcmp(env, "pool") == 0)
        *engine = TRN_ENGINE_POOL;
    else if (strcmp(env, "openmp") == 0)
        *engine = TRN_ENGINE_OPENMP;
    else
        return trn__fail(c, TRN_ERR_ARG,
                         "trn_open: TRN_ENGINE is \"%s\"; expected pool or "
                         "openmp",
                         env);
    return TRN_OK;
}

static void *threads_alloc(void *user, size_t bytes)
{
    return trn__alloc(user, bytes);
}

static void threads_free(void *user, void *memory)
{
    trn__free(user, memory);
}

static trn_status open_threads(trn_context *c, const trn_options *o)
{
    static const trn__engine engines[] = {
        [TRN_ENGINE_POOL] = TRN__ENGINE_POOL,
        [TRN_ENGINE_OPENMP] = TRN__ENGINE_OPENMP,
        [TRN_ENGINE_HOST] = TRN__ENGINE_HOST,
    };
    int n = 1;
    uint32_t engine = o->engine;
    TRN_TRY(choose_thread_count(c, o, &n));
    if (engine == TRN_ENGINE_AUTO)
        TRN_TRY(engine_of_environment(c, &engine));
    if (engine > TRN_ENGINE_HOST)
        return trn__fail(c, TRN_ERR_ARG,
                         "trn_open: engine is %u; expected a trn_engine",
                         (unsigned)engine);
    if (engine == TRN_ENGINE_OPENMP && !trn__openmp_available())
        return trn__fail(c, TRN_ERR_UNSUPPORTED,
                         "trn_open: the OpenMP engine was asked for, but this "
                         "build has no OpenMP");
    if (engine == TRN_ENGINE_HOST && o->parallel_for == NULL)
        return trn__fail(c, TRN_ERR_ARG,
                         "trn_open: TRN_ENGINE_HOST needs the parallel_for "
                         "hook of the options");
    trn__threads_config config = {
        .n_threads = n,
        .engine = engines[engine],
        .host_parallel_for = o->parallel_for,
        .host_user = o->parallel_user,
        .alloc = threads_alloc,
        .dealloc = threads_free,
        .alloc_user = c,
    };
    c->engine = trn__engine_name(engines[engine]);
    c->threads = trn__threads_create(&config);
    if (c->threads == NULL)
        return trn__fail_memory(c, "trn_open: threads", sizeof config);
    return TRN_OK;
}

static trn_status choose_isa(trn_context *c, const trn_options *o)
{
    const char *isa = o->cpu_isa != NULL ? o->cpu_isa : trn__env("TRN_CPU_ISA");
    isa = isa == NULL ? "auto" : isa;
    if (strlen(isa) >= sizeof c->cpu_isa)
        return trn__fail(c, TRN_ERR_ARG,
                         "trn_open: cpu_isa is \"%.40s\"; expected auto, "
                         "generic or avx2",
                         isa);
    snprintf(c->cpu_isa, sizeof c->cpu_isa, "%s", isa);
    return TRN_OK;
}

/* An option that is set, or set by its variable: "yes", or not: "no". */
static trn_status choose_flag(trn_context *c, const char *variable,
                              const char *yes, const char *no, bool option,
                              bool *out)
{
    const char *env = trn__env(variable);
    if (env != NULL && strcmp(env, yes) != 0 && strcmp(env, no) != 0)
        return trn__fail(c, TRN_ERR_ARG,
                         "trn_open: %s is \"%.40s\"; expected %s or %s",
                         variable, env, yes, no);
    *out = option || (env != NULL && strcmp(env, yes) == 0);
    return TRN_OK;
}

static trn_status choose_exec(trn_context *c, const trn_options *o)
{
    const char *env = trn__env("TRN_EXEC");
    c->exec = o->exec;
    if (o->exec > TRN_EXEC_CAPTURED)
        return trn__fail(c, TRN_ERR_ARG,
                         "trn_open: exec is %u; expected a trn_exec",
                         (unsigned)o->exec);
    if (o->exec == TRN_EXEC_AUTO && env != NULL) {
        if (strcmp(env, "auto") == 0)
            c->exec = TRN_EXEC_AUTO;
        else if (strcmp(env, "captured") == 0)
            c->exec = TRN_EXEC_CAPTURED;
        else if (strcmp(env, "eager") == 0)
            c->exec = TRN_EXEC_EAGER;
        else
            return trn__fail(
                c, TRN_ERR_ARG,
                "trn_open: TRN_EXEC is \"%s\"; expected auto, eager "
                "or captured",
                env);
    }
    TRN_TRY(choose_flag(c, "TRN_EARLY_READ", "refuse", "allow",
                        o->refuse_early_read, &c->refuse_early_read));
    TRN_TRY(choose_flag(c, "TRN_FALLBACK", "allow", "refuse", o->allow_fallback,
                        &c->allow_fallback));
    c->plan_limit = o->plan_limit == 0 ? (uint64_t)1 << 30 : o->plan_limit;
    return TRN_OK;
}

static trn_status take_device_options(trn_context *c, const trn_options *o)
{
    if (o->device_options != NULL)
        return trn__device_options_open(c, "device_options", o->device_options);
    return trn__device_options_open(c, "TRN_DEVICE_OPTIONS",
                                    trn__env("TRN_DEVICE_OPTIONS"));
}

static trn_status open_parts(trn_context *c, const trn_options *o)
{
    if ((o->alloc == NULL) != (o->free == NULL))
        return trn__fail(c, TRN_ERR_ARG,
                         "trn_open: of the hooks alloc and free one is NULL; "
                         "expected both or none");
    if (o->batch_blocks != 1)
        return trn__fail(c, TRN_ERR_ARG,
                         "trn_open: batch_blocks is %u; expected 1",
                         (unsigned)o->batch_blocks);
    c->log = o->log;
    c->log_user = o->log_user;
    c->seed = o->seed;
    TRN_TRY(trn__limits_open(c, o));
    TRN_TRY(choose_isa(c, o));
    TRN_TRY(take_device_options(c, o));
    TRN_TRY(choose_exec(c, o));
    TRN_TRY(open_threads(c, o));
    const char *device = o->device != NULL ? o->device : trn__env("TRN_DEVICE");
    TRN_TRY(trn__device_open(c, device == NULL ? "cpu" : device));
    for (int i = 0; i < trn__n_layers; i++)
        TRN_TRY(trn__layers[i]->open(c));
    return TRN_OK;
}

trn_status trn_open(trn_context **out, const trn_options *options)
{
    trn_options o = TRN_OPTIONS_INIT;
    if (out == NULL)
        return TRN_ERR_ARG;
    bool taken = trn__struct_take(TRN__SIZED_trn_options, &o, options);
    bool hooks = o.alloc != NULL && o.free != NULL;
    trn_context *c =
        trn__context_alloc(hooks ? o.alloc : NULL, hooks ? o.free : NULL,
                           hooks ? o.memory_user : NULL);
    *out = c;
    if (c == NULL)
        return TRN_ERR_NOMEM;
    c->owned.prev = c->owned.next = &c->owned;
    c->counters.prev = c->counters.next = &c->counters;
    if (trn__memory_open(c) != TRN_OK)
        trn__fail(c, TRN_ERR_NOMEM, "trn_open: out of memory");
    else if (!taken)
        trn__struct_refuse(c, "trn_open", TRN__SIZED_trn_options, options);
    else
        open_parts(c, &o);
    c->broken = c->status != TRN_OK;
    return c->status;
}

trn_status trn_close(trn_context *c)
{
    if (c == NULL)
        return TRN_OK;
    if (c->status == TRN_OK && c->step != NULL)
        trn_sync(c); /* what is in flight may still fail */
    trn_status status = c->status;
    trn__flights_end(c);
    while (c->owned.next != &c->owned) {
        trn__owned *object = c->owned.next;
        trn__disown(object);
        object->destroy(object);
    }
    for (int i = trn__n_layers - 1; i >= 0; i--)
        trn__layers[i]->close(c); /* each accepts what did not open */
    trn__device_close(c);
    trn__threads_destroy(c->threads);
    trn__device_options_close(c);
    TRN_ASSERT(c->memory.free_lists == NULL || c->memory.blocks_in_use == 0);
    trn__memory_close(c);
    trn__context_free(c);
    return status;
}

const char *trn_device_name(const trn_context *c)
{
    return c == NULL || c->backend == NULL ? "none" : c->backend->name;
}

const char *trn_device_description(const trn_context *c)
{
    if (c == NULL || c->device == NULL)
        return "none";
    return c->backend->describe == NULL ? c->backend->name
                                        : c->backend->describe(c->device);
}

bool trn_reproducible(const trn_context *c)
{
    return c != NULL && c->device != NULL && c->backend->reproducible != NULL &&
           c->backend->reproducible(c->device);
}

const char *trn_engine_name(const trn_context *c)
{
    return c == NULL || c->engine == NULL ? "none" : c->engine;
}

int trn_thread_count(const trn_context *c)
{
    return c == NULL || c->threads == NULL ? 0 : trn__threads_count(c->threads);
}

#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)

const char *trn_version(void)
{
    return TEXT(TRN_VERSION_MAJOR) "." TEXT(TRN_VERSION_MINOR) "." TEXT(
        TRN_VERSION_PATCH);
}

const char *trn_numerics_version(void)
{
    return TRN_NUMERICS_VERSION;
}

#ifdef TRN_HAVE_ZLIB
#define HAVE_ZLIB true
#else
#define HAVE_ZLIB false
#endif
#ifdef TRN_HAVE_PROTOBUFC
#define HAVE_PROTOBUFC true
#else
#define HAVE_PROTOBUFC false
#endif
#ifdef TRN_HAVE_HDF5
#define HAVE_HDF5 true
#else
#define HAVE_HDF5 false
#endif
#ifdef TRN_HAVE_OPENBLAS
#define HAVE_OPENBLAS true
#else
#define HAVE_OPENBLAS false
#endif

const char *trn_build_part(int index, bool *present)
{
    const char *const names[] = {"openmp", "zlib", "protobuf-c", "hdf5",
                                 "openblas"};
    const bool have[] = {trn__openmp_available(), HAVE_ZLIB, HAVE_PROTOBUFC,
                         HAVE_HDF5, HAVE_OPENBLAS};
    if (index < 0 || index >= (int)(sizeof have / sizeof have[0]))
        return NULL;
    if (present != NULL)
        *present = have[index];
    return names[index];
}
