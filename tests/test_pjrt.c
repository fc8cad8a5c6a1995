/* SPDX-License-Identifier: Apache-2.0
 *
 * The pjrt device as far as no real plug-in is needed: what it refuses, each
 * with its reason; a plug-in that never answers; who shares a client.
 */
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/cut_copy.h"
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
    if (!trn__hlo_available()) {
        print_message("built without protobuf-c\n");
        skip();
    }
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
    check_refused("pjrt:/:-1", NULL, TRN_ERR_DEVICE,
                  "pjrt: /:-1: no such file; what follows its last colon is no "
                  "ordinal; expected a number of 1 to 6 digits");
    static char far[6000] = "pjrt:";
    memset(far + 5, '/', sizeof far - 6);
    check_refused(far, NULL, TRN_ERR_ARG,
                  "has 5994 bytes; expected fewer than 4096");
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
    assert_int_equal(mkfifo(path, 0600), 0); /* nobody writes to it */
    check_refused(pjrt_device_at(path), NULL, TRN_ERR_DEVICE,
                  "it is not a regular file");
    remove(path);
    harness_cut_copy(plugin_path("pjrt_shim.so"), path);
    check_refused(pjrt_device_at(path), NULL, TRN_ERR_DEVICE, "it is cut off");
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
    needs_lowering();
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

/* ---- clients ---- */

static trn_context *open_fake(int device, const char *options)
{
    trn_context *c;
    char name[4700];
    snprintf(name, sizeof name, "%s:%d", shim_device(), device);
    trn_options o = captured_options(LOOP, name);
    o.device_options = options;
    CHECK(trn_open(&c, &o) == TRN_OK, "%s\n", trn_errmsg(c));
    return c;
}

static void check_clients(uint64_t made, uint64_t destroyed)
{
    assert_int_equal(shim.calls("PJRT_Client_Create"), made);
    assert_int_equal(shim.calls("PJRT_Client_Destroy"), destroyed);
}

static void contexts_share_a_client(void **state)
{
    (void)state;
    needs_lowering();
    assert_true(shim.mode("fake"));
    for (int first = 0; first < 2; first++) { /* that is closed first */
        shim.fail_at(NULL, 0, 0);
        trn_context *c[] = {open_fake(0, NULL), open_fake(1, "")};
        assert_non_null(strstr(trn_device_description(c[1]), "device 1 of 2"));
        check_clients(1, 0);
        trn_close(c[first]);
        check_clients(1, 0);
        c[first] = open_fake(0, "pjrt_create_options="); /* no options, too */
        check_clients(1, 0);
        trn_close(c[first]);
        trn_close(c[1 - first]);
        check_clients(1, 1);
        shim_is_empty("after both");
    }
    captured_close(open_fake(0, NULL)); /* all memory is back */
    check_clients(2, 2);
    assert_true(shim.mode(""));
}

static void other_options_give_another_client(void **state)
{
    (void)state;
    needs_lowering();
    assert_true(shim.mode("fake"));
    shim.fail_at(NULL, 0, 0);
    trn_context *c[] = {
        open_fake(0, "pjrt_create_options=a=1"),
        open_fake(0, "pjrt_create_options=a=2"),
        open_fake(1, "pjrt_create_options=a=1;pjrt_timeout=3"),
        open_fake(1, NULL),
    };
    check_clients(3, 0);
    trn_close(c[0]);
    trn_close(c[1]);
    check_clients(3, 1);
    trn_close(c[2]);
    check_clients(3, 2);
    captured_close(c[3]);
    check_clients(3, 3);
    shim_is_empty("after other options");
    assert_true(shim.mode(""));
}

static void a_client_that_is_there_is_shared_while_another_hangs(void **state)
{
    (void)state;
    needs_lowering();
    assert_true(shim.mode("fake"));
    shim.fail_at(NULL, 0, 0);
    trn_context *a = open_fake(0, NULL), *b, *c;
    trn_options o = captured_options(LOOP, shim_device());
    o.device_options = "pjrt_create_options=a=1;pjrt_timeout=1";
    assert_true(shim.mode("hang"));
    assert_int_equal(trn_open(&c, &o), TRN_ERR_DEVICE);
    harness_error(c, TRN_ERR_DEVICE, "no answer in time");
    trn_close(c);
    b = open_fake(1, "pjrt_timeout=1");
    trn_close(a);
    trn_close(b);
    assert_true(shim.mode(""));
    /* What was made too late has no real plug-in, so it was none. */
    check_clients(2, 1);
    assert_int_equal(trn_open(&c, &o), TRN_ERR_DEVICE);
    harness_error(c, TRN_ERR_DEVICE, "no real plug-in");
    captured_close(c);
    shim_is_empty("after a hang beside a client");
}

enum { N_THREADS = 4, N_OPENS = 40 };

static void *open_and_close(void *arg)
{
    const char *device = arg;
    for (int i = 0; i < N_OPENS; i++) {
        trn_context *c;
        trn_options o = TRN_OPTIONS_INIT;
        o.device = device;
        o.device_options = i % 4 == 3 ? "pjrt_create_options=a=1" : NULL;
        bool good = trn_open(&c, &o) == TRN_OK;
        trn_close(c);
        if (!good)
            return NULL;
    }
    return arg;
}

static void threads_share_clients(void **state)
{
    (void)state;
    needs_lowering();
    assert_true(shim.mode("fake"));
    shim.fail_at(NULL, 0, 0);
    pthread_t thread[N_THREADS];
    char device[4600];
    snprintf(device, sizeof device, "%s", shim_device());
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(
            pthread_create(&thread[i], NULL, open_and_close, device), 0);
    for (int i = 0; i < N_THREADS; i++) {
        void *good = NULL;
        pthread_join(thread[i], &good);
        assert_non_null(good);
    }
    uint64_t made = shim.calls("PJRT_Client_Create");
    assert_true(made >= 2 && made <= N_THREADS * N_OPENS);
    assert_int_equal(shim.calls("PJRT_Client_Destroy"), made);
    shim_is_empty("after threads");
    assert_true(shim.mode(""));
}

/* The threads of a plug-in are not in the child. */
static void a_forked_process_is_refused(void **state)
{
    (void)state;
    needs_lowering();
    assert_true(shim.mode("fake"));
    shim.fail_at(NULL, 0, 0);
    trn_context *c;
    trn_options o = captured_options(LOOP, shim_device());
    assert_int_equal(trn_open(&c, &o), TRN_OK);
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        trn_context *own;
        bool right = trn_open(&own, &o) == TRN_ERR_DEVICE &&
                     strstr(trn_errmsg(own), "this process was forked") != NULL;
        trn_close(own);
        _exit(right ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    captured_close(c);
    assert_true(shim.mode(""));
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
        cmocka_unit_test(contexts_share_a_client),
        cmocka_unit_test(other_options_give_another_client),
        cmocka_unit_test(a_client_that_is_there_is_shared_while_another_hangs),
        cmocka_unit_test(threads_share_clients),
        cmocka_unit_test(a_forked_process_is_refused),
    };
    unsetenv("TRN_PJRT_SHIM_REAL");
    return cmocka_run_group_tests(tests, shim_load, NULL);
}
