/* SPDX-License-Identifier: Apache-2.0
 *
 * The cases of cases.def: parsed, their inputs generated, their op applied.
 *
 * A case is a row's name, the shapes of its inputs and its attributes.  Before
 * a shape a letter tells the memory: t transposed, s sliced with a step, e one
 * row expanded along axis 0.  Inputs are drawn from a hash of the case, within
 * the domain of its row.
 */
#ifndef TRN_TESTS_CASE_BUILD_H
#define TRN_TESTS_CASE_BUILD_H

#include "harness.h"
#include "libtrn/ops/op_table.h"

enum { CASE_MAX_IN = 4, CASE_MAX_OUT = 3 };

typedef struct op_case {
    uint32_t op;
    const char *name, *shapes, *attrs;
} op_case;

extern const op_case op_cases[];
extern const int n_op_cases;

typedef enum case_layout {
    LAYOUT_AS_GIVEN, /* for case_tensors: what the case says */
    LAYOUT_PLAIN,
    LAYOUT_TRANSPOSED,
    LAYOUT_SLICED,
    LAYOUT_EXPANDED
} case_layout;

typedef enum case_kind { KIND_VALUES, KIND_INDICES, KIND_CONDITION } case_kind;

typedef struct case_input {
    case_kind kind;
    trn_dtype dtype;
    case_layout layout;
    int rank;
    int64_t dim[TRN_MAX_RANK];
    int64_t n;
    long double *v; /* row-major, exactly what the tensor holds */
} case_input;

typedef struct case_args {
    const op_case *tc;
    trn_dtype dtype;
    int n_in;
    case_input in[CASE_MAX_IN];
} case_args;

/* Parses and draws; fails the test on a case that cannot be read. */
void case_make(case_args *a, const op_case *tc, trn_dtype dtype);
void case_free(case_args *a);

/* The inputs as new tensors of c; those of LAYOUT_AS_GIVEN as the case says. */
void case_tensors(trn_context *c, const case_args *a, case_layout layout,
                  trn_tensor **in);
trn_tensor *case_tensor(trn_context *c, const case_input *x,
                        case_layout layout);

/* Applies the row; returns how many outputs (UPDATE rows: those that are
 * written).  0 with the error in c. */
int case_apply(trn_context *c, const case_args *a, trn_tensor **in,
               trn_tensor **out);
/* The call as decompositions take it, for COMP rows; attrs has 96 bytes. */
void case_call(trn_context *c, const case_args *a, trn_tensor **in,
               trn__call *k, void *attrs);

/* Does the row take this type for its values? */
bool case_takes(uint32_t op, trn_dtype dtype);

/* Attributes by name. */
bool attr_has(const op_case *tc, const char *name);
int64_t attr_int(const op_case *tc, const char *name, int64_t otherwise);
double attr_real(const op_case *tc, const char *name, double otherwise);
int attr_list(const op_case *tc, const char *name, int64_t *out);
trn_dtype attr_dtype(const op_case *tc, const char *name, trn_dtype otherwise);
/* axes=0,2 as bits; axes=all or none given: all of rank. */
uint32_t attr_axes(const op_case *tc, int rank);
/* axis, from the end if negative, as one of [0, rank). */
int attr_axis(const op_case *tc, int rank);

/* "name shapes attrs dtype" for messages. */
const char *case_text(const case_args *a);

/* The key and number of the draw of every random case. */
#define CASE_KEY UINT64_C(0x0123456789abcdef)
#define CASE_DRAW UINT64_C(5)

#endif
