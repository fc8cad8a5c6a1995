/* SPDX-License-Identifier: Apache-2.0
 *
 * Random programs agree between the CPU device and XLA; `make random-xla` runs
 * more of them.
 */
#include <math.h>

#include "tests/xla/random_xla_parts.h"
#include "tests/xla/xla_batch.h"

enum { PROGRAMS = 50 }; /* a test */

static void programs_agree(uint64_t seed)
{
    static xla_tally t;
    trn_context *c = xla_open(xla_device());
    while (t.programs < PROGRAMS)
        xla_random_run(c, &seed,
                       xla_one_by_one() ? 1 : PROGRAMS - (int)t.programs, &t);
    harness_close(c);
    xla_tally_print(&t);
    CHECK(t.failures == 0, "%d failures\n", (int)t.failures);
    CHECK((t.far_apart + t.other_decision) * 20 <= t.programs,
          "more than 5 %% are exempt\n");
}

/* Some tests, since each has a time limit. */
#define FROM(X) X(0) X(1000) X(2000) X(3000) X(4000) X(40000)

#define TEST(from)                                                \
    static void random_programs_from_##from##_agree(void **state) \
    {                                                             \
        (void)state;                                              \
        programs_agree(from);                                     \
    }
FROM(TEST)
#undef TEST

static bool plain(float x)
{
    return fabsf(x) > 0.1f && fabsf(x) < 10.0f;
}

/* An f32 output of one element that is a mean, neither near 0 nor large; -1:
 * there is none. */
static int32_t mean_output(const xla_program *p)
{
    const trn_graph *graph = p->graph;
    int32_t y = -1;
    for (int32_t i = 0; i < graph->n_outputs; i++) {
        int32_t v = graph->outputs[i].value, node = graph->values[v].node;
        if (node >= 0 && graph->nodes[node].op == TRN_OP_mean &&
            graph->values[v].arg.dtype == TRN_F32 && xla_numel(graph, v) == 1 &&
            plain(*(const float *)p->narrow.at[v]))
            y = v;
    }
    return y;
}

/* The first random program with such an output. */
static int32_t find_program(xla_group *g)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        xla_program *p = &g->program[0];
        if (xla_record(g->c, seed, p) != XLA_RECORDED)
            continue;
        if (xla_judge_program(p) == XLA_FAIR && mean_output(p) >= 0)
            return mean_output(p);
        xla_program_free(p);
    }
    return -1;
}

/* An output of a program that is 1 % off in both runs of the CPU, which are
 * what XLA is held against. */
static void a_wrong_value_is_found(void **state)
{
    static xla_group g;
    static xla_tally t;
    (void)state;
    g.c = xla_open("cpu");
    g.t = &t;
    g.n = 1;
    int32_t y = find_program(&g);
    assert_true(y >= 0);
    xla_compare_nodes(&g);
    xla_compare_programs(&g);
    assert_int_equal(t.failures, 0);
    assert_true(t.node_worst[TRN_OP_mean] == 0 && t.program_worst == 0);
    *(float *)g.program[0].narrow.at[y] *= 1.01f;
    *(double *)g.program[0].wide.at[y] *= 1.01;
    xla_compare_programs(&g);
    assert_int_equal(t.failures, 1);
    xla_compare_nodes(&g);
    assert_true(t.failures > 1 && t.node_worst[TRN_OP_mean] > 1);
    xla_program_free(&g.program[0]);
    harness_close(g.c);
}

int main(int argc, char **argv)
{
    static const xla_test tests[] = {XLA_TEST_ANYWHERE(a_wrong_value_is_found),
#define TEST(from) XLA_TEST(random_programs_from_##from##_agree),
                                     FROM(TEST)
#undef TEST
    };
    if (argc > 1 && strcmp(argv[1], "--long") == 0)
        return xla_random_long(argc - 1, argv + 1);
    return xla_main(argc, argv, (int)(sizeof tests / sizeof tests[0]), tests);
}
