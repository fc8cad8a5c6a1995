/* SPDX-License-Identifier: Apache-2.0
 *
 * The `trn` program as a user meets it: what it prints where, and how it ends.
 *
 * The program is that of the build folder of this test, which TRN_BUILD names.
 */
#define _POSIX_C_SOURCE 200809L /* popen */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness.h"
#include "tests/plugin_path.h"

#ifdef TRN_HAVE_JANSSON
#include <jansson.h>
#endif

typedef struct outcome {
    int status;
    char text[1 << 18]; /* of standard output, or of both */
} outcome;

/* Runs `<settings> trn <arguments>`; settings are shell assignments. */
static void run(outcome *r, const char *settings, const char *arguments)
{
    char line[4096];
    const char *folder = getenv("TRN_BUILD");
    CHECK(folder != NULL, "TRN_BUILD does not name the build folder\n");
    snprintf(line, sizeof line, "%s '%s/trn' %s", settings,
             folder == NULL ? "" : folder, arguments);
    FILE *child = popen(line, "r");
    assert_non_null(child);
    size_t n = fread(r->text, 1, sizeof r->text - 1, child);
    r->text[n] = '\0';
    int status = pclose(child);
    r->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect(const outcome *r, int status, const char *part)
{
    CHECK(r->status == status, "status %d, expected %d:\n%s\n", r->status,
          status, r->text);
    CHECK(strstr(r->text, part) != NULL, "no \"%s\" in:\n%s\n", part, r->text);
}

static void help_names_every_command(void **state)
{
    (void)state;
    static outcome r;
    run(&r, "", "help");
    expect(&r, 0, "usage: trn <command>");
    expect(&r, 0, "version");
    expect(&r, 0, "info");
    expect(&r, 0, "verify");
    expect(&r, 0, "graph");
    expect(&r, 0, "checkpoint");
    expect(&r, 0, "TRN_EXEC");
}

static void version_is_that_of_the_library(void **state)
{
    (void)state;
    static outcome r;
    run(&r, "", "version");
    expect(&r, 0, trn_version());
    expect(&r, 0, trn_numerics_version());
}

static void wrong_calls_show_the_usage_on_stderr_with_status_2(void **state)
{
    (void)state;
    static const char *const calls[] = {"",
                                        "nonsense",
                                        "info --nonsense",
                                        "verify extra",
                                        "help more",
                                        "graph --nonsense",
                                        "graph --traced --prepared"};
    static outcome r;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        char arguments[80];
        snprintf(arguments, sizeof arguments, "%s 2>/dev/null", calls[i]);
        run(&r, "", arguments);
        CHECK(r.text[0] == '\0', "'%s' wrote to standard output: %s\n",
              calls[i], r.text);
        snprintf(arguments, sizeof arguments, "%s 2>&1", calls[i]);
        run(&r, "", arguments);
        expect(&r, 2, "usage: trn <command>");
    }
    run(&r, "", "nonsense 2>&1");
    expect(&r, 2, "unknown command 'nonsense'");
    run(&r, "", "info --nonsense 2>&1");
    expect(&r, 2, "unknown argument '--nonsense'");
    run(&r, "", "verify --exec lazy 2>&1");
    expect(&r, 2, "--exec is 'lazy'; expected eager or captured");
}

static void errors_of_the_library_are_told_on_stderr_with_status_1(void **state)
{
    (void)state;
    static outcome r;
    static const char *const commands[] = {"info", "verify", "verify --quick",
                                           "graph"};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        char arguments[80];
        snprintf(arguments, sizeof arguments, "%s 2>&1 >/dev/null",
                 commands[i]);
        run(&r, "TRN_CPU_ISA=abacus", arguments);
        expect(&r, 1, "cpu_isa");
        run(&r, "TRN_NUM_THREADS=none", arguments);
        expect(&r, 1, "TRN_NUM_THREADS");
    }
}

static void warnings_of_the_library_are_told_on_stderr(void **state)
{
    (void)state;
    static outcome r;
    static const char *const commands[] = {"info", "verify --quick", "graph"};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        char arguments[80];
        snprintf(arguments, sizeof arguments, "%s 2>&1 >/dev/null",
                 commands[i]);
        run(&r, "TRN_DEVICE_OPTIONS=nonsense=1", arguments);
        expect(&r, 0, "trn: warning: ");
        expect(&r, 0, "nonsense");
    }
}

static void output_that_cannot_be_written_is_an_error(void **state)
{
    (void)state;
    static outcome r;
    FILE *full = fopen("/dev/full", "w");
    if (full == NULL) {
        print_message("there is no /dev/full here\n");
        skip();
    }
    fclose(full);
    run(&r, "", "info 2>&1 >/dev/full");
    expect(&r, 1, "could not be written");
}

static void checkpoints_are_checked_and_listed(void **state)
{
    static outcome r;
    bool possible = false;
    const char *part;
    trn_context *c = *state;
    for (int i = 0; !possible && (part = trn_build_part(i, &possible)); i++)
        possible = possible && strcmp(part, "hdf5") == 0;
    run(&r, "", "checkpoint 2>&1");
    expect(&r, 2, "expected the name of one file");
    run(&r, "", "checkpoint /dev/null 2>&1");
    expect(&r, 1, "found a device or pipe");
    if (possible) {
        char path[] = "/tmp/trn_checkpoint_XXXXXX", line[64];
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        close(fd);
        trn_checkpoint *k = trn_checkpoint_new(c);
        trn_checkpoint_tensor(k, "t",
                              trn_full(c, TRN_BF16, 2, (int64_t[]){3, 2}, 1.0));
        trn_checkpoint_set_text(k, "who", "this test");
        trn_checkpoint_save(k, path);
        snprintf(line, sizeof line, "checkpoint %s", path);
        run(&r, "", line);
        remove(path);
        expect(&r, 0, "7 datasets in ");
        expect(&r, 0, "  /tensors/t  bf16[3,2]\n");
        expect(&r, 0, "  /metadata/who  text  this test\n");
        expect(&r, 0, "  /context/numerics  text  ");
    }
}

static void info_tells_what_was_asked_for(void **state)
{
    (void)state;
    static outcome r;
    run(&r, "TRN_CPU_ISA=generic TRN_NUM_THREADS=3 TRN_ENGINE=pool", "info");
    expect(&r, 0, "instruction set   " GENERIC_SET "\n");
    expect(&r, 0, "reproducible      yes\n");
    expect(&r, 0, "threads           3\n");
    expect(&r, 0, "engine            pool\n");
    expect(&r, 0, "device            cpu\n");
    expect(&r, 0, trn_numerics_version());
    expect(&r, 0, "CPU features");
    expect(&r, 0, "compiler");
}

static void digests_of_this_machine_alone_are_marked(void **state)
{
    (void)state;
    static outcome r;
    char setting[4600];
    snprintf(setting, sizeof setting,
             "TRN_MATMUL=openblas TRN_OPENBLAS_LIBRARY='%s'",
             plugin_path("fake_openblas_threads.so"));
    run(&r, setting, "info 2>&1");
    if (r.status != 0) {
        expect(&r, 1, "built without OpenBLAS");
        print_message("built without OpenBLAS\n");
        skip();
    }
    expect(&r, 0, "matmul by OpenBLAS 1.2.3 Paper: not reproducible\n");
    expect(&r, 0, "reproducible      no\n");
    run(&r, setting, "verify --quick 2>/dev/null");
    expect(&r, 0, "\n# not reproducible, digests of this machine alone: cpu, ");
    run(&r, setting, "verify --quick 2>&1 >/dev/null");
    const char *warning = strstr(r.text, "trn: warning: ");
    assert_non_null(warning);
    assert_null(strstr(warning + 1, "trn: warning: "));
    run(&r, "", "verify --quick 2>/dev/null");
    assert_int_equal(r.status, 0);
    assert_null(strstr(r.text, "not reproducible"));
}

static void info_lists_each_part_as_present_or_absent(void **state)
{
    (void)state;
    static outcome r;
    bool present;
    const char *name;
    run(&r, "", "info");
    const char *absent = strstr(r.text, "parts absent");
    assert_non_null(absent);
    for (int i = 0; (name = trn_build_part(i, &present)) != NULL; i++) {
        const char *at = strstr(r.text, name);
        CHECK(at != NULL, "%s is not listed in:\n%s\n", name, r.text);
        CHECK(present == (at < absent), "%s is in the wrong list\n", name);
    }
}

#ifdef TRN_HAVE_JANSSON
static json_t *parse(const outcome *r)
{
    json_error_t error;
    json_t *root = json_loads(r->text, 0, &error);
    CHECK(root != NULL, "line %d: %s in:\n%s\n", error.line, error.text,
          r->text);
    return root;
}

static const char *text_at(json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    CHECK(text != NULL, "there is no text %s\n", key);
    return text;
}

static void info_as_json_has_the_same_facts(void **state)
{
    (void)state;
    static outcome r;
    bool present;
    const char *name;
    run(&r, "TRN_CPU_ISA=generic TRN_NUM_THREADS=2 TRN_ENGINE=pool",
        "info --json");
    assert_int_equal(r.status, 0);
    json_t *root = parse(&r);
    assert_string_equal(text_at(root, "version"), trn_version());
    assert_string_equal(text_at(root, "numerics_version"),
                        trn_numerics_version());
    assert_string_equal(text_at(root, "device"), "cpu");
    assert_string_equal(text_at(root, "instruction_set"), GENERIC_SET);
    assert_true(json_is_true(json_object_get(root, "reproducible")));
    assert_string_equal(text_at(root, "engine"), "pool");
    assert_int_equal(json_integer_value(json_object_get(root, "threads")), 2);
    json_t *parts = json_object_get(root, "parts");
    for (int i = 0; (name = trn_build_part(i, &present)) != NULL; i++)
        assert_int_equal(json_is_true(json_object_get(parts, name)), present);
    assert_true(json_is_object(json_object_get(root, "cpu_features")));
    assert_true(text_at(root, "compiler")[0] != '\0');
    json_decref(root);
}

static void verify_as_json_has_a_line_for_each_digest(void **state)
{
    (void)state;
    static outcome r;
    run(&r, "TRN_NUM_THREADS=2",
        "verify --quick --json --exec captured 2>/dev/null");
    assert_int_equal(r.status, 0);
    json_t *root = parse(&r);
    assert_true(json_is_true(json_object_get(root, "reproducible")));
    json_t *lines = json_object_get(root, "lines");
    assert_true(json_array_size(lines) >= 8);
    for (size_t i = 0; i < json_array_size(lines); i++) {
        json_t *line = json_array_get(lines, i);
        const bool rows = strcmp(text_at(line, "name"), "rows") == 0;
        assert_int_equal(strlen(text_at(line, rows ? "end" : "step_10")), 64);
        assert_int_equal(json_integer_value(json_object_get(line, "threads")),
                         2);
        assert_string_equal(text_at(line, "device"), "cpu");
        assert_string_equal(text_at(line, "exec"), "captured");
    }
    json_decref(root);
}
#else
static void json_is_refused_with_what_is_lacking(void **state)
{
    (void)state;
    static outcome r;
    run(&r, "", "info --json 2>&1");
    expect(&r, 1, "jansson");
    run(&r, "", "verify --json 2>&1");
    expect(&r, 1, "jansson");
}
#endif

static void graph_prints_the_step_as_text_and_as_a_drawing(void **state)
{
    (void)state;
    static outcome text, drawing;
    static const char *const kinds[] = {"", "--prepared", "--traced"};
    char arguments[80];
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        snprintf(arguments, sizeof arguments, "graph %s", kinds[i]);
        run(&text, "", arguments);
        expect(&text, 0, "= embedding(");
        expect(&text, 0, "= matmul(");
        expect(&text, 0, "adamw_update(");
        snprintf(arguments, sizeof arguments, "graph --dot %s", kinds[i]);
        run(&drawing, "", arguments);
        expect(&drawing, 0, "digraph");
        expect(&drawing, 0, "matmul");
    }
}

static void graph_of_a_step_is_the_same_in_every_process(void **state)
{
    (void)state;
    static outcome once, again;
    run(&once, "TRN_NUM_THREADS=1 TRN_CPU_ISA=generic", "graph");
    run(&again, "TRN_NUM_THREADS=3", "graph");
    assert_int_equal(once.status, 0);
    assert_string_equal(once.text, again.text);
    run(&again, "TRN_DEVICE=loop:strict", "graph");
    assert_int_equal(again.status, 0);
    assert_string_equal(once.text, again.text);
}

static void graph_prints_the_step_as_hlo(void **state)
{
    (void)state;
    static outcome r, again;
    run(&r, "", "graph --hlo");
    expect(&r, 0, "HloModule");
    expect(&r, 0, "ENTRY");
    expect(&r, 0, " dot(");
    expect(&r, 0, "ROOT");
    run(&again, "TRN_DEVICE=loop TRN_NUM_THREADS=1",
        "graph --hlo --profile xla");
    assert_int_equal(again.status, 0);
    assert_string_equal(r.text, again.text);
    run(&r, "", "graph --hlo --profile neuron");
    expect(&r, 0, "HloModule");
    run(&r, "", "graph --hlo --profile abacus 2>&1");
    expect(&r, 1, "profile \"abacus\" is not known; expected xla or neuron");
}

static void forms_of_a_graph_that_exclude_each_other_are_told(void **state)
{
    (void)state;
    static outcome r;
    run(&r, "", "graph --hlo --dot 2>&1");
    expect(&r, 2, "--hlo has no other form beside it");
    run(&r, "", "graph --profile xla 2>&1");
    expect(&r, 2, "--profile is for --hlo");
    run(&r, "", "graph --hlo --profile 2>&1");
    expect(&r, 2, "--profile needs an argument");
    run(&r, "", "graph --prepared --traced 2>&1");
    expect(&r, 2, "exclude each other");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_names_every_command),
        cmocka_unit_test(version_is_that_of_the_library),
        cmocka_unit_test(wrong_calls_show_the_usage_on_stderr_with_status_2),
        cmocka_unit_test(
            errors_of_the_library_are_told_on_stderr_with_status_1),
        cmocka_unit_test(warnings_of_the_library_are_told_on_stderr),
        cmocka_unit_test(output_that_cannot_be_written_is_an_error),
        TRN_TEST(checkpoints_are_checked_and_listed),
        cmocka_unit_test(info_tells_what_was_asked_for),
        cmocka_unit_test(digests_of_this_machine_alone_are_marked),
        cmocka_unit_test(info_lists_each_part_as_present_or_absent),
        cmocka_unit_test(graph_prints_the_step_as_text_and_as_a_drawing),
        cmocka_unit_test(graph_prints_the_step_as_hlo),
        cmocka_unit_test(forms_of_a_graph_that_exclude_each_other_are_told),
        cmocka_unit_test(graph_of_a_step_is_the_same_in_every_process),
#ifdef TRN_HAVE_JANSSON
        cmocka_unit_test(info_as_json_has_the_same_facts),
        cmocka_unit_test(verify_as_json_has_a_line_for_each_digest),
#else
        cmocka_unit_test(json_is_refused_with_what_is_lacking),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
