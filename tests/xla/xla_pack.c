/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs side by side; see xla_pack.h.
 */
#include <stdlib.h>

#include "tests/harness.h"
#include "tests/xla/xla_pack.h"

void xla_pack_open(xla_pack *p, trn_context *c)
{
    *p = (xla_pack){.c = c, .graph = trn__graph_new(c)};
    CHECK(p->graph != NULL, "%s\n", trn_errmsg(c));
}

static void *grown(void *list, int32_t n, int32_t *room, size_t element)
{
    if (n < *room)
        return list;
    *room = 2 * n + 64;
    void *more = realloc(list, (size_t)*room * element);
    CHECK(more != NULL, "no memory\n");
    return more;
}

static int32_t add_input(xla_pack *p, const trn_arg *like, const void *bytes)
{
    trn__desc desc = {.dtype = like->dtype, .rank = like->rank};
    int32_t i = p->graph->n_inputs;
    memcpy(desc.shape, like->shape, sizeof desc.shape);
    p->in = grown(p->in, i, &p->room_in, sizeof *p->in);
    p->in[i] = bytes;
    int32_t value = trn__graph_add_input(p->graph, &desc);
    CHECK(value >= 0, "%s\n", trn_errmsg(p->c));
    return value;
}

static int32_t add_scalar(xla_pack *p, const xla_program *program, int32_t s)
{
    const trn__graph_literal *l = trn__graph_literal_of(program->graph, s);
    int32_t i = p->graph->n_scalars++;
    p->scalars = grown(p->scalars, i, &p->room_scalars, sizeof *p->scalars);
    p->scalars[i] = program->scalars[s];
    if (l != NULL) {
        trn_status status = trn__graph_add_literal(p->graph, i, l->value);
        CHECK(status == TRN_OK, "%s\n", trn_errmsg(p->c));
        p->scalars[i] = l->value;
    }
    return i;
}

static int32_t add_draw(xla_pack *p, const xla_program *program, int32_t d)
{
    int32_t i = p->graph->n_draws++;
    p->draws = grown(p->draws, i, &p->room_draws, sizeof *p->draws);
    memcpy(p->draws[i], program->draws[d], sizeof p->draws[i]);
    return i;
}

static int32_t add_node(xla_pack *p, const trn__graph_node *node, int n_out,
                        const trn_arg *out)
{
    int32_t value = trn__graph_add_node(p->graph, node, n_out, out);
    CHECK(value >= 0, "%s\n", trn_errmsg(p->c));
    return value;
}

static void add_output(xla_pack *p, int32_t value, int32_t alias)
{
    trn_status status = trn__graph_add_output(p->graph, value, alias);
    CHECK(status == TRN_OK, "%s\n", trn_errmsg(p->c));
}

/* ---- a node alone ---- */

/* The layout of a view of x, which is packed; `out` has the shape. */
static void lay_out(const trn__graph_node *n, const trn_arg *x, trn_arg *out)
{
    const trn_perm_attrs *perm = (const void *)n->attrs;
    const trn_slice_attrs *slice = (const void *)n->attrs;
    uint32_t extra = out->rank - x->rank;
    out->offset = 0;
    trn__row_major(out);
    for (uint32_t d = 0; d < out->rank && n->op != TRN_OP_reshape; d++) {
        if (n->op == TRN_OP_permute)
            out->stride[d] = x->stride[perm->perm.axis[d]];
        else if (n->op == TRN_OP_slice)
            out->stride[d] = x->stride[d];
        else
            out->stride[d] = d < extra || x->shape[d - extra] != out->shape[d]
                                 ? 0
                                 : x->stride[d - extra];
    }
    if (n->op == TRN_OP_slice && trn__numel(out->rank, out->shape) > 0) {
        out->offset = slice->start * x->stride[slice->axis];
        if (out->shape[slice->axis] > 1)
            out->stride[slice->axis] *= slice->step;
    }
}

static int32_t view_alone(xla_pack *p, const trn__graph_node *node,
                          trn_arg *out)
{
    const trn_arg *x = &p->graph->values[node->in[0]].arg;
    trn__graph_node copy = {.op = TRN_OP_copy, .draw = -1, .group = -1};
    trn_arg whole = *out;
    lay_out(node, x, out);
    copy.in[0] = add_node(p, node, 1, out);
    whole.offset = 0;
    trn__row_major(&whole);
    return add_node(p, &copy, 1, &whole);
}

/* Is input i of a node an earlier one, too?  Its number, else i. */
static int first_use(const trn__graph_node *n, int i)
{
    for (int k = 0; k < i && trn__graph_ops[n->op].writes == 0; k++) {
        if (n->in[k] == n->in[i])
            return k;
    }
    return i;
}

static xla_part end_of(const xla_pack *p)
{
    return (xla_part){
        .in = p->graph->n_inputs,
        .scalar = p->graph->n_scalars,
        .draw = p->graph->n_draws,
        .out = p->graph->n_outputs,
    };
}

xla_part xla_pack_alone(xla_pack *p, const xla_program *program, int32_t node)
{
    const trn_graph *g = program->graph;
    const trn__graph_node *from = &g->nodes[node];
    const uint32_t writes = trn__graph_ops[from->op].writes;
    const xla_part part = end_of(p);
    trn__graph_node n = *from;
    trn_arg out[TRN__MAX_OUT] = {{.buffer = NULL}};
    int32_t alias[TRN__MAX_OUT] = {-1, -1, -1};
    for (int i = 0, w = 0; i < n.n_in; i++) {
        int k = first_use(from, i);
        n.in[i] = k < i ? n.in[k]
                        : add_input(p, &g->values[from->in[i]].arg,
                                    program->narrow.at[from->in[i]]);
        if ((writes >> i) & 1u)
            alias[w++] = p->graph->n_inputs - 1;
    }
    for (int i = 0; i < n.n_scalars; i++)
        n.scalar[i] = add_scalar(p, program, n.scalar[i]);
    if (n.draw >= 0)
        n.draw = add_draw(p, program, n.draw);
    for (int i = 0; i < n.n_out; i++)
        out[i] = g->values[from->out[i]].arg;
    int32_t value = trn__graph_is_view(&n) ? view_alone(p, &n, out)
                                           : add_node(p, &n, n.n_out, out);
    for (int i = 0; i < n.n_out; i++)
        add_output(p, value + i, alias[i]);
    return part;
}

void xla_pack_bind(xla_pack *p, xla_part at, const xla_program *program,
                   int32_t node)
{
    const trn__graph_node *n = &program->graph->nodes[node];
    for (int i = 0; i < n->n_in; i++) {
        if (first_use(n, i) == i)
            p->in[at.in++] = program->narrow.at[n->in[i]];
    }
    for (int i = 0; i < n->n_scalars; i++)
        p->scalars[at.scalar++] = program->scalars[n->scalar[i]];
    if (n->draw >= 0)
        memcpy(p->draws[at.draw], program->draws[n->draw], sizeof p->draws[0]);
}

static uint64_t mix_shape(uint64_t h, const trn_arg *arg)
{
    h = random_mix(h, arg->dtype * 16 + arg->rank);
    for (uint32_t d = 0; d < arg->rank; d++)
        h = random_mix(h, (uint64_t)arg->shape[d]);
    return h;
}

uint64_t xla_signature(const trn_graph *g, int32_t node)
{
    const trn__graph_node *n = &g->nodes[node];
    uint64_t h = random_mix(1, n->op), bits;
    for (int i = 0; i < TRN__MAX_ATTRS / 8; i++)
        h = random_mix(h, n->attrs[i]);
    for (int i = 0; i < n->n_in; i++) {
        h = random_mix(h, (uint64_t)first_use(n, i));
        h = mix_shape(h, &g->values[n->in[i]].arg);
    }
    for (int i = 0; i < n->n_out; i++)
        h = mix_shape(h, &g->values[n->out[i]].arg);
    for (int i = 0; i < n->n_scalars; i++) {
        const trn__graph_literal *l = trn__graph_literal_of(g, n->scalar[i]);
        h = random_mix(h, l != NULL);
        if (l != NULL) {
            memcpy(&bits, &l->value, sizeof bits);
            h = random_mix(h, bits);
        }
    }
    return h;
}

/* ---- a program ---- */

xla_part xla_pack_whole(xla_pack *p, const xla_program *program)
{
    const trn_graph *g = program->graph;
    const xla_part part = end_of(p);
    int32_t *number = xla_memory(sizeof *number * (size_t)g->n_values);
    for (int32_t i = 0; i < g->n_inputs; i++) {
        int32_t v = g->inputs[i];
        number[v] = add_input(p, &g->values[v].arg, program->narrow.at[v]);
    }
    for (int32_t i = 0; i < g->n_scalars; i++)
        add_scalar(p, program, i);
    for (int32_t i = 0; i < g->n_draws; i++)
        add_draw(p, program, i);
    for (int32_t q = 0; q < g->n_nodes; q++) {
        trn__graph_node n = g->nodes[q];
        trn_arg out[TRN__MAX_OUT];
        for (int i = 0; i < n.n_in; i++)
            n.in[i] = number[n.in[i]];
        for (int i = 0; i < n.n_scalars; i++)
            n.scalar[i] += part.scalar;
        n.draw = n.draw < 0 ? -1 : n.draw + part.draw;
        for (int i = 0; i < n.n_out; i++)
            out[i] = g->values[n.out[i]].arg;
        int32_t value = add_node(p, &n, n.n_out, out);
        for (int i = 0; i < n.n_out; i++)
            number[g->nodes[q].out[i]] = value + i;
    }
    for (int32_t i = 0; i < g->n_outputs; i++) {
        int32_t alias = g->outputs[i].alias;
        add_output(p, number[g->outputs[i].value],
                   alias < 0 ? -1 : alias + part.in);
    }
    free(number);
    return part;
}

/* ---- running ---- */

typedef struct buffers {
    trn_buffer **in, **out;
} buffers;

static trn_buffer *make(trn_context *c, const trn_graph *g, int32_t value)
{
    size_t bytes = xla_bytes(g, value, false);
    trn_buffer *b =
        bytes == 0 ? NULL : trn__buffer_new(c, &g->values[value].arg, bytes);
    CHECK(b != NULL || bytes == 0, "no memory on the device\n");
    return b;
}

static bool make_buffers(const xla_pack *p, buffers *b)
{
    const trn_graph *g = p->graph;
    bool good = true;
    b->in = xla_memory(sizeof *b->in * (size_t)g->n_inputs);
    b->out = xla_memory(sizeof *b->out * (size_t)g->n_outputs);
    for (int32_t i = 0; i < g->n_inputs && good; i++) {
        size_t bytes = xla_bytes(g, g->inputs[i], false);
        b->in[i] = make(p->c, g, g->inputs[i]);
        if (bytes > 0)
            good = p->c->backend->write(p->c->device, b->in[i], 0, p->in[i],
                                        bytes) == TRN_OK;
    }
    for (int32_t i = 0; i < g->n_outputs && good; i++) {
        const trn__graph_output *o = &g->outputs[i];
        b->out[i] = o->alias >= 0 ? b->in[o->alias] : make(p->c, g, o->value);
    }
    return good;
}

static void free_buffers(const xla_pack *p, buffers *b)
{
    const trn_backend *table = p->c->backend;
    for (int32_t i = 0; i < p->graph->n_outputs; i++) {
        if (p->graph->outputs[i].alias < 0 && b->out[i] != NULL)
            table->free(p->c->device, b->out[i]);
    }
    for (int32_t i = 0; i < p->graph->n_inputs; i++) {
        if (b->in[i] != NULL)
            table->free(p->c->device, b->in[i]);
    }
    free(b->in);
    free(b->out);
}

static bool execute(xla_pack *p, const buffers *b)
{
    const trn_backend *table = p->c->backend;
    const trn_execution e = {
        .size = (uint32_t)sizeof e,
        .n_inputs = (uint32_t)p->graph->n_inputs,
        .n_outputs = (uint32_t)p->graph->n_outputs,
        .n_scalars = (uint32_t)p->graph->n_scalars,
        .n_draws = (uint32_t)p->graph->n_draws,
        .inputs = b->in,
        .outputs = b->out,
        .scalars = p->scalars,
        .draws = (const uint64_t(*)[2])p->draws,
    };
    uint64_t ticket = 0;
    return table->execute(p->c->device, p->compiled, &e, &ticket) == TRN_OK &&
           table->wait(p->c->device, ticket, &p->outcome) == TRN_OK;
}

static bool read_outputs(xla_pack *p, const buffers *b)
{
    const trn_graph *g = p->graph;
    bool good = true;
    if (p->out == NULL)
        p->out = xla_memory(sizeof *p->out * (size_t)g->n_outputs);
    for (int32_t i = 0; i < g->n_outputs && good; i++) {
        size_t bytes = xla_bytes(g, g->outputs[i].value, false);
        if (p->out[i] == NULL)
            p->out[i] = xla_memory(bytes);
        if (bytes > 0)
            good = p->c->backend->read(p->c->device, b->out[i], 0, p->out[i],
                                       bytes) == TRN_OK;
    }
    return good;
}

bool xla_pack_compile(xla_pack *p)
{
    p->outcome = (trn_outcome){.size = (uint32_t)sizeof p->outcome, .node = -1};
    return trn__graph_prepare(p->graph) == TRN_OK &&
           p->c->backend->compile(p->c->device, p->graph, &p->compiled) ==
               TRN_OK;
}

bool xla_pack_execute(xla_pack *p)
{
    buffers b;
    p->outcome = (trn_outcome){.size = (uint32_t)sizeof p->outcome, .node = -1};
    bool good = make_buffers(p, &b) && execute(p, &b) && read_outputs(p, &b);
    free_buffers(p, &b);
    return good;
}

void xla_pack_close(xla_pack *p)
{
    for (int32_t i = 0; i < p->graph->n_outputs && p->out != NULL; i++)
        free(p->out[i]);
    if (p->compiled != NULL)
        p->c->backend->release(p->c->device, p->compiled);
    trn__graph_free(p->graph);
    free(p->out);
    free(p->in);
    free(p->scalars);
    free(p->draws);
    trn_clear(p->c);
    *p = (xla_pack){.c = p->c};
}
