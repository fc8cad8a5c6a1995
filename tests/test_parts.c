/* SPDX-License-Identifier: Apache-2.0
 *
 * What a build lacks, it says: each optional part that was left out, or was not
 * there, is refused by name, and the rest works.
 *
 * TRN_LEFT_OUT names the parts that this build was told to do without (`make
 * WITHOUT=...`).
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness.h"
#include "plugin_path.h"

static bool has(const char *part)
{
    bool present = false;
    const char *name;
    for (int i = 0; (name = trn_build_part(i, &present)) != NULL; i++) {
        if (strcmp(name, part) == 0)
            return present;
    }
    fail_msg("%s is no part of a build", part);
    return false;
}

/* jansson and MPFR are none of the library's. */
static void parts_that_were_left_out_are_absent(void **state)
{
    (void)state;
    const char *left_out = getenv("TRN_LEFT_OUT");
    bool present = false;
    const char *name;
    for (int i = 0; (name = trn_build_part(i, &present)) != NULL; i++) {
        const char *at = left_out == NULL ? NULL : strstr(left_out, name);
        CHECK(at == NULL || !present, "%s was left out and is there\n", name);
        assert_null(strstr("jansson mpfr", name));
    }
}

/* Opening gives `status`, and a message with `part`; part NULL: it opens. */
static void opens(const trn_options *o, trn_status status, const char *part)
{
    trn_context *c;
    CHECK(trn_open(&c, o) == status, "%s\n", trn_errmsg(c));
    CHECK(part == NULL || strstr(trn_errmsg(c), part) != NULL,
          "no \"%s\" in: %s\n", part, trn_errmsg(c));
    trn_close(c);
}

static void only_a_build_without_openmp_refuses_its_engine(void **state)
{
    (void)state;
    trn_options o = TRN_OPTIONS_INIT;
    trn_context *c;
    o.engine = TRN_ENGINE_OPENMP;
    opens(&o, has("openmp") ? TRN_OK : TRN_ERR_UNSUPPORTED,
          has("openmp") ? NULL : "this build has no OpenMP");
    /* A variable of OpenMP's asks for it where it is. */
    assert_int_equal(setenv("OMP_NUM_THREADS", "2", 1), 0);
    assert_int_equal(trn_open(&c, NULL), TRN_OK);
    unsetenv("OMP_NUM_THREADS");
    assert_string_equal(trn_engine_name(c), has("openmp") ? "openmp" : "pool");
    trn_close(c);
}

/* An empty text, packed, is no IDX file either. */
static void only_a_build_without_zlib_refuses_packed_files(void **state)
{
    static const unsigned char packed[] = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3,
                                           3,    0,    0, 0, 0, 0, 0, 0, 0, 0};
    char path[] = "/tmp/trn-parts-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, packed, sizeof packed), sizeof packed);
    close(fd);
    assert_null(trn_data_idx(*state, path, path, 1, NULL));
    harness_error(*state, has("zlib") ? TRN_ERR_FORMAT : TRN_ERR_UNSUPPORTED,
                  has("zlib") ? path : "zlib");
    unlink(path);
}

static void only_a_build_without_protobufc_refuses_plugins_of_pjrt(void **state)
{
    (void)state;
    char device[4600];
    trn_options o = TRN_OPTIONS_INIT;
    snprintf(device, sizeof device, "pjrt:%s", plugin_path("pjrt_shim.so"));
    o.device = device;
    /* The shim stands in front of a real plug-in, and is given none. */
    unsetenv("TRN_PJRT_SHIM_REAL");
    opens(&o, has("protobuf-c") ? TRN_ERR_DEVICE : TRN_ERR_UNSUPPORTED,
          has("protobuf-c") ? "no real plug-in" : "made without protobuf-c");
}

static void only_a_build_without_hdf5_refuses_to_save(void **state)
{
    trn_context *c = *state;
    char path[] = "/tmp/trn-parts-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    trn_checkpoint *k = trn_checkpoint_new(c);
    trn_checkpoint_tensor(k, "x", harness_vector(c, 2, 1.0, 2.0));
    if (has("hdf5")) {
        assert_int_equal(trn_checkpoint_save(k, path), TRN_OK);
    } else {
        trn_checkpoint_save(k, path);
        harness_error(c, TRN_ERR_UNSUPPORTED, "this build has no HDF5");
    }
    unlink(path);
}

static void only_a_build_without_openblas_refuses_its_products(void **state)
{
    (void)state;
    trn_options o = TRN_OPTIONS_INIT;
    o.device_options = "matmul=openblas;openblas_library=/nonexistent";
    opens(&o, TRN_ERR_UNSUPPORTED,
          has("openblas") ? "tried the library /nonexistent"
                          : "this library was built without OpenBLAS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(parts_that_were_left_out_are_absent),
        TRN_TEST(only_a_build_without_openmp_refuses_its_engine),
        TRN_TEST(only_a_build_without_zlib_refuses_packed_files),
        TRN_TEST(only_a_build_without_protobufc_refuses_plugins_of_pjrt),
        TRN_TEST(only_a_build_without_hdf5_refuses_to_save),
        TRN_TEST(only_a_build_without_openblas_refuses_its_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
