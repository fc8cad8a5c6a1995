/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of devices: "name=value;name=value", taken apart once at trn_open.
 *
 * A name is what some device knows; the core knows none of them, but notes
 * which were asked for, to warn of the others.
 */
#include <stdio.h>
#include <string.h>

#include "libtrn/context/context.h"

static bool is_name(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
           (ch >= '0' && ch <= '9') || ch == '_' || ch == '.' || ch == '-';
}

static trn_status refuse(trn_context *c, const char *source, const char *text,
                         const char *why)
{
    return trn__fail(c, TRN_ERR_ARG,
                     "trn_open: %s is \"%.200s\": %s; expected "
                     "name=value;name=value",
                     source, text, why);
}

/* The option that begins at `at` ends where? */
static char *end_of(char *at)
{
    return at + strcspn(at, ";");
}

/* Cuts one option, [at, end), into name and value. */
static const char *cut(const char *known, char *at, char *end)
{
    char *sign = at;
    while (is_name(*sign))
        sign++;
    if (*sign != '=' || sign == at)
        return at == end ? "an option is empty"
                         : "an option does not begin with a name and '='";
    *sign = *end = '\0';
    for (const char *p = known; p < at; p += strlen(p) + 1) {
        if (strcmp(p, at) == 0)
            return "an option comes twice";
        p += strlen(p) + 1; /* its value */
    }
    return NULL;
}

trn_status trn__device_options_open(trn_context *c, const char *source,
                                    const char *text)
{
    size_t n = text == NULL ? 0 : strlen(text);
    if (n == 0)
        return TRN_OK;
    size_t marks = 1; /* as many as there may be options */
    for (size_t i = 0; i < n; i++)
        marks += text[i] == ';';
    char *list =
        trn__alloc_zeroed(c, n + 2 + marks); /* an empty name ends it */
    if (list == NULL)
        return trn__fail_memory(c, "trn_open: options of devices",
                                n + 2 + marks);
    memcpy(list, text, n);
    c->device_options = list;
    c->options_asked = (bool *)(list + n + 2);
    for (char *at = list; at < list + n;) {
        char *end = end_of(at);
        const char *why = cut(list, at, end);
        if (why != NULL)
            return refuse(c, source, text, why);
        at = end + 1;
    }
    return TRN_OK;
}

void trn__device_options_close(trn_context *c)
{
    trn__free(c, c->device_options);
    c->device_options = NULL;
}

const char *trn__device_option(trn_context *c, const char *name)
{
    const char *p = c->device_options;
    for (size_t i = 0; p != NULL && *p != '\0'; i++) {
        const char *value = p + strlen(p) + 1;
        if (strcmp(p, name) == 0) {
            c->options_asked[i] = true;
            return value;
        }
        p = value + strlen(value) + 1;
    }
    return NULL;
}

void trn__device_options_unasked(trn_context *c, const char *device)
{
    char line[200];
    const char *p = c->device_options;
    for (size_t i = 0; c->log != NULL && p != NULL && *p != '\0'; i++) {
        const char *value = p + strlen(p) + 1;
        if (!c->options_asked[i]) {
            snprintf(line, sizeof line,
                     "trn_open: device %.60s has not asked for the option "
                     "\"%.60s\"",
                     device, p);
            c->log(c->log_user, TRN_LOG_WARNING, line);
        }
        p = value + strlen(value) + 1;
    }
}
