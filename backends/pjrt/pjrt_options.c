/* SPDX-License-Identifier: Apache-2.0
 *
 * Options for a plug-in, from a text: "name=value,name=value".
 *
 * PJRT's options have types, the text has none: true and false are bool, whole
 * numbers int64, other numbers float, the rest strings.  A value in double
 * quotes is a string whatever it looks like, and may hold commas.
 */
#include <string.h>

#include "backends/pjrt/pjrt.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           c == '_' || c == '.' || c == '-';
}

static bool is_text(const trn__pjrt_option *o, const char *text)
{
    return strlen(text) == o->n_text && memcmp(o->text, text, o->n_text) == 0;
}

/* An int64 and nothing else; false: none, or too large. */
static bool to_integer(const char *s, size_t n, int64_t *out)
{
    bool minus = n > 0 && s[0] == '-';
    size_t i = minus || (n > 0 && s[0] == '+');
    int64_t v = 0;
    if (i == n)
        return false;
    for (; i < n; i++) {
        if (!is_digit(s[i]) || v > (INT64_MAX - (s[i] - '0')) / 10)
            return false;
        v = v * 10 + (s[i] - '0');
    }
    *out = minus ? -v : v;
    return true;
}

static double times_ten(double v, int64_t power)
{
    for (; power > 0; power--)
        v *= 10.0;
    for (; power < 0; power++)
        v /= 10.0;
    return v;
}

/* A number with a point or an exponent, to the precision of a float or better;
 * the C library's own reading depends on the locale. */
static bool to_real(const char *s, size_t n, double *out)
{
    bool minus = n > 0 && s[0] == '-', point = false;
    int64_t power = 0, exponent = 0;
    double v = 0.0;
    size_t i = minus || (n > 0 && s[0] == '+'), digits = 0;
    for (; i < n && (is_digit(s[i]) || (s[i] == '.' && !point)); i++) {
        if (s[i] == '.') {
            point = true;
            continue;
        }
        v = v * 10.0 + (s[i] - '0');
        power -= point;
        digits++;
    }
    if (digits == 0 || digits > 300)
        return false;
    if (i < n && ((s[i] != 'e' && s[i] != 'E') ||
                  !to_integer(s + i + 1, n - i - 1, &exponent) ||
                  exponent > 400 || exponent < -400))
        return false;
    v = times_ten(v, power + exponent);
    *out = minus ? -v : v;
    return true;
}

static void guess(trn__pjrt_option *o)
{
    if (is_text(o, "true") || is_text(o, "false")) {
        o->kind = PJRT_BOOL;
        o->truth = o->text[0] == 't';
    } else if (to_integer(o->text, o->n_text, &o->integer)) {
        o->kind = PJRT_INT64;
    } else if (to_real(o->text, o->n_text, &o->real)) {
        o->kind = PJRT_FLOAT;
    } else {
        o->kind = PJRT_STRING;
    }
}

/* One option at s; gives what follows it, NULL: it is not well formed. */
static const char *take(const char *s, trn__pjrt_option *o)
{
    *o = (trn__pjrt_option){.name = s};
    while (is_name(*s))
        s++;
    o->n_name = (size_t)(s - o->name);
    if (o->n_name == 0 || *s != '=')
        return NULL;
    if (s[1] == '"') {
        const char *end = strchr(s + 2, '"');
        if (end == NULL)
            return NULL;
        o->kind = PJRT_STRING;
        o->text = s + 2;
        o->n_text = (size_t)(end - o->text);
        return end + 1;
    }
    o->text = s + 1;
    o->n_text = strcspn(o->text, ",");
    if (o->n_text == 0)
        return NULL;
    guess(o);
    return o->text + o->n_text;
}

int32_t trn__pjrt_parse(const char *text, const char *option,
                        trn__pjrt_options *out, trn__pjrt_fault *fault)
{
    const char *s = text;
    out->n = 0;
    while (s != NULL && *s != '\0') {
        if (out->n == TRN__PJRT_MAX_OPTIONS)
            return trn__pjrt_say(fault, TRN_ERR_ARG,
                                 "pjrt: %s: more than %d options", option,
                                 TRN__PJRT_MAX_OPTIONS);
        const char *end = take(s, &out->list[out->n++]);
        if (end == NULL || (*end != ',' && *end != '\0') ||
            (*end == ',' && end[1] == '\0'))
            return trn__pjrt_say(fault, TRN_ERR_ARG,
                                 "pjrt: %s: no option at \"%.60s\"; expected "
                                 "name=value,name=value",
                                 option, s);
        s = *end == ',' ? end + 1 : end;
    }
    return TRN_OK;
}

const trn__pjrt_option *trn__pjrt_find(const trn__pjrt_options *o,
                                       const char *name)
{
    for (int32_t i = o->n - 1; i >= 0; i--) {
        if (strlen(name) == o->list[i].n_name &&
            memcmp(name, o->list[i].name, o->list[i].n_name) == 0)
            return &o->list[i];
    }
    return NULL;
}

int32_t trn__pjrt_seconds(const char *text, const char *option, int standard,
                          int *out, trn__pjrt_fault *fault)
{
    int64_t v = standard;
    if (text != NULL &&
        (!to_integer(text, strlen(text), &v) || v < 1 || v > 86400))
        return trn__pjrt_say(fault, TRN_ERR_ARG,
                             "pjrt: %s is \"%.40s\"; expected 1 to 86400 "
                             "seconds",
                             option, text);
    *out = (int)v;
    return TRN_OK;
}
