/* SPDX-License-Identifier: Apache-2.0
 *
 * The pjrt device without the core above it, on a real plug-in: what its
 * handles hold in every state, and executions with lists of any kind.
 *
 * The plug-in is TRN_PJRT_PLUGIN, behind the shim of tests/plugins/.
 */
#include "tests/loop_host.h"
#include "tests/pjrt_shim.h"

extern const trn_backend trn__pjrt_backend;

static bool no_scalars(const trn_graph *g, int32_t i, trn_graph_scalar *out)
{
    (void)g;
    (void)i;
    (void)out;
    return false;
}

/* Opens the device; skips the test where there is no plug-in. */
static void start(loop_host *h, void **state)
{
    if (getenv("TRN_PJRT_PLUGIN") == NULL || !trn__hlo_available())
        skip();
    loop_table = &trn__pjrt_backend;
    shim.fail_at(NULL, 0, 0);
    loop_start(h, *state, plugin_path("pjrt_shim.so"));
    h->services.graph_scalar = no_scalars;
}

static void finish(loop_host *h)
{
    loop_table->close(h->dev);
    shim_is_empty("after close");
}

static trn_buffer *put_like(loop_host *h, const trn_arg *like, const void *data,
                            uint64_t bytes)
{
    trn_buffer *b = loop_table->alloc_like(h->dev, like, bytes);
    assert_non_null(b);
    assert_int_equal(loop_table->write(h->dev, b, 0, data, bytes), TRN_OK);
    return b;
}

enum { N = 6 };
#define BYTES ((uint64_t)(N * sizeof(float)))
static const int64_t square[] = {2, 3}, flat[] = {N};
static const float ramp[N] = {1, 2, 3, 4, 5, 6};

static void holds(loop_host *h, const trn_buffer *b, const float *expected)
{
    float got[N];
    take(h, b, got, BYTES);
    assert_memory_equal(got, expected, BYTES);
}

/* inputs x, y; outputs x + y, which replaces x if `alias`, and y + y */
static trn_program *sums(loop_host *h, bool alias)
{
    static fake_graph g;
    trn_program *p = NULL;
    trn_arg a = packed(TRN_F32, 2, square);
    graph_begin(&g);
    int32_t x = graph_input(&g, a), y = graph_input(&g, a);
    graph_output(&g, graph_node(&g, TRN_OP_add, x, y, a, -1), alias ? 0 : -1);
    graph_output(&g, graph_node(&g, TRN_OP_add, y, y, a, -1), -1);
    int32_t status = loop_table->compile(h->dev, as_graph(&g), &p);
    CHECK(status == TRN_OK, "%s\n", h->message);
    return p;
}

static int32_t begin(loop_host *h, trn_program *p, trn_buffer *x, trn_buffer *y,
                     trn_buffer *z, trn_buffer *twice, uint64_t *ticket)
{
    trn_buffer *inputs[] = {x, y}, *outputs[] = {z, twice};
    const trn_execution e = {
        .size = sizeof e,
        .n_inputs = 2,
        .n_outputs = 2,
        .inputs = inputs,
        .outputs = outputs,
    };
    return loop_table->execute(h->dev, p, &e, ticket);
}

static void run(loop_host *h, trn_program *p, trn_buffer *x, trn_buffer *y,
                trn_buffer *z, trn_buffer *twice)
{
    uint64_t ticket;
    trn_outcome out;
    CHECK(begin(h, p, x, y, z, twice, &ticket) == TRN_OK, "%s\n", h->message);
    CHECK(outcome_of(h, ticket, &out) == TRN_OK, "%s\n", h->message);
    assert_int_equal(out.node, -1);
    assert_false(out.inputs_lost);
}

static void handles_hold_bytes_in_every_state(void **state)
{
    loop_host h;
    start(&h, state);
    static const float zeros[N];
    const trn_arg like = packed(TRN_F32, 2, square);
    for (int typed = 0; typed < 2; typed++) {
        trn_buffer *b = typed ? loop_table->alloc_like(h.dev, &like, BYTES)
                              : loop_table->alloc(h.dev, BYTES);
        holds(&h, b, zeros); /* nothing has been written */
        float want[N] = {0}, part[2];
        want[1] = 7;
        assert_int_equal(loop_table->write(h.dev, b, 4, &want[1], 4), TRN_OK);
        holds(&h, b, want);
        assert_int_equal(loop_table->write(h.dev, b, 0, ramp, BYTES), TRN_OK);
        holds(&h, b, ramp);
        assert_int_equal(loop_table->read(h.dev, b, 8, part, 8), TRN_OK);
        assert_true(part[0] == 3 && part[1] == 4);
        memcpy(want, ramp, sizeof want);
        want[5] = -1;
        assert_int_equal(loop_table->write(h.dev, b, 20, &want[5], 4), TRN_OK);
        holds(&h, b, want);
        assert_int_equal(loop_table->write(h.dev, b, 24, want, 0), TRN_OK);
        assert_int_equal(loop_table->write(h.dev, b, 20, want, 8), TRN_ERR_ARG);
        assert_non_null(strstr(h.message, "write: 8 bytes at 20 of a buffer"));
        assert_int_equal(loop_table->read(h.dev, b, UINT64_MAX, part, 4),
                         TRN_ERR_ARG);
        holds(&h, b, want);
        loop_table->free(h.dev, b);
    }
    assert_int_equal(shim.calls("PJRT_Client_BufferFromHostBuffer"), 1);
    finish(&h);
}

static void inputs_come_in_every_state(void **state)
{
    static const float doubled[N] = {2, 4, 6, 8, 10, 12};
    loop_host h;
    start(&h, state);
    const trn_arg like = packed(TRN_F32, 2, square),
                  other = packed(TRN_F32, 1, flat);
    trn_program *p = sums(&h, false);
    trn_buffer *fresh = loop_table->alloc(h.dev, BYTES);
    trn_buffer *staged = put(&h, ramp, BYTES);
    trn_buffer *there = put_like(&h, &like, ramp, BYTES);
    trn_buffer *shaped = put_like(&h, &other, ramp, BYTES);
    trn_buffer *z = loop_table->alloc(h.dev, BYTES);
    trn_buffer *twice = loop_table->alloc_like(h.dev, &other, BYTES);
    run(&h, p, fresh, staged, z, twice);
    holds(&h, z, ramp);
    holds(&h, twice, doubled);
    run(&h, p, there, shaped, z, twice);
    holds(&h, z, doubled);
    holds(&h, twice, doubled);
    assert_non_null(strstr(harness_log(), "pjrt: 1 buffers so far went"));
    run(&h, p, z, there, twice, z); /* an output may be an input, too */
    holds(&h, z, doubled);
    holds(&h, there, ramp);
    run(&h, p, staged, staged, z, twice);
    holds(&h, z, doubled);
    uint64_t uploads = shim.calls("PJRT_Client_BufferFromHostBuffer");
    run(&h, p, shaped, fresh, z, twice); /* all there already */
    assert_int_equal(shim.calls("PJRT_Client_BufferFromHostBuffer"), uploads);
    holds(&h, z, ramp);
    finish(&h); /* frees what is left */
}

static void what_is_overwritten_may_be_read_beside(void **state)
{
    static const float doubled[N] = {2, 4, 6, 8, 10, 12},
                       fourfold[N] = {4, 8, 12, 16, 20, 24};
    loop_host h;
    start(&h, state);
    const trn_arg like = packed(TRN_F32, 2, square);
    trn_program *p = sums(&h, true);
    trn_buffer *x = put_like(&h, &like, ramp, BYTES);
    trn_buffer *twice = loop_table->alloc(h.dev, BYTES);
    run(&h, p, x, x, x, twice);
    holds(&h, x, doubled);
    holds(&h, twice, doubled);
    run(&h, p, x, twice, x, twice);
    holds(&h, x, fourfold);
    holds(&h, twice, fourfold);
    finish(&h);
}

static void lists_that_do_not_fit_are_refused(void **state)
{
    loop_host h;
    start(&h, state);
    trn_program *p = sums(&h, false);
    trn_buffer *x = put(&h, ramp, BYTES), *small = put(&h, ramp, 8);
    trn_buffer *z = loop_table->alloc(h.dev, BYTES);
    uint64_t ticket = 5, first, second;
    assert_int_equal(begin(&h, p, x, small, z, z, &ticket), TRN_ERR_ARG);
    assert_int_equal(ticket, 0);
    assert_int_equal(begin(&h, p, x, NULL, z, z, &ticket), TRN_ERR_ARG);
    assert_int_equal(begin(&h, p, x, x, small, z, &ticket), TRN_ERR_ARG);
    assert_int_equal(begin(&h, p, x, x, z, NULL, &ticket), TRN_ERR_ARG);
    assert_non_null(strstr(h.message, "the lists are not those"));
    assert_int_equal(begin(&h, p, x, x, z, z, &first), TRN_OK);
    assert_int_equal(begin(&h, p, x, x, z, z, &second), TRN_OK);
    assert_int_equal(begin(&h, p, x, x, z, z, &ticket), TRN_ERR_ARG);
    assert_non_null(strstr(h.message, "two executions are in flight"));
    trn_outcome out = {.size = 8};
    assert_int_equal(loop_table->wait(h.dev, first, &out), TRN_ERR_ARG);
    assert_int_equal(outcome_of(&h, second, &out), TRN_OK);
    assert_int_equal(outcome_of(&h, first, &out), TRN_OK);
    out.size = sizeof out;
    assert_int_equal(loop_table->wait(h.dev, first, &out), TRN_ERR_ARG);
    assert_int_equal(loop_table->wait(h.dev, 0, &out), TRN_ERR_ARG);
    finish(&h);
}

static void one_failure_cancels_what_is_behind_it(void **state)
{
    loop_host h;
    start(&h, state);
    trn_program *p = sums(&h, true);
    trn_buffer *x = put(&h, ramp, BYTES), *y = put(&h, ramp, BYTES);
    trn_buffer *z = loop_table->alloc(h.dev, BYTES);
    uint64_t first, second;
    trn_outcome out;
    shim.fail_at("PJRT_LoadedExecutable_Execute", 1, 0);
    assert_int_equal(begin(&h, p, x, y, x, z, &first), TRN_OK);
    assert_int_equal(begin(&h, p, x, y, x, z, &second), TRN_OK);
    assert_int_equal(shim.calls("PJRT_LoadedExecutable_Execute"), 1);
    assert_int_equal(outcome_of(&h, first, &out), TRN_ERR_DEVICE);
    assert_false(out.inputs_lost);
    assert_non_null(strstr(h.message, "pjrt: execute: shim: "));
    assert_int_equal(outcome_of(&h, second, &out), TRN_ERR_CANCELLED);
    assert_false(out.inputs_lost);
    holds(&h, x, ramp);
    /* The second has run when the first turns out to have failed. */
    assert_int_equal(begin(&h, p, x, y, x, z, &first), TRN_OK);
    assert_int_equal(begin(&h, p, x, y, x, z, &second), TRN_OK);
    shim.fail_at("PJRT_Event_Await", 1, 0);
    assert_int_equal(outcome_of(&h, first, &out), TRN_ERR_DEVICE);
    assert_true(out.inputs_lost);
    assert_int_equal(outcome_of(&h, second, &out), TRN_ERR_CANCELLED);
    assert_true(out.inputs_lost);
    /* The older one was good. */
    assert_int_equal(loop_table->write(h.dev, x, 0, ramp, BYTES), TRN_OK);
    assert_int_equal(begin(&h, p, x, y, x, z, &first), TRN_OK);
    shim.fail_at("PJRT_LoadedExecutable_Execute", 1, 0);
    assert_int_equal(begin(&h, p, x, y, x, z, &second), TRN_OK);
    assert_int_equal(outcome_of(&h, first, &out), TRN_OK);
    assert_int_equal(outcome_of(&h, second, &out), TRN_ERR_DEVICE);
    assert_int_equal(begin(&h, p, x, y, x, z, &first), TRN_OK);
    assert_int_equal(outcome_of(&h, first, &out), TRN_OK);
    finish(&h);
}

static void all_may_be_freed_in_flight(void **state)
{
    loop_host h;
    start(&h, state);
    trn_program *p = sums(&h, true);
    trn_buffer *x = put(&h, ramp, BYTES), *y = put(&h, ramp, BYTES);
    trn_buffer *z = loop_table->alloc(h.dev, BYTES);
    uint64_t ticket;
    trn_outcome out;
    assert_int_equal(begin(&h, p, x, y, x, z, &ticket), TRN_OK);
    loop_table->free(h.dev, x);
    loop_table->free(h.dev, y);
    loop_table->free(h.dev, z);
    loop_table->release(h.dev, p);
    assert_int_equal(outcome_of(&h, ticket, &out), TRN_OK);
    p = sums(&h, false);
    x = put(&h, ramp, BYTES);
    y = loop_table->alloc(h.dev, BYTES);
    assert_int_equal(begin(&h, p, x, x, y, y, &ticket), TRN_OK);
    finish(&h); /* nobody has waited */
}

static void a_default_that_is_not_known_is_left_out(void **state)
{
    loop_host h;
    start(&h, state);
    static const char line[] = "has no compile option "
                               "xla_cpu_enable_fast_min_max, a default of";
    shim.fail_at("PJRT_Client_Compile", 1, PJRT_INVALID_ARGUMENT);
    shim.words("No such compile option: 'xla_cpu_enable_fast_min_max'");
    trn_program *p = sums(&h, false);
    assert_int_equal(shim.calls("PJRT_Client_Compile"), 2);
    const char *first = strstr(harness_log(), line);
    assert_non_null(first);
    trn_buffer *x = put(&h, ramp, BYTES), *y = loop_table->alloc(h.dev, BYTES);
    trn_buffer *z = loop_table->alloc(h.dev, BYTES);
    run(&h, p, x, y, z, y);
    holds(&h, z, ramp);
    sums(&h, true);
    assert_int_equal(shim.calls("PJRT_Client_Compile"), 3);
    assert_null(strstr(first + 1, line)); /* said once */
    finish(&h);
}

static void every_type_goes_through_bit_for_bit(void **state)
{
    loop_host h;
    start(&h, state);
    uint64_t seed = 3;
    for (uint32_t dtype = TRN_F64; dtype <= TRN_BOOL; dtype++) {
        static fake_graph g;
        unsigned char in[N * 8], out[N * 8];
        const uint64_t bytes = N * trn__pjrt_dtype_size(dtype);
        const trn_arg a = packed(dtype, 2, square);
        for (uint64_t i = 0; i < bytes; i++)
            in[i] = (unsigned char)(harness_random(&seed) &
                                    (dtype == TRN_BOOL ? 1 : 255));
        trn_program *p = NULL;
        graph_begin(&g);
        int32_t x = graph_input(&g, a);
        graph_output(&g, graph_node(&g, TRN_OP_copy, x, -1, a, -1), -1);
        CHECK(loop_table->compile(h.dev, as_graph(&g), &p) == TRN_OK, "%s\n",
              h.message);
        trn_buffer *b = put_like(&h, &a, in, bytes);
        trn_buffer *z = loop_table->alloc(h.dev, bytes);
        const trn_execution e = {
            .size = sizeof e,
            .n_inputs = 1,
            .n_outputs = 1,
            .inputs = &b,
            .outputs = &z,
        };
        uint64_t ticket;
        trn_outcome outcome;
        assert_int_equal(loop_table->execute(h.dev, p, &e, &ticket), TRN_OK);
        assert_int_equal(outcome_of(&h, ticket, &outcome), TRN_OK);
        take(&h, z, out, bytes);
        CHECK(memcmp(in, out, bytes) == 0, "type %u\n", (unsigned)dtype);
    }
    finish(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(handles_hold_bytes_in_every_state),
        TRN_TEST(inputs_come_in_every_state),
        TRN_TEST(what_is_overwritten_may_be_read_beside),
        TRN_TEST(lists_that_do_not_fit_are_refused),
        TRN_TEST(one_failure_cancels_what_is_behind_it),
        TRN_TEST(all_may_be_freed_in_flight),
        TRN_TEST(a_default_that_is_not_known_is_left_out),
        TRN_TEST(every_type_goes_through_bit_for_bit),
    };
    const char *plugin = getenv("TRN_PJRT_PLUGIN");
    if (plugin != NULL)
        setenv("TRN_PJRT_SHIM_REAL", plugin, 1);
    return cmocka_run_group_tests(tests, shim_load, NULL);
}
