/* SPDX-License-Identifier: Apache-2.0
 *
 * The lowering for the Neuron compiler: rows, gradients and steps by XLA, in
 * the types that exist there, and nothing in any module that the compiler is
 * not known to take.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/xla/xla_gradients.h"
#include "tests/xla/xla_model.h"
#include "tests/xla/xla_neuron.h"
#include "tests/xla/xla_steps.h"
#include "tests/xla/xla_values.h"

static const trn_dtype stored[] = {TRN_F32, TRN_BF16, TRN_F16, TRN_I32,
                                   TRN_U32, TRN_U8,   TRN_BOOL};

static void values_are_those_of_the_cpu_in_f32(void **state)
{
    (void)state;
    xla_use_neuron();
    xla_judge_values(1, stored);
}

static void values_are_those_of_the_cpu_in_bf16_and_f16(void **state)
{
    (void)state;
    xla_use_neuron();
    xla_judge_values(2, stored + 1);
}

static void values_are_those_of_the_cpu_in_integers(void **state)
{
    (void)state;
    xla_use_neuron();
    xla_judge_values(4, stored + 3);
}

static void gradients_are_those_of_the_cpu_in_f32(void **state)
{
    (void)state;
    xla_use_neuron();
    xla_judge_gradients(TRN_F32);
}

static void a_hundred_losses_are_those_of_the_cpu(void **state)
{
    (void)state;
    xla_use_neuron();
    xla_judge_runs(TRN_F32);
}

static void single_steps_are_those_of_the_cpu(void **state)
{
    (void)state;
    xla_use_neuron();
    xla_judge_single_steps(TRN_F32);
}

static void types_of_64_bits_are_refused(void **state)
{
    static const trn_dtype wide[] = {TRN_F64, TRN_I64};
    (void)state;
    xla_use_neuron();
    trn_context *c = xla_open(xla_device());
    for (int i = 0; i < 2; i++) {
        assert_null(trn_full(c, wide[i], 0, NULL, 1.0));
        harness_error(c, TRN_ERR_DTYPE, trn_dtype_name(wide[i]));
    }
    harness_close(c);
}

int main(int argc, char **argv)
{
    static const xla_test tests[] = {
        XLA_TEST(values_are_those_of_the_cpu_in_f32),
        XLA_TEST(values_are_those_of_the_cpu_in_bf16_and_f16),
        XLA_TEST(values_are_those_of_the_cpu_in_integers),
        XLA_TEST(gradients_are_those_of_the_cpu_in_f32),
        XLA_TEST(a_hundred_losses_are_those_of_the_cpu),
        XLA_TEST(single_steps_are_those_of_the_cpu),
        XLA_TEST(types_of_64_bits_are_refused),
    };
    return xla_main(argc, argv, (int)(sizeof tests / sizeof tests[0]), tests);
}
