/* SPDX-License-Identifier: Apache-2.0
 *
 * The demo itself, as a user runs it, with TRN_DEVICE and nothing else changed:
 * the losses of its first 100 steps, all of them in the warm-up of its
 * schedule, are those of the CPU.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/xla/xla_batch.h"

enum { N_STEPS = 100, LONGEST = 4600 };

/* Where the demo of this very build is; false: it is not there, or the texts
 * that it learns from are not. */
static bool find_demo(char path[LONGEST])
{
    char program[4096];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    assert_true(n > 0);
    program[n] = '\0';
    char *folder = strstr(program, "/tests/xla/");
    assert_non_null(folder);
    *folder = '\0';
    snprintf(path, LONGEST, "%s/examples/demo", program);
    return access(path, X_OK) == 0 &&
           access("/usr/share/common-licenses/MPL-1.1", R_OK) == 0;
}

static void read_losses(const char *path, double losses[N_STEPS])
{
    FILE *f = fopen(path, "r");
    int n = 0;
    assert_non_null(f);
    while (n < N_STEPS && fscanf(f, "%lf", &losses[n]) == 1)
        n++;
    fclose(f);
    assert_int_equal(n, N_STEPS);
}

static void run_demo(const char *demo, const char *device, const char *dtype,
                     double losses[N_STEPS])
{
    static char command[3 * LONGEST];
    char file[] = "/tmp/trn-losses-XXXXXX";
    int fd = mkstemp(file);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(setenv("TRN_DEVICE", device, 1), 0);
    snprintf(command, sizeof command,
             "'%s' --dtype %s --steps %d --sample 0 --held-out 1024 "
             "--losses %s >%s.out 2>&1; status=$?; "
             "[ $status = 0 ] || cat %s.out; rm -f %s.out; exit $status",
             demo, dtype, N_STEPS, file, file, file, file);
    xla_running("the demo in %s on %s", dtype, device);
    int status = system(command);
    if (status == 0)
        read_losses(file, losses);
    remove(file);
    CHECK(status == 0, "on %s: status %d\n", device, status);
}

static void judge(const char *dtype, double allowed)
{
    double want[N_STEPS], got[N_STEPS], worst = 0;
    char demo[LONGEST];
    if (!find_demo(demo)) {
        xla_running("no demo, or no licence texts to learn from");
        skip();
    }
    run_demo(demo, "cpu", dtype, want);
    run_demo(demo, xla_device(), dtype, got);
    for (int i = 0; i < N_STEPS; i++) {
        double off = fabs(got[i] - want[i]) / want[i];
        worst = fmax(worst, off);
        CHECK(off <= allowed, "step %d: the loss is %.17g, expected %.17g\n",
              i + 1, got[i], want[i]);
    }
    CHECK(want[N_STEPS - 1] < 0.8 * want[0],
          "from %g to %g: it does not learn\n", want[0], want[N_STEPS - 1]);
    print_message("%s: worst of %d losses %.3g, from %.4f to %.4f\n", dtype,
                  N_STEPS, worst, want[0], want[N_STEPS - 1]);
}

static void the_demo_trains_as_on_the_cpu_in_f32(void **state)
{
    (void)state;
    judge("f32", xla_is_exact() ? 0 : 2e-6);
}

static void the_demo_trains_as_on_the_cpu_in_f64(void **state)
{
    (void)state;
    judge("f64", xla_is_exact() ? 0 : 1e-11);
}

int main(int argc, char **argv)
{
    static const xla_test tests[] = {
        XLA_TEST(the_demo_trains_as_on_the_cpu_in_f32),
        XLA_TEST(the_demo_trains_as_on_the_cpu_in_f64),
    };
    return xla_main(argc, argv, (int)(sizeof tests / sizeof tests[0]), tests);
}
