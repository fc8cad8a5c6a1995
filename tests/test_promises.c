/* SPDX-License-Identifier: Apache-2.0
 *
 * What trn/backend.h promises a device, seen from between the core and one:
 * executions in flight, what is done to their buffers and programs meanwhile,
 * tickets, the end, and what a question to `supports` holds.
 *
 * Each entry of the context's table is replaced by one that looks at the call
 * and passes it on.
 */
#include <stdlib.h>

#include "captured.h"
#include "libtrn/ops/trace.h"

enum { MAX_LIVE = 4096, MAX_PORTS = 64 };

typedef struct execution {
    uint64_t ticket;
    const trn_program *program;
    const trn_buffer *ports[MAX_PORTS];
    int n_ports;
} execution;

static struct watch {
    trn_backend real;
    execution flight[2]; /* oldest first */
    int n_flights, most;
    const void *live[MAX_LIVE]; /* buffers and programs made since */
    int n_live;
    bool failed; /* told of a failure, not yet of all behind it */
    int executes, waits, meanwhile, questions, closes;
    bool late, odd; /* wait: tells by its status only, by the outcome only */
} w;

static void check_free(const void *object)
{
    if (object == NULL)
        return;
    for (int i = 0; i < w.n_flights; i++) {
        assert_ptr_not_equal(w.flight[i].program, object);
        for (int j = 0; j < w.flight[i].n_ports; j++)
            assert_ptr_not_equal(w.flight[i].ports[j], object);
    }
    w.meanwhile += w.n_flights > 0;
}

static void add_live(const void *object)
{
    assert_true(w.n_live < MAX_LIVE);
    if (object != NULL)
        w.live[w.n_live++] = object;
}

static void remove_live(const void *object)
{
    check_free(object);
    for (int i = 0; i < w.n_live; i++) {
        if (w.live[i] == object) {
            w.live[i] = w.live[--w.n_live];
            return;
        }
    }
}

static trn_buffer *watch_alloc(trn_device *device, uint64_t bytes)
{
    assert_true(bytes > 0);
    trn_buffer *b = w.real.alloc(device, bytes);
    add_live(b);
    return b;
}

static trn_buffer *watch_alloc_like(trn_device *device, const trn_arg *like,
                                    uint64_t bytes)
{
    assert_true(bytes > 0);
    trn_buffer *b = w.real.alloc_like(device, like, bytes);
    add_live(b);
    return b;
}

static void watch_free(trn_device *device, trn_buffer *buffer)
{
    remove_live(buffer);
    w.real.free(device, buffer);
}

/* What `data` points to is the caller's: it may change at once. */
static int32_t watch_write(trn_device *device, trn_buffer *buffer,
                           uint64_t offset, const void *data, uint64_t bytes)
{
    check_free(buffer);
    assert_true(bytes > 0);
    void *copy = malloc(bytes);
    memcpy(copy, data, bytes);
    int32_t status = w.real.write(device, buffer, offset, copy, bytes);
    memset(copy, 0xff, bytes);
    free(copy);
    return status;
}

static int32_t watch_read(trn_device *device, const trn_buffer *buffer,
                          uint64_t offset, void *data, uint64_t bytes)
{
    check_free(buffer);
    assert_true(bytes > 0);
    return w.real.read(device, buffer, offset, data, bytes);
}

static int32_t watch_run_op(trn_device *device, const trn_op_call *call)
{
    assert_int_equal(w.n_flights, 0);
    return w.real.run_op(device, call);
}

static int32_t watch_compile(trn_device *device, const trn_graph *graph,
                             trn_program **program)
{
    int32_t status = w.real.compile(device, graph, program);
    add_live(status == TRN_OK ? *program : NULL);
    return status;
}

static void watch_release(trn_device *device, trn_program *program)
{
    remove_live(program);
    w.real.release(device, program);
}

static int32_t watch_execute(trn_device *device, trn_program *program,
                             const trn_execution *e, uint64_t *ticket)
{
    assert_true(w.n_flights < 2);
    assert_false(w.failed);
    int32_t status = w.real.execute(device, program, e, ticket);
    if (status != TRN_OK)
        return status;
    execution *x = &w.flight[w.n_flights++];
    *x = (execution){.ticket = *ticket, .program = program};
    assert_true(e->n_inputs + e->n_outputs <= MAX_PORTS);
    for (uint32_t i = 0; i < e->n_inputs; i++)
        x->ports[x->n_ports++] = e->inputs[i];
    for (uint32_t i = 0; i < e->n_outputs; i++)
        x->ports[x->n_ports++] = e->outputs[i];
    w.most = w.n_flights > w.most ? w.n_flights : w.most;
    w.executes++;
    return TRN_OK;
}

static int32_t watch_wait(trn_device *device, uint64_t ticket,
                          trn_outcome *outcome)
{
    assert_true(w.n_flights > 0);
    assert_true(w.flight[0].ticket == ticket);
    int32_t status = w.real.wait(device, ticket, outcome);
    assert_int_equal(status, outcome->status);
    w.flight[0] = w.flight[1];
    w.n_flights--;
    w.waits++;
    w.failed = (w.failed || status != TRN_OK) && w.n_flights > 0;
    if (w.late)
        outcome->status = TRN_OK;
    return w.odd ? TRN_OK : status;
}

static bool watch_supports(trn_device *device, const trn_op_call *q)
{
    const trn__op_info *info = &trn__ops[q->op];
    w.questions++;
    assert_int_equal(q->size, sizeof *q);
    assert_null(info->view);
    assert_int_equal(q->n_in, info->n_in);
    assert_int_equal(q->n_out, info->writes == 0);
    for (uint32_t i = 0; i < q->n_in + q->n_out; i++) {
        const trn_arg *a = i < q->n_in ? q->in[i] : q->out[i - q->n_in];
        assert_in_range(a->dtype, TRN_F64, TRN_BOOL);
        assert_true(a->rank <= TRN_MAX_RANK);
        for (uint32_t d = 0; d < a->rank; d++)
            assert_true(a->shape[d] >= 0);
    }
    assert_true(q->attrs_size == 0 || q->attrs_size == info->attrs_size);
    assert_true(q->attrs_size == 0 || q->attrs != NULL);
    assert_true(q->n_values == 0 && q->values == NULL && q->report == NULL);
    assert_true(q->key == 0 && q->draw == 0);
    return w.real.supports(device, q);
}

static void watch_close(trn_device *device)
{
    assert_int_equal(w.n_flights, 0);
    assert_int_equal(w.n_live, 0);
    assert_int_equal(w.waits, w.executes);
    w.closes++;
    w.real.close(device);
}

static trn_context *watched(trn_context *c)
{
    trn_backend *t = &c->table;
    w = (struct watch){.real = *t};
    t->alloc = watch_alloc;
    t->alloc_like = t->alloc_like == NULL ? NULL : watch_alloc_like;
    t->free = watch_free;
    t->write = watch_write;
    t->read = watch_read;
    t->run_op = t->run_op == NULL ? NULL : watch_run_op;
    t->compile = watch_compile;
    t->release = watch_release;
    t->execute = watch_execute;
    t->wait = watch_wait;
    t->supports = watch_supports;
    t->close = watch_close;
    return c;
}

static void close_watched(trn_context *c)
{
    captured_close(c);
    assert_int_equal(w.closes, 1);
}

/* ---- whole steps in flight ---- */

typedef enum fault { NOTHING, BAD_INDEX, BAD_SHAPES } fault;

static void step(captured_net *m, fault f)
{
    trn_batch b;
    trn_step_begin(m->c);
    if (!trn_data_next(m->data, &b))
        trn_data_next(m->data, &b);
    trn_tensor *index = trn_add_scalar(b.inputs, f == BAD_INDEX ? 1000 : 0);
    trn_tensor *loss =
        trn_cross_entropy(trn_nn_forward(m->net, index), b.targets, NULL);
    trn_backward(loss);
    if (f == BAD_SHAPES)
        trn_matmul(loss, loss);
    trn_optim_step(m->optim);
    trn_step_end(m->c);
}

static void steps_in_flight_are_left_alone(void **state)
{
    (void)state;
    trn_options o = captured_options(LOOP, "loop:strict,execute_ms=1");
    o.plan_limit = 1; /* plans that are not in use are released at once */
    trn_context *c;
    assert_int_equal(trn_open(&c, &o), TRN_OK);
    captured_net m = captured_build(watched(c), 20, 6);
    for (int i = 0; i < 12; i++) { /* batches of two sizes: two programs */
        step(&m, NOTHING);
        trn_tensor_release(
            trn_tensor_from(c, TRN_F32, 1, (int64_t[]){1}, &(float){1}));
        harness_ok(c);
    }
    assert_int_equal(w.most, 2);
    assert_true(w.meanwhile > 0);
    close_watched(c);
}

static void each_ticket_is_waited_for_also_after_failures(void **state)
{
    (void)state;
    for (int behind = 0; behind < 3; behind++) {
        for (int clear = 0; clear < 2; clear++) {
            trn_context *c = captured_open(LOOP, "loop:strict,execute_ms=1");
            captured_net m = captured_build(watched(c), 20, 6);
            step(&m, NOTHING);
            step(&m, BAD_INDEX);
            for (int i = 0; i < behind; i++)
                step(&m, i == 1 ? BAD_SHAPES : NOTHING);
            if (clear) {
                while (trn_sync(c) != TRN_OK) /* of host and device */
                    trn_clear(c);
                step(&m, NOTHING);
                assert_int_equal(trn_sync(c), TRN_OK);
            }
            close_watched(c);
        }
    }
}

/* The failure is told inside of an open step, which is never ended. */
static void closing_in_a_step_waits_for_what_is_behind_a_failure(void **state)
{
    (void)state;
    trn_context *c = captured_open(LOOP, "loop:strict,execute_ms=1");
    captured_net m = captured_build(watched(c), 20, 6);
    step(&m, NOTHING);
    trn_sync(c);
    step(&m, BAD_INDEX);
    step(&m, NOTHING);
    trn_step_begin(c);
    trn_tensor_item(trn_nn_parameter(m.net, "5.bias"));
    trn_tensor_item(trn_slice(trn_nn_parameter(m.net, "5.bias"), 0, 0, 1, 1));
    assert_int_equal(trn_errcode(c), TRN_ERR_INDEX);
    close_watched(c);
}

/* A device for both, asynchronous: single ops come when nothing is in flight,
 * since they may read what a step writes. */
static void single_ops_wait_for_steps_in_flight(void **state)
{
    (void)state;
    trn_context *c = watched(captured_open(CAPTURED, NULL));
    c->table.caps |= TRN_CAP_ASYNC;
    captured_net m = captured_build(c, 20, 6);
    for (int i = 0; i < 6; i++) {
        step(&m, NOTHING);
        assert_true(w.n_flights > 0);
        trn_tensor_release(trn_neg(trn_nn_parameter(m.net, "5.bias")));
        assert_int_equal(w.n_flights, 0);
    }
    step(&m, BAD_INDEX);
    assert_null(trn_neg(trn_nn_parameter(m.net, "5.bias")));
    harness_error(c, TRN_ERR_INDEX, "embedding");
    close_watched(c);
}

/* ---- which word of wait counts ---- */

static void an_error_is_one_wherever_wait_tells_it(void **state)
{
    (void)state;
    for (int how = 0; how < 2; how++) {
        trn_context *c = captured_open(LOOP, "loop:strict");
        captured_net m = captured_build(watched(c), 20, 6);
        step(&m, NOTHING);
        assert_int_equal(trn_sync(c), TRN_OK);
        w.late = how == 0;
        w.odd = how == 1;
        step(&m, BAD_INDEX);
        assert_int_equal(trn_sync(c), TRN_ERR_INDEX);
        harness_error(c, TRN_ERR_INDEX, "embedding");
        assert_int_equal(trn_step_index(c), 1);
        w.late = w.odd = false;
        close_watched(c);
    }
}

/* ---- questions ---- */

static void questions_are_alike_on_all_ways(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS + 1; way++) {
        trn_context *c =
            captured_open(way == N_WAYS ? LOOP : way,
                          way == N_WAYS ? "loop:lacks=composites" : NULL);
        captured_net m = captured_build(watched(c), 20, 6);
        for (int i = 0; i < 3; i++)
            assert_true(captured_train(&m));
        trn_generator *g = trn_generator_default(c);
        trn_normal(g, TRN_F32, 1, (int64_t[]){3});
        trn_dropout(m.inputs, 0.5, g);
        trn_clear(c);
        assert_true(w.questions > 10);
        close_watched(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_in_flight_are_left_alone),
        cmocka_unit_test(each_ticket_is_waited_for_also_after_failures),
        cmocka_unit_test(closing_in_a_step_waits_for_what_is_behind_a_failure),
        cmocka_unit_test(single_ops_wait_for_steps_in_flight),
        cmocka_unit_test(an_error_is_one_wherever_wait_tells_it),
        cmocka_unit_test(questions_are_alike_on_all_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
