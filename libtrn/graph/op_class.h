/* SPDX-License-Identifier: Apache-2.0
 *
 * What the graph needs to know of an op, expanded from ops.def: its class, its
 * attributes by name.  Rules of shapes and gradients stay in libtrn/ops, which
 * stands above this folder.
 */
#ifndef TRN_LIBTRN_OP_CLASS_H
#define TRN_LIBTRN_OP_CLASS_H

#include "trn/attrs.h"

typedef enum trn__graph_class {
    TRN__GRAPH_UNARY,
    TRN__GRAPH_BINARY,
    TRN__GRAPH_COMPARE,
    TRN__GRAPH_VIEW,
    TRN__GRAPH_REDUCE,
    TRN__GRAPH_RANDOM,
    TRN__GRAPH_UPDATE,
    TRN__GRAPH_SPECIAL
} trn__graph_class;

/* Who visits attributes.  A STATIC field comes as n integers, in brackets if
 * it is a list (a shape, axes); a VALUE field comes by name and number. */
typedef struct trn__attr_visitor {
    void (*field)(struct trn__attr_visitor *v, const char *name, bool is_list,
                  int n, const int64_t *values);
    void (*value)(struct trn__attr_visitor *v, const char *name, int number);
    int n_values; /* of VALUE fields visited so far */
} trn__attr_visitor;

typedef struct trn__graph_op {
    const char *name; /* NULL: no such op */
    trn__graph_class cls;
    uint8_t n_in, writes, n_values;
    bool fuses; /* element by element: may stand in a fusion group */
    uint32_t attrs_size;
    void (*visit)(const void *attrs, trn__attr_visitor *v);
} trn__graph_op;

/* By id. */
extern const trn__graph_op trn__graph_ops[TRN_OP_LIMIT];

#endif
