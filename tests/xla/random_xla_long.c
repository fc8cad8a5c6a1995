/* SPDX-License-Identifier: Apache-2.0
 *
 * --long N SEED [FOLDER]: N random programs from SEED on, a group of them in a
 * process of its own; one that dies is run again program by program.
 *
 * Goes on behind the last seed that an earlier, broken run had done, if SEED is
 * given as "-" and FOLDER has its random-xla.at.  Stops after some failures
 * (RANDOM_FAILURES of them).
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/xla/random_xla.h"
#include "tests/xla/xla_batch.h"

enum { MOST_SECONDS = 7200, LINE_EVERY = 500 };

/* What a child tells its parent. */
typedef struct verdict {
    bool good;
    uint64_t seed; /* the next one */
    xla_tally tally;
} verdict;

static void child_main(int end, uint64_t seed, int n)
{
    static verdict v;
    alarm(MOST_SECONDS);
    trn_context *c = xla_open(xla_device());
    v.seed = seed;
    xla_random_run(c, &v.seed, n, &v.tally);
    fflush(stdout);
    v.good = true;
    ssize_t done = write(end, &v, sizeof v);
    _exit(done == (ssize_t)sizeof v ? 0 : 1);
}

static bool run_child(uint64_t seed, int n, verdict *v)
{
    int ends[2], status = 0;
    *v = (verdict){.seed = seed};
    if (pipe(ends) != 0)
        return false;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        child_main(ends[1], seed, n);
    }
    close(ends[1]);
    size_t got = 0;
    ssize_t more = 1;
    while (got < sizeof *v && more > 0) {
        more = read(ends[0], (char *)v + got, sizeof *v - got);
        got += more > 0 ? (size_t)more : 0;
    }
    close(ends[0]);
    waitpid(child, &status, 0);
    if (got < sizeof *v)
        *v = (verdict){.seed = seed};
    if (WIFSIGNALED(status))
        printf("signal %d between seed %llu and %d programs behind it\n",
               WTERMSIG(status), (unsigned long long)seed, n);
    return v->good;
}

/* A group; program by program, if its process dies. */
static void run_group(uint64_t *seed, int n, xla_tally *t)
{
    static verdict v;
    if (run_child(*seed, n, &v)) {
        xla_tally_add(t, &v.tally);
        *seed = v.seed;
        return;
    }
    for (int i = 0; i < n; i++) {
        if (run_child(*seed, 1, &v)) {
            xla_tally_add(t, &v.tally);
            *seed = v.seed;
        } else {
            printf("FAILED seed %llu, or the next with a result: its process "
                   "died\n",
                   (unsigned long long)*seed);
            t->failures++;
            ++*seed;
        }
    }
}

static void note(const char *path, uint64_t seed)
{
    FILE *f = fopen(path, "w");
    if (f != NULL) {
        fprintf(f, "%llu\n", (unsigned long long)seed);
        fclose(f);
    }
}

static uint64_t noted(const char *path)
{
    unsigned long long seed = 0;
    FILE *f = fopen(path, "r");
    if (f != NULL) {
        if (fscanf(f, "%llu", &seed) != 1)
            seed = 0;
        fclose(f);
    }
    return seed;
}

int xla_random_long(int argc, char **argv)
{
    static xla_tally t;
    char path[512];
    const char *most = getenv("RANDOM_FAILURES");
    long n = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    long stop = most == NULL ? 1 : strtol(most, NULL, 10);
    snprintf(path, sizeof path, "%s/random-xla.at", argc > 3 ? argv[3] : ".");
    uint64_t seed = argc > 2 && strcmp(argv[2], "-") != 0
                        ? strtoull(argv[2], NULL, 10)
                        : noted(path);
    time_t start = time(NULL);
    int64_t line = LINE_EVERY;
    while (t.programs < n && t.failures < stop) {
        int64_t left = n - t.programs;
        run_group(
            &seed,
            left < XLA_PROGRAMS_AT_ONCE ? (int)left : XLA_PROGRAMS_AT_ONCE, &t);
        note(path, seed);
        if (t.programs >= line || t.programs >= n || t.failures >= stop) {
            printf("to seed %llu in %ld s: ", (unsigned long long)seed,
                   (long)(time(NULL) - start));
            xla_tally_print(&t);
            line += LINE_EVERY;
        }
        fflush(stdout);
    }
    return t.failures > 0;
}
