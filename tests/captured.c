/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests of captured steps share; see captured.h.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "captured.h"

const captured_way captured_ways[3] = {
    [EAGER] = {"eager", "cpu", TRN_EXEC_EAGER},
    [CAPTURED] = {"captured", "cpu", TRN_EXEC_CAPTURED},
    [LOOP] = {"loop", "loop:strict", TRN_EXEC_AUTO},
};

static _Atomic int64_t held, asked, fail_at;
static _Atomic bool fail_ever, failed;

static void *counted_alloc(void *user, size_t bytes)
{
    (void)user;
    int64_t n = atomic_fetch_add(&asked, 1) + 1;
    int64_t at = atomic_load(&fail_at);
    if (at > 0 && (n == at || (n > at && atomic_load(&fail_ever)))) {
        atomic_store(&failed, true);
        return NULL;
    }
    void *memory = malloc(bytes);
    if (memory != NULL)
        atomic_fetch_add(&held, (int64_t)bytes);
    return memory;
}

static void counted_free(void *user, void *memory, size_t bytes)
{
    (void)user;
    if (memory != NULL)
        atomic_fetch_sub(&held, (int64_t)bytes);
    free(memory);
}

int64_t captured_bytes(void)
{
    return atomic_load(&held);
}

int64_t captured_allocations(void)
{
    return atomic_load(&asked);
}

void captured_fail_at(int64_t n, bool ever)
{
    atomic_store(&failed, false);
    atomic_store(&fail_ever, ever);
    atomic_store(&fail_at, n == 0 ? 0 : atomic_load(&asked) + n);
}

bool captured_failed(void)
{
    return atomic_load(&failed);
}

trn_options captured_options(int way, const char *device)
{
    trn_options o = TRN_OPTIONS_INIT;
    o.device = device == NULL ? captured_ways[way].device : device;
    o.exec = (uint32_t)captured_ways[way].exec;
    o.n_threads = 2;
    o.alloc = counted_alloc;
    o.free = counted_free;
    return o;
}

trn_context *captured_open_options(const trn_options *o)
{
    trn_context *c;
    atomic_store(&held, 0);
    captured_fail_at(0, false);
    trn_status status = trn_open(&c, o);
    CHECK(status == TRN_OK, "%s\n", trn_errmsg(c));
    return c;
}

trn_context *captured_open(int way, const char *device)
{
    trn_options o = captured_options(way, device);
    return captured_open_options(&o);
}

void captured_close(trn_context *c)
{
    captured_fail_at(0, false);
    trn_close(c);
    CHECK(atomic_load(&held) == 0, "%lld bytes were not given back\n",
          (long long)atomic_load(&held));
}

trn_capture_info captured_info(trn_context *c)
{
    trn_capture_info info = TRN_CAPTURE_INFO_INIT;
    assert_int_equal(trn_capture(c, &info), TRN_OK);
    return info;
}

#define WORDS 7
#define WINDOW 4

captured_net captured_build(trn_context *c, int samples, int batch)
{
    captured_net m = {.c = c};
    int32_t inputs[64 * WINDOW], targets[64];
    uint64_t seed = 5;
    assert_in_range(samples, 1, 64);
    for (int i = 0; i < samples * WINDOW; i++)
        inputs[i] = (int32_t)(harness_random(&seed) % WORDS);
    for (int i = 0; i < samples; i++)
        targets[i] = (int32_t)(harness_random(&seed) % WORDS);
    m.inputs =
        trn_tensor_from(c, TRN_I32, 2, (int64_t[]){samples, WINDOW}, inputs);
    m.targets = trn_tensor_from(c, TRN_I32, 1, (int64_t[]){samples}, targets);
    m.data = trn_data_tensors(c, m.inputs, m.targets, batch, NULL);
    m.drop = trn_nn_dropout(c, 0.25);
    m.net =
        trn_nn_sequential(c, trn_nn_embedding(c, WORDS, 3), trn_nn_flatten(c),
                          trn_nn_linear(c, 3 * WINDOW, 8), trn_nn_relu(c),
                          m.drop, trn_nn_linear(c, 8, WORDS), NULL);
    trn_adamw_options o = TRN_ADAMW_INIT;
    o.learning_rate = 0.05;
    m.optim = trn_optim_adamw(m.net, &o);
    trn_optim_set_schedule(m.optim, trn_schedule_cosine(c, 40, 0.1));
    return m;
}

trn_tensor *captured_loss(captured_net *m)
{
    trn_batch b;
    int more = trn_data_next(m->data, &b);
    if (!more) /* the end of a pass; then the next one begins */
        more = trn_data_next(m->data, &b);
    if (!more)
        return NULL;
    return trn_cross_entropy(trn_nn_forward(m->net, b.inputs), b.targets, NULL);
}

bool captured_train(captured_net *m)
{
    trn_step_begin(m->c);
    trn_backward(captured_loss(m));
    trn_optim_clip_norm(m->optim, 1.0);
    trn_optim_step(m->optim);
    return trn_step_end(m->c) == TRN_OK;
}

bool captured_train_steps(captured_net *m, int n)
{
    for (int i = 0; i < n; i++) {
        if (!captured_train(m))
            return false;
    }
    return true;
}

const char *captured_digest(trn_module *m, char out[65])
{
    trn_digest(m, out);
    harness_ok(trn_nn_context(m));
    return out;
}

static uint64_t add_bytes(uint64_t h, const void *data, size_t n)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < n; i++)
        h = (h ^ at[i]) * UINT64_C(0x100000001b3);
    return h;
}

static uint64_t add_tensor(uint64_t h, trn_tensor *t)
{
    if (t == NULL)
        return add_bytes(h, "none", 4);
    size_t n;
    void *bytes = harness_bytes_of(t, &n);
    h = add_bytes(h, bytes, n);
    free(bytes);
    return h;
}

uint64_t captured_state(captured_net *m)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (int64_t i = 0; i < trn_nn_parameter_count(m->net); i++) {
        trn_tensor *t = trn_nn_parameter_at(m->net, i);
        h = add_tensor(h, t);
        h = add_tensor(h, trn_grad_of(t));
        h = add_tensor(h, trn_optim_state(m->optim, i, "m"));
        h = add_tensor(h, trn_optim_state(m->optim, i, "v"));
    }
    int64_t numbers[] = {
        (int64_t)trn_generator_draws(trn_generator_default(m->c)),
        trn_optim_steps(m->optim),
        trn_step_index(m->c),
    };
    double rate = trn_optim_learning_rate(m->optim);
    h = add_bytes(h, numbers, sizeof numbers);
    return add_bytes(h, &rate, sizeof rate);
}
