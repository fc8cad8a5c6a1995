/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of every case in given types; see xla_values.h.
 */
#include "tests/xla/xla_bounds.h"
#include "tests/xla/xla_values.h"

static xla_worst worst[TRN_OP_LIMIT][TRN_BOOL + 1];

int xla_value_build(trn_context *c, const xla_job *job, trn_tensor **out)
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

bool xla_is_wide(const case_args *a)
{
    oracle_result r;
    bool wide = false;
    oracle_run(a, &r);
    for (int i = 0; i < a->n_in; i++)
        wide = wide || a->in[i].dtype == TRN_F64 || a->in[i].dtype == TRN_I64;
    for (int i = 0; i < r.n_out; i++)
        wide = wide || r.out[i].dtype == TRN_F64 || r.out[i].dtype == TRN_I64;
    oracle_free(&r);
    return wide;
}

void xla_judge_values(int n, const trn_dtype *types)
{
    static xla_judge j;
    j.build = xla_value_build;
    j.compare = compare;
    xla_judge_open(&j);
    for (int d = 0; d < n; d++) {
        for (int i = 0; i < n_op_cases; i++) {
            if (!case_takes(op_cases[i].op, types[d]))
                continue;
            xla_job *job = xla_judge_case(&j, &op_cases[i], types[d]);
            if (xla_is_neuron() && xla_is_wide(&job->a)) {
                case_free(&job->a);
                continue;
            }
            if (!xla_is_exact())
                xla_flush_inputs(&job->a);
            xla_judge_ready(&j);
        }
    }
    if (xla_verbose())
        print_worst();
    xla_judge_close(&j);
}
