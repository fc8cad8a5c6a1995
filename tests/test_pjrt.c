/* SPDX-License-Identifier: Apache-2.0
 *
 * The pjrt device as far as no real plug-in is needed: what it refuses, each
 * with its reason; options as text and as bytes; a plug-in that never answers.
 */
#include "tests/pjrt_shim.h"

/* Fails unless the device is refused so, twice: what was loaded the first time
 * is found again. */
static void check_refused(const char *device, const char *options,
                          trn_status status, const char *part)
{
    for (int round = 0; round < 2; round++) {
        trn_context *c;
        trn_options o = captured_options(LOOP, device);
        o.device_options = options;
        CHECK(trn_open(&c, &o) == status, "%s: %s\n", device, trn_errmsg(c));
        CHECK(strstr(trn_errmsg(c), part) != NULL, "\"%s\" is not in \"%s\"\n",
              part, trn_errmsg(c));
        captured_close(c);
    }
}

static void needs_lowering(void)
{
    if (!trn__hlo_available())
        skip();
}

static void what_names_no_file_is_refused(void **state)
{
    (void)state;
    check_refused("pjrt", NULL, TRN_ERR_ARG, "no plug-in is named");
    check_refused("pjrt:", NULL, TRN_ERR_ARG, "no plug-in is named");
    check_refused("pjrt::1", NULL, TRN_ERR_ARG, "no plug-in is named");
    check_refused("pjrt:/no/such.so", NULL, TRN_ERR_DEVICE,
                  "pjrt: /no/such.so: no such file");
    check_refused("pjrt:/no/such.so:2", NULL, TRN_ERR_DEVICE,
                  "pjrt: /no/such.so: no such file");
    check_refused("pjrt:/no/such.so:x", NULL, TRN_ERR_DEVICE,
                  "pjrt: /no/such.so:x: no such file");
    check_refused("pjrt:/dev/null/x", NULL, TRN_ERR_DEVICE,
                  "cannot be reached");
}

static void what_is_no_plugin_is_refused(void **state)
{
    (void)state;
    needs_lowering();
    char path[4500];
    snprintf(path, sizeof path, "%s.no:1", plugin_path("pjrt_shim.so"));
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "no shared object\n");
    fclose(f);
    /* The whole is the name of a file, so the colon belongs to it. */
    check_refused(pjrt_device_at(path), NULL, TRN_ERR_DEVICE,
                  "pjrt_shim.so.no:1: cannot be loaded: ");
    remove(path);
    check_refused(pjrt_device_at(plugin_path("broken_no_entry.so")), NULL,
                  TRN_ERR_UNSUPPORTED,
                  "is no PJRT plug-in: it does not export GetPjrtApi");
    check_refused(pjrt_device_at(plugin_path("old_plugin.so")), NULL,
                  TRN_ERR_UNSUPPORTED, "\"plugin:PATH\" opens it");
}

static void broken_tables_are_refused(void **state)
{
    (void)state;
    needs_lowering();
    static const struct {
        const char *mode;
        trn_status status;
        const char *part;
    } broken[] = {
        {"null", TRN_ERR_DEVICE, "GetPjrtApi gave no table"},
        {"major", TRN_ERR_UNSUPPORTED, "it has PJRT API 1.90; expected 0.x"},
        {"short", TRN_ERR_UNSUPPORTED,
         "(API 0.90, 280 bytes) has no PJRT_Executable_Destroy"},
        {"missing", TRN_ERR_UNSUPPORTED, "has no PJRT_LoadedExecutable_Exec"},
    };
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        assert_true(shim.mode(broken[i].mode));
        check_refused(shim_device(), NULL, broken[i].status, broken[i].part);
    }
    assert_true(shim.mode(""));
}

static void bad_options_are_refused_before_any_call(void **state)
{
    (void)state;
    static const struct {
        const char *options, *part;
    } bad[] = {
        {"hlo_profile=x", "hlo_profile is \"x\"; expected xla or neuron"},
        {"pjrt_create_options=x", "pjrt_create_options: no option at \"x\""},
        {"pjrt_create_options=a=1,,b=2", "no option at \",b=2\""},
        {"pjrt_create_options=a=1,", "no option at \"a=1,\""},
        {"pjrt_compile_options=a=", "pjrt_compile_options: no option at"},
        {"pjrt_compile_options=a=\"x", "no option at \"a=\"x\""},
        {"pjrt_compile_options==1", "no option at \"=1\""},
        {"pjrt_timeout=", "expected 1 to 86400 seconds"},
        {"pjrt_timeout=0", "pjrt_timeout is \"0\""},
        {"pjrt_timeout=1.5", "pjrt_timeout is \"1.5\""},
        {"pjrt_timeout=86401", "expected 1 to 86400 seconds"},
    };
    shim.fail_at(NULL, 0, 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        check_refused(shim_device(), bad[i].options, TRN_ERR_ARG, bad[i].part);
    assert_int_equal(shim.calls("PJRT_Plugin_Initialize"), 0);
    assert_int_equal(shim.calls("PJRT_Client_Create"), 0);
}

/* ---- errors of the plug-in ---- */

static void words_of_the_plugin_are_carried_on(void **state)
{
    (void)state;
    needs_lowering();
    shim.fail_at("PJRT_Plugin_Initialize", 1, 0);
    trn_context *c;
    trn_options o = captured_options(LOOP, shim_device());
    assert_int_equal(trn_open(&c, &o), TRN_ERR_DEVICE);
    harness_error(c, TRN_ERR_DEVICE,
                  "pjrt: initializing the plug-in: shim: "
                  "PJRT_Plugin_Initialize: failed as asked for");
    captured_close(c);
    shim.fail_at(NULL, 0, 0);
    check_refused(shim_device(), NULL, TRN_ERR_DEVICE,
                  "pjrt: making a client: shim: PJRT_Client_Create: no real "
                  "plug-in");
    shim_is_empty("after errors");
}

static void codes_become_statuses(void **state)
{
    (void)state;
    needs_lowering();
    static const struct {
        uint32_t code;
        trn_status status;
    } known[] = {
        {PJRT_CANCELLED, TRN_ERR_DEVICE},
        {PJRT_INVALID_ARGUMENT, TRN_ERR_DEVICE},
        {PJRT_NO_ROOM, TRN_ERR_NOMEM},
        {PJRT_UNIMPLEMENTED, TRN_ERR_UNSUPPORTED},
        {PJRT_INTERNAL, TRN_ERR_DEVICE},
        {99, TRN_ERR_DEVICE},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        trn_context *c;
        trn_options o = captured_options(LOOP, shim_device());
        shim.fail_at("PJRT_Client_Create", 1, known[i].code);
        assert_int_equal(trn_open(&c, &o), known[i].status);
        harness_error(c, known[i].status, "pjrt: making a client: shim: ");
        captured_close(c);
    }
    shim.fail_at(NULL, 0, 0);
    shim_is_empty("after errors");
}

static void a_plugin_that_hangs_meets_the_deadline(void **state)
{
    (void)state;
    needs_lowering();
    static const char soon[] = "pjrt_timeout=1";
    trn_context *c;
    trn_options o = captured_options(LOOP, shim_device());
    o.device_options = soon;
    assert_true(shim.mode("hang"));
    assert_int_equal(trn_open(&c, &o), TRN_ERR_DEVICE);
    harness_error(c, TRN_ERR_DEVICE, "no answer in time");
    captured_close(c);
    assert_int_equal(trn_open(&c, &o), TRN_ERR_DEVICE);
    harness_error(c, TRN_ERR_DEVICE, "an earlier attempt with this plug-in");
    captured_close(c);
    /* The thread that was left behind comes back, and all is as before. */
    assert_true(shim.mode(""));
    o.device_options = NULL;
    assert_int_equal(trn_open(&c, &o), TRN_ERR_DEVICE);
    harness_error(c, TRN_ERR_DEVICE, "no real plug-in");
    captured_close(c);
    shim_is_empty("after a hang");
}

/* ---- options ---- */

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
    char *bytes;
    size_t n_bytes;
    assert_int_equal(trn__pjrt_parse(text, "test", &o, &fault), TRN_OK);
    assert_int_equal(trn__pjrt_encode(&plain, platform, &o, portable, &bytes,
                                      &n_bytes, &fault),
                     TRN_OK);
    assert_int_equal(n_bytes, n);
    assert_memory_equal(bytes, expected, n);
    free(bytes);
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
                      "\x10\0\x3a\x2a\x0a\x24"
                      "xla_cpu_experimental_ynn_fusion_type\x12\x02\x0a\0");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_names_no_file_is_refused),
        cmocka_unit_test(what_is_no_plugin_is_refused),
        cmocka_unit_test(broken_tables_are_refused),
        cmocka_unit_test(bad_options_are_refused_before_any_call),
        cmocka_unit_test(words_of_the_plugin_are_carried_on),
        cmocka_unit_test(codes_become_statuses),
        cmocka_unit_test(a_plugin_that_hangs_meets_the_deadline),
        cmocka_unit_test(values_are_guessed_from_their_text),
        cmocka_unit_test(more_options_than_there_is_room_for_are_refused),
        cmocka_unit_test(options_have_these_bytes),
        cmocka_unit_test(bytes_that_end_a_process_are_not_handed_over),
    };
    unsetenv("TRN_PJRT_SHIM_REAL");
    return cmocka_run_group_tests(tests, shim_load, NULL);
}
