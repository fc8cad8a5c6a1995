/* SPDX-License-Identifier: Apache-2.0
 *
 * Random programs and random loops of steps have equal bits eager, captured
 * and on the loop device; `make random` runs more of them.
 */
#include <stdlib.h>

#include "harness.h"
#include "libtrn/context/context.h"
#include "libtrn/graph/graph.h"
#include "primitives.h"
#include "random_shrink.h"

/* Check builds keep 4096 freed tensors, to find stale handles. */
#ifdef TRN_CHECK
#define MEMORY_SLACK (4096 * 1024)
#else
#define MEMORY_SLACK 4096
#endif

#define CASES 150

static bool fails(const random_case *k)
{
    random_report report;
    return !random_agrees(k, &report);
}

static void run_cases(bool loop)
{
    static random_case k;
    random_report report, all = {.steps = 0};
    for (uint64_t seed = 0; seed < CASES; seed++) {
        random_make(&k, seed, loop);
        if (!random_agrees(&k, &report)) {
            print_error("seed %d: %s\n", (int)seed, report.text);
            random_shrink(&k, fails);
            random_agrees(&k, &report);
            print_error("shrunk: %s\n", report.text);
            random_print(&k, stderr);
            fail();
        }
        all.steps += report.steps;
        all.matches += report.matches;
    }
    print_message("%d steps, %d of them matched on other devices\n",
                  (int)all.steps, (int)all.matches);
    assert_true(all.matches > all.steps);
}

static void random_programs_have_equal_bits(void **state)
{
    (void)state;
    run_cases(false);
}

static void random_loops_have_equal_bits(void **state)
{
    (void)state;
    run_cases(true);
}

/* ---- rows ---- */

/* Enough for the rarest row to come some ten times. */
#define SEEDS_OF_ROWS 1000

/* Nodes of each row in what was to be compiled: none that is dead. */
static int64_t drawn[TRN_OP_LIMIT];

static bool takes_all(trn_device *device, const trn_op_call *call)
{
    (void)device;
    return call->op < TRN_OP_LIMIT;
}

static int32_t count_and_refuse(trn_device *device, const trn_graph *graph,
                                trn_program **program)
{
    (void)device;
    (void)program;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        drawn[graph->nodes[i].op]++;
    return TRN_ERR_UNSUPPORTED;
}

/* The step of a seed, up to its first program. */
static void draw_rows(uint64_t seed, bool primitives)
{
    static random_case k;
    random_world w;
    random_make(&k, seed, false);
    CHECK(random_open(&w, &k, "cpu", TRN_EXEC_CAPTURED), "%s\n",
          trn_errmsg(w.c));
    w.c->table.supports = primitives ? takes_primitives : takes_all;
    w.c->table.compile = count_and_refuse;
    trn_step_begin(w.c);
    random_run(&w, &k.program[0], 0);
    trn_step_end(w.c);
    trn_clear(w.c);
    random_settle_kept(&w, false, false);
    assert_true(random_close(&w));
}

/* Composites whole, and as the primitives that XLA is given. */
static void every_row_of_the_table_is_drawn(void **state)
{
    int missing = 0;
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS_OF_ROWS; seed++) {
        draw_rows(seed, false);
        draw_rows(seed, true);
    }
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    if (drawn[id] == 0) {                                                     \
        print_error("row " #nm ": in no random program; tests/random_*.c\n"); \
        missing++;                                                            \
    }
#include "trn/ops.def"
    assert_int_equal(missing, 0);
}

/* ---- memory ---- */

/* Bytes after each of the last rounds of a loop do not grow. */
static void holds_its_memory(const char *device, uint64_t seed)
{
    static random_case k;
    random_world w;
    uint64_t before = 0;
    random_make(&k, seed, true);
    for (int i = 0; i < k.n_programs; i++) { /* results only, no history */
        k.program[i].outside = false;
        for (int j = 0; j < k.program[i].n; j++) {
            uint8_t *op = &k.program[i].at[j].op;
            if (*op == RANDOM_keep || *op == RANDOM_retain)
                *op = RANDOM_nop;
        }
    }
    CHECK(random_open(&w, &k, device, TRN_EXEC_CAPTURED), "%s\n",
          trn_errmsg(w.c));
    for (int round = 0; round < 1000; round++) {
        int which = round % k.n_programs;
        w.salt = random_mix(seed, (uint64_t)round);
        trn_step_begin(w.c);
        random_run(&w, &k.program[which], which);
        trn_step_end(w.c);
        trn_sync(w.c);
        trn_clear(w.c);
        random_settle_kept(&w, false, false);
        trn_memory_info info = TRN_MEMORY_INFO_INIT;
        trn_memory(w.c, &info);
        if (round == 600)
            before = info.bytes_in_use;
        CHECK(round <= 600 || info.bytes_in_use <= before + MEMORY_SLACK,
              "%s, seed %d, step %d: %llu bytes, were %llu\n", device,
              (int)seed, round, (unsigned long long)info.bytes_in_use,
              (unsigned long long)before);
    }
    assert_true(random_close(&w));
}

static void a_thousand_steps_hold_no_more_memory(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 5; seed++) {
        holds_its_memory("cpu", seed);
        holds_its_memory("loop", seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs_have_equal_bits),
        cmocka_unit_test(random_loops_have_equal_bits),
        cmocka_unit_test(every_row_of_the_table_is_drawn),
        cmocka_unit_test(a_thousand_steps_hold_no_more_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
