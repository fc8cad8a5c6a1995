/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of every case in every type, by XLA and on the CPU device.
 *
 * All rows are lowered and none is refused: no op has a shape that depends on
 * data.
 */
#include "tests/xla/xla_values.h"

static void every_case_has_the_values_of_the_cpu_in_f32(void **state)
{
    (void)state;
    xla_judge_values(1, (const trn_dtype[]){TRN_F32});
}

static void every_case_has_the_values_of_the_cpu_in_f64(void **state)
{
    (void)state;
    xla_judge_values(1, (const trn_dtype[]){TRN_F64});
}

static void every_case_has_the_values_of_the_cpu_in_bf16(void **state)
{
    (void)state;
    xla_judge_values(1, (const trn_dtype[]){TRN_BF16});
}

static void every_case_has_the_values_of_the_cpu_in_f16(void **state)
{
    (void)state;
    xla_judge_values(1, (const trn_dtype[]){TRN_F16});
}

static void every_case_has_the_values_of_the_cpu_in_integers(void **state)
{
    (void)state;
    xla_judge_values(
        5, (const trn_dtype[]){TRN_I64, TRN_I32, TRN_U32, TRN_U8, TRN_BOOL});
}

int main(int argc, char **argv)
{
    static const xla_test tests[] = {
        XLA_TEST(every_case_has_the_values_of_the_cpu_in_f32),
        XLA_TEST(every_case_has_the_values_of_the_cpu_in_f64),
        XLA_TEST(every_case_has_the_values_of_the_cpu_in_bf16),
        XLA_TEST(every_case_has_the_values_of_the_cpu_in_f16),
        XLA_TEST(every_case_has_the_values_of_the_cpu_in_integers),
    };
    return xla_main(argc, argv, (int)(sizeof tests / sizeof tests[0]), tests);
}
