/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading a device from a shared object, and checking what it brought.
 *
 * A table may be shorter than ours (an older plug-in: the entries beyond its
 * end read as NULL) or longer (a newer one: they are not looked at).  The core
 * sees a copy of our own size, so no other place has to think of sizes.
 */
#define _GNU_SOURCE /* dladdr, realpath */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/pjrt/pjrt_object.h"
#include "libtrn/context/process.h"
#include "libtrn/dispatch/plugin.h"

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

/* The oldest version of the table that this library can drive. */
#define OLDEST_VERSION 1u
#define KNOWN_CAPS                                                         \
    (TRN_CAP_EAGER | TRN_CAP_HOST_MEMORY | TRN_CAP_GRAPH | TRN_CAP_ASYNC | \
     TRN_CAP_HOST_NODES)
#define LOOP_FILE "trn-loop.so"

/* Bytes of a table up to and with an entry. */
#define SIZE_WITH(entry) \
    (offsetof(trn_backend, entry) + sizeof(((trn_backend *)0)->entry))

typedef void any_fn(void);

/* The first entry that the table's capabilities need and that it lacks. */
static const char *missing_entry(const trn_backend *t, const char **why)
{
    const struct {
        const char *name;
        any_fn *entry;
        uint32_t cap; /* 0: every device */
    } entries[] = {
#define ENTRY(name, cap) {#name, (any_fn *)t->name, cap}
        ENTRY(open, 0),
        ENTRY(close, 0),
        ENTRY(alloc, 0),
        ENTRY(free, 0),
        ENTRY(write, 0),
        ENTRY(read, 0),
        ENTRY(run_op, TRN_CAP_EAGER),
        ENTRY(compile, TRN_CAP_GRAPH),
        ENTRY(execute, TRN_CAP_GRAPH),
        ENTRY(wait, TRN_CAP_GRAPH),
        ENTRY(release, TRN_CAP_GRAPH),
#undef ENTRY
    };
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        uint32_t cap = entries[i].cap;
        if (entries[i].entry != NULL || (cap != 0 && !(t->caps & cap)))
            continue;
        *why = cap == 0               ? "every device"
               : cap == TRN_CAP_EAGER ? "a device with run_op (EAGER)"
                                      : "a device for graphs (GRAPH)";
        return entries[i].name;
    }
    return NULL;
}

/* Checks the plug-in's table and copies it into *table. */
static trn_status take_table(trn_context *c, const char *path,
                             const trn_backend *from, trn_backend *table)
{
    const char *why = NULL;
    if (from == NULL)
        return trn__fail(c, TRN_ERR_FORMAT,
                         "trn_open: plug-in %s: " TRN_PLUGIN_ENTRY
                         " gave no table for version %u of the host",
                         path, TRN_BACKEND_VERSION);
    if (from->size < SIZE_WITH(read))
        return trn__fail(c, TRN_ERR_FORMAT,
                         "trn_open: plug-in %s: its table has %u bytes; "
                         "expected at least %u",
                         path, (unsigned)from->size, (unsigned)SIZE_WITH(read));
    if (from->version > TRN_BACKEND_VERSION || from->version < OLDEST_VERSION)
        return trn__fail(c, TRN_ERR_UNSUPPORTED,
                         "trn_open: plug-in %s: its table has version %u, %s "
                         "than this library; expected %u to %u",
                         path, (unsigned)from->version,
                         from->version < OLDEST_VERSION ? "older" : "newer",
                         OLDEST_VERSION, TRN_BACKEND_VERSION);
    size_t size = from->size < sizeof *table ? from->size : sizeof *table;
    memset(table, 0, sizeof *table);
    memcpy(table, from, size);
    table->size = (uint32_t)sizeof *table;
    if (table->name == NULL || table->name[0] == '\0')
        return trn__fail(c, TRN_ERR_FORMAT,
                         "trn_open: plug-in %s: its device has no name", path);
    if (!(table->caps & (TRN_CAP_EAGER | TRN_CAP_GRAPH)))
        return trn__fail(c, TRN_ERR_FORMAT,
                         "trn_open: plug-in %s: its capabilities are 0x%x; "
                         "expected EAGER, GRAPH or both",
                         path, (unsigned)table->caps);
    const char *missing = missing_entry(table, &why);
    if (missing != NULL)
        return trn__fail(c, TRN_ERR_FORMAT,
                         "trn_open: plug-in %s: its table lacks the entry %s; "
                         "expected of %s",
                         path, missing, why);
    return TRN_OK;
}

/* With the lock of the process held.  What is refused stays loaded, too: its
 * code has run, and nobody knows what it left behind. */
static const trn__plugin *load(trn_context *c, const char *path)
{
    trn_backend table = {.size = 0};
    trn_plugin_fn entry = NULL;
    const char *bad = trn__object_fault(path);
    if (bad != NULL) {
        trn__fail(c, TRN_ERR_FORMAT,
                  "trn_open: plug-in %s: is not a shared object that can be "
                  "loaded: it %s",
                  path, bad);
        return NULL;
    }
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) {
        const char *text = dlerror();
        trn__fail(c, TRN_ERR_FORMAT,
                  "trn_open: plug-in %s: is not a shared object that can be "
                  "loaded: %.400s",
                  path, text == NULL ? "no reason given" : text);
        return NULL;
    }
    void *symbol = dlsym(object, TRN_PLUGIN_ENTRY);
    memcpy(&entry, &symbol, sizeof entry); /* ISO C has no such cast */
    if (entry == NULL) {
        trn__fail(c, TRN_ERR_FORMAT,
                  "trn_open: plug-in %s: does not export " TRN_PLUGIN_ENTRY,
                  path);
        /* cppcheck-suppress resourceLeak */
        return NULL;
    }
    if (take_table(c, path, entry(TRN_BACKEND_VERSION), &table) != TRN_OK)
        /* cppcheck-suppress resourceLeak */
        return NULL;
    uint32_t unknown = table.caps & ~KNOWN_CAPS;
    table.caps &= KNOWN_CAPS;
    const trn__plugin *p = trn__process_add(path, &table, unknown);
    if (p == NULL)
        trn__fail_memory(c, "trn_open: plug-in", sizeof *p);
    return p;
}

static const trn_backend *plugin_at(trn_context *c, const char *given)
{
    char path[PATH_MAX], line[160];
    if (realpath(given, path) == NULL) {
        trn__fail(c, TRN_ERR_IO, "trn_open: plug-in %.400s: %s", given,
                  errno == ENOENT ? "no such file" : "cannot be reached");
        return NULL;
    }
    trn__process_lock();
    const trn__plugin *p = trn__process_find(path);
    if (p == NULL)
        p = load(c, path);
    trn__process_unlock();
    if (p == NULL)
        return NULL;
    if (p->unknown != 0 && c->log != NULL) {
        snprintf(line, sizeof line,
                 "device %.80s: capabilities 0x%x are not known here and "
                 "ignored",
                 p->table.name, (unsigned)p->unknown);
        c->log(c->log_user, TRN_LOG_INFO, line);
    }
    return &p->table;
}

/* "<folder of file>/[../]trn-loop.so"; is there such a file? */
static bool beside(const char *file, const char *up, char *path)
{
    const char *slash = strrchr(file, '/');
    if (slash == NULL)
        return false;
    int n = snprintf(path, PATH_MAX, "%.*s/%s" LOOP_FILE, (int)(slash - file),
                     file, up);
    return n > 0 && n < PATH_MAX && access(path, R_OK) == 0;
}

/* Next to the library, to the program, or one folder up from there. */
static bool find_loop(char *path)
{
    Dl_info info;
    char program[PATH_MAX];
    const void *here = &trn__n_layers; /* any object of ours */
    if (dladdr(here, &info) != 0 && info.dli_fname != NULL &&
        (beside(info.dli_fname, "", path) ||
         beside(info.dli_fname, "../", path)))
        return true;
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0)
        return false;
    program[n] = '\0';
    return beside(program, "", path) || beside(program, "../", path);
}

static const trn_backend *loop_plugin(trn_context *c)
{
    char path[PATH_MAX];
    const char *given = trn__env("TRN_LOOP_PATH");
    if (given != NULL)
        return plugin_at(c, given);
    if (find_loop(path))
        return plugin_at(c, path);
    trn__fail(c, TRN_ERR_UNSUPPORTED,
              "trn_open: device loop: found no " LOOP_FILE
              " next to the library or the program; TRN_LOOP_PATH may name it");
    return NULL;
}

bool trn__plugin_named(trn_context *c, const char *name,
                       const trn_backend **backend, const char **argument)
{
    char path[PATH_MAX];
    if (strncmp(name, "loop", 4) == 0 && (name[4] == '\0' || name[4] == ':')) {
        *backend = loop_plugin(c);
        *argument = name[4] == ':' ? name + 5 : "";
        return true;
    }
    if (strncmp(name, "plugin:", 7) != 0)
        return false;
    const char *begin = name + 7, *end = strchr(begin, ':');
    size_t length = end == NULL ? strlen(begin) : (size_t)(end - begin);
    *argument = end == NULL ? "" : end + 1;
    *backend = NULL;
    if (length == 0 || length >= sizeof path) {
        trn__fail(c, TRN_ERR_ARG,
                  "trn_open: device \"%.80s\" names no file; expected "
                  "plugin:/path/device.so[:argument]",
                  name);
        return true;
    }
    memcpy(path, begin, length);
    path[length] = '\0';
    *backend = plugin_at(c, path);
    return true;
}
