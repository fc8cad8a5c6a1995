/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that are no checkpoints, or were some once: 200 that are damaged by a
 * seed, HDF5's bytes changed behind checksums that fit, files of HDF5 and other
 * programs, and files that change while they are read.  Each is refused without
 * any change, or gives the right values.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint_help.h"
#include "hostile.h"
#include "libtrn/io/checkpoint.h"

#ifdef TRN_HAVE_HDF5
#include <hdf5.h>

static size_t any(uint64_t *random, size_t n)
{
    return (size_t)(harness_random(random) % n);
}

/* ---- damage ---- */

enum { N_DAMAGED = 200, N_KINDS = 8 };

/* One change of a file of n bytes; most of the places are the index's or
 * HDF5's. */
static void damage(hostile_file *f, int kind, uint64_t *random)
{
    size_t at = any(random, f->n), to = any(random, f->n);
    size_t part = 1 + any(random, 64);
    static const unsigned char zeros[64];
    unsigned char kept[64];
    part = part > f->n - at ? f->n - at : part;
    part = part > f->n - to ? f->n - to : part;
    memcpy(kept, f->bytes + at, part);
    switch (kind) {
    case 0:
        f->n = at;
        break;
    case 1:
        f->bytes[at] ^= (unsigned char)(1u << any(random, 8));
        break;
    case 2:
        memcpy(f->bytes + at, zeros, part);
        break;
    case 3: /* a piece stands in another place */
        memcpy(f->bytes + to, kept, part);
        break;
    case 4:
        hostile_splice(f, at, 0, kept, part);
        break;
    case 5:
        hostile_splice(f, at, part, NULL, 0);
        break;
    case 6:
        for (size_t i = 0; i < part; i++)
            f->bytes[at + i] = (unsigned char)harness_random(random);
        break;
    default: /* as many bytes as before */
        hostile_splice(f, at, part, NULL, 0);
        hostile_splice(f, any(random, f->n), 0, kept, part);
        break;
    }
}

static void damaged_files_are_refused(void **state)
{
    (void)state;
    hostile_world w = hostile_begin();
    uint64_t random = 404;
    for (int i = 0; i < N_DAMAGED; i++) {
        hostile_file f = hostile_copy(&w.file);
        bool same = true;
        while (same) { /* zeros in place of zeros are no damage */
            damage(&f, i % N_KINDS, &random);
            same = f.n == w.file.n && memcmp(f.bytes, w.file.bytes, f.n) == 0;
        }
        assert_int_equal(hostile_try(&w, &f, ""), TRN_ERR_FORMAT);
        hostile_end(&f);
    }
    assert_int_equal(w.n_refused, N_DAMAGED);
    hostile_finish(&w);
}

/* ---- HDF5's own bytes, with checksums that fit ---- */

/* Numbers that parsers trip over. */
static const unsigned char awkward[] = {0,    1,    2,    3,    4,    8,
                                        0x0F, 0x10, 0x7F, 0x80, 0xFE, 0xFF};

static void put_awkward(hostile_file *f, size_t at, uint64_t *random)
{
    unsigned char byte = awkward[any(random, sizeof awkward)];
    for (size_t i = 0, n = 1 + any(random, 8); i < n; i++) {
        if (hostile_is_metadata(f, at + i))
            f->bytes[at + i] = byte;
    }
}

/* Where HDF5's structures begin. */
static size_t structure(const hostile_file *f, const char *sign, int turn)
{
    size_t found = 0;
    for (size_t at = f->room; at + 4 < f->n; at++) {
        if (memcmp(f->bytes + at, sign, 4) != 0)
            continue;
        found = at;
        if (turn-- == 0)
            break;
    }
    return found;
}

static void loads_as_before(hostile_world *w, hostile_file *f)
{
    hostile_seal(f);
    assert_int_equal(hostile_try(w, f, NULL), TRN_OK);
    hostile_end(f);
}

/* A superblock, trees of groups, heaps of names, tables of symbols, headers:
 * some of these files make HDF5 1.10 divide by zero or go round for ever. */
static void bytes_of_hdf5_do_no_harm(void **state)
{
    (void)state;
    static const char *const signs[] = {"\x89HDF", "TREE", "HEAP", "SNOD"};
    hostile_world w = hostile_begin();
    uint64_t random = 505;
    for (int i = 0; i < 64; i++) {
        hostile_file f = hostile_copy(&w.file);
        size_t at = structure(&f, signs[i % 4], i / 4 % 5);
        assert_true(at > 0);
        for (int j = 0; j < 3; j++)
            put_awkward(&f, at + any(&random, 48), &random);
        loads_as_before(&w, &f);
    }
    for (int i = 0; i < 64; i++) { /* headers, their messages, all else */
        hostile_file f = hostile_copy(&w.file);
        for (int j = 0; j < 8;) {
            size_t at = any(&random, f.n);
            if (!hostile_is_metadata(&f, at))
                continue;
            put_awkward(&f, at, &random);
            j++;
        }
        loads_as_before(&w, &f);
    }
    for (int fill = 0; fill < 3; fill++) { /* nothing is left of it */
        hostile_file f = hostile_copy(&w.file);
        for (size_t at = f.room; at < f.n; at++) {
            if (hostile_is_metadata(&f, at))
                f.bytes[at] = fill == 0   ? 0
                              : fill == 1 ? 0xFF
                                          : (unsigned char)any(&random, 256);
        }
        loads_as_before(&w, &f);
    }
    print_message("%d files were loaded with the right values\n", w.n_loaded);
    hostile_finish(&w);
}

/* ---- files that HDF5 has made ---- */

static hid_t new_file(const char *path, hsize_t block, bool latest)
{
    hid_t create = H5Pcreate(H5P_FILE_CREATE);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_userblock(create, block);
    if (latest)
        H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, create, access);
    assert_true(file >= 0);
    H5Pclose(create);
    H5Pclose(access);
    return file;
}

/* One of everything that a checkpoint never has. */
static void fill_file(hid_t file)
{
    const hsize_t small[1] = {64}, huge[1] = {(hsize_t)1 << 60};
    const char *text = "text of any length";
    hid_t chunks = H5Pcreate(H5P_DATASET_CREATE);
    hid_t late = H5Pcreate(H5P_DATASET_CREATE);
    hid_t variable = H5Tcopy(H5T_C_S1),
          space = H5Screate_simple(1, small, NULL);
    hid_t large = H5Screate_simple(1, huge, NULL), one = H5Screate(H5S_SCALAR);
    hid_t deep = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_chunk(chunks, 1, small);
    H5Pset_deflate(chunks, 9);
    H5Pset_layout(late, H5D_CHUNKED);
    H5Pset_chunk(late, 1, small);
    H5Tset_size(variable, H5T_VARIABLE);
    H5Pset_create_intermediate_group(deep, 1);
    hid_t d[] = {
        H5Dcreate2(file, "compressed", H5T_IEEE_F32LE, space, H5P_DEFAULT,
                   chunks, H5P_DEFAULT),
        H5Dcreate2(file, "big", H5T_IEEE_F64BE, space, H5P_DEFAULT, H5P_DEFAULT,
                   H5P_DEFAULT),
        H5Dcreate2(file, "huge", H5T_STD_U8LE, large, H5P_DEFAULT, late,
                   H5P_DEFAULT),
        H5Dcreate2(file, "a/b/c/d/e/f/g/h/i/j/k/l/m/deep", H5T_STD_I64LE, one,
                   deep, H5P_DEFAULT, H5P_DEFAULT),
        H5Dcreate2(file, "variable", variable, one, H5P_DEFAULT, H5P_DEFAULT,
                   H5P_DEFAULT),
    };
    assert_true(
        H5Dwrite(d[4], variable, H5S_ALL, H5S_ALL, H5P_DEFAULT, &text) >= 0);
    H5Lcreate_soft("/nowhere", file, "soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("/etc/passwd", "/", file, "tensors", H5P_DEFAULT,
                       H5P_DEFAULT);
    for (int i = 0; i < 5; i++)
        assert_true(d[i] >= 0 && H5Dclose(d[i]) >= 0);
    H5Pclose(deep);
    H5Pclose(late);
    H5Pclose(chunks);
    H5Sclose(one);
    H5Sclose(large);
    H5Sclose(space);
    H5Tclose(variable);
}

/* The file's HDF5 part behind our index and our datasets. */
static void give_index(hostile_world *w, const char *path)
{
    size_t n;
    char *foreign = checkpoint_bytes(path, &n);
    hostile_file f = hostile_copy(&w->file);
    assert_true(n > f.room);
    size_t moved = n - f.room;
    hostile_splice(&f, f.room, 0, foreign + f.room, moved);
    for (int i = 0; i < f.n_lines; i++) {
        hostile_line *l = &f.line[i];
        if (strcmp(l->bytes, "0") != 0)
            snprintf(l->at, sizeof l->at, "%lld",
                     strtoll(l->at, NULL, 10) + (long long)moved);
    }
    snprintf(f.size, sizeof f.size, "%zu", f.n);
    loads_as_before(w, &f);
    free(foreign);
}

static void files_of_hdf5_are_no_checkpoints(void **state)
{
    (void)state;
    hostile_world w = hostile_begin();
    const char *path = checkpoint_path("foreign.h5");
    for (int latest = 0; latest < 2; latest++) {
        for (int block = 0; block < 2; block++) {
            size_t room = block == 0 ? 0 : w.file.room;
            hid_t file = new_file(path, room, latest);
            fill_file(file);
            assert_true(H5Fclose(file) >= 0);
            hostile_try_path(&w, path,
                             block == 0 ? "HDF5 without the index" : "found a");
            if (block != 0)
                give_index(&w, path);
        }
    }
    hostile_finish(&w);
}

/* ---- other files ---- */

static void other_files_are_refused_by_what_they_are(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *part;
    } files[] = {
        {"", 0, "found an empty file"},
        {"\x1F\x8B\x08\0\0\0\0\0\0\3\x03\0", 12, "looks like gzip"},
        {"PK\3\4\x14\0\0\0\0\0weights.npy", 21, "looks like zip"},
        {"\x93NUMPY\1\0v\0{'descr': '<f4'}", 26, "looks like NumPy"},
        {"{\"a\":1}\n", 8, "found a file"},
        {"\x89HDF\r\n\x1A\n", 8, "looks like HDF5"},
        {"libtrn checkpoint ", 18, "damaged"},
        {"libtrn checkpoint 1\nsize 20 index 512 datasets 0\n", 49, "size"},
        {"\0\0\0\0", 4, "unknown kind"},
    };
    hostile_world w = hostile_begin();
    const char *path = checkpoint_path("other");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        checkpoint_put(path, files[i].bytes, files[i].n);
        assert_int_equal(
            hostile_try_path(&w, path, i == 7 ? "index" : files[i].part),
            TRN_ERR_FORMAT);
    }
    assert_int_equal(mkfifo(checkpoint_path("pipe"), 0600), 0);
    hostile_try_path(&w, checkpoint_path("pipe"), "found a device or pipe");
    hostile_try_path(&w, "/dev/zero", "found a device or pipe");
    hostile_try_path(&w, "/dev/null", "found a device or pipe");
    hostile_try_path(&w, checkpoint_folder(), "found a folder");
    assert_int_equal(hostile_try_path(&w, path, "unknown kind"),
                     TRN_ERR_FORMAT);
    hostile_finish(&w);
}

/* ---- files that change while they are read ---- */

static struct {
    const char *path;
    int left; /* reads until it changes */
    int how;
    size_t n;
    bool done;
} change;

static void change_now(void)
{
    FILE *f;
    change.done = true;
    switch (change.how) {
    case 0:
        assert_int_equal(truncate(change.path, 0), 0);
        return;
    case 1:
        assert_int_equal(truncate(change.path, (off_t)(change.n / 2)), 0);
        return;
    case 2:
        assert_int_equal(truncate(change.path, (off_t)change.n * 2), 0);
        return;
    default:
        f = fopen(change.path, "r+b");
        assert_non_null(f);
        for (size_t i = 0; i < change.n; i++)
            assert_int_not_equal(fputc(change.how == 3 ? 0 : 0xFF, f), EOF);
        assert_int_equal(fclose(f), 0);
    }
}

static ssize_t changing_pread(int fd, void *data, size_t n, int64_t at)
{
    if (!change.done && change.left-- == 0)
        change_now();
    return pread(fd, data, n, (off_t)at);
}

/* From read to read, until the reads are over. */
static void a_file_that_changes_is_seen_as_it_was_or_refused(void **state)
{
    (void)state;
    hostile_world w = hostile_begin();
    trn__file_calls calls = *w.k->calls;
    calls.pread = changing_pread;
    change.path = w.path;
    change.n = w.file.n;
    for (change.how = 0; change.how < 5; change.how++) {
        int at = 0;
        do {
            checkpoint_put(w.path, w.file.bytes, w.file.n);
            change.left = at++;
            change.done = false;
            w.k->calls = &calls;
            trn_status status = trn_checkpoint_load(w.k, w.path);
            w.k->calls = &trn__system_calls;
            bool good = status == TRN_OK;
            CHECK(good || status == TRN_ERR_FORMAT || status == TRN_ERR_IO,
                  "%s\n", trn_errmsg(w.c));
            hostile_result(&w, good);
        } while (change.done);
        assert_true(at > 30);
    }
    print_message("%d refused, %d loaded\n", w.n_refused, w.n_loaded);
    assert_true(w.n_refused > 100);
    hostile_finish(&w);
}
#endif

int main(void)
{
    checkpoint_folder();
#ifdef TRN_HAVE_HDF5
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(bytes_of_hdf5_do_no_harm),
        cmocka_unit_test(files_of_hdf5_are_no_checkpoints),
        cmocka_unit_test(other_files_are_refused_by_what_they_are),
        cmocka_unit_test(a_file_that_changes_is_seen_as_it_was_or_refused),
    };
#else
    const struct CMUnitTest tests[] = {cmocka_unit_test(checkpoint_skips)};
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
