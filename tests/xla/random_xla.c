/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups of random programs and their tally; see random_xla.h.
 */
#include <stdio.h>

#include "tests/xla/random_xla_parts.h"

void xla_random_run(trn_context *c, uint64_t *seed, int n, xla_tally *t)
{
    static xla_group g;
    g.c = c;
    g.t = t;
    for (g.n = 0; g.n < n && g.n < XLA_PROGRAMS_AT_ONCE; ++*seed) {
        xla_fate fate = xla_record(c, *seed, &g.program[g.n]);
        t->failing += fate == XLA_FAILED;
        t->without_result += fate == XLA_NOTHING_RUN;
        if (fate != XLA_RECORDED)
            continue;
        xla_judgement j = xla_judge_program(&g.program[g.n++]);
        t->far_apart += j == XLA_FAR_APART;
        t->other_decision += j == XLA_OTHER_DECISION;
    }
    t->programs += g.n;
    if (g.n > 0) {
        xla_compare_nodes(&g);
        xla_compare_programs(&g);
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
        t->node_worst[i] = xla_most(t->node_worst[i], more->node_worst[i]);
    t->program_worst = xla_most(t->program_worst, more->program_worst);
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
