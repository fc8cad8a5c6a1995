/* SPDX-License-Identifier: Apache-2.0
 *
 * First and second gradients of a case; see xla_gradients.h.
 */
#include <stdlib.h>

#include "tests/xla/xla_gradients.h"

bool xla_has_gradients(const op_case *tc)
{
    return trn__ops[tc->op].differentiable &&
           (tc->op != TRN_OP_cast ||
            dtype_is_float(attr_dtype(tc, "to", TRN_F32)));
}

static void fill(case_input *x, uint64_t *state)
{
    x->v = malloc((size_t)(x->n + 1) * sizeof *x->v);
    assert_non_null(x->v);
    for (int64_t i = 0; i < x->n; i++)
        x->v[i] = dtype_round(x->dtype,
                              (long double)harness_uniform(state, -1.0, 1.0));
}

void xla_gradient_draw(trn_context *c, xla_job *job)
{
    trn_tensor *in[CASE_MAX_IN], *out[CASE_MAX_OUT] = {NULL};
    uint64_t state = 99;
    for (int i = 0; i < job->a.n_in; i++) {
        job->weight[i] = job->a.in[i];
        fill(&job->weight[i], &state);
    }
    trn_step_begin(c);
    case_tensors(c, &job->a, LAYOUT_PLAIN, in);
    CHECK(case_apply(c, &job->a, in, out) == 1, "%s: %s\n", case_text(&job->a),
          trn_errmsg(c));
    job->seed = (case_input){
        .dtype = trn_tensor_dtype(out[0]),
        .rank = trn_tensor_rank(out[0]),
        .n = trn_tensor_numel(out[0]),
    };
    for (int d = 0; d < job->seed.rank; d++)
        job->seed.dim[d] = trn_tensor_dim(out[0], d);
    trn_step_end(c);
    fill(&job->seed, &state);
}

/* The inputs that have gradients, one after the other; how many. */
static int leaves(const xla_job *job, trn_tensor **in, trn_tensor **some)
{
    int n = 0;
    for (int i = 0; i < job->a.n_in; i++) {
        if (job->a.in[i].kind != KIND_VALUES)
            continue;
        trn_set_requires_grad(in[i], true);
        some[n++] = in[i];
    }
    return n;
}

/* S, NULL if no first gradient depends on anything. */
static trn_tensor *weighted_sum(trn_context *c, const xla_job *job,
                                trn_tensor **g)
{
    trn_tensor *sum = NULL;
    for (int i = 0, k = 0; i < job->a.n_in; i++) {
        if (job->a.in[i].kind != KIND_VALUES)
            continue;
        trn_tensor *gradient = g[k++];
        if (gradient == NULL)
            continue;
        trn_tensor *w = case_tensor(c, &job->weight[i], LAYOUT_PLAIN);
        trn_tensor *part = trn_sum(trn_mul(gradient, w), TRN_ALL_AXES, false);
        sum = sum == NULL ? part : trn_add(sum, part);
    }
    return sum;
}

int xla_gradient_build(trn_context *c, const xla_job *job, trn_tensor **out)
{
    trn_tensor *in[CASE_MAX_IN], *y[CASE_MAX_OUT], *some[CASE_MAX_IN + 1];
    trn_grad_options o = TRN_GRAD_INIT;
    case_tensors(c, &job->a, LAYOUT_AS_GIVEN, in);
    int n = leaves(job, in, some);
    trn_tensor *seed = case_tensor(c, &job->seed, LAYOUT_PLAIN);
    trn_set_requires_grad(seed, true);
    if (case_apply(c, &job->a, in, y) != 1)
        return 0;
    o.create_graph = true;
    if (trn_grad(1, y, n, some, &seed, &o, out) != TRN_OK)
        return 0;
    trn_tensor *s = weighted_sum(c, job, out);
    if (s == NULL)
        return n;
    some[n] = seed;
    o = (trn_grad_options)TRN_GRAD_INIT;
    if (trn_grad(1, &s, n + 1, some, NULL, &o, out + n) != TRN_OK)
        return 0;
    return 2 * n + 1;
}
