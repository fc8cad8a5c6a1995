/* SPDX-License-Identifier: Apache-2.0
 *
 * First and second gradients of every row in f32 and f64, by XLA and on the CPU
 * device.  (test_op_gradients.c compares the CPU's with differences.)
 */
#include "tests/xla/xla_gradients.h"

static void first_and_second_gradients_are_those_of_the_cpu_in_f32(void **state)
{
    (void)state;
    xla_judge_gradients(TRN_F32);
}

static void first_and_second_gradients_are_those_of_the_cpu_in_f64(void **state)
{
    (void)state;
    xla_judge_gradients(TRN_F64);
}

int main(int argc, char **argv)
{
    static const xla_test tests[] = {
        XLA_TEST(first_and_second_gradients_are_those_of_the_cpu_in_f32),
        XLA_TEST(first_and_second_gradients_are_those_of_the_cpu_in_f64),
    };
    return xla_main(argc, argv, (int)(sizeof tests / sizeof tests[0]), tests);
}
