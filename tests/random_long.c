/* SPDX-License-Identifier: Apache-2.0
 *
 * random-long N SEED [FOLDER]: N random programs and loops of steps from SEED
 * on.
 *
 * Each case runs in a process of its own, so that a crash is a failure like
 * any other.  Goes on behind the last seed that an earlier, broken run had
 * done, if SEED is given as "-" and FOLDER has its random-long.at.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "random_shrink.h"

/* What a child tells its parent. */
typedef struct verdict {
    bool good;
    random_report report;
} verdict;

static verdict judge(const random_case *k)
{
    int ends[2];
    verdict v = {.good = false};
    if (pipe(ends) != 0)
        return v;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(getenv("RANDOM_ALARM") == NULL ? 60 : 2);
        v.good = random_agrees(k, &v.report);
        ssize_t n = write(ends[1], &v, sizeof v);
        _exit(n == (ssize_t)sizeof v ? 0 : 1);
    }
    close(ends[1]);
    int status = 0;
    if (read(ends[0], &v, sizeof v) != (ssize_t)sizeof v) {
        v.good = false;
        snprintf(v.report.text, sizeof v.report.text, "no report");
    }
    close(ends[0]);
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        snprintf(v.report.text, sizeof v.report.text, "killed by signal %d",
                 WTERMSIG(status));
    v.good = v.good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return v;
}

/* What went wrong, without the numbers: a smaller case must fail like it. */
static void kind_of(const verdict *v, char *kind, size_t size)
{
    const char *from = strstr(v->report.text, "): ");
    snprintf(kind, size, "%.4s%.14s", v->report.text, from == NULL ? "" : from);
}

static char kind_wanted[32];

static bool fails(const random_case *k)
{
    char kind[32];
    verdict v = judge(k);
    kind_of(&v, kind, sizeof kind);
    return !v.good && strcmp(kind, kind_wanted) == 0;
}

static void show(random_case *k)
{
    verdict v = judge(k);
    printf("FAILED seed %llu: %s\n", (unsigned long long)k->seed,
           v.report.text);
    kind_of(&v, kind_wanted, sizeof kind_wanted);
    random_shrink(k, fails);
    v = judge(k);
    printf("shrunk: %s\n", v.report.text);
    random_print(k, stdout);
    fflush(stdout);
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

int main(int argc, char **argv)
{
    char path[512];
    long n = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    int stop = getenv("RANDOM_FAILURES") == NULL
                   ? 1
                   : (int)strtol(getenv("RANDOM_FAILURES"), NULL, 10);
    snprintf(path, sizeof path, "%s/random-long.at", argc > 3 ? argv[3] : ".");
    uint64_t seed = argc > 2 && strcmp(argv[2], "-") != 0
                        ? strtoull(argv[2], NULL, 10)
                        : noted(path);
    random_report all = {.steps = 0};
    int failures = 0;
    time_t start = time(NULL);
    for (long i = 0; i < n && failures < stop; i++, seed++) {
        random_case k;
        random_make(&k, seed, seed % 2 == 1);
        verdict v = judge(&k);
        all.steps += v.report.steps;
        all.failed_steps += v.report.failed_steps;
        all.matches += v.report.matches;
        all.compilations += v.report.compilations;
        all.early_reads += v.report.early_reads;
        if (!v.good) {
            failures++;
            show(&k);
        }
        note(path, seed + 1);
        if ((i + 1) % 500 == 0 || i + 1 == n || (!v.good && failures == stop))
            printf("%ld cases to seed %llu in %ld s: %lld steps, %lld of them "
                   "with an error, %lld matched, %lld compiled, %lld early "
                   "reads, %d failures\n",
                   i + 1, (unsigned long long)seed, (long)(time(NULL) - start),
                   (long long)all.steps, (long long)all.failed_steps,
                   (long long)all.matches, (long long)all.compilations,
                   (long long)all.early_reads, failures);
        fflush(stdout);
    }
    return failures > 0;
}
