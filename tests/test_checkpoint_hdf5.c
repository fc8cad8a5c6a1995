/* SPDX-License-Identifier: Apache-2.0
 *
 * A save with an HDF5 in the process that is not the one of the build: another
 * release works; another version is told before anything is made.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "checkpoint_help.h"
#include "file_faults.h"
#include "libtrn/io/checkpoint.h"

#ifdef TRN_HAVE_HDF5
#include <hdf5.h>

/* What HDF5 tells of itself. */
static struct {
    unsigned number[3];
    int result;
} hdf5;

static int told_version(unsigned *major, unsigned *minor, unsigned *release)
{
    *major = hdf5.number[0];
    *minor = hdf5.number[1];
    *release = hdf5.number[2];
    return hdf5.result;
}

static void set_version(int major, int minor, int release)
{
    hdf5.number[0] = (unsigned)(H5_VERS_MAJOR + major);
    hdf5.number[1] = (unsigned)(H5_VERS_MINOR + minor);
    hdf5.number[2] = (unsigned)(H5_VERS_RELEASE + release);
}

/* The file stays as it is, and nothing is opened for it. */
static void check_refused(trn_checkpoint *k, trn_context *c, const char *path,
                          const char *message)
{
    size_t n, n_now;
    char *before = checkpoint_bytes(path, &n);
    fault = (fault_plan){.kind = CALL_OPEN, .at = 1, .error = EIO};
    trn_checkpoint_set_text(k, "key", "another text");
    trn_checkpoint_save(k, path);
    harness_error(c, TRN_ERR_UNSUPPORTED, message);
    assert_int_equal(fault.n, 0);
    fault = (fault_plan){0};
    char *now = checkpoint_bytes(path, &n_now);
    assert_int_equal(n_now, n);
    assert_memory_equal(now, before, n);
    assert_int_equal(checkpoint_files(), 1);
    free(before);
    free(now);
}

static void another_version_is_refused(void **state)
{
    trn_context *c = *state;
    char both[100];
    const char *path = checkpoint_path("version.h5");
    trn_checkpoint *k = trn_checkpoint_new(c);
    trn__file_calls calls = fault_calls;
    calls.hdf5_version = told_version;
    k->calls = &calls;
    set_version(0, 0, 1);
    trn_checkpoint_save(k, path);
    harness_ok(c);
    set_version(0, 2, 0);
    snprintf(both, sizeof both,
             "found HDF5 %d.%d.%d in this process; expected "
             "%d.%d as in %d.%d.%d,",
             H5_VERS_MAJOR, H5_VERS_MINOR + 2, H5_VERS_RELEASE, H5_VERS_MAJOR,
             H5_VERS_MINOR, H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE);
    check_refused(k, c, path, both);
    set_version(0, -1, 0);
    check_refused(k, c, path, "in this process; expected");
    set_version(1, 0, 0);
    check_refused(k, c, path, "in this process; expected");
    set_version(0, 0, 0);
    hdf5.result = -1;
    check_refused(k, c, path, "does not tell its version");
    hdf5.result = 0;
    trn_checkpoint_save(k, path);
    harness_ok(c);
    k->calls = &trn__system_calls;
}

int main(void)
{
    checkpoint_folder();
    const struct CMUnitTest tests[] = {TRN_TEST(another_version_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else
int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(checkpoint_skips)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
