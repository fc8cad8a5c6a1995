/* SPDX-License-Identifier: Apache-2.0
 *
 * The cases "mlp-step" and "mlp-step:loss": the demo's training step.
 *
 * An embedding of 96 x 24, 16 characters wide, 384-512-96 with ReLU and
 * dropout, batches of 128, clipping by norm, AdamW, on the device that is
 * named.  A run is 50 steps and their trn_sync(); a figure is a run's time by
 * 50, after a warm-up.  "mlp-step" reads nothing, so a device may run a step
 * while the host makes the next one; "mlp-step:loss" reads each step's loss.
 * `cpu` is the processor time of all threads for a step, the mean over all
 * runs, which other work on the machine disturbs least.
 */
#include <string.h>
#include <time.h>

#include "bench/bench.h"
#include "bench/model.h"

enum { STEPS = 50 };

static void steps(void *arg)
{
    bench_model *m = arg;
    trn_batch b;
    for (int i = 0; i < STEPS && bench_model_next(m, &b); i++)
        bench_model_step(m, &b);
    trn_sync(m->c);
}

static void steps_with_loss(void *arg)
{
    bench_model *m = arg;
    trn_batch b;
    for (int i = 0; i < STEPS && bench_model_next(m, &b); i++) {
        bench_model_step(m, &b);
        trn_step_loss(m->c);
    }
    trn_sync(m->c);
}

/* Of all threads; plug-ins start their own. */
static double processor_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bench_outcome run(bench_run *r, const char *name)
{
    const bool plain = strcmp(name, "mlp-step") == 0;
    bench_model m;
    if (!plain && strcmp(name, "mlp-step:loss") != 0)
        return BENCH_UNKNOWN;
    bench_model_open(&m, r->c);
    if (!bench_model_learns(&m))
        return bench_wrong(name, trn_errcode(r->c) != TRN_OK
                                     ? trn_errmsg(r->c)
                                     : "the loss does not fall");
    bench_work w = {
        .fn = plain ? steps : steps_with_loss,
        .arg = &m,
        .repeats = 1,
    };
    w.fn(w.arg); /* warm */
    const double before = processor_s();
    const bench_stats s = bench_scaled(bench_time(&w, 4.0), 1.0 / STEPS);
    const double cpu = (processor_s() - before) / (s.n * STEPS);
    const bench_figure figures[] = {
        {"time", "us", bench_scaled(s, 1e6)},
        {"rate", "characters/s", bench_rate(s, BENCH_BATCH)},
        {"cpu", "us", {1e6 * cpu, 1e6 * cpu, 1e6 * cpu, 1}},
    };
    if (trn_errcode(r->c) != TRN_OK)
        return bench_wrong(name, trn_errmsg(r->c));
    bench_report(r, name, 3, figures);
    return BENCH_OK;
}

static void list(void (*fn)(void *user, const char *name), void *user)
{
    fn(user, "mlp-step");
    fn(user, "mlp-step:loss");
}

const bench_family bench_step = {
    .name = "mlp-step",
    .form = "mlp-step, mlp-step:loss",
    .run = run,
    .list = list,
};
