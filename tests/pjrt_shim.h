/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of the pjrt device: the plug-in of tests/plugins/pjrt_shim.c, and
 * contexts on it.
 */
#ifndef TRN_TESTS_PJRT_SHIM_H
#define TRN_TESTS_PJRT_SHIM_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/pjrt/pjrt.h"
#include "tests/captured.h"
#include "tests/plugin_path.h"

/* The functions of the shim. */
typedef struct pjrt_shim {
    bool (*mode)(const char *name);
    bool (*fail_at)(const char *entry, uint64_t call, uint32_t code);
    bool (*also)(const char *entry);
    void (*words)(const char *words);
    void (*keep)(bool keep);
    uint64_t (*failed)(void);
    uint64_t (*calls)(const char *entry);
    int64_t (*live)(const char **kind);
    const char *(*entry)(int i);
} pjrt_shim;

static pjrt_shim shim;

static inline const char *pjrt_device_at(const char *path)
{
    static char device[4600];
    snprintf(device, sizeof device, "pjrt:%s", path);
    return device;
}

static inline const char *shim_device(void)
{
    return pjrt_device_at(plugin_path("pjrt_shim.so"));
}

/* Group set-up.  TRN_PJRT_SHIM_REAL must have been set before, if it shall. */
static inline int shim_load(void **state)
{
    (void)state;
    void *object = dlopen(plugin_path("pjrt_shim.so"), RTLD_NOW | RTLD_LOCAL);
    if (object == NULL)
        return -1;
    const struct {
        const char *name;
        void *to;
    } functions[] = {
        {"trn_shim_mode", (void *)&shim.mode},
        {"trn_shim_fail", (void *)&shim.fail_at},
        {"trn_shim_also", (void *)&shim.also},
        {"trn_shim_words", (void *)&shim.words},
        {"trn_shim_keep", (void *)&shim.keep},
        {"trn_shim_failed", (void *)&shim.failed},
        {"trn_shim_calls", (void *)&shim.calls},
        {"trn_shim_live", (void *)&shim.live},
        {"trn_shim_entry", (void *)&shim.entry},
    };
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *symbol = dlsym(object, functions[i].name);
        if (symbol == NULL)
            return -1;
        memcpy(functions[i].to, &symbol, sizeof symbol);
    }
    /* It stays loaded until the program ends. */
    /* cppcheck-suppress resourceLeak */
    return 0;
}

/* Every object of the plug-in has been given back. */
static inline void shim_is_empty(const char *when)
{
    const char *kind;
    int64_t n = shim.live(&kind);
    CHECK(n == 0, "%s: %d objects are left, of %s\n", when, (int)n, kind);
}

#endif
