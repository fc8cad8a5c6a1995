/* SPDX-License-Identifier: Apache-2.0
 *
 * `trn info`: what this build is and what would run here.
 */
#include <stdio.h>

#ifdef TRN_HAVE_JANSSON
#include <jansson.h>
#endif

#include "tools/tool.h"

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

/* One optional part or CPU feature after the other; NULL past the last. */
typedef const char *list_fn(int index, bool *present);

/* Parts of the library, then those of this program alone. */
static const char *part_at(int index, bool *present)
{
    int n = 0;
    while (trn_build_part(n, NULL) != NULL)
        n++;
    if (index < n)
        return trn_build_part(index, present);
#ifdef TRN_HAVE_JANSSON
    *present = true;
#else
    *present = false;
#endif
    return index == n ? "jansson" : NULL;
}

/* The compiler's question to the CPU takes nothing but a literal. */
static const char *feature_at(int index, bool *present)
{
    *present = false;
#if defined(__x86_64__)
    __builtin_cpu_init();
    switch (index) {
#define FEATURE(i, text)                              \
    case i:                                           \
        *present = __builtin_cpu_supports(text) != 0; \
        return text;
        FEATURE(0, "sse4.2")
        FEATURE(1, "avx")
        FEATURE(2, "fma")
        FEATURE(3, "avx2")
        FEATURE(4, "avx512f")
        FEATURE(5, "avx512bw")
        FEATURE(6, "avx512bf16")
#undef FEATURE
    default:
        break;
    }
#else
    (void)index;
#endif
    return NULL;
}

static void print_list(const char *title, list_fn *at, bool wanted)
{
    bool present = false, any = false;
    const char *name;
    printf("%-17s", title);
    for (int i = 0; (name = at(i, &present)) != NULL; i++) {
        if (present == wanted) {
            printf(" %s", name);
            any = true;
        }
    }
    printf("%s\n", any ? "" : " none");
}

static void print_text(const trn_context *c)
{
    printf("%-17s %s\n", "libtrn", trn_version());
    printf("%-17s %s\n", "numerics version", trn_numerics_version());
    printf("%-17s %s\n", "device", trn_device_name(c));
    printf("%-17s %s\n", "instruction set", trn_device_description(c));
    printf("%-17s %s\n", "reproducible", trn_reproducible(c) ? "yes" : "no");
    printf("%-17s %s\n", "engine", trn_engine_name(c));
    printf("%-17s %d\n", "threads", trn_thread_count(c));
    print_list("parts present", part_at, true);
    print_list("parts absent", part_at, false);
    print_list("CPU features", feature_at, true);
    printf("%-17s %s\n", "compiler", COMPILER);
}

#ifdef TRN_HAVE_JANSSON
static json_t *json_list(list_fn *at)
{
    json_t *object = json_object();
    bool present = false;
    const char *name;
    for (int i = 0; (name = at(i, &present)) != NULL; i++)
        json_object_set_new(object, name, json_boolean(present));
    return object;
}

static int print_json(const trn_context *c)
{
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:s, s:b, s:s, s:i, s:o, s:o, s:s}", "version",
        trn_version(), "numerics_version", trn_numerics_version(), "device",
        trn_device_name(c), "instruction_set", trn_device_description(c),
        "reproducible", trn_reproducible(c), "engine", trn_engine_name(c),
        "threads", trn_thread_count(c), "parts", json_list(part_at),
        "cpu_features", json_list(feature_at), "compiler", COMPILER);
    int bad = root == NULL || json_dumpf(root, stdout, JSON_INDENT(2)) != 0;
    json_decref(root);
    if (bad) {
        fprintf(stderr, "trn info: the JSON could not be written\n");
        return TOOL_FAILED;
    }
    printf("\n");
    return TOOL_OK;
}
#else
static int print_json(const trn_context *c)
{
    (void)c;
    return tool_json_available("info");
}
#endif

int tool_info(int n_args, char **args)
{
    bool json = false;
    const tool_flag flags[] = {{"--json", &json, NULL}};
    int status = tool_flags("info", n_args, args, 1, flags);
    if (status == TOOL_OK && json)
        status = tool_json_available("info");
    if (status != TOOL_OK)
        return status;
    trn_options o = TRN_OPTIONS_INIT;
    o.log = tool_log;
    trn_context *c = NULL;
    if (trn_open(&c, &o) != TRN_OK)
        status = tool_error("info", c);
    else if (json)
        status = print_json(c);
    else
        print_text(c);
    trn_close(c);
    return status;
}
