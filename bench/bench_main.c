/* SPDX-License-Identifier: Apache-2.0
 *
 * `bench-trn`: runs the cases named, or all that are listed.
 *
 * A new family of cases is a file and a line of the table below.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

static const bench_family *const families[] = {
    &bench_peak, &bench_overhead, &bench_matmul, &bench_capture,
    &bench_step, &bench_graph,    &bench_rules,  &bench_openblas,
};
enum { N_FAMILIES = (int)(sizeof families / sizeof families[0]) };

typedef struct arguments {
    bool json, list, help;
    int threads;        /* 0: as the library chooses */
    const char *device; /* NULL: TRN_DEVICE, else the CPU */
    int n_cases;
    char **cases;
} arguments;

typedef struct tally {
    bench_run run;
    int n, n_bad;
} tally;

static int usage(FILE *out, int status)
{
    fprintf(out, "usage: bench-trn [--json] [--list] [--threads N] "
                 "[--device NAME] [case]...\n"
                 "\ncases, all listed ones if none is given:\n");
    for (int i = 0; i < N_FAMILIES; i++)
        fprintf(out, "  %s\n", families[i]->form);
    return status;
}

static bool read_threads(const char *text, int *out)
{
    char *end = NULL;
    long n = text == NULL ? 0 : strtol(text, &end, 10);
    if (n < 1 || n > 1024 || *end != '\0') {
        fprintf(stderr, "bench-trn: --threads wants a number, 1 to 1024\n");
        return false;
    }
    *out = (int)n;
    return true;
}

/* Flags first, then cases, which stay where they are in argv. */
static bool read_arguments(int argc, char **argv, arguments *a)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            a->json = true;
        } else if (strcmp(argv[i], "--list") == 0) {
            a->list = true;
        } else if (strcmp(argv[i], "--help") == 0) {
            a->help = true;
        } else if (strcmp(argv[i], "--threads") == 0) {
            i++;
            if (!read_threads(i < argc ? argv[i] : NULL, &a->threads))
                return false;
        } else if (strcmp(argv[i], "--device") == 0 && i + 1 < argc) {
            a->device = argv[++i];
        } else {
            fprintf(stderr, "bench-trn: unknown flag '%s'\n", argv[i]);
            return false;
        }
    }
    a->cases = argv + i;
    a->n_cases = argc - i;
    return true;
}

static void print_name(void *user, const char *name)
{
    (void)user;
    printf("%s\n", name);
}

static void run_case(void *user, const char *name)
{
    tally *t = user;
    bench_outcome outcome = BENCH_UNKNOWN;
    for (int i = 0; i < N_FAMILIES && outcome == BENCH_UNKNOWN; i++) {
        const size_t n = strlen(families[i]->name);
        if (strncmp(name, families[i]->name, n) == 0 &&
            (name[n] == ':' || name[n] == '\0'))
            outcome = families[i]->run(&t->run, name);
    }
    if (outcome == BENCH_UNKNOWN)
        fprintf(stderr, "bench-trn: no such case: %s\n", name);
    t->n++;
    t->n_bad += outcome != BENCH_OK;
    trn_clear(t->run.c);
}

static int run_all(const arguments *a)
{
    tally t = {.run = {.json = a->json, .device = a->device}};
    trn_options o = TRN_OPTIONS_INIT;
    o.n_threads = a->threads;
    o.device = a->device;
    int status = 1;
    const double start = bench_now();
    if (trn_open(&t.run.c, &o) != TRN_OK) {
        fprintf(stderr, "bench-trn: %s\n", trn_errmsg(t.run.c));
        goto out;
    }
    t.run.team = bench_team_open(trn_thread_count(t.run.c));
    if (t.run.team == NULL) {
        fprintf(stderr, "bench-trn: the threads did not start\n");
        goto out;
    }
    bench_blas_threads(trn_thread_count(t.run.c));
    bench_report_machine(&t.run);
    for (int i = 0; i < a->n_cases; i++)
        run_case(&t, a->cases[i]);
    for (int i = 0; a->n_cases == 0 && i < N_FAMILIES; i++)
        families[i]->list(run_case, &t);
    fprintf(stderr, "bench-trn: %d cases, %d failed, %.1f s\n", t.n, t.n_bad,
            bench_now() - start);
    status = t.n_bad > 0;
out:
    bench_team_close(t.run.team);
    trn_close(t.run.c);
    return status;
}

int main(int argc, char **argv)
{
    arguments a = {.json = false};
    if (!read_arguments(argc, argv, &a))
        return usage(stderr, 2);
    if (a.help)
        return usage(stdout, 0);
    if (!a.list)
        return run_all(&a);
    for (int i = 0; i < N_FAMILIES; i++)
        families[i]->list(print_name, NULL);
    return 0;
}
