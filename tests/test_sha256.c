/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 against published vectors, and the digest of a module.
 *
 * The vectors of "abc", of the 448-bit message and of a million "a" are those
 * of the examples of FIPS 180; the digest is compared with a hash of its bytes,
 * written out here.
 */
#include "harness.h"

#include "libtrn/data/sha256.h"

static void check_text(const char *text, const char *expected)
{
    char out[65];
    trn_sha256(text, strlen(text), out);
    assert_string_equal(out, expected);
}

static void published_messages_have_their_digests(void **state)
{
    (void)state;
    check_text("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff6"
                      "1f20015ad");
    check_text("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b78"
                   "52b855");
    check_text("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
               "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06"
               "c1");
}

static void a_million_letters_have_their_digest_in_any_pieces(void **state)
{
    (void)state;
    static const char expected[] = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a4"
                                   "97200e046d39ccc7112cd0";
    static const size_t pieces[] = {1, 63, 64, 65, 1000, 1000000};
    static char letters[1000000];
    memset(letters, 'a', sizeof letters);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        trn__sha256 s;
        char out[65];
        trn__sha256_begin(&s);
        for (size_t at = 0; at < sizeof letters; at += pieces[i]) {
            size_t left = sizeof letters - at;
            trn__sha256_add(&s, letters + at,
                            pieces[i] < left ? pieces[i] : left);
        }
        trn__sha256_end(&s, out);
        assert_string_equal(out, expected);
    }
}

static void every_length_gives_the_same_in_one_piece_and_in_bytes(void **state)
{
    (void)state;
    char text[200], once[65], bytewise[65];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 37 + 11);
    for (size_t n = 0; n <= sizeof text; n++) {
        trn__sha256 s;
        trn__sha256_begin(&s);
        for (size_t i = 0; i < n; i++)
            trn__sha256_add(&s, text + i, 1);
        trn__sha256_end(&s, bytewise);
        trn_sha256(text, n, once);
        assert_string_equal(once, bytewise);
    }
}

/* ---- the digest of a module ---- */

static trn_tensor *same(trn_module *m, trn_tensor *x, void *user)
{
    (void)m;
    (void)user;
    return x;
}

static trn_module *module_of(trn_context *c, const uint32_t bits[2])
{
    float values[2];
    memcpy(values, bits, sizeof values);
    trn_module *m = trn_nn_custom(c, same, NULL);
    trn_tensor *t = trn_tensor_from(c, TRN_F32, 2, (int64_t[]){1, 2}, values);
    assert_int_equal(trn_nn_add_parameter(m, "weight", t), TRN_OK);
    return m;
}

static void digest_is_the_hash_of_name_type_shape_and_values(void **state)
{
    trn_context *c = *state;
    trn_module *m = module_of(c, (uint32_t[]){0x3f800000, 0xff800001});
    static const unsigned char bytes[] = "weight\0f32\0"
                                         "\2\0\0\0"
                                         "\1\0\0\0\0\0\0\0"
                                         "\2\0\0\0\0\0\0\0"
                                         "\0\0\x80\x3f"
                                         "\0\0\xc0\x7f"; /* any NaN */
    char expected[65], out[65];
    trn_sha256(bytes, sizeof bytes - 1, expected);
    assert_int_equal(trn_digest(m, out), TRN_OK);
    assert_string_equal(out, expected);
}

static void digest_sees_every_bit_but_those_of_a_nan(void **state)
{
    trn_context *c = *state;
    char a[65], b[65];
    trn_digest(module_of(c, (uint32_t[]){0, 0x7fc00000}), a);
    trn_digest(module_of(c, (uint32_t[]){0, 0xffffffff}), b);
    assert_string_equal(a, b);
    trn_digest(module_of(c, (uint32_t[]){0x80000000, 0x7fc00000}), b);
    assert_string_not_equal(a, b);
    trn_digest(module_of(c, (uint32_t[]){0, 0x7f800000}), b);
    assert_string_not_equal(a, b);
    assert_int_equal(trn_digest(NULL, a), TRN_ERR_ARG);
    assert_string_equal(a, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_messages_have_their_digests),
        cmocka_unit_test(a_million_letters_have_their_digest_in_any_pieces),
        cmocka_unit_test(every_length_gives_the_same_in_one_piece_and_in_bytes),
        TRN_TEST(digest_is_the_hash_of_name_type_shape_and_values),
        TRN_TEST(digest_sees_every_bit_but_those_of_a_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
