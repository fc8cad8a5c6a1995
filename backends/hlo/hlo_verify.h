/* SPDX-License-Identifier: Apache-2.0
 *
 * The verifier's parts: hlo_verify.c checks what holds a module together, each
 * other file the shapes of a family of opcodes.
 *
 * A rule works out the shape that an instruction must have, or refuses it with
 * a sentence.  Rules share nothing with hlo_build.c, so that a mistake there
 * does not pass here.  Before a rule sees an instruction, its operands are
 * known to be earlier arrays, as many as the opcode takes; its shape and those
 * of its operands to be sound; its lists to be within their room, and their
 * numbers to lie within the profile's largest size of zero.
 */
#ifndef TRN_BACKENDS_HLO_VERIFY_H
#define TRN_BACKENDS_HLO_VERIFY_H

#include "backends/hlo/hlo_names.h"
#include "backends/hlo/hlo_profile.h"

typedef struct trn__hlo_check {
    const trn__hlo_module *m;
    const trn__hlo_profile *profile;
    char *message;
    size_t size;
    int32_t at; /* the instruction in hand; -1: the module as a whole */
    const trn__hlo_inst *inst;
    const trn__hlo_shape *in[3]; /* shapes of its first operands */
} trn__hlo_check;

/* Works out the shape of c->inst; false: refused, and the message is left. */
typedef bool trn__hlo_rule_fn(const trn__hlo_check *c, trn__hlo_shape *want);

trn__hlo_rule_fn trn__hlo_rule_reduce, trn__hlo_rule_dot, trn__hlo_rule_gather,
    trn__hlo_rule_scatter;
trn__hlo_rule_fn trn__hlo_rule_reshape, trn__hlo_rule_broadcast,
    trn__hlo_rule_transpose, trn__hlo_rule_reverse, trn__hlo_rule_slice,
    trn__hlo_rule_concatenate, trn__hlo_rule_pad, trn__hlo_rule_iota;
trn__hlo_rule_fn trn__hlo_rule_convert, trn__hlo_rule_select,
    trn__hlo_rule_compare, trn__hlo_rule_elementwise;

/* Leaves "<name>: <sentence>" as the message; false. */
bool trn__hlo_bad(const trn__hlo_check *c, const char *format, ...)
    TRN_PRINTF(2, 3);

bool trn__hlo_is_integer(uint32_t type);
bool trn__hlo_same_dims(const trn__hlo_shape *a, const trn__hlo_shape *b);
bool trn__hlo_same_shape(const trn__hlo_shape *a, const trn__hlo_shape *b);

/* Is the opcode, one that works element by element, defined for the type? */
bool trn__hlo_takes_type(uint32_t op, uint32_t type);
/* May values be taken together by it in any order? */
bool trn__hlo_reduces(uint32_t op);

/* Are the list's numbers dimensions, each below `rank` and there once, and if
 * `rising` in order?  If not, the message names the list. */
bool trn__hlo_dimensions(const trn__hlo_check *c, const trn__hlo_list *list,
                         const char *name, uint32_t rank, bool rising);
bool trn__hlo_contains(const trn__hlo_list *list, int64_t number);
/* Has the list n numbers?  If not, the message names it. */
bool trn__hlo_counts(const trn__hlo_check *c, const trn__hlo_list *list,
                     const char *name, int64_t n);

/* Adds a dimension; false where the shape would have too many. */
bool trn__hlo_push(const trn__hlo_check *c, trn__hlo_shape *shape, int64_t dim);

#endif
