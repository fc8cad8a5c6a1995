/* SPDX-License-Identifier: Apache-2.0
 *
 * Every allocation of a program made to fail in turn, alone and with all behind
 * it, on each way to run steps: the error sticks, nothing leaks, and after
 * trn_clear() the same calls give the bits of a run that never failed.
 *
 * A part of the program is tried at its first allocation, its second, .. until
 * one does not come about; so none is left out.
 */
#include <stdio.h>
#include <stdlib.h>

#include "captured.h"
#include "tests/host_setup.h"

/* Check builds cache nothing, so there each part has many times the points:
 * some are left out. */
#ifdef TRN_CHECK
#define STRIDE 7
#else
#define STRIDE 1
#endif

enum { SAMPLES = 20, BATCH = 6, STEPS = 4 }; /* the last batch is smaller */

/* A context, and what a part of a program has made in it. */
typedef struct world {
    trn_context *c;
    captured_net m;
    trn_loader *text, *images;
    float values[8];
    char digest[65];
    uint64_t sum; /* what was seen besides */
} world;

typedef struct part {
    const char *name;
    int64_t after;           /* steps before it */
    void (*act)(world *w);   /* it; may be called again if it failed */
    void (*judge)(world *w); /* what came of it, into digest and sum */
    bool built;              /* the model is there before it */
    bool captured_only,
        whole; /* `whole`: a failed one leaves the steps alone */
} part;

static void add(world *w, const void *data, size_t n)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < n; i++)
        w->sum = (w->sum ^ at[i]) * UINT64_C(0x100000001b3);
}

/* ---- parts ---- */

static void build(world *w)
{
    w->m = captured_build(w->c, SAMPLES, BATCH);
}

/* Which numbers modules have, and so their values, depends on those that were
 * made before: a failed try counts.  So it is only used. */
static void judge_build(world *w)
{
    assert_true(captured_train_steps(&w->m, STEPS));
    assert_int_equal(trn_sync(w->c), TRN_OK);
}

static void step(world *w)
{
    captured_train(&w->m);
    trn_sync(w->c);
}

static void judge_steps(world *w)
{
    while (trn_step_index(w->c) < STEPS)
        assert_true(captured_train(&w->m));
    captured_digest(w->m.net, w->digest);
    w->sum = captured_state(&w->m);
}

static void load_text(world *w)
{
    char path[120];
    snprintf(path, sizeof path, "%s/text", folder);
    trn_loader_options o = TRN_LOADER_INIT;
    o.count = 200;
    trn_text *text = trn_text_read(w->c, 1, (const char *[]){path}, NULL);
    w->text = trn_data_text(w->c, text, 6, 50, &o);
}

static void load_images(world *w)
{
    char images[120], labels[120];
    snprintf(images, sizeof images, "%s/images", folder);
    snprintf(labels, sizeof labels, "%s/labels.gz", folder);
    w->images = trn_data_idx(w->c, images, labels, 10, NULL);
}

static void add_batches(world *w, trn_loader *data)
{
    trn_batch b;
    for (int i = 0; i < 7; i++) {
        if (!trn_data_next(data, &b))
            continue; /* the end of a pass */
        size_t n;
        void *bytes = harness_bytes_of(b.inputs, &n);
        add(w, bytes, n);
        free(bytes);
        bytes = harness_bytes_of(b.targets, &n);
        add(w, bytes, n);
        free(bytes);
    }
    harness_ok(w->c);
}

static void judge_text(world *w)
{
    add_batches(w, w->text);
}

static void judge_images(world *w)
{
    add_batches(w, w->images);
}

static void evaluate(world *w)
{
    trn_batch b;
    trn_data_seek(w->m.data, 0, 0);
    trn_nn_train(w->m.net, false);
    trn_step_begin(w->c);
    trn_data_next(w->m.data, &b);
    trn_tensor *y = trn_softmax(trn_nn_forward(w->m.net, b.inputs), -1);
    y = trn_keep(trn_slice(y, 0, 0, 1, 1));
    trn_step_end(w->c);
    trn_tensor_read(y, w->values, 7 * sizeof w->values[0]);
    trn_tensor_release(y);
}

static void judge_evaluation(world *w)
{
    assert_int_equal(trn_nn_train(w->m.net, true), TRN_OK);
    assert_int_equal(trn_data_seek(w->m.data, 0, 0), TRN_OK);
    add(w, w->values, sizeof w->values);
    trn_step_begin(w->c);
    trn_step_end(w->c);
    harness_ok(w->c);
}

static void digest(world *w)
{
    trn_digest(w->m.net, w->digest);
}

static void judge_digest(world *w)
{
    assert_int_equal(strlen(w->digest), 64);
}

static void add_text(void *user, const char *text)
{
    add(user, text, strlen(text));
}

static void print(world *w)
{
    w->sum = 1;
    trn_capture_print(w->c, true, false, add_text, w);
    trn_capture_print(w->c, false, true, add_text, w);
    trn_capture_print_hlo(w->c, "xla", add_text, w);
}

static void judge_print(world *w)
{
    assert_true(w->sum != 1);
}

/* Gradients of gradients, user's modules and outside of steps. */
static void others(world *w)
{
    trn_context *c = w->c;
    const float data[4] = {0.5f, -1.5f, 2, 3};
    const int64_t shape[] = {2, 2};
    trn_tensor *x = trn_tensor_from(c, TRN_F32, 2, shape, data), *g = NULL;
    trn_grad_options o = TRN_GRAD_INIT;
    o.create_graph = true;
    trn_set_requires_grad(x, true);
    trn_step_begin(c);
    trn_tensor *y = trn_sum(trn_exp(trn_matmul(x, x)), TRN_ALL_AXES, false);
    trn_grad(1, &y, 1, &x, NULL, &o, &g);
    trn_backward(trn_norm(g, TRN_ALL_AXES, false));
    trn_step_end(c);
    trn_tensor *d = trn_cast(trn_grad_of(x), TRN_BF16);
    d = trn_cast(trn_concat(2, (trn_tensor *[]){d, d}, 0), TRN_F32);
    trn_tensor_read(d, w->values, sizeof w->values);
}

static void judge_others(world *w)
{
    add(w, w->values, sizeof w->values);
}

/* Saving and loading have points of more kinds: test_checkpoint_faults.c. */
static const part parts[] = {
    {"building", 0, build, judge_build, false, false, false},
    {"first step", 0, step, judge_steps, true, false, true},
    {"second step", 1, step, judge_steps, true, false, true},
    {"smaller batch", 3, step, judge_steps, true, false, true},
    {"text", 0, load_text, judge_text, false, false, false},
    {"images", 0, load_images, judge_images, false, false, false},
    {"evaluation", 2, evaluate, judge_evaluation, true, false, true},
    {"digest", 2, digest, judge_digest, true, false, true},
    {"printing", 2, print, judge_print, true, true, true},
    {"gradients", 0, others, judge_others, false, false, false},
};
enum { N_PARTS = sizeof parts / sizeof parts[0] };

/* ---- failing ---- */

static world before(const part *p, int way)
{
    world w = {.c = captured_open(way, NULL), .sum = 1};
    if (p->built) {
        w.m = captured_build(w.c, SAMPLES, BATCH);
        assert_true(captured_train_steps(&w.m, (int)p->after));
    }
    assert_int_equal(trn_sync(w.c), TRN_OK);
    trn_memory_trim(w.c);
    return w;
}

static void undisturbed(const part *p, int way, world *w)
{
    *w = before(p, way);
    p->act(w);
    harness_ok(w->c);
    p->judge(w);
    captured_close(w->c);
}

/* Allocation n fails; false if the part makes fewer. */
static bool try_point(const part *p, int way, int64_t n, bool ever,
                      const world *good)
{
    world w = before(p, way);
    captured_fail_at(n, ever);
    p->act(&w);
    trn_sync(w.c);
    const bool reached = captured_failed();
    captured_fail_at(0, false);
    if (trn_errcode(w.c) != TRN_OK) {
        CHECK(reached && trn_errcode(w.c) == TRN_ERR_NOMEM,
              "%s, %s, allocation %lld: %s\n", captured_ways[way].name, p->name,
              (long long)n, trn_errmsg(w.c));
        assert_int_equal(trn_step_begin(w.c), TRN_ERR_NOMEM); /* it sticks */
        trn_step_end(w.c); /* of a part that ended in its step */
        trn_clear(w.c);
        if (p->whole)
            assert_int_equal(trn_step_index(w.c), p->after);
        w.sum = 1;
        p->act(&w);
        harness_ok(w.c);
    }
    p->judge(&w);
    CHECK(strcmp(w.digest, good->digest) == 0 && w.sum == good->sum,
          "%s, %s, allocation %lld: other bits\n", captured_ways[way].name,
          p->name, (long long)n);
    captured_close(w.c);
    return reached;
}

static int64_t try_part(const part *p, int way)
{
    int64_t n_points = 0;
    world good;
    undisturbed(p, way, &good);
    for (int ever = 0; ever < 2; ever++) {
        for (int64_t n = 1; try_point(p, way, n, ever, &good); n += STRIDE)
            n_points++;
    }
    return n_points;
}

static void each_allocation_of_a_program_may_fail(void **state)
{
    (void)state;
    int64_t all = 0;
    for (int way = 0; way < N_WAYS; way++) {
        for (int i = 0; i < N_PARTS; i++) {
            if (parts[i].captured_only && way == EAGER)
                continue;
            const int64_t n = try_part(&parts[i], way);
            print_message("%-8s %-14s %5lld points\n", captured_ways[way].name,
                          parts[i].name, (long long)n);
            assert_true(n > 0);
            all += n;
        }
    }
    print_message("%lld points of failure\n", (long long)all);
    assert_true(all > 1000);
}

/* ---- opening ---- */

static void train_two_steps(trn_context *c, char digest[65])
{
    captured_net m = captured_build(c, SAMPLES, BATCH);
    assert_true(captured_train_steps(&m, 2));
    captured_digest(m.net, digest);
}

/* False: opening makes fewer allocations.  What is not needed at once may fail
 * without harm; then the context is as good as any. */
static bool try_opening(int way, int64_t n, const char *want)
{
    char got[65];
    trn_context *c;
    const trn_options o = captured_options(way, NULL);
    captured_fail_at(n, false);
    const trn_status status = trn_open(&c, &o);
    const bool reached = captured_failed();
    captured_fail_at(0, false);
    if (status == TRN_OK) {
        train_two_steps(c, got);
        assert_string_equal(got, want);
    } else {
        assert_true(reached);
        assert_int_equal(status, TRN_ERR_NOMEM);
        assert_int_equal(trn_errcode(c), TRN_ERR_NOMEM);
        trn_clear(c); /* it stays */
        assert_int_equal(trn_step_begin(c), TRN_ERR_NOMEM);
    }
    captured_close(c);
    return reached;
}

static void each_allocation_of_opening_may_fail(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        char want[65];
        trn_context *c = captured_open(way, NULL);
        train_two_steps(c, want);
        captured_close(c);
        int64_t n = 0;
        while (try_opening(way, n + 1, want))
            n++;
        print_message("%-8s opening        %5lld points\n",
                      captured_ways[way].name, (long long)n);
        assert_true(n > 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_of_a_program_may_fail),
        cmocka_unit_test(each_allocation_of_opening_may_fail),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
