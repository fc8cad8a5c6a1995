/* SPDX-License-Identifier: Apache-2.0
 *
 * Captured steps give what eager ones give: parameters, kept tensors, values
 * read inside an open step, accumulated gradients, the demo's digest.
 */
#define _GNU_SOURCE /* readlink, popen */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "captured.h"

static void training_gives_equal_digests(void **state)
{
    (void)state;
    char digest[N_WAYS][65];
    double loss[N_WAYS];
    for (int way = 0; way < N_WAYS; way++) {
        trn_context *c = captured_open(way, NULL);
        captured_net m = captured_build(c, 20, 6);
        assert_true(captured_train_steps(&m, 25));
        loss[way] = trn_step_loss(c);
        captured_digest(m.net, digest[way]);
        assert_int_equal(captured_info(c).fallbacks, 0);
        captured_close(c);
    }
    assert_string_equal(digest[EAGER], digest[CAPTURED]);
    assert_string_equal(digest[EAGER], digest[LOOP]);
    assert_true(loss[EAGER] == loss[CAPTURED] && loss[EAGER] == loss[LOOP]);
}

/* ---- the demo ---- */

/* The demo's last line under an environment; false if there is no demo. */
static bool demo_digest(const char *environment, char out[65])
{
    char path[4096], command[4400], line[512];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 40);
    assert_true(n > 0);
    path[n] = '\0';
    *strrchr(path, '/') = '\0';
    char *end = strrchr(path, '/');
    snprintf(end, sizeof path - (size_t)(end - path), "%s", "/examples/demo");
    if (access(path, X_OK) != 0 ||
        access("/usr/share/common-licenses/GPL-3", R_OK) != 0)
        return false;
    snprintf(command, sizeof command,
             "env -u TRN_DEVICE -u TRN_EXEC %s '%s' --steps 60 2>&1",
             environment, path);
    FILE *demo = popen(command, "r");
    assert_non_null(demo);
    out[0] = '\0';
    while (fgets(line, sizeof line, demo) != NULL) {
        if (strncmp(line, "demo:", 5) == 0)
            print_error("%s: %s", environment, line);
        if (strlen(line) > 66 && strcmp(line + 64, "  parameters\n") == 0)
            snprintf(out, 65, "%.64s", line);
    }
    CHECK(pclose(demo) == 0 && out[0] != '\0', "%s failed\n", environment);
    return true;
}

static void demo_prints_one_digest_however_it_runs(void **state)
{
    (void)state;
    char eager[65], other[65];
    static const char *const ways[] = {
        "TRN_EXEC=captured TRN_EARLY_READ=refuse",
        "TRN_DEVICE=loop TRN_EARLY_READ=refuse",
        "TRN_DEVICE=loop:strict TRN_EARLY_READ=refuse",
    };
    if (!demo_digest("TRN_EXEC=eager", eager)) {
        print_message("no demo, or no licence texts to learn from\n");
        skip();
    }
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        demo_digest(ways[i], other);
        CHECK(strcmp(eager, other) == 0, "%s: %s\n", ways[i], other);
    }
}

/* ---- reading inside a step ---- */

static void a_value_read_early_is_right_and_counted(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        trn_context *c = captured_open(way, NULL);
        trn_tensor *x = trn_full(c, TRN_F32, 1, (int64_t[]){3}, 2.0);
        for (int step = 0; step < 3; step++) {
            trn_step_begin(c);
            trn_tensor *y = trn_mul_scalar(x, step + 1);
            harness_equal(y, 3, 2.0 * (step + 1), 2.0 * (step + 1),
                          2.0 * (step + 1));
            trn_tensor *z = trn_sum(trn_mul(y, y), TRN_ALL_AXES, false);
            assert_true(trn_tensor_item(z) == 12.0 * (step + 1) * (step + 1));
            harness_equal(y, 3, 2.0 * (step + 1), 2.0 * (step + 1),
                          2.0 * (step + 1));
            trn_tensor_read(x, (float[3]){0}, 12); /* not of the step */
            trn_keep(z);
            trn_step_end(c);
            assert_true(trn_tensor_item(z) == 12.0 * (step + 1) * (step + 1));
        }
        harness_ok(c);
        trn_capture_info i = captured_info(c); /* 3 + 1 + 3 elements a step */
        assert_int_equal(i.early_reads, way == EAGER ? 0 : 21);
        captured_close(c);
    }
}

static void
parameters_read_in_a_step_are_old_before_the_update_new_after(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        trn_context *c = captured_open(way, NULL);
        trn_module *m = trn_nn_linear_no_bias(c, 1, 1);
        trn_tensor *w = trn_nn_parameter(m, "weight");
        trn_tensor_write(w, (float[1]){4}, 4);
        trn_sgd_options o = TRN_SGD_INIT;
        o.learning_rate = 0.5;
        trn_optim *optim = trn_optim_sgd(m, &o);
        trn_tensor *x = trn_full(c, TRN_F32, 2, (int64_t[]){1, 1}, 3.0);
        for (int step = 0; step < 3; step++) {
            double before = 4 - 1.5 * step;
            trn_step_begin(c);
            trn_tensor *y = trn_nn_forward(m, x);
            trn_backward(trn_sum(y, TRN_ALL_AXES, false));
            harness_equal(trn_grad_of(w), 1, 3.0);
            harness_equal(w, 1, before);
            trn_optim_step(optim);
            harness_equal(w, 1, before - 1.5);
            harness_equal(y, 1, 3 * before);
            trn_step_end(c);
            harness_equal(w, 1, before - 1.5);
            assert_null(trn_grad_of(w));
        }
        harness_ok(c);
        captured_close(c);
    }
}

static void refused_early_reads_name_the_tensor(void **state)
{
    (void)state;
    for (int way = CAPTURED; way <= LOOP; way++) {
        trn_context *c;
        trn_options o = captured_options(way, NULL);
        o.refuse_early_read = true;
        assert_int_equal(trn_open(&c, &o), TRN_OK);
        captured_net m = captured_build(c, 24, 6);
        trn_step_begin(c);
        assert_true(isnan(trn_tensor_item(captured_loss(&m))));
        assert_int_equal(trn_step_end(c), TRN_ERR_STATE);
        CHECK(strstr(trn_errmsg(c), "f32[]") != NULL, "%s\n", trn_errmsg(c));
        trn_clear(c);
        assert_true(captured_train_steps(&m, 2));
        assert_true(trn_step_loss(c) > 0);
        assert_int_equal(captured_info(c).early_reads, 0);
        captured_close(c);
    }
}

/* ---- what outlives a step ---- */

static void
kept_and_retained_tensors_and_views_outlive_their_steps(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        trn_context *c = captured_open(way, NULL);
        trn_tensor *x = trn_tensor_from(c, TRN_F32, 2, (int64_t[]){2, 3},
                                        (float[]){1, 2, 3, 4, 5, 6});
        trn_tensor *kept[3], *retained[3], *view[3];
        for (int i = 0; i < 3; i++) {
            trn_step_begin(c);
            trn_tensor *y = trn_mul_scalar(x, i + 1);
            trn_tensor *z = trn_exp(trn_neg(y));
            kept[i] = trn_keep(trn_add_scalar(y, 1));
            retained[i] = trn_tensor_retain(trn_sum(y, TRN_AXIS(0), false));
            view[i] = trn_keep(trn_slice(trn_transpose(y, 0, 1), 0, 1, 3, 1));
            trn_keep(z);
            trn_tensor_release(z);
            trn_step_end(c);
        }
        for (int i = 0; i < 3; i++) {
            double k = i + 1;
            harness_equal(kept[i], 6, k + 1, 2 * k + 1, 3 * k + 1, 4 * k + 1,
                          5 * k + 1, 6 * k + 1);
            harness_equal(retained[i], 3, 5 * k, 7 * k, 9 * k);
            harness_equal(view[i], 4, 2 * k, 5 * k, 3 * k, 6 * k);
            trn_tensor_release(kept[i]);
            trn_tensor_release(retained[i]);
        }
        trn_tensor *sum = trn_add(view[0], view[2]);
        harness_equal(sum, 4, 8.0, 20.0, 12.0, 24.0);
        harness_ok(c);
        captured_close(c);
    }
}

static void a_kept_tensor_is_an_input_of_the_next_step(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        trn_context *c = captured_open(way, NULL);
        trn_tensor *x = trn_full(c, TRN_F32, 1, (int64_t[]){2}, 1.0);
        for (int i = 0; i < 6; i++) {
            trn_step_begin(c);
            trn_tensor *next = trn_keep(trn_mul_scalar(x, 2));
            trn_step_end(c);
            trn_tensor_release(x);
            x = next;
        }
        harness_equal(x, 2, 64.0, 64.0);
        if (way != EAGER)
            assert_int_equal(captured_info(c).matches, 5);
        captured_close(c);
    }
}

static void gradients_accumulate_over_micro_batches(void **state)
{
    (void)state;
    uint64_t result[N_WAYS];
    for (int way = 0; way < N_WAYS; way++) {
        trn_context *c = captured_open(way, NULL);
        captured_net m = captured_build(c, 24, 6);
        for (int i = 0; i < 10; i++) { /* ends with gradients waiting */
            trn_step_begin(c);
            trn_backward(trn_mul_scalar(captured_loss(&m), 0.25));
            if (i % 4 == 3)
                trn_optim_step(m.optim);
            trn_step_end(c);
        }
        harness_ok(c);
        assert_non_null(trn_grad_of(trn_nn_parameter_at(m.net, 0)));
        result[way] = captured_state(&m);
        captured_close(c);
    }
    assert_int_equal(result[EAGER], result[CAPTURED]);
    assert_int_equal(result[EAGER], result[LOOP]);
}

static void in_place_writes_in_a_step_are_seen_in_order(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        trn_context *c = captured_open(way, NULL);
        trn_tensor *x = trn_full(c, TRN_F32, 1, (int64_t[]){4}, 1.0);
        for (int i = 0; i < 3; i++) {
            trn_step_begin(c);
            trn_tensor *old = trn_keep(trn_mul_scalar(x, 10));
            trn_assign(x, trn_add_scalar(x, 1));
            trn_tensor *half = trn_slice(x, 0, 0, 2, 1);
            trn_assign(half, trn_mul_scalar(half, 2));
            trn_tensor *now = trn_keep(trn_copy(x));
            trn_step_end(c);
            double a = 3.0 * (1 << i) - 2, b = i + 1; /* a' = 2 (a + 1) */
            harness_equal(old, 4, 10 * a, 10 * a, 10 * b, 10 * b);
            harness_equal(now, 4, 2 * a + 2, 2 * a + 2, b + 1, b + 1);
            harness_equal(x, 4, 2 * a + 2, 2 * a + 2, b + 1, b + 1);
        }
        harness_ok(c);
        captured_close(c);
    }
}

/* ---- looking at it ---- */

static char printed[1 << 16];

static void put(void *user, const char *text)
{
    (void)user;
    size_t n = strlen(printed);
    snprintf(printed + n, sizeof printed - n, "%s", text);
}

static void a_captured_step_can_be_printed(void **state)
{
    (void)state;
    trn_context *c = captured_open(CAPTURED, NULL);
    assert_int_equal(trn_capture_print(c, true, false, put, NULL),
                     TRN_ERR_STATE);
    harness_error(c, TRN_ERR_STATE, "no step was captured");
    captured_net m = captured_build(c, 24, 6);
    assert_true(captured_train_steps(&m, 2));
    for (int i = 0; i < 4; i++) {
        printed[0] = '\0';
        assert_int_equal(
            trn_capture_print(c, (i & 1) != 0, (i & 2) != 0, put, NULL),
            TRN_OK);
        assert_non_null(strstr(printed, "matmul"));
        assert_non_null(strstr(printed, "embedding"));
        assert_int_equal(strncmp(printed, "digraph", 7) == 0, (i & 2) != 0);
    }
    assert_int_equal(trn_capture_print(c, true, false, NULL, NULL),
                     TRN_ERR_ARG);
    trn_clear(c);
    captured_close(c);
}

typedef struct hlo_text {
    uint64_t hash, bytes;
    bool module; /* it began with HloModule */
} hlo_text;

static void add(void *user, const char *text)
{
    hlo_text *h = user;
    h->module = h->module || strncmp(text, "HloModule", 9) == 0;
    for (; *text != '\0'; text++, h->bytes++)
        h->hash = (h->hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
}

static hlo_text hlo_of(trn_context *c, const char *profile)
{
    hlo_text h = {0, 0, false};
    assert_int_equal(trn_capture_print_hlo(c, profile, add, &h), TRN_OK);
    assert_true(h.module && h.bytes > 1000);
    return h;
}

static void a_captured_step_is_printed_as_hlo_on_every_device(void **state)
{
    (void)state;
    char digests[N_WAYS][65];
    hlo_text texts[N_WAYS][2];
    for (int way = CAPTURED; way < N_WAYS; way++) {
        trn_context *c = captured_open(way, NULL);
        captured_net m = captured_build(c, 24, 6);
        assert_true(captured_train_steps(&m, 2));
        trn_capture_info before = captured_info(c);
        texts[way][0] = hlo_of(c, "xla");
        texts[way][1] = hlo_of(c, "neuron");
        trn_step_begin(c); /* the last step is the one before */
        trn_tensor *loss = captured_loss(&m);
        assert_true(hlo_of(c, "xla").hash == texts[way][0].hash);
        trn_backward(loss);
        trn_optim_step(m.optim);
        assert_int_equal(trn_step_end(c), TRN_OK);
        assert_int_equal(captured_info(c).fallbacks, before.fallbacks);
        captured_digest(m.net, digests[way]);
        captured_close(c);
    }
    assert_string_equal(digests[CAPTURED], digests[LOOP]);
    for (int i = 0; i < 2; i++)
        assert_true(texts[CAPTURED][i].hash == texts[LOOP][i].hash);
}

static void what_cannot_be_printed_as_hlo_is_told(void **state)
{
    (void)state;
    hlo_text h = {0, 0, false};
    trn_context *c = captured_open(EAGER, NULL);
    assert_int_equal(trn_capture_print_hlo(c, "xla", add, &h), TRN_ERR_STATE);
    harness_error(c, TRN_ERR_STATE,
                  "trn_capture_print_hlo: no step was captured");
    captured_close(c);
    assert_int_equal(trn_capture_print_hlo(NULL, "xla", add, &h),
                     TRN_ERR_NOMEM);
    c = captured_open(CAPTURED, NULL);
    trn_step_begin(c);
    trn_keep(trn_exp(trn_full(c, TRN_F64, 0, NULL, 1.0)));
    trn_step_end(c);
    const char *const names[] = {"abacus", "", NULL};
    for (int i = 0; i < 3; i++) {
        trn_capture_print_hlo(c, names[i], add, &h);
        harness_error(c, TRN_ERR_ARG, "expected xla or neuron");
    }
    trn_capture_print_hlo(c, "xla", NULL, NULL);
    harness_error(c, TRN_ERR_ARG, "put is NULL");
    trn_capture_print_hlo(c, "neuron", add, &h); /* has no f64 */
    harness_error(c, TRN_ERR_UNSUPPORTED,
                  "device hlo:neuron does not have it for these types");
    assert_int_equal(h.bytes, 0);
    assert_int_equal(trn_capture_print_hlo(c, "xla", add, &h), TRN_OK);
    captured_close(c);
}

static void printing_as_hlo_without_memory_leaves_nothing_behind(void **state)
{
    (void)state;
    trn_context *c = captured_open(CAPTURED, NULL);
    captured_net m = captured_build(c, 24, 6);
    assert_true(captured_train_steps(&m, 2));
    for (int64_t n = 1;; n++) {
        hlo_text h = {0, 0, false};
        assert_int_equal(trn_memory_trim(c), TRN_OK);
        captured_fail_at(n, true);
        trn_status status = trn_capture_print_hlo(c, "xla", add, &h);
        bool failed = captured_failed();
        captured_fail_at(0, false);
        assert_int_equal(status, failed ? TRN_ERR_NOMEM : TRN_OK);
        if (!failed)
            break;
        trn_clear(c);
    }
    assert_true(captured_train_steps(&m, 2));
    captured_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_gives_equal_digests),
        cmocka_unit_test(demo_prints_one_digest_however_it_runs),
        cmocka_unit_test(a_value_read_early_is_right_and_counted),
        cmocka_unit_test(
            parameters_read_in_a_step_are_old_before_the_update_new_after),
        cmocka_unit_test(refused_early_reads_name_the_tensor),
        cmocka_unit_test(
            kept_and_retained_tensors_and_views_outlive_their_steps),
        cmocka_unit_test(a_kept_tensor_is_an_input_of_the_next_step),
        cmocka_unit_test(gradients_accumulate_over_micro_batches),
        cmocka_unit_test(in_place_writes_in_a_step_are_seen_in_order),
        cmocka_unit_test(a_captured_step_can_be_printed),
        cmocka_unit_test(a_captured_step_is_printed_as_hlo_on_every_device),
        cmocka_unit_test(what_cannot_be_printed_as_hlo_is_told),
        cmocka_unit_test(printing_as_hlo_without_memory_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
