/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the comparison of random programs: nodes alone, whole programs.
 */
#ifndef TRN_TESTS_RANDOM_XLA_PARTS_H
#define TRN_TESTS_RANDOM_XLA_PARTS_H

#include "tests/xla/random_xla.h"

/* Programs that are compared together. */
typedef struct xla_group {
    trn_context *c;
    xla_tally *t;
    int n;
    xla_program program[XLA_PROGRAMS_AT_ONCE];
} xla_group;

typedef enum xla_judgement {
    XLA_FAIR,
    XLA_FAR_APART,
    XLA_OTHER_DECISION
} xla_judgement;

/* May the program be compared as a whole? */
xla_judgement xla_judge_program(const xla_program *p);

void xla_compare_nodes(xla_group *g);
void xla_compare_programs(xla_group *g);

#endif
