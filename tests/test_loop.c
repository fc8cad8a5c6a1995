/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop device by its table alone: programs with the bits of run_op, order,
 * memory that the host cannot touch.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "loop_update.h"

static const int64_t shape_x[] = {4, 3}, shape_w[] = {3, 2}, shape_y[] = {4, 2};

/* ---- a step by hand: dropout(x w + b), the sum of two rows, w updated ---- */

static const trn_matmul_attrs no_trans, trans_a = {.trans_a = 1};
static const trn_reduce_attrs all_axes = {.axes = 3};

static void build_step(fake_graph *g)
{
    static const int64_t two[] = {2}, rows[] = {2, 2};
    graph_begin(g);
    int32_t x = graph_input(g, packed(TRN_F32, 2, shape_x));
    int32_t w = graph_input(g, packed(TRN_F32, 2, shape_w));
    int32_t b = graph_input(g, packed(TRN_F32, 1, two));
    trn_arg y = packed(TRN_F32, 2, shape_y), wide = y, part;
    int32_t xw = graph_node(g, TRN_OP_matmul, x, w, y, -1);
    graph_attrs(g, &no_trans, sizeof no_trans, 0);
    wide.stride[0] = 0;
    int32_t bb = graph_node(g, TRN_OP_expand, b, -1, wide, b);
    int32_t z = graph_node(g, TRN_OP_add, xw, bb, y, -1);
    int32_t d = graph_node(g, TRN_OP_dropout, z, -1, y, -1);
    graph_attrs(g, NULL, 0, 1);
    g->node[g->info.n_nodes - 1].draw = g->info.n_draws++;
    part = packed(TRN_F32, 2, rows);
    part.offset = 2;
    int32_t mid = graph_node(g, TRN_OP_slice, d, -1, part, d);
    int32_t s =
        graph_node(g, TRN_OP_sum, mid, -1, packed(TRN_F32, 0, NULL), -1);
    graph_attrs(g, &all_axes, sizeof all_axes, 0);
    int32_t gw = graph_node(g, TRN_OP_matmul, x, d, g->value[w].arg, -1);
    graph_attrs(g, &trans_a, sizeof trans_a, 0);
    int32_t new_w =
        graph_node(g, TRN_OP_sgd_update, w, gw, g->value[w].arg, -1);
    graph_attrs(g, NULL, 0, 2);
    graph_output(g, s, -1);
    graph_output(g, new_w, 1);
    graph_output(g, mid, -1);
}

typedef struct step_data {
    float x[12], w[6], b[2], sum, mid[4];
} step_data;

static const double step_scalars[] = {0.25, 0.5, 0.125};
static const uint64_t step_draws[1][2] = {{77, 3}};

/* run_op of the CPU device on host memory. */
static void run_op(trn_context *c, uint32_t op, const trn_arg *a,
                   const trn_arg *b, const trn_arg *y, const void *attrs,
                   const double *values)
{
    const trn_arg *in[] = {a, b}, *out[] = {y};
    const trn_op_call call = {
        .size = sizeof call,
        .op = op,
        .n_in = b == NULL ? 1 : 2,
        .n_out = y != NULL,
        .in = in,
        .out = out,
        .attrs = attrs,
        .values = values,
        .key = step_draws[0][0],
        .draw = step_draws[0][1],
    };
    assert_int_equal(c->backend->run_op(c->device, &call), TRN_OK);
}

static trn_arg on(trn_arg a, void *memory)
{
    a.buffer = memory;
    return a;
}

static void expected_step(trn_context *c, const fake_graph *g, step_data *s)
{
    float xw[8], z[8], d[8], gw[6];
    const trn_arg y = g->value[3].arg;
    trn_arg x = on(g->value[0].arg, s->x), w = on(g->value[1].arg, s->w);
    trn_arg bb = on(g->value[4].arg, s->b), gwa = on(g->value[1].arg, gw);
    trn_arg xwa = on(y, xw), za = on(y, z), da = on(y, d);
    trn_arg part = on(g->value[7].arg, d), sum = on(g->value[8].arg, &s->sum);
    run_op(c, TRN_OP_matmul, &x, &w, &xwa, &no_trans, NULL);
    run_op(c, TRN_OP_add, &xwa, &bb, &za, NULL, NULL);
    run_op(c, TRN_OP_dropout, &za, NULL, &da, NULL, step_scalars);
    run_op(c, TRN_OP_sum, &part, NULL, &sum, &all_axes, NULL);
    run_op(c, TRN_OP_matmul, &x, &da, &gwa, &trans_a, NULL);
    run_op(c, TRN_OP_sgd_update, &w, &gwa, NULL, NULL, step_scalars + 1);
    memcpy(s->mid, d + 2, sizeof s->mid);
}

static step_data some_data(void)
{
    step_data s = {.b = {0.3f, -0.7f}};
    uint64_t seed = 5;
    for (int i = 0; i < 12; i++)
        s.x[i] = (float)harness_uniform(&seed, -2, 2);
    for (int i = 0; i < 6; i++)
        s.w[i] = (float)harness_uniform(&seed, -1, 1);
    return s;
}

static void program_gives_the_bits_of_run_op(void **state)
{
    static fake_graph g;
    loop_host h;
    trn_program *p;
    uint64_t ticket;
    trn_outcome out;
    step_data want = some_data(), got = want;
    loop_start(&h, *state, "compile_ms=1,execute_ms=1");
    build_step(&g);
    assert_int_equal(loop_table->compile(h.dev, as_graph(&g), &p), TRN_OK);
    trn_buffer *in[] = {put(&h, got.x, sizeof got.x),
                        put(&h, got.w, sizeof got.w),
                        put(&h, got.b, sizeof got.b)};
    trn_buffer *outs[] = {put(&h, NULL, 4), in[1], put(&h, NULL, 16)};
    trn_execution e = {sizeof e,     3,         3, 3, 1, in, outs,
                       step_scalars, step_draws};
    for (int step = 0; step < 3; step++) {
        assert_int_equal(loop_table->execute(h.dev, p, &e, &ticket), TRN_OK);
        assert_int_equal(outcome_of(&h, ticket, &out), TRN_OK);
        expected_step(h.c, &g, &want);
        take(&h, in[1], got.w, sizeof got.w);
        take(&h, outs[0], &got.sum, sizeof got.sum);
        take(&h, outs[2], got.mid, sizeof got.mid);
        assert_memory_equal(&want, &got, sizeof want);
    }
    e.n_scalars = 2; /* not what the program has */
    assert_int_equal(loop_table->execute(h.dev, p, &e, &ticket), TRN_ERR_ARG);
    loop_table->release(h.dev, p);
    loop_table->close(h.dev);
}

static void
executions_run_in_order_and_a_third_waits_for_the_first(void **state)
{
    static update_loop u;
    trn_outcome out;
    update_start(&u, *state, "execute_ms=5");
    uint64_t first = update(&u, u.x, 1), second = update(&u, u.x, 0.5);
    uint64_t third = update(&u, u.x, 0.25);
    assert_int_equal(loop_table->poll(u.h.dev, first), 1);
    assert_int_equal(outcome_of(&u.h, third, &out), TRN_OK);
    assert_int_equal(outcome_of(&u.h, first, &out), TRN_OK);
    assert_int_equal(outcome_of(&u.h, second, &out), TRN_OK);
    assert_int_equal(loop_table->wait(u.h.dev, second, &out), TRN_ERR_ARG);
    check_w(&u, 3, (const float[]){1, 0.5f, 0.25f});
    update_stop(&u);
}

static void
reads_and_writes_wait_for_executions_that_use_the_buffer(void **state)
{
    static update_loop u;
    const float zeros[4] = {0};
    trn_outcome out;
    update_start(&u, *state, "execute_ms=5");
    uint64_t ticket = update(&u, u.x, 1);
    check_w(&u, 1, (const float[]){1});
    assert_int_equal(outcome_of(&u.h, ticket, &out), TRN_OK);
    ticket = update(&u, u.x, 0.5);
    assert_int_equal(loop_table->write(u.h.dev, u.x, 0, zeros, sizeof zeros),
                     TRN_OK);
    check_w(&u, 2, (const float[]){1, 0.5f});
    update(&u, u.x, 0.25); /* nobody waits for it but close */
    loop_table->free(u.h.dev, u.x);
    update_stop(&u);
}

/* ---- other graphs ---- */

static void states_may_swap(void **state)
{
    static fake_graph g;
    loop_host h;
    trn_program *p;
    uint64_t ticket;
    trn_outcome out;
    float a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, got[4];
    loop_start(&h, *state, "");
    graph_begin(&g);
    trn_arg arg = packed(TRN_F32, 1, shape_4), back = arg;
    int32_t av = graph_input(&g, arg), bv = graph_input(&g, arg);
    back.offset = 3; /* b from its end to its beginning, as a view */
    back.stride[0] = -1;
    int32_t view = graph_node(&g, TRN_OP_slice, bv, -1, back, bv);
    graph_output(&g, view, 0);
    graph_output(&g, av, 1);
    assert_int_equal(loop_table->compile(h.dev, as_graph(&g), &p), TRN_OK);
    trn_buffer *in[] = {put(&h, a, sizeof a), put(&h, b, sizeof b)};
    const trn_execution e = {sizeof e, 2, 2, 0, 0, in, in, NULL, NULL};
    assert_int_equal(loop_table->execute(h.dev, p, &e, &ticket), TRN_OK);
    assert_int_equal(outcome_of(&h, ticket, &out), TRN_OK);
    take(&h, in[0], got, sizeof got);
    assert_memory_equal(got, ((float[]){8, 7, 6, 5}), sizeof got);
    take(&h, in[1], got, sizeof got);
    assert_memory_equal(got, a, sizeof got);
    loop_table->release(h.dev, p);
    loop_table->close(h.dev);
}

enum { LENGTH = 40 };

/* Random sums, differences and products; expected values by the compiler. */
static void random_graph(fake_graph *g, float (*want)[4], uint64_t *seed)
{
    graph_begin(g);
    trn_arg arg = packed(TRN_F32, 1, shape_4);
    for (int i = 0; i < 3; i++) {
        graph_input(g, arg);
        for (int k = 0; k < 4; k++)
            want[i][k] = (float)harness_uniform(seed, -1, 1);
    }
    for (int i = 3; i < LENGTH; i++) {
        uint64_t r = harness_random(seed);
        int32_t a = (int32_t)(r % (uint64_t)i), b = i - 1 - (int32_t)(r >> 60);
        b = b < 0 ? 0 : b;
        uint32_t op = TRN_OP_add + (uint32_t)(r >> 40) % 3;
        graph_node(g, op, a, b, arg, -1);
        for (int k = 0; k < 4; k++)
            want[i][k] = op == TRN_OP_add   ? want[a][k] + want[b][k]
                         : op == TRN_OP_sub ? want[a][k] - want[b][k]
                                            : want[a][k] * want[b][k];
    }
    for (int i = 0; i < 4; i++)
        graph_output(g, LENGTH - 1 - 5 * i, -1);
}

static void transient_values_never_overwrite_each_other(void **state)
{
    static fake_graph g;
    static float want[LENGTH][4];
    loop_host h;
    trn_program *p;
    uint64_t ticket, seed = 11;
    trn_outcome out;
    float got[4];
    loop_start(&h, *state, "");
    for (int round = 0; round < 20; round++) {
        trn_buffer *in[3], *outs[4];
        random_graph(&g, want, &seed);
        assert_int_equal(loop_table->compile(h.dev, as_graph(&g), &p), TRN_OK);
        for (int i = 0; i < 3; i++)
            in[i] = put(&h, want[i], 16);
        for (int i = 0; i < 4; i++)
            outs[i] = put(&h, NULL, 16);
        const trn_execution e = {sizeof e, 3, 4, 0, 0, in, outs, NULL, NULL};
        assert_int_equal(loop_table->execute(h.dev, p, &e, &ticket), TRN_OK);
        assert_int_equal(outcome_of(&h, ticket, &out), TRN_OK);
        for (int i = 0; i < 4; i++) {
            take(&h, outs[i], got, sizeof got);
            assert_int_equal(
                dtype_differ(TRN_F32, got, want[LENGTH - 1 - 5 * i], 4), -1);
            loop_table->free(h.dev, outs[i]);
        }
        for (int i = 0; i < 3; i++)
            loop_table->free(h.dev, in[i]);
        loop_table->release(h.dev, p);
    }
    loop_table->close(h.dev);
}

static void strict_device_refuses_f64_and_i64(void **state)
{
    static fake_graph g;
    loop_host h;
    trn_program *p;
    loop_start(&h, *state, "strict");
    for (uint32_t dtype = TRN_F64; dtype <= TRN_BOOL; dtype++) {
        bool refused = dtype == TRN_F64 || dtype == TRN_I64;
        trn_arg x = packed(dtype, 1, shape_4), y = x;
        const trn_arg *in[] = {&x}, *out[] = {&y};
        const trn_op_call call = {.size = sizeof call,
                                  .op = TRN_OP_copy,
                                  .n_in = 1,
                                  .n_out = 1,
                                  .in = in,
                                  .out = out};
        assert_int_equal(loop_table->supports(h.dev, &call), !refused);
        graph_begin(&g);
        graph_output(
            &g, graph_node(&g, TRN_OP_copy, graph_input(&g, x), -1, y, -1), -1);
        assert_int_equal(loop_table->compile(h.dev, as_graph(&g), &p),
                         refused ? TRN_ERR_DTYPE : TRN_OK);
        loop_table->release(h.dev, p);
    }
    loop_table->close(h.dev);
}

static void graph_that_is_not_well_formed_is_refused(void **state)
{
    static update_loop u;
    trn_program *p;
    update_start(&u, *state, "");
    for (int fault = 0; fault < 5; fault++) {
        fake_graph g = u.g;
        switch (fault) {
        case 0:
            g.node[1].in[1] = g.info.n_values;
            break;
        case 1:
            g.node[1].scalar[0] = -1;
            break;
        case 2:
            g.value[2].base = 1 << 20;
            break;
        case 3:
            g.output[0].alias = 2;
            break;
        default:
            g.node[1].n_out = 0;
        }
        assert_int_equal(loop_table->compile(u.h.dev, as_graph(&g), &p),
                         TRN_ERR_INTERNAL);
        assert_null(p);
    }
    update_stop(&u);
}

/* ---- memory and threads ---- */

static int signal_of_touching(trn_buffer *b, bool write)
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit none = {0, 0};
        volatile char *at = (volatile char *)(void *)b;
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGSEGV, SIG_DFL);
        if (write)
            *at = 1;
        (void)*at;
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void host_that_touches_a_handle_dies(void **state)
{
    loop_host h;
    loop_start(&h, *state, "");
    trn_buffer *b = put(&h, "abcd", 4);
    assert_int_equal(signal_of_touching(b, false), SIGSEGV);
    assert_int_equal(signal_of_touching(b, true), SIGSEGV);
    loop_table->close(h.dev);
}

static void blocks_keep_their_bytes_and_freed_ones_are_used_again(void **state)
{
    enum { N_BLOCKS = 32 };
    struct {
        trn_buffer *b;
        uint64_t bytes;
    } held[N_BLOCKS] = {{NULL, 0}};
    static unsigned char data[40000];
    loop_host h;
    uint64_t seed = 3;
    uintptr_t low = UINTPTR_MAX, high = 0;
    loop_start(&h, *state, "");
    for (int i = 0; i < 4000; i++) {
        uint64_t r = harness_random(&seed), k = r % N_BLOCKS;
        if (held[k].b != NULL) {
            take(&h, held[k].b, data, held[k].bytes);
            for (uint64_t j = 0; j < held[k].bytes; j++)
                assert_int_equal(data[j], k);
            loop_table->free(h.dev, held[k].b);
        }
        held[k].bytes = 1 + (r >> 20) % sizeof data;
        memset(data, (int)k, sizeof data);
        held[k].b = put(&h, data, held[k].bytes);
        uintptr_t at = (uintptr_t)held[k].b;
        low = at < low ? at : low;
        high = at > high ? at : high;
    }
    assert_true(high - low < 4 * N_BLOCKS * sizeof data);
    assert_null(loop_table->alloc(h.dev, UINT64_MAX));
    assert_null(loop_table->alloc(h.dev, (uint64_t)1 << 50));
    loop_table->close(h.dev);
}

static void context_works_on_while_steps_are_in_flight(void **state)
{
    static update_loop u;
    trn_context *c = *state;
    trn_outcome out;
    uint64_t tickets[2] = {0, 0};
    update_start(&u, c, "");
    trn_tensor *x = trn_tensor_zeros(c, TRN_F32, 2, (int64_t[]){64, 64});
    for (int i = 0; i < 200; i++) {
        if (i > 1)
            assert_int_equal(outcome_of(&u.h, tickets[i % 2], &out), TRN_OK);
        tickets[i % 2] = update(&u, u.x, 0.01);
        trn_step_begin(c);
        assert_non_null(trn_matmul(x, trn_add(x, x)));
        trn_step_end(c);
    }
    assert_int_equal(outcome_of(&u.h, tickets[0], &out), TRN_OK);
    assert_int_equal(outcome_of(&u.h, tickets[1], &out), TRN_OK);
    update_stop(&u);
}

/* Memory asked for by type and shape; NULL: it was not given. */
static trn_buffer *like(loop_host *h, uint32_t dtype, int64_t n, uint64_t bytes)
{
    static trn_arg arg;
    arg = packed(dtype, 1, &n);
    return loop_table->alloc_like(h->dev, &arg, bytes);
}

static void memory_for_a_tensor_holds_such_a_tensor_only(void **state)
{
    static fake_graph g;
    loop_host h;
    trn_program *p;
    trn_outcome out;
    trn_arg three = packed(TRN_F32, 1, (int64_t[]){3});
    graph_begin(&g);
    int32_t x = graph_input(&g, three);
    graph_output(&g, graph_node(&g, TRN_OP_neg, x, -1, three, -1), -1);
    loop_start(&h, *state, "");
    assert_int_equal(loop_table->compile(h.dev, as_graph(&g), &p), TRN_OK);
    trn_buffer *any = put(&h, NULL, 12), *result = like(&h, TRN_F32, 3, 12);
    trn_buffer *buffers[] = {any, like(&h, TRN_F32, 3, 12),
                             like(&h, TRN_I32, 3, 12),
                             like(&h, TRN_F32, 4, 16)};
    trn_execution e = {.size = sizeof e, .n_inputs = 1, .n_outputs = 1};
    e.outputs = &result;
    for (int i = 0; i < 4; i++) {
        uint64_t ticket;
        assert_non_null(buffers[i]);
        e.inputs = &buffers[i];
        int32_t status = loop_table->execute(h.dev, p, &e, &ticket);
        assert_int_equal(status, i < 2 ? TRN_OK : TRN_ERR_ARG);
        if (status == TRN_OK)
            assert_int_equal(outcome_of(&h, ticket, &out), TRN_OK);
        else
            assert_non_null(strstr(h.message, "types and shapes of buffers"));
    }
    assert_null(like(&h, TRN_F32, 3, 16));
    for (int i = 0; i < 4; i++)
        loop_table->free(h.dev, buffers[i]);
    loop_table->free(h.dev, result);
    loop_table->release(h.dev, p);
    loop_table->close(h.dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(program_gives_the_bits_of_run_op),
        TRN_TEST(executions_run_in_order_and_a_third_waits_for_the_first),
        TRN_TEST(reads_and_writes_wait_for_executions_that_use_the_buffer),
        TRN_TEST(states_may_swap),
        TRN_TEST(transient_values_never_overwrite_each_other),
        TRN_TEST(strict_device_refuses_f64_and_i64),
        TRN_TEST(graph_that_is_not_well_formed_is_refused),
        TRN_TEST(host_that_touches_a_handle_dies),
        TRN_TEST(blocks_keep_their_bytes_and_freed_ones_are_used_again),
        TRN_TEST(memory_for_a_tensor_holds_such_a_tensor_only),
        TRN_TEST(context_works_on_while_steps_are_in_flight),
    };
    return cmocka_run_group_tests(tests, loop_load, NULL);
}
