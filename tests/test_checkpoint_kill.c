/* SPDX-License-Identifier: Apache-2.0
 *
 * A run that saves every 20 steps is killed at 100 random moments, and started
 * again from its checkpoint each time: it ends with the bits of a run that
 * nobody killed.
 *
 * The run is this program, started with other arguments.  It tells through a
 * pipe what it has saved, so what is to be found after its end is known.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint_help.h"
#include "training.h"

enum { N_STEPS = 150, SAVE_EVERY = 20, N_KILLS = 100, NOTE_FD = 60 };

/* What the run tells: in one piece, as pipes take what is that small. */
typedef struct note {
    int32_t begun; /* 1: loaded or new, 0: saved, -1: finished */
    int32_t step;
    char digest[72];
} note;

/* ---- the run ---- */

static void tell(int begun, trn_context *c, const char *digest)
{
    note n = {.begun = begun, .step = (int32_t)trn_step_index(c)};
    snprintf(n.digest, sizeof n.digest, "%s", digest);
    if (write(NOTE_FD, &n, sizeof n) != (ssize_t)sizeof n)
        exit(3);
}

static bool run_to_its_end(training *t, const char *path)
{
    char digest[65];
    if (access(path, F_OK) == 0 && trn_checkpoint_load(t->k, path) != TRN_OK)
        return false;
    tell(1, t->c, "");
    while (trn_step_index(t->c) < N_STEPS) {
        if (!training_step(t))
            return false;
        int64_t step = trn_step_index(t->c);
        if (step % SAVE_EVERY != 0 && step != N_STEPS)
            continue;
        if (trn_checkpoint_save(t->k, path) != TRN_OK)
            return false;
        tell(0, t->c, "");
    }
    if (!training_digest(t, digest))
        return false;
    tell(-1, t->c, digest);
    return true;
}

static int child_main(const char *path, const char *way, const char *threads)
{
    const training_plan p = {
        .way = (int)strtol(way, NULL, 10),
        .n_threads = (int)strtol(threads, NULL, 10),
    };
    training t = training_begin(&p);
    bool good = run_to_its_end(&t, path);
    if (!good)
        fprintf(stderr, "the run failed: %s\n", trn_errmsg(t.c));
    training_end(&t);
    return good ? 0 : 1;
}

/* ---- who kills it ---- */

typedef struct life {
    bool killed, loaded; /* loaded: it lived to see its first step */
    int32_t first;       /* step with which it began */
    int32_t saved;       /* the last save that it told of; -1: none */
    char digest[72];     /* "" unless it came to its end */
} life;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static pid_t start(const char *path, int way, int threads, int pipe_end)
{
    char way_text[8], threads_text[8];
    snprintf(way_text, sizeof way_text, "%d", way);
    snprintf(threads_text, sizeof threads_text, "%d", threads);
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0, "fork: %s\n", strerror(errno));
    if (child != 0)
        return child;
    if (dup2(pipe_end, NOTE_FD) >= 0)
        execl("/proc/self/exe", "/proc/self/exe", "--run", path, way_text,
              threads_text, (char *)NULL);
    _exit(127);
}

static void read_notes(int fd, life *l)
{
    note n;
    l->saved = -1;
    while (read(fd, &n, sizeof n) == (ssize_t)sizeof n) {
        if (n.begun == 1) {
            l->loaded = true;
            l->first = n.step;
        } else if (n.begun == 0) {
            l->saved = n.step;
        } else {
            memcpy(l->digest, n.digest, sizeof l->digest);
        }
    }
}

/* Starts the run and kills it after so many seconds; < 0: never. */
static life live(const char *path, int way, int threads, double seconds)
{
    life l = {0};
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    pid_t child = start(path, way, threads, ends[1]);
    close(ends[1]);
    if (seconds >= 0) {
        long ns = (long)(seconds * 1e9);
        nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
        kill(child, SIGKILL);
    }
    while (waitpid(child, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    read_notes(ends[0], &l);
    close(ends[0]);
    l.killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    CHECK(l.killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0),
          "the run ended with status %d\n", status);
    return l;
}

/* ---- what is found after a kill ---- */

typedef struct found {
    bool is_step;
    int32_t step;
} found;

static void look_for_step(void *user, const char *text)
{
    found *f = user;
    if (f->is_step && text[0] >= '0' && text[0] <= '9')
        f->step = (int32_t)strtol(text, NULL, 10);
    f->is_step =
        (f->is_step && text[0] != '\n') || strcmp(text, "/context/step") == 0;
}

/* The step of a checkpoint, after all of the file was checked. */
static int32_t step_of(trn_context *c, const char *path)
{
    found f = {.step = -1};
    trn_checkpoint_print(c, path, look_for_step, &f);
    harness_ok(c);
    return f.step;
}

typedef struct tally {
    uint64_t random;
    double most; /* seconds of a life: between too few for a step, and enough
                    for the whole run, at any speed of the machine */
    int kills, starts, ends; /* runs that came to their end */
    int early;               /* kills before the first step of a life */
    int in_saves;            /* kills that left a temporary file */
    int reset;               /* kills before the first file of a run */
    int untold; /* kills between a save's change of names and its word */
} tally;

/* What the file must be after a kill: what was saved last, or what was being
 * saved.  Gives its step. */
static int32_t check_file(trn_context *c, tally *y, const char *path,
                          const life *l, int32_t before)
{
    int32_t last = l->saved >= 0 ? l->saved : before;
    int32_t next = last < 0 ? SAVE_EVERY : last + SAVE_EVERY;
    next = next > N_STEPS ? N_STEPS : next;
    int files = checkpoint_files();
    bool there = access(path, F_OK) == 0;
    int32_t step = there ? step_of(c, path) : -1;
    CHECK(step == last || step == next,
          "after a kill: step %d; expected %d or %d\n", step, last, next);
    /* Of all the killed runs no more than one temporary file is there. */
    assert_in_range(files - there, 0, 1);
    y->in_saves += files - there;
    y->untold += step != last;
    y->reset += !there;
    y->early += !l->loaded;
    return step;
}

/* One run to its end, with kills until there are enough of them. */
static void run_with_kills(trn_context *c, tally *y, const char *path,
                           const char *expected)
{
    int32_t step = -1;
    unlink(path);
    for (;;) {
        int way = (int)(harness_random(&y->random) % N_WAYS);
        int threads = 1 + (int)(harness_random(&y->random) % 3);
        double seconds = harness_uniform(&y->random, 0.0, y->most);
        life l = live(path, way, threads, y->kills < N_KILLS ? seconds : -1.0);
        y->starts++;
        assert_true(!l.loaded || l.first == (step < 0 ? 0 : step));
        if (!l.killed) {
            assert_string_equal(l.digest, expected);
            y->ends++;
            y->most *= l.first == N_STEPS ? 1.0 : 0.8;
            return;
        }
        y->kills++;
        int32_t now_at = check_file(c, y, path, &l, step);
        y->most *= now_at > step ? 1.0 : 1.25;
        step = now_at;
    }
}

static void a_run_killed_at_any_moment_ends_with_the_same_bits(void **state)
{
    trn_context *c = *state;
    const char *path = checkpoint_path("run.h5");
    tally y = {.random = 20};
    size_t n, n_again;
    if (!checkpoint_possible())
        skip();
    live(path, EAGER, 1, -1.0); /* its pages are in memory from now on */
    unlink(path);
    double since = now();
    life whole = live(path, EAGER, 1, -1.0);
    y.most = (now() - since) / 2;
    assert_int_equal(whole.saved, N_STEPS);
    char *file = checkpoint_bytes(path, &n);
    while (y.kills < N_KILLS) {
        run_with_kills(c, &y, path, whole.digest);
        char *again = checkpoint_bytes(path, &n_again);
        assert_int_equal(n_again, n);
        assert_memory_equal(again, file, n);
        free(again);
        assert_int_equal(checkpoint_files(), 1);
    }
    free(file);
    print_message("%d kills of %d runs that began %d times, in %.1f s: %d left "
                  "a temporary file, %d came before the first step, %d before "
                  "the first file, %d between a save and its word\n",
                  y.kills, y.ends, y.starts, now() - since, y.in_saves, y.early,
                  y.reset, y.untold);
    /* Saves are a good part of a run's time: some of the kills hit one. */
    assert_true(y.in_saves > 0);
    assert_true(y.kills - y.early > N_KILLS / 4);
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "--run") == 0)
        return child_main(argv[2], argv[3], argv[4]);
    const struct CMUnitTest tests[] = {
        TRN_TEST(a_run_killed_at_any_moment_ends_with_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
