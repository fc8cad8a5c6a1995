/* SPDX-License-Identifier: Apache-2.0
 *
 * A device that lacks ops: composites become their bodies, primitives go to the
 * host if that is allowed; the bits stay those of the eager CPU.
 */
#include <stdlib.h>

#include "harness.h"
#include "libtrn/ops/lower.h"

#define STEPS 5
#define N 24
#define IN 7
#define OUT 5

/* A context of that device and mode; NULL if it does not open. */
static trn_context *open_on(const char *device, bool allow)
{
    trn_context *c;
    trn_options o = TRN_OPTIONS_INIT;
    o.device = device;
    o.allow_fallback = allow;
    o.n_threads = 2;
    if (trn_open(&c, &o) == TRN_OK)
        return c;
    print_error("%s: %s\n", device, trn_errmsg(c));
    trn_close(c);
    return NULL;
}

/* Trains a small model with every composite in it; its digest. */
static trn_status train(trn_context *c, char digest[65])
{
    float x[N * IN];
    int32_t y[N];
    uint64_t seed = 5;
    for (int i = 0; i < N * IN; i++)
        x[i] = (float)harness_uniform(&seed, -1, 1);
    for (int i = 0; i < N; i++)
        y[i] = (int32_t)(harness_random(&seed) % OUT);
    trn_tensor *inputs = trn_tensor_from(c, TRN_F32, 2, (int64_t[]){N, IN}, x);
    trn_tensor *targets = trn_tensor_from(c, TRN_I32, 1, (int64_t[]){N}, y);
    trn_module *net = trn_nn_sequential(c, trn_nn_linear(c, IN, 16),
                                        trn_nn_tanh(c), trn_nn_dropout(c, 0.25),
                                        trn_nn_linear(c, 16, OUT), NULL);
    trn_sgd_options s = TRN_SGD_INIT;
    s.momentum = 0.9;
    s.nesterov = true;
    trn_optim *adamw = trn_optim_adamw(trn_nn_child(net, "0"), NULL);
    trn_optim *sgd = trn_optim_sgd(trn_nn_child(net, "3"), &s);
    for (int i = 0; i < STEPS && trn_errcode(c) == TRN_OK; i++) {
        trn_step_begin(c);
        trn_tensor *logits = trn_nn_forward(net, inputs);
        trn_tensor *p = trn_softmax(logits, 1);
        trn_tensor *l = trn_log_softmax(logits, 1);
        trn_tensor *entropy =
            trn_neg(trn_mean(trn_mul(p, l), TRN_ALL_AXES, false));
        trn_tensor *loss = trn_cross_entropy(logits, targets, NULL);
        trn_backward(trn_add(loss, trn_mul_scalar(entropy, 0.1)));
        trn_optim_step(adamw);
        trn_optim_step(sgd);
        trn_step_end(c);
    }
    return trn_digest(net, digest);
}

static void on_device(const char *device, bool allow, char digest[65],
                      trn_capture_info *info)
{
    trn_context *c = open_on(device, allow);
    assert_non_null(c);
    trn_status status = train(c, digest);
    if (status != TRN_OK)
        print_error("%s: %s\n", device, trn_errmsg(c));
    assert_int_equal(status, TRN_OK);
    assert_int_equal(trn_capture(c, info), TRN_OK);
    assert_int_equal(trn_close(c), TRN_OK);
}

static void composites_become_primitives_with_the_same_bits(void **state)
{
    (void)state;
    char eager[65], whole[65], parts[65];
    trn_capture_info info = TRN_CAPTURE_INFO_INIT;
    on_device("cpu", false, eager, &info);
    on_device("loop", false, whole, &info);
    assert_string_equal(eager, whole);
    on_device("loop:lacks=composites", false, parts, &info);
    assert_string_equal(eager, parts);
    assert_int_equal(info.fallbacks, 0);
}

static void an_allowed_fall_back_is_counted(void **state)
{
    (void)state;
    char eager[65], host[65];
    trn_capture_info info = TRN_CAPTURE_INFO_INIT;
    on_device("cpu", false, eager, &info);
    on_device("loop:lacks=tanh", true, host, &info);
    assert_string_equal(eager, host);
    assert_int_equal(info.fallbacks, STEPS);
}

static void a_refused_fall_back_names_op_and_device(void **state)
{
    (void)state;
    char digest[65];
    trn_context *c = open_on("loop:lacks=tanh", false);
    assert_non_null(c);
    assert_int_equal(train(c, digest), TRN_ERR_UNSUPPORTED);
    assert_non_null(strstr(trn_errmsg(c), "tanh: device loop does not have"));
    assert_int_equal(trn_close(c), TRN_ERR_UNSUPPORTED);
}

/* ---- a device that was built before some ops came ---- */

static const trn_backend *real;
static uint32_t limit;

static int32_t limited_compile(trn_device *device, const trn_graph *g,
                               trn_program **program)
{
    for (int32_t i = 0; i < g->n_nodes; i++)
        CHECK(g->nodes[i].op < limit, "%s came to it\n",
              trn__ops[g->nodes[i].op].name);
    return real->compile(device, g, program);
}

/* A context whose device is the loop device of that time, without supports. */
static trn_context *open_limited(trn_backend *table, uint32_t op_limit)
{
    trn_context *c = open_on("loop", false);
    assert_non_null(c);
    *table = c->table;
    real = table;
    limit = op_limit;
    c->table.supports = NULL;
    c->table.op_limit = op_limit;
    c->table.compile = limited_compile;
    return c;
}

static void composites_of_later_come_as_their_parts(void **state)
{
    (void)state;
    char eager[65], parts[65];
    trn_backend table;
    trn_capture_info info = TRN_CAPTURE_INFO_INIT;
    on_device("cpu", false, eager, &info);
    trn_context *c = open_limited(&table, TRN_OP_sgd_update);
    assert_int_equal(train(c, parts), TRN_OK);
    assert_string_equal(eager, parts);
    assert_int_equal(trn_close(c), TRN_OK);
}

static void primitives_and_views_of_later_are_refused_by_name(void **state)
{
    (void)state;
    trn_backend table;
    for (int view = 0; view < 2; view++) {
        trn_context *c =
            open_limited(&table, view ? TRN_OP_slice : TRN_OP_norm);
        trn_tensor *x = harness_vector(c, 4, 1.0, 2.0, 3.0, 4.0);
        trn_step_begin(c);
        trn_tensor *y = trn_tanh(x);
        assert_non_null(y);
        assert_null(view ? trn_slice(y, 0, 0, 2, 1) : trn_norm(y, 1, false));
        assert_int_equal(trn_step_end(c), TRN_ERR_UNSUPPORTED);
        harness_error(c, TRN_ERR_UNSUPPORTED,
                      view ? "slice: device loop does not have it"
                           : "norm: device loop does not have it");
        assert_int_equal(trn_close(c), TRN_OK);
    }
}

/* softmax's body: nothing but primitives, its constants beside it. */
static void a_body_holds_primitives_only(void **state)
{
    (void)state;
    trn_options o = TRN_OPTIONS_INIT;
    trn_context *c;
    o.exec = TRN_EXEC_CAPTURED;
    assert_int_equal(trn_open(&c, &o), TRN_OK);
    trn_graph *g = trn__graph_new(c);
    trn__desc desc = {.dtype = TRN_F32, .rank = 2, .shape = {3, 4}};
    trn_axis_attrs at;
    memset(&at, 0, sizeof at);
    at.axis = 1;
    trn__graph_node n;
    memset(&n, 0, sizeof n);
    n.op = TRN_OP_softmax;
    n.n_in = 1;
    n.in[0] = trn__graph_add_input(g, &desc);
    n.draw = n.group = -1;
    n.attrs_size = sizeof at;
    memcpy(n.attrs, &at, sizeof at);
    trn_arg out = {.dtype = TRN_F32, .rank = 2, .shape = {3, 4}};
    trn__row_major(&out);
    assert_true(trn__graph_add_node(g, &n, 1, &out) >= 0);
    trn_graph *body;
    assert_int_equal(trn__body_trace(c, g, 0, NULL, &body), TRN_OK);
    assert_int_equal(body->n_inputs, 1);
    assert_int_equal(body->n_outputs, 1);
    assert_true(body->n_nodes > 5);
    assert_true(body->n_literals > 0);
    assert_int_equal(body->n_literals, body->n_scalars);
    for (int32_t i = 0; i < body->n_nodes; i++)
        assert_null(trn__ops[body->nodes[i].op].decompose);
    trn__graph_free(body);
    trn__graph_free(g);
    assert_int_equal(trn_close(c), TRN_OK);
}

/* ---- for another device than the context's ---- */

static uint32_t never; /* this op is taken by nobody */

static bool primitives_only(trn_device *device, const trn_op_call *call)
{
    ++*(int *)(void *)device; /* the device that was named */
    return trn__ops[call->op].decompose == NULL && call->op != never;
}

static const trn_backend elsewhere = {
    .size = sizeof elsewhere,
    .name = "elsewhere",
    .caps = TRN_CAP_GRAPH,
    .supports = primitives_only,
};

static void a_graph_is_lowered_for_a_device_that_is_not_open(void **state)
{
    (void)state;
    /* What the context's device lacks is no matter: only the other one is. */
    static const char *const devices[] = {"cpu", "loop", "loop:lacks=sub"};
    for (int i = 0; i < 3; i++) {
        int asked = 0;
        trn_options o = TRN_OPTIONS_INIT;
        trn_context *c;
        o.device = devices[i];
        o.exec = TRN_EXEC_CAPTURED;
        assert_int_equal(trn_open(&c, &o), TRN_OK);
        trn_tensor *x = trn_full(c, TRN_F32, 2, (int64_t[]){3, 4}, 0.5);
        trn_step_begin(c);
        trn_keep(trn_softmax(trn_neg(x), 1));
        assert_int_equal(trn_step_end(c), TRN_OK);
        assert_int_equal(trn_sync(c), TRN_OK);
        trn_device *device = (trn_device *)(void *)&asked;
        const trn_graph *raw = c->capture->first->graph;
        trn_capture_info before = TRN_CAPTURE_INFO_INIT, after = before;
        trn_capture(c, &before);
        never = 0;
        trn_graph *g = trn__graph_lowered_for(c, raw, &elsewhere, device);
        assert_non_null(g);
        assert_true(asked >= g->n_nodes && g->n_nodes > 5);
        for (int32_t q = 0; q < g->n_nodes; q++)
            assert_null(trn__ops[g->nodes[q].op].decompose);
        trn__graph_free(g);
        never = TRN_OP_exp; /* of softmax's body */
        assert_null(trn__graph_lowered_for(c, raw, &elsewhere, device));
        harness_error(c, TRN_ERR_UNSUPPORTED,
                      "exp: device elsewhere does not have it");
        trn_capture(c, &after);
        assert_memory_equal(&before, &after, sizeof before);
        assert_int_equal(trn_close(c), TRN_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(composites_become_primitives_with_the_same_bits),
        TRN_TEST(an_allowed_fall_back_is_counted),
        TRN_TEST(a_refused_fall_back_names_op_and_device),
        TRN_TEST(composites_of_later_come_as_their_parts),
        TRN_TEST(primitives_and_views_of_later_are_refused_by_name),
        TRN_TEST(a_body_holds_primitives_only),
        TRN_TEST(a_graph_is_lowered_for_a_device_that_is_not_open),
    };
    return cmocka_run_group_tests_name("lower", tests, NULL, NULL);
}
