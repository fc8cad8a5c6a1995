/* SPDX-License-Identifier: Apache-2.0
 *
 * The frozen header of devices as data: offsets, sizes, constants, and the rows
 * of the table of ops; to be compared with those of today.
 *
 * Includes nothing of libtrn: the tables are made once with each of the two
 * headers, which declare the same names.
 */
#ifndef TRN_TESTS_FROZEN_LAYOUT_H
#define TRN_TESTS_FROZEN_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

typedef struct frozen_struct {
    const char *type;
    int fixed;
    size_t bytes;
} frozen_struct;

typedef struct frozen_field {
    const char *type, *field;
    size_t offset, bytes;
} frozen_field;

typedef struct frozen_constant {
    const char *name;
    int64_t value;
} frozen_constant;

/* A row of ops.def, without what devices do not see. */
typedef struct frozen_row {
    uint32_t id;
    const char *name, *cls;
    int n_in;
    uint32_t writes;
    const char *attrs, *kind;
} frozen_row;

typedef struct frozen_attrs {
    const char *name, *fields;
    size_t bytes;
} frozen_attrs;

/* The entries of each table, from whatever header was included. */
#define FROZEN_STRUCT_ENTRY(type, fixed) {#type, fixed, sizeof(type)},
#define FROZEN_FIELD_ENTRY(type, field) \
    {#type, #field, offsetof(type, field), sizeof(((type *)0)->field)},
#define FROZEN_CONSTANT_ENTRY(name) {#name, (int64_t)(name)},
#define FROZEN_ROW_ENTRY(id, nm, cls, n_in, writes, attrs, kind) \
    {id, #nm, #cls, n_in, writes, #attrs, #kind},
#define FROZEN_ATTRS_ENTRY(nm, fields) {#nm, #fields, sizeof(trn_##nm##_attrs)},

/* Those of the frozen header; each ends with a name that is NULL. */
extern const frozen_struct frozen_structs[];
extern const frozen_field frozen_fields[];
extern const frozen_constant frozen_constants[];
extern const frozen_row frozen_rows[];
extern const frozen_attrs frozen_kinds[];
extern const uint32_t frozen_op_known;

#endif
