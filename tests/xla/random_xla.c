/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparing random programs; see random_xla.h.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/xla/random_xla.h"
#include "tests/xla/xla_bounds.h"
#include "tests/xla/xla_child.h"
#include "tests/xla/xla_node.h"
#include "tests/xla/xla_shake.h"

#define MOST_APART 1e-3
#define MOST_APART_SMALL 0x1p-5
#define FACTOR 16.0
#define FLOOR_ULPS 8.0
#define SHAKE_FACTOR 2.0

/* In one module: compiling takes more than in proportion to its size. */
enum { NODES_AT_ONCE = 100, PROGRAMS_AT_ONCE = 3 };

/* A group of programs, compared together. */
typedef struct group {
    trn_context *c;
    xla_tally *t;
    int n;
    xla_program program[XLA_PROGRAMS_AT_ONCE];
} group;

static double most(double a, double b)
{
    return b > a ? b : a;
}

static double element(uint32_t dtype, const void *data, int64_t i)
{
    return (double)dtype_get((trn_dtype)dtype, data, i);
}

/* ---- nodes, each alone ---- */

typedef struct place {
    uint64_t signature;
    int program;
    int32_t node;
} place;

/* Nodes of one signature, and their part of the module. */
typedef struct kind {
    const place *list;
    int n;
    xla_part part;
} kind;

static void node_failed(group *g, const place *at, const char *format, ...)
{
    const xla_program *p = &g->program[at->program];
    const trn__graph_node *n = &p->graph->nodes[at->node];
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    g->t->failures++;
    printf("FAILED seed %llu, node %d, %s to %s: %s\n",
           (unsigned long long)p->seed, (int)at->node,
           trn__graph_ops[n->op].name,
           trn__describe(&p->graph->values[n->out[0]].arg).s, text);
    for (int i = 0; i < n->n_in; i++)
        printf("  input %d: %s\n", i,
               trn__describe(&p->graph->values[n->in[i]].arg).s);
}

static void compare_node(group *g, const place *at, const void *got)
{
    const xla_program *p = &g->program[at->program];
    const trn__graph_node *n = &p->graph->nodes[at->node];
    uint32_t dtype = p->graph->values[n->out[0]].arg.dtype;
    int64_t where = -1;
    double share = xla_node_share(g->c, p, at->node, got, &where);
    g->t->nodes++;
    g->t->node_worst[n->op] = most(g->t->node_worst[n->op], share);
    if (share > 1)
        node_failed(g, at, "element %lld is %.17g, expected %.17g: %g bounds",
                    (long long)where, element(dtype, got, where),
                    element(dtype, p->narrow.at[n->out[0]], where), share);
}

static void run_kinds(group *g, kind *kinds, int n);

/* The nodes number `round` of all kinds, one by one. */
static void find_culprit(group *g, const kind *kinds, int n, int round)
{
    for (int i = 0; i < n; i++) {
        kind one = {.list = kinds[i].list + round, .n = 1};
        if (round < kinds[i].n)
            run_kinds(g, &one, 1);
    }
}

static void run_rounds(group *g, xla_pack *pack, const kind *kinds, int n)
{
    int rounds = 0;
    for (int i = 0; i < n; i++)
        rounds = kinds[i].n > rounds ? kinds[i].n : rounds;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < n; i++) { /* who has no more stays as he was */
            const place *at = &kinds[i].list[round];
            if (round < kinds[i].n)
                xla_pack_bind(pack, kinds[i].part, &g->program[at->program],
                              at->node);
        }
        bool good = xla_pack_execute(pack);
        for (int i = 0; i < n && good; i++) {
            if (round < kinds[i].n)
                compare_node(g, &kinds[i].list[round],
                             pack->out[kinds[i].part.out]);
        }
        if (good)
            continue;
        if (n == 1)
            node_failed(g, &kinds[0].list[round], "status %d, %s",
                        (int)pack->outcome.status, trn_errmsg(g->c));
        trn_clear(g->c);
        if (n > 1)
            find_culprit(g, kinds, n, round);
    }
}

/* All nodes of these kinds by one module; by two, if it does not compile. */
static void run_kinds(group *g, kind *kinds, int n)
{
    xla_pack pack;
    xla_pack_open(&pack, g->c);
    for (int i = 0; i < n; i++)
        kinds[i].part =
            xla_pack_alone(&pack, &g->program[kinds[i].list[0].program],
                           kinds[i].list[0].node);
    bool good = xla_pack_compile(&pack);
    g->t->modules++;
    if (good)
        run_rounds(g, &pack, kinds, n);
    else if (n == 1)
        node_failed(g, kinds[0].list, "%s", trn_errmsg(g->c));
    xla_pack_close(&pack);
    if (!good && n > 1) {
        run_kinds(g, kinds, n / 2);
        run_kinds(g, kinds + n / 2, n - n / 2);
    }
}

static int by_signature(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->signature != y->signature)
        return x->signature < y->signature ? -1 : 1;
    return x->program != y->program ? (x->program < y->program ? -1 : 1)
                                    : (x->node > y->node) - (x->node < y->node);
}

/* The numerous first, so that a module's kinds are about equally so. */
static int by_number(const void *a, const void *b)
{
    const kind *x = a, *y = b;
    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    return (x->list > y->list) - (x->list < y->list);
}

static place *list_nodes(group *g, int *n)
{
    int room = 1;
    *n = 0;
    for (int i = 0; i < g->n; i++)
        room += (int)g->program[i].graph->n_nodes;
    place *list = xla_memory(sizeof *list * (size_t)room);
    for (int i = 0; i < g->n; i++) {
        const trn_graph *graph = g->program[i].graph;
        for (int32_t q = 0; q < graph->n_nodes; q++) {
            if (xla_node_reads_subnormal(&g->program[i], q))
                g->t->subnormal++;
            else
                list[(*n)++] = (place){xla_signature(graph, q), i, q};
        }
    }
    qsort(list, (size_t)*n, sizeof *list, by_signature);
    return list;
}

static void compare_nodes(group *g)
{
    int n, n_kinds = 0;
    place *list = list_nodes(g, &n);
    kind *kinds = xla_memory(sizeof *kinds * (size_t)(n + 1));
    for (int i = 0; i < n; i++) {
        if (i == 0 || list[i].signature != list[i - 1].signature)
            kinds[n_kinds++].list = &list[i];
        kinds[n_kinds - 1].n++;
    }
    qsort(kinds, (size_t)n_kinds, sizeof *kinds, by_number);
    g->t->kinds += n_kinds;
    for (int i = 0; i < n_kinds; i += NODES_AT_ONCE) {
        xla_running("%d programs to seed %llu, nodes alone: %d to %d", g->n,
                    (unsigned long long)g->program[g->n - 1].seed, i,
                    i + NODES_AT_ONCE);
        run_kinds(g, kinds + i,
                  n_kinds - i < NODES_AT_ONCE ? n_kinds - i : NODES_AT_ONCE);
    }
    free(kinds);
    free(list);
}

/* ---- whole programs ---- */

typedef enum judgement { FAIR, FAR_APART, OTHER_DECISION } judgement;

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
        double x = element(dtype, p->narrow.at[v], i);
        double y = element(TRN_F64, p->wide.at[v], i);
        if (isfinite(x) && isfinite(y)) {
            *off = most(*off, fabs(x - y));
            *size = most(*size, fabs(x));
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

static judgement judge(const xla_program *p)
{
    const trn_graph *g = p->graph;
    const double limit = most_apart(g);
    double off, size;
    for (int32_t v = 0; v < g->n_values && p->has_wide; v++) {
        if (!apart(p, v, &off, &size))
            return OTHER_DECISION;
    }
    for (int32_t i = 0; i < g->n_outputs && p->has_wide; i++) {
        apart(p, g->outputs[i].value, &off, &size);
        if (off > limit * size)
            return FAR_APART;
    }
    return p->has_wide ? FAIR : OTHER_DECISION;
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
        double x = element(dtype, want, i), y = element(dtype, got, i);
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

static void program_failed(group *g, const xla_program *p, int32_t output,
                           const void *got, int64_t where, double bound)
{
    int32_t v = p->graph->outputs[output].value;
    uint32_t dtype = p->graph->values[v].arg.dtype;
    g->t->failures++;
    printf("FAILED seed %llu, output %d, value %d, %s: element %lld is %.9g, "
           "expected %.9g (f64: %.9g), allowed %g\n",
           (unsigned long long)p->seed, (int)output, (int)v,
           trn__describe(&p->graph->values[v].arg).s, (long long)where,
           element(dtype, got, where), element(dtype, p->narrow.at[v], where),
           element(xla_dtype(p->graph, v, true), p->wide.at[v], where), bound);
}

static void compare_program(group *g, const xla_program *p, void *const *got)
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
        worst = decides ? most(worst, share) : worst;
    }
    g->t->shaken += sensitive && decides && !failed;
    g->t->other_decision += !decides;
    g->t->program_worst = most(g->t->program_worst, worst);
    free(moved);
}

/* Programs [from, to) in one module; in two, if it does not run. */
static void run_programs(group *g, int from, int to)
{
    xla_part part[PROGRAMS_AT_ONCE];
    xla_pack pack;
    xla_pack_open(&pack, g->c);
    for (int i = from; i < to; i++)
        part[i - from] = xla_pack_whole(&pack, &g->program[i]);
    bool good = xla_pack_compile(&pack) && xla_pack_execute(&pack);
    g->t->modules++;
    for (int i = from; i < to && good; i++) {
        if (judge(&g->program[i]) == FAIR)
            compare_program(g, &g->program[i], pack.out + part[i - from].out);
    }
    if (!good && to - from == 1 && judge(&g->program[from]) == FAIR) {
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

/* ---- groups ---- */

void xla_random_run(trn_context *c, uint64_t *seed, int n, xla_tally *t)
{
    static group g;
    g.c = c;
    g.t = t;
    for (g.n = 0; g.n < n && g.n < XLA_PROGRAMS_AT_ONCE; ++*seed) {
        xla_fate fate = xla_record(c, *seed, &g.program[g.n]);
        t->failing += fate == XLA_FAILED;
        t->without_result += fate == XLA_NOTHING_RUN;
        if (fate != XLA_RECORDED)
            continue;
        judgement j = judge(&g.program[g.n++]);
        t->far_apart += j == FAR_APART;
        t->other_decision += j == OTHER_DECISION;
    }
    t->programs += g.n;
    if (g.n > 0)
        compare_nodes(&g);
    for (int i = 0; i < g.n; i += PROGRAMS_AT_ONCE) {
        int to = i + PROGRAMS_AT_ONCE < g.n ? i + PROGRAMS_AT_ONCE : g.n;
        xla_running("programs of seeds %llu to %llu",
                    (unsigned long long)g.program[i].seed,
                    (unsigned long long)g.program[to - 1].seed);
        run_programs(&g, i, to);
    }
    for (int i = 0; i < g.n; i++)
        xla_program_free(&g.program[i]);
}

void xla_tally_add(xla_tally *t, const xla_tally *more)
{
    t->programs += more->programs;
    t->failing += more->failing;
    t->without_result += more->without_result;
    t->nodes += more->nodes;
    t->subnormal += more->subnormal;
    t->far_apart += more->far_apart;
    t->other_decision += more->other_decision;
    t->shaken += more->shaken;
    t->failures += more->failures;
    t->modules += more->modules;
    t->kinds += more->kinds;
    for (int i = 0; i < TRN_OP_LIMIT; i++)
        t->node_worst[i] = most(t->node_worst[i], more->node_worst[i]);
    t->program_worst = most(t->program_worst, more->program_worst);
}

void xla_tally_print(const xla_tally *t)
{
    const struct {
        int64_t n;
        const char *text;
    } counts[] = {
        {t->programs, "programs ("},
        {t->failing, "seeds more fail, "},
        {t->without_result, "have no result), "},
        {t->nodes, "nodes alone (of "},
        {t->kinds, "kinds; "},
        {t->subnormal, "with subnormal inputs left out), exempt: "},
        {t->far_apart, "far apart, "},
        {t->other_decision, "decide otherwise; "},
        {t->shaken, "within what their nodes' bounds allow, "},
        {t->modules, "modules, "},
        {t->failures, "failures\n"},
    };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        printf("%lld %s", (long long)counts[i].n, counts[i].text);
    printf("worst, as a part of what is allowed: whole programs %.3g",
           t->program_worst);
    for (int i = 0; i < TRN_OP_LIMIT; i++) {
        if (t->node_worst[i] > 0)
            printf(", %s %.3g", trn__graph_ops[i].name, t->node_worst[i]);
    }
    printf("\n");
}
