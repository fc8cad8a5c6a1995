/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules lowered for the Neuron compiler, of every case, of its gradients and
 * of the models' steps, hold nothing that it is not known to take.  No plug-in
 * is needed for that.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/xla/xla_gradients.h"
#include "tests/xla/xla_model.h"
#include "tests/xla/xla_neuron.h"
#include "tests/xla/xla_values.h"

static const trn_dtype stored[] = {TRN_F32, TRN_BF16, TRN_F16, TRN_I32,
                                   TRN_U32, TRN_U8,   TRN_BOOL};

/* Is the last step of c taken, as a module for Neuron? */
static bool is_taken(trn_context *c, const char *what)
{
    char why[600];
    bool good = xla_neuron_takes_step(c, why, sizeof why);
    if (!good)
        print_error("%s: %s\n", what, why);
    return good;
}

static trn_context *open_captured(void)
{
    trn_context *c;
    trn_options o = TRN_OPTIONS_INIT;
    o.device = "cpu";
    o.exec = TRN_EXEC_CAPTURED;
    assert_int_equal(trn_open(&c, &o), TRN_OK);
    return c;
}

/* A step with the outputs of one case. */
static bool case_is_taken(trn_context *c, const xla_job *job,
                          int (*build)(trn_context *, const xla_job *,
                                       trn_tensor **))
{
    trn_tensor *out[XLA_MAX_OUT] = {NULL};
    trn_step_begin(c);
    int n = build(c, job, out);
    CHECK(n > 0, "%s: %s\n", case_text(&job->a), trn_errmsg(c));
    for (int i = 0; i < n; i++) {
        bool again = out[i] == NULL;
        for (int k = 0; k < i; k++)
            again = again || out[k] == out[i];
        if (again)
            out[i] = NULL;
        else
            trn_keep(out[i]);
    }
    trn_step_end(c);
    bool good = is_taken(c, case_text(&job->a));
    for (int i = 0; i < n; i++)
        trn_tensor_release(out[i]);
    harness_ok(c);
    return good;
}

static void free_job(xla_job *job)
{
    for (int i = 0; i < job->a.n_in; i++)
        free(job->weight[i].v);
    free(job->seed.v);
    case_free(&job->a);
}

static void modules_of_values_hold_nothing_else(void **state)
{
    int n = 0, refused = 0;
    (void)state;
    trn_context *c = open_captured();
    for (int i = 0; i < n_op_cases * 7; i++) {
        const op_case *tc = &op_cases[i / 7];
        xla_job job = {0};
        if (!case_takes(tc->op, stored[i % 7]))
            continue;
        case_make(&job.a, tc, stored[i % 7]);
        if (!xla_is_wide(&job.a)) {
            refused += !case_is_taken(c, &job, xla_value_build);
            n++;
        }
        free_job(&job);
    }
    assert_int_equal(trn_close(c), TRN_OK);
    CHECK(refused == 0 && n > 500, "%d of %d cases\n", refused, n);
}

static void modules_of_gradients_hold_nothing_else(void **state)
{
    int n = 0, refused = 0;
    (void)state;
    trn_context *c = open_captured();
    for (int i = 0; i < n_op_cases * 3; i++) {
        const op_case *tc = &op_cases[i / 3];
        xla_job job = {0};
        if (!xla_has_gradients(tc))
            continue;
        case_make(&job.a, tc, stored[i % 3]);
        if (!xla_is_wide(&job.a)) {
            xla_gradient_draw(c, &job);
            refused += !case_is_taken(c, &job, xla_gradient_build);
            n++;
        }
        free_job(&job);
    }
    assert_int_equal(trn_close(c), TRN_OK);
    CHECK(refused == 0 && n > 500, "%d of %d cases\n", refused, n);
}

static void modules_of_steps_hold_nothing_else(void **state)
{
    (void)state;
    for (int kind = 0; kind < XLA_MODEL_KINDS; kind++) {
        xla_model m;
        trn_context *c = open_captured();
        xla_model_build(&m, c, (xla_model_kind)kind, TRN_F32);
        trn_batch b = xla_model_batch(&m);
        xla_model_step(&m, &b);
        assert_true(is_taken(c, xla_model_names[kind]));
        assert_int_equal(trn_close(c), TRN_OK);
    }
}

int main(int argc, char **argv)
{
    static const xla_test tests[] = {
        XLA_TEST_ANYWHERE(modules_of_values_hold_nothing_else),
        XLA_TEST_ANYWHERE(modules_of_gradients_hold_nothing_else),
        XLA_TEST_ANYWHERE(modules_of_steps_hold_nothing_else),
    };
    return xla_main(argc, argv, (int)(sizeof tests / sizeof tests[0]), tests);
}
