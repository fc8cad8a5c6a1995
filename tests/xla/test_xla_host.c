/* SPDX-License-Identifier: Apache-2.0
 *
 * What the program around us has set must not reach the plug-in: modes of the
 * floating-point unit, and a small stack.
 */
#include <fenv.h>
#include <pthread.h>

#include "tests/xla/xla_batch.h"

/* Some steps from the making of the client on; the digest of the model. */
static void train(char digest[65])
{
    trn_context *c = xla_open(xla_device());
    trn_module *net = trn_nn_sequential(
        c, trn_nn_linear(c, 8, 16), trn_nn_tanh(c), trn_nn_dropout(c, 0.25),
        trn_nn_linear(c, 16, 3), (trn_module *)NULL);
    trn_optim *optim = trn_optim_adamw(net, NULL);
    trn_tensor *x =
        trn_normal(trn_generator_default(c), TRN_F32, 2, (int64_t[]){32, 8});
    for (int i = 0; i < 50; i++) {
        trn_step_begin(c);
        trn_tensor *y = trn_nn_forward(net, x);
        trn_backward(trn_mean(trn_mul(y, y), TRN_ALL_AXES, false));
        trn_optim_clip_norm(optim, 1.0);
        trn_optim_step(optim);
        trn_step_end(c);
    }
    trn_digest(net, digest);
    harness_ok(c);
    harness_close(c);
}

/* Threads that the plug-in starts take over the modes of who starts them, and
 * its compiler computes constants. */
static void rounding_of_the_program_changes_no_bits(void **state)
{
    static const int modes[] = {FE_DOWNWARD, FE_TOWARDZERO, FE_UPWARD};
    char want[65], got[65];
    (void)state;
    train(want);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fesetround(modes[i]), 0);
        train(got);
        int after = fegetround();
        fesetround(FE_TONEAREST);
        assert_int_equal(after, modes[i]);
        CHECK(strcmp(got, want) == 0, "mode %d: other bits\n", i);
    }
}

static void *train_in_thread(void *digest)
{
    train(digest);
    return NULL;
}

/* The plug-in's compiler needs more than this. */
static void a_thread_with_a_small_stack_trains(void **state)
{
    char want[65], got[65] = "";
    pthread_t thread;
    pthread_attr_t attr;
    (void)state;
    train(want);
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, 64 * 1024), 0);
    assert_int_equal(pthread_create(&thread, &attr, train_in_thread, got), 0);
    pthread_attr_destroy(&attr);
    pthread_join(thread, NULL);
    assert_string_equal(got, want);
}

int main(int argc, char **argv)
{
    static const xla_test tests[] = {
        XLA_TEST(rounding_of_the_program_changes_no_bits),
        XLA_TEST(a_thread_with_a_small_stack_trains),
    };
    return xla_main(argc, argv, (int)(sizeof tests / sizeof tests[0]), tests);
}
