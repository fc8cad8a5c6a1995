/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests in processes of their own; see xla_child.h.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/xla/xla_child.h"

/* A compile that takes one second alone took twenty on a loaded machine. */
enum { MOST_SECONDS = 300, NOTE_FD = 60, MOST_TESTS = 40 };

static bool one_by_one;
static int note = -1;

/* ---- in the child ---- */

void xla_running(const char *format, ...)
{
    char text[255] = {0}; /* read as the end of the file */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (note >= 0 && pwrite(note, text, sizeof text, 0) < 0)
        print_error("no note: %s\n", text);
}

bool xla_one_by_one(void)
{
    return one_by_one;
}

const char *xla_device(void)
{
    static char name[4200];
    const char *chosen = getenv("TRN_XLA_DEVICE");
    const char *plugin = getenv("TRN_PJRT_PLUGIN");
    if (chosen != NULL)
        return chosen;
    snprintf(name, sizeof name, "pjrt:%s", plugin == NULL ? "" : plugin);
    return name;
}

bool xla_verbose(void)
{
    const char *text = getenv("TRN_VERBOSE");
    return text != NULL && *text != '\0' && *text != '0';
}

static int child_main(const char *name, bool one, int n, const xla_test *tests)
{
    one_by_one = one;
    note = NOTE_FD;
    for (int i = 0; i < n; i++) {
        const struct CMUnitTest test[] = {
            {.name = tests[i].name, .test_func = tests[i].body},
        };
        if (strcmp(tests[i].name, name) == 0)
            return cmocka_run_group_tests(test, NULL, NULL) == 0 ? 0 : 1;
    }
    fprintf(stderr, "there is no test %s\n", name);
    return 2;
}

/* ---- in the parent ---- */

static void start_child(const char *name, bool one, FILE *out, FILE *said)
{
    if (dup2(fileno(out), 1) < 0 || dup2(fileno(out), 2) < 0 ||
        dup2(fileno(said), NOTE_FD) < 0)
        _exit(126);
    execl("/proc/self/exe", "/proc/self/exe", "--child", name, one ? "1" : "0",
          (char *)NULL);
    _exit(127);
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Waits for the child; kills it when its time is over. */
static int wait_for(pid_t child, int seconds, bool *timed_out)
{
    int status = 0;
    double end = seconds_now() + seconds;
    *timed_out = false;
    for (;;) {
        pid_t got = waitpid(child, &status, WNOHANG);
        if (got == child)
            return status;
        CHECK(got == 0 || errno == EINTR, "waitpid: %s\n", strerror(errno));
        if (!*timed_out && seconds_now() > end) {
            *timed_out = true;
            kill(child, SIGKILL);
        }
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
}

static void read_end(FILE *f, char *text, size_t size)
{
    long n = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : 0;
    long from = n < (long)size ? 0 : n - (long)size + 1;
    size_t got =
        fseek(f, from, SEEK_SET) == 0 ? fread(text, 1, size - 1, f) : 0;
    text[got] = '\0';
}

void xla_child_run(const char *name, int seconds, bool one, xla_report *r)
{
    FILE *out = tmpfile(), *said = tmpfile();
    assert_non_null(out);
    assert_non_null(said);
    *r = (xla_report){0};
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0, "fork: %s\n", strerror(errno));
    if (child == 0)
        start_child(name, one, out, said);
    int status = wait_for(child, seconds, &r->timed_out);
    r->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    r->passed = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    read_end(said, r->running, sizeof r->running);
    read_end(out, r->output, sizeof r->output);
    fclose(out);
    fclose(said);
}

/* The child's lines, so marked that nobody takes them for the parent's. */
static void print_output(const xla_report *r)
{
    for (const char *p = r->output; *p != '\0';) {
        size_t n = strcspn(p, "\n");
        print_message("  | %.*s\n", (int)n, p);
        p += n + (p[n] == '\n');
    }
}

static void run_in_child(void **state)
{
    static xla_report r;
    const xla_test *t = *state;
    const char *why = getenv("TRN_XLA_SKIP");
    bool present =
        getenv("TRN_PJRT_PLUGIN") != NULL || getenv("TRN_XLA_DEVICE") != NULL;
    if (!t->anywhere && !present) {
        print_message("%s\n", why != NULL ? why : "TRN_PJRT_PLUGIN is not set");
        skip();
    }
    xla_child_run(t->name, MOST_SECONDS, false, &r);
    if (r.signal != 0 && !r.timed_out) {
        print_output(&r);
        print_error("signal %d (%s) while running %s; again, one by one\n",
                    r.signal, strsignal(r.signal), r.running);
        xla_child_run(t->name, MOST_SECONDS, true, &r);
    }
    if (!r.passed || xla_verbose())
        print_output(&r);
    if (r.passed && strstr(r.output, "[  SKIPPED ] ") != NULL) {
        print_message("%s\n", r.running);
        skip();
    }
    CHECK(!r.timed_out, "more than %d s, the last of it with %s\n",
          MOST_SECONDS, r.running);
    CHECK(r.signal == 0, "signal %d (%s) while running %s\n", r.signal,
          strsignal(r.signal), r.running);
    CHECK(r.passed, "it failed; the last that ran was %s\n", r.running);
}

int xla_main(int argc, char **argv, int n, const xla_test *tests)
{
    static struct CMUnitTest list[MOST_TESTS];
    static xla_test copy[MOST_TESTS];
    size_t count = 0;
    if (argc == 4 && strcmp(argv[1], "--child") == 0)
        return child_main(argv[2], argv[3][0] == '1', n, tests);
    for (int i = 0; i < n && i < MOST_TESTS; i++) {
        copy[i] = tests[i];
        if (tests[i].hidden)
            continue;
        list[count++] = (struct CMUnitTest){
            .name = copy[i].name,
            .test_func = run_in_child,
            .initial_state = &copy[i],
        };
    }
    return _cmocka_run_group_tests("tests", list, count, NULL, NULL);
}
