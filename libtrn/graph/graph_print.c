/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph for the eye: a line for each input, node and output, or DOT.
 *
 *   %12 = matmul(%3, %7) {trans_a=0 trans_b=1} f32[64,128]
 *
 * A VALUE attribute reads s3, scalar 3 of the execution; a draw, draw=0.  What
 * the passes have decided follows a semicolon.  Only integers are written, so
 * no locale changes the text.
 */
#include <stdarg.h>
#include <stdio.h>

#include "libtrn/graph/graph_pass.h"

typedef struct printer {
    trn__attr_visitor visitor; /* first: visitors are cast back */
    const trn_graph *g;
    const trn__graph_node *node;
    trn__put_fn *put;
    void *user;
    const char *separator;
} printer;

static void say(printer *p, const char *format, ...) TRN_PRINTF(2, 3);

static void say(printer *p, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    p->put(p->user, text);
}

static void begin_attr(printer *p, const char *name)
{
    say(p, "%s%s=", p->separator, name);
    p->separator = " ";
}

static void say_field(trn__attr_visitor *v, const char *name, bool is_list,
                      int n, const int64_t *values)
{
    printer *p = (printer *)v;
    begin_attr(p, name);
    for (int i = 0; i < n; i++)
        say(p, "%s%lld",
            i > 0     ? ","
            : is_list ? "["
                      : "",
            (long long)values[i]);
    if (is_list)
        say(p, n == 0 ? "[]" : "]");
}

static void say_value(trn__attr_visitor *v, const char *name, int number)
{
    printer *p = (printer *)v;
    begin_attr(p, name);
    say(p, "s%d", (int)p->node->scalar[number]);
}

static void say_attrs(printer *p, const trn__graph_node *n)
{
    p->node = n;
    p->separator = " {";
    trn__graph_op_of(n)->visit(n->attrs, &p->visitor);
    if (n->draw >= 0) {
        begin_attr(p, "draw");
        say(p, "%d", (int)n->draw);
    }
    if (p->separator[1] == '\0')
        say(p, "}");
}

static void say_call(printer *p, const trn__graph_node *n)
{
    say(p, "%s(", trn__graph_op_of(n)->name);
    for (int i = 0; i < n->n_in; i++)
        say(p, "%s%%%d", i > 0 ? ", " : "", (int)n->in[i]);
    say(p, ")");
    say_attrs(p, n);
}

static void say_types(printer *p, const trn__graph_node *n)
{
    for (int i = 0; i < n->n_out; i++)
        say(p, "%s %s", i > 0 ? "," : "",
            trn__describe(&p->g->values[n->out[i]].arg).s);
}

/* Where value v lies, as far as that is known. */
static void say_place(printer *p, int32_t v)
{
    const trn__graph_value *value = &p->g->values[v];
    if (value->base != v)
        say(p, "; view of %%%d", (int)value->base);
    else if (value->state >= 0)
        say(p, "; in input %d", (int)value->state);
    else if (value->arena_at >= 0)
        say(p, "; at %lld", (long long)value->arena_at);
}

static void say_node(printer *p, const trn__graph_node *n)
{
    for (int i = 0; i < n->n_out; i++)
        say(p, "%s%%%d", i > 0 ? ", " : "", (int)n->out[i]);
    say(p, " = ");
    say_call(p, n);
    say_types(p, n);
    if (n->group >= 0)
        say(p, "; group %d", (int)n->group);
    for (int i = 0; i < n->n_out; i++) {
        if ((n->fused_only >> i) & 1u)
            say(p, "; fused");
        else
            say_place(p, n->out[i]);
    }
    if (n->on_host)
        say(p, "; on the host");
    if (!trn__graph_is_view(n)) {
        int32_t q = (int32_t)(n - p->g->nodes);
        say(p, "; %lld flops, %lld bytes",
            (long long)trn__graph_node_flops(p->g, q),
            (long long)trn__graph_node_bytes(p->g, q));
    }
    say(p, "\n");
}

static printer printer_of(const trn_graph *g, trn__put_fn *put, void *user)
{
    return (printer){
        .visitor = {.field = say_field, .value = say_value},
        .g = g,
        .put = put,
        .user = user,
    };
}

void trn__graph_print(const trn_graph *g, trn__put_fn *put, void *user)
{
    printer p = printer_of(g, put, user);
    for (int32_t i = 0; i < g->n_inputs; i++)
        say(&p, "%%%d = input %d %s\n", (int)g->inputs[i], (int)i,
            trn__describe(&g->values[g->inputs[i]].arg).s);
    for (int32_t q = 0; q < g->n_nodes; q++)
        say_node(&p, &g->nodes[q]);
    for (int32_t i = 0; i < g->n_literals; i++) {
        char text[32];
        say(&p, "s%d = %s in every step\n", (int)g->literals[i].scalar,
            trn__format_double(g->literals[i].value, text, sizeof text));
    }
    for (int32_t i = 0; i < g->n_outputs; i++) {
        say(&p, "output %d = %%%d", (int)i, (int)g->outputs[i].value);
        if (g->outputs[i].alias >= 0)
            say(&p, "; replaces input %d", (int)g->outputs[i].alias);
        say(&p, "\n");
    }
}

/* ---- DOT: nodes n<number>, inputs i<number>, outputs o<number> ---- */

static void dot_edge(printer *p, int32_t v, char kind, int32_t number)
{
    const trn__graph_value *value = &p->g->values[v];
    int32_t from = value->node >= 0 ? value->node : value->input;
    say(p, "  %c%d -> %c%d [label=\"%%%d\"];\n", value->node >= 0 ? 'n' : 'i',
        (int)from, kind, (int)number, (int)v);
}

static void dot_node(printer *p, int32_t q)
{
    const trn__graph_node *n = &p->g->nodes[q];
    say(p, "  n%d [label=\"", (int)q);
    say_call(p, n);
    say(p, "\\n");
    say_types(p, n);
    say(p, "\"%s];\n", trn__graph_is_update(n) ? ", shape=box" : "");
    for (int i = 0; i < n->n_in; i++)
        dot_edge(p, n->in[i], 'n', q);
}

void trn__graph_print_dot(const trn_graph *g, trn__put_fn *put, void *user)
{
    printer p = printer_of(g, put, user);
    int32_t open = -1; /* the group whose box is open */
    say(&p, "digraph step {\n  node [shape=ellipse];\n");
    for (int32_t i = 0; i < g->n_inputs; i++)
        say(&p, "  i%d [label=\"input %d\\n%s\", shape=plaintext];\n", (int)i,
            (int)i, trn__describe(&g->values[g->inputs[i]].arg).s);
    for (int32_t q = 0; q < g->n_nodes; q++) {
        int32_t group = g->nodes[q].group;
        if (group != open && open >= 0)
            say(&p, "  }\n");
        if (group != open && group >= 0)
            say(&p, "  subgraph cluster_%d {\n", (int)group);
        open = group;
        dot_node(&p, q);
    }
    if (open >= 0)
        say(&p, "  }\n");
    for (int32_t i = 0; i < g->n_outputs; i++) {
        say(&p, "  o%d [label=\"output %d\", shape=plaintext];\n", (int)i,
            (int)i);
        dot_edge(&p, g->outputs[i].value, 'o', i);
    }
    say(&p, "}\n");
}
