/* SPDX-License-Identifier: Apache-2.0
 *
 * Taking an execution back: what it has overwritten of its inputs' memory, when
 * a later step of the same program fails.
 *
 * Only a program that writes to an input before its last step that can fail
 * keeps copies; training programs write at their end and keep none.
 */
#include "backends/cpu/cpu_program.h"

#include <string.h>

static int32_t last_check(const trn_program *p)
{
    int32_t last = -1;
    for (int32_t i = 0; i < p->n_steps; i++) {
        if (p->steps[i].checks)
            last = i;
    }
    return last;
}

/* The head of the first group that writes to an input; n_steps: none. */
static int32_t first_write(const trn_program *p)
{
    for (int32_t i = 0; i < p->n_steps; i++) {
        if (p->steps[i].writes_input)
            return p->steps[i].head;
    }
    return p->n_steps;
}

static size_t bytes_of(const trn_arg *arg)
{
    static const size_t sizes[] = {
#define X(name, code, text, bytes) [code] = bytes,
        TRN_DTYPE_LIST(X)
#undef X
    };
    size_t n = sizes[arg->dtype];
    for (uint32_t d = 0; d < arg->rank; d++)
        n *= (size_t)arg->shape[d];
    return n;
}

/* Is this a value that is written to the memory of an input? */
static bool is_written(const trn_program *p, int32_t i)
{
    const trn__cpu_value *v = &p->values[i];
    return v->base == i && v->maker >= 0 && v->where == TRN__CPU_INPUT;
}

void trn__cpu_find_kept(trn_program *p)
{
    const int32_t first = first_write(p);
    p->keep_at = -1;
    p->kept_bytes = 0;
    if (first > last_check(p))
        return;
    p->keep_at = first;
    for (int32_t i = 0; i < p->n_values; i++)
        p->kept_bytes += is_written(p, i) ? bytes_of(&p->values[i].arg) : 0;
}

void trn__cpu_keep_inputs(const trn_program *p, const trn_execution *e,
                          char *kept)
{
    for (int32_t i = 0; i < p->n_values; i++) {
        if (!is_written(p, i))
            continue;
        size_t n = bytes_of(&p->values[i].arg);
        if (n > 0)
            memcpy(kept, e->inputs[p->values[i].number], n);
        kept += n;
    }
}

void trn__cpu_put_back(const trn_program *p, const trn_execution *e,
                       const char *kept)
{
    for (int32_t i = 0; i < p->n_values; i++) {
        if (!is_written(p, i))
            continue;
        size_t n = bytes_of(&p->values[i].arg);
        if (n > 0)
            memcpy(e->inputs[p->values[i].number], kept, n);
        kept += n;
    }
}
