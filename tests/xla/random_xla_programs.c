/* SPDX-License-Identifier: Apache-2.0
 *
 * Random programs as they are, held against the CPU's f32 and f64 runs.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/xla/random_xla_parts.h"
#include "tests/xla/xla_bounds.h"
#include "tests/xla/xla_child.h"
#include "tests/xla/xla_shake.h"

#define MOST_APART 1e-3
#define MOST_APART_SMALL 0x1p-5
#define FACTOR 16.0
#define FLOOR_ULPS 8.0
#define SHAKE_FACTOR 2.0

/* In one module: more of them compile no faster, and options of the compiler
 * depend on what is in a module. */
enum { PROGRAMS_AT_ONCE = 1 };

/* How far apart the two runs of the CPU are in a value: the largest distance
 * and the largest element.  False: they decide differently. */
static bool apart(const xla_program *p, int32_t v, double *off, double *size)
{
    uint32_t dtype = p->graph->values[v].arg.dtype;
    *off = *size = 0;
    if (!trn__is_float(dtype))
        return memcmp(p->narrow.at[v], p->wide.at[v],
                      xla_bytes(p->graph, v, false)) == 0;
    for (int64_t i = 0; i < xla_numel(p->graph, v); i++) {
        double x = xla_element(dtype, p->narrow.at[v], i);
        double y = xla_element(TRN_F64, p->wide.at[v], i);
        if (isfinite(x) && isfinite(y)) {
            *off = xla_most(*off, fabs(x - y));
            *size = xla_most(*size, fabs(x));
        } else if (!(isnan(x) && isnan(y)) && x != y) {
            return false;
        }
    }
    return true;
}

static double most_apart(const trn_graph *g)
{
    for (int32_t v = 0; v < g->n_values; v++) {
        uint32_t dtype = g->values[v].arg.dtype;
        if (dtype == TRN_BF16 || dtype == TRN_F16)
            return MOST_APART_SMALL;
    }
    return MOST_APART;
}

xla_judgement xla_judge_program(const xla_program *p)
{
    const trn_graph *g = p->graph;
    const double limit = most_apart(g);
    double off, size;
    for (int32_t v = 0; v < g->n_values && p->has_wide; v++) {
        if (!apart(p, v, &off, &size))
            return XLA_OTHER_DECISION;
    }
    for (int32_t i = 0; i < g->n_outputs && p->has_wide; i++) {
        apart(p, g->outputs[i].value, &off, &size);
        if (off > limit * size)
            return XLA_FAR_APART;
    }
    return p->has_wide ? XLA_FAIR : XLA_OTHER_DECISION;
}

/* The worst element of an output, as a part of what is allowed. */
static double output_share(const xla_program *p, int32_t v, const void *got,
                           double *bound, int64_t *where)
{
    uint32_t dtype = p->graph->values[v].arg.dtype;
    const void *want = p->narrow.at[v];
    double off, size, worst = 0;
    apart(p, v, &off, &size);
    *bound = 0;
    if (trn__is_float(dtype))
        *bound = FACTOR * off + (double)xla_tiny((trn_dtype)dtype) +
                 FLOOR_ULPS * (double)dtype_ulp((trn_dtype)dtype, size);
    for (int64_t i = 0; i < xla_numel(p->graph, v); i++) {
        double x = xla_element(dtype, want, i), y = xla_element(dtype, got, i);
        if (x == y || (isnan(x) && isnan(y)))
            continue;
        double s = isfinite(x) && isfinite(y) && *bound > 0
                       ? fabs(x - y) / *bound
                       : INFINITY;
        if (s > worst) {
            worst = s;
            *where = i;
        }
    }
    return worst;
}

static void program_failed(xla_group *g, const xla_program *p, int32_t output,
                           const void *got, int64_t where, double bound)
{
    int32_t v = p->graph->outputs[output].value;
    uint32_t dtype = p->graph->values[v].arg.dtype;
    g->t->failures++;
    printf("FAILED seed %llu, output %d, value %d, %s: element %lld is %.9g, "
           "expected %.9g (f64: %.9g), allowed %g\n",
           (unsigned long long)p->seed, (int)output, (int)v,
           trn__describe(&p->graph->values[v].arg).s, (long long)where,
           xla_element(dtype, got, where),
           xla_element(dtype, p->narrow.at[v], where),
           xla_element(xla_dtype(p->graph, v, true), p->wide.at[v], where),
           bound);
}

static void compare_program(xla_group *g, const xla_program *p,
                            void *const *got)
{
    const trn_graph *graph = p->graph;
    double *moved = NULL, worst = 0;
    bool decides = true, failed = false, sensitive = false;
    for (int32_t i = 0; i < graph->n_outputs && decides && !failed; i++) {
        int64_t where = -1;
        double bound, share = output_share(p, graph->outputs[i].value, got[i],
                                           &bound, &where);
        if (share > 1 && moved == NULL) {
            moved = xla_memory(sizeof *moved * (size_t)graph->n_outputs);
            decides = xla_shake(g->c, p, moved);
        }
        sensitive = sensitive || share > 1;
        if (share > 1 && decides)
            share = share * bound / (bound + SHAKE_FACTOR * moved[i]);
        failed = decides && share > 1;
        if (failed)
            program_failed(g, p, i, got[i], where,
                           bound + SHAKE_FACTOR * moved[i]);
        worst = decides ? xla_most(worst, share) : worst;
    }
    g->t->shaken += sensitive && decides && !failed;
    g->t->other_decision += !decides;
    g->t->program_worst = xla_most(g->t->program_worst, worst);
    free(moved);
}

/* Programs [from, to) in one module; in two, if it does not run. */
static void run_programs(xla_group *g, int from, int to)
{
    xla_part part[PROGRAMS_AT_ONCE];
    xla_pack pack;
    xla_pack_open(&pack, g->c);
    for (int i = from; i < to; i++)
        part[i - from] = xla_pack_whole(&pack, &g->program[i]);
    bool good = xla_pack_compile(&pack) && xla_pack_execute(&pack);
    g->t->modules++;
    for (int i = from; i < to && good; i++) {
        if (xla_judge_program(&g->program[i]) == XLA_FAIR)
            compare_program(g, &g->program[i], pack.out + part[i - from].out);
    }
    if (!good && to - from == 1 &&
        xla_judge_program(&g->program[from]) == XLA_FAIR) {
        printf("FAILED seed %llu: status %d, %s\n",
               (unsigned long long)g->program[from].seed,
               (int)pack.outcome.status, trn_errmsg(g->c));
        g->t->failures++;
    }
    xla_pack_close(&pack);
    if (!good && to - from > 1) {
        run_programs(g, from, from + (to - from) / 2);
        run_programs(g, from + (to - from) / 2, to);
    }
}

void xla_compare_programs(xla_group *g)
{
    for (int i = 0; i < g->n; i += PROGRAMS_AT_ONCE) {
        int to = i + PROGRAMS_AT_ONCE < g->n ? i + PROGRAMS_AT_ONCE : g->n;
        xla_running("programs of seeds %llu to %llu",
                    (unsigned long long)g->program[i].seed,
                    (unsigned long long)g->program[to - 1].seed);
        run_programs(g, i, to);
    }
}
