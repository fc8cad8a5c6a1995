/* SPDX-License-Identifier: Apache-2.0
 *
 * Is it the same graph?  By a hash that is equal in every process, and for
 * sure.
 *
 * The hash is FNV-1a (64 bits) over a list of integers, each as 8 bytes, lowest
 * first, in two's complement:
 *
 *   1 (version)
 *   inputs: their number; for each its type
 *   nodes: their number; for each op, STATIC attributes (a list: its length,
 *          then its entries), inputs (number, values), scalars, draw, and
 *          outputs (number; for each its type, of a view also offset and
 *          strides)
 *   outputs: their number; for each value and alias
 *   if there are literals: their number; for each scalar and bits
 *
 * A type is dtype, rank and the shape's entries.  No address, no padding and no
 * host's byte order goes into it.
 */
#include <string.h>

#include "libtrn/graph/graph_pass.h"

#define HASH_VERSION 1
#define FNV_BASIS UINT64_C(14695981039346656037)
#define FNV_PRIME UINT64_C(1099511628211)

typedef struct hasher {
    trn__attr_visitor visitor; /* first: visitors are cast back */
    uint64_t hash;
} hasher;

static void put(hasher *h, int64_t value)
{
    uint64_t x = (uint64_t)value;
    for (int i = 0; i < 8; i++) {
        h->hash = (h->hash ^ (x & 0xff)) * FNV_PRIME;
        x >>= 8;
    }
}

static void put_field(trn__attr_visitor *v, const char *name, bool is_list,
                      int n, const int64_t *values)
{
    hasher *h = (hasher *)v;
    (void)name;
    if (is_list)
        put(h, n);
    for (int i = 0; i < n; i++)
        put(h, values[i]);
}

static void skip_value(trn__attr_visitor *v, const char *name, int number)
{
    (void)v;
    (void)name;
    (void)number;
}

static void put_type(hasher *h, const trn_arg *arg)
{
    put(h, arg->dtype);
    put(h, arg->rank);
    for (uint32_t d = 0; d < arg->rank; d++)
        put(h, arg->shape[d]);
}

static void put_node(hasher *h, const trn_graph *g, const trn__graph_node *n)
{
    put(h, n->op);
    trn__graph_op_of(n)->visit(n->attrs, &h->visitor);
    put(h, n->n_in);
    for (int i = 0; i < n->n_in; i++)
        put(h, n->in[i]);
    for (int i = 0; i < n->n_scalars; i++)
        put(h, n->scalar[i]);
    put(h, n->draw);
    put(h, n->n_out);
    for (int i = 0; i < n->n_out; i++) {
        const trn_arg *out = &g->values[n->out[i]].arg;
        put_type(h, out);
        if (!trn__graph_is_view(n))
            continue;
        put(h, out->offset);
        for (uint32_t d = 0; d < out->rank; d++)
            put(h, out->stride[d]);
    }
}

static int64_t bits_of(double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

uint64_t trn__graph_hash(const trn_graph *g)
{
    hasher h = {
        .visitor = {.field = put_field, .value = skip_value},
        .hash = FNV_BASIS,
    };
    put(&h, HASH_VERSION);
    put(&h, g->n_inputs);
    for (int32_t i = 0; i < g->n_inputs; i++)
        put_type(&h, &g->values[g->inputs[i]].arg);
    put(&h, g->n_nodes);
    for (int32_t q = 0; q < g->n_nodes; q++)
        put_node(&h, g, &g->nodes[q]);
    put(&h, g->n_outputs);
    for (int32_t i = 0; i < g->n_outputs; i++) {
        put(&h, g->outputs[i].value);
        put(&h, g->outputs[i].alias);
    }
    if (g->n_literals > 0)
        put(&h, g->n_literals);
    for (int32_t i = 0; i < g->n_literals; i++) {
        put(&h, g->literals[i].scalar);
        put(&h, bits_of(g->literals[i].value));
    }
    return h.hash;
}

static bool same_layout(const trn_arg *a, const trn_arg *b)
{
    return a->dtype == b->dtype && trn__same_shape(a, b) &&
           a->offset == b->offset &&
           memcmp(a->stride, b->stride, a->rank * sizeof a->stride[0]) == 0;
}

static bool same_node(const trn__graph_node *a, const trn__graph_node *b)
{
    return a->op == b->op && a->n_in == b->n_in && a->n_out == b->n_out &&
           a->n_scalars == b->n_scalars && a->draw == b->draw &&
           a->attrs_size == b->attrs_size &&
           memcmp(a->in, b->in, a->n_in * sizeof a->in[0]) == 0 &&
           memcmp(a->out, b->out, a->n_out * sizeof a->out[0]) == 0 &&
           memcmp(a->scalar, b->scalar, a->n_scalars * sizeof a->scalar[0]) ==
               0 &&
           memcmp(a->attrs, b->attrs, a->attrs_size) == 0;
}

bool trn__graph_equal(const trn_graph *a, const trn_graph *b)
{
    if (a->n_nodes != b->n_nodes || a->n_values != b->n_values ||
        a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs ||
        a->n_literals != b->n_literals)
        return false;
    for (int32_t i = 0; i < a->n_literals; i++) {
        if (a->literals[i].scalar != b->literals[i].scalar ||
            bits_of(a->literals[i].value) != bits_of(b->literals[i].value))
            return false;
    }
    for (int32_t i = 0; i < a->n_inputs; i++) {
        if (a->inputs[i] != b->inputs[i])
            return false;
    }
    for (int32_t i = 0; i < a->n_outputs; i++) {
        if (a->outputs[i].value != b->outputs[i].value ||
            a->outputs[i].alias != b->outputs[i].alias)
            return false;
    }
    for (int32_t q = 0; q < a->n_nodes; q++) {
        if (!same_node(&a->nodes[q], &b->nodes[q]))
            return false;
    }
    for (int32_t v = 0; v < a->n_values; v++) {
        if (!same_layout(&a->values[v].arg, &b->values[v].arg))
            return false;
    }
    return true;
}
