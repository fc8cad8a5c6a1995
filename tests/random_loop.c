/* SPDX-License-Identifier: Apache-2.0
 *
 * Random loops on several contexts: eager first, which leaves what the others
 * must have after each step, to the bit (NaNs by place).
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "random_program.h"

#define N_TRACKED (N_CODES - CODE_PARAMETER + 24)
#define N_NUMBERS 7
#define MAX_RUNS (RANDOM_MAX_ROUNDS * RANDOM_MAX_STEPS)

typedef struct image {
    bool there;
    trn_dtype dtype;
    size_t n, element;
    unsigned char *bytes;
} image;

/* What a step of the eager run left. */
typedef struct after {
    bool skipped; /* a failed step before it took it along */
    trn_status status;
    char message[200];
    int failed_at;
    uint64_t log[4 * RANDOM_MAX_OPS];
    image tensor[N_TRACKED];
    uint64_t number[N_NUMBERS];
} after;

typedef struct runner {
    random_world w;
    const char *name;
    after *reference; /* of all steps */
    random_report *report;
    uint64_t seen[MAX_RUNS];
    int n_seen;
    bool behind; /* a failed step is not known yet */
} runner;

TRN_PRINTF(3, 4)
static bool says(runner *r, int at, const char *format, ...)
{
    char *text = r->report->text;
    size_t size = sizeof r->report->text;
    int n = snprintf(text, size, "%s, step %d (program %d): ", r->name, at,
                     r->w.which);
    va_list args;
    va_start(args, format);
    vsnprintf(text + n, size - (size_t)n, format, args);
    va_end(args);
    return false;
}

/* ---- images ---- */

static trn_tensor *tracked(random_world *w, int i)
{
    static const char *const states[] = {"m", "v", "momentum"};
    int code = CODE_PARAMETER + i;
    if (code >= CODE_GRAD && code < N_CODES)
        return trn_grad_of(w->tensor[CODE_PARAMETER + code - CODE_GRAD]);
    if (code < N_CODES)
        return w->tensor[code];
    i = code - N_CODES;
    return trn_optim_state(w->optim[i % 2], i / 2 % 4, states[i / 8]);
}

static void take(trn_tensor *t, image *out)
{
    *out = (image){.there = t != NULL};
    if (t == NULL)
        return;
    out->dtype = trn_tensor_dtype(t);
    out->element = trn_dtype_size(out->dtype);
    out->n = (size_t)trn_tensor_numel(t);
    out->bytes = calloc(out->n + 1, out->element);
    trn_tensor_read(t, out->bytes, out->n * out->element);
}

static bool is_nan(trn_dtype dtype, const unsigned char *p)
{
    uint64_t x = 0, infinity = 0;
    memcpy(&x, p, trn_dtype_size(dtype));
    if (dtype == TRN_F64)
        infinity = UINT64_C(0x7ff0000000000000), x &= UINT64_MAX >> 1;
    else if (dtype == TRN_F32)
        infinity = 0x7f800000u, x &= 0x7fffffffu;
    else if (dtype == TRN_BF16)
        infinity = 0x7f80u, x &= 0x7fffu;
    else if (dtype == TRN_F16)
        infinity = 0x7c00u, x &= 0x7fffu;
    else
        return false;
    return x > infinity;
}

/* The first element that differs; -1: none. */
static int64_t differs(const image *a, const image *b)
{
    if (a->there != b->there || a->dtype != b->dtype || a->n != b->n)
        return 0;
    for (size_t i = 0; i < a->n; i++) {
        const unsigned char *x = a->bytes + i * a->element;
        const unsigned char *y = b->bytes + i * a->element;
        if (memcmp(x, y, a->element) != 0 &&
            !(is_nan(a->dtype, x) && is_nan(a->dtype, y)))
            return (int64_t)i;
    }
    return -1;
}

static void take_numbers(random_world *w, uint64_t *out)
{
    double loss = trn_step_loss(w->c);
    out[0] = trn_generator_draws(w->generator[0]);
    out[1] = trn_generator_draws(w->generator[1]);
    for (int i = 0; i < 3; i++)
        out[2 + i] = (uint64_t)trn_optim_steps(w->optim[i]);
    out[5] = (uint64_t)trn_step_index(w->c);
    memcpy(&out[6], &loss, sizeof loss);
    if (loss != loss)
        out[6] = 77;
}

static void describe(const image *t, int64_t i, char *text, size_t size)
{
    float x = 0;
    if (!t->there || t->n == 0) {
        snprintf(text, size, "%s", t->there ? "empty" : "none");
        return;
    }
    if (t->dtype == TRN_F32)
        memcpy(&x, t->bytes + (size_t)i * 4, 4);
    snprintf(text, size, "%s[%d] %.9g", trn_dtype_name(t->dtype), (int)t->n,
             (double)x);
}

static bool same_state(runner *r, int at)
{
    const after *want = &r->reference[at];
    uint64_t number[N_NUMBERS];
    bool same = true;
    for (int i = 0; i < N_TRACKED && same; i++) {
        image now;
        take(tracked(&r->w, i), &now);
        int64_t j = differs(&want->tensor[i], &now);
        if (j >= 0) {
            char a[64], b[64];
            describe(&want->tensor[i], j, a, sizeof a);
            describe(&now, j, b, sizeof b);
            same = says(r, at, "tensor %d, element %d: %s, expected %s",
                        CODE_PARAMETER + i, (int)j, b, a);
        }
        free(now.bytes);
    }
    take_numbers(&r->w, number);
    for (int i = 0; i < N_NUMBERS && same; i++) {
        if (number[i] != want->number[i])
            same = says(r, at, "number %d: %llu, expected %llu", i,
                        (unsigned long long)number[i],
                        (unsigned long long)want->number[i]);
    }
    if (same && trn_errcode(r->w.c) != TRN_OK)
        same = says(r, at, "reading: %s", trn_errmsg(r->w.c));
    return same;
}

static void free_reference(after *reference, int n)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < N_TRACKED; j++)
            free(reference[i].tensor[j].bytes);
    }
    free(reference);
}

/* ---- steps ---- */

/* Errors that a device finds, perhaps later than the host. */
static bool is_found(trn_status status)
{
    return status == TRN_ERR_INDEX || status == TRN_ERR_VALUE ||
           status == TRN_ERR_NUMERIC;
}

static const random_when *when_of(const random_case *k, int at)
{
    return &k->step[at % k->n_steps];
}

static trn_status one_step(random_world *w, int at)
{
    const random_when *when = when_of(w->k, at);
    const random_program *p = &w->k->program[when->program];
    w->salt = random_mix(w->k->seed, (uint64_t)at);
    if (p->outside) {
        random_run(w, p, when->program);
        return trn_errcode(w->c);
    }
    trn_step_begin(w->c);
    random_run(w, p, when->program);
    return trn_step_end(w->c);
}

static void flip(random_world *w, int at)
{
    uint8_t i = when_of(w->k, at)->freeze;
    if (i == 255)
        return;
    trn_tensor *t = w->tensor[CODE_PARAMETER + i];
    trn_set_requires_grad(t, !trn_requires_grad(t));
}

/* Does the failing step `at` take the next one along on slow devices? */
static bool goes_on(const random_case *k, const after *reference, int at, int n)
{
    return at + 1 < n && when_of(k, at)->late &&
           is_found(reference[at].status) &&
           !k->program[when_of(k, at)->program].outside &&
           !k->program[when_of(k, at + 1)->program].outside;
}

static bool run_eager(runner *r, int n)
{
    random_world *w = &r->w;
    for (int at = 0; at < n; at++) {
        after *a = &r->reference[at];
        flip(w, at);
        a->skipped = at > 0 && !r->reference[at - 1].skipped &&
                     goes_on(w->k, r->reference, at - 1, n);
        if (!a->skipped) {
            a->status = one_step(w, at);
            snprintf(a->message, sizeof a->message, "%s", trn_errmsg(w->c));
            a->failed_at = w->failed_at;
            memcpy(a->log, w->log, sizeof a->log);
            trn_clear(w->c);
            w->had_errors = w->had_errors || a->status != TRN_OK;
            random_settle_kept(w, a->status == TRN_OK, false);
            r->report->steps++;
            r->report->failed_steps += a->status != TRN_OK;
        }
        for (int i = 0; i < N_TRACKED; i++)
            take(tracked(w, i), &a->tensor[i]);
        take_numbers(w, a->number);
        if (trn_errcode(w->c) != TRN_OK)
            return says(r, at, "reading: %s", trn_errmsg(w->c));
    }
    return true;
}

static bool same_log(runner *r, int at)
{
    const after *want = &r->reference[at];
    random_world *w = &r->w;
    int end = want->failed_at < 0 ? w->p->n : want->failed_at;
    for (int i = 0; i < end; i++) {
        if (w->failed_at >= 0 && i >= w->failed_at)
            return says(r, at, "instruction %d failed: %s", w->failed_at,
                        trn_errmsg(w->c));
        for (int j = 0; j < 3; j++) {
            if (w->log[j * RANDOM_MAX_OPS + i] !=
                want->log[j * RANDOM_MAX_OPS + i])
                return says(r, at, "instruction %d: %s", i,
                            j == 0 ? "other facts (shape, type, wants "
                                     "gradient, version)"
                                   : "another value was read");
        }
    }
    return true;
}

static bool same_status(runner *r, int at, trn_status status)
{
    const after *want = &r->reference[at];
    if (is_found(want->status) && status != TRN_OK)
        return true;
    if (status != want->status)
        return says(r, at, "%s (%s), expected %s (%s)", trn_status_name(status),
                    trn_errmsg(r->w.c), trn_status_name(want->status),
                    want->message);
    bool told = !r->w.had_errors && /* versions and records may be others */
                strstr(want->message, ": the record of") == NULL;
    if (told && strncmp(trn_errmsg(r->w.c), want->message,
                        sizeof want->message - 1) != 0)
        return says(r, at, "\"%s\", expected \"%s\"", trn_errmsg(r->w.c),
                    want->message);
    return true;
}

static trn_capture_info counters(const random_world *w)
{
    trn_capture_info info = TRN_CAPTURE_INFO_INIT;
    trn_capture(w->c, &info);
    return info;
}

/* What was done before compiles nothing. */
static bool compiles_once(runner *r, int at, uint64_t before)
{
    random_world *w = &r->w;
    trn_capture_info now = counters(w);
    if (w->p->outside)
        return true;
    for (int i = 0; i < r->n_seen; i++) {
        if (r->seen[i] == w->signature)
            return now.compilations == before ||
                   says(r, at, "compiled again: %s", trn_capture_reason(w->c));
    }
    r->seen[r->n_seen++] = w->signature;
    return true;
}

/* A failed step and the one behind it are taken back together. */
static bool fail_late(runner *r, int at)
{
    random_world *w = &r->w;
    if (trn_errcode(w->c) == TRN_OK)
        trn_sync(w->c);
    if (trn_errcode(w->c) == TRN_OK)
        return says(r, at, "no error, expected %s",
                    r->reference[at - 1].message);
    for (int i = 0; i < 2; i++) {
        trn_clear(w->c);
        trn_sync(w->c);
    }
    trn_clear(w->c);
    w->had_errors = true;
    random_settled(w, false);
    return same_state(r, at);
}

static bool follow(runner *r, int at, int n)
{
    random_world *w = &r->w;
    const after *want = &r->reference[at];
    bool looks = !w->async || when_of(w->k, at)->read || at + 1 == n ||
                 w->k->program[when_of(w->k, at)->program].outside ||
                 want->status != TRN_OK;
    uint64_t compiled = counters(w).compilations;
    flip(w, at);
    if (want->skipped && !r->behind)
        return same_state(r, at);
    r->behind = false;
    if (w->async && !want->skipped && goes_on(w->k, r->reference, at, n))
        random_remember(w);
    trn_status status = one_step(w, at);
    if (want->skipped) {
        random_settle_kept(w, status == TRN_OK, true);
        return fail_late(r, at);
    }
    if (w->async && status == TRN_OK && goes_on(w->k, r->reference, at, n)) {
        random_settle_kept(w, true, true);
        r->behind = true;
        return true;
    }
    if (looks && status == TRN_OK)
        status = trn_sync(w->c);
    bool good = same_log(r, at) && same_status(r, at, status);
    trn_clear(w->c);
    w->had_errors = w->had_errors || status != TRN_OK;
    if (good && status == TRN_OK)
        good = compiles_once(r, at, compiled);
    random_settle_kept(w, status == TRN_OK, !looks);
    return good && (!looks || same_state(r, at));
}

static bool run_other(runner *r, const random_case *k, const char *device,
                      bool async, int n)
{
    bool good = random_open(&r->w, k, device, TRN_EXEC_CAPTURED);
    r->w.async = async;
    if (!good)
        says(r, 0, "open: %s", trn_errmsg(r->w.c));
    for (int at = 0; good && at < n; at++)
        good = follow(r, at, n);
    trn_capture_info info = counters(&r->w);
    r->report->matches += (int64_t)info.matches;
    r->report->compilations += (int64_t)info.compilations;
    r->report->early_reads += (int64_t)info.early_reads;
    if (!random_close(&r->w) && good)
        good = says(r, n, "memory was not given back");
    return good;
}

bool random_agrees(const random_case *k, random_report *report)
{
    int n = k->n_steps * k->n_rounds;
    after *reference = calloc((size_t)n, sizeof *reference);
    memset(report, 0, sizeof *report);
    runner r = {.name = "eager", .reference = reference, .report = report};
    bool good = random_open(&r.w, k, "cpu", TRN_EXEC_EAGER);
    good = good ? run_eager(&r, n) : says(&r, 0, "%s", trn_errmsg(r.w.c));
    if (!random_close(&r.w) && good)
        good = says(&r, n, "memory was not given back");
    static const struct {
        const char *name, *device;
        bool async;
    } others[] = {
        {"captured", "cpu", false},
        {"loop", "loop:queue=1", false},
        {"loop, 2 in flight", "loop:queue=2", true},
        {"loop, slow", "loop:queue=2,execute_ms=1", true},
    };
    for (int i = 0; good && i < (k->delays ? 4 : 3); i++) {
        r = (runner){
            .name = others[i].name, .reference = reference, .report = report};
        good = run_other(&r, k, others[i].device, others[i].async, n);
    }
    free_reference(reference, n);
    return good;
}
