/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes of random programs, each alone.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/xla/random_xla_parts.h"
#include "tests/xla/xla_child.h"
#include "tests/xla/xla_node.h"

enum { NODES_AT_ONCE = 100 };

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

TRN_PRINTF(3, 4)
static void node_failed(xla_group *g, const place *at, const char *format, ...)
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

static void compare_node(xla_group *g, const place *at, const void *got)
{
    const xla_program *p = &g->program[at->program];
    const trn__graph_node *n = &p->graph->nodes[at->node];
    uint32_t dtype = p->graph->values[n->out[0]].arg.dtype;
    int64_t where = -1;
    double share = xla_node_share(g->c, p, at->node, got, &where);
    g->t->nodes++;
    g->t->node_worst[n->op] = xla_most(g->t->node_worst[n->op], share);
    if (share > 1)
        node_failed(g, at, "element %lld is %.17g, expected %.17g: %g bounds",
                    (long long)where, xla_element(dtype, got, where),
                    xla_element(dtype, p->narrow.at[n->out[0]], where), share);
}

static void run_kinds(xla_group *g, kind *kinds, int n);

/* The nodes number `round` of all kinds, one by one. */
static void find_culprit(xla_group *g, const kind *kinds, int n, int round)
{
    for (int i = 0; i < n; i++) {
        kind one = {.list = kinds[i].list + round, .n = 1};
        if (round < kinds[i].n)
            run_kinds(g, &one, 1);
    }
}

static void run_rounds(xla_group *g, xla_pack *pack, const kind *kinds, int n)
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
static void run_kinds(xla_group *g, kind *kinds, int n)
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

static place *list_nodes(xla_group *g, int *n)
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

void xla_compare_nodes(xla_group *g)
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
