/* SPDX-License-Identifier: Apache-2.0
 *
 * Each system call, each allocation and each access to a device's memory of
 * saving and loading made to fail in turn: the error is told, the old file and
 * the program's state are as they were, nothing leaks, and the next try works.
 *
 * A run without failures counts nothing to fail at: a loop over n ends at the
 * first n that the run does not reach, so no call is left out.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "checkpoint_help.h"
#include "file_faults.h"
#include "libtrn/io/checkpoint.h"

#ifdef TRN_HAVE_HDF5
#include <hdf5.h>

/* ---- what must not leak ---- */

/* A host's printing of HDF5's errors, which no call of ours may reach. */
static int n_printed;

static herr_t host_print(hid_t stack, void *data)
{
    (void)stack;
    (void)data;
    n_printed++;
    return 0;
}

/* The setting with which HDF5 prints is the host's. */
static void check_printing(void)
{
    H5E_auto2_t print = NULL;
    void *data = NULL;
    assert_true(H5Eget_auto2(H5E_DEFAULT, &print, &data) >= 0);
    assert_true(print == host_print);
    assert_ptr_equal(data, &n_printed);
    assert_int_equal(n_printed, 0);
}

/* Memory of contexts, files of the process, ids of HDF5. */
typedef struct holdings {
    int64_t bytes;
    int files;
    ssize_t ids;
} holdings;

static holdings count_holdings(trn_context *c)
{
    trn_memory_trim(c);
    return (holdings){
        .bytes = captured_bytes(),
        .files = checkpoint_count("/proc/self/fd"),
        .ids = H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL),
    };
}

static void check_holdings(trn_context *c, holdings before)
{
    holdings now = count_holdings(c);
    assert_int_equal(now.bytes, before.bytes);
    assert_int_equal(now.files, before.files);
    assert_int_equal(now.ids, 0);
    check_printing();
}

/* ---- a program with an old file ---- */

typedef struct world {
    captured_net m;
    trn_checkpoint *k;
    const char *path;
    char *old, *new; /* the file of two steps ago, and of now */
    size_t n_old, n_new;
    holdings held;
} world;

static world begin(int way)
{
    world w = {.m = captured_build(captured_open(way, NULL), 20, 6),
               .path = checkpoint_path("fault.h5")};
    w.k = checkpoint_of(&w.m);
    captured_train_steps(&w.m, 2);
    trn_checkpoint_save(w.k, w.path);
    w.old = checkpoint_bytes(w.path, &w.n_old);
    captured_train_steps(&w.m, 2);
    trn_checkpoint_save(w.k, w.path);
    w.new = checkpoint_bytes(w.path, &w.n_new);
    harness_ok(w.m.c);
    w.k->calls = &fault_calls;
    checkpoint_put(w.path, w.old, w.n_old);
    w.held = count_holdings(w.m.c);
    assert_true(H5Eset_auto2(H5E_DEFAULT, host_print, &n_printed) >= 0);
    return w;
}

static void end(world *w)
{
    free(w->old);
    free(w->new);
    captured_close(w->m.c);
}

static bool is_file(const world *w, const char *bytes, size_t n)
{
    size_t found;
    char *file = checkpoint_bytes(w->path, &found);
    assert_non_null(file);
    bool same = found == n && memcmp(file, bytes, n) == 0;
    free(file);
    return same;
}

/* After a save with one failure. */
static void check_saved(world *w, bool was_reached)
{
    trn_context *c = w->m.c;
    bool good = trn_errcode(c) == TRN_OK;
    CHECK(good || trn_errcode(c) == TRN_ERR_IO, "%s: %s\n",
          trn_status_name(trn_errcode(c)), trn_errmsg(c));
    if (!good && strstr(trn_errmsg(c), "though it is replaced") == NULL)
        assert_true(is_file(w, w->old, w->n_old));
    else
        assert_true(is_file(w, w->new, w->n_new));
    if (!good)
        CHECK(strstr(trn_errmsg(c), checkpoint_folder()) != NULL, "%s\n",
              trn_errmsg(c));
    /* What an unlink that fails leaves, the next save uses. */
    if (!was_reached || fault.kind != CALL_UNLINK)
        assert_int_equal(checkpoint_files(), 1);
    trn_clear(c);
    check_holdings(c, w->held);
}

static int save_with_failures(world *w, fault_kind kind, int error, bool ever,
                              int *n_told)
{
    for (int at = 1;; at++) {
        checkpoint_put(w->path, w->old, w->n_old);
        fault =
            (fault_plan){.kind = kind, .at = at, .error = error, .ever = ever};
        bool bad = trn_checkpoint_save(w->k, w->path) != TRN_OK;
        bool reached = fault.n >= at;
        *n_told += bad;
        check_saved(w, reached);
        fault = (fault_plan){0};
        if (!reached) {
            assert_false(bad);
            return at - 1;
        }
        if (at % 16 == 1) { /* the next try works */
            trn_checkpoint_save(w->k, w->path);
            harness_ok(w->m.c);
            assert_true(is_file(w, w->new, w->n_new));
            assert_int_equal(checkpoint_files(), 1);
        }
    }
}

/* The number of saves with a failure. */
static int fail_saves(int way)
{
    static const int errors[] = {EIO, ENOSPC};
    const int n_errors = way == EAGER ? 2 : 1; /* the rest knows no way */
    world w = begin(way);
    int total = 0;
    for (int kind = 0; kind < N_CALLS; kind++) {
        int n = 0, told = 0;
        for (int i = 0; i < n_errors; i++) {
            n = save_with_failures(&w, (fault_kind)kind, errors[i], false,
                                   &told);
            total += n;
        }
        /* Closing tells nothing new behind fsync; a lock that the file system
         * does not have is done without; nothing is unlinked in a save that
         * works. */
        bool silent =
            kind == CALL_CLOSE || kind == CALL_LOCK || kind == CALL_UNLINK;
        if (way == EAGER)
            print_message("%-9s %4d points of failure\n", fault_names[kind], n);
        assert_int_equal(told, silent ? 0 : n_errors * n);
        assert_true(n > 0 || kind == CALL_UNLINK);
    }
    for (int kind = CALL_PWRITE; way == EAGER && kind <= CALL_FSYNC; kind++) {
        int told = 0;
        total += save_with_failures(&w, (fault_kind)kind, ENOSPC, true, &told);
    }
    end(&w);
    return total;
}

static void each_call_of_a_save_may_fail(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        int total = fail_saves(way);
        print_message("%s: %d saves with a failure\n", captured_ways[way].name,
                      total);
    }
}

static void a_lock_that_another_process_has_is_told(void **state)
{
    (void)state;
    world w = begin(EAGER);
    fault = (fault_plan){.kind = CALL_LOCK, .at = 1, .error = EAGAIN};
    trn_checkpoint_save(w.k, w.path);
    assert_true(is_file(&w, w.old, w.n_old));
    harness_error(w.m.c, TRN_ERR_IO, "another process is saving there");
    fault = (fault_plan){0};
    trn_checkpoint_save(w.k, w.path);
    harness_ok(w.m.c);
    assert_int_equal(checkpoint_files(), 1);
    end(&w);
}

static void short_and_interrupted_calls_are_gone_on_with(void **state)
{
    (void)state;
    world w = begin(EAGER);
    fault = (fault_plan){.interrupts = true, .piece = 7};
    trn_checkpoint_save(w.k, w.path);
    harness_ok(w.m.c);
    assert_true(is_file(&w, w.new, w.n_new));
    fault = (fault_plan){.interrupts = true, .piece = 7};
    trn_checkpoint_load(w.k, w.path);
    harness_ok(w.m.c);
    fault = (fault_plan){0};
    end(&w);
}

/* Loads those bytes; then the old ones are the file again. */
static void load_bytes(world *w, const char *bytes, size_t n)
{
    checkpoint_put(w->path, bytes, n);
    trn_checkpoint_load(w->k, w->path);
    harness_ok(w->m.c);
    checkpoint_put(w->path, w->old, w->n_old);
}

/* The number of loads with a failure. */
static int fail_loads(int way)
{
    world w = begin(way);
    uint64_t before = captured_state(&w.m);
    int total = 0;
    for (int kind = 0; kind < N_CALLS; kind++) {
        for (int at = 1;; at++) {
            fault =
                (fault_plan){.kind = (fault_kind)kind, .at = at, .error = EIO};
            bool bad = trn_checkpoint_load(w.k, w.path) != TRN_OK;
            bool reached = fault.n >= at;
            fault = (fault_plan){0};
            if (!reached) {
                assert_false(bad);
                break;
            }
            total++;
            assert_int_equal(bad, kind != CALL_CLOSE);
            if (bad)
                harness_error(w.m.c, TRN_ERR_IO, "input or output error");
            if (bad)
                assert_true(captured_state(&w.m) == before);
            check_holdings(w.m.c, w.held);
            if (bad)
                continue;
            load_bytes(&w, w.new, w.n_new);
            assert_true(captured_state(&w.m) == before);
        }
        load_bytes(&w, w.new, w.n_new);
        assert_true(captured_state(&w.m) == before);
    }
    end(&w);
    return total;
}

static void each_call_of_a_load_may_fail(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        int total = fail_loads(way);
        print_message("%s: %d loads with a failure\n", captured_ways[way].name,
                      total);
        assert_true(total > 100);
    }
}

/* ---- memory that is refused ---- */

/* The number of saves without some memory. */
static int starve_saves(int way)
{
    int total = 0;
    for (int ever = 0; ever < 2; ever++) {
        world w = begin(way);
        for (int n = 1;; n++) {
            trn_memory_trim(w.m.c);
            captured_fail_at(n, ever);
            bool bad = trn_checkpoint_save(w.k, w.path) != TRN_OK;
            bool reached = captured_failed();
            captured_fail_at(0, false);
            if (!reached) {
                assert_false(bad);
                break;
            }
            total++;
            if (bad) { /* else it was tried again, and worked */
                harness_error(w.m.c, TRN_ERR_NOMEM, "out of memory");
                assert_true(is_file(&w, w.old, w.n_old));
            }
            assert_int_equal(checkpoint_files(), 1);
            checkpoint_put(w.path, w.old, w.n_old);
            check_holdings(w.m.c, w.held);
        }
        end(&w);
    }
    return total;
}

static void each_allocation_of_a_save_may_fail(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        int total = starve_saves(way);
        print_message("%s: %d saves without some memory\n",
                      captured_ways[way].name, total);
        assert_true(total > 100);
    }
}

/* The number of loads without some memory. */
static int starve_loads(int way)
{
    int total = 0;
    for (int ever = 0; ever < 2; ever++) {
        world w = begin(way);
        uint64_t before = captured_state(&w.m);
        for (int n = 1;; n++) {
            trn_memory_trim(w.m.c);
            captured_fail_at(n, ever);
            bool bad = trn_checkpoint_load(w.k, w.path) != TRN_OK;
            bool reached = captured_failed();
            captured_fail_at(0, false);
            if (!reached) {
                assert_false(bad);
                break;
            }
            total++;
            if (bad)
                harness_error(w.m.c, TRN_ERR_NOMEM, "out of memory");
            else /* it was tried again, and worked */
                load_bytes(&w, w.new, w.n_new);
            assert_true(captured_state(&w.m) == before);
            check_holdings(w.m.c, w.held);
        }
        assert_true(captured_state(&w.m) != before);
        end(&w);
    }
    return total;
}

static void each_allocation_of_a_load_may_fail(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        int total = starve_loads(way);
        print_message("%s: %d loads without some memory\n",
                      captured_ways[way].name, total);
        assert_true(total > 100);
    }
}

/* ---- a device that fails ---- */

/* Trains three steps, then loads with access number n to the device's memory
 * failing; false: it did not come so far.  entry: "write" or "read" */
static bool load_on_bad_device(const char *entry, int n, const world *w,
                               uint64_t trained, uint64_t loaded, int *n_told)
{
    char device[80];
    snprintf(device, sizeof device, "loop:strict,fail=%s@%d", entry, n);
    trn_context *c = captured_open(LOOP, device);
    captured_net m = captured_build(c, 20, 6);
    trn_checkpoint *k = checkpoint_of(&m);
    captured_train_steps(&m, 3);
    bool early = trn_errcode(c) != TRN_OK;
    bool bad = early || trn_checkpoint_load(k, w->path) != TRN_OK;
    if (bad && !early) {
        harness_error(c, TRN_ERR_DEVICE, "as asked for");
        assert_true(captured_state(&m) == trained);
        *n_told += 1;
        trn_checkpoint_load(k, w->path);
        harness_ok(c);
        assert_true(captured_state(&m) == loaded);
    }
    trn_clear(c);
    captured_close(c);
    return bad;
}

static void a_device_that_fails_leaves_the_old_values(void **state)
{
    (void)state;
    static const char *const entries[] = {"write", "read"};
    world w = begin(LOOP);
    trn_checkpoint_load(w.k, w.path);
    uint64_t loaded = captured_state(&w.m);
    captured_train_steps(&w.m, 1); /* the file is of step 2 */
    uint64_t trained = captured_state(&w.m);
    assert_true(loaded != trained);
    captured_close(w.m.c);
    for (int e = 0; e < 2; e++) {
        int told = 0, n = 1;
        while (load_on_bad_device(entries[e], n, &w, trained, loaded, &told))
            n++;
        print_message("%-5s %d failures of the device while loading\n",
                      entries[e], told);
        assert_true(told >= 15); /* a tensor each */
    }
    free(w.old);
    free(w.new);
}

/* A library that has lost something says so on stderr when it is closed. */
static void hdf5_closes_without_a_word(void **state)
{
    (void)state;
    const char *path = checkpoint_path("stderr");
    size_t n;
    fflush(stderr);
    int kept = dup(2);
    assert_non_null(freopen(path, "w", stderr));
    assert_true(H5close() >= 0);
    fflush(stderr);
    assert_true(dup2(kept, 2) == 2);
    close(kept);
    char *text = checkpoint_bytes(path, &n);
    CHECK(n == 0, "%.*s\n", (int)n, text);
    free(text);
}

int main(void)
{
    checkpoint_folder();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_of_a_save_may_fail),
        cmocka_unit_test(each_call_of_a_load_may_fail),
        cmocka_unit_test(a_lock_that_another_process_has_is_told),
        cmocka_unit_test(short_and_interrupted_calls_are_gone_on_with),
        cmocka_unit_test(each_allocation_of_a_save_may_fail),
        cmocka_unit_test(each_allocation_of_a_load_may_fail),
        cmocka_unit_test(a_device_that_fails_leaves_the_old_values),
        cmocka_unit_test(hdf5_closes_without_a_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else
int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(checkpoint_skips)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
