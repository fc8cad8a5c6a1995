/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of the loop device, planned failures, counters.
 *
 *   strict          holds and computes no f64 and no i64
 *   lacks=OP        does not take that op; lacks=composites: none of them
 *   compile_ms=N    each compile takes N ms longer; execute_ms=N likewise
 *   queue=1|2       executions in flight
 *   fail=ENTRY@N    call N of that entry since open fails; execute tells it
 *                   by wait.  `lost`: execute N fails and has destroyed the
 *                   inputs that it writes.  Up to 8 of them.
 *
 * Counters are of the process, so that a test can ask after the device is gone.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "loop.h"

static const char *const entry_names[TRN__LOOP_N_ENTRIES] = {
#define X(name) #name,
    TRN__LOOP_ENTRIES(X)
#undef X
};
static _Atomic uint64_t entry_calls[TRN__LOOP_N_ENTRIES];

static const char *const other_names[] = {
    "faults_planned", "faults", "completed", "failed", "cancelled",
};
enum { N_OTHER = sizeof other_names / sizeof other_names[0] };
static _Atomic uint64_t other_counts[N_OTHER];

static _Atomic uint64_t *counter(const char *name)
{
    for (int i = 0; i < TRN__LOOP_N_ENTRIES; i++) {
        if (strcmp(name, entry_names[i]) == 0)
            return &entry_calls[i];
    }
    for (int i = 0; i < N_OTHER; i++) {
        if (strcmp(name, other_names[i]) == 0)
            return &other_counts[i];
    }
    return NULL;
}

/* For tests, by dlsym: calls of an entry ("execute"), or one of other_names. */
TRN_API uint64_t trn_loop_counter(const char *name);

uint64_t trn_loop_counter(const char *name)
{
    _Atomic uint64_t *found = counter(name);
    return found == NULL ? 0 : atomic_load(found);
}

void trn__loop_count(const char *name)
{
    _Atomic uint64_t *found = counter(name);
    if (found != NULL)
        atomic_fetch_add(found, 1);
}

bool trn__loop_call(trn_device *dev, trn__loop_entry entry)
{
    uint64_t call = ++dev->calls[entry];
    atomic_fetch_add(&entry_calls[entry], 1);
    for (uint32_t i = 0; i < dev->options.n_faults; i++) {
        if (dev->options.fault[i].entry == (uint32_t)entry &&
            dev->options.fault[i].call == call) {
            trn__loop_count("faults");
            return true;
        }
    }
    return false;
}

bool trn__loop_may_fail(const trn_device *dev, trn__loop_entry entry)
{
    for (uint32_t i = 0; i < dev->options.n_faults; i++) {
        if (dev->options.fault[i].entry == (uint32_t)entry)
            return true;
    }
    return false;
}

void trn__loop_sleep(uint32_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000,
                            .tv_nsec = (long)(ms % 1000) * 1000000};
    while (ms > 0 && nanosleep(&left, &left) != 0)
        ;
}

int32_t trn__loop_fail(trn_device *dev, int32_t status, const char *text)
{
    return dev->host->fail(dev->host->host, status, text);
}

/* Digits up to `end`, at most 9 of them; false: something else. */
static bool number(const char *text, const char *end, uint32_t *out)
{
    *out = 0;
    if (text >= end || end - text > 9)
        return false;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9')
            return false;
        *out = 10 * *out + (uint32_t)(*text - '0');
    }
    return true;
}

/* "ENTRY@N" */
static bool fault(trn__loop_options *o, const char *text, const char *end)
{
    uint32_t call;
    const char *at = memchr(text, '@', (size_t)(end - text));
    if (at == NULL || o->n_faults == TRN__LOOP_MAX_FAULTS ||
        !number(at + 1, end, &call) || call == 0)
        return false;
    for (uint32_t i = 0; i < TRN__LOOP_N_ENTRIES; i++) {
        if (strlen(entry_names[i]) != (size_t)(at - text) ||
            memcmp(entry_names[i], text, (size_t)(at - text)) != 0)
            continue;
        if (i == TRN__LOOP_close || i == TRN__LOOP_free ||
            i == TRN__LOOP_release)
            return false; /* they have no way to tell */
        o->fault[o->n_faults].entry = i;
        o->fault[o->n_faults].call = call;
        o->n_faults++;
        trn__loop_count("faults_planned");
        return true;
    }
    return false;
}

/* What follows `key`, or NULL. */
static const char *after(const char *text, const char *end, const char *key)
{
    size_t n = strlen(key);
    return (size_t)(end - text) >= n && memcmp(text, key, n) == 0 ? text + n
                                                                  : NULL;
}

/* Marks the op of that name, or all composites; false: no such op. */
static bool lack(trn__loop_options *o, const char *text, const char *end)
{
    enum { PRIM, COMP };
    static const struct {
        const char *name;
        int id, kind;
    } ops[] = {
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    {#nm, id, kind},
#include "trn/ops.def"
    };
    bool all = after(text, end, "composites") == end, found = false;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        if (all ? ops[i].kind == COMP : after(text, end, ops[i].name) == end) {
            o->lacks[ops[i].id] = true;
            found = true;
        }
    }
    return found;
}

static bool option(trn__loop_options *o, const char *text, const char *end)
{
    const char *value;
    if ((value = after(text, end, "strict")) == end) {
        o->strict = true;
        return true;
    }
    if ((value = after(text, end, "lacks=")) != NULL)
        return lack(o, value, end);
    if ((value = after(text, end, "compile_ms=")) != NULL)
        return number(value, end, &o->compile_ms);
    if ((value = after(text, end, "execute_ms=")) != NULL)
        return number(value, end, &o->execute_ms);
    if ((value = after(text, end, "queue=")) != NULL)
        return number(value, end, &o->queue) &&
               (o->queue == 1 || o->queue == 2);
    if ((value = after(text, end, "fail=")) != NULL)
        return fault(o, value, end);
    return false;
}

int32_t trn__loop_parse(const trn_host_services *host, const char *text,
                        trn__loop_options *out)
{
    *out = (trn__loop_options){.queue = 2};
    while (*text != '\0') {
        const char *end = text + strcspn(text, ",");
        if (!option(out, text, end)) {
            char line[200];
            snprintf(
                line, sizeof line,
                "loop: option \"%.*s\" makes no sense; expected strict, "
                "lacks=OP, compile_ms=N, execute_ms=N, queue=1, queue=2 or "
                "fail=ENTRY@N",
                (int)(end - text > 60 ? 60 : end - text), text);
            return host->fail(host->host, TRN_ERR_ARG, line);
        }
        text = *end == ',' ? end + 1 : end;
    }
    return TRN_OK;
}
