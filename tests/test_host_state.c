/* SPDX-License-Identifier: Apache-2.0
 *
 * What belongs to the program is as it was after each public call, whatever it
 * was before, and has no influence on any bit: modes of arithmetic, locale,
 * signals, OpenMP, files, the environment.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fenv.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "captured.h"
#include "tests/host_setup.h"
#include "tests/host_state.h"

/* ---- on which ways ---- */

static void in_turn(void *user, int64_t n, void (*fn)(void *arg, int64_t i),
                    void *arg)
{
    (void)user;
    for (int64_t i = n - 1; i >= 0; i--)
        fn(arg, i);
}

typedef struct manner {
    const char *name;
    int way;
    trn_engine engine;
    int n_threads;
} manner;

static const manner manners[] = {
    {"eager, one thread", EAGER, TRN_ENGINE_POOL, 1},
    {"eager, pool", EAGER, TRN_ENGINE_POOL, 3},
    {"captured, pool", CAPTURED, TRN_ENGINE_POOL, 3},
    {"eager, OpenMP", EAGER, TRN_ENGINE_OPENMP, 2},
    {"captured, host", CAPTURED, TRN_ENGINE_HOST, 2},
    {"loop", LOOP, TRN_ENGINE_POOL, 2},
};
enum { N_MANNERS = sizeof manners / sizeof manners[0] };

static host_job job_of(const manner *m)
{
    return (host_job){
        .folder = folder,
        .device = captured_ways[m->way].device,
        .exec = captured_ways[m->way].exec,
        .engine = m->engine,
        .n_threads = m->n_threads,
        .parallel_for = in_turn,
    };
}

static bool has_engine(const manner *m)
{
    bool present = true;
    return m->engine != TRN_ENGINE_OPENMP ||
           (trn_build_part(0, &present) != NULL && present);
}

/* ---- in which states ---- */

static void on_signal(int number)
{
    (void)number;
}

static bool set_nothing(void)
{
    return true;
}

static bool set_upward(void)
{
    return fesetround(FE_UPWARD) == 0;
}

static bool set_downward(void)
{
    return fesetround(FE_DOWNWARD) == 0;
}

static bool set_towardzero(void)
{
    return fesetround(FE_TOWARDZERO) == 0;
}

static bool set_raised_flags(void)
{
    return feraiseexcept(FE_DIVBYZERO | FE_INEXACT) == 0;
}

/* Some signals blocked, some ignored, some handled, a stack for them. */
static bool set_signals(void)
{
    static char stack[1 << 16];
    const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigset_t some;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR1);
    sigaddset(&some, SIGRTMIN + 3);
    act.sa_mask = some;
    if (sigaltstack(&alternate, NULL) != 0 ||
        pthread_sigmask(SIG_BLOCK, &some, NULL) != 0)
        return false;
    for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
        sigaction(i, &act, NULL);
    sigaction(SIGPIPE, &act, NULL);
    act.sa_handler = SIG_IGN;
    return sigaction(SIGCHLD, &act, NULL) == 0;
}

static bool set_openmp(void)
{
#ifdef _OPENMP
    omp_set_num_threads(5);
    omp_set_dynamic(1);
    omp_set_max_active_levels(3);
    omp_set_schedule(omp_sched_guided, 7);
    return true;
#else
    return false;
#endif
}

static bool set_files(void)
{
    umask(0377);
    return chdir("/") == 0 && setenv("TRN_TESTS_HOST", "here", 1) == 0;
}

typedef struct setting {
    const char *name;
    bool (*set)(void);
} setting;

static const setting settings[] = {
    {"plain", set_nothing},
    {"rounding upward", set_upward},
    {"rounding downward", set_downward},
    {"rounding toward zero", set_towardzero},
    {"flushing", host_set_flushing},
    {"raised flags", set_raised_flags},
    {"traps", host_set_traps},
    {"x87 modes", host_set_x87},
    {"signals", set_signals},
    {"OpenMP settings", set_openmp},
    {"umask, folder, environment", set_files},
};
enum { N_SETTINGS = sizeof settings / sizeof settings[0] };

/* ---- looking ---- */

/* A run whose calls are looked at. */
typedef struct watch {
    host_state before;
    bool files; /* also their number: else a device may hold some */
    int n_calls;
    char found[200];
} watch;

static void look(void *user, const char *call)
{
    watch *w = user;
    host_state now;
    host_state_look(&now);
    w->n_calls++;
    if (!w->files)
        now.n_files = w->before.n_files;
    const char *what = host_state_differs(&w->before, &now);
    if (what[0] != '\0' && w->found[0] == '\0')
        snprintf(w->found, sizeof w->found, "%.100s changed %s", call, what);
}

/* What a run found, told by a process of its own. */
typedef struct report {
    char digest[65];
    char found[400];
    int n_calls;
} report;

static void fill(report *r, host_job *j, bool (*set)(void))
{
    static watch w;
    w.files = j->device[0] == 'c';
    j->after = look;
    j->user = &w;
    const int n_threads = host_count_threads();
    if (!set()) {
        snprintf(r->found, sizeof r->found, "not here");
        return;
    }
    host_state_look(&w.before); /* which may raise a flag itself */
    host_state_look(&w.before);
    bool good = host_job_run(j);
    host_state after;
    host_state_look(&after);
    const char *what = host_state_differs(&w.before, &after);
    host_set_default_modes();
    r->n_calls = w.n_calls;
    memcpy(r->digest, j->digest, sizeof r->digest);
    if (!good)
        snprintf(r->found, sizeof r->found, "%s", j->said);
    else if (w.found[0] != '\0')
        snprintf(r->found, sizeof r->found, "%s", w.found);
    else if (what[0] != '\0')
        snprintf(r->found, sizeof r->found, "closing changed %s", what);
    else if (j->engine != TRN_ENGINE_OPENMP &&
             host_count_threads() != n_threads)
        snprintf(r->found, sizeof r->found, "there are %d threads, not %d",
                 host_count_threads(), n_threads);
}

/* In a process of its own, whose output is a file. */
static void run_alone(report *r, host_job *j, bool (*set)(void))
{
    int ends[2];
    int status = -1;
    FILE *output = tmpfile();
    assert_non_null(output);
    assert_int_equal(pipe(ends), 0);
    memset(r, 0, sizeof *r);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        host_default_handlers();
        dup2(fileno(output), 1);
        dup2(fileno(output), 2);
        fill(r, j, set);
        fflush(NULL);
        _exit(write(ends[1], r, sizeof *r) == (ssize_t)sizeof *r ? 0 : 1);
    }
    close(ends[1]);
    const ssize_t n = read(ends[0], r, sizeof *r);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    struct stat about;
    assert_int_equal(fstat(fileno(output), &about), 0);
    fclose(output);
    if (WIFSIGNALED(status))
        snprintf(r->found, sizeof r->found, "killed by signal %d",
                 WTERMSIG(status));
    else if (status != 0 || n != (ssize_t)sizeof *r)
        snprintf(r->found, sizeof r->found, "ended with status %d", status);
    else if (about.st_size != 0 && r->found[0] == '\0')
        snprintf(r->found, sizeof r->found, "it printed %lld bytes",
                 (long long)about.st_size);
}

static void each_call_leaves_the_host_as_it_was(void **state)
{
    (void)state;
    int n_calls = 0, n_runs = 0, n_bad = 0;
    for (int m = 0; m < N_MANNERS; m++) {
        report plain = {.n_calls = 0}, r;
        if (!has_engine(&manners[m]))
            continue;
        for (int s = 0; s < N_SETTINGS; s++) {
            host_job j = job_of(&manners[m]);
            run_alone(&r, &j, settings[s].set);
            if (strcmp(r.found, "not here") == 0)
                continue;
            if (s == 0)
                plain = r;
            if (r.found[0] == '\0' && strcmp(r.digest, plain.digest) != 0)
                snprintf(r.found, sizeof r.found, "other bits");
            if (r.found[0] != '\0') {
                print_error("%s, %s: %s\n", manners[m].name, settings[s].name,
                            r.found);
                n_bad++;
            }
            n_calls += r.n_calls;
            n_runs++;
        }
    }
    print_message("%d runs, looked at after %d calls\n", n_runs, n_calls);
    assert_int_equal(n_bad, 0);
    assert_true(n_calls > 300 * n_runs);
}

/* ---- locales ---- */

static char locales[] = "/tmp/trn_locale_XXXXXX";

/* One that writes 1234,5: compiled here, since few systems have one. */
static bool set_comma(void)
{
    return setenv("LOCPATH", locales, 1) == 0 &&
           setlocale(LC_ALL, "de_DE.UTF-8") != NULL &&
           strcmp(localeconv()->decimal_point, ",") == 0;
}

static bool set_comma_of_the_thread(void)
{
    if (setenv("LOCPATH", locales, 1) != 0)
        return false;
    const locale_t comma = newlocale(LC_ALL_MASK, "de_DE.UTF-8", (locale_t)0);
    char text[8];
    if (comma == (locale_t)0 || uselocale(comma) == (locale_t)0)
        return false;
    snprintf(text, sizeof text, "%.1f", 0.5);
    host_set_default_modes(); /* flags that printing has raised */
    return strcmp(text, "0,5") == 0;
}

static void a_comma_of_the_locale_reaches_no_number(void **state)
{
    (void)state;
    char command[200];
    assert_non_null(mkdtemp(locales));
    snprintf(command, sizeof command,
             "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1",
             locales);
    const bool compiled = system(command) == 0;
    int n_bad = 0;
    for (int m = 0; m < N_MANNERS && compiled; m++) {
        static bool (*const set[])(void) = {set_nothing, set_comma,
                                            set_comma_of_the_thread};
        report r[3];
        if (!has_engine(&manners[m]))
            continue;
        for (int s = 0; s < 3; s++) {
            host_job j = job_of(&manners[m]);
            run_alone(&r[s], &j, set[s]);
            if (r[s].found[0] == '\0' && strcmp(r[s].digest, r[0].digest) != 0)
                snprintf(r[s].found, sizeof r[s].found, "other bits or texts");
            if (r[s].found[0] != '\0') {
                print_error("%s: %s\n", manners[m].name, r[s].found);
                n_bad++;
            }
        }
    }
    snprintf(command, sizeof command, "rm -rf %s", locales);
    assert_int_equal(system(command), 0);
    if (!compiled) {
        print_message("localedef can compile no locale with a comma here\n");
        skip();
    }
    assert_int_equal(n_bad, 0);
}

/* ---- the test itself ---- */

/* Whatever is changed is seen: else nothing above proves anything. */
static void what_a_call_would_change_is_seen(void **state)
{
    (void)state;
    host_state a, b;
    host_state_look(&a); /* which may raise a flag itself */
    host_state_look(&a);
    host_state_look(&b);
    assert_string_equal(host_state_differs(&a, &b), "");
    for (int s = 1; s < N_SETTINGS; s++) {
        int status = 0;
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            host_default_handlers();
            host_state_look(&a);
            if (!settings[s].set())
                _exit(0);
            host_state_look(&b);
            host_set_default_modes();
            _exit(host_state_differs(&a, &b)[0] != '\0' ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        CHECK(status == 0, "%s is not seen\n", settings[s].name);
    }
    const int file = dup(0);
    host_state_look(&b);
    close(file);
    assert_string_equal(host_state_differs(&a, &b), "the number of open files");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_call_would_change_is_seen),
        cmocka_unit_test(each_call_leaves_the_host_as_it_was),
        cmocka_unit_test(a_comma_of_the_locale_reaches_no_number),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
