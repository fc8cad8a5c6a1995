/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of every case in every type, by XLA and on the CPU device.
 *
 * All rows are lowered and none is refused: no op has a shape that depends on
 * data.
 */
#include <math.h>
#include <stdlib.h>

#include "tests/xla/xla_batch.h"
#include "tests/xla/xla_bounds.h"

static xla_worst worst[TRN_OP_LIMIT][TRN_BOOL + 1];

/* A kept view of an input would be read from the input; its copy is computed.
 */
static int build(trn_context *c, const xla_job *job, trn_tensor **out)
{
    trn_tensor *in[CASE_MAX_IN];
    case_tensors(c, &job->a, LAYOUT_AS_GIVEN, in);
    int n = case_apply(c, &job->a, in, out);
    if (trn__ops[job->a.tc->op].cls == TRN__CLASS_VIEW)
        out[0] = trn_copy(out[0]);
    return n;
}

static void compare(xla_judge *j, const xla_job *job)
{
    oracle_result r;
    const case_args *a = &job->a;
    oracle_run(a, &r);
    assert_int_equal(r.n_out, job->n_out);
    for (int i = 0; i < r.n_out; i++) {
        const xla_array *want = &job->want[i], *got = &job->got[i];
        xla_worst *w = &worst[a->tc->op][a->dtype];
        assert_int_equal(r.out[i].n, want->n);
        int64_t at =
            xla_is_exact()
                ? dtype_differ(want->dtype, want->bytes, got->bytes, want->n)
                : xla_too_far(a, &r, &r.out[i], want->bytes, got->bytes, w);
        if (at >= 0)
            xla_fault(j, job,
                      "element %lld of output %d is %.17Lg, expected "
                      "%.17Lg; at worst %.3g ulp, %.3g units",
                      (long long)at, i, dtype_get(got->dtype, got->bytes, at),
                      dtype_get(want->dtype, want->bytes, at), w->ulps,
                      w->units);
    }
    oracle_free(&r);
}

static void print_worst(void)
{
    for (int op = 0; op < TRN_OP_LIMIT; op++) {
        for (int d = 0; d <= TRN_BOOL; d++) {
            const xla_worst *w = &worst[op][d];
            if (w->seen)
                print_message("%-20s %-5s %9.3g ulp %9.3g units %6.2f of the "
                              "bound\n",
                              trn__ops[op].name, trn_dtype_name((trn_dtype)d),
                              w->ulps, w->units, w->share);
        }
    }
}

static void judge_types(int n, const trn_dtype *types)
{
    static xla_judge j;
    j.build = build;
    j.compare = compare;
    xla_judge_open(&j);
    for (int d = 0; d < n; d++) {
        for (int i = 0; i < n_op_cases; i++) {
            if (!case_takes(op_cases[i].op, types[d]))
                continue;
            xla_job *job = xla_judge_case(&j, &op_cases[i], types[d]);
            if (!xla_is_exact())
                xla_flush_inputs(&job->a);
            xla_judge_ready(&j);
        }
    }
    if (xla_verbose())
        print_worst();
    xla_judge_close(&j);
}

static void every_case_has_the_values_of_the_cpu_in_f32(void **state)
{
    (void)state;
    judge_types(1, (const trn_dtype[]){TRN_F32});
}

static void every_case_has_the_values_of_the_cpu_in_f64(void **state)
{
    (void)state;
    judge_types(1, (const trn_dtype[]){TRN_F64});
}

static void every_case_has_the_values_of_the_cpu_in_bf16(void **state)
{
    (void)state;
    judge_types(1, (const trn_dtype[]){TRN_BF16});
}

static void every_case_has_the_values_of_the_cpu_in_f16(void **state)
{
    (void)state;
    judge_types(1, (const trn_dtype[]){TRN_F16});
}

static void every_case_has_the_values_of_the_cpu_in_integers(void **state)
{
    (void)state;
    judge_types(
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
