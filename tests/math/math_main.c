/* SPDX-License-Identifier: Apache-2.0
 *
 * test-math [-j processes] [-s step] [-o log] [function[:type] ...]
 *
 * Runs the jobs of math_job.h, all of them or those named, and appends a line
 * to the log for each that is finished and right.  A job whose line is there
 * already, from as many inputs, is not run again.  With a step only each
 * step-th part is run.
 */
#include "math_job.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t inputs_of(const math_job *job, uint64_t step)
{
    return (job->n_parts + step - 1) / step * MATH_PART;
}

/* Does the log have the job's line? */
static bool is_done(const char *log, const math_job *job, uint64_t step)
{
    char line[512], name[32];
    unsigned long long inputs;
    bool found = false;
    FILE *f = log ? fopen(log, "r") : NULL;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%31s %llu", name, &inputs) == 2 &&
            strcmp(name, job->name) == 0 && inputs == inputs_of(job, step))
            found = true;
    if (f)
        fclose(f);
    return found;
}

static bool is_chosen(const math_job *job, int n, char **names)
{
    for (int i = 0; i < n; i++) {
        const size_t length = strlen(names[i]);
        if (strncmp(job->name, names[i], length) == 0 &&
            (job->name[length] == ':' || job->name[length] == '\0'))
            return true;
    }
    return n == 0;
}

static void report(FILE *f, const math_job *job, const math_found *found,
                   double time)
{
    fprintf(f, "%-12s %10llu inputs", job->name,
            (unsigned long long)found->n_inputs);
    if (job->function)
        fprintf(f, ", bound %.2f, worst %.6f ulp at %a %a, %llu by MPFR",
                job->function->bound[job->f32], found->worst, found->worst_x,
                found->worst_y, (unsigned long long)found->n_mpfr);
    fprintf(f, ", %.0f s\n", time);
    fflush(f);
}

static bool run(const math_job *job, uint64_t step, int processes,
                const char *log)
{
    math_found found;
    const double start = seconds();
    math_run_job(job, step, processes, &found);
    report(stdout, job, &found, seconds() - start);
    if (found.n_bad) {
        printf("%s: %llu wrong, the first: %s\n", job->name,
               (unsigned long long)found.n_bad, found.first_bad);
        return false;
    }
    FILE *f = log ? fopen(log, "a") : NULL;
    if (f) {
        report(f, job, &found, seconds() - start);
        fclose(f);
    }
    return true;
}

int main(int argc, char **argv)
{
    static math_job job[MATH_MAX_JOBS];
    const char *log = NULL;
    int processes = (int)sysconf(_SC_NPROCESSORS_ONLN), option;
    long step = 1;
    bool good = true;
    while ((option = getopt(argc, argv, "j:s:o:")) != -1) {
        if (option == 'j')
            processes = (int)strtol(optarg, NULL, 10);
        else if (option == 's')
            step = strtol(optarg, NULL, 10);
        else if (option == 'o')
            log = optarg;
    }
    if (processes < 1 || step < 1) {
        fprintf(stderr, "test-math: -j and -s take numbers from 1 on\n");
        return 2;
    }
    const int n = math_jobs(job);
    const double start = seconds();
    for (int i = 0; i < n; i++) {
        if (!is_chosen(&job[i], argc - optind, argv + optind))
            continue;
        if (is_done(log, &job[i], (uint64_t)step))
            printf("%-12s is done\n", job[i].name);
        else
            good = run(&job[i], (uint64_t)step, processes, log) && good;
    }
    printf("%s after %.0f s\n", good ? "all right" : "FAILED",
           seconds() - start);
    return good ? 0 : 1;
}
