/* SPDX-License-Identifier: Apache-2.0
 *
 * The sticky error of a context, and the names of statuses and element types.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libtrn/context/context.h"

trn_status trn__fail(trn_context *c, trn_status status, const char *format, ...)
{
    if (c == NULL)
        return TRN_ERR_NOMEM;
    if (c->status != TRN_OK)
        return c->status;
    c->status = status;
    va_list args;
    va_start(args, format);
    vsnprintf(c->message, sizeof c->message, format, args);
    va_end(args);
    if (c->log != NULL)
        c->log(c->log_user, TRN_LOG_ERROR, c->message);
    return status;
}

trn_status trn__fail_memory(trn_context *c, const char *what, uint64_t bytes)
{
    char limit[64] = "";
    if (c != NULL && c->limits.memory > 0)
        snprintf(limit, sizeof limit, "; memory_limit is %llu",
                 (unsigned long long)c->limits.memory);
    return trn__fail(
        c, TRN_ERR_NOMEM,
        "%s: out of memory: %llu bytes were asked for while "
        "%llu are in use%s",
        what, (unsigned long long)bytes,
        c == NULL ? 0ULL : (unsigned long long)c->memory.bytes_in_use, limit);
}

trn_status trn__pending(const trn_context *c)
{
    return c == NULL ? TRN_ERR_NOMEM : c->status;
}

trn_status trn_errcode(const trn_context *c)
{
    return trn__pending(c);
}

const char *trn_errmsg(const trn_context *c)
{
    if (c == NULL)
        return "trn_open: out of memory: no context could be made";
    return c->status == TRN_OK ? "" : c->message;
}

void trn_clear(trn_context *c)
{
    if (c == NULL || c->broken)
        return;
    c->status = TRN_OK;
    c->message[0] = '\0';
    atomic_store(&c->limits.cancelled, false);
}

const char *trn_status_name(trn_status status)
{
    switch (status) {
#define X(name, code, text) \
    case TRN_##name:        \
        return "TRN_" #name;
        TRN_STATUS_LIST(X)
#undef X
    default:
        return "unknown";
    }
}

const char *trn_status_text(trn_status status)
{
    switch (status) {
#define X(name, code, text) \
    case TRN_##name:        \
        return text;
        TRN_STATUS_LIST(X)
#undef X
    default:
        return "unknown status";
    }
}

const char *trn_dtype_name(trn_dtype dtype)
{
    switch (dtype) {
#define X(name, code, text, bytes) \
    case TRN_##name:               \
        return text;
        TRN_DTYPE_LIST(X)
#undef X
    default:
        return "unknown";
    }
}

size_t trn_dtype_size(trn_dtype dtype)
{
    static const uint8_t sizes[] = {
#define X(name, code, text, bytes) [code] = bytes,
        TRN_DTYPE_LIST(X)
#undef X
    };
    unsigned code = (unsigned)dtype;
    return code < sizeof sizes ? sizes[code] : 0;
}

bool trn__mul_size(int64_t a, int64_t b, int64_t *out)
{
    return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, out);
}

const char *trn__format_double(double value, char *text, size_t size)
{
    trn__fp_env saved; /* the C library rounds as the host has it */
    trn__fp_enter(&saved);
    snprintf(text, size, "%.9g", value);
    trn__fp_leave(&saved);
    for (char *p = text; *p != '\0'; p++) {
        if (strchr("0123456789+-eEinfaINFA", *p) == NULL)
            *p = '.'; /* whatever the host's locale puts there */
    }
    return text;
}
