/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors of a plug-in as statuses and sentences of ours.
 *
 * The plug-in's own words are carried on, cut to what fits, on one line; where
 * experience tells what they mean to a user, the next step to take follows.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backends/pjrt/pjrt.h"

int32_t trn__pjrt_say(trn__pjrt_fault *fault, int32_t status, const char *form,
                      ...)
{
    va_list args;
    va_start(args, form);
    vsnprintf(fault->text, sizeof fault->text, form, args);
    va_end(args);
    fault->status = status;
    return status;
}

static int32_t status_of(uint32_t code)
{
    switch (code) {
    case PJRT_NO_ROOM:
        return TRN_ERR_NOMEM;
    case PJRT_UNIMPLEMENTED:
        return TRN_ERR_UNSUPPORTED;
    default: /* the rest tells how the device failed, not what to do */
        return TRN_ERR_DEVICE;
    }
}

/* What a user can do about it, by a part of the plug-in's words. */
static const char *advice(const char *words)
{
    static const struct {
        const char *part, *advice;
    } known[] = {
        {"No visible GPU", "is there a GPU, and its driver, on this machine?"},
        {"No such compile option",
         "pjrt_compile_options must name options of this plug-in"},
        {"built with a later version",
         "the plug-in and libtrn know different versions of PJRT"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strstr(words, known[i].part) != NULL)
            return known[i].advice;
    }
    return NULL;
}

/* Copies at most n bytes, without control characters or white space at the
 * end. */
static void take_words(char *to, size_t room, const char *from, size_t n)
{
    n = n < room - 1 ? n : room - 1;
    for (size_t i = 0; i < n; i++)
        to[i] = (unsigned char)from[i] < ' ' ? ' ' : from[i];
    while (n > 0 && to[n - 1] == ' ')
        n--;
    to[n] = '\0';
}

static void destroy(const pjrt_calls *api, pjrt_error *error)
{
    pjrt_error_destroy_args args = PJRT_INIT(pjrt_error_destroy_args, error);
    args.error = error;
    api->error_destroy(&args);
}

void trn__pjrt_ignore(const pjrt_calls *api, pjrt_error *error)
{
    if (error != NULL)
        destroy(api, error);
}

static uint32_t code_of(const pjrt_calls *api, const pjrt_error *error)
{
    pjrt_error_code_args args = PJRT_INIT(pjrt_error_code_args, code);
    args.error = error;
    pjrt_error *second = api->error_code(&args);
    if (second == NULL)
        return args.code;
    destroy(api, second);
    return PJRT_UNKNOWN;
}

int32_t trn__pjrt_check(const pjrt_calls *api, pjrt_error *error,
                        const char *what, trn__pjrt_fault *fault)
{
    char words[480] = "no reason given";
    if (error == NULL)
        return TRN_OK;
    pjrt_error_message_args args =
        PJRT_INIT(pjrt_error_message_args, text_size);
    args.error = error;
    api->error_message(&args);
    if (args.text != NULL && args.text_size > 0)
        take_words(words, sizeof words, args.text, args.text_size);
    uint32_t code = code_of(api, error);
    destroy(api, error);
    const char *next = advice(words);
    const size_t n = strlen(words);
    if (next != NULL && n > 0 && words[n - 1] == '.')
        words[n - 1] = '\0'; /* the sentence goes on */
    return trn__pjrt_say(fault, status_of(code), "pjrt: %s: %s%s%s", what,
                         words, next == NULL ? "" : "; ",
                         next == NULL ? "" : next);
}

int32_t trn__pjrt_raise(trn_device *dev)
{
    return dev->host->fail(dev->host->host, dev->fault.status, dev->fault.text);
}
