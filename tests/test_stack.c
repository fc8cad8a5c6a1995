/* SPDX-License-Identifier: Apache-2.0
 *
 * What docs/threads.md says of stacks: a thread of 256 KiB can call everything.
 *
 * The thread asserts nothing, since a failing assertion jumps; it tells what it
 * found, and the test looks at that.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdio.h>

#include "tests/harness.h"

/* AddressSanitizer puts space around each variable. */
#ifdef __SANITIZE_ADDRESS__
#define STACK (1024 * 1024)
#else
#define STACK (256 * 1024)
#endif
enum { WIDTH = 40, HIDDEN = 300, BATCH = 16, CLASSES = 10, STEPS = 4 };

typedef struct job {
    trn_exec exec;
    trn_status status;
    char said[256];
    double first, last;
} job;

static void train(trn_context *c, job *j)
{
    const int64_t shape[] = {BATCH, WIDTH}, rows[] = {BATCH};
    trn_tensor *x = trn_normal(trn_generator_default(c), TRN_F32, 2, shape);
    trn_tensor *y =
        trn_randint(trn_generator_default(c), TRN_I32, 0, CLASSES, 1, rows);
    trn_module *net = trn_nn_sequential(
        c, trn_nn_linear(c, WIDTH, HIDDEN), trn_nn_relu(c),
        trn_nn_dropout(c, 0.1), trn_nn_linear(c, HIDDEN, CLASSES), NULL);
    trn_optim *optim = trn_optim_adamw(net, NULL);
    for (int i = 0; i < STEPS; i++) {
        trn_step_begin(c);
        trn_backward(trn_cross_entropy(trn_nn_forward(net, x), y, NULL));
        trn_optim_clip_norm(optim, 1.0);
        trn_optim_step(optim);
        trn_step_end(c);
        j->last = trn_step_loss(c);
        j->first = i == 0 ? j->last : j->first;
    }
}

/* Products by one thread, by all, of a batch, with gradients; sums, selections,
 * random numbers; in each float type. */
static void others(trn_context *c)
{
    static const trn_dtype dtypes[] = {TRN_F32, TRN_F64, TRN_BF16, TRN_F16};
    trn_generator *g = trn_generator_default(c);
    for (int i = 0; i < 4; i++) {
        const int64_t small[] = {3, 20, 20}, large[] = {130, 310};
        trn_step_begin(c);
        trn_tensor *a = trn_normal(g, dtypes[i], 3, small);
        trn_tensor *b = trn_normal(g, dtypes[i], 2, large);
        trn_set_requires_grad(a, true);
        trn_set_requires_grad(b, true);
        trn_tensor *p = trn_matmul(a, a);
        trn_tensor *q = trn_matmul(b, trn_transpose(b, 0, 1));
        p = trn_var(trn_softmax(p, -1), TRN_ALL_AXES, false, 0);
        q = trn_norm(trn_tanh(trn_max(q, 1u << 1, false)), TRN_ALL_AXES, false);
        trn_backward(trn_add(p, q));
        trn_step_end(c);
        trn_tensor_release(trn_permutation(g, TRN_I32, 5000));
    }
}

static void *run(void *arg)
{
    job *j = arg;
    trn_context *c = NULL;
    trn_options o = TRN_OPTIONS_INIT;
    o.device = "cpu";
    o.n_threads = 2;
    o.exec = (uint32_t)j->exec;
    if (trn_open(&c, &o) == TRN_OK) {
        train(c, j);
        others(c);
    }
    j->status = trn_errcode(c);
    snprintf(j->said, sizeof j->said, "%s", trn_errmsg(c));
    trn_close(c);
    return NULL;
}

static void in_a_thread_of_256_kib(trn_exec exec)
{
    job j = {.exec = exec, .status = TRN_ERR_ARG};
    pthread_attr_t attr;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, STACK), 0);
    assert_int_equal(pthread_create(&thread, &attr, run, &j), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    if (j.status != TRN_OK)
        fail_msg("%s", j.said);
    assert_true(j.last < j.first);
}

static void eager_steps_fit_a_small_stack(void **state)
{
    (void)state;
    in_a_thread_of_256_kib(TRN_EXEC_EAGER);
}

static void captured_steps_fit_a_small_stack(void **state)
{
    (void)state;
    in_a_thread_of_256_kib(TRN_EXEC_CAPTURED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eager_steps_fit_a_small_stack),
        cmocka_unit_test(captured_steps_fit_a_small_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
