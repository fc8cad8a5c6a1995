/* SPDX-License-Identifier: Apache-2.0
 *
 * Random programs agree between the CPU device and XLA; `make random-xla` runs
 * more of them.
 */
#include "tests/xla/random_xla.h"
#include "tests/xla/xla_batch.h"

enum { PROGRAMS = 100 }; /* a test */

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

static void random_programs_from_0_agree(void **state)
{
    (void)state;
    programs_agree(0);
}

static void random_programs_from_1000_agree(void **state)
{
    (void)state;
    programs_agree(1000);
}

static void random_programs_from_2000_agree(void **state)
{
    (void)state;
    programs_agree(2000);
}

int main(int argc, char **argv)
{
    static const xla_test tests[] = {
        XLA_TEST(random_programs_from_0_agree),
        XLA_TEST(random_programs_from_1000_agree),
        XLA_TEST(random_programs_from_2000_agree),
    };
    if (argc > 1 && strcmp(argv[1], "--long") == 0)
        return xla_random_long(argc - 1, argv + 1);
    return xla_main(argc, argv, (int)(sizeof tests / sizeof tests[0]), tests);
}
