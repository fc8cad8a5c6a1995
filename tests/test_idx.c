/* SPDX-License-Identifier: Apache-2.0
 *
 * IDX files: every element type, and a clear message for every wrong file.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef TRN_HAVE_ZLIB
#include <zlib.h>
#endif

#include "libtrn/data/idx.h"

static char folder[] = "/tmp/test_idx_XXXXXX";
static char path[64];
static char message[512];

static int n_blocks;
static int fail_after = -1;
static size_t largest;

static void *test_alloc(void *user, size_t bytes)
{
    (void)user;
    if (fail_after == 0)
        return NULL;
    if (fail_after > 0)
        --fail_after;
    if (bytes > largest)
        largest = bytes;
    ++n_blocks;
    return malloc(bytes);
}

static void test_dealloc(void *user, void *p)
{
    (void)user;
    n_blocks -= p != NULL;
    free(p);
}

static const trn__alloc_hooks hooks = {
    .alloc = test_alloc,
    .dealloc = test_dealloc,
};

static void write_file(const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static trn_status load(trn__idx *out)
{
    largest = 0;
    memset(message, 'x', sizeof message - 1);
    return trn__idx_load(path, &hooks, out, message, sizeof message);
}

/* Loading fails with `status` and the message is path + `text`. */
static void check_failure(trn_status status, const char *text)
{
    trn__idx out;
    char expected[512];
    assert_int_equal(load(&out), status);
    snprintf(expected, sizeof expected, "%s: %s", path, text);
    assert_string_equal(message, expected);
    assert_null(out.data);
    assert_int_equal(out.rank, 0);
    assert_int_equal(n_blocks, 0);
}

static void refuse(const void *bytes, size_t n, const char *text)
{
    write_file(bytes, n);
    check_failure(TRN_ERR_FORMAT, text);
}

#define REFUSE(bytes, text) refuse(bytes, sizeof bytes - 1, text)

/* Loading gives `dtype`, one row of `n`, and `bytes` of data. */
static void check_row(trn_dtype dtype, int64_t n, const void *data,
                      size_t bytes)
{
    trn__idx out;
    trn_status status = load(&out);
    if (status != TRN_OK)
        fail_msg("%s", message);
    assert_string_equal(message, "");
    assert_int_equal(out.dtype, dtype);
    assert_int_equal(out.rank, 1);
    assert_int_equal(out.dims[0], n);
    assert_int_equal(out.bytes, bytes);
    assert_memory_equal(out.data, data, bytes);
    test_dealloc(NULL, out.data);
    assert_int_equal(n_blocks, 0);
}

#define ROW(code, n) "\0\0" code "\1\0\0\0" n

static void every_type_is_read(void **state)
{
    static const uint8_t u8[] = {0, 127, 255};
    static const int32_t i8[] = {0, -1, -128, 127};
    static const int32_t i16[] = {-2, 32767, -32768};
    static const int32_t i32[] = {1, -2, INT32_MIN};
    static const float f32[] = {1.0f, -0.15625f};
    static const double f64[] = {-2.0, 0.333333333333333314829616256247};
    (void)state;
    write_file(ROW("\x08", "\3") "\x00\x7F\xFF", 11);
    check_row(TRN_U8, 3, u8, sizeof u8);
    write_file(ROW("\x09", "\4") "\x00\xFF\x80\x7F", 12);
    check_row(TRN_I32, 4, i8, sizeof i8);
    write_file(ROW("\x0B", "\3") "\xFF\xFE\x7F\xFF\x80\x00", 14);
    check_row(TRN_I32, 3, i16, sizeof i16);
    write_file(ROW("\x0C", "\3") "\0\0\0\1\xFF\xFF\xFF\xFE\x80\0\0\0", 20);
    check_row(TRN_I32, 3, i32, sizeof i32);
    write_file(ROW("\x0D", "\2") "\x3F\x80\0\0\xBE\x20\0\0", 16);
    check_row(TRN_F32, 2, f32, sizeof f32);
    write_file(ROW("\x0E", "\2") "\xC0\0\0\0\0\0\0\0"
                                 "\x3F\xD5\x55\x55\x55\x55\x55\x55",
               24);
    check_row(TRN_F64, 2, f64, sizeof f64);
}

static void rank_8_and_empty_arrays_are_read(void **state)
{
    trn__idx out;
    (void)state;
    write_file("\0\0\x08\x08\0\0\0\1\0\0\0\2\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1"
               "\0\0\0\1\0\0\0\3"
               "abcdef",
               42);
    assert_int_equal(load(&out), TRN_OK);
    assert_int_equal(out.rank, 8);
    assert_int_equal(out.dims[1], 2);
    assert_int_equal(out.dims[7], 3);
    assert_memory_equal(out.data, "abcdef", 6);
    test_dealloc(NULL, out.data);
    write_file("\0\0\x0D\x02\0\0\0\5\0\0\0\0", 12);
    assert_int_equal(load(&out), TRN_OK);
    assert_int_equal(out.dims[0], 5);
    assert_int_equal(out.dims[1], 0);
    assert_int_equal(out.bytes, 0);
    assert_null(out.data);
    assert_int_equal(n_blocks, 0);
}

static void a_missing_file_is_named(void **state)
{
    trn__idx out;
    (void)state;
    unlink(path);
    check_failure(TRN_ERR_IO, "cannot be opened: No such file or directory");
    assert_int_equal(trn__idx_load(NULL, &hooks, &out, message, 512),
                     TRN_ERR_ARG);
    assert_int_equal(trn__idx_load(path, &hooks, &out, NULL, 0), TRN_ERR_IO);
    assert_int_equal(trn__idx_load(path, &hooks, &out, message, 9), TRN_ERR_IO);
    assert_int_equal(strlen(message), 8);
    assert_int_equal(trn__idx_load(folder, &hooks, &out, message, 512),
                     TRN_ERR_IO);
    assert_non_null(strstr(message, "byte 0: cannot be read: Is a directory"));
}

static void wrong_kinds_of_file_are_recognised(void **state)
{
    (void)state;
    REFUSE("", "byte 0: found an empty file; expected an IDX header");
    REFUSE("\x89HDF\r\n\x1A\n\0\0",
           "byte 0: found 89 48 (the file looks like HDF5); expected 00 00 of "
           "an IDX file");
    REFUSE("PK\3\4\0\0", "byte 0: found 50 4b (the file looks like zip); "
                         "expected 00 00 of an IDX file");
    REFUSE("\x89PNG\r\n\x1A\n", "byte 0: found 89 50 (the file looks like "
                                "PNG); expected 00 00 of an IDX file");
    REFUSE("label,pixel\n", "byte 0: found 6c 61 (the file looks like text); "
                            "expected 00 00 of an IDX file");
    REFUSE("\x93NUMPY\1\0", "byte 0: found 93 4e (the file looks like NumPy); "
                            "expected 00 00 of an IDX file");
    REFUSE("\1\x08\0\0\2\0\0\0ab",
           "byte 0: found 01 08 (the file looks like IDX in little-endian "
           "byte order); expected 00 00 of an IDX file");
    REFUSE("\xFE\xDC\xBA\x98\0", "byte 0: found fe dc; expected 00 00 of an "
                                 "IDX file");
}

static void bad_headers_are_refused(void **state)
{
    (void)state;
    REFUSE("\0\0\x08", "byte 3: found a file of 3 bytes (truncated); expected "
                       "an IDX header of at least 8");
    REFUSE("\0\0\x0A\1\0\0\0\1a",
           "byte 2: found type code 0x0A; expected 0x08 (u8), 0x09 (i8), 0x0B "
           "(i16), 0x0C (i32), 0x0D (f32) or 0x0E (f64)");
    REFUSE("\0\0\x08\0a", "byte 3: found rank 0; expected 1 to 8");
    REFUSE("\0\0\x08\x09\0\0\0\1", "byte 3: found rank 9; expected 1 to 8");
    REFUSE("\0\0\x08\3\0\0\0\1\0\0",
           "byte 10: the file ends in its header (truncated); expected 16 "
           "bytes for 3 dimensions");
    REFUSE("\0\0\x0E\2\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
           "byte 4: found dimensions of f64[4294967295,4294967295], whose "
           "product overflows; expected at most 1152921504606846967 elements");
    REFUSE("\0\0\x08\3\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\0\0\0\0",
           "byte 4: found dimensions of u8[4294967295,4294967295,0], whose "
           "product overflows; expected at most 1152921504606846967 elements");
}

static void wrong_sizes_are_refused_before_allocating(void **state)
{
    (void)state;
    REFUSE("\0\0\x08\2\0\0\0\2\0\0\0\3"
           "abcde",
           "byte 17: found the end (truncated); expected 18 bytes for "
           "u8[2,3]");
    REFUSE("\0\0\x0B\1\0\0\0\1\0\1x",
           "byte 10: found extra bytes; expected the end after i16[1]");
    REFUSE("\0\0\x08\1\0\0\0\0x",
           "byte 8: found extra bytes; expected the end after u8[0]");
    REFUSE("\0\0\x0E\2\x7F\xFF\xFF\xFF\0\0\1\0ab",
           "byte 14: found the end (truncated); expected 4398046509068 bytes "
           "for f64[2147483647,256]");
    assert_true(largest < 1000000);
}

static void large_rows(const char *mode)
{
    enum { N = 300000 };
    static const unsigned char head[8] = {0, 0, 0x0B, 1, 0, 4, 0x93, 0xE0};
    unsigned char *bytes = malloc(8 + 2 * N);
    trn__idx out;
    const int32_t *y;
    assert_non_null(bytes);
    memcpy(bytes, head, sizeof head);
    for (int i = 0; i < N; ++i) {
        bytes[8 + 2 * i] = (unsigned char)(i >> 8 & 0xFF);
        bytes[9 + 2 * i] = (unsigned char)(i & 0xFF);
    }
    if (mode == NULL)
        write_file(bytes, 8 + 2 * N);
#ifdef TRN_HAVE_ZLIB
    if (mode != NULL) {
        gzFile f = gzopen(path, mode);
        assert_int_equal(gzwrite(f, bytes, 8 + 2 * N), 8 + 2 * N);
        gzclose(f);
    }
#endif
    assert_int_equal(load(&out), TRN_OK);
    assert_int_equal(out.dims[0], N);
    assert_int_equal(out.bytes, 4 * N);
    y = out.data;
    for (int i = 0; i < N; ++i)
        assert_int_equal(y[i], (int16_t)(uint16_t)i);
    test_dealloc(NULL, out.data);
    free(bytes);
    assert_int_equal(n_blocks, 0);
}

static void a_file_of_many_pieces_is_read(void **state)
{
    (void)state;
    large_rows(NULL);
}

static const char row_of_6[] = "\0\0\x08\1\0\0\0\6"
                               "abcdef";

static void each_failed_allocation_is_reported(void **state)
{
    trn__idx out;
    trn_status status = TRN_ERR_NOMEM;
    int i;
    (void)state;
    for (i = 0; status != TRN_OK; ++i) {
        fail_after = i;
        status = load(&out);
        fail_after = -1;
        assert_true(status == TRN_OK || status == TRN_ERR_NOMEM);
        if (status != TRN_OK) {
            assert_non_null(strstr(message, "out of memory"));
            assert_int_equal(n_blocks, 0);
        }
        assert_true(i < 20);
    }
    assert_true(i >= 2);
    test_dealloc(NULL, out.data);
    assert_int_equal(n_blocks, 0);
}

static void plain_files_report_failed_allocations(void **state)
{
    write_file(row_of_6, 14);
    each_failed_allocation_is_reported(state);
}

#ifdef TRN_HAVE_ZLIB

static void write_packed(const void *bytes, unsigned n, const char *mode)
{
    gzFile f = gzopen(path, mode);
    assert_non_null(f);
    assert_int_equal(gzwrite(f, bytes, n), (int)n);
    assert_int_equal(gzclose(f), Z_OK);
}

static size_t read_file(unsigned char *bytes, size_t size)
{
    FILE *f = fopen(path, "rb");
    size_t n;
    assert_non_null(f);
    n = fread(bytes, 1, size, f);
    fclose(f);
    return n;
}

static void packed_files_are_read(void **state)
{
    (void)state;
    write_packed(row_of_6, 14, "wb");
    check_row(TRN_U8, 6, "abcdef", 6);
    large_rows("wb9");
    large_rows("wb0");
    /* Two members, cut inside the header. */
    write_packed(row_of_6, 7, "wb");
    write_packed(row_of_6 + 7, 7, "ab");
    check_row(TRN_U8, 6, "abcdef", 6);
    write_packed(row_of_6, 14, "wb");
    each_failed_allocation_is_reported(state);
}

static void damaged_gzip_data_is_refused(void **state)
{
    unsigned char bytes[200];
    char text[200];
    size_t n;
    (void)state;
    write_packed(row_of_6, 14, "wb");
    n = read_file(bytes, sizeof bytes - 1);
    for (size_t cut = 2; cut < n; ++cut) {
        snprintf(text, sizeof text,
                 "byte %d: the gzip data ends too early; expected its end "
                 "mark (truncated file)",
                 (int)cut);
        write_file(bytes, cut);
        check_failure(TRN_ERR_FORMAT, text);
    }
    bytes[n] = 'x';
    snprintf(text, sizeof text,
             "byte %d: found more bytes after the gzip data; expected the end "
             "of the file",
             (int)n);
    write_file(bytes, n + 1);
    check_failure(TRN_ERR_FORMAT, text);
    bytes[n - 8] ^= 1;
    snprintf(text, sizeof text,
             "byte %d: found damaged gzip data: incorrect data check",
             (int)n - 4);
    write_file(bytes, n);
    check_failure(TRN_ERR_FORMAT, text);
}

static void damaged_bytes_never_crash(void **state)
{
    unsigned char bytes[200];
    size_t n;
    trn__idx out;
    (void)state;
    write_packed(row_of_6, 14, "wb");
    n = read_file(bytes, sizeof bytes);
    for (size_t i = 0; i < 8 * n; ++i) {
        bytes[i / 8] ^= (unsigned char)(1 << i % 8);
        write_file(bytes, n);
        if (load(&out) == TRN_OK)
            test_dealloc(NULL, out.data);
        else
            assert_non_null(strstr(message, "byte "));
        bytes[i / 8] ^= (unsigned char)(1 << i % 8);
        assert_int_equal(n_blocks, 0);
    }
}

static void wrong_content_inside_gzip_is_refused(void **state)
{
    (void)state;
    write_packed("", 0, "wb");
    check_failure(TRN_ERR_FORMAT, "byte 0 of the unpacked data: found an empty "
                                  "file; expected an IDX header");
    write_packed("\x1F\x8B\x08\0\0", 5, "wb");
    check_failure(TRN_ERR_FORMAT,
                  "byte 0 of the unpacked data: found 1f 8b (the file looks "
                  "like gzip inside gzip); expected 00 00 of an IDX file");
    write_packed(row_of_6, 12, "wb");
    check_failure(TRN_ERR_FORMAT,
                  "byte 12 of the unpacked data: found the end (truncated); "
                  "expected 14 bytes for u8[6]");
    write_packed("\0\0\x08\1\0\0\0\2abc", 11, "wb");
    check_failure(TRN_ERR_FORMAT, "byte 10 of the unpacked data: found extra "
                                  "bytes; expected the end after u8[2]");
    write_packed("\0\0\x0E\2\x7F\xFF\xFF\xFF\0\0\1\0abcdefgh", 20, "wb");
    check_failure(TRN_ERR_FORMAT,
                  "byte 20 of the unpacked data: found the end (truncated); "
                  "expected 4398046509068 bytes for f64[2147483647,256]");
    assert_true(largest < 2000000);
}

#else

static void packed_files_need_zlib(void **state)
{
    static const char packed[] = "\x1F\x8B\x08\0\0\0\0\0\0";
    (void)state;
    write_file(packed, sizeof packed);
    check_failure(TRN_ERR_UNSUPPORTED,
                  "byte 0: found a gzip file, and this build has no zlib; "
                  "expected a plain IDX file");
}

#endif

static int make_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/file.idx", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_read),
        cmocka_unit_test(rank_8_and_empty_arrays_are_read),
        cmocka_unit_test(a_missing_file_is_named),
        cmocka_unit_test(wrong_kinds_of_file_are_recognised),
        cmocka_unit_test(bad_headers_are_refused),
        cmocka_unit_test(wrong_sizes_are_refused_before_allocating),
        cmocka_unit_test(a_file_of_many_pieces_is_read),
        cmocka_unit_test(plain_files_report_failed_allocations),
#ifdef TRN_HAVE_ZLIB
        cmocka_unit_test(packed_files_are_read),
        cmocka_unit_test(damaged_gzip_data_is_refused),
        cmocka_unit_test(damaged_bytes_never_crash),
        cmocka_unit_test(wrong_content_inside_gzip_is_refused),
#else
        cmocka_unit_test(packed_files_need_zlib),
#endif
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
