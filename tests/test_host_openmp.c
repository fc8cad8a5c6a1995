/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts in OpenMP regions of the program: one for each thread of a team, one
 * that a single thread of it uses, with any engine; and the program's settings
 * of OpenMP are as they were.
 */
#include "captured.h"
#include "tests/host_setup.h"
#include "tests/host_state.h"

#ifdef _OPENMP
#include <omp.h>

enum { STEPS = 2 };

static void each_thread_of_a_team_has_a_context(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        const char *digest = alone(way, STEPS);
        for (int e = TRN_ENGINE_POOL; e <= TRN_ENGINE_OPENMP; e++) {
            int n_good = 0, n_same = 0, team = 0;
#pragma omp parallel num_threads(3) reduction(+ : n_good, n_same)
            {
                host_job j = job_of_way(way, 2, STEPS);
                j.engine = (trn_engine)e;
#pragma omp single
                team = omp_get_num_threads();
                n_good += host_job_run(&j);
                n_same += strcmp(j.digest, digest) == 0;
            }
            assert_int_equal(team, 3);
            assert_int_equal(n_good, 3);
            assert_int_equal(n_same, 3);
        }
    }
}

/* What is looked at after each call, by the thread that makes them. */
typedef struct watch {
    host_state before;
    int n_changed;
} watch;

static void look(void *user, const char *call)
{
    watch *w = user;
    host_state now;
    (void)call;
    host_state_look(&now);
    w->n_changed += memcmp(now.omp, w->before.omp, sizeof now.omp) != 0;
}

static void one_thread_of_a_team_uses_a_context(void **state)
{
    (void)state;
    for (int way = 0; way < N_WAYS; way++) {
        const char *digest = alone(way, STEPS);
        for (int e = TRN_ENGINE_POOL; e <= TRN_ENGINE_OPENMP; e++) {
            for (int levels = 1; levels <= 2; levels++) {
                static watch w;
                host_job j = job_of_way(way, 3, STEPS);
                j.engine = (trn_engine)e;
                bool good = false;
                const int before = omp_get_max_active_levels();
                omp_set_max_active_levels(levels); /* 2: teams in teams */
                j.after = look;
                j.user = &w;
#pragma omp parallel num_threads(2)
#pragma omp single
                {
                    host_state_look(&w.before);
                    w.n_changed = 0;
                    good = host_job_run(&j);
                }
                omp_set_max_active_levels(before);
                CHECK(good, "%s\n", j.said);
                assert_string_equal(j.digest, digest);
                assert_int_equal(w.n_changed, 0);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_thread_of_a_team_has_a_context),
        cmocka_unit_test(one_thread_of_a_team_uses_a_context),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
#else
static void openmp_is_needed(void **state)
{
    (void)state;
    print_message("this build has no OpenMP\n");
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(openmp_is_needed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
