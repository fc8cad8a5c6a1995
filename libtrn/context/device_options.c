/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of devices: "name=value;name=value", taken apart once at trn_open.
 *
 * A name is what some device knows; the core knows only which of them have a
 * variable, and notes which were asked for, to warn of the others.
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

/* Variables that stand for an option where the text does not have it. */
static const struct {
    const char *option, *variable;
} variables[] = {
    {"matmul", "TRN_MATMUL"},
    {"openblas_library", "TRN_OPENBLAS_LIBRARY"},
};
enum { N_VARIABLES = (int)(sizeof variables / sizeof variables[0]) };

static size_t bytes_of_variables(void)
{
    size_t n = 0;
    for (int i = 0; i < N_VARIABLES; i++) {
        const char *value = trn__env(variables[i].variable);
        if (value != NULL)
            n += strlen(variables[i].option) + strlen(value) + 2;
    }
    return n;
}

/* Puts them behind what the text has, which is found first: at `at` in the
 * list, from number n on.  A variable is there for every program, also for one
 * whose device does not ask. */
static void add_variables(trn_context *c, char *at, size_t n)
{
    for (int i = 0; i < N_VARIABLES; i++) {
        const char *value = trn__env(variables[i].variable);
        if (value == NULL)
            continue;
        memcpy(at, variables[i].option, strlen(variables[i].option) + 1);
        at += strlen(at) + 1;
        memcpy(at, value, strlen(value) + 1);
        at += strlen(at) + 1;
        c->options_asked[n++] = true;
    }
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
    const size_t n = text == NULL ? 0 : strlen(text);
    const size_t more = bytes_of_variables();
    size_t marks = n > 0 ? 1 : 0; /* as many as there may be options */
    size_t found = 0;
    if (n + more == 0)
        return TRN_OK;
    for (size_t i = 0; i < n; i++)
        marks += text[i] == ';';
    /* An empty name ends the list; the marks stand behind it. */
    const size_t length = n + more + 2;
    const size_t bytes = length + marks + N_VARIABLES;
    char *list = trn__alloc_zeroed(c, bytes);
    if (list == NULL)
        return trn__fail_memory(c, "trn_open: options of devices", bytes);
    if (n > 0)
        memcpy(list, text, n + 1);
    c->device_options = list;
    c->options_asked = (bool *)(list + length);
    char *at = list;
    for (; at < list + n; found++) {
        char *end = end_of(at);
        const char *why = cut(list, at, end);
        if (why != NULL)
            return refuse(c, source, text, why);
        at = end + 1;
    }
    add_variables(c, at, found);
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
