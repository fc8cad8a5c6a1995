/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices in shared objects: old, smaller and larger tables load and train with
 * the bits of the CPU device; what is broken is refused with its own message.
 */
#define _GNU_SOURCE /* readlink */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "tests/cut_copy.h"
#include "libtrn/context/context.h"

/* "plugin:<folder of this program>/plugins/<file>" */
static const char *plugin(const char *file)
{
    static char text[4400];
    char program[4096];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    assert_true(n > 0);
    program[n] = '\0';
    *strrchr(program, '/') = '\0';
    snprintf(text, sizeof text, "plugin:%s/plugins/%s", program, file);
    return text;
}

static char seen[4096]; /* the last line */
static int n_warnings;

static void keep_line(void *user, trn_log_level level, const char *text)
{
    (void)user;
    n_warnings += level == TRN_LOG_WARNING;
    snprintf(seen, sizeof seen, "%s", text);
}

static trn_status open_on(trn_context **c, const char *device)
{
    trn_options o = TRN_OPTIONS_INIT;
    o.device = device;
    o.n_threads = 2;
    o.log = keep_line;
    seen[0] = '\0';
    return trn_open(c, &o);
}

#define N 12

/* A few steps of a small network; its losses into `losses`. */
static void train(trn_context *c, double *losses, int n_steps)
{
    float x[N * 3];
    int32_t y[N];
    for (int i = 0; i < N * 3; i++)
        x[i] = (float)(i % 7) * 0.25f - 0.5f;
    for (int i = 0; i < N; i++)
        y[i] = i % 4;
    trn_tensor *inputs = trn_tensor_from(c, TRN_F32, 2, (int64_t[]){N, 3}, x);
    trn_tensor *targets = trn_tensor_from(c, TRN_I32, 1, (int64_t[]){N}, y);
    trn_module *net = trn_nn_sequential(
        c, trn_nn_linear(c, 3, 5), trn_nn_tanh(c), trn_nn_dropout(c, 0.25),
        trn_nn_linear(c, 5, 4), (trn_module *)NULL);
    trn_adamw_options o = TRN_ADAMW_INIT;
    o.learning_rate = 0.05;
    trn_optim *optim = trn_optim_adamw(net, &o);
    for (int i = 0; i < n_steps; i++) {
        trn_step_begin(c);
        trn_backward(
            trn_cross_entropy(trn_nn_forward(net, inputs), targets, NULL));
        trn_optim_step(optim);
        trn_step_end(c);
        losses[i] = trn_step_loss(c);
    }
    harness_ok(c);
}

static void check_trains(const char *device, const char *name)
{
    enum { N_STEPS = 5 };
    double here[N_STEPS], there[N_STEPS];
    trn_context *c;
    assert_int_equal(open_on(&c, "cpu"), TRN_OK);
    train(c, here, N_STEPS);
    assert_int_equal(trn_close(c), TRN_OK);
    for (int round = 0; round < 2; round++) { /* loaded, and found again */
        CHECK(open_on(&c, device) == TRN_OK, "%s\n", trn_errmsg(c));
        assert_string_equal(trn_device_name(c), name);
        assert_false(trn_reproducible(c)); /* it has never said so */
        train(c, there, N_STEPS);
        assert_int_equal(trn_close(c), TRN_OK);
        assert_memory_equal(here, there, sizeof here);
    }
    assert_true(here[N_STEPS - 1] < here[0]);
}

static void plugin_of_a_frozen_header_trains_as_the_cpu(void **state)
{
    (void)state;
    check_trains(plugin("old_plugin.so"), "old");
    assert_string_equal(seen, "");
}

static void plugin_with_a_smaller_table_trains_as_the_cpu(void **state)
{
    (void)state;
    check_trains(plugin("smaller_plugin.so"), "smaller");
}

static void
plugin_with_a_larger_table_trains_and_its_cap_is_logged(void **state)
{
    (void)state;
    check_trains(plugin("larger_plugin.so"), "larger");
    assert_non_null(strstr(seen, "device larger: capabilities 0x40000000"));
}

/* Ids from its op_limit on are composites: it gets what they are made of. */
static void plugin_without_the_updates_trains_as_the_cpu(void **state)
{
    (void)state;
    check_trains(plugin("limited_updates.so"), "limited");
}

/* A loss and its gradient; then a write, which is a primitive. */
static double loss_on(trn_context *c, double *gradient, trn_status *status)
{
    const float logits[3] = {0.5f, -1, 2};
    const int32_t y = 1;
    trn_tensor *target = trn_tensor_from(c, TRN_I32, 1, (int64_t[]){1}, &y);
    trn_tensor *x = trn_tensor_from(c, TRN_F32, 2, (int64_t[]){1, 3}, logits);
    trn_set_requires_grad(x, true);
    trn_tensor *loss = trn_cross_entropy(x, target, NULL);
    double value = trn_tensor_item(loss);
    trn_backward(loss);
    *gradient = trn_tensor_item(trn_norm(trn_grad_of(x), TRN_ALL_AXES, false));
    harness_ok(c);
    *status = trn_assign(trn_copy(trn_detach(x)), trn_detach(x));
    return value;
}

static void an_op_that_the_device_was_built_without_is_never_given(void **state)
{
    (void)state;
    trn_context *c;
    trn_status status;
    double slope, other_slope;
    assert_int_equal(open_on(&c, "cpu"), TRN_OK);
    double here = loss_on(c, &slope, &status);
    assert_int_equal(status, TRN_OK);
    trn_close(c);
    assert_int_equal(open_on(&c, plugin("limited_composites.so")), TRN_OK);
    assert_true(loss_on(c, &other_slope, &status) == here);
    assert_true(slope == other_slope);
    assert_int_equal(status, TRN_ERR_UNSUPPORTED); /* a primitive, by name */
    harness_error(c, TRN_ERR_UNSUPPORTED,
                  "assign: device limited does not have it");
    trn_close(c);
}

static void argument_reaches_the_device(void **state)
{
    (void)state;
    trn_context *c;
    assert_int_equal(open_on(&c, plugin("old_plugin.so:refuse")),
                     TRN_ERR_DEVICE);
    assert_non_null(strstr(trn_errmsg(c), "refused as asked for"));
    trn_close(c);
    assert_int_equal(open_on(&c, plugin("old_plugin.so:")), TRN_OK);
    assert_string_equal(trn_device_description(c), "built from version 1");
    trn_close(c);
}

static trn_status open_with(trn_context **c, const char *options)
{
    trn_options o = TRN_OPTIONS_INIT;
    o.device_options = options;
    return trn_open(c, &o);
}

static const char *option(const trn_context *c, const char *name)
{
    return c->services.option(c->services.host, name);
}

static void options_of_devices_are_asked_for_by_name(void **state)
{
    (void)state;
    trn_context *c;
    static char text[] = "pjrt_timeout=60;a.b-C_9=x=y, z;empty=";
    assert_int_equal(setenv("TRN_DEVICE_OPTIONS", "pjrt_timeout=7", 1), 0);
    assert_int_equal(open_with(&c, text), TRN_OK);
    memset(text, '?', sizeof text - 1); /* it was copied */
    assert_string_equal(option(c, "pjrt_timeout"), "60");
    assert_string_equal(option(c, "a.b-C_9"), "x=y, z");
    assert_string_equal(option(c, "empty"), "");
    assert_null(option(c, "pjrt_time"));
    assert_null(option(c, "60"));
    assert_null(option(c, ""));
    assert_string_equal(option(c, "cpu_isa"), c->cpu_isa);
    assert_int_equal(trn_close(c), TRN_OK);
    assert_int_equal(open_with(&c, ""), TRN_OK); /* wins over the variable */
    assert_null(option(c, "pjrt_timeout"));
    assert_int_equal(trn_close(c), TRN_OK);
    assert_int_equal(open_with(&c, NULL), TRN_OK);
    assert_string_equal(option(c, "pjrt_timeout"), "7");
    assert_int_equal(trn_close(c), TRN_OK);
    assert_int_equal(setenv("TRN_DEVICE_OPTIONS", "7", 1), 0);
    assert_int_equal(open_with(&c, NULL), TRN_ERR_ARG);
    assert_string_equal(trn_errmsg(c),
                        "trn_open: TRN_DEVICE_OPTIONS is \"7\": an option "
                        "does not begin with a name and '='; expected "
                        "name=value;name=value");
    trn_close(c);
    unsetenv("TRN_DEVICE_OPTIONS");
    assert_int_equal(open_with(&c, NULL), TRN_OK);
    assert_null(option(c, "pjrt_timeout"));
    assert_int_equal(trn_close(c), TRN_OK);
}

static int warnings_of(const char *device, const char *options)
{
    trn_options o = TRN_OPTIONS_INIT;
    trn_context *c;
    o.device = device;
    o.device_options = options;
    o.log = keep_line;
    n_warnings = 0;
    seen[0] = '\0';
    assert_int_equal(trn_open(&c, &o), TRN_OK);
    assert_int_equal(trn_close(c), TRN_OK);
    return n_warnings;
}

static void an_option_that_no_device_asks_for_is_warned_of(void **state)
{
    (void)state;
    assert_int_equal(warnings_of("cpu", "a=1;wanted=;b=2"), 3);
    assert_string_equal(seen, "trn_open: device cpu has not asked for the "
                              "option \"b\"");
    const char *asks = plugin("old_plugin.so:ask");
    assert_int_equal(warnings_of(asks, "want=3;wanted=1"), 1);
    assert_string_equal(seen, "trn_open: device old has not asked for the "
                              "option \"want\"");
    assert_int_equal(warnings_of(asks, "wanted=;"), 0);
    assert_int_equal(warnings_of(asks, ""), 0);
}

static void malformed_options_of_devices_are_refused(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"a", "does not begin with a name"},
        {"=1", "does not begin with a name"},
        {"a=1;b c=2", "does not begin with a name"},
        {"a=1;b", "does not begin with a name"},
        {"a=1;;b=2", "an option is empty"},
        {";", "an option is empty"},
        {"a=1;b=2;a=3", "an option comes twice"},
        {"a=;a=", "an option comes twice"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        trn_context *c;
        assert_int_equal(open_with(&c, texts[i][0]), TRN_ERR_ARG);
        CHECK(strstr(trn_errmsg(c), texts[i][1]) != NULL &&
                  strstr(trn_errmsg(c), texts[i][0]) != NULL,
              "%s: %s\n", texts[i][0], trn_errmsg(c));
        assert_int_equal(trn_close(c), TRN_ERR_ARG);
    }
    static const char *const good[] = {"a=1;", "a=b;ab=a", "b=1;1=b"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        trn_context *c;
        assert_int_equal(open_with(&c, good[i]), TRN_OK);
        assert_int_equal(trn_close(c), TRN_OK);
    }
}

static void check_refused(const char *device, trn_status status,
                          const char *part)
{
    trn_context *c;
    for (int round = 0; round < 2; round++) {
        CHECK(open_on(&c, device) == status, "%s: %s\n", device, trn_errmsg(c));
        CHECK(strstr(trn_errmsg(c), part) != NULL, "\"%s\" is not in \"%s\"\n",
              part, trn_errmsg(c));
        assert_int_equal(trn_close(c), status);
    }
}

static void broken_plugins_are_refused_each_with_its_reason(void **state)
{
    (void)state;
    check_refused(plugin("broken_no_entry.so"), TRN_ERR_FORMAT,
                  "does not export trn_plugin_backend");
    check_refused(plugin("broken_null.so"), TRN_ERR_FORMAT, "gave no table");
    check_refused(plugin("broken_small.so"), TRN_ERR_FORMAT,
                  "bytes; expected at least");
    check_refused(plugin("broken_version.so"), TRN_ERR_UNSUPPORTED,
                  "version 2, newer than this library; expected 1 to 1");
    check_refused(plugin("broken_older.so"), TRN_ERR_UNSUPPORTED,
                  "version 0, older than this library; expected 1 to 1");
    check_refused(plugin("broken_graph.so"), TRN_ERR_FORMAT,
                  "lacks the entry compile");
    check_refused(plugin("broken_write.so"), TRN_ERR_FORMAT,
                  "lacks the entry write");
}

static void what_is_no_plugin_is_refused_with_its_reason(void **state)
{
    (void)state;
    char name[] = "/tmp/trn-test-plugin-XXXXXX", device[80];
    int file = mkstemp(name);
    assert_true(file >= 0);
    assert_int_equal(write(file, "no ELF", 6), 6);
    close(file);
    snprintf(device, sizeof device, "plugin:%s", name);
    check_refused(device, TRN_ERR_FORMAT,
                  "is not a shared object that can be loaded");
    unlink(name);
    check_refused(device, TRN_ERR_IO, "no such file");
    assert_int_equal(mkfifo(name, 0600), 0); /* nobody writes to it */
    check_refused(device, TRN_ERR_FORMAT, "it is not a regular file");
    unlink(name);
    harness_cut_copy(plugin("old_plugin.so") + strlen("plugin:"), name);
    check_refused(device, TRN_ERR_FORMAT, "it is cut off");
    unlink(name);
    check_refused("plugin:", TRN_ERR_ARG, "names no file");
    check_refused("plugin:/", TRN_ERR_FORMAT, "is not a shared object");
    check_refused("plugins", TRN_ERR_UNSUPPORTED, "is not known");
}

static void loop_is_found_beside_the_program(void **state)
{
    (void)state;
    trn_context *c;
    CHECK(open_on(&c, "loop") == TRN_OK, "%s\n", trn_errmsg(c));
    assert_string_equal(trn_device_name(c), "loop");
    trn_close(c);
    check_refused("loop:stricter", TRN_ERR_ARG, "\"stricter\" makes no sense");
    check_refused("loop:queue=3", TRN_ERR_ARG, "makes no sense");
    check_refused("loop:fail=open@1", TRN_ERR_DEVICE, "open failed, as asked");
}

static void strict_loop_stores_no_f64_and_no_i64(void **state)
{
    (void)state;
    trn_context *c;
    double x = 1;
    assert_int_equal(open_on(&c, "loop:strict"), TRN_OK);
    assert_null(trn_tensor_from(c, TRN_F64, 0, NULL, &x));
    harness_error(c, TRN_ERR_DTYPE, "f64");
    assert_null(trn_tensor_zeros(c, TRN_I64, 1, (int64_t[]){2}));
    harness_error(c, TRN_ERR_DTYPE, "i64");
    trn_close(c);
    assert_int_equal(open_on(&c, "loop"), TRN_OK);
    assert_non_null(trn_tensor_from(c, TRN_F64, 0, NULL, &x));
    assert_int_equal(trn_close(c), TRN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plugin_of_a_frozen_header_trains_as_the_cpu),
        cmocka_unit_test(plugin_with_a_smaller_table_trains_as_the_cpu),
        cmocka_unit_test(
            plugin_with_a_larger_table_trains_and_its_cap_is_logged),
        cmocka_unit_test(plugin_without_the_updates_trains_as_the_cpu),
        cmocka_unit_test(
            an_op_that_the_device_was_built_without_is_never_given),
        cmocka_unit_test(argument_reaches_the_device),
        cmocka_unit_test(an_option_that_no_device_asks_for_is_warned_of),
        cmocka_unit_test(options_of_devices_are_asked_for_by_name),
        cmocka_unit_test(malformed_options_of_devices_are_refused),
        cmocka_unit_test(broken_plugins_are_refused_each_with_its_reason),
        cmocka_unit_test(what_is_no_plugin_is_refused_with_its_reason),
        cmocka_unit_test(loop_is_found_beside_the_program),
        cmocka_unit_test(strict_loop_stores_no_f64_and_no_i64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
