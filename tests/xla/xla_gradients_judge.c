/* SPDX-License-Identifier: Apache-2.0
 *
 * First and second gradients of every case, compared; see xla_gradients.h.
 */
#include <math.h>

#include "tests/xla/xla_bounds.h"
#include "tests/xla/xla_gradients.h"
#include "tests/xla/xla_values.h"

/* Relative to the largest element of a gradient; of a second gradient, or of
 * the first ones: their elements times seeds and weights, which are at most 1,
 * are its summands, and these may cancel. */
#define BOUND_F32 1e-5L
#define BOUND_F64 1e-12L

static double worst[TRN_OP_LIMIT][TRN_BOOL + 1];

static long double largest(const xla_array *t)
{
    long double most = 0;
    for (int64_t i = 0; i < t->n; i++) {
        long double v = fabsl(dtype_get(t->dtype, t->bytes, i));
        most = isfinite(v) && v > most ? v : most;
    }
    return most;
}

static long double scale_of(const xla_job *job, int k)
{
    int n_first = job->n_out / 2;
    long double scale = largest(&job->want[k]);
    for (int i = 0; i < n_first && k >= n_first; i++)
        scale = fmaxl(scale, largest(&job->want[i]));
    return scale;
}

static void compare_one(xla_judge *j, const xla_job *job, int k)
{
    const xla_array *want = &job->want[k], *got = &job->got[k];
    double *w = &worst[job->a.tc->op][job->a.dtype];
    long double scale = scale_of(job, k);
    long double bound =
        (want->dtype == TRN_F64 ? BOUND_F64 : BOUND_F32) * scale +
        xla_tiny(want->dtype);
    for (int64_t i = 0; i < want->n; i++) {
        long double a = dtype_get(want->dtype, want->bytes, i);
        long double b = dtype_get(got->dtype, got->bytes, i);
        long double off = fabsl(a - b);
        if (a == b || (isnan(a) && isnan(b)))
            continue;
        if (scale > 0 && isfinite(off) && off / scale > *w)
            *w = (double)(off / scale);
        if (off <= bound)
            continue;
        xla_fault(j, job,
                  "gradient %d, element %lld is %.17Lg, expected "
                  "%.17Lg; the scale is %.17Lg",
                  k, (long long)i, b, a, scale);
        return;
    }
}

static void compare(xla_judge *j, const xla_job *job)
{
    for (int k = 0; k < job->n_out; k++) {
        const xla_array *want = &job->want[k], *got = &job->got[k];
        if (want->bytes == NULL)
            continue;
        if (!xla_is_exact())
            compare_one(j, job, k);
        else if (dtype_differ(want->dtype, want->bytes, got->bytes, want->n) >=
                 0)
            xla_fault(j, job, "gradient %d has other bits", k);
    }
}

static void print_worst(trn_dtype dtype)
{
    for (int op = 0; op < TRN_OP_LIMIT; op++) {
        if (worst[op][dtype] > 0)
            print_message("%-20s %-5s %9.3g of the scale\n", trn__ops[op].name,
                          trn_dtype_name(dtype), worst[op][dtype]);
    }
}

void xla_judge_gradients(trn_dtype dtype)
{
    static xla_judge j;
    j.build = xla_gradient_build;
    j.compare = compare;
    xla_judge_open(&j);
    for (int i = 0; i < n_op_cases; i++) {
        if (!xla_has_gradients(&op_cases[i]))
            continue;
        xla_job *job = xla_judge_case(&j, &op_cases[i], dtype);
        if (xla_is_neuron() && xla_is_wide(&job->a)) {
            case_free(&job->a);
            continue;
        }
        if (!xla_is_exact())
            xla_flush_inputs(&job->a);
        xla_gradient_draw(j.cpu, job);
        xla_judge_ready(&j);
    }
    if (xla_verbose())
        print_worst(dtype);
    xla_judge_close(&j);
}
