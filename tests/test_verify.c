/* SPDX-License-Identifier: Apache-2.0
 *
 * The bits of the CPU device: `trn verify` gives the digests kept in
 * tests/verify.digests for every instruction set, thread count and engine,
 * eager, captured and on the loop device.
 *
 * A few runs, some of which stop at step 10; `make verify-pairs` has all pairs
 * of settings and compilers.  Every line must name the settings that were asked
 * for: a set or engine that silently ran in place of another would prove
 * nothing.
 */
#define _POSIX_C_SOURCE 200809L /* popen */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "tests/harness.h"

#define KEPT "tests/verify.digests"
enum { MOST_LINES = 32 };

typedef struct line {
    char name[32], dtype[8], early[72], end[72], isa[16], engine[16];
    int threads;
    char device[16], exec[16];
} line;

/* How it is run; device and exec as trn verify takes and prints them. */
typedef struct setting {
    const char *isa;
    int threads;
    const char *engine, *device, *exec;
    bool quick; /* the digests of the end are not made */
} setting;

typedef struct lines {
    int n;
    line at[MOST_LINES];
} lines;

static lines kept;

/* Reads the lines that start with no '#'; fields of them are n_fields. */
static void read_lines(FILE *in, int n_fields, lines *out)
{
    char text[512];
    out->n = 0;
    while (fgets(text, sizeof text, in) != NULL) {
        if (text[0] == '#')
            continue;
        assert_true(out->n < MOST_LINES);
        line *l = &out->at[out->n++];
        memset(l, 0, sizeof *l);
        int n = sscanf(text, "%31s %7s %71s %71s %15s %15s %d %15s %15s",
                       l->name, l->dtype, l->early, l->end, l->isa, l->engine,
                       &l->threads, l->device, l->exec);
        CHECK(n == n_fields, "not a line of digests: %s", text);
    }
}

static int read_kept(void **state)
{
    (void)state;
    FILE *in = fopen(KEPT, "r");
    if (in == NULL) {
        print_error("%s cannot be read; tests run in the project's folder\n",
                    KEPT);
        return -1;
    }
    read_lines(in, 4, &kept);
    fclose(in);
    return kept.n > 0 ? 0 : -1;
}

static void run(const setting *s, lines *out)
{
    char text[4096];
    const char *folder = getenv("TRN_BUILD");
    CHECK(folder != NULL, "TRN_BUILD does not name the build folder\n");
    snprintf(text, sizeof text,
             "TRN_CPU_ISA=%s TRN_NUM_THREADS=%d TRN_ENGINE=%s '%s/trn' verify "
             "--device %s --exec %s%s",
             s->isa, s->threads, s->engine, folder == NULL ? "" : folder,
             s->device, s->exec, s->quick ? " --quick" : "");
    print_message("%s\n", text);
    FILE *child = popen(text, "r");
    assert_non_null(child);
    read_lines(child, 9, out);
    int status = pclose(child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0,
          "the program ended with status %d\n", status);
}

static int compare_digest(const line *l, const char *when, const char *found,
                          const char *expected)
{
    if (strcmp(found, expected) == 0)
        return 0;
    print_error("%s %s, %s, on %s of %s, %s, with %d threads of %s:\n"
                "  found    %s\n  expected %s (line \"%s %s\" of " KEPT ")\n",
                l->name, l->dtype, when, l->isa, l->device, l->exec, l->threads,
                l->engine, found, expected, l->name, l->dtype);
    return 1;
}

static void check(setting s)
{
    static lines found;
    int changed = 0;
    const bool cpu = strcmp(s.device, "cpu") == 0; /* its threads work */
    const bool generic = strcmp(s.isa, "generic") == 0;
    run(&s, &found);
    CHECK(found.n == kept.n, "%d digests, but %d lines in " KEPT "\n", found.n,
          kept.n);
    for (int i = 0; i < found.n; i++) {
        const line *l = &found.at[i], *k = &kept.at[i];
        assert_string_equal(l->name, k->name);
        assert_string_equal(l->dtype, k->dtype);
        assert_string_equal(l->isa, generic ? GENERIC_SET : s.isa);
        assert_string_equal(l->engine, cpu ? s.engine : "-");
        assert_int_equal(l->threads, cpu ? s.threads : 0);
        assert_string_equal(l->device, s.device);
        assert_string_equal(l->exec, s.exec);
        changed += compare_digest(l, "at step 10", l->early, k->early);
        if (!s.quick || strcmp(l->name, "rows") == 0)
            changed += compare_digest(l, "at the end", l->end, k->end);
    }
    if (changed > 0)
        fail_msg("%d digests are not the kept ones.  `trn verify --rows` "
                 "shows which row differs between two settings.  If all "
                 "settings agree and the numerics were meant to change, "
                 "CHANGELOG must say why in the same change as " KEPT ".",
                 changed);
}

/* Can a context be opened so?  If not, says why; the test is then skipped. */
static bool available(const char *isa, trn_engine engine)
{
    trn_context *c = NULL;
    trn_options o = TRN_OPTIONS_INIT;
    o.cpu_isa = isa;
    o.engine = engine;
    trn_status status = trn_open(&c, &o);
    if (status != TRN_OK)
        print_message("%s\n", trn_errmsg(c));
    trn_close(c);
    assert_true(status == TRN_OK || status == TRN_ERR_UNSUPPORTED);
    return status == TRN_OK;
}

static void generic_on_the_pool_gives_the_kept_digests(void **state)
{
    (void)state;
    check((setting){"generic", 1, "pool", "cpu", "eager", false});
    check((setting){"generic", 3, "pool", "cpu", "captured", true});
}

static void generic_on_openmp_gives_the_kept_digests(void **state)
{
    (void)state;
    if (!available("generic", TRN_ENGINE_OPENMP))
        skip();
    check((setting){"generic", 2, "openmp", "cpu", "captured", false});
    check((setting){"generic", 7, "openmp", "cpu", "eager", true});
}

static void avx2_on_the_pool_gives_the_kept_digests(void **state)
{
    (void)state;
    if (!available("avx2", TRN_ENGINE_POOL))
        skip();
    check((setting){"avx2", 2, "pool", "cpu", "eager", false});
    check((setting){"avx2", 7, "pool", "cpu", "captured", true});
}

static void avx2_on_openmp_gives_the_kept_digests(void **state)
{
    (void)state;
    if (!available("avx2", TRN_ENGINE_OPENMP))
        skip();
    check((setting){"avx2", 1, "openmp", "cpu", "captured", false});
    check((setting){"avx2", 3, "openmp", "cpu", "eager", true});
}

static void the_loop_device_gives_the_kept_digests(void **state)
{
    (void)state;
    check((setting){"generic", 1, "pool", "loop", "captured", true});
    if (available("avx2", TRN_ENGINE_POOL))
        check((setting){"avx2", 2, "pool", "loop", "captured", false});
}

static void kept_digests_name_the_numerics_version(void **state)
{
    (void)state;
    char text[128] = "", expected[64];
    FILE *in = fopen(KEPT, "r");
    assert_non_null(in);
    assert_non_null(fgets(text, sizeof text, in));
    fclose(in);
    snprintf(expected, sizeof expected, "# numerics %s;",
             trn_numerics_version());
    CHECK(strncmp(text, expected, strlen(expected)) == 0,
          "the first line is %s, expected %s\n", text, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_digests_name_the_numerics_version),
        cmocka_unit_test(generic_on_the_pool_gives_the_kept_digests),
        cmocka_unit_test(generic_on_openmp_gives_the_kept_digests),
        cmocka_unit_test(avx2_on_the_pool_gives_the_kept_digests),
        cmocka_unit_test(avx2_on_openmp_gives_the_kept_digests),
        cmocka_unit_test(the_loop_device_gives_the_kept_digests),
    };
    return cmocka_run_group_tests(tests, read_kept, NULL);
}
