/* SPDX-License-Identifier: Apache-2.0
 *
 * What outlives the steps of a random loop: parameters, buffers, views of
 * them, optimizers, generators, kept results.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "random_program.h"

static _Atomic int64_t held;

static void *counted_alloc(void *user, size_t bytes)
{
    (void)user;
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

/* Small numbers of any type, from halves of -2 to 2; indices below `limit`. */
static trn_tensor *made(random_world *w, uint64_t *s, trn_dtype dtype, int rank,
                        int64_t d0, int64_t d1)
{
    int64_t shape[2] = {d0, d1};
    int64_t n = rank == 0 ? 1 : rank == 1 ? d0 : d0 * d1;
    float *data = malloc((size_t)(n + 1) * sizeof *data);
    for (int64_t i = 0; i < n; i++)
        data[i] = (float)((int)(random_next(s) % 41) - 20) / 8.0f;
    trn_tensor *t = trn_tensor_from(w->c, TRN_F32, rank, shape, data);
    free(data);
    if (dtype != TRN_F32)
        t = trn_cast(t, dtype);
    return trn_copy(t);
}

/* The modules only hold parameters. */
static trn_tensor *same(trn_module *m, trn_tensor *x, void *user)
{
    (void)m;
    (void)user;
    return x;
}

static void make_parameters(random_world *w, uint64_t *s)
{
    int64_t m = w->k->m, n = w->k->n;
    trn_tensor **p = &w->tensor[CODE_PARAMETER];
    p[0] = made(w, s, TRN_F32, 2, m, n);
    p[1] = made(w, s, TRN_F32, 1, n, 0);
    p[2] = made(w, s, TRN_F32, 2, n, m);
    p[3] = made(w, s, TRN_F32, 2, m, n);
    p[4] = made(w, s, TRN_F32, 0, 0, 0);
    p[5] = made(w, s, TRN_F32, 1, n, 0);
    p[6] = made(w, s, TRN_F64, 2, m, n);
    p[7] = made(w, s, TRN_BF16, 2, n, m);
    w->module[0] = trn_nn_custom(w->c, same, NULL);
    w->module[1] = trn_nn_custom(w->c, same, NULL);
    for (int i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        trn_nn_add_parameter(w->module[i > 3], name, p[i]);
        trn_set_requires_grad(p[i], i != 5);
    }
}

static void make_buffers(random_world *w, uint64_t *s)
{
    int64_t m = w->k->m, n = w->k->n, all[1] = {-1};
    trn_tensor **b = &w->tensor[CODE_BUFFER], **v = &w->tensor[CODE_VIEW];
    b[0] = made(w, s, TRN_F32, 2, m, n);
    b[1] = made(w, s, TRN_F32, 2, 2 * m, n);
    b[2] = made(w, s, TRN_I32, 1, m, 0);
    b[3] = made(w, s, TRN_F64, 1, n, 0);
    b[4] = made(w, s, TRN_BOOL, 2, m, n);
    b[5] = made(w, s, TRN_F32, 2, 0, n);
    b[6] = made(w, s, TRN_F32, 1, m, 0);
    b[7] = made(w, s, TRN_I64, 2, m, n);
    trn_no_grad_begin(w->c);
    v[0] = trn_slice(b[1], 0, 0, m, 1);
    v[1] = trn_transpose(b[0], 0, 1);
    v[2] = w->k->n > 0 ? trn_reshape(w->tensor[CODE_PARAMETER], 1, all) : NULL;
    v[3] = trn_detach(b[6]);
    v[4] = trn_slice(b[1], 0, 1, 2 * m, 2);
    trn_no_grad_end(w->c);
}

static void make_optimizers(random_world *w)
{
    trn_sgd_options plain = TRN_SGD_INIT, momentum = TRN_SGD_INIT;
    trn_adamw_options adamw = TRN_ADAMW_INIT;
    plain.learning_rate = 0.05;
    momentum.learning_rate = 0.02;
    momentum.momentum = 0.9;
    momentum.nesterov = (w->k->seed & 1) != 0;
    adamw.learning_rate = 0.01;
    w->optim[0] = trn_optim_adamw(w->module[0], &adamw);
    w->optim[1] = trn_optim_sgd(w->module[1], &momentum);
    w->optim[2] = trn_optim_sgd(w->module[0], &plain);
    trn_optim_set_schedule(w->optim[0], trn_schedule_cosine(w->c, 10, 0.1));
}

bool random_open(random_world *w, const random_case *k, const char *device,
                 uint32_t exec)
{
    trn_options o = TRN_OPTIONS_INIT;
    uint64_t s = k->seed;
    memset(w, 0, sizeof *w);
    w->k = k;
    w->captured = exec != TRN_EXEC_EAGER;
    o.device = device;
    o.exec = exec;
    o.n_threads = k->threads;
    o.engine = TRN_ENGINE_POOL;
    o.seed = k->seed;
    o.alloc = counted_alloc;
    o.free = counted_free;
    if (trn_open(&w->c, &o) != TRN_OK)
        return false;
    make_parameters(w, &s);
    make_buffers(w, &s);
    make_optimizers(w);
    w->generator[0] = trn_generator_default(w->c);
    w->generator[1] = trn_generator_new(w->c, 5);
    w->log = calloc(4 * RANDOM_MAX_OPS, sizeof *w->log);
    return trn_errcode(w->c) == TRN_OK && w->log != NULL;
}

bool random_close(random_world *w)
{
    free(w->log);
    trn_close(w->c);
    return atomic_load(&held) == 0;
}

/* ---- results that are kept ---- */

static void take_over(random_world *w, int slot)
{
    trn_tensor **place = &w->tensor[CODE_KEPT + slot];
    if (*place != NULL)
        w->retired[w->n_retired++] = *place;
    *place = w->wants[slot];
    w->origin[CODE_KEPT + slot] = w->wants_from[slot];
}

/* Outside of steps nobody ends results but we. */
static void end_registers(random_world *w)
{
    for (int i = 0; i < CODE_PARAMETER; i++) {
        trn_tensor *t = w->tensor[i];
        bool ours = w->p->outside && t != NULL;
        for (int j = i + 1; j < N_CODES && ours; j++)
            ours = w->tensor[j] != t;
        if (ours)
            trn_tensor_release(t);
        w->tensor[i] = NULL;
    }
}

void random_settle_kept(random_world *w, bool good, bool in_flight)
{
    for (int i = 0; i < 4; i++) {
        if (w->wants[i] != NULL && good)
            take_over(w, i);
        else
            trn_tensor_release(w->wants[i]);
        w->wants[i] = NULL;
    }
    end_registers(w);
    if (!in_flight)
        random_settled(w, true);
}

static bool is_kept(const random_world *w, const trn_tensor *t)
{
    for (int i = 0; i < 4; i++) {
        if (w->tensor[CODE_KEPT + i] == t)
            return true;
    }
    return false;
}

void random_settled(random_world *w, bool good)
{
    for (int i = 0; i < 4 && !good; i++) { /* back to what there was */
        trn_tensor *lost = w->tensor[CODE_KEPT + i];
        if (lost == w->undo[i])
            continue;
        w->retired[w->n_retired++] = lost;
        w->tensor[CODE_KEPT + i] = w->undo[i];
        w->origin[CODE_KEPT + i] = w->undo_from[i];
    }
    for (int i = 0; i < w->n_retired; i++) {
        if (!is_kept(w, w->retired[i]))
            trn_tensor_release(w->retired[i]);
    }
    w->n_retired = 0;
    random_remember(w);
}

void random_remember(random_world *w)
{
    for (int i = 0; i < 4; i++) {
        w->undo[i] = w->tensor[CODE_KEPT + i];
        w->undo_from[i] = w->origin[CODE_KEPT + i];
    }
}
