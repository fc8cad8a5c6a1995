/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of the loop device: w <- w - lr (x + wd w), where x is checked to
 * be finite first; the order in which such steps run shows in w.
 */
#ifndef TRN_TESTS_LOOP_UPDATE_H
#define TRN_TESTS_LOOP_UPDATE_H

#include "loop_host.h"

typedef struct update_loop {
    loop_host h;
    fake_graph g;
    trn_program *p;
    trn_buffer *w, *x;
} update_loop;

static const int64_t shape_4[] = {4};

static inline void update_start(update_loop *u, trn_context *c,
                                const char *options)
{
    const float w[4] = {1, 2, 3, 4}, x[4] = {0.5f, -1, 2, 0};
    loop_start(&u->h, c, options);
    graph_begin(&u->g);
    trn_arg a = packed(TRN_F32, 1, shape_4);
    int32_t wv = graph_input(&u->g, a), xv = graph_input(&u->g, a);
    int32_t safe = graph_node(&u->g, TRN_OP_check_finite, xv, -1, a, -1);
    int32_t new_w = graph_node(&u->g, TRN_OP_sgd_update, wv, safe, a, -1);
    graph_attrs(&u->g, NULL, 0, 2);
    graph_output(&u->g, new_w, 0);
    assert_int_equal(loop_table->compile(u->h.dev, as_graph(&u->g), &u->p),
                     TRN_OK);
    u->w = put(&u->h, w, sizeof w);
    u->x = put(&u->h, x, sizeof x);
}

static inline void update_stop(update_loop *u)
{
    loop_table->release(u->h.dev, u->p);
    loop_table->close(u->h.dev);
}

static inline uint64_t update(update_loop *u, trn_buffer *x, double lr)
{
    uint64_t ticket = 0;
    double scalars[] = {lr, 0.5};
    trn_buffer *in[] = {u->w, x}, *out[] = {u->w};
    const trn_execution e = {sizeof e, 2, 1, 2, 0, in, out, scalars, NULL};
    assert_int_equal(loop_table->execute(u->h.dev, u->p, &e, &ticket), TRN_OK);
    memset(in, 0, sizeof in); /* all that e points to may vanish */
    memset(out, 0, sizeof out);
    memset(scalars, 0, sizeof scalars);
    return ticket;
}

/* w after updates by x with these rates; what a C compiler makes of it. */
static inline void check_w(update_loop *u, int n, const float *lr)
{
    float w[4] = {1, 2, 3, 4}, got[4];
    const float x[4] = {0.5f, -1, 2, 0};
    for (int k = 0; k < n; k++)
        for (int i = 0; i < 4; i++)
            w[i] = w[i] - lr[k] * (x[i] + 0.5f * w[i]);
    take(&u->h, u->w, got, sizeof got);
    assert_memory_equal(w, got, sizeof w);
}

#endif
