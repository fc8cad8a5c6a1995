/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests in processes of their own: a child that fails, crashes, aborts or hangs
 * is seen as what it is, with the name of what it was running.
 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/xla/xla_child.h"

/* ---- children ---- */

static void good_child(void **state)
{
    (void)state;
    xla_running("good %d", 1);
    assert_false(xla_one_by_one());
}

static void failing_child(void **state)
{
    (void)state;
    xla_running("case %s", "seven");
    CHECK(1 + 1 == 3, "a number is %d\n", 2);
}

static void aborting_child(void **state)
{
    (void)state;
    xla_running("the aborting case");
    signal(SIGABRT, SIG_DFL);
    abort();
}

static void crashing_child(void **state)
{
    (void)state;
    signal(SIGSEGV, SIG_DFL);
    xla_running(xla_one_by_one() ? "case 3" : "cases 1 to 9");
    raise(SIGSEGV);
}

static void hanging_child(void **state)
{
    (void)state;
    xla_running("the endless case");
    for (;;)
        pause();
}

/* ---- what the parent sees ---- */

static void a_good_child_passes(void **state)
{
    static xla_report r;
    (void)state;
    xla_child_run("good_child", 60, false, &r);
    assert_true(r.passed);
    assert_false(r.timed_out);
    assert_int_equal(r.signal, 0);
    assert_string_equal(r.running, "good 1");
    assert_non_null(strstr(r.output, "1 test(s) run"));
}

static void a_failed_check_fails_with_its_text(void **state)
{
    static xla_report r;
    (void)state;
    xla_child_run("failing_child", 60, false, &r);
    assert_false(r.passed);
    assert_int_equal(r.signal, 0);
    assert_string_equal(r.running, "case seven");
    assert_non_null(strstr(r.output, "a number is 2"));
}

static void an_abort_fails_with_the_case_that_ran(void **state)
{
    static xla_report r;
    (void)state;
    xla_child_run("aborting_child", 60, false, &r);
    assert_false(r.passed);
    assert_int_equal(r.signal, SIGABRT);
    assert_string_equal(r.running, "the aborting case");
}

static void a_crash_is_repeated_one_by_one(void **state)
{
    static xla_report r;
    (void)state;
    xla_child_run("crashing_child", 60, false, &r);
    assert_int_equal(r.signal, SIGSEGV);
    assert_string_equal(r.running, "cases 1 to 9");
    xla_child_run("crashing_child", 60, true, &r);
    assert_int_equal(r.signal, SIGSEGV);
    assert_string_equal(r.running, "case 3");
}

static void a_child_that_hangs_is_ended(void **state)
{
    static xla_report r;
    (void)state;
    xla_child_run("hanging_child", 1, false, &r);
    assert_false(r.passed);
    assert_true(r.timed_out);
    assert_string_equal(r.running, "the endless case");
}

static void an_unknown_child_fails(void **state)
{
    static xla_report r;
    (void)state;
    xla_child_run("nobody", 60, false, &r);
    assert_false(r.passed);
    assert_non_null(strstr(r.output, "there is no test nobody"));
}

int main(int argc, char **argv)
{
    static const xla_test tests[] = {
        XLA_TEST_ANYWHERE(a_good_child_passes),
        XLA_TEST_ANYWHERE(a_failed_check_fails_with_its_text),
        XLA_TEST_ANYWHERE(an_abort_fails_with_the_case_that_ran),
        XLA_TEST_ANYWHERE(a_crash_is_repeated_one_by_one),
        XLA_TEST_ANYWHERE(a_child_that_hangs_is_ended),
        XLA_TEST_ANYWHERE(an_unknown_child_fails),
        XLA_TEST_HIDDEN(good_child),
        XLA_TEST_HIDDEN(failing_child),
        XLA_TEST_HIDDEN(aborting_child),
        XLA_TEST_HIDDEN(crashing_child),
        XLA_TEST_HIDDEN(hanging_child),
    };
    return xla_main(argc, argv, (int)(sizeof tests / sizeof tests[0]), tests);
}
