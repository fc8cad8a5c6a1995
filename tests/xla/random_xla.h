/* SPDX-License-Identifier: Apache-2.0
 *
 * Random programs, by the CPU device and by XLA.
 *
 * Each node alone, with the inputs that the CPU gave it, is as near as its op's
 * bound says (xla_bounds.h).  Nodes that differ in values alone are compiled
 * once.  A whole program, from the same inputs, is as near as its own rounding
 * lets one ask, element by element:
 *
 *     |xla - f32| <= 16 max |f32 - f64| + 8 ulp(max |f32|)
 *
 * with maxima over the output, where f64 is the CPU's run with every float in
 * f64.  A program that misses this gets a second look, since XLA rounds where
 * the CPU does not (sums in f32, products and additions in one): twice as far
 * as its output goes when each value in it is off by its op's bound
 * (xla_shake.h) is near enough, and counted.  Exempt, and counted, is a program
 * of which an output's f32 and f64 are more than 1e-3 of its largest element
 * apart (2^-5, where it has bf16 or f16 values: their rounding alone is 2^-9),
 * or whose runs decide differently (a bool or an integer differs, one is finite
 * and one is not).
 */
#ifndef TRN_TESTS_RANDOM_XLA_H
#define TRN_TESTS_RANDOM_XLA_H

#include "tests/xla/xla_pack.h"

enum { XLA_PROGRAMS_AT_ONCE = 250 };

typedef struct xla_tally {
    int64_t programs;                  /* compared, exempt ones included */
    int64_t failing, without_result;   /* seeds more: the host finds an error
                                          in the step; nothing is left of it */
    int64_t nodes;                     /* compared alone */
    int64_t subnormal;                 /* nodes left out: XLA reads zeros */
    int64_t far_apart, other_decision; /* exempt programs */
    int64_t shaken;                    /* good by the second look alone */
    int64_t failures;
    int64_t kinds, modules;          /* of nodes; compiled */
    double node_worst[TRN_OP_LIMIT]; /* parts of the bound; 1: all of it */
    double program_worst;
} xla_tally;

/* Compares the programs from *seed on, up to n of them; *seed is the next one
 * then.  c: a context of the device that is judged.  Failures are printed. */
void xla_random_run(trn_context *c, uint64_t *seed, int n, xla_tally *t);
void xla_tally_add(xla_tally *t, const xla_tally *more);
/* The counts, and the worst of each op. */
void xla_tally_print(const xla_tally *t);

/* The program of `--long N SEED FOLDER`: N programs from SEED on. */
int xla_random_long(int argc, char **argv);

#endif
