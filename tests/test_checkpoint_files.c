/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of checkpoints that do not fit, are damaged or of another kind; what
 * saving does to the folder; what HDF5 and its users see of it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint_help.h"

#ifdef TRN_HAVE_HDF5
#include <hdf5.h>

/* ---- what does not fit ---- */

static trn_checkpoint *save_model(trn_context *c, const char *path)
{
    captured_net m = captured_build(c, 20, 6);
    trn_checkpoint *k = checkpoint_of(&m);
    captured_train_steps(&m, 3);
    trn_checkpoint_save(k, path);
    harness_ok(c);
    return k;
}

static void all_that_does_not_fit_is_told_in_one_message(void **state)
{
    trn_context *c = *state;
    const char *path = checkpoint_path("fit.h5");
    trn_checkpoint *k = trn_checkpoint_new(c), *other = trn_checkpoint_new(c);
    trn_tensor *t[4];
    static const int64_t shape[2] = {2, 3};
    for (int i = 0; i < 4; i++)
        t[i] = trn_full(c, TRN_F32, 2, shape, i);
    trn_checkpoint_tensor(k, "same", t[0]);
    trn_checkpoint_tensor(k, "shape", t[1]);
    trn_checkpoint_tensor(k, "type", t[2]);
    trn_checkpoint_tensor(k, "theirs", t[3]);
    trn_checkpoint_generator(k, "dice", trn_generator_new(c, 7));
    trn_checkpoint_save(k, path);

    trn_tensor *same = trn_full(c, TRN_F32, 2, shape, 9.0);
    trn_checkpoint_tensor(other, "same", same);
    trn_checkpoint_tensor(other, "shape",
                          trn_tensor_zeros(c, TRN_F32, 1, shape));
    trn_checkpoint_tensor(other, "type",
                          trn_tensor_zeros(c, TRN_I32, 2, shape));
    trn_checkpoint_tensor(other, "mine", trn_tensor_zeros(c, TRN_F32, 0, NULL));
    trn_checkpoint_generator(other, "dice", trn_generator_new(c, 8));
    assert_int_equal(trn_checkpoint_load(other, path), TRN_ERR_SHAPE);
    static const char *const parts[] = {
        "fit.h5: ",
        "/tensors/shape: found f32[2,3], expected f32[2]",
        "/tensors/type: found f32[2,3], expected i32[2,3]",
        "missing: /tensors/mine",
        "unexpected: /tensors/theirs",
        "/generators/dice/stream: found 7, expected 8",
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        CHECK(strstr(trn_errmsg(c), parts[i]) != NULL, "%s is not in %s\n",
              parts[i], trn_errmsg(c));
    assert_null(strstr(trn_errmsg(c), "same"));
    trn_clear(c);
    assert_true(harness_at(same, 0) == 9.0L);
}

static void a_long_list_ends_with_a_count(void **state)
{
    trn_context *c = *state;
    const char *path = checkpoint_path("long.h5");
    trn_checkpoint_save(trn_checkpoint_new(c), path);
    trn_checkpoint *k = trn_checkpoint_new(c);
    for (int i = 0; i < 100; i++) {
        char name[32];
        snprintf(name, sizeof name, "tensor_%02d", i);
        trn_checkpoint_tensor(k, name, trn_tensor_zeros(c, TRN_U8, 0, NULL));
    }
    trn_checkpoint_load(k, path);
    const char *text = trn_errmsg(c);
    const char *more = strstr(text, "; and ");
    assert_non_null(more);
    int n = 0, rest = (int)strtol(more + 6, NULL, 10);
    for (const char *p = text; (p = strstr(p, "missing: ")) != NULL; p++)
        n++;
    assert_int_equal(n + rest, 100);
    assert_true(n >= 20);
    harness_error(c, TRN_ERR_SHAPE, "missing: /tensors/tensor_00; ");
}

static void another_program_is_noticed(void **state)
{
    (void)state;
    const char *path = checkpoint_path("other.h5");
    trn_context *c = captured_open(EAGER, NULL);
    save_model(c, path);
    captured_close(c);

    trn_options o = captured_options(EAGER, NULL);
    o.seed = 5;
    assert_int_equal(trn_open(&c, &o), TRN_OK);
    captured_net m = captured_build(c, 20, 7); /* another batch size */
    trn_optim_set_schedule(m.optim, trn_schedule_cosine(c, 10, 0.1));
    uint64_t before = captured_state(&m);
    trn_checkpoint_load(checkpoint_of(&m), path);
    CHECK(strstr(trn_errmsg(c), "/context/seed: found 0, expected 5") != NULL,
          "%s\n", trn_errmsg(c));
    assert_non_null(strstr(trn_errmsg(c), "/batch_size: found 6, expected 7"));
    harness_error(c, TRN_ERR_SHAPE, "\"cosine 10 0.1000");
    assert_true(captured_state(&m) == before);
    captured_close(c);
}

static void a_part_can_be_loaded_alone(void **state)
{
    (void)state;
    const char *path = checkpoint_path("part.h5");
    char saved[65], loaded[65];
    trn_context *c = captured_open(EAGER, NULL);
    captured_net m = captured_build(c, 20, 6);
    captured_train_steps(&m, 3);
    trn_checkpoint_save(checkpoint_of(&m), path);
    captured_digest(m.net, saved);
    captured_close(c);

    c = captured_open(CAPTURED, NULL);
    m = captured_build(c, 20, 6);
    trn_checkpoint *k = trn_checkpoint_new(c);
    trn_checkpoint_module(k, "net", m.net);
    trn_checkpoint_load(k, path);
    harness_error(c, TRN_ERR_SHAPE, "unexpected: /loaders/data/batch");
    trn_checkpoint_load_part(k, path);
    harness_ok(c);
    assert_string_equal(captured_digest(m.net, loaded), saved);
    assert_int_equal(trn_step_index(c), 0);
    trn_checkpoint_module(k, "more", trn_nn_linear(c, 2, 2));
    trn_checkpoint_load_part(k, path);
    harness_error(c, TRN_ERR_SHAPE, "missing: /modules/more");
    captured_close(c);
}

static void what_cannot_be_written_to_is_not_loaded(void **state)
{
    trn_context *c = *state;
    const char *path = checkpoint_path("wrapped.h5");
    static const float data[2] = {1, 2};
    trn_checkpoint *k = trn_checkpoint_new(c);
    trn_tensor *t =
        trn_tensor_wrap(c, TRN_F32, 1, (int64_t[]){2}, data, NULL, NULL);
    trn_checkpoint_tensor(k, "wrapped", t);
    trn_checkpoint_save(k, path);
    harness_ok(c);
    trn_checkpoint_load(k, path);
    harness_error(c, TRN_ERR_STATE, "/tensors/wrapped, f32[2], cannot be");
}

/* ---- damage ---- */

static void patch(const char *path, size_t at, char byte)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
    assert_int_equal(fputc((unsigned char)byte, f), (unsigned char)byte);
    assert_int_equal(fclose(f), 0);
}

static void any_byte_that_is_damaged_is_noticed(void **state)
{
    trn_context *c = *state;
    const char *path = checkpoint_path("damaged.h5");
    trn_checkpoint *k = trn_checkpoint_new(c);
    trn_tensor *t = trn_full(c, TRN_F32, 1, (int64_t[]){100}, 1.5);
    size_t n;
    int in_index = 0, in_metadata = 0, in_data = 0;
    trn_checkpoint_tensor(k, "t", t);
    trn_checkpoint_save(k, path);
    char *bytes = checkpoint_bytes(path, &n);
    for (size_t i = 0; i < n; i++) {
        patch(path, i, (char)(bytes[i] ^ 1 << i % 8));
        CHECK(trn_checkpoint_load(k, path) == TRN_ERR_FORMAT,
              "byte %zu of %zu: %s\n", i, n, trn_errmsg(c));
        CHECK(strstr(trn_errmsg(c), "damaged.h5: ") != NULL, "%s\n",
              trn_errmsg(c));
        in_index += strstr(trn_errmsg(c), ": index: ") != NULL;
        in_metadata += strstr(trn_errmsg(c), ": HDF5 metadata, ") != NULL;
        in_data += strstr(trn_errmsg(c), ": /tensors/t: ") != NULL;
        trn_clear(c);
        patch(path, i, bytes[i]);
    }
    print_message("%zu bytes: %d found in the index, %d in HDF5's own, %d in "
                  "the tensor\n",
                  n, in_index, in_metadata, in_data);
    assert_int_equal(in_data, 400);
    assert_true(in_index > 500 && in_metadata > 500);
    assert_true(harness_at(t, 99) == 1.5L);
    for (size_t length = 0; length < n; length += length < 600 ? 1 : 97) {
        checkpoint_put(path, bytes, length);
        assert_int_equal(trn_checkpoint_load(k, path), TRN_ERR_FORMAT);
        if (length > 60)
            assert_non_null(strstr(trn_errmsg(c), "(truncated)"));
        trn_clear(c);
    }
    bytes[n] = 0; /* there is room for it */
    checkpoint_put(path, bytes, n + 1);
    trn_checkpoint_load(k, path);
    harness_error(c, TRN_ERR_FORMAT, "index: the file has");
    free(bytes);
}

static void other_kinds_of_file_are_named(void **state)
{
    trn_context *c = *state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *kind;
    } files[] = {
        {"", 0, "found an empty file"},
        {"\x1F\x8B\x08", 3, "looks like gzip"},
        {"PK\x03\x04zip", 7, "looks like zip"},
        {"\x93NUMPY\x01", 7, "looks like NumPy"},
        {"a letter\n", 9, "looks like text"},
        {"\x00\x01\x02", 3, "an unknown kind"},
        {"libtrn checkpoint 2\n", 20, "found format 2; expected 1"},
        {"libtrn checkpoint x\n", 20, "first lines are damaged"},
        {"libtrn checkpoint 1\nsize 99999999999999999999 ", 45, "damaged"},
    };
    trn_checkpoint *k = trn_checkpoint_new(c);
    const char *path = checkpoint_path("kind.h5");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        checkpoint_put(path, files[i].bytes, files[i].n);
        trn_checkpoint_load(k, path);
        harness_error(c, TRN_ERR_FORMAT, files[i].kind);
    }
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    trn_checkpoint_load(k, path);
    harness_error(c, TRN_ERR_FORMAT, "looks like HDF5 without the index");
    trn_checkpoint_load(k, checkpoint_path("there_is_none.h5"));
    harness_error(c, TRN_ERR_IO, "no such file or folder");
    trn_checkpoint_load(k, checkpoint_folder());
    harness_error(c, TRN_ERR_IO, "found a folder; expected a file");
    mkfifo(checkpoint_path("pipe"), 0600);
    trn_checkpoint_load(k, checkpoint_path("pipe"));
    harness_error(c, TRN_ERR_IO, "found a device or pipe");
}

/* ---- the folder ---- */

static void the_mode_is_that_of_the_old_file(void **state)
{
    trn_context *c = *state;
    trn_checkpoint *k = trn_checkpoint_new(c);
    const char *path = checkpoint_path("mode.h5");
    struct stat s;
    mode_t mask = umask(027);
    trn_checkpoint_save(k, path);
    harness_ok(c);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 07777, 0640);
    chmod(path, 0604);
    trn_checkpoint_save(k, path);
    umask(mask);
    harness_ok(c);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 07777, 0604);
}

static void a_link_stays_a_link(void **state)
{
    trn_context *c = *state;
    trn_checkpoint *k = trn_checkpoint_new(c);
    struct stat s;
    const char *file = checkpoint_path("file.h5");
    const char *link = checkpoint_path("link.h5");
    assert_int_equal(symlink("file.h5", link), 0);
    trn_checkpoint_save(k, link);
    harness_error(c, TRN_ERR_IO, "no such file"); /* it leads nowhere */
    trn_checkpoint_save(k, file);
    trn_checkpoint_set_text(k, "key", "through the link");
    trn_checkpoint_save(k, link);
    harness_ok(c);
    assert_int_equal(lstat(link, &s), 0);
    assert_true(S_ISLNK(s.st_mode));
    trn_checkpoint_set_text(k, "key", NULL);
    trn_checkpoint_load(k, file);
    assert_string_equal(trn_checkpoint_text(k, "key"), "through the link");
}

static void places_where_nothing_can_be_saved_are_told(void **state)
{
    trn_context *c = *state;
    trn_checkpoint *k = trn_checkpoint_new(c);
    char name[300];
    memset(name, 'a', sizeof name);
    name[299] = '\0';
    trn_checkpoint_save(k, checkpoint_folder());
    harness_error(c, TRN_ERR_IO, "found a folder");
    trn_checkpoint_save(k, checkpoint_path("no/such.h5"));
    harness_error(c, TRN_ERR_IO, "no such file or folder");
    trn_checkpoint_save(k, checkpoint_path(name));
    harness_error(c, TRN_ERR_IO, "too long");
    trn_checkpoint_save(k, checkpoint_path("new/"));
    harness_error(c, TRN_ERR_IO, "new/");
    trn_checkpoint_save(k, "/dev/null");
    harness_error(c, TRN_ERR_IO, "a device or pipe");
    name[250] = '\0';
    trn_checkpoint_save(k, checkpoint_path(name));
    harness_ok(c);
}

/* The name of a temporary file is not told: it is seen from a child that ends
 * while it saves. */
static void what_a_killed_process_left_is_used_again(void **state)
{
    trn_context *c = *state;
    trn_checkpoint *k = trn_checkpoint_new(c);
    const char *path = checkpoint_path("killed.h5");
    trn_tensor *t = trn_full(c, TRN_F64, 1, (int64_t[]){1 << 17}, 0.5);
    trn_checkpoint_tensor(k, "t", t);
    trn_checkpoint_save(k, path);
    harness_ok(c);
    int before = checkpoint_files(), left = 0;
    for (int i = 0; i < 200 && left < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            trn_checkpoint_save(k, path);
            _exit(0);
        }
        nanosleep(&(struct timespec){.tv_nsec = 100000 * (i % 40)}, NULL);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        assert_true(checkpoint_files() <= before + 1);
        left += checkpoint_files() == before + 1;
        trn_checkpoint_load(k, path); /* always a whole file */
        harness_ok(c);
        assert_true(harness_at(t, 1 << 16) == 0.5L);
    }
    print_message("%d children were killed while they saved\n", left);
    trn_checkpoint_save(k, path);
    harness_ok(c);
    assert_int_equal(checkpoint_files(), before);
    assert_true(left > 0);
}

/* ---- HDF5 ---- */

static herr_t walk2(hid_t stack, void *data)
{
    (void)stack;
    (void)data;
    return 0;
}

static herr_t walk1(void *data)
{
    (void)data;
    return 0;
}

static void the_hosts_setting_for_errors_is_as_before(void **state)
{
    trn_context *c = *state;
    trn_checkpoint *k = trn_checkpoint_new(c);
    const char *path = checkpoint_path("setting.h5");
    H5E_auto2_t f2;
    H5E_auto1_t f1;
    void *data;
    unsigned is_v2;
    int mine;
    H5Eset_auto2(H5E_DEFAULT, walk2, &mine);
    trn_checkpoint_save(k, path);
    trn_checkpoint_load(k, path);
    harness_ok(c);
    H5Eget_auto2(H5E_DEFAULT, &f2, &data);
    assert_true(f2 == walk2 && data == &mine);
    H5Eset_auto1(walk1, &mine);
    trn_checkpoint_save(k, path);
    trn_checkpoint_load(k, path);
    harness_ok(c);
    H5Eauto_is_v2(H5E_DEFAULT, &is_v2);
    assert_int_equal(is_v2, 0);
    H5Eget_auto1(&f1, &data);
    assert_true(f1 == walk1 && data == &mine);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

/* An HDF5 program reads a checkpoint as any other file. */
static void hdf5_reads_it_as_plain_datasets(void **state)
{
    trn_context *c = *state;
    trn_checkpoint *k = trn_checkpoint_new(c);
    const char *path = checkpoint_path("plain.h5");
    static const uint16_t halves[3] = {0x3C00, 0x7C01, 0xFFFF};
    uint16_t out[3];
    float value;
    trn_checkpoint_tensor(
        k, "h", trn_tensor_from(c, TRN_F16, 1, (int64_t[]){3}, halves));
    trn_checkpoint_tensor(
        k, "b", trn_tensor_from(c, TRN_BF16, 1, (int64_t[]){3}, halves));
    trn_checkpoint_tensor(k, "f", trn_full(c, TRN_F32, 0, NULL, 0.1));
    trn_checkpoint_save(k, path);
    harness_ok(c);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(file >= 0);
    hid_t f = H5Dopen2(file, "/tensors/f", H5P_DEFAULT);
    assert_true(H5Dread(f, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                        &value) >= 0);
    assert_true(value == 0.1f);
    hid_t b = H5Dopen2(file, "/tensors/b", H5P_DEFAULT);
    assert_true(
        H5Dread(b, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) >= 0);
    assert_memory_equal(out, halves, sizeof halves);
    assert_true(H5Aexists(b, "dtype") > 0);
    hid_t h = H5Dopen2(file, "/tensors/h", H5P_DEFAULT);
    hid_t type = H5Dget_type(h);
    assert_int_equal(H5Tget_class(type), H5T_FLOAT);
    float wide[3];
    assert_true(
        H5Dread(h, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, wide) >= 0);
    assert_true(wide[0] == 1.0f);
    H5Tclose(type);
    H5Dclose(h);
    H5Dclose(b);
    H5Dclose(f);
    assert_true(H5Fclose(file) >= 0);
    trn_checkpoint_load(k, path); /* reading has changed nothing */
    harness_ok(c);
}

static void the_file_does_not_depend_on_the_time(void **state)
{
    trn_context *c = *state;
    trn_checkpoint *k = save_model(c, checkpoint_path("now.h5"));
    size_t n_now, n_later;
    char *now = checkpoint_bytes(checkpoint_path("now.h5"), &n_now);
    nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 100000000}, NULL);
    trn_checkpoint_save(k, checkpoint_path("later.h5"));
    char *later = checkpoint_bytes(checkpoint_path("later.h5"), &n_later);
    assert_int_equal(n_now, n_later);
    assert_memory_equal(now, later, n_now);
    free(now);
    free(later);
}

int main(void)
{
    checkpoint_folder();
    const struct CMUnitTest tests[] = {
        TRN_TEST(all_that_does_not_fit_is_told_in_one_message),
        TRN_TEST(a_long_list_ends_with_a_count),
        cmocka_unit_test(another_program_is_noticed),
        cmocka_unit_test(a_part_can_be_loaded_alone),
        TRN_TEST(what_cannot_be_written_to_is_not_loaded),
        TRN_TEST(any_byte_that_is_damaged_is_noticed),
        TRN_TEST(other_kinds_of_file_are_named),
        TRN_TEST(the_mode_is_that_of_the_old_file),
        TRN_TEST(a_link_stays_a_link),
        TRN_TEST(places_where_nothing_can_be_saved_are_told),
        TRN_TEST(what_a_killed_process_left_is_used_again),
        TRN_TEST(the_hosts_setting_for_errors_is_as_before),
        TRN_TEST(hdf5_reads_it_as_plain_datasets),
        TRN_TEST(the_file_does_not_depend_on_the_time),
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
