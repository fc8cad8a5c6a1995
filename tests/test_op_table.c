/* SPDX-License-Identifier: Apache-2.0
 *
 * The op table itself: complete rows, each with a case.
 */
#include "case_build.h"

static bool has_case(uint32_t op)
{
    for (int i = 0; i < n_op_cases; i++) {
        if (op_cases[i].op == op)
            return true;
    }
    return false;
}

#define FOR_EACH_ROW(op)                           \
    for (uint32_t op = 0; op < TRN_OP_LIMIT; op++) \
        if (trn__ops[op].name != NULL)

static void every_row_has_a_case(void **state)
{
    (void)state;
    FOR_EACH_ROW(op)
    CHECK(has_case(op), "row %s has no case\n", trn__ops[op].name);
}

static void every_row_has_its_rules(void **state)
{
    (void)state;
    FOR_EACH_ROW(op)
    {
        const trn__op_info *r = &trn__ops[op];
        CHECK(r->infer != NULL, "row %s: no shape rule\n", r->name);
        CHECK((r->cls == TRN__CLASS_VIEW) == (r->view != NULL),
              "row %s: view rule\n", r->name);
        CHECK(r->differentiable == (r->grad != NULL), "row %s: gradient\n",
              r->name);
        CHECK(r->n_in <= TRN__MAX_IN && r->writes >> r->n_in == 0,
              "row %s: inputs\n", r->name);
        CHECK((r->cls == TRN__CLASS_UPDATE) == (r->writes != 0),
              "row %s: writes\n", r->name);
        CHECK(r->attrs_size <= TRN__MAX_ATTRS, "row %s: attributes\n", r->name);
        CHECK(r->formula[0] != '\0', "row %s: formula\n", r->name);
    }
}

static void names_are_unique_and_domains_are_known(void **state)
{
    static const char *const domains[] = {"ANY",      "POSITIVE", "NONZERO",
                                          "DISTINCT", "PAIRS",    "BETWEEN"};
    (void)state;
    FOR_EACH_ROW(op)
    {
        int known = 0;
        for (size_t i = 0; i < sizeof domains / sizeof domains[0]; i++)
            known += strcmp(trn__ops[op].domain, domains[i]) == 0;
        CHECK(known == 1, "row %s: domain %s\n", trn__ops[op].name,
              trn__ops[op].domain);
        FOR_EACH_ROW(other)
        CHECK(other == op ||
                  strcmp(trn__ops[op].name, trn__ops[other].name) != 0,
              "two rows are %s\n", trn__ops[op].name);
    }
}

static void there_are_at_most_sixty_primitives(void **state)
{
    int n = 0;
    (void)state;
    FOR_EACH_ROW(op)
    n += trn__ops[op].decompose == NULL;
    assert_in_range(n, 1, 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(every_row_has_a_case),
        TRN_TEST(every_row_has_its_rules),
        TRN_TEST(names_are_unique_and_domains_are_known),
        TRN_TEST(there_are_at_most_sixty_primitives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
