/* SPDX-License-Identifier: Apache-2.0
 *
 * Loaders over files that the test writes: IDX, plain and packed, and texts.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "harness.h"

#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef TRN_HAVE_ZLIB
#include <zlib.h>
#endif

static char folder[] = "/tmp/test_data_XXXXXX";
static char images[64], labels[64];

static int make_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(images, sizeof images, "%s/images", folder);
    snprintf(labels, sizeof labels, "%s/labels", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(images);
    unlink(labels);
    return rmdir(folder);
}

static void write_file(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* 3 images of 2 x 2 bytes, and their labels. */
static const unsigned char three_images[] = {
    0, 0, 8, 3, 0, 0, 0, 3, 0,   0,  0,   2,  0,   0,
    0, 2, 0, 1, 2, 3, 4, 5, 127, 51, 254, 85, 255, 128};
static const unsigned char three_labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 9, 0, 255};

static void write_three(void)
{
    write_file(images, three_images, sizeof three_images);
    write_file(labels, three_labels, sizeof three_labels);
}

static trn_loader_options in_order(void)
{
    trn_loader_options o = TRN_LOADER_INIT;
    o.shuffle = false;
    return o;
}

/* Samples [first, 3) of the three come out as fractions and i32. */
static void check_three(trn_loader *l, int first)
{
    trn_batch b;
    float x[12], *values = x;
    double y[12];
    int32_t label[3];
    size_t n = (size_t)(3 - first);
    assert_int_equal(trn_data_next(l, &b), 1);
    assert_int_equal(b.size, n);
    assert_int_equal(trn_tensor_rank(b.inputs), 2);
    assert_int_equal(trn_tensor_dim(b.inputs, 1), 4);
    bool wide = trn_tensor_dtype(b.inputs) == TRN_F64;
    trn_tensor_read(b.inputs, wide ? (void *)y : values,
                    4 * n * (wide ? sizeof *y : sizeof *x));
    trn_tensor_read(b.targets, label, n * sizeof *label);
    for (size_t i = 0; i < 4 * n; i++) {
        unsigned char byte = three_images[16 + 4 * first + (int)i];
        if (wide)
            assert_true(y[i] == (double)byte / 255.0);
        else
            assert_true(x[i] == (float)byte / 255.0f);
    }
    for (size_t i = 0; i < n; i++)
        assert_int_equal(label[i], three_labels[8 + first + (int)i]);
}

static void idx_bytes_become_fractions_and_labels_i32(void **state)
{
    trn_loader_options o = in_order();
    write_three();
    check_three(trn_data_idx(*state, images, labels, 3, &o), 0);
    o.dtype = TRN_F64;
    check_three(trn_data_idx(*state, images, labels, 5, &o), 0);
    o.first = 1;
    trn_loader *l = trn_data_idx(*state, images, labels, 5, &o);
    assert_int_equal(trn_data_samples(l), 2);
    check_three(l, 1);
}

static void images_keep_their_bits_in_any_rounding_mode(void **state)
{
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    trn_loader_options o = in_order();
    write_three();
    for (int m = 0; m < 6; m++) {
        o.dtype = m < 3 ? TRN_F32 : TRN_F64;
        fesetround(modes[m % 3]);
        trn_loader *l = trn_data_idx(*state, images, labels, 3, &o);
        fesetround(FE_TONEAREST);
        check_three(l, 0);
    }
}

static void packed_idx_files_are_unpacked(void **state)
{
#ifdef TRN_HAVE_ZLIB
    trn_loader_options o = in_order();
    write_three();
    gzFile f = gzopen(images, "wb");
    assert_int_equal(gzwrite(f, three_images, sizeof three_images),
                     sizeof three_images);
    assert_int_equal(gzclose(f), Z_OK);
    check_three(trn_data_idx(*state, images, labels, 3, &o), 0);
#else
    (void)state;
    printf("built without zlib\n");
    skip();
#endif
}

static void other_idx_types_are_cast(void **state)
{
    static const unsigned char shorts[] = {0, 0, 0x0B, 1,    0,    0,
                                           0, 2, 0xff, 0xfe, 0x01, 0x00};
    static const unsigned char doubles[] = {
        0,    0,    0x0E, 1,    0,    0,    0,    2,    0x3f, 0xb9, 0x99, 0x99,
        0x99, 0x99, 0x99, 0x9a, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
    trn_loader_options o = in_order();
    trn_batch b;
    write_file(images, shorts, sizeof shorts);
    write_file(labels, shorts, sizeof shorts);
    trn_loader *l = trn_data_idx(*state, images, labels, 2, &o);
    assert_int_equal(trn_data_next(l, &b), 1);
    harness_equal(b.inputs, 2, -2.0, 256.0);
    harness_equal(b.targets, 2, -2.0, 256.0);
    assert_int_equal(trn_tensor_rank(b.inputs), 2);
    assert_int_equal(trn_tensor_dtype(b.targets), TRN_I32);
    write_file(images, doubles, sizeof doubles);
    l = trn_data_idx(*state, images, labels, 2, &o);
    assert_int_equal(trn_data_next(l, &b), 1);
    harness_equal(b.inputs, 2, (double)0.1f, -2.0);
    o.dtype = TRN_F64;
    l = trn_data_idx(*state, images, labels, 2, &o);
    assert_int_equal(trn_data_next(l, &b), 1);
    harness_equal(b.inputs, 2, 0.1, -2.0);
}

static void wrong_idx_files_and_arguments_are_named(void **state)
{
    trn_context *c = *state;
    trn_loader_options o = in_order();
    write_three();
    assert_null(trn_data_idx(c, images, "/nonexistent/labels", 1, &o));
    harness_error(c, TRN_ERR_IO, "/nonexistent/labels");
    assert_null(trn_data_idx(c, NULL, labels, 1, &o));
    harness_error(c, TRN_ERR_ARG, "path");
    assert_null(trn_data_idx(c, images, images, 1, &o));
    harness_error(c, TRN_ERR_SHAPE, "found rank 3; expected labels, rank 1");
    static const unsigned char two[] = {0, 0, 8, 1, 0, 0, 0, 2, 9, 0};
    write_file(labels, two, sizeof two);
    assert_null(trn_data_idx(c, images, labels, 1, &o));
    harness_error(c, TRN_ERR_SHAPE, "found 2 labels; expected 3");
    static const unsigned char real[] = {0, 0, 0x0D, 1,    0, 0,
                                         0, 1, 0x3f, 0x80, 0, 0};
    write_file(labels, real, sizeof real);
    assert_null(trn_data_idx(c, images, labels, 1, &o));
    harness_error(c, TRN_ERR_DTYPE, "found f32; expected labels");
    write_file(labels, two, 9);
    assert_null(trn_data_idx(c, images, labels, 1, &o));
    harness_error(c, TRN_ERR_FORMAT, labels);
    write_three();
    o.count = 4;
    assert_null(trn_data_idx(c, images, labels, 1, &o));
    harness_error(c, TRN_ERR_ARG, "options.count is 4; expected 0 to 3");
    o = in_order();
    o.dtype = TRN_BF16;
    assert_null(trn_data_idx(c, images, labels, 1, &o));
    harness_error(c, TRN_ERR_DTYPE, "options.dtype is bf16");
    assert_null(trn_data_idx(c, images, labels, -1, NULL));
    harness_error(c, TRN_ERR_ARG, "batch_size is -1");
}

/* ---- texts ---- */

static void a_vocabulary_is_the_bytes_that_occur_in_order(void **state)
{
    trn_text *t = trn_text_from(*state, "hello\xff\0", 7, NULL);
    assert_int_equal(trn_text_length(t), 7);
    assert_int_equal(trn_text_vocabulary(t), 6); /* 0 e h l o 255 */
    static const char bytes[] = {'\0', 'e', 'h', 'l', 'o', '\xff'};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(trn_text_byte_of(t, i), bytes[i]);
        assert_int_equal(trn_text_index_of(t, bytes[i]), i);
    }
    assert_memory_equal(trn_text_indices(t), ((int32_t[]){2, 1, 3, 3, 4, 5, 0}),
                        28);
    assert_int_equal(trn_text_index_of(t, 'x'), -1);
    assert_int_equal(trn_text_byte_of(t, 6), 0);
    assert_int_equal(trn_text_byte_of(t, -1), 0);
}

static void bytes_outside_a_vocabulary_become_the_nearest_inside(void **state)
{
    trn_context *c = *state;
    trn_text *v = trn_text_from(c, "cgz", 3, NULL);
    trn_text *t = trn_text_from(c, "\0def\xff", 5, v);
    assert_int_equal(trn_text_vocabulary(t), 3);
    assert_memory_equal(trn_text_indices(t), ((int32_t[]){0, 0, 0, 1, 2}), 20);
    trn_text *empty = trn_text_from(c, NULL, 0, NULL);
    assert_int_equal(trn_text_length(empty), 0);
    assert_null(trn_text_from(c, "a", 1, empty));
    harness_error(c, TRN_ERR_ARG, "vocabulary is of an empty text");
}

static void files_are_read_as_one_text_with_its_hash(void **state)
{
    trn_context *c = *state;
    static char big[200001];
    char expected[65];
    for (size_t i = 0; i < sizeof big; i++)
        big[i] = (char)(i % 251);
    write_file(images, big, 150000);
    write_file(labels, big + 150000, sizeof big - 150000);
    const char *paths[] = {images, labels};
    trn_text *t = trn_text_read(c, 2, paths, NULL);
    trn_sha256(big, sizeof big, expected);
    assert_string_equal(trn_text_sha256(t), expected);
    assert_int_equal(trn_text_length(t), sizeof big);
    assert_int_equal(trn_text_vocabulary(t), 251);
    for (size_t i = 0; i < sizeof big; i++)
        assert_int_equal(trn_text_indices(t)[i], i % 251);
}

static void unreadable_texts_are_named(void **state)
{
    trn_context *c = *state;
    const char *missing = "/nonexistent/text", *none = NULL;
    const char *directory = folder;
    assert_null(trn_text_read(c, 1, &missing, NULL));
    harness_error(c, TRN_ERR_IO,
                  "/nonexistent/text: cannot be opened: No such file");
    assert_null(trn_text_read(c, 1, &directory, NULL));
    harness_error(c, TRN_ERR_IO, "Is a directory");
    assert_null(trn_text_read(c, 1, &none, NULL));
    harness_error(c, TRN_ERR_ARG, "a path is NULL");
    assert_null(trn_text_read(c, 0, &missing, NULL));
    harness_error(c, TRN_ERR_ARG, "0 paths were given");
    assert_null(trn_text_from(c, NULL, 3, NULL));
    harness_error(c, TRN_ERR_ARG, "bytes is NULL");
    assert_int_equal(trn_text_length(NULL), 0);
    assert_int_equal(trn_text_vocabulary(NULL), 0);
    assert_string_equal(trn_text_sha256(NULL), "");
}

static void every_window_of_a_text_is_a_sample(void **state)
{
    trn_context *c = *state;
    trn_text *t = trn_text_from(c, "abcdef", 6, NULL);
    trn_loader_options o = in_order();
    trn_loader *l = trn_data_text(c, t, 3, 2, &o);
    trn_batch b;
    assert_int_equal(trn_data_samples(l), 3);
    assert_int_equal(trn_data_next(l, &b), 1);
    assert_int_equal(trn_tensor_dtype(b.inputs), TRN_I32);
    assert_int_equal(trn_tensor_rank(b.targets), 1);
    harness_equal(b.inputs, 6, 0.0, 1.0, 2.0, 1.0, 2.0, 3.0);
    harness_equal(b.targets, 2, 3.0, 4.0);
    assert_int_equal(trn_data_next(l, &b), 1);
    harness_equal(b.inputs, 3, 2.0, 3.0, 4.0);
    harness_equal(b.targets, 1, 5.0);
    assert_int_equal(trn_data_next(l, &b), 0);
    o.first = 2;
    l = trn_data_text(c, t, 3, 9, &o);
    assert_int_equal(trn_data_next(l, &b), 1);
    harness_equal(b.targets, 1, 5.0);
}

static void texts_without_a_whole_window_are_refused(void **state)
{
    trn_context *c = *state;
    trn_context *other = harness_open(NULL, 1, TRN_ENGINE_POOL);
    trn_text *t = trn_text_from(c, "abc", 3, NULL);
    assert_non_null(trn_data_text(c, t, 2, 1, NULL));
    assert_null(trn_data_text(c, t, 3, 1, NULL));
    harness_error(c, TRN_ERR_ARG, "3 characters; expected more than the 3");
    assert_null(trn_data_text(c, trn_text_from(c, "", 0, NULL), 1, 1, NULL));
    harness_error(c, TRN_ERR_ARG, "0 characters");
    assert_null(trn_data_text(c, t, 0, 1, NULL));
    harness_error(c, TRN_ERR_ARG, "context is 0");
    assert_null(trn_data_text(c, NULL, 1, 1, NULL));
    harness_error(c, TRN_ERR_ARG, "text is NULL");
    assert_null(trn_data_text(other, t, 1, 1, NULL));
    harness_error(other, TRN_ERR_ARG, "another context");
    harness_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(idx_bytes_become_fractions_and_labels_i32),
        TRN_TEST(images_keep_their_bits_in_any_rounding_mode),
        TRN_TEST(packed_idx_files_are_unpacked),
        TRN_TEST(other_idx_types_are_cast),
        TRN_TEST(wrong_idx_files_and_arguments_are_named),
        TRN_TEST(a_vocabulary_is_the_bytes_that_occur_in_order),
        TRN_TEST(bytes_outside_a_vocabulary_become_the_nearest_inside),
        TRN_TEST(files_are_read_as_one_text_with_its_hash),
        TRN_TEST(unreadable_texts_are_named),
        TRN_TEST(every_window_of_a_text_is_a_sample),
        TRN_TEST(texts_without_a_whole_window_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
