/* SPDX-License-Identifier: Apache-2.0
 *
 * A PJRT plug-in for tests: stands before a real one, counts calls and objects,
 * and fails on request; or is broken itself.
 *
 *   TRN_PJRT_SHIM_REAL    the real plug-in.  Without it every call fails, but
 *                         for those that need none.
 *   TRN_PJRT_SHIM_FAIL    NAME@N: call N of that entry fails.  An entry that
 *                         gives something back, or waits, does so and fails
 *                         then.  "lost@N": execution N takes its donated
 *                         inputs, gives nothing and fails.
 *   TRN_PJRT_SHIM_MODE    null, major, short, missing: a broken table; hang:
 *                         making a client takes until the mode changes; fake:
 *                         clients without a real plug-in
 *
 * The trn_shim_ functions do the same for a program that has loaded it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "trn/types.h"
#include "../../backends/pjrt/pjrt_api.h"
#include "pjrt_shim_fake.h"
#include "pjrt_shim_keep.h"

enum {
#define X(slot, name, published, needed) AT_##name,
    PJRT_VOID_ENTRIES(X) PJRT_ENTRIES(X)
#undef X
        AT_lost, /* no entry, but a way in which execute fails */
    N_ENTRIES
};

static const char *const names[N_ENTRIES] = {
#define X(slot, name, published, needed) [AT_##name] = published,
    PJRT_VOID_ENTRIES(X) PJRT_ENTRIES(X)
#undef X
        [AT_lost] = "lost",
};

enum { CLIENTS, LOADED, EXECUTABLES, BUFFERS, EVENTS, ERRORS, N_KINDS };
static const char *const kinds[N_KINDS] = {"clients", "loaded", "executables",
                                           "buffers", "events", "errors"};

enum { OK, HANG, FAKE, NULL_TABLE, OTHER_MAJOR, SHORT, MISSING, N_MODES };
static const char *const modes[N_MODES] = {
    [OK] = "",
    [HANG] = "hang",
    [FAKE] = "fake",
    [NULL_TABLE] = "null",
    [OTHER_MAJOR] = "major",
    [SHORT] = "short",
    [MISSING] = "missing",
};

static const pjrt_api *real;
static pjrt_calls forward;
static atomic_int mode;
static _Atomic uint64_t calls[N_ENTRIES];
static _Atomic int64_t live[N_KINDS];
static int fail_entry = -1, also_entry = -1; /* the latter at every call */
static uint64_t fail_call, n_failed;
static uint32_t fail_code = PJRT_INTERNAL;
static const char as_asked[] = "failed as asked for";
static const char *fail_words = as_asked;

/* ---- errors of its own ---- */

struct own_error {
    uint32_t code;
    char text[128];
};

enum { MAX_OWN = 64 };
static struct own_error own[MAX_OWN];
static int n_own;

static bool is_own(const pjrt_error *e)
{
    const char *at = (const char *)e;
    return at >= (const char *)own && at < (const char *)(own + MAX_OWN);
}

static pjrt_error *own_error(uint32_t code, const char *name, const char *what)
{
    struct own_error *e = &own[n_own++ % MAX_OWN];
    e->code = code;
    snprintf(e->text, sizeof e->text, "shim: %s: %s", name, what);
    live[ERRORS]++;
    return (pjrt_error *)(void *)e;
}

static void shim_error_destroy(pjrt_error_destroy_args *a)
{
    calls[AT_error_destroy]++;
    live[ERRORS]--;
    if (!is_own(a->error))
        forward.error_destroy(a);
}

static void shim_error_message(pjrt_error_message_args *a)
{
    calls[AT_error_message]++;
    if (!is_own(a->error)) {
        forward.error_message(a);
        return;
    }
    const struct own_error *e = (const void *)a->error;
    a->text = e->text;
    a->text_size = strlen(e->text);
}

/* ---- what calls do to the number of live objects ---- */

static int64_t results_of(pjrt_loaded *loaded)
{
    pjrt_get_executable_args get =
        PJRT_INIT(pjrt_get_executable_args, executable);
    get.loaded = loaded;
    if (forward.get_executable(&get) != NULL)
        return 0;
    pjrt_n_outputs_args n = PJRT_INIT(pjrt_n_outputs_args, n_outputs);
    n.executable = get.executable;
    if (forward.n_outputs(&n) != NULL)
        n.n_outputs = 0;
    pjrt_executable_destroy_args end =
        PJRT_INIT(pjrt_executable_destroy_args, executable);
    end.executable = get.executable;
    forward.executable_destroy(&end);
    return (int64_t)n.n_outputs;
}

static void count_objects(int entry, const void *args)
{
    switch (entry) {
    case AT_client_create:
        live[CLIENTS]++;
        break;
    case AT_client_destroy:
        live[CLIENTS]--;
        break;
    case AT_compile:
        live[LOADED]++;
        break;
    case AT_loaded_destroy:
        live[LOADED]--;
        break;
    case AT_get_executable:
        live[EXECUTABLES]++;
        break;
    case AT_executable_destroy:
        live[EXECUTABLES]--;
        break;
    case AT_upload:
        live[BUFFERS]++;
        live[EVENTS] += ((const pjrt_upload_args *)args)->done != NULL;
        break;
    case AT_buffer_destroy:
        live[BUFFERS]--;
        break;
    case AT_download:
        live[EVENTS] += ((const pjrt_download_args *)args)->done != NULL;
        break;
    case AT_event_destroy:
        live[EVENTS]--;
        break;
    case AT_execute:
        live[BUFFERS] += results_of(((const pjrt_execute_args *)args)->loaded);
        live[EVENTS] += ((const pjrt_execute_args *)args)->done != NULL;
        break;
    default:
        break;
    }
}

/* Gives back what an execution made. */
static void take_back(const pjrt_execute_args *a)
{
    int64_t n = results_of(a->loaded);
    for (int64_t i = 0; i < n; i++) {
        pjrt_buffer_destroy_args end =
            PJRT_INIT(pjrt_buffer_destroy_args, buffer);
        end.buffer = a->results[0][i];
        forward.buffer_destroy(&end);
        a->results[0][i] = NULL;
    }
    pjrt_event_await_args wait = PJRT_INIT(pjrt_event_await_args, event);
    wait.event = a->done[0];
    forward.event_await(&wait);
    forward.event_destroy(&wait);
    a->done[0] = NULL;
}

/* ---- every call ---- */

static bool counted(int entry)
{
    bool fails = ++calls[entry] == fail_call && entry == fail_entry;
    if (fails)
        n_failed++;
    return fails || entry == also_entry;
}

/* Such a call does what it shall and fails then. */
static bool does_it_first(int entry)
{
    switch (entry) {
    case AT_client_destroy:
    case AT_loaded_destroy:
    case AT_executable_destroy:
    case AT_buffer_destroy:
    case AT_event_destroy:
    case AT_event_await:
        return true;
    default:
        return false;
    }
}

static void hang(void)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    while (mode == HANG)
        nanosleep(&pause, NULL);
}

/* The call before it is forwarded; an error: it is not. */
static pjrt_error *before(int entry, bool fails, bool is_there)
{
    if (entry == AT_client_create)
        hang();
    if (fails && !does_it_first(entry))
        return own_error(fail_code, names[entry], fail_words);
    return is_there && (real != NULL || mode == FAKE || mode == HANG)
               ? NULL
               : own_error(PJRT_UNAVAILABLE, names[entry], "no real plug-in");
}

static pjrt_error *after(int entry, bool fails, pjrt_error *e, void *args)
{
    if (e != NULL) {
        live[ERRORS]++;
        return e;
    }
    if (entry == AT_execute && counted(AT_lost)) {
        take_back(args);
        return own_error(fail_code, names[entry], "lost as asked for");
    }
    count_objects(entry, args);
    return fails ? own_error(fail_code, names[entry], fail_words) : NULL;
}

/* Those that can be answered without a real plug-in. */
static bool answered(int entry, void *args)
{
    if (entry == AT_initialize)
        return real == NULL;
    if (entry != AT_error_code)
        return false;
    pjrt_error_code_args *a = args;
    if (!is_own(a->error))
        return false;
    a->code = ((const struct own_error *)(const void *)a->error)->code;
    return true;
}

#define X(slot, name, published, needed)                                \
    static pjrt_error *shim_##name(pjrt_##name##_args *a)               \
    {                                                                   \
        bool fails = counted(AT_##name);                                \
        if (!fails && answered(AT_##name, a))                           \
            return NULL;                                                \
        pjrt_error *e = before(AT_##name, fails, forward.name != NULL); \
        if (e != NULL)                                                  \
            return e;                                                   \
        return after(AT_##name, fails, forward.name(a), a);             \
    }
PJRT_ENTRIES(X)
#undef X

/* ---- the table ---- */

enum { N_SLOTS = 128, SHORT_SLOTS = 30, MISSING_SLOT = 55 };
static max_align_t table[(sizeof(pjrt_api) + N_SLOTS * sizeof(pjrt_any_fn *)) /
                             sizeof(max_align_t) +
                         1];

static void load_real(void)
{
    const char *path = getenv("TRN_PJRT_SHIM_REAL");
    pjrt_entry_fn *entry = NULL;
    if (real != NULL || path == NULL || path[0] == '\0')
        return;
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL)
        return;
    void *symbol = dlsym(object, PJRT_ENTRY);
    memcpy(&entry, &symbol, sizeof entry);
    real = entry == NULL ? NULL : entry();
    /* It stays loaded until the program ends. */
    /* cppcheck-suppress resourceLeak */
}

static void fill_table(pjrt_api *api)
{
    memset(table, 0, sizeof table);
    if (real != NULL) {
        size_t room =
            offsetof(pjrt_api, slot) + N_SLOTS * sizeof(pjrt_any_fn *);
        memcpy(api, real, real->size < room ? real->size : room);
        api->size = real->size < room ? real->size : room;
    } else {
        api->size = offsetof(pjrt_api, slot) + N_SLOTS * sizeof(pjrt_any_fn *);
        api->version.minor = 90;
    }
#define X(slot_, name, published, needed)                                  \
    memcpy((void *)&forward.name, &api->slot[slot_], sizeof forward.name); \
    api->slot[slot_] = (pjrt_any_fn *)shim_##name;
    PJRT_VOID_ENTRIES(X)
    PJRT_ENTRIES(X)
#undef X
    if (real == NULL)
        fake_fill(&forward);
    else
        keep_fill(&forward);
}

/* ---- what tests call ---- */

TRN_API bool trn_shim_mode(const char *name);
TRN_API bool trn_shim_fail(const char *entry, uint64_t call, uint32_t code);
TRN_API bool trn_shim_also(const char *entry);
TRN_API void trn_shim_words(const char *words);
TRN_API void trn_shim_keep(bool keep);
TRN_API uint64_t trn_shim_failed(void);
TRN_API uint64_t trn_shim_calls(const char *entry);
TRN_API int64_t trn_shim_live(const char **kind);
TRN_API const char *trn_shim_entry(int i);
TRN_API const pjrt_api *GetPjrtApi(void);

/* "": none; false: there is no such mode. */
bool trn_shim_mode(const char *name)
{
    for (int i = 0; i < N_MODES; i++) {
        if (strcmp(name, modes[i]) == 0) {
            mode = i;
            return true;
        }
    }
    return false;
}

static int entry_named(const char *entry)
{
    for (int i = 0; i < N_ENTRIES; i++) {
        if (strcmp(entry, names[i]) == 0)
            return i;
    }
    return -1;
}

/* From now on, with all counts at 0; NULL: none fails.  code 0: INTERNAL. */
bool trn_shim_fail(const char *entry, uint64_t call, uint32_t code)
{
    for (int i = 0; i < N_ENTRIES; i++)
        calls[i] = 0;
    n_failed = 0;
    fail_words = as_asked;
    fail_entry = entry == NULL ? -1 : entry_named(entry);
    also_entry = -1;
    fail_call = call;
    fail_code = code == 0 ? PJRT_INTERNAL : code;
    return entry == NULL || fail_entry >= 0;
}

/* Until the next trn_shim_fail, every call of that entry fails, too. */
bool trn_shim_also(const char *entry)
{
    also_entry = entry_named(entry);
    return also_entry >= 0;
}

/* Until then, it fails with these words; they must last. */
void trn_shim_words(const char *words)
{
    fail_words = words;
}

/* From now on the client and programs are kept; false: they are given back. */
void trn_shim_keep(bool keep)
{
    keep_set(keep);
}

/* How many calls have been made to fail. */
uint64_t trn_shim_failed(void)
{
    return n_failed;
}

uint64_t trn_shim_calls(const char *entry)
{
    int i = entry_named(entry);
    return i < 0 ? 0 : calls[i];
}

/* Objects that have not been given back, and a kind that they are of. */
int64_t trn_shim_live(const char **kind)
{
    int64_t n = 0;
    *kind = "";
    for (int i = 0; i < N_KINDS; i++) {
        n += live[i] < 0 ? -live[i] : live[i];
        if (live[i] != 0)
            *kind = kinds[i];
    }
    return n;
}

/* The entries that may be made to fail, then NULL. */
const char *trn_shim_entry(int i)
{
    return i + AT_error_code < N_ENTRIES ? names[i + AT_error_code] : NULL;
}

static void read_environment(void)
{
    char name[80];
    unsigned long long call = 0;
    const char *text = getenv("TRN_PJRT_SHIM_MODE");
    if (text != NULL)
        trn_shim_mode(text);
    text = getenv("TRN_PJRT_SHIM_FAIL");
    if (text != NULL && sscanf(text, "%79[^@]@%llu", name, &call) == 2)
        trn_shim_fail(name, call, 0);
}

const pjrt_api *GetPjrtApi(void)
{
    pjrt_api *api = (pjrt_api *)(void *)table;
    read_environment();
    load_real();
    fill_table(api);
    if (mode == OTHER_MAJOR)
        api->version.major = 1;
    if (mode == SHORT)
        api->size =
            offsetof(pjrt_api, slot) + SHORT_SLOTS * sizeof(pjrt_any_fn *);
    if (mode == MISSING)
        api->slot[MISSING_SLOT] = NULL;
    return mode == NULL_TABLE ? NULL : api;
}
