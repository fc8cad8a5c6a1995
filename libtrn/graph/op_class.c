/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph's expansion of ops.def.
 */
#include "libtrn/graph/op_class.h"

static void visit_one(trn__attr_visitor *v, const char *name, int64_t value)
{
    v->field(v, name, false, 1, &value);
}

static void visit_int32_t(trn__attr_visitor *v, const char *name,
                          const int32_t *x)
{
    visit_one(v, name, *x);
}

static void visit_uint32_t(trn__attr_visitor *v, const char *name,
                           const uint32_t *x)
{
    visit_one(v, name, *x);
}

static void visit_int64_t(trn__attr_visitor *v, const char *name,
                          const int64_t *x)
{
    visit_one(v, name, *x);
}

static void visit_trn_dims(trn__attr_visitor *v, const char *name,
                           const trn_dims *x)
{
    v->field(v, name, true, (int)x->rank, x->dim);
}

static void visit_trn_axes(trn__attr_visitor *v, const char *name,
                           const trn_axes *x)
{
    int64_t axis[TRN_MAX_RANK];
    for (int d = 0; d < x->rank; d++)
        axis[d] = x->axis[d];
    v->field(v, name, true, x->rank, axis);
}

/* One visit function for each kind of attributes, one call for each field. */
#define STATIC(type, field) visit_##type(v, #field, &at->field);
#define VALUE(field) v->value(v, #field, v->n_values++);
#define TRN_ATTRS(nm, fields)                                               \
    static void visit_##nm##_attrs(const void *attrs, trn__attr_visitor *v) \
    {                                                                       \
        const trn_##nm##_attrs *at = attrs;                                 \
        v->n_values = 0;                                                    \
        (void)at;                                                           \
        fields                                                              \
    }
#include "trn/ops.def"
#undef STATIC
#undef VALUE

/* GRAPH_VALUES_<attrs>: how many VALUE attributes that kind has. */
#define STATIC(type, field)
#define VALUE(field) +1
enum {
#define TRN_ATTRS(nm, fields) GRAPH_VALUES_##nm = 0 fields,
#include "trn/ops.def"
};
#undef STATIC
#undef VALUE

/* Which classes are element by element; of the others, the ops named here.
 * copy is left out: it is there to give memory of its own. */
#define FUSES_UNARY(id) true
#define FUSES_BINARY(id) true
#define FUSES_COMPARE(id) true
#define FUSES_VIEW(id) false
#define FUSES_REDUCE(id) false
#define FUSES_UPDATE(id) false
#define FUSES_RANDOM(id) ((id) == TRN_OP_dropout || (id) == TRN_OP_uniform)
#define FUSES_SPECIAL(id)                                 \
    ((id) == TRN_OP_where || (id) == TRN_OP_add_scalar || \
     (id) == TRN_OP_mul_scalar || (id) == TRN_OP_cast)

const trn__graph_op trn__graph_ops[TRN_OP_LIMIT] = {
#define TRN_OP(id, nm, class_, n, writes_, attrs_, kind, grad, dom, text) \
    [id] = {                                                              \
        .name = #nm,                                                      \
        .cls = TRN__GRAPH_##class_,                                       \
        .n_in = n,                                                        \
        .writes = writes_,                                                \
        .n_values = GRAPH_VALUES_##attrs_,                                \
        .fuses = FUSES_##class_(id),                                      \
        .attrs_size = (uint32_t)sizeof(trn_##attrs_##_attrs),             \
        .visit = visit_##attrs_##_attrs,                                  \
    },
#include "trn/ops.def"
};
