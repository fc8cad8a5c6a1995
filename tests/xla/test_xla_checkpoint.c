/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints and XLA: a run begins on the CPU device, goes on by XLA and ends
 * on the CPU, with the losses of a run on the CPU as near as docs/xla.md says.
 */
#include <math.h>
#include <stdlib.h>

#include "tests/checkpoint_help.h"
#include "tests/training.h"
#include "tests/xla/xla_batch.h"

enum { FIRST = 15, SECOND = 37, N_STEPS = 60 };

static training begin(trn_dtype dtype, const char *device)
{
    training_plan p = {
        .way = device == NULL ? EAGER : LOOP, .device = device, .dtype = dtype};
    return training_begin(&p);
}

static void must(bool good, training *t)
{
    CHECK(good, "%s\n", trn_errmsg(t->c));
}

static void needs_hdf5(void)
{
    if (checkpoint_possible())
        return;
    xla_running("this build has no HDF5");
    skip();
}

static void read_losses(training *t, double log[TRAINING_LOG])
{
    size_t n = TRAINING_LOG * sizeof log[0];
    must(trn_tensor_read(t->losses, log, n) == TRN_OK, t);
}

/* From the file, if there is one, to a step, and into the file. */
static void run_a_part(trn_dtype dtype, const char *device, const char *path,
                       int to, double log[TRAINING_LOG])
{
    training t = begin(dtype, device);
    xla_running("%s to step %d on %s", trn_dtype_name(dtype), to,
                device == NULL ? "the CPU" : device);
    if (path != NULL && to != FIRST)
        must(trn_checkpoint_load(t.k, path) == TRN_OK, &t);
    must(training_until(&t, to), &t);
    if (path != NULL)
        must(trn_checkpoint_save(t.k, path) == TRN_OK, &t);
    read_losses(&t, log);
    training_end(&t);
}

static void go_there_and_back(trn_dtype dtype, double most)
{
    static double whole[TRAINING_LOG], parts[TRAINING_LOG];
    const char *path = checkpoint_path("there.h5");
    double seen = 0;
    run_a_part(dtype, NULL, NULL, N_STEPS, whole);
    run_a_part(dtype, NULL, path, FIRST, parts);
    run_a_part(dtype, xla_device(), path, SECOND, parts);
    run_a_part(dtype, NULL, path, N_STEPS, parts);
    assert_memory_equal(whole, parts, FIRST * sizeof whole[0]);
    for (int i = 0; i < N_STEPS; i++) {
        double off = fabs(parts[i] - whole[i]) / whole[i];
        seen = fmax(seen, off);
        CHECK(off <= most, "step %d: the loss is %.17g, expected %.17g\n", i,
              parts[i], whole[i]);
    }
    if (xla_verbose())
        print_message("%s: losses are off by %.3g at most\n",
                      trn_dtype_name(dtype), seen);
}

static void a_run_goes_to_xla_and_back_in_f32(void **state)
{
    (void)state;
    needs_hdf5();
    go_there_and_back(TRN_F32, xla_is_exact() ? 0.0 : 2e-6);
}

static void a_run_goes_to_xla_and_back_in_f64(void **state)
{
    (void)state;
    needs_hdf5();
    go_there_and_back(TRN_F64, xla_is_exact() ? 0.0 : 1e-11);
}

/* What was loaded is what is saved, wherever. */
static void a_file_is_the_same_after_a_visit(void **state)
{
    (void)state;
    static const trn_dtype dtypes[] = {TRN_F32, TRN_F64, TRN_BF16};
    needs_hdf5();
    for (int i = 0; i < 3; i++) {
        static double log[TRAINING_LOG];
        const char *path = checkpoint_path("visit.h5");
        size_t n, n_again;
        run_a_part(dtypes[i], NULL, path, FIRST, log);
        char *file = checkpoint_bytes(path, &n);
        training t = begin(dtypes[i], xla_device());
        must(trn_checkpoint_load(t.k, path) == TRN_OK, &t);
        must(trn_checkpoint_save(t.k, path) == TRN_OK, &t);
        training_end(&t);
        char *again = checkpoint_bytes(path, &n_again);
        assert_int_equal(n_again, n);
        assert_memory_equal(again, file, n);
        free(file);
        free(again);
    }
}

int main(int argc, char **argv)
{
    static const xla_test tests[] = {
        XLA_TEST(a_run_goes_to_xla_and_back_in_f32),
        XLA_TEST(a_run_goes_to_xla_and_back_in_f64),
        XLA_TEST(a_file_is_the_same_after_a_visit),
    };
    return xla_main(argc, argv, (int)(sizeof tests / sizeof tests[0]), tests);
}
