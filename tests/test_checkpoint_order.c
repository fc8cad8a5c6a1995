/* SPDX-License-Identifier: Apache-2.0
 *
 * A loss of power leaves the whole old file or the whole new one.  No test can
 * cut the power; this one looks at the order of the system calls of a save: all
 * of the file is on the disk before it gets its name, and so is the name before
 * the save ends.
 */
#include <stdio.h>

#include "checkpoint_help.h"
#include "file_faults.h"
#include "libtrn/io/checkpoint.h"

#ifdef TRN_HAVE_HDF5

/* The places of calls, -1: none. */
typedef struct order {
    int written;  /* the last that changed the file */
    int synced;   /* the last that brought it to the disk */
    int renamed;  /* the only one that gave it its name */
    int named;    /* the last that brought the folder to the disk */
    int n_writes; /* of the file */
} order;

/* Is call i of that kind, for what the path is now? */
static bool is_call(int i, fault_kind kind, const char *path)
{
    const fault_call *call = &fault_calls_made.call[i];
    struct stat s;
    assert_int_equal(lstat(path, &s), 0);
    return call->kind == kind && call->device == s.st_dev &&
           call->file == s.st_ino;
}

static order look_at(const char *path)
{
    order o = {.written = -1, .synced = -1, .renamed = -1, .named = -1};
    assert_true(fault_calls_made.n <= MOST_CALLS);
    for (int i = 0; i < fault_calls_made.n; i++) {
        if (is_call(i, CALL_PWRITE, path) || is_call(i, CALL_FTRUNCATE, path)) {
            o.written = i;
            o.n_writes++;
        }
        if (is_call(i, CALL_FSYNC, path))
            o.synced = i;
        if (is_call(i, CALL_FSYNC, checkpoint_folder()))
            o.named = i;
        if (fault_calls_made.call[i].kind != CALL_RENAME)
            continue;
        assert_int_equal(o.renamed, -1);
        assert_true(is_call(i, CALL_RENAME, path));
        o.renamed = i;
    }
    return o;
}

static void save_and_look(captured_net *m, trn_checkpoint *k, const char *path)
{
    fault_calls_made = (fault_record){.on = true};
    trn_checkpoint_save(k, path);
    fault_calls_made.on = false;
    harness_ok(m->c);
    order o = look_at(path);
    assert_true(o.n_writes > 20); /* a tensor each, and the index */
    assert_true(o.written < o.synced);
    assert_true(o.synced < o.renamed);
    assert_true(o.renamed < o.named);
}

static void a_save_is_on_the_disk_in_order(void **state)
{
    (void)state;
    const char *path = checkpoint_path("order.h5");
    ON_EACH_WAY(c)
    {
        captured_net m = captured_build(c, 20, 6);
        trn_checkpoint *k = checkpoint_of(&m);
        k->calls = &fault_calls;
        for (int i = 0; i < 2; i++) { /* a new file at first; an old one */
            captured_train_steps(&m, 1);
            save_and_look(&m, k, path);
        }
    }
}

int main(void)
{
    checkpoint_folder();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_save_is_on_the_disk_in_order),
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
