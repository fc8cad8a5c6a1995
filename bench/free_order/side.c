/* SPDX-License-Identifier: Apache-2.0
 *
 * One side of the case "rules"; see side.h.
 */
#include <math.h>
#include <stdlib.h>

#include "bench/free_order/side.h"
#include "bench/model.h"

#ifdef TRN_FREE_ORDER
enum { FREE_ORDER = true };
#else
enum { FREE_ORDER = false };
#endif

static void close_side(void *model)
{
    bench_model *m = model;
    if (m != NULL)
        trn_close(m->c);
    free(m);
}

static void steps(void *model, int n)
{
    bench_model *m = model;
    trn_batch b;
    for (int i = 0; i < n && bench_model_next(m, &b); i++)
        bench_model_step(m, &b);
    trn_sync(m->c);
}

static void *open_side(int n_threads, double *loss)
{
    bench_model *m = calloc(1, sizeof *m);
    trn_options o = TRN_OPTIONS_INIT;
    o.device = "cpu";
    o.n_threads = n_threads;
    *loss = NAN;
    if (m == NULL || trn_open(&m->c, &o) != TRN_OK)
        goto fail;
    bench_model_open(m, m->c);
    if (!bench_model_learns(m))
        goto fail;
    *loss = trn_step_loss(m->c);
    return m;
fail:
    close_side(m);
    return NULL;
}

static bool digest(void *model, char text[65])
{
    bench_model *m = model;
    return trn_digest(m->net, text) == TRN_OK;
}

TRN_API const bench_side_table bench_side;
const bench_side_table bench_side = {
    .free_order = FREE_ORDER,
    .open = open_side,
    .steps = steps,
    .digest = digest,
    .close = close_side,
};
