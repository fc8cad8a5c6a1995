/* SPDX-License-Identifier: Apache-2.0
 *
 * Failures of the loop device, found or asked for: what they report, and that
 * they leave no trace in what the host can see.
 */
#include <math.h>

#include "loop_update.h"

static void failing_node_is_reported_and_what_follows_is_cancelled(void **state)
{
    static update_loop u;
    const float bad[4] = {0, 1, HUGE_VALF, 2};
    trn_outcome out;
    update_start(&u, *state, "execute_ms=2");
    trn_buffer *b = put(&u.h, bad, sizeof bad);
    uint64_t good = update(&u, u.x, 1), first = update(&u, b, 1);
    uint64_t second = update(&u, u.x, 1), third = update(&u, u.x, 1);
    assert_int_equal(outcome_of(&u.h, good, &out), TRN_OK);
    assert_int_equal(outcome_of(&u.h, first, &out), TRN_ERR_NUMERIC);
    assert_int_equal(out.node, 0);
    assert_int_equal(out.report.kind, TRN_REPORT_NOT_FINITE);
    assert_int_equal(out.report.position, 2);
    assert_int_equal(out.inputs_lost, 0);
    assert_int_equal(outcome_of(&u.h, second, &out), TRN_ERR_CANCELLED);
    assert_int_equal(outcome_of(&u.h, third, &out), TRN_ERR_CANCELLED);
    check_w(&u, 1, (const float[]){1});
    assert_int_equal(outcome_of(&u.h, update(&u, u.x, 0.5), &out), TRN_OK);
    check_w(&u, 2, (const float[]){1, 0.5f});
    update_stop(&u);
}

static void planned_failure_of_execute_changes_nothing(void **state)
{
    static update_loop u;
    trn_outcome out;
    update_start(&u, *state, "fail=execute@2");
    uint64_t a = update(&u, u.x, 1), b = update(&u, u.x, 1);
    uint64_t c = update(&u, u.x, 1);
    assert_int_equal(outcome_of(&u.h, a, &out), TRN_OK);
    assert_int_equal(outcome_of(&u.h, b, &out), TRN_ERR_DEVICE);
    assert_int_equal(out.inputs_lost, 0);
    assert_int_equal(outcome_of(&u.h, c, &out), TRN_ERR_CANCELLED);
    check_w(&u, 1, (const float[]){1});
    update_stop(&u);
}

static void lost_inputs_are_said_to_be_lost_and_hold_nan(void **state)
{
    static update_loop u;
    trn_outcome out;
    float w[4];
    update_start(&u, *state, "fail=lost@1");
    assert_int_equal(outcome_of(&u.h, update(&u, u.x, 1), &out),
                     TRN_ERR_DEVICE);
    assert_int_equal(out.inputs_lost, 1);
    take(&u.h, u.w, w, sizeof w);
    for (int i = 0; i < 4; i++)
        assert_true(w[i] != w[i]);
    update_stop(&u);
}

static void failing_wait_takes_back_what_was_written(void **state)
{
    static update_loop u;
    trn_outcome out;
    update_start(&u, *state, "fail=wait@2,execute_ms=1");
    assert_int_equal(outcome_of(&u.h, update(&u, u.x, 1), &out), TRN_OK);
    uint64_t a = update(&u, u.x, 1), b = update(&u, u.x, 1);
    while (loop_table->poll(u.h.dev, b) != 1) /* both have run */
        ;
    assert_int_equal(outcome_of(&u.h, a, &out), TRN_ERR_DEVICE);
    assert_int_equal(outcome_of(&u.h, b, &out), TRN_ERR_CANCELLED);
    check_w(&u, 1, (const float[]){1});
    assert_int_equal(outcome_of(&u.h, update(&u, u.x, 0.5), &out), TRN_OK);
    check_w(&u, 2, (const float[]){1, 0.5f});
    update_stop(&u);
}

/* ---- planned failures ---- */

static void each_entry_fails_at_the_call_that_was_asked_for(void **state)
{
    static update_loop u;
    static const char *const names[] = {"alloc",   "write", "read", "compile",
                                        "execute", "wait",  "poll", "supports"};
    trn_arg a = packed(TRN_F32, 1, shape_4), b = a;
    const trn_arg *in[] = {&a}, *out[] = {&b};
    const trn_op_call call = {.size = sizeof call,
                              .op = TRN_OP_neg,
                              .n_in = 1,
                              .n_out = 1,
                              .in = in,
                              .out = out};
    for (int k = 0; k < 8; k++) {
        char options[40];
        uint64_t faults = loop_counter("faults"), ticket;
        trn_outcome o = {.size = sizeof o};
        trn_program *p;
        float w[4];
        snprintf(options, sizeof options, "fail=%s@3", names[k]);
        update_start(&u, *state, options);
        const trn_backend *t = loop_table;
        int failed = 0;
        for (int i = 0; i < 3; i++) {
            trn_buffer *m = t->alloc(u.h.dev, 16);
            failed += m == NULL;
            t->free(u.h.dev, m);
            failed += t->read(u.h.dev, u.w, 0, w, 16) == TRN_ERR_DEVICE;
            failed += t->write(u.h.dev, u.w, 0, w, 16) == TRN_ERR_DEVICE;
            failed += t->compile(u.h.dev, as_graph(&u.g), &p) == TRN_ERR_DEVICE;
            t->release(u.h.dev, p);
            ticket = update(&u, u.x, 1);
            failed += t->poll(u.h.dev, ticket) == TRN_ERR_DEVICE;
            failed += t->wait(u.h.dev, ticket, &o) == TRN_ERR_DEVICE;
            failed += !t->supports(u.h.dev, &call);
        }
        assert_int_equal(failed, 1);
        assert_int_equal(loop_counter("faults"), faults + 1);
        update_stop(&u);
    }
    assert_true(loop_counter("execute") >= 24);
    assert_int_equal(loop_counter("no such thing"), 0);
}

/* Opens, compiles, runs, reads; the first status that is not success. */
static int32_t whole_life(trn_context *c, const fake_graph *g)
{
    const trn_backend *t = loop_table;
    loop_host h;
    trn_program *p = NULL;
    trn_outcome out = {.size = sizeof out};
    uint64_t ticket = 0;
    float w[4];
    double scalars[2] = {1, 0.5};
    int32_t status = loop_open(&h, c, "fail=wait@9");
    if (status != TRN_OK)
        return status;
    trn_buffer *in[] = {put(&h, NULL, 16), put(&h, NULL, 16)};
    const trn_execution e = {sizeof e, 2, 1, 2, 0, in, in, scalars, NULL};
    memset(w, 0, sizeof w);
    for (int i = 0; i < 2; i++)
        assert_int_equal(t->write(h.dev, in[i], 0, w, sizeof w), TRN_OK);
    status = t->compile(h.dev, as_graph(g), &p);
    if (status == TRN_OK)
        status = t->execute(h.dev, p, &e, &ticket);
    if (status == TRN_OK)
        status = t->wait(h.dev, ticket, &out);
    if (status == TRN_OK)
        status = t->read(h.dev, in[0], 0, w, sizeof w);
    t->release(h.dev, p);
    t->close(h.dev);
    return status;
}

static void each_allocation_may_fail_and_nothing_is_kept(void **state)
{
    static update_loop u;
    int64_t n = 0;
    int32_t status;
    update_start(&u, *state, "");
    update_stop(&u);
    do {
        trn_context *c = harness_open(NULL, 1, TRN_ENGINE_POOL);
        harness_fail_after(n++);
        status = whole_life(c, &u.g);
        harness_fail_after(-1);
        assert_true(status == TRN_OK || status == TRN_ERR_NOMEM);
        trn_close(c);
    } while (status != TRN_OK);
    assert_true(n > 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(failing_node_is_reported_and_what_follows_is_cancelled),
        TRN_TEST(planned_failure_of_execute_changes_nothing),
        TRN_TEST(lost_inputs_are_said_to_be_lost_and_hold_nan),
        TRN_TEST(failing_wait_takes_back_what_was_written),
        TRN_TEST(each_allocation_may_fail_and_nothing_is_kept),
        TRN_TEST(each_entry_fails_at_the_call_that_was_asked_for),
    };
    return cmocka_run_group_tests(tests, loop_load, NULL);
}
