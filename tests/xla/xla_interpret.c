/* SPDX-License-Identifier: Apache-2.0
 *
 * The interpreter of xla_interpret.h.
 */
#include <math.h>
#include <stdlib.h>

#include "libtrn/dispatch/host.h"
#include "tests/harness.h"
#include "tests/xla/xla_interpret.h"

enum { LINE = 64 };

void *xla_memory(size_t bytes)
{
    size_t rounded = (bytes / LINE + 1) * LINE;
    void *memory = aligned_alloc(LINE, rounded);
    CHECK(memory != NULL, "no memory\n");
    memset(memory, 0, rounded);
    return memory;
}

uint32_t xla_dtype(const trn_graph *g, int32_t value, bool wide)
{
    uint32_t dtype = g->values[value].arg.dtype;
    return wide && trn__is_float(dtype) ? (uint32_t)TRN_F64 : dtype;
}

int64_t xla_numel(const trn_graph *g, int32_t value)
{
    return trn__numel(g->values[value].arg.rank, g->values[value].arg.shape);
}

size_t xla_bytes(const trn_graph *g, int32_t value, bool wide)
{
    return (size_t)xla_numel(g, value) *
           trn_dtype_size((trn_dtype)xla_dtype(g, value, wide));
}

double xla_element(uint32_t dtype, const void *data, int64_t i)
{
    return (double)dtype_get((trn_dtype)dtype, data, i);
}

double xla_most(double a, double b)
{
    return b > a ? b : a;
}

void xla_widen(uint32_t dtype, const void *from, int64_t n, bool magnitude,
               double *to)
{
    for (int64_t i = 0; i < n; i++) {
        double x = xla_element(dtype, from, i);
        to[i] = magnitude ? fabs(x) : x;
    }
}

void xla_values_open(xla_values *v, const trn_graph *g)
{
    v->n = g->n_values;
    v->at = xla_memory(sizeof *v->at * (size_t)v->n);
    v->node = -1;
}

void xla_values_widen(xla_values *v, const trn_graph *g,
                      const xla_values *narrow)
{
    for (int32_t i = 0; i < g->n_inputs; i++) {
        int32_t at = g->inputs[i];
        uint32_t dtype = g->values[at].arg.dtype;
        v->at[at] = xla_memory(xla_bytes(g, at, true));
        if (trn__is_float(dtype))
            xla_widen(dtype, narrow->at[at], xla_numel(g, at), false,
                      v->at[at]);
        else
            memcpy(v->at[at], narrow->at[at], xla_bytes(g, at, true));
    }
}

void xla_values_free(xla_values *v)
{
    for (int32_t i = 0; i < v->n; i++)
        free(v->at[i]);
    free(v->at);
    v->at = NULL;
    v->n = 0;
}

/* ---- one node ---- */

static trn_arg packed(const trn_graph *g, int32_t value, bool wide,
                      void *memory)
{
    trn_arg a = g->values[value].arg;
    a.dtype = xla_dtype(g, value, wide);
    a.offset = 0;
    trn__row_major(&a);
    a.buffer = memory;
    return a;
}

typedef union any_attrs {
    uint64_t words[TRN__MAX_ATTRS / 8];
    trn_dtype_attrs cast;
    trn_full_attrs full;
} any_attrs;

/* The attributes of a node; a type in them is f64, too. */
static void attrs_of(const trn__graph_node *n, bool wide, any_attrs *attrs)
{
    memcpy(attrs->words, n->attrs, sizeof attrs->words);
    if (wide && n->op == TRN_OP_cast &&
        trn__is_float((uint32_t)attrs->cast.dtype))
        attrs->cast.dtype = TRN_F64;
    if (wide && n->op == TRN_OP_full &&
        trn__is_float((uint32_t)attrs->full.dtype))
        attrs->full.dtype = TRN_F64;
}

static void fill_numbers(const trn__graph_node *n, const xla_values *v,
                         trn_op_call *call, double *values)
{
    for (int i = 0; i < n->n_scalars; i++)
        values[i] = v->scalars[n->scalar[i]];
    call->n_values = n->n_scalars;
    call->values = values;
    if (n->draw >= 0) {
        call->key = v->draws[n->draw][0];
        call->draw = v->draws[n->draw][1];
    }
}

/* Random values are those of the type that the program asked for. */
static int32_t draw_wide(trn_context *c, const trn_graph *g, int32_t node,
                         const xla_values *v, void *out)
{
    xla_values narrow = *v;
    int32_t value = g->nodes[node].out[0];
    void *memory = xla_memory(xla_bytes(g, value, false));
    void *outs[1] = {memory};
    narrow.wide = false;
    int32_t status = xla_interpret_node(c, g, node, &narrow, NULL, outs, NULL);
    xla_widen(g->values[value].arg.dtype, memory, xla_numel(g, value), false,
              out);
    free(memory);
    return status;
}

int32_t xla_interpret_node(trn_context *c, const trn_graph *g, int32_t node,
                           const xla_values *v, void *const *in,
                           void *const *out, trn_op_report *report)
{
    const trn__graph_node *n = &g->nodes[node];
    const uint32_t writes = trn__graph_ops[n->op].writes;
    trn_arg ins[TRN__MAX_IN], outs[TRN__MAX_OUT];
    const trn_arg *in_at[TRN__MAX_IN], *out_at[TRN__MAX_OUT];
    double values[TRN__MAX_VALUES];
    trn_op_report found = {.kind = TRN_REPORT_NONE};
    any_attrs attrs;
    if (v->wide && trn__graph_ops[n->op].cls == TRN__GRAPH_RANDOM &&
        trn__is_float(g->values[n->out[0]].arg.dtype))
        return draw_wide(c, g, node, v, out[0]);
    attrs_of(n, v->wide, &attrs);
    for (int i = 0; i < n->n_out; i++) {
        outs[i] = packed(g, n->out[i], v->wide, out[i]);
        out_at[i] = &outs[i];
    }
    for (int i = 0, w = 0; i < n->n_in; i++) {
        ins[i] = packed(g, n->in[i], v->wide, in[i]);
        in_at[i] = &ins[i];
        if ((writes >> i) & 1u) { /* works on the new value, a copy */
            memcpy(out[w], in[i], xla_bytes(g, n->in[i], v->wide));
            in_at[i] = &outs[w++];
        }
    }
    trn_op_call call = {
        .size = (uint32_t)sizeof call,
        .op = n->op,
        .n_in = n->n_in,
        .n_out = writes != 0 ? 0 : n->n_out,
        .in = in_at,
        .out = out_at,
        .attrs = n->attrs_size > 0 ? attrs.words : NULL,
        .attrs_size = n->attrs_size,
        .report = report != NULL ? report : &found,
    };
    fill_numbers(n, v, &call, values);
    return trn__reference_op(c, &call);
}

int32_t xla_interpret_step(trn_context *c, const trn_graph *g, xla_values *v,
                           int32_t node)
{
    const trn__graph_node *n = &g->nodes[node];
    void *in[TRN__MAX_IN], *out[TRN__MAX_OUT];
    for (int i = 0; i < n->n_in; i++)
        in[i] = v->at[n->in[i]];
    for (int i = 0; i < n->n_out; i++) {
        out[i] = xla_memory(xla_bytes(g, n->out[i], v->wide));
        v->at[n->out[i]] = out[i];
    }
    return xla_interpret_node(c, g, node, v, in, out, &v->report);
}

int32_t xla_interpret(trn_context *c, const trn_graph *g, xla_values *v)
{
    for (int32_t q = 0; q < g->n_nodes; q++) {
        int32_t status = xla_interpret_step(c, g, v, q);
        v->node = q;
        if (status != TRN_OK)
            return status;
    }
    v->node = -1;
    return TRN_OK;
}
