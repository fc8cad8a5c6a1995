/* SPDX-License-Identifier: Apache-2.0
 *
 * Making a failing case smaller: fewer rounds, steps, calls, while it fails.
 */
#include <string.h>

#include "random_shrink.h"

static bool try_it(random_case *k, const random_case *smaller,
                   random_fails fails)
{
    if (!fails(smaller))
        return false;
    *k = *smaller;
    return true;
}

static bool fewer_steps(random_case *k, random_fails fails)
{
    bool changed = false;
    for (int i = k->n_steps - 1; i >= 0 && k->n_steps > 1; i--) {
        random_case s = *k;
        memmove(&s.step[i], &s.step[i + 1],
                (size_t)(s.n_steps - i - 1) * sizeof s.step[0]);
        s.n_steps--;
        changed = try_it(k, &s, fails) || changed;
    }
    return changed;
}

static bool fewer_calls(random_case *k, int which, int size, random_fails fails)
{
    bool changed = false;
    for (int i = k->program[which].n - size; i >= 0; i -= size) {
        random_case s = *k;
        bool any = false;
        for (int j = i; j < i + size; j++) {
            any = any || s.program[which].at[j].op != RANDOM_nop;
            s.program[which].at[j].op = RANDOM_nop;
        }
        changed = (any && try_it(k, &s, fails)) || changed;
    }
    return changed;
}

static bool simpler(random_case *k, random_fails fails)
{
    bool changed = false;
    random_case s = *k;
    s.n_rounds = 1;
    changed = (k->n_rounds > 1 && try_it(k, &s, fails)) || changed;
    s = *k;
    s.threads = 1;
    changed = (k->threads > 1 && try_it(k, &s, fails)) || changed;
    for (int i = 0; i < k->n_steps; i++) {
        s = *k;
        s.step[i].freeze = 255;
        s.step[i].late = false;
        changed =
            (memcmp(&s, k, sizeof s) != 0 && try_it(k, &s, fails)) || changed;
    }
    return changed;
}

void random_shrink(random_case *k, random_fails fails)
{
    for (int pass = 0; pass < 6; pass++) {
        bool changed = fewer_steps(k, fails);
        for (int size = 8; size > 0; size /= 2) {
            for (int i = 0; i < k->n_programs; i++)
                changed = fewer_calls(k, i, size, fails) || changed;
        }
        changed = simpler(k, fails) || changed;
        if (!changed)
            return;
    }
}
