/* SPDX-License-Identifier: Apache-2.0
 *
 * Many cases in one program; see xla_batch.h.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/xla/xla_batch.h"
#include "tests/xla/xla_neuron.h"

static void print_line(void *user, trn_log_level level, const char *text)
{
    (void)user;
    if (level != TRN_LOG_INFO && xla_verbose())
        print_message("log: %s\n", text);
}

static bool neuron;

void xla_use_neuron(void)
{
    neuron = true;
}

bool xla_is_neuron(void)
{
    return neuron;
}

trn_context *xla_open(const char *device)
{
    trn_context *c;
    trn_options o = TRN_OPTIONS_INIT;
    o.device = device;
    if (neuron && strcmp(device, "cpu") != 0)
        o.device_options = "hlo_profile=neuron";
    o.n_threads = 2;
    o.log = print_line;
    trn_status status = trn_open(&c, &o);
    CHECK(status == TRN_OK, "%s: %s\n", device, trn_errmsg(c));
    return c;
}

void xla_check_module(trn_context *c)
{
    char why[600];
    if (neuron)
        CHECK(xla_neuron_takes_step(c, why, sizeof why), "%s\n", why);
}

bool xla_is_exact(void)
{
    return strncmp(xla_device(), "pjrt", 4) != 0;
}

void xla_fault(xla_judge *j, const xla_job *job, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    j->n_faults++;
    print_error("%s: %s\n", case_text(&job->a), text);
}

static void drop_arrays(xla_array *list, int n)
{
    for (int i = 0; i < n; i++)
        free(list[i].bytes);
    memset(list, 0, sizeof(xla_array) * (size_t)n);
}

/* Two outputs may be one tensor: the gradient of x + y for both is its seed. */
static bool is_first(trn_tensor *const *out, int i)
{
    for (int k = 0; k < i; k++) {
        if (out[k] == out[i])
            return false;
    }
    return out[i] != NULL;
}

static void read_outputs(trn_tensor *const *out, int n, xla_array *list)
{
    for (int i = 0; i < n; i++) {
        if (out[i] == NULL)
            continue;
        list[i].dtype = trn_tensor_dtype(out[i]);
        list[i].n = trn_tensor_numel(out[i]);
        list[i].bytes = harness_bytes_of(out[i], NULL);
    }
}

static void release_outputs(trn_tensor *const *out, int n)
{
    for (int i = n; i-- > 0;) {
        if (is_first(out, i))
            trn_tensor_release(out[i]);
    }
}

/* One step with jobs [first, last); their outputs go to want or got.  False:
 * the error is pending, and nothing was read. */
static bool run_step(xla_judge *j, trn_context *c, int first, int last)
{
    static trn_tensor *out[XLA_BATCH][XLA_MAX_OUT];
    memset(out, 0, sizeof out);
    trn_step_begin(c);
    for (int i = first; i < last; i++) {
        xla_job *job = &j->job[i];
        job->n_out = j->build(c, job, out[i]);
        if (trn_errcode(c) != TRN_OK)
            break;
        CHECK(job->n_out > 0, "%s: no output\n", case_text(&job->a));
        for (int k = 0; k < job->n_out; k++) {
            if (is_first(out[i], k))
                trn_keep(out[i][k]);
        }
    }
    trn_step_end(c);
    bool good = trn_sync(c) == TRN_OK;
    for (int i = first; i < last && good; i++) {
        read_outputs(out[i], j->job[i].n_out,
                     c == j->cpu ? j->job[i].want : j->job[i].got);
        release_outputs(out[i], j->job[i].n_out);
    }
    return good;
}

static void compare_shapes(xla_judge *j, const xla_job *job)
{
    for (int i = 0; i < job->n_out; i++) {
        const xla_array *want = &job->want[i], *got = &job->got[i];
        if (want->dtype != got->dtype || want->n != got->n ||
            (want->bytes == NULL) != (got->bytes == NULL)) {
            xla_fault(j, job, "output %d is %s of %lld, expected %s of %lld", i,
                      trn_dtype_name(got->dtype), (long long)got->n,
                      trn_dtype_name(want->dtype), (long long)want->n);
            return;
        }
    }
    j->compare(j, job);
}

/* Jobs [first, last) as one program. */
static bool judge_range(xla_judge *j, int first, int last)
{
    xla_running("%s (%d cases)", case_text(&j->job[first].a), last - first);
    if (!run_step(j, j->device, first, last))
        return false;
    xla_check_module(j->device);
    for (int i = first; i < last; i++)
        compare_shapes(j, &j->job[i]);
    return true;
}

static void run_batch(xla_judge *j)
{
    if (j->n_jobs > 0) {
        bool good = run_step(j, j->cpu, 0, j->n_jobs);
        CHECK(good, "on the CPU: %s\n", trn_errmsg(j->cpu));
    }
    bool together =
        j->n_jobs > 0 && !xla_one_by_one() && judge_range(j, 0, j->n_jobs);
    if (j->n_jobs > 0 && !together && !xla_one_by_one())
        print_error("a batch failed: %s\n", trn_errmsg(j->device));
    for (int i = 0; i < j->n_jobs && !together; i++) {
        trn_clear(j->device);
        if (!judge_range(j, i, i + 1))
            xla_fault(j, &j->job[i], "%s", trn_errmsg(j->device));
    }
    trn_clear(j->device);
    for (int i = 0; i < j->n_jobs; i++) {
        xla_job *job = &j->job[i];
        drop_arrays(job->want, XLA_MAX_OUT);
        drop_arrays(job->got, XLA_MAX_OUT);
        for (int k = 0; k < job->a.n_in; k++)
            free(job->weight[k].v);
        free(job->seed.v);
        case_free(&job->a);
    }
    j->n_done += j->n_jobs;
    j->n_jobs = 0;
}

void xla_judge_open(xla_judge *j)
{
    j->cpu = xla_open("cpu");
    j->device = xla_open(xla_device());
}

xla_job *xla_judge_case(xla_judge *j, const op_case *tc, trn_dtype dtype)
{
    xla_job *job = &j->job[j->n_jobs];
    memset(job, 0, sizeof *job);
    case_make(&job->a, tc, dtype);
    return job;
}

void xla_judge_ready(xla_judge *j)
{
    if (++j->n_jobs == XLA_BATCH)
        run_batch(j);
}

void xla_judge_close(xla_judge *j)
{
    run_batch(j);
    harness_close(j->device);
    harness_close(j->cpu);
    CHECK(j->n_done > 0, "no case ran\n");
    CHECK(j->n_faults == 0, "%d faults in %d cases\n", j->n_faults, j->n_done);
}
