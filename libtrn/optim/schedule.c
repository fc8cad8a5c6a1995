/* SPDX-License-Identifier: Apache-2.0
 *
 * Learning-rate schedules: a factor as a function of the number of updates,
 * without state of their own, in host doubles of our own mathematics.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/scalar.h"
#include "libtrn/optim/optim.h"

#define PI 3.141592653589793

struct trn_schedule {
    trn__owned owned; /* first */
    trn_context *c;
    double (*factor)(const trn_schedule *s, int64_t t);
    int64_t n_steps;
    double final_factor;
    const trn_schedule *after;
};

static void schedule_destroy(trn__owned *self)
{
    trn_schedule *s = (trn_schedule *)self;
    trn__free(s->c, s);
}

static trn_schedule *schedule_new(trn_context *c, const char *what,
                                  double (*factor)(const trn_schedule *s,
                                                   int64_t t))
{
    if (trn__pending(c) != TRN_OK)
        return NULL;
    trn_schedule *s = trn__alloc_zeroed(c, sizeof *s);
    if (s == NULL) {
        trn__fail_memory(c, what, sizeof *s);
        return NULL;
    }
    s->c = c;
    s->factor = factor;
    trn__own(c, &s->owned, schedule_destroy);
    return s;
}

static trn_status check_steps(trn_context *c, const char *what, int64_t n)
{
    TRN_TRY(trn__pending(c));
    if (n < 1)
        return trn__fail(c, TRN_ERR_ARG,
                         "%s: n_steps is %lld; expected 1 or more", what,
                         (long long)n);
    return TRN_OK;
}

static double constant_factor(const trn_schedule *s, int64_t t)
{
    (void)s;
    (void)t;
    return 1.0;
}

trn_schedule *trn_schedule_constant(trn_context *c)
{
    return schedule_new(c, "trn_schedule_constant", constant_factor);
}

static double cosine_factor(const trn_schedule *s, int64_t t)
{
    if (t >= s->n_steps)
        return s->final_factor;
    double angle = PI * (double)t / (double)s->n_steps;
    double fall = 0.5 * (1.0 + trn__cos(angle));
    return s->final_factor + (1.0 - s->final_factor) * fall;
}

trn_schedule *trn_schedule_cosine(trn_context *c, int64_t n_steps,
                                  double final_factor)
{
    const char *what = "trn_schedule_cosine";
    char text[32];
    if (check_steps(c, what, n_steps) != TRN_OK)
        return NULL;
    if (!trn__fp_within(final_factor, 0.0, 1.0)) {
        trn__fail(c, TRN_ERR_ARG, "%s: final_factor is %s; expected 0 to 1",
                  what, trn__format_double(final_factor, text, sizeof text));
        return NULL;
    }
    trn_schedule *s = schedule_new(c, what, cosine_factor);
    if (s != NULL) {
        s->n_steps = n_steps;
        s->final_factor = final_factor;
    }
    return s;
}

static double warmup_factor(const trn_schedule *s, int64_t t)
{
    if (t < s->n_steps)
        return (double)(t + 1) / (double)s->n_steps;
    return s->after->factor(s->after, t - s->n_steps);
}

trn_schedule *trn_schedule_warmup(trn_context *c, int64_t n_steps,
                                  trn_schedule *after)
{
    const char *what = "trn_schedule_warmup";
    if (check_steps(c, what, n_steps) != TRN_OK)
        return NULL;
    if (after == NULL) {
        trn__fail(c, TRN_ERR_ARG, "%s: after is NULL; expected a schedule",
                  what);
        return NULL;
    }
    if (trn__schedule_check(c, what, after) != TRN_OK)
        return NULL;
    trn_schedule *s = schedule_new(c, what, warmup_factor);
    if (s != NULL) {
        s->n_steps = n_steps;
        s->after = after;
    }
    return s;
}

trn_status trn__schedule_check(trn_context *c, const char *what,
                               const trn_schedule *s)
{
    if (s == NULL || s->c == c)
        return TRN_OK;
    return trn__fail(c, TRN_ERR_ARG,
                     "%s: the schedule belongs to another context", what);
}

double trn_schedule_factor(const trn_schedule *s, int64_t t)
{
    trn__fp_env saved;
    if (s == NULL || t < 0)
        return (double)NAN;
    trn__fp_enter(&saved);
    double factor = s->factor(s, t);
    trn__fp_leave(&saved);
    return factor;
}

#define WORDS 64 /* more than a schedule without what comes after it needs */

static int describe_one(const trn_schedule *s, char *text)
{
    if (s->factor == warmup_factor)
        return snprintf(text, WORDS, "warmup %lld ", (long long)s->n_steps);
    if (s->factor == constant_factor)
        return snprintf(text, WORDS, "constant");
    int n = snprintf(text, WORDS, "cosine %lld ", (long long)s->n_steps);
    snprintf(text + n, WORDS - (size_t)n, "%.17g", s->final_factor);
    for (char *p = text + n; *p != '\0'; p++) {
        if (strchr("0123456789+-e", *p) == NULL)
            *p = '.'; /* whatever the host's locale puts there */
    }
    return (int)strlen(text);
}

char *trn__schedule_describe(trn_context *c, const trn_schedule *s)
{
    size_t n = 1;
    for (const trn_schedule *k = s; k != NULL; k = k->after)
        n++;
    char *text = trn__alloc(c, n * WORDS);
    if (text == NULL) {
        trn__fail_memory(c, "the text of a schedule", n * WORDS);
        return NULL;
    }
    char *end = text;
    memcpy(text, "none", sizeof "none");
    for (const trn_schedule *k = s; k != NULL; k = k->after)
        end += describe_one(k, end);
    return text;
}
