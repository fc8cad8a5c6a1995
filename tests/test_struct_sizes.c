/* SPDX-License-Identifier: Apache-2.0
 *
 * Structs that start with their size, from callers older and newer than the
 * library: a longer one is accepted and its tail left alone, one shorter than
 * the first version is refused with a message, and what a short one lacks keeps
 * its default.
 */
#include <stdio.h>

#include "loop_host.h"
#include "libtrn/context/struct_size.h"
#include "libtrn/dispatch/host.h"

extern const trn_backend trn__cpu_backend; /* backends/cpu */

/* A struct of a newer header: 8 bytes more, which nobody here may look at. */
#define LONGER(type, name, ...)                                \
    struct {                                                   \
        type known;                                            \
        unsigned char tail[8];                                 \
    } name = {__VA_ARGS__, {0xab, 0xcd, 0xef, 1, 2, 3, 4, 5}}; \
    name.known.size += 8

static const unsigned char garbage[8] = {0xab, 0xcd, 0xef, 1, 2, 3, 4, 5};

static trn_tensor *vector(trn_context *c)
{
    trn_tensor *x = harness_vector(c, 3, 1.0, 2.0, 4.0);
    assert_int_equal(trn_set_requires_grad(x, true), TRN_OK);
    return x;
}

/* ---- the helper ---- */

static void what_a_shorter_struct_lacks_keeps_its_default(void **state)
{
    (void)state;
    const size_t first = TRN__SIZE_WITH(trn_sgd_options, nesterov);
    trn_sgd_options o = TRN_SGD_INIT, old = TRN_SGD_INIT;
    assert_true(first < sizeof o);
    memset((char *)&old + first, 0x77, sizeof old - first);
    memset((char *)&o + first, 0x11, sizeof o - first);
    old.size = (uint32_t)first;
    old.momentum = 0.5;
    assert_true(trn__struct_take(TRN__SIZED_trn_sgd_options, &o, &old));
    assert_int_equal(o.size, sizeof o);
    assert_true(o.momentum == 0.5);
    for (size_t i = first; i < sizeof o; i++)
        assert_int_equal(((unsigned char *)&o)[i], 0x11);
}

static void nothing_given_leaves_the_defaults(void **state)
{
    (void)state;
    trn_sgd_options o = TRN_SGD_INIT, defaults;
    memcpy(&defaults, &o, sizeof o);
    assert_true(trn__struct_take(TRN__SIZED_trn_sgd_options, &o, NULL));
    assert_memory_equal(&o, &defaults, sizeof o);
}

static void what_is_too_small_changes_nothing(void **state)
{
    (void)state;
    trn_sgd_options o = TRN_SGD_INIT, small = TRN_SGD_INIT, defaults;
    memcpy(&defaults, &o, sizeof o);
    small.size = (uint32_t)TRN__SIZE_WITH(trn_sgd_options, nesterov) - 1;
    small.learning_rate = 9.0;
    assert_false(trn__struct_take(TRN__SIZED_trn_sgd_options, &o, &small));
    assert_memory_equal(&o, &defaults, sizeof o);
}

/* ---- options ---- */

static void newer_options_of_open_are_accepted_with_their_hooks(void **state)
{
    (void)state;
    LONGER(trn_options, o, TRN_OPTIONS_INIT);
    trn_context *c;
    o.known.seed = 77;
    assert_int_equal(trn_open(&c, &o.known), TRN_OK);
    assert_int_equal(trn_close(c), TRN_OK);
}

static void options_of_an_older_caller_have_no_device_options(void **state)
{
    (void)state;
    static char text[] = "not an option";
    trn_options o = TRN_OPTIONS_INIT;
    trn_context *c;
    o.device_options = text;
    o.size = (uint32_t)TRN__SIZE_WITH(trn_options, plan_limit);
    assert_int_equal(trn_open(&c, &o), TRN_OK);
    assert_int_equal(trn_close(c), TRN_OK);
}

static void *no_alloc(void *user, size_t bytes)
{
    (void)bytes;
    ++*(int *)user;
    return NULL;
}

static void no_free(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)memory;
    (void)bytes;
}

static void hooks_of_newer_options_are_called(void **state)
{
    (void)state;
    int calls = 0;
    LONGER(trn_options, o, TRN_OPTIONS_INIT);
    trn_context *c;
    o.known.alloc = no_alloc;
    o.known.free = no_free;
    o.known.memory_user = &calls;
    assert_int_equal(trn_open(&c, &o.known), TRN_ERR_NOMEM);
    assert_null(c);
    assert_int_equal(calls, 1);
}

static void too_small_options_of_open_are_refused_and_not_used(void **state)
{
    (void)state;
    int calls = 0;
    trn_options o = TRN_OPTIONS_INIT;
    trn_context *c;
    char part[80];
    snprintf(part, sizeof part,
             "trn_open: options.size is %u; expected %u: start from "
             "TRN_OPTIONS_INIT",
             (unsigned)TRN__SIZE_WITH(trn_options, plan_limit) - 1,
             (unsigned)sizeof o);
    o.size = (uint32_t)TRN__SIZE_WITH(trn_options, plan_limit) - 1;
    o.alloc = no_alloc;
    o.free = no_free;
    o.memory_user = &calls;
    assert_int_equal(trn_open(&c, &o), TRN_ERR_ARG);
    assert_string_equal(trn_errmsg(c), part);
    assert_int_equal(calls, 0);
    assert_int_equal(trn_close(c), TRN_ERR_ARG);
}

/* Reserved: another number would promise bits that nothing gives yet. */
static void batch_blocks_other_than_one_are_refused(void **state)
{
    (void)state;
    static const uint32_t some[] = {0, 2, 4, UINT32_MAX};
    for (int i = 0; i < 4; i++) {
        trn_options o = TRN_OPTIONS_INIT;
        trn_context *c;
        char text[80];
        assert_int_equal(o.batch_blocks, 1);
        o.batch_blocks = some[i];
        snprintf(text, sizeof text, "trn_open: batch_blocks is %u; expected 1",
                 (unsigned)some[i]);
        assert_int_equal(trn_open(&c, &o), TRN_ERR_ARG);
        assert_string_equal(trn_errmsg(c), text);
        assert_int_equal(trn_close(c), TRN_ERR_ARG);
    }
}

static void newer_options_of_optimizers_are_accepted(void **state)
{
    trn_context *c = *state;
    trn_module *net = trn_nn_linear(c, 3, 2);
    LONGER(trn_sgd_options, s, TRN_SGD_INIT);
    LONGER(trn_adamw_options, a, TRN_ADAMW_INIT);
    s.known.learning_rate = 0.25;
    a.known.learning_rate = 0.75;
    trn_optim *sgd = trn_optim_sgd(net, &s.known);
    trn_optim *adamw = trn_optim_adamw(net, &a.known);
    harness_ok(c);
    assert_true(trn_optim_learning_rate(sgd) == 0.25);
    assert_true(trn_optim_learning_rate(adamw) == 0.75);
}

static void too_small_options_of_optimizers_are_refused(void **state)
{
    trn_context *c = *state;
    trn_module *net = trn_nn_linear(c, 3, 2);
    trn_sgd_options s = TRN_SGD_INIT;
    trn_adamw_options a = TRN_ADAMW_INIT;
    s.size = (uint32_t)TRN__SIZE_WITH(trn_sgd_options, nesterov);
    assert_non_null(trn_optim_sgd(net, &s));
    s.size--;
    assert_null(trn_optim_sgd(net, &s));
    harness_error(c, TRN_ERR_ARG,
                  "trn_optim_sgd: options.size is 40; expected "
                  "48: start from TRN_SGD_INIT");
    a.size = 4;
    assert_null(trn_optim_adamw(net, &a));
    harness_error(c, TRN_ERR_ARG,
                  "trn_optim_adamw: options.size is 4; "
                  "expected 48: start from TRN_ADAMW_INIT");
}

static void newer_options_of_grad_are_accepted(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = vector(c), *other = vector(c), *gx[2];
    trn_tensor *y = trn_sum(trn_mul(x, x), TRN_ALL_AXES, false);
    LONGER(trn_grad_options, o, TRN_GRAD_INIT);
    o.known.zeros = true;
    assert_int_equal(
        trn_grad(1, &y, 2, (trn_tensor *[]){x, other}, NULL, &o.known, gx),
        TRN_OK);
    harness_equal(gx[0], 3, 2.0, 4.0, 8.0);
    harness_equal(gx[1], 3, 0.0, 0.0, 0.0);
}

static void too_small_options_of_grad_are_refused(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = vector(c), *gx;
    trn_tensor *y = trn_sum(x, TRN_ALL_AXES, false);
    trn_grad_options o = TRN_GRAD_INIT;
    o.size = 6; /* without `zeros` */
    assert_int_equal(trn_grad(1, &y, 1, &x, NULL, &o, &gx), TRN_ERR_ARG);
    harness_error(c, TRN_ERR_ARG,
                  "trn_grad: options.size is 6; expected 8: "
                  "start from TRN_GRAD_INIT");
    o.size = 7;
    assert_int_equal(trn_grad(1, &y, 1, &x, NULL, &o, &gx), TRN_OK);
}

static void newer_options_of_cross_entropy_are_accepted(void **state)
{
    trn_context *c = *state;
    trn_tensor *logits =
        harness_f64(c, 2, (int64_t[]){2, 2}, (double[]){0, 0, 0, 0});
    trn_tensor *target = harness_i32(c, 1, (int64_t[]){2}, (int32_t[]){1, -1});
    LONGER(trn_cross_entropy_options, o, TRN_CROSS_ENTROPY_INIT);
    o.known.has_ignore_index = true;
    o.known.ignore_index = -1;
    o.known.reduction = TRN_REDUCE_NONE;
    trn_tensor *loss = trn_cross_entropy(logits, target, &o.known);
    harness_ok(c);
    assert_true(harness_at(loss, 0) > 0.69L && harness_at(loss, 0) < 0.70L);
    assert_true(harness_at(loss, 1) == 0.0L);
    o.known.size = 23;
    assert_null(trn_cross_entropy(logits, target, &o.known));
    harness_error(c, TRN_ERR_ARG,
                  "cross_entropy: options.size is 23; expected 40: start from "
                  "TRN_CROSS_ENTROPY_INIT");
}

/* 24 bytes, the first version: what stands behind them is not looked at. */
static void an_older_caller_of_cross_entropy_has_no_smoothing(void **state)
{
    trn_context *c = *state;
    trn_tensor *logits =
        harness_f64(c, 2, (int64_t[]){1, 2}, (double[]){0, -1e4});
    trn_tensor *target = harness_i32(c, 1, (int64_t[]){1}, (int32_t[]){1});
    trn_cross_entropy_options o = TRN_CROSS_ENTROPY_INIT;
    o.label_smoothing = 9.0;
    o.weight = target; /* of no float type, if it were used */
    o.size = 24;
    harness_equal(trn_cross_entropy(logits, target, &o), 1, 1e4);
    o.weight = NULL;
    o.size = 32;
    o.label_smoothing = 0.5;
    harness_equal(trn_cross_entropy(logits, target, &o), 1, 7500.0);
}

static void newer_options_of_loaders_are_accepted(void **state)
{
    trn_context *c = *state;
    trn_tensor *x = harness_vector(c, 3, 1.0, 2.0, 4.0);
    trn_tensor *y = harness_i32(c, 1, (int64_t[]){3}, (int32_t[]){0, 1, 2});
    LONGER(trn_loader_options, o, TRN_LOADER_INIT);
    o.known.shuffle = false;
    o.known.first = 1;
    trn_loader *l = trn_data_tensors(c, x, y, 2, &o.known);
    harness_ok(c);
    trn_batch b;
    assert_int_equal(trn_data_next(l, &b), 1);
    harness_equal(b.inputs, 2, 2.0, 4.0);
    o.known.size = (uint32_t)TRN__SIZE_WITH(trn_loader_options, dtype) - 1;
    assert_null(trn_data_tensors(c, x, y, 2, &o.known));
    harness_error(c, TRN_ERR_ARG, "start from TRN_LOADER_INIT");
}

/* ---- answers ---- */

static void answers_leave_the_tail_and_the_size_of_a_newer_caller(void **state)
{
    trn_context *c = *state;
    LONGER(trn_memory_info, m, TRN_MEMORY_INFO_INIT);
    LONGER(trn_capture_info, i, TRN_CAPTURE_INFO_INIT);
    i.known.traces = i.known.plan_bytes = 99;
    assert_int_equal(trn_memory(c, &m.known), TRN_OK);
    assert_int_equal(trn_capture(c, &i.known), TRN_OK);
    assert_int_equal(m.known.size, sizeof m.known + 8);
    assert_int_equal(i.known.size, sizeof i.known + 8);
    assert_memory_equal(m.tail, garbage, sizeof garbage);
    assert_memory_equal(i.tail, garbage, sizeof garbage);
    assert_true(m.known.bytes_peak > 0 && m.known.blocks_asked > 0);
    assert_true(i.known.traces != 99 && i.known.plan_bytes != 99);
}

static void too_small_answers_are_refused_and_not_written(void **state)
{
    trn_context *c = *state;
    trn_memory_info m = TRN_MEMORY_INFO_INIT;
    trn_capture_info i = TRN_CAPTURE_INFO_INIT;
    m.size -= 1;
    i.size = (uint32_t)TRN__SIZE_WITH(trn_capture_info, plan_bytes) - 1;
    m.bytes_peak = i.traces = 99;
    assert_int_equal(trn_memory(c, &m), TRN_ERR_ARG);
    assert_int_equal(trn_memory(c, NULL), TRN_ERR_ARG);
    assert_int_equal(trn_capture(c, &i), TRN_ERR_ARG);
    assert_int_equal(trn_capture(c, NULL), TRN_ERR_ARG);
    assert_true(m.bytes_peak == 99 && i.traces == 99);
}

static void answers_fill_what_an_older_caller_has(void **state)
{
    trn_context *c = *state;
    trn_capture_info i = TRN_CAPTURE_INFO_INIT;
    assert_true(trn_tensor_item(harness_vector(c, 1, 1.0)) == 1.0);
    i.size = (uint32_t)TRN__SIZE_WITH(trn_capture_info, plan_bytes);
    i.traces = i.bytes_to_host = i.bytes_to_device = 99;
    assert_int_equal(trn_capture(c, &i), TRN_OK);
    assert_true(i.traces == 0);
    assert_true(i.bytes_to_host == 99 && i.bytes_to_device == 99);
    i.size = sizeof i;
    assert_int_equal(trn_capture(c, &i), TRN_OK);
    assert_true(i.bytes_to_host > 0 && i.bytes_to_host != 99);
    assert_true(i.bytes_to_device > 0 && i.bytes_to_device != 99);
}

/* ---- devices ---- */

static void reference_op_takes_the_calls_of_newer_devices(void **state)
{
    float x[] = {1, -2, 3}, y[] = {0, 0, 0};
    trn_arg in = packed(TRN_F32, 1, (int64_t[]){3}), out = in;
    in.buffer = (trn_buffer *)(void *)x;
    out.buffer = (trn_buffer *)(void *)y;
    LONGER(trn_op_call, call, {.size = sizeof(trn_op_call)});
    call.known.op = TRN_OP_neg;
    call.known.n_in = call.known.n_out = 1;
    call.known.in = (const trn_arg *[]){&in};
    call.known.out = (const trn_arg *[]){&out};
    assert_int_equal(trn__reference_op(*state, &call.known), TRN_OK);
    assert_true(y[0] == -1 && y[1] == 2 && y[2] == -3);
    call.known.size = sizeof(trn_op_call) - 1;
    assert_int_equal(trn__reference_op(*state, &call.known), TRN_ERR_ARG);
}

/* A host whose services end at `size`: who looks beyond meets rubbish. */
static int32_t open_for_host(loop_host *h, trn_context *c,
                             const trn_backend *table, size_t size)
{
    loop_host_make(h, c);
    h->services.size = (uint32_t)size;
    memset((char *)&h->services + size, 0x5a, sizeof h->services - size);
    loop_table = table;
    return table->open(&h->services, "", &h->dev);
}

/* y = -x, executed on the device of *table for a host of that size. */
static void check_device(trn_context *c, const trn_backend *table,
                         size_t host_size)
{
    static fake_graph g;
    const float x[] = {1, -2, 3};
    float y[3];
    trn_program *p;
    uint64_t ticket;
    loop_host h;
    trn_arg three = packed(TRN_F32, 1, (int64_t[]){3});
    graph_begin(&g);
    int32_t from = graph_input(&g, three);
    graph_output(&g, graph_node(&g, TRN_OP_neg, from, -1, three, -1), -1);
    assert_int_equal(open_for_host(&h, c, table, host_size), TRN_OK);
    assert_int_equal(table->compile(h.dev, as_graph(&g), &p), TRN_OK);
    trn_buffer *in = put(&h, x, sizeof x), *out = put(&h, NULL, sizeof y);
    LONGER(trn_execution, e, {.size = sizeof(trn_execution)});
    e.known.n_inputs = e.known.n_outputs = 1;
    e.known.inputs = &in;
    e.known.outputs = &out;
    LONGER(trn_outcome, o, {.size = sizeof(trn_outcome), .status = 1});
    assert_int_equal(table->execute(h.dev, p, &e.known, &ticket), TRN_OK);
    o.known.size = sizeof o.known - 1;
    assert_int_equal(table->wait(h.dev, ticket, &o.known), TRN_ERR_ARG);
    assert_non_null(strstr(h.message, "smaller than its first version"));
    assert_int_equal(o.known.status, 1);
    o.known.size = sizeof o;
    assert_int_equal(table->wait(h.dev, ticket, &o.known), TRN_OK);
    assert_int_equal(o.known.size, sizeof o);
    assert_int_equal(o.known.status, TRN_OK);
    assert_memory_equal(o.tail, garbage, sizeof garbage);
    take(&h, out, y, sizeof y);
    assert_true(y[0] == -1 && y[1] == 2 && y[2] == -3);
    e.known.size = sizeof e.known - 1;
    assert_int_equal(table->execute(h.dev, p, &e.known, &ticket), TRN_ERR_ARG);
    table->release(h.dev, p);
    table->free(h.dev, in);
    table->free(h.dev, out);
    table->close(h.dev);
}

static void devices_execute_for_newer_hosts(void **state)
{
    const trn_backend *loop = loop_table;
    check_device(*state, &trn__cpu_backend, sizeof(trn_host_services));
    check_device(*state, loop, sizeof(trn_host_services));
    loop_table = loop;
}

static void devices_do_without_what_an_older_host_lacks(void **state)
{
    const trn_backend *loop = loop_table;
    loop_host h;
    /* Without regions and scalars; the CPU device needs no reference_op. */
    check_device(*state, loop, TRN__SIZE_WITH(trn_host_services, reference_op));
    check_device(*state, &trn__cpu_backend,
                 TRN__SIZE_WITH(trn_host_services, graph_input));
    /* A host that has no graphs, or no kernels to lend. */
    static const size_t sizes[] = {
        TRN__SIZE_WITH(trn_host_services, fail),
        TRN__SIZE_WITH(trn_host_services, graph_input),
    };
    for (int i = 0; i < 2; i++) {
        h.dev = NULL;
        assert_int_equal(open_for_host(&h, *state, loop, sizes[i]),
                         TRN_ERR_UNSUPPORTED);
        assert_null(h.dev);
        assert_non_null(strstr(h.message, "loop: the host has no graphs"));
    }
    loop_table = loop;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(what_a_shorter_struct_lacks_keeps_its_default),
        TRN_TEST(nothing_given_leaves_the_defaults),
        TRN_TEST(what_is_too_small_changes_nothing),
        TRN_TEST(newer_options_of_open_are_accepted_with_their_hooks),
        TRN_TEST(options_of_an_older_caller_have_no_device_options),
        TRN_TEST(hooks_of_newer_options_are_called),
        TRN_TEST(too_small_options_of_open_are_refused_and_not_used),
        cmocka_unit_test(batch_blocks_other_than_one_are_refused),
        TRN_TEST(newer_options_of_optimizers_are_accepted),
        TRN_TEST(too_small_options_of_optimizers_are_refused),
        TRN_TEST(newer_options_of_grad_are_accepted),
        TRN_TEST(too_small_options_of_grad_are_refused),
        TRN_TEST(newer_options_of_cross_entropy_are_accepted),
        TRN_TEST(an_older_caller_of_cross_entropy_has_no_smoothing),
        TRN_TEST(newer_options_of_loaders_are_accepted),
        TRN_TEST(answers_leave_the_tail_and_the_size_of_a_newer_caller),
        TRN_TEST(answers_fill_what_an_older_caller_has),
        TRN_TEST(too_small_answers_are_refused_and_not_written),
        TRN_TEST(reference_op_takes_the_calls_of_newer_devices),
        TRN_TEST(devices_execute_for_newer_hosts),
        TRN_TEST(devices_do_without_what_an_older_host_lacks),
    };
    return cmocka_run_group_tests(tests, loop_load, NULL);
}
