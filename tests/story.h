/* SPDX-License-Identifier: Apache-2.0
 *
 * Stories: what a test does on each way to run steps, and the numbers that it
 * writes down, which must be the same for all.
 */
#ifndef TRN_TESTS_STORY_H
#define TRN_TESTS_STORY_H

#include <math.h>

#include "captured.h"

typedef struct story {
    trn_context *c;
    double said[128];
    int n;
} story;

static inline void say(story *s, double x)
{
    assert_in_range(s->n, 0, 127);
    s->said[s->n++] = isnan(x) ? -12345.0 : x;
}

static inline void say_tensor(story *s, trn_tensor *t)
{
    float data[16] = {0};
    int64_t n = t == NULL ? 0 : trn_tensor_numel(t);
    say(s, t == NULL ? -1.0 : (double)n);
    if (n > 0 && n <= 16)
        trn_tensor_read(t, data, (size_t)n * sizeof(float));
    for (int i = 0; i < n; i++)
        say(s, (double)data[i]);
}

static inline void say_error(story *s)
{
    say(s, trn_errcode(s->c));
    trn_clear(s->c);
}

/* Tells it in all ways; n: the least number of words it must have. */
static inline void tell(void (*what)(story *s), int n)
{
    story first;
    for (int way = 0; way < N_WAYS; way++) {
        story s = {.c = captured_open(way, NULL)};
        what(&s);
        CHECK(trn_errcode(s.c) == TRN_OK, "%s: %s\n", captured_ways[way].name,
              trn_errmsg(s.c));
        captured_close(s.c);
        if (way == 0)
            first = s;
        assert_true(s.n >= n);
        assert_int_equal(s.n, first.n);
        for (int i = 0; i < s.n; i++)
            CHECK(s.said[i] == first.said[i],
                  "%s: word %d is %.9g, eager says %.9g\n",
                  captured_ways[way].name, i, s.said[i], first.said[i]);
    }
}

static inline trn_tensor *vector(trn_context *c, int64_t n, double value)
{
    float data[16] = {0};
    for (int i = 0; i < n; i++)
        data[i] = (float)(value + 0.25 * i);
    return trn_tensor_from(c, TRN_F32, 1, &n, data);
}

static inline trn_tensor *parameter(trn_context *c, int64_t n, double value)
{
    trn_tensor *p = vector(c, n, value);
    trn_set_requires_grad(p, true);
    return p;
}

static inline trn_tensor *total(trn_tensor *x)
{
    return trn_sum(x, TRN_ALL_AXES, false);
}

#endif
