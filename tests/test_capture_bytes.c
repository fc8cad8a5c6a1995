/* SPDX-License-Identifier: Apache-2.0
 *
 * What a captured step saves: bytes that move, and memory for values that live
 * only within the step.  Counted, not timed.
 *
 * The device's allocations are watched through the host services, so a peak is
 * exact to the byte.
 */
#include <math.h>

#include "captured.h"
#include "libtrn/ops/capture.h"
#include "libtrn/ops/plan.h"

/* ---- bytes that move ---- */

/* y = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 */
static trn_tensor *gelu(trn_tensor *x)
{
    trn_tensor *cube = trn_mul(trn_mul(x, x), x);
    trn_tensor *u = trn_add(x, trn_mul_scalar(cube, 0.044715));
    u = trn_tanh(trn_mul_scalar(u, 0.7978845608028654));
    return trn_mul(trn_mul_scalar(x, 0.5), trn_add_scalar(u, 1));
}

static double share_of_bytes(bool backward)
{
    trn_context *c = captured_open(CAPTURED, NULL);
    int64_t shape[] = {64, 48};
    trn_tensor *x = trn_full(c, TRN_F32, 2, shape, 0.5);
    trn_set_requires_grad(x, backward);
    trn_step_begin(c);
    trn_tensor *y = trn_dropout(gelu(x), 0.1, trn_generator_default(c));
    if (backward)
        trn_backward_with(y, trn_full(c, TRN_F32, 2, shape, 1.0), false);
    else
        trn_keep(y);
    trn_step_end(c);
    harness_ok(c);
    const trn__trace *t = c->capture->first;
    int64_t eager = 0;
    for (int32_t i = 0; i < t->graph->n_nodes; i++)
        eager += trn__graph_node_bytes(t->graph, i);
    double captured = (double)trn__graph_bytes(t->plan->graph);
    captured_close(c);
    return captured / (double)eager;
}

static void gelu_and_dropout_move_a_fraction_of_eager_bytes(void **state)
{
    (void)state;
    double forward = share_of_bytes(false), both = share_of_bytes(true);
    print_message("GELU and dropout: %.3f of eager's bytes, with backward "
                  "%.3f\n",
                  forward, both);
    assert_true(forward <= 0.4);
    assert_true(both <= 0.4);
}

/* ---- memory within a step ---- */

/* The device's blocks since watch(), and their bytes now and at most. */
enum { MOST_BLOCKS = 1024 };
static struct {
    void *memory;
    size_t bytes;
} blocks[MOST_BLOCKS];
static int64_t now, most;
static void *(*next_alloc)(void *host, size_t bytes);
static void (*next_dealloc)(void *host, void *memory);

static int block_of(const void *memory)
{
    int i = 0;
    while (i < MOST_BLOCKS && blocks[i].memory != memory)
        i++;
    return i;
}

static void *watched_alloc(void *host, size_t bytes)
{
    void *memory = next_alloc(host, bytes);
    int i = block_of(NULL);
    assert_true(i < MOST_BLOCKS);
    if (memory == NULL)
        return NULL;
    blocks[i].memory = memory;
    blocks[i].bytes = bytes;
    now += (int64_t)bytes;
    most = now > most ? now : most;
    return memory;
}

static void watched_dealloc(void *host, void *memory)
{
    int i = memory == NULL ? MOST_BLOCKS : block_of(memory);
    if (i < MOST_BLOCKS) {
        now -= (int64_t)blocks[i].bytes;
        blocks[i].memory = NULL;
    }
    next_dealloc(host, memory);
}

static void watch(trn_context *c)
{
    next_alloc = c->services.alloc;
    next_dealloc = c->services.dealloc;
    c->services.alloc = watched_alloc;
    c->services.dealloc = watched_dealloc;
    memset(blocks, 0, sizeof blocks);
    now = most = 0;
}

/* The demo's model, with a hidden layer of 512; one so small that products need
 * no memory for packing; and a batch whose losses need memory. */
enum {
    WORDS = 97,
    CONTEXT = 16,
    WIDTH = 24,
    BATCH = 128,
    MOST_BATCH = 600,
    BIG = 512,
    SMALL = 4
};

typedef struct demo {
    trn_tensor *x, *y;
    trn_module *net;
    trn_optim *optim;
} demo;

static demo build_demo(trn_context *c, int64_t hidden, int64_t batch)
{
    static int32_t x[MOST_BATCH * CONTEXT], y[MOST_BATCH];
    uint64_t seed = 3;
    demo d;
    for (int i = 0; i < MOST_BATCH * CONTEXT; i++)
        x[i] = (int32_t)(harness_random(&seed) % WORDS);
    for (int i = 0; i < MOST_BATCH; i++)
        y[i] = (int32_t)(harness_random(&seed) % WORDS);
    d.x = trn_tensor_from(c, TRN_I32, 2, (int64_t[]){batch, CONTEXT}, x);
    d.y = trn_tensor_from(c, TRN_I32, 1, (int64_t[]){batch}, y);
    d.net = trn_nn_sequential(
        c, trn_nn_embedding(c, WORDS, WIDTH), trn_nn_flatten(c),
        trn_nn_linear(c, CONTEXT * WIDTH, hidden), trn_nn_relu(c),
        trn_nn_dropout(c, 0.1), trn_nn_linear(c, hidden, WORDS), NULL);
    d.optim = trn_optim_adamw(d.net, NULL);
    harness_ok(c);
    return d;
}

static void demo_step(trn_context *c, demo *d)
{
    trn_step_begin(c);
    trn_backward(trn_cross_entropy(trn_nn_forward(d->net, d->x), d->y, NULL));
    trn_optim_clip_norm(d->optim, 1.0);
    trn_optim_step(d->optim);
    trn_step_end(c);
    harness_ok(c);
}

static trn_context *open_watched(int way, int n_threads)
{
    trn_context *c;
    trn_options o = captured_options(way, NULL);
    o.n_threads = n_threads;
    assert_int_equal(trn_open(&c, &o), TRN_OK);
    watch(c);
    return c;
}

/* The most that a step takes beside what was there before it. */
static int64_t step_bytes(int way, int n_threads, int64_t hidden, int64_t batch,
                          uint64_t *planned)
{
    trn_context *c = open_watched(way, n_threads);
    demo d = build_demo(c, hidden, batch);
    for (int i = 0; i < 3; i++)
        demo_step(c, &d);
    int64_t before = now;
    most = now;
    demo_step(c, &d);
    int64_t bytes = most - before;
    assert_int_equal(now, before);
    *planned = captured_info(c).plan_bytes;
    captured_close(c);
    return bytes;
}

/* The loss is the only result: its f32 is no transient, and not in the plan.
 * Gradients are, as clipping and the optimizer use them up within the step. */
static void a_step_takes_the_bytes_of_its_plan_and_the_loss(void **state)
{
    static const int64_t size[][2] = {
        {SMALL, 2}, {SMALL, MOST_BATCH}, {BIG, BATCH}, {BIG, MOST_BATCH}};
    (void)state;
    for (int i = 0; i < 4; i++)
        for (int n_threads = 1; n_threads <= 3; n_threads++) {
            uint64_t planned;
            int64_t bytes = step_bytes(CAPTURED, n_threads, size[i][0],
                                       size[i][1], &planned);
            print_message("hidden %d, batch %d, %d threads: %lld bytes, "
                          "planned %lld\n",
                          (int)size[i][0], (int)size[i][1], n_threads,
                          (long long)bytes, (long long)planned);
            assert_int_equal(bytes, (int64_t)planned + 4);
        }
}

/* y[8,100,100] = a b, and the gradient [97,64] of rows that y's sum scales. */
static void half_step(trn_context *c, trn_tensor *const *t)
{
    trn_tensor *g;
    trn_step_begin(c);
    trn_tensor *y = trn_matmul(t[0], t[1]);
    trn_tensor *z = trn_embedding(t[2], t[3], -1);
    z = trn_mul(z, z);
    assert_int_equal(trn_grad(1, &z, 1, &t[2], &t[4], NULL, &g), TRN_OK);
    trn_keep(y);
    trn_keep(g);
    trn_step_end(c);
    harness_ok(c);
    trn_tensor_release(y);
    trn_tensor_release(g);
}

/* Both results of the step, and nothing else, come on top of the plan. */
static void sums_of_16_bit_types_are_in_the_plan(void **state)
{
    static int32_t index[BATCH];
    const int64_t a[] = {8, 100, 300}, b[] = {8, 300, 100}, w[] = {WORDS, 64};
    const int64_t n[] = {BATCH}, g[] = {BATCH, 64};
    (void)state;
    for (int i = 0; i < BATCH; i++)
        index[i] = i * 7 % WORDS;
    for (int n_threads = 1; n_threads <= 2; n_threads++) {
        trn_context *c = open_watched(CAPTURED, n_threads);
        trn_tensor *t[] = {trn_full(c, TRN_F16, 3, a, 0.5),
                           trn_full(c, TRN_F16, 3, b, 0.5),
                           trn_full(c, TRN_F16, 2, w, 0.5),
                           trn_tensor_from(c, TRN_I32, 1, n, index),
                           trn_full(c, TRN_F16, 2, g, 1.0)};
        trn_set_requires_grad(t[2], true);
        for (int i = 0; i < 3; i++)
            half_step(c, t);
        int64_t before = now;
        most = now;
        half_step(c, t);
        assert_int_equal(most - before, (int64_t)captured_info(c).plan_bytes +
                                            2 * (8 * 100 * 100 + WORDS * 64));
        captured_close(c);
    }
}

/* Gradients are left out of both: all of them are there when they are clipped.
 * The memory in which products pack their operands is left in. */
static void the_demo_takes_three_quarters_of_eager_memory(void **state)
{
    (void)state;
    uint64_t none, planned;
    int64_t eager = step_bytes(EAGER, 1, BIG, BATCH, &none);
    int64_t captured = step_bytes(CAPTURED, 1, BIG, BATCH, &planned);
    int64_t gradients =
        4 * (WORDS * WIDTH + CONTEXT * WIDTH * BIG + BIG + BIG * WORDS + WORDS);
    double share = (double)(captured - gradients) / (double)(eager - gradients);
    print_message("the demo's step: eager %lld bytes, captured %lld, of which "
                  "planned %llu; gradients are %lld: %.3f\n",
                  (long long)eager, (long long)captured,
                  (unsigned long long)planned, (long long)gradients, share);
    assert_true((int64_t)planned > gradients);
    assert_true(share <= 0.75);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gelu_and_dropout_move_a_fraction_of_eager_bytes),
        cmocka_unit_test(a_step_takes_the_bytes_of_its_plan_and_the_loss),
        cmocka_unit_test(sums_of_16_bit_types_are_in_the_plan),
        cmocka_unit_test(the_demo_takes_three_quarters_of_eager_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
