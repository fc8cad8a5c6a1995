/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of the pjrt device: from a text to values and to the bytes that a
 * plug-in gets.
 */
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"
#include "backends/pjrt/pjrt.h"

static void values_are_guessed_from_their_text(void **state)
{
    (void)state;
    trn__pjrt_fault fault;
    trn__pjrt_options o;
    assert_int_equal(trn__pjrt_parse("a=1,b_.-=true,c=false,d=-1.5e3,e=x y,"
                                     "f=\"1,2\",g=9223372036854775807,"
                                     "h=9223372036854775808,i=\"\",a=-7,j=.5,"
                                     "k=1e400,l=true1",
                                     "test", &o, &fault),
                     TRN_OK);
    assert_int_equal(o.n, 13);
    static const uint32_t kinds[] = {
        PJRT_INT64,  PJRT_BOOL,  PJRT_BOOL,   PJRT_FLOAT,  PJRT_STRING,
        PJRT_STRING, PJRT_INT64, PJRT_FLOAT,  PJRT_STRING, PJRT_INT64,
        PJRT_FLOAT,  PJRT_FLOAT, PJRT_STRING,
    };
    for (int i = 0; i < 13; i++)
        CHECK(o.list[i].kind == kinds[i], "option %d is of kind %d\n", i,
              (int)o.list[i].kind);
    assert_true(o.list[1].truth && !o.list[2].truth);
    assert_true(o.list[3].real == -1500.0);
    assert_int_equal(o.list[5].n_text, 3);
    assert_memory_equal(o.list[5].text, "1,2", 3);
    assert_true(o.list[6].integer == INT64_MAX);
    assert_int_equal(o.list[8].n_text, 0);
    assert_true(o.list[10].real == 0.5);
    assert_int_equal(trn__pjrt_find(&o, "a")->integer, -7); /* the last one */
    assert_null(trn__pjrt_find(&o, "b"));
    assert_int_equal(trn__pjrt_parse(NULL, "test", &o, &fault), TRN_OK);
    assert_int_equal(o.n, 0);
}

static void more_options_than_there_is_room_for_are_refused(void **state)
{
    (void)state;
    char text[4 * (TRN__PJRT_MAX_OPTIONS + 1) + 1];
    trn__pjrt_fault fault;
    trn__pjrt_options o;
    for (int i = 0; i <= TRN__PJRT_MAX_OPTIONS; i++)
        snprintf(text + 4 * i, 5, "a=1,");
    text[4 * TRN__PJRT_MAX_OPTIONS - 1] = '\0';
    assert_int_equal(trn__pjrt_parse(text, "test", &o, &fault), TRN_OK);
    text[4 * TRN__PJRT_MAX_OPTIONS - 1] = ',';
    text[4 * TRN__PJRT_MAX_OPTIONS + 3] = '\0';
    assert_int_equal(trn__pjrt_parse(text, "test", &o, &fault), TRN_ERR_ARG);
    assert_non_null(strstr(fault.text, "more than 32 options"));
}

static void *plain_alloc(void *host, size_t bytes)
{
    (void)host;
    return malloc(bytes);
}

static void plain_dealloc(void *host, void *memory)
{
    (void)host;
    free(memory);
}

static const trn_host_services plain = {
    .size = sizeof plain,
    .alloc = plain_alloc,
    .dealloc = plain_dealloc,
};

static void check_bytes(const char *platform, const char *text, bool portable,
                        const char *expected, size_t n)
{
    trn__pjrt_fault fault;
    trn__pjrt_options o;
    trn__pjrt_encoded e;
    assert_int_equal(trn__pjrt_parse(text, "test", &o, &fault), TRN_OK);
    assert_int_equal(
        trn__pjrt_encode(&plain, platform, &o, portable, &e, &fault), TRN_OK);
    assert_int_equal(e.n, n);
    assert_memory_equal(e.bytes, expected, n);
    free(e.bytes);
}

#define START "\x1a\x04\x20\x01\x28\x01"
#define CHECK_BYTES(platform, text, portable, expected) \
    check_bytes(platform, text, portable, expected, sizeof expected - 1)

/* By hand from the published message definitions. */
static void options_have_these_bytes(void **state)
{
    (void)state;
    CHECK_BYTES("tpu", NULL, false, START);
    CHECK_BYTES("tpu", NULL, true, START "\x20\x01");
    CHECK_BYTES("tpu", "ab=true", false,
                START "\x3a\x08\x0a\x02"
                      "ab\x12\x02\x10\x01");
    CHECK_BYTES("tpu", "ab=300", false,
                START "\x3a\x09\x0a\x02"
                      "ab\x12\x03\x18\xac\x02");
    CHECK_BYTES("tpu", "ab=-1", false,
                START "\x3a\x11\x0a\x02"
                      "ab\x12\x0b\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    CHECK_BYTES("tpu", "ab=1.5", false,
                START "\x3a\x0f\x0a\x02"
                      "ab\x12\x09\x21\0\0\0\0\0\0\xf8\x3f");
    CHECK_BYTES("tpu", "ab=xyz,c=\"\"", false,
                START "\x3a\x0b\x0a\x02"
                      "ab\x12\x05\x0a\x03xyz\x3a\x07\x0a\x01"
                      "c\x12\x02\x0a\0");
    CHECK_BYTES("cpu", NULL, false,
                START "\x3a\x21\x0a\x1bxla_cpu_enable_fast_min_max\x12\x02\x10"
                      "\0\x3a\x20\x0a\x1axla_allow_excess_precision\x12\x02"
                      "\x10\0\x3a\x44\x0a\x24"
                      "xla_cpu_experimental_ynn_fusion_type\x12\x1c\x0a\x1a"
                      "LIBRARY_FUSION_TYPE_REDUCE");
    CHECK_BYTES("cpu",
                "xla_cpu_enable_fast_min_max=true,"
                "xla_allow_excess_precision=true,"
                "xla_cpu_experimental_ynn_fusion_type=x",
                false,
                START "\x3a\x21\x0a\x1bxla_cpu_enable_fast_min_max\x12\x02\x10"
                      "\x01\x3a\x20\x0a\x1axla_allow_excess_precision\x12\x02"
                      "\x10\x01\x3a\x2b\x0a\x24"
                      "xla_cpu_experimental_ynn_fusion_type\x12\x03\x0a\x01x");
}

static void bytes_that_end_a_process_are_not_handed_over(void **state)
{
    (void)state;
    static const char good[] = START "\x20\x01\x3a\x08\x0a\x02"
                                     "ab\x12\x02\x10\x01";
    const size_t whole = sizeof good - 1, first = 6, second = 8;
    for (size_t n = 0; n <= whole; n++)
        assert_int_equal(trn__pjrt_encoding_is_good(good, n),
                         n == whole || n == first || n == second);
    char bytes[sizeof good];
    for (size_t i = 0; i < first; i++) {
        memcpy(bytes, good, sizeof good);
        bytes[i] ^= 1;
        assert_false(trn__pjrt_encoding_is_good(bytes, whole));
    }
    memcpy(bytes, good, sizeof good);
    bytes[9] = 9; /* longer than what is there */
    assert_false(trn__pjrt_encoding_is_good(bytes, whole));
    bytes[9] = 7;
    assert_false(trn__pjrt_encoding_is_good(bytes, whole));
}

static void drops(trn__pjrt_encoded *e, const char *words, const char *name)
{
    const char *got = trn__pjrt_drop_default(e, words);
    assert_true(name == NULL ? got == NULL
                             : got != NULL && strcmp(got, name) == 0);
    assert_true(trn__pjrt_encoding_is_good(e->bytes, e->n));
}

static void defaults_that_a_plugin_does_not_know_are_dropped(void **state)
{
    (void)state;
    static const char rest[] = START "\x20\x01"
                                     "\x3a\x21\x0a\x1bxla_cpu_enable_fast_"
                                     "min_max\x12\x02\x10\0";
    trn__pjrt_fault fault;
    trn__pjrt_options o;
    trn__pjrt_encoded e;
    assert_int_equal(trn__pjrt_parse("xla_cpu_enable_fast_min_max=false",
                                     "test", &o, &fault),
                     TRN_OK);
    assert_int_equal(trn__pjrt_encode(&plain, "cpu", &o, true, &e, &fault),
                     TRN_OK);
    drops(&e, "No such compile option: 'another'", NULL);
    drops(&e, "No such compile option: 'xla_allow_excess_precision_2'", NULL);
    drops(&e, "xla_allow_excess_precision is false", NULL);
    drops(&e, "No such compile option: 'xla_cpu_experimental_ynn_fusion_type'",
          "xla_cpu_experimental_ynn_fusion_type");
    drops(&e, "No such compile option: 'xla_allow_excess_precision'; x",
          "xla_allow_excess_precision");
    drops(&e, "No such compile option: xla_allow_excess_precision", NULL);
    /* This one is the user's, though it equals the default. */
    drops(&e, "No such compile option: 'xla_cpu_enable_fast_min_max'", NULL);
    assert_int_equal(e.n, sizeof rest - 1);
    assert_memory_equal(e.bytes, rest, e.n);
    free(e.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_guessed_from_their_text),
        cmocka_unit_test(more_options_than_there_is_room_for_are_refused),
        cmocka_unit_test(options_have_these_bytes),
        cmocka_unit_test(bytes_that_end_a_process_are_not_handed_over),
        cmocka_unit_test(defaults_that_a_plugin_does_not_know_are_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
