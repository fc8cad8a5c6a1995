/* SPDX-License-Identifier: Apache-2.0
 *
 * The pjrt device's table: opening, closing, and what it takes.
 *
 * Everything that the host's texts can have wrong is found before the plug-in
 * is called for the first time.
 */
#define _GNU_SOURCE /* realpath */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/pjrt/pjrt.h"

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

extern const trn_backend trn__pjrt_backend;

enum { STANDARD_SECONDS = 120 };

/* What the device string and the options say. */
typedef struct request {
    char path[PATH_MAX]; /* without links */
    size_t ordinal;
    const char *create_text;
    trn__pjrt_options create, compile;
    int seconds;
} request;

/* Is there ":digits" at the end, and no file of the whole name?  Its digits. */
static const char *find_ordinal(const char *argument)
{
    const char *colon = strrchr(argument, ':');
    if (colon == NULL || access(argument, F_OK) == 0)
        return NULL;
    size_t digits = strspn(colon + 1, "0123456789");
    bool all = colon[1 + digits] == '\0';
    return all && digits >= 1 && digits <= 6 ? colon + 1 : NULL;
}

/* Is what is before the last colon a file?  Then the rest was meant to be an
 * ordinal. */
static bool bad_ordinal(char *path)
{
    char *colon = strrchr(path, ':');
    if (colon == NULL || colon == path)
        return false;
    *colon = '\0';
    bool there = access(path, F_OK) == 0;
    *colon = ':';
    return there;
}

static int32_t read_argument(const char *argument, request *r,
                             trn__pjrt_fault *fault)
{
    char path[PATH_MAX];
    const char *digits = find_ordinal(argument);
    size_t n =
        digits == NULL ? strlen(argument) : (size_t)(digits - argument) - 1;
    r->ordinal = 0;
    for (; digits != NULL && *digits != '\0'; digits++)
        r->ordinal = r->ordinal * 10 + (size_t)(*digits - '0');
    if (n == 0)
        return trn__pjrt_say(fault, TRN_ERR_ARG,
                             "pjrt: no plug-in is named; expected "
                             "pjrt:/path/plugin.so[:ordinal]");
    if (n >= sizeof path)
        return trn__pjrt_say(fault, TRN_ERR_ARG,
                             "pjrt: the path \"%.60s...\" has %zu bytes; "
                             "expected fewer than %zu",
                             argument, n, sizeof path);
    memcpy(path, argument, n);
    path[n] = '\0';
    if (realpath(path, r->path) != NULL)
        return TRN_OK;
    if (errno != ENOENT)
        return trn__pjrt_say(fault, TRN_ERR_DEVICE,
                             "pjrt: %.400s: cannot be reached: %s", path,
                             errno == ELOOP     ? "links in a circle"
                             : errno == ENOTDIR ? "a part is not a folder"
                             : errno == EACCES  ? "permission denied"
                                                : "a fault of the system");
    return trn__pjrt_say(
        fault, TRN_ERR_DEVICE, "pjrt: %.400s: no such file%s", path,
        bad_ordinal(path) ? "; what follows its last colon is no ordinal; "
                            "expected a number of 1 to 6 digits"
                          : "");
}

static const char *option(const trn_host_services *host, const char *name)
{
    return host->option == NULL ? NULL : host->option(host->host, name);
}

static int32_t read_request(const trn_host_services *host, const char *argument,
                            request *r, trn__pjrt_fault *fault)
{
    static const char create[] = "pjrt_create_options";
    static const char compile[] = "pjrt_compile_options";
    static const char timeout[] = "pjrt_timeout";
    r->create_text = option(host, create);
    int32_t status = trn__pjrt_parse(r->create_text, create, &r->create, fault);
    if (status == TRN_OK)
        status =
            trn__pjrt_parse(option(host, compile), compile, &r->compile, fault);
    if (status == TRN_OK)
        status = trn__pjrt_seconds(option(host, timeout), timeout,
                                   STANDARD_SECONDS, &r->seconds, fault);
    if (status == TRN_OK)
        status = read_argument(argument, r, fault);
    return status;
}

/* How graphs are lowered: for XLA, or as the option says. */
static int32_t choose_profile(trn_device *dev)
{
    const char *name = option(dev->host, "hlo_profile");
    dev->profile = trn__hlo_profile_named(name == NULL ? "xla" : name);
    if (!trn__hlo_available())
        return trn__pjrt_say(&dev->fault, TRN_ERR_UNSUPPORTED,
                             "pjrt: this build has no lowering to HLO; it was "
                             "made without protobuf-c");
    if (dev->profile == NULL)
        return trn__pjrt_say(&dev->fault, TRN_ERR_ARG,
                             "pjrt: hlo_profile is \"%.40s\"; expected xla or "
                             "neuron",
                             name);
    return TRN_OK;
}

/* The platform as a string; the rest of `name` is cut off. */
static int32_t find_platform(trn_device *dev, char *name, size_t room)
{
    pjrt_platform_name_args args =
        PJRT_INIT(pjrt_platform_name_args, text_size);
    args.client = dev->client;
    int32_t status = trn__pjrt_check(dev->api, dev->api->platform_name(&args),
                                     "asking for the platform", &dev->fault);
    if (status == TRN_OK)
        snprintf(name, room, "%.*s", (int)args.text_size, args.text);
    return status;
}

static int32_t find_device(trn_device *dev, const request *r, size_t *n)
{
    pjrt_client_devices_args args =
        PJRT_INIT(pjrt_client_devices_args, n_devices);
    args.client = dev->client;
    int32_t status = trn__pjrt_check(dev->api, dev->api->client_devices(&args),
                                     "asking for devices", &dev->fault);
    if (status != TRN_OK)
        return status;
    *n = args.n_devices;
    if (*n == 0)
        return trn__pjrt_say(&dev->fault, TRN_ERR_DEVICE,
                             "pjrt: %.300s: it has no device", r->path);
    if (r->ordinal >= *n)
        return trn__pjrt_say(&dev->fault, TRN_ERR_DEVICE,
                             "pjrt: %.300s: it has %zu devices, 0 to %zu; "
                             "there is no device %zu",
                             r->path, *n, *n - 1, r->ordinal);
    dev->device = args.devices[r->ordinal];
    /* A program runs on device 0, unless it is compiled to be told. */
    dev->execute_on = r->ordinal == 0 ? NULL : dev->device;
    return TRN_OK;
}

static int32_t open_client(trn_device *dev, const request *r)
{
    char platform[48] = "";
    size_t n = 0;
    trn__pjrt_plugin *plugin;
    int32_t status = trn__pjrt_plugin_at(r->path, &plugin, &dev->fault);
    if (status != TRN_OK)
        return status;
    dev->api = trn__pjrt_calls_of(plugin);
    status = trn__pjrt_client_open(plugin, &r->create, r->create_text,
                                   r->seconds, &dev->client, &dev->fault);
    if (status == TRN_OK)
        status = find_platform(dev, platform, sizeof platform);
    if (status == TRN_OK)
        status = find_device(dev, r, &n);
    const uint32_t form = dev->execute_on != NULL ? TRN__PJRT_PORTABLE : 0;
    for (uint32_t i = 0; i < 2 && status == TRN_OK; i++)
        status = trn__pjrt_encode(dev->host, platform, &r->compile,
                                  form | (i == 1 ? TRN__PJRT_PLAIN : 0),
                                  &dev->compile_options[i], &dev->fault);
    snprintf(dev->description, sizeof dev->description,
             "PJRT 0.%d, platform %s, device %zu of %zu",
             trn__pjrt_minor_of(plugin), platform, r->ordinal, n);
    return status;
}

/* Nothing of the plug-in is in flight afterwards; it stays loaded. */
static void close_device(trn_device *dev)
{
    const trn_host_services *host = dev->host;
    trn__pjrt_drain(dev, NULL);
    while (dev->programs != NULL)
        trn__pjrt_release(dev, dev->programs);
    while (dev->buffers != NULL)
        trn__pjrt_free(dev, dev->buffers);
    trn__pjrt_client_close(dev->client);
    for (int i = 0; i < 2; i++)
        host->dealloc(host->host, dev->compile_options[i].bytes);
    host->dealloc(host->host, dev);
}

static void pjrt_close(trn_device *dev)
{
    if (dev != NULL)
        close_device(dev);
}

static int32_t open_device(trn_device *dev, const char *argument)
{
    request *r = dev->host->alloc(dev->host->host, sizeof *r);
    if (r == NULL)
        return trn__pjrt_say(&dev->fault, TRN_ERR_NOMEM, "pjrt: no memory");
    int32_t status = read_request(dev->host, argument, r, &dev->fault);
    if (status == TRN_OK)
        status = choose_profile(dev);
    if (status == TRN_OK)
        status = open_client(dev, r);
    dev->host->dealloc(dev->host->host, r);
    return status;
}

static int32_t pjrt_open(const trn_host_services *host, const char *argument,
                         trn_device **device)
{
    *device = NULL;
    trn_device *dev = host->alloc(host->host, sizeof *dev);
    if (dev == NULL)
        return host->fail(host->host, TRN_ERR_NOMEM, "pjrt: no memory");
    memset(dev, 0, sizeof *dev);
    dev->host = host;
    int32_t status = open_device(dev, argument);
    if (status == TRN_OK) {
        *device = dev;
        return TRN_OK;
    }
    trn__pjrt_raise(dev);
    close_device(dev);
    return status;
}

static bool pjrt_supports(trn_device *dev, const trn_op_call *call)
{
    return trn__hlo_supports(dev->profile, call);
}

static const char *pjrt_describe(trn_device *dev)
{
    return dev->description;
}

#define ALL_DTYPES                                      \
    (TRN_DTYPE_BIT(TRN_F64) | TRN_DTYPE_BIT(TRN_F32) |  \
     TRN_DTYPE_BIT(TRN_BF16) | TRN_DTYPE_BIT(TRN_F16) | \
     TRN_DTYPE_BIT(TRN_I64) | TRN_DTYPE_BIT(TRN_I32) |  \
     TRN_DTYPE_BIT(TRN_U32) | TRN_DTYPE_BIT(TRN_U8) | TRN_DTYPE_BIT(TRN_BOOL))

const trn_backend trn__pjrt_backend = {
    .size = sizeof(trn_backend),
    .version = TRN_BACKEND_VERSION,
    .name = "pjrt",
    .caps = TRN_CAP_GRAPH | TRN_CAP_ASYNC,
    .stores = ALL_DTYPES,
    .computes = ALL_DTYPES,
    /* REQUIRED */
    .open = pjrt_open,
    .close = pjrt_close,
    .alloc = trn__pjrt_alloc,
    .free = trn__pjrt_free,
    .write = trn__pjrt_write,
    .read = trn__pjrt_read,
    /* GRAPH */
    .compile = trn__pjrt_compile,
    .execute = trn__pjrt_execute,
    .wait = trn__pjrt_wait,
    .release = trn__pjrt_release,
    /* OPTIONAL */
    .supports = pjrt_supports,
    .describe = pjrt_describe,
    .program_bytes = trn__pjrt_program_bytes,
    .alloc_like = trn__pjrt_alloc_like,
    .op_limit = TRN_OP_KNOWN,
};
