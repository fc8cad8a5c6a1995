/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a job: process i takes the parts i, i + n, ... and sends what it
 * found through a pipe; the first one prints how far it is.
 */
#include "math_job.h"
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_PROCESSES = 64 };

void math_bad(math_found *found, const char *format, ...)
{
    va_list args;
    if (found->n_bad++ > 0)
        return;
    va_start(args, format);
    vsnprintf(found->first_bad, sizeof found->first_bad, format, args);
    va_end(args);
}

static math_found work(const math_job *job, uint64_t step, int me, int n)
{
    const uint64_t n_parts = (job->n_parts + step - 1) / step;
    math_found found = {.n_bad = 0};
    uint64_t tenths = 1;
    for (uint64_t i = (uint64_t)me; i < n_parts; i += (uint64_t)n) {
        job->run(job, i * step, &found);
        found.n_inputs += MATH_PART;
        if (me == 0 && i * 10 >= tenths * n_parts) {
            tenths = i * 10 / n_parts;
            fprintf(stderr, "  %s: %d %%\n", job->name, (int)(10 * tenths++));
        }
    }
    return found;
}

/* The end of a pipe from a new process that does its parts; -1: none. */
static int start(const math_job *job, uint64_t step, int me, int n)
{
    int end[2];
    if (pipe(end) != 0)
        return -1;
    const pid_t child = fork();
    if (child == 0) {
        const math_found found = work(job, step, me, n);
        const ssize_t sent = write(end[1], &found, sizeof found);
        _exit(sent == (ssize_t)sizeof found ? 0 : 1);
    }
    close(end[1]);
    if (child < 0) {
        close(end[0]);
        return -1;
    }
    return end[0];
}

static void add(math_found *sum, const math_found *f)
{
    sum->n_inputs += f->n_inputs;
    sum->n_mpfr += f->n_mpfr;
    if (f->worst > sum->worst) {
        sum->worst = f->worst;
        sum->worst_x = f->worst_x;
        sum->worst_y = f->worst_y;
    }
    if (f->n_bad && !sum->n_bad)
        memcpy(sum->first_bad, f->first_bad, sizeof sum->first_bad);
    sum->n_bad += f->n_bad;
}

void math_run_job(const math_job *job, uint64_t step, int n_processes,
                  math_found *found)
{
    const int n = n_processes < MAX_PROCESSES ? n_processes : MAX_PROCESSES;
    int end[MAX_PROCESSES];
    *found = (math_found){.n_bad = 0};
    for (int i = 0; i < n; i++)
        end[i] = start(job, step, i, n);
    for (int i = 0; i < n; i++) {
        math_found part;
        if (end[i] >= 0 && read(end[i], &part, sizeof part) == sizeof part)
            add(found, &part);
        else
            math_bad(found, "process %d ended early", i);
        if (end[i] >= 0)
            close(end[i]);
    }
    while (wait(NULL) > 0)
        ;
}
