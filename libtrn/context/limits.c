/* SPDX-License-Identifier: Apache-2.0
 *
 * What may end the work of a context early: trn_cancel, a deadline, the
 * progress hook.
 *
 * Calls ask before they begin, at points where an error loses nothing: an open
 * step then has not happened.  Nothing asks while a step is being committed.
 */
#include <math.h>
#include <time.h>

#include "libtrn/context/context.h"
#include "trn/step.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void watch(trn__limits *l)
{
    l->watched = l->progress != NULL || l->deadline < (double)INFINITY;
}

static trn_status set_deadline(trn_context *c, double seconds)
{
    if (!(seconds >= 0.0))
        return trn__fail(c, TRN_ERR_ARG,
                         "trn_set_deadline: the deadline is negative or NaN; "
                         "expected seconds, 0 for none");
    c->limits.deadline = seconds == 0.0 ? (double)INFINITY : now() + seconds;
    watch(&c->limits);
    return TRN_OK;
}

static trn_status open_limits(trn_context *c, const trn_options *o)
{
    trn__limits *l = &c->limits;
    l->memory = o->memory_limit;
    l->opened = l->told = now();
    l->progress = o->progress;
    l->user = o->progress_user;
    l->interval = o->progress_interval == 0.0 ? 0.1 : o->progress_interval;
    if (!(l->interval > 0.0))
        return trn__fail(c, TRN_ERR_ARG,
                         "trn_open: progress_interval is negative or NaN; "
                         "expected seconds");
    return set_deadline(c, o->deadline);
}

trn_status trn__limits_open(trn_context *c, const trn_options *o)
{
    trn__fp_env saved; /* the host may have inexact numbers as traps */
    trn__fp_enter(&saved);
    trn_status status = open_limits(c, o);
    trn__fp_leave(&saved);
    return status;
}

trn_status trn_set_deadline(trn_context *c, double seconds)
{
    trn__fp_env saved;
    if (c == NULL)
        return TRN_ERR_NOMEM;
    trn__fp_enter(&saved);
    trn_status status = set_deadline(c, seconds);
    trn__fp_leave(&saved);
    return status;
}

void trn_cancel(trn_context *c)
{
    if (c != NULL)
        atomic_store(&c->limits.cancelled, true);
}

/* Asks the hook, in the host's own modes; its calls of functions that ask again
 * find it busy. */
static bool told_to_go_on(trn_context *c, double at, const trn__fp_env *host)
{
    trn__fp_env ours;
    trn__limits *l = &c->limits;
    trn_memory_info memory = TRN_MEMORY_INFO_INIT;
    trn_memory(c, &memory);
    const trn_progress p = {
        .size = (uint32_t)sizeof p,
        .steps = trn_step_index(c),
        .seconds = at - l->opened,
        .bytes_in_use = memory.bytes_in_use,
    };
    l->told = at;
    l->telling = true;
    trn__fp_leave(host);
    const bool go_on = l->progress(l->user, &p);
    trn__fp_enter(&ours);
    l->telling = false;
    return go_on;
}

static trn_status check(trn_context *c, const trn__fp_env *host)
{
    trn__limits *l = &c->limits;
    const double at = l->watched ? now() : 0.0;
    if (l->progress != NULL && at - l->told >= l->interval &&
        !told_to_go_on(c, at, host))
        atomic_store(&l->cancelled, true);
    if (atomic_exchange(&l->cancelled, false))
        return trn__fail(c, TRN_ERR_CANCELLED,
                         "cancelled by trn_cancel or the progress hook");
    if (l->watched && at >= l->deadline) {
        char text[32];
        return trn__fail(
            c, TRN_ERR_DEADLINE,
            "the deadline passed %s s ago; expected "
            "trn_set_deadline() before further work",
            trn__format_double(at - l->deadline, text, sizeof text));
    }
    return TRN_OK;
}

trn_status trn__limits_check(trn_context *c)
{
    trn__fp_env saved;
    if (c->limits.telling)
        return TRN_OK;
    trn__fp_enter(&saved);
    trn_status status = check(c, &saved);
    trn__fp_leave(&saved);
    return status;
}
