/* SPDX-License-Identifier: Apache-2.0
 *
 * Names and ids of instructions and computations: the same in bytes, text and
 * messages, so that what a compiler complains of is found in the text.
 *
 * Ids of instructions run from 1 on through the helpers and the entry; those of
 * computations likewise.  A name ends in its id, and is its owner's alone in
 * the whole module.
 */
#ifndef TRN_BACKENDS_HLO_NAMES_H
#define TRN_BACKENDS_HLO_NAMES_H

#include "backends/hlo/hlo_ir.h"

#define TRN__HLO_MODULE_NAME "trn_step"
#define TRN__HLO_ENTRY_NAME "main"

enum {
    TRN__HLO_NAME_SIZE = 48,
    TRN__HLO_SHAPE_SIZE = 320, /* the text of an array's shape and layout */
    TRN__HLO_HELPER_INSTS = 3  /* a, b and the result of a helper */
};

/* Of the entry's instruction i. */
int64_t trn__hlo_id(const trn__hlo_module *m, int32_t i);
const char *trn__hlo_name(const trn__hlo_module *m, int32_t i,
                          char name[TRN__HLO_NAME_SIZE]);

/* Of a helper's computation; the entry has the id after the last helper's. */
int64_t trn__hlo_helper_id(int32_t helper);
const char *trn__hlo_helper_name(const trn__hlo_module *m, int32_t helper,
                                 char name[TRN__HLO_NAME_SIZE]);

/* Of instruction k of a helper: 0 is a, 1 is b, 2 the result. */
int64_t trn__hlo_part_id(int32_t helper, int32_t k);
const char *trn__hlo_part_name(const trn__hlo_module *m, int32_t helper,
                               int32_t k, char name[TRN__HLO_NAME_SIZE]);

/* "f32[64,784]", with "{1,0}" behind it if layout; a tuple's type alone. */
const char *trn__hlo_shape_text(const trn__hlo_shape *shape, bool layout,
                                char text[TRN__HLO_SHAPE_SIZE]);

/* "LT"; "?" for no direction */
const char *trn__hlo_direction_text(int32_t direction);

#endif
