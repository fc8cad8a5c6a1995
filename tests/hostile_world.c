/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that tries to load files which somebody has changed; see hostile.h.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "checkpoint_help.h"
#include "hostile.h"

/* ---- little memory ---- */

/* The piece with which files are hashed, an index, and what the program has. */
enum { MOST_BYTES = 1 << 20 };

static _Atomic int64_t held;
static _Atomic bool too_much;

static void *small_alloc(void *user, size_t bytes)
{
    (void)user;
    int64_t now = atomic_load(&held) + (int64_t)bytes;
    if (bytes > MOST_BYTES || now > MOST_BYTES) {
        atomic_store(&too_much, true);
        return NULL;
    }
    void *memory = malloc(bytes);
    if (memory != NULL)
        atomic_fetch_add(&held, (int64_t)bytes);
    return memory;
}

static void small_free(void *user, void *memory, size_t bytes)
{
    (void)user;
    if (memory != NULL)
        atomic_fetch_sub(&held, (int64_t)bytes);
    free(memory);
}

/* ---- the program ---- */

static void build_tensors(hostile_world *w)
{
    static const float values[6] = {1, 2, 3, 4, 5, 6};
    trn_context *c = w->c;
    w->a = trn_tensor_from(c, TRN_F32, 2, (int64_t[]){2, 3}, values);
    trn_checkpoint_tensor(w->k, "a", w->a);
    trn_checkpoint_tensor(
        w->k, "half", trn_tensor_from(c, TRN_BF16, 1, (int64_t[]){3}, values));
    trn_checkpoint_tensor(w->k, "flag",
                          trn_tensor_zeros(c, TRN_BOOL, 1, (int64_t[]){2}));
    trn_checkpoint_tensor(w->k, "none",
                          trn_tensor_zeros(c, TRN_I64, 2, (int64_t[]){0, 3}));
}

static void build(hostile_world *w)
{
    trn_context *c = w->c;
    trn_sgd_options s = TRN_SGD_INIT;
    s.momentum = 0.5;
    w->k = trn_checkpoint_new(c);
    build_tensors(w);
    w->net = trn_nn_linear(c, 3, 1);
    w->optim = trn_optim_sgd(w->net, &s);
    w->data = trn_data_tensors(
        c, trn_tensor_zeros(c, TRN_F32, 2, (int64_t[]){9, 3}),
        trn_tensor_zeros(c, TRN_F32, 1, (int64_t[]){9}), 2, NULL);
    w->dice = trn_generator_new(c, 5);
    trn_checkpoint_module(w->k, "net", w->net);
    trn_checkpoint_optim(w->k, "sgd", w->optim);
    trn_checkpoint_loader(w->k, "data", w->data);
    trn_checkpoint_generator(w->k, "dice", w->dice);
    trn_checkpoint_set_text(w->k, "note", "one");
    harness_ok(c);
}

static void live(hostile_world *w)
{
    trn_batch b;
    trn_step_begin(w->c);
    trn_data_next(w->data, &b);
    trn_backward(
        trn_mean(trn_nn_forward(w->net, b.inputs), TRN_ALL_AXES, false));
    trn_optim_step(w->optim);
    trn_uniform(w->dice, TRN_F32, 0, NULL);
    trn_step_end(w->c);
    trn_assign(w->a, trn_mul_scalar(w->a, 1.5));
    trn_optim_set_learning_rate(w->optim,
                                trn_optim_learning_rate(w->optim) * 2);
    trn_checkpoint_set_text(w->k, "note", "another");
    harness_ok(w->c);
}

static uint64_t add(uint64_t h, const void *data, size_t n)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < n; i++)
        h = (h ^ at[i]) * UINT64_C(0x100000001b3);
    return h;
}

static uint64_t add_tensor(uint64_t h, trn_tensor *t)
{
    size_t n;
    void *bytes = harness_bytes_of(t, &n);
    h = add(h, bytes, n);
    free(bytes);
    return h;
}

static uint64_t state_of(hostile_world *w)
{
    const char *note = trn_checkpoint_text(w->k, "note");
    double rate = trn_optim_learning_rate(w->optim);
    trn_batch b;
    uint64_t numbers[] = {
        (uint64_t)trn_step_index(w->c),
        (uint64_t)trn_optim_steps(w->optim),
        trn_generator_draws(w->dice),
    };
    uint64_t h = add(UINT64_C(0xcbf29ce484222325), note, strlen(note));
    h = add(h, numbers, sizeof numbers);
    h = add(h, &rate, sizeof rate);
    h = add_tensor(h, w->a);
    for (int64_t i = 0; i < trn_nn_parameter_count(w->net); i++) {
        h = add_tensor(h, trn_nn_parameter_at(w->net, i));
        h = add_tensor(h, trn_optim_state(w->optim, i, "momentum"));
    }
    /* A batch that is not used is handed out again. */
    assert_int_equal(trn_data_next(w->data, &b), 1);
    trn_data_seek(w->data, b.epoch, b.index);
    return add(h, &b.index, sizeof b.index);
}

hostile_world hostile_begin(void)
{
    hostile_world w = {.path = checkpoint_path("hostile.h5"),
                       .mine = checkpoint_path("mine.h5")};
    trn_options o = TRN_OPTIONS_INIT;
    o.n_threads = 1;
    o.alloc = small_alloc;
    o.free = small_free;
    atomic_store(&held, 0);
    atomic_store(&too_much, false);
    assert_int_equal(trn_open(&w.c, &o), TRN_OK);
    build(&w);
    w.other = state_of(&w);
    assert_int_equal(trn_checkpoint_save(w.k, w.path), TRN_OK);
    w.file = hostile_read(w.path);
    live(&w);
    w.state = state_of(&w);
    assert_int_equal(trn_checkpoint_save(w.k, w.mine), TRN_OK);
    assert_true(w.state != w.other);
    return w;
}

void hostile_finish(hostile_world *w)
{
    hostile_end(&w->file);
    trn_close(w->c);
    assert_int_equal(atomic_load(&held), 0);
}

/* ---- trying ---- */

static void put_nowhere(void *user, const char *text)
{
    *(size_t *)user += strlen(text);
}

/* Does the message name the file, and then a place in it? */
static void check_message(hostile_world *w, const char *path, const char *part)
{
    const char *text = trn_errmsg(w->c), *rest;
    CHECK(strstr(text, part) != NULL, "\"%s\" is not in \"%s\"\n", part, text);
    CHECK(strncmp(text, path, strlen(path)) == 0, "%s\n", text);
    rest = text + strlen(path);
    CHECK(strncmp(rest, ": ", 2) == 0 &&
              (strstr(rest, "index") != NULL || strstr(rest, "byte") != NULL ||
               strchr(rest, '/') != NULL || strstr(rest, "a f") != NULL ||
               strstr(rest, "a d") != NULL),
          "no place in it: %s\n", text);
}

void hostile_result(hostile_world *w, bool loaded)
{
    CHECK(!atomic_load(&too_much), "too much memory was asked for\n");
    trn_clear(w->c);
    if (!loaded) {
        assert_true(state_of(w) == w->state);
        w->n_refused++;
        return;
    }
    assert_true(state_of(w) == w->other);
    assert_int_equal(trn_checkpoint_load(w->k, w->mine), TRN_OK);
    w->n_loaded++;
}

trn_status hostile_try_path(hostile_world *w, const char *path,
                            const char *part)
{
    trn_context *c = w->c;
    size_t printed = 0;
    trn_memory_trim(c);
    int64_t before = atomic_load(&held);
    trn_status status = trn_checkpoint_load(w->k, path);
    if (part == NULL) {
        harness_ok(c);
        hostile_result(w, true);
    } else {
        CHECK(status != TRN_OK, "it was loaded; expected \"%s\"\n", part);
        check_message(w, path, part);
        hostile_result(w, false);
    }
    trn_memory_trim(c);
    assert_int_equal(atomic_load(&held), before);
    /* What cannot be read can be printed no more than loaded. */
    trn_status other = trn_checkpoint_print(c, path, put_nowhere, &printed);
    assert_true(other == status || (part != NULL && other == TRN_OK) ||
                status == TRN_ERR_SHAPE);
    trn_clear(c);
    return status;
}

trn_status hostile_try(hostile_world *w, const hostile_file *f,
                       const char *part)
{
    checkpoint_put(w->path, f->bytes, f->n);
    return hostile_try_path(w, w->path, part);
}
