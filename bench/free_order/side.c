/* SPDX-License-Identifier: Apache-2.0
 *
 * One side of the cases "rules"; see side.h.
 */
#include <math.h>
#include <stdlib.h>

#include "bench/free_order/side.h"
#include "bench/model.h"
#include "kernels/free_order/free_order.h"

enum { KC = 256 }; /* of the rule */

unsigned trn__free_order;
int64_t trn__free_kc = KC;

typedef struct side_model {
    bench_model m;
    int64_t kc;
} side_model;

static void close_side(void *model)
{
    side_model *s = model;
    if (s != NULL)
        trn_close(s->m.c);
    free(s);
}

static void steps(void *model, int n)
{
    side_model *s = model;
    trn_batch b;
    trn__free_kc = s->kc;
    for (int i = 0; i < n && bench_model_next(&s->m, &b); i++)
        bench_model_step(&s->m, &b);
    trn_sync(s->m.c);
}

static void *open_side(const char *device, int n_threads, unsigned left_out,
                       double *loss)
{
    side_model *s = calloc(1, sizeof *s);
    trn_options o = TRN_OPTIONS_INIT;
    o.device = device;
    o.n_threads = n_threads;
    *loss = NAN;
    trn__free_order = left_out;
    if (s == NULL || trn_open(&s->m.c, &o) != TRN_OK)
        goto fail;
    s->kc = left_out & TRN__FREE_K ? TRN__FREE_KC : KC;
    trn__free_kc = s->kc;
    bench_model_open(&s->m, s->m.c);
    if (!bench_model_learns(&s->m))
        goto fail;
    *loss = trn_step_loss(s->m.c);
    return s;
fail:
    close_side(s);
    return NULL;
}

static bool digest(void *model, char text[65])
{
    side_model *s = model;
    return trn_digest(s->m.net, text) == TRN_OK;
}

TRN_API const bench_side_table bench_side;
const bench_side_table bench_side = {
    .open = open_side,
    .steps = steps,
    .digest = digest,
    .close = close_side,
};
