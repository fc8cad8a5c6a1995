/* SPDX-License-Identifier: Apache-2.0
 *
 * Fused groups of the CPU device: the bits of single ops, for random chains
 * over all types and layouts; what must not be fused; memory; threads.
 */
#include "cpu_graph_run.h"

#include <pthread.h>

static const trn_axis_attrs last_axis = {.axis = 1};
static const trn_random_attrs drawn = {.dtype = TRN_F32};

/* ---- random chains ---- */

typedef struct maker {
    trn_graph *g;
    uint64_t seed;
    int rank;
    int64_t shape[3];
    int32_t pool[MAX_VALUES];
    int n_pool, group;
} maker;

static uint64_t choose(maker *m, uint64_t n)
{
    return next_bits(&m->seed) % n;
}

static uint32_t type_of(const maker *m, int32_t v)
{
    return m->g->values[v].arg.dtype;
}

static int32_t any(maker *m)
{
    /* Often the youngest, so that there are chains. */
    if (choose(m, 2) == 0)
        return m->pool[m->n_pool - 1];
    return m->pool[choose(m, (uint64_t)m->n_pool)];
}

static int32_t any_of(maker *m, uint32_t dtype)
{
    const int start = (int)choose(m, (uint64_t)m->n_pool);
    for (int i = 0; i < m->n_pool; i++) {
        const int32_t v = m->pool[(start + i) % m->n_pool];
        if (type_of(m, v) == dtype)
            return v;
    }
    return -1;
}

static int32_t emit(maker *m, uint32_t op, int n_in, const int32_t *in,
                    uint32_t dtype)
{
    const trn_arg out = like(dtype, m->rank, m->shape);
    const int32_t v = add_op(m->g, op, n_in, in, &out);
    m->g->nodes[m->g->info.n_nodes - 1].group = m->group;
    m->pool[m->n_pool++] = v;
    return v;
}

static void emit_unary(maker *m, int32_t x)
{
    static const uint32_t ops[] = {
        TRN_OP_neg,  TRN_OP_relu,           TRN_OP_exp, TRN_OP_log, TRN_OP_tanh,
        TRN_OP_sqrt, TRN_OP_flush_subnormal};
    const uint32_t dtype = type_of(m, x);
    emit(m, ops[choose(m, dtype <= TRN_F16 ? 7 : 2)], 1, &x, dtype);
}

static void emit_binary(maker *m, int32_t x)
{
    static const uint32_t ops[] = {TRN_OP_mul,   TRN_OP_maximum, TRN_OP_greater,
                                   TRN_OP_equal, TRN_OP_add,     TRN_OP_sub,
                                   TRN_OP_div,   TRN_OP_pow};
    const uint32_t dtype = type_of(m, x);
    const int32_t in[] = {x, any_of(m, dtype)};
    const uint32_t op = ops[choose(m, dtype <= TRN_F16    ? 8
                                      : dtype == TRN_BOOL ? 4
                                                          : 6)];
    const bool compare = op == TRN_OP_greater || op == TRN_OP_equal;
    emit(m, op, 2, in, compare ? (uint32_t)TRN_BOOL : dtype);
}

static void emit_random(maker *m, int32_t x)
{
    static const uint32_t floats[] = {TRN_F64, TRN_F32, TRN_BF16, TRN_F16};
    const uint32_t dtype = floats[choose(m, 4)];
    if (type_of(m, x) <= TRN_F16) {
        emit(m, TRN_OP_dropout, 1, &x, type_of(m, x));
        add_scalar(m->g, (double)choose(m, 5) * 0.25);
    } else {
        emit(m, choose(m, 2) ? TRN_OP_uniform : TRN_OP_normal, 0, NULL, dtype);
        add_attrs(m->g, &drawn, sizeof drawn);
    }
    add_draw(m->g, next_bits(&m->seed), choose(m, 100));
}

/* What ends a pass: an op that is not element by element, or a view. */
static void emit_barrier(maker *m, int32_t x)
{
    trn_arg view = m->g->values[x].arg;
    if (m->rank == 2 && m->shape[0] == m->shape[1]) {
        const int64_t stride = view.stride[0];
        view.stride[0] = view.stride[1];
        view.stride[1] = stride;
        const int32_t v = add_view(m->g, x, &view);
        if (choose(m, 2) == 0)
            m->g->nodes[m->g->info.n_nodes - 1].group = m->group;
        m->pool[m->n_pool++] = v;
    } else if (type_of(m, x) <= TRN_F16 && m->rank > 1) {
        emit(m, TRN_OP_softmax, 1, &x, type_of(m, x));
        add_attrs(m->g, &last_axis, sizeof last_axis);
    }
}

static void emit_any(maker *m)
{
    const int32_t x = any(m), c = any_of(m, TRN_BOOL);
    const uint32_t dtype = type_of(m, x);
    const int32_t three[] = {c, x, any_of(m, dtype)};
    const uint32_t to = (uint32_t)(TRN_F64 + choose(m, 9));
    switch (choose(m, 16)) {
    case 0:
    case 1:
    case 2:
        if (dtype != TRN_BOOL)
            emit_unary(m, x);
        return;
    case 3:
        if (c >= 0)
            emit(m, TRN_OP_where, 3, three, dtype);
        return;
    case 4:
    case 5:
        if (dtype == TRN_BOOL)
            return;
        emit(m, choose(m, 2) ? TRN_OP_add_scalar : TRN_OP_mul_scalar, 1, &x,
             dtype);
        add_scalar(m->g, (double)choose(m, 7) * 0.7 - 2);
        return;
    case 6:
        emit(m, TRN_OP_cast, 1, &x, to);
        return;
    case 7:
        emit(m, TRN_OP_copy, 1, &x, dtype);
        return;
    case 8:
        emit(m, TRN_OP_full, 0, NULL, to);
        add_scalar(m->g, to == TRN_BOOL ? 1.0 : 2.5);
        return;
    case 9:
    case 10:
        emit_random(m, x);
        return;
    case 11:
        if (choose(m, 3) == 0)
            emit_barrier(m, x);
        return;
    default:
        emit_binary(m, x);
    }
}

static trn_graph *random_graph(int seed)
{
    static const int64_t shapes[][3] = {{37, 37, 1}, {3, 1500, 1}, {1, 1, 1},
                                        {2, 70, 61}, {0, 5, 2},    {3000, 3, 1},
                                        {5, 1024, 1}};
    static const int ranks[] = {2, 2, 0, 3, 3, 2, 2};
    const int s = seed % 7;
    maker m = {.g = graph_new(), .seed = (uint64_t)seed, .rank = ranks[s]};
    memcpy(m.shape, shapes[s], sizeof m.shape);
    const int inputs = 2 + (int)choose(&m, 4);
    const int nodes = 2 + (int)choose(&m, seed % 5 == 0 ? 70 : 20);
    const uint64_t types = choose(&m, 3);
    for (int i = 0; i < inputs; i++) {
        const uint32_t dtype =
            types == 0   ? TRN_F32
            : types == 1 ? (uint32_t)TRN_F64 + (uint32_t)choose(&m, 4)
                         : (uint32_t)TRN_F64 + (uint32_t)choose(&m, 9);
        const layout how = m.rank == 0 ? PLAIN : (layout)choose(&m, N_LAYOUTS);
        m.pool[m.n_pool++] = add_input(
            m.g, ones_of(dtype, m.rank, m.shape, how, next_bits(&m.seed)));
    }
    while (m.g->info.n_nodes < nodes) {
        if (choose(&m, 12) == 0)
            m.group++;
        emit_any(&m);
    }
    const int outputs = 1 + (int)choose(&m, 5);
    for (int i = 0; i < outputs; i++) {
        const int32_t v = i == 0 ? m.pool[m.n_pool - 1] : any(&m);
        if (m.g->values[v].output < 0 && m.g->values[v].input < 0)
            add_output(m.g, v, -1);
    }
    plan(m.g, choose(&m, 5), &m.seed);
    return m.g;
}

static void random_chains(int from, int to)
{
    for (int seed = from; seed < to; seed++) {
        const trn_graph *g = random_graph(seed);
        for (int d = 0; d < n_devices; d++)
            check_graph(g, d, "chain", seed);
        free_operands(NULL);
    }
}

static void fused_chains_give_the_bits_of_single_ops(void **state)
{
    (void)state;
    const char *more = getenv("TRN_TEST_CHAINS");
    random_chains(0, more != NULL ? (int)strtol(more, NULL, 10) : 200);
}

/* ---- fusion keeps to the plan ---- */

static void fused_values_take_no_memory_and_the_arena_is_the_plan(void **state)
{
    (void)state;
    const int64_t n[] = {2048, 3};
    trn_graph *g = graph_new();
    const trn_arg y = like(TRN_BF16, 2, n);
    int32_t x = add_input(g, ones_of(TRN_BF16, 2, n, SWAPPED, 1));
    for (int i = 0; i < 24; i++) {
        const int32_t in[] = {x, x};
        x = i % 3 == 0 ? add_op(g, TRN_OP_add, 2, in, &y)
                       : add_op(g, TRN_OP_mul_scalar, 1, &x, &y);
        if (i % 3 != 0)
            add_scalar(g, 0.5 + i / 64.0);
        g->nodes[i].group = 0;
        g->nodes[i].fused_only = i < 23;
    }
    add_output(g, x, -1);
    for (int d = 0; d < n_devices; d++) {
        trn_program *program = compile(d, g);
        ports p;
        make_ports(g, &p);
        hosts[d].no_memory = true; /* nothing is asked for */
        assert_int_equal(execute(d, program, &p.e).status, TRN_OK);
        hosts[d].no_memory = false;
        trn__cpu_backend.release(devices[d], program);
        check_graph(g, d, "no memory", 0);
    }
}

/* More values and scalars at once than there are chunk buffers. */
static void a_group_that_needs_too_many_buffers_is_cut(void **state)
{
    (void)state;
    static const int64_t n[] = {3, 700};
    trn_graph *g = graph_new();
    const trn_arg y = like(TRN_F32, 2, n);
    const int32_t x = add_input(g, ones_of(TRN_F32, 2, n, GAPS, 1));
    int32_t first[40], last = x;
    for (int i = 0; i < 40; i++) {
        first[i] = add_op(g, TRN_OP_mul_scalar, 1, &x, &y);
        add_scalar(g, 1.0 + i);
    }
    for (int i = 0; i < 40; i++) {
        const int32_t in[] = {last, first[i]};
        last = add_op(g, i % 2 ? TRN_OP_sub : TRN_OP_add, 2, in, &y);
    }
    for (int i = 0; i < g->info.n_nodes; i++) {
        g->nodes[i].group = 0;
        g->nodes[i].fused_only = i < g->info.n_nodes - 1;
    }
    add_output(g, last, -1);
    for (int d = 0; d < n_devices; d++)
        check_graph(g, d, "buffers", 0);
}

/* The graph's passes make none of these; a device need not believe it. */
static void a_view_of_a_fused_value_is_read_from_memory(void **state)
{
    (void)state;
    static const int64_t n[] = {50, 50};
    trn_graph *g = graph_new();
    const trn_arg y = like(TRN_F32, 2, n);
    trn_arg turned = y;
    turned.stride[0] = 1;
    turned.stride[1] = 50;
    const int32_t x = add_input(g, ones_of(TRN_F32, 2, n, PLAIN, 1));
    const int32_t a = add_op(g, TRN_OP_neg, 1, &x, &y);
    const int32_t in[] = {a, add_view(g, a, &turned)};
    const int32_t b = add_op(g, TRN_OP_sub, 2, in, &y);
    const int32_t c = add_op(g, TRN_OP_tanh, 1, &b, &y);
    for (int i = 0; i < g->info.n_nodes; i++)
        g->nodes[i].group = 0;
    g->nodes[0].fused_only = g->nodes[2].fused_only = 1;
    add_output(g, c, -1);
    for (int d = 0; d < n_devices; d++)
        check_graph(g, d, "view", 0);
}

/* ---- threads ---- */

enum { N_THREADS = 3 };

typedef struct team_job {
    trn_range_fn fn;
    void *arg;
    int64_t n, grain, next;
    pthread_mutex_t lock;
} team_job;

static void *team_work(void *arg)
{
    team_job *j = arg;
    for (;;) {
        pthread_mutex_lock(&j->lock);
        const int64_t at = j->next;
        j->next += j->grain;
        pthread_mutex_unlock(&j->lock);
        if (at >= j->n)
            return NULL;
        j->fn(j->arg, at, at + j->grain < j->n ? at + j->grain : j->n);
    }
}

static void threaded_for(void *host, int64_t n, int64_t grain, trn_range_fn fn,
                         void *arg)
{
    team_job j = {.fn = fn, .arg = arg, .n = n, .grain = grain};
    pthread_t thread[N_THREADS];
    (void)host;
    pthread_mutex_init(&j.lock, NULL);
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, team_work, &j), 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(thread[i], NULL);
    pthread_mutex_destroy(&j.lock);
}

static void threads_share_the_ranges_of_a_group(void **state)
{
    (void)state;
    for (int d = 0; d < n_devices; d++)
        services[d].parallel_for = threaded_for;
    random_chains(1000, 1040);
    for (int d = 0; d < n_devices; d++)
        services[d].parallel_for = host_for;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CPU_TEST(fused_chains_give_the_bits_of_single_ops),
        CPU_TEST(fused_values_take_no_memory_and_the_arena_is_the_plan),
        CPU_TEST(a_group_that_needs_too_many_buffers_is_cut),
        CPU_TEST(a_view_of_a_fused_value_is_read_from_memory),
        CPU_TEST(threads_share_the_ranges_of_a_group),
    };
    return cmocka_run_group_tests(tests, open_for_graphs, close_all);
}
