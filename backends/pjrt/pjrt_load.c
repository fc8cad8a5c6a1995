/* SPDX-License-Identifier: Apache-2.0
 *
 * From a file to the entries of a plug-in, every one checked.
 *
 * What has been loaded is never unloaded, not even when it is refused: its
 * constructors have run, and plug-ins are known to crash when they are.
 */
#include <dlfcn.h>
#include <string.h>

#include "backends/pjrt/pjrt.h"
#include "backends/pjrt/pjrt_object.h"

/* Takes one entry of the table over.  ISO C has no cast between pointers to
 * functions and bytes, so the pointer itself is copied. */
static bool take(const pjrt_api *api, size_t slot, void *to)
{
    size_t end = offsetof(pjrt_api, slot) + (slot + 1) * sizeof(pjrt_any_fn *);
    if (api->size < end || api->slot[slot] == NULL)
        return false;
    memcpy(to, &api->slot[slot], sizeof(pjrt_any_fn *));
    return true;
}

static int32_t take_entries(const char *path, const pjrt_api *api,
                            pjrt_calls *calls, trn__pjrt_fault *fault)
{
    const char *missing = NULL;
    memset(calls, 0, sizeof *calls);
#define X(slot, name, published, needed)                              \
    if (!take(api, slot, (void *)&calls->name) && needed && !missing) \
        missing = published;
    PJRT_VOID_ENTRIES(X)
    PJRT_ENTRIES(X)
#undef X
    if (missing == NULL)
        return TRN_OK;
    return trn__pjrt_say(fault, TRN_ERR_UNSUPPORTED,
                         "pjrt: %.300s: its table (API %d.%d, %zu bytes) has "
                         "no %s; a newer plug-in is needed",
                         path, api->version.major, api->version.minor,
                         api->size, missing);
}

static int32_t take_table(const char *path, const pjrt_api *api,
                          pjrt_calls *calls, int *minor, trn__pjrt_fault *fault)
{
    if (api == NULL)
        return trn__pjrt_say(fault, TRN_ERR_DEVICE,
                             "pjrt: %.300s: " PJRT_ENTRY " gave no table",
                             path);
    if (api->size < offsetof(pjrt_api, slot))
        return trn__pjrt_say(fault, TRN_ERR_UNSUPPORTED,
                             "pjrt: %.300s: its table has %zu bytes; expected "
                             "at least %zu",
                             path, api->size, offsetof(pjrt_api, slot));
    if (api->version.major != PJRT_MAJOR)
        return trn__pjrt_say(fault, TRN_ERR_UNSUPPORTED,
                             "pjrt: %.300s: it has PJRT API %d.%d; expected "
                             "%d.x",
                             path, api->version.major, api->version.minor,
                             PJRT_MAJOR);
    *minor = api->version.minor;
    return take_entries(path, api, calls, fault);
}

int32_t trn__pjrt_load(const char *path, pjrt_calls *calls, int *minor,
                       trn__pjrt_fault *fault)
{
    static const char missing[] = "cannot open shared object file";
    pjrt_entry_fn *entry = NULL;
    const char *bad = trn__object_fault(path);
    if (bad != NULL)
        return trn__pjrt_say(fault, TRN_ERR_DEVICE,
                             "pjrt: %.300s: cannot be loaded: it %s", path,
                             bad);
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) {
        const char *words = dlerror();
        return trn__pjrt_say(fault, TRN_ERR_DEVICE,
                             "pjrt: %.300s: cannot be loaded: %.400s%s", path,
                             words == NULL ? "no reason given" : words,
                             words != NULL && strstr(words, missing) != NULL
                                 ? "; if that is a library, install it or name "
                                   "its folder in LD_LIBRARY_PATH"
                                 : "");
    }
    void *symbol = dlsym(object, PJRT_ENTRY);
    memcpy(&entry, &symbol, sizeof entry);
    if (entry == NULL)
        /* cppcheck-suppress resourceLeak */
        return trn__pjrt_say(
            fault, TRN_ERR_UNSUPPORTED,
            "pjrt: %.300s: is no PJRT plug-in: it does not export " PJRT_ENTRY
            "%s",
            path,
            dlsym(object, TRN_PLUGIN_ENTRY) != NULL
                ? "; it is a device of libtrn: \"plugin:PATH\" opens it"
                : "");
    /* cppcheck-suppress resourceLeak */
    return take_table(path, entry(), calls, minor, fault);
}
