/* SPDX-License-Identifier: Apache-2.0
 *
 * Building a graph and reading it: growing arrays, copies, the accessors that
 * devices use.
 */
#include <string.h>

#include "libtrn/context/struct_size.h"
#include "libtrn/graph/graph_pass.h"

trn_graph *trn__graph_new(trn_context *c)
{
    trn_graph *g = trn__alloc_zeroed(c, sizeof *g);
    if (g == NULL) {
        trn__fail_memory(c, "graph", sizeof *g);
        return NULL;
    }
    g->c = c;
    return g;
}

void trn__graph_free(trn_graph *g)
{
    if (g == NULL)
        return;
    trn_context *c = g->c;
    trn__free(c, g->nodes);
    trn__free(c, g->values);
    trn__free(c, g->inputs);
    trn__free(c, g->outputs);
    trn__free(c, g->literals);
    trn__free(c, g);
}

/* Memory for `room` elements with the first n copied from `old`, or NULL with
 * the error raised; `old` stays as it is. */
static void *regrown(trn_context *c, const void *old, int32_t n, int32_t room,
                     size_t element)
{
    size_t bytes = (size_t)room * element;
    void *memory = trn__alloc(c, bytes);
    if (memory == NULL) {
        trn__fail_memory(c, "graph", bytes);
        return NULL;
    }
    if (n > 0)
        memcpy(memory, old, (size_t)n * element);
    return memory;
}

/* `array` with room for n + more elements: itself, or a wider copy in its
 * place; NULL with the error raised. */
static void *reserve(trn_context *c, void *array, int32_t n, int more,
                     int32_t *room, size_t element)
{
    if (n > INT32_MAX / 4) {
        trn__fail(c, TRN_ERR_UNSUPPORTED,
                  "graph: %d entries; expected at most %d", (int)n,
                  (int)(INT32_MAX / 4));
        return NULL;
    }
    if (n + more <= *room)
        return array;
    int32_t wider = (n + more) * 2 < 16 ? 16 : (n + more) * 2;
    void *memory = regrown(c, array, n, wider, element);
    if (memory == NULL)
        return NULL;
    trn__free(c, array);
    *room = wider;
    return memory;
}

/* Makes room in an array of the graph; `moved` is a void * for its use. */
#define RESERVE(g, what, more, moved)                                  \
    (((moved) = reserve((g)->c, (g)->what, (g)->n_##what, more,        \
                        &(g)->room_##what, sizeof *(g)->what)) != NULL \
         ? ((g)->what = (moved), true)                                 \
         : false)

static bool copy_arrays(trn_graph *to, const trn_graph *from)
{
    to->nodes = regrown(to->c, from->nodes, from->n_nodes, from->n_nodes + 1,
                        sizeof *to->nodes);
    to->values = regrown(to->c, from->values, from->n_values,
                         from->n_values + 1, sizeof *to->values);
    to->inputs = regrown(to->c, from->inputs, from->n_inputs,
                         from->n_inputs + 1, sizeof *to->inputs);
    to->outputs = regrown(to->c, from->outputs, from->n_outputs,
                          from->n_outputs + 1, sizeof *to->outputs);
    to->literals = regrown(to->c, from->literals, from->n_literals,
                           from->n_literals + 1, sizeof *to->literals);
    to->room_literals = from->n_literals + 1;
    to->room_nodes = from->n_nodes + 1;
    to->room_values = from->n_values + 1;
    to->room_inputs = from->n_inputs + 1;
    to->room_outputs = from->n_outputs + 1;
    return to->nodes != NULL && to->values != NULL && to->inputs != NULL &&
           to->outputs != NULL && to->literals != NULL;
}

trn_graph *trn__graph_copy(const trn_graph *g)
{
    trn_graph *copy = trn__graph_new(g->c);
    if (copy == NULL)
        return NULL;
    *copy = *g;
    if (!copy_arrays(copy, g)) {
        trn__graph_free(copy);
        return NULL;
    }
    return copy;
}

/* Appends a value; there is room.  What is no view is row-major. */
static trn__graph_value *append_value(trn_graph *g, const trn_arg *like)
{
    trn__graph_value *v = &g->values[g->n_values];
    memset(v, 0, sizeof *v);
    v->node = v->input = v->state = v->output = v->last_use = -1;
    v->arena_at = -1;
    v->base = g->n_values++;
    v->arg.dtype = like->dtype;
    v->arg.rank = like->rank;
    for (uint32_t d = 0; d < like->rank; d++)
        v->arg.shape[d] = like->shape[d];
    trn__row_major(&v->arg);
    return v;
}

int32_t trn__graph_add_input(trn_graph *g, const trn__desc *desc)
{
    trn_arg arg = {.dtype = desc->dtype, .rank = desc->rank};
    void *moved;
    if (!RESERVE(g, inputs, 1, moved) || !RESERVE(g, values, 1, moved))
        return -1;
    memcpy(arg.shape, desc->shape, sizeof arg.shape);
    g->inputs[g->n_inputs] = g->n_values;
    append_value(g, &arg)->input = g->n_inputs;
    return g->inputs[g->n_inputs++];
}

/* The fields that the row decides, whatever the caller left in them. */
static void complete_node(trn_graph *g, trn__graph_node *n, int n_out)
{
    const trn__graph_op *op = trn__graph_op_of(n);
    uint32_t given = n->attrs_size;
    n->n_in = op->n_in;
    n->n_out = (uint8_t)n_out;
    n->n_scalars = op->n_values;
    n->attrs_size = op->attrs_size;
    if (given < sizeof n->attrs)
        memset((char *)n->attrs + given, 0, sizeof n->attrs - given);
    for (int i = n->n_in; i < TRN__MAX_IN; i++)
        n->in[i] = -1;
    for (int i = n_out; i < TRN__MAX_OUT; i++)
        n->out[i] = -1;
    for (int i = 0; i < TRN__MAX_VALUES; i++) {
        if (i >= n->n_scalars)
            n->scalar[i] = -1;
        else if (n->scalar[i] >= g->n_scalars)
            g->n_scalars = n->scalar[i] + 1;
    }
    if (op->cls != TRN__GRAPH_RANDOM)
        n->draw = -1;
    else if (n->draw >= g->n_draws)
        g->n_draws = n->draw + 1;
    n->dead = false;
    n->group = -1;
    n->fused_only = 0;
}

int32_t trn__graph_add_node(trn_graph *g, const trn__graph_node *node,
                            int n_out, const trn_arg *out)
{
    trn__graph_node given = *node; /* it may lie in the array that moves */
    void *moved;
    if (!RESERVE(g, nodes, 1, moved) ||
        !RESERVE(g, values, TRN__MAX_OUT, moved))
        return -1;
    trn__graph_node *n = &g->nodes[g->n_nodes];
    int32_t first = g->n_values;
    *n = given;
    complete_node(g, n, n_out);
    for (int i = 0; i < n_out; i++) {
        n->out[i] = g->n_values;
        trn__graph_value *v = append_value(g, &out[i]);
        v->node = g->n_nodes;
        if (!trn__graph_is_view(n))
            continue;
        /* A view's layout is given as tensors have it: offset and strides
         * count in the memory of the base, however many views lie between. So
         * views compose by taking over the base alone. */
        v->base = g->values[n->in[0]].base;
        v->arg.offset = out[i].offset;
        for (uint32_t d = 0; d < v->arg.rank; d++)
            v->arg.stride[d] = out[i].stride[d];
    }
    g->n_nodes++;
    return first;
}

trn_status trn__graph_add_literal(trn_graph *g, int32_t scalar, double value)
{
    TRN_ASSERT(g->n_literals == 0 ||
               g->literals[g->n_literals - 1].scalar < scalar);
    if (g->n_literals == g->room_literals) {
        int32_t room = g->room_literals < 8 ? 16 : 2 * g->room_literals;
        void *more = regrown(g->c, g->literals, g->n_literals, room,
                             sizeof *g->literals);
        if (more == NULL)
            return TRN_ERR_NOMEM;
        trn__free(g->c, g->literals);
        g->literals = more;
        g->room_literals = room;
    }
    g->literals[g->n_literals++] = (trn__graph_literal){scalar, value};
    return TRN_OK;
}

const trn__graph_literal *trn__graph_literal_of(const trn_graph *g, int32_t s)
{
    int32_t low = 0, high = g->n_literals;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (g->literals[middle].scalar < s)
            low = middle + 1;
        else
            high = middle;
    }
    return low < g->n_literals && g->literals[low].scalar == s
               ? &g->literals[low]
               : NULL;
}

trn_status trn__graph_add_output(trn_graph *g, int32_t value, int32_t alias)
{
    void *moved;
    if (!RESERVE(g, outputs, 1, moved))
        return g->c->status;
    g->outputs[g->n_outputs++] =
        (trn__graph_output){.value = value, .alias = alias};
    return TRN_OK;
}

/* ---- accessors ---- */

/* Copies as much as a caller of another version has room for. */
static bool give(void *out, void *filled, size_t size)
{
    uint32_t theirs;
    memcpy(&theirs, out, sizeof theirs);
    if (theirs < sizeof theirs)
        return false;
    size_t n = theirs < size ? theirs : size;
    uint32_t written = (uint32_t)n;
    memcpy(filled, &written, sizeof written);
    memcpy(out, filled, n);
    return true;
}

bool trn__graph_get_scalar(const trn_graph *g, int32_t i, trn_graph_scalar *out)
{
    if (i < 0 || i >= g->n_scalars)
        return false;
    const trn__graph_literal *l = trn__graph_literal_of(g, i);
    trn_graph_scalar scalar = {
        .is_literal = l != NULL,
        .value = l == NULL ? 0.0 : l->value,
    };
    return give(out, &scalar, sizeof scalar);
}

bool trn__graph_get_info(const trn_graph *g, trn_graph_info *out)
{
    trn_graph_info info = {
        .n_nodes = g->n_nodes,
        .n_values = g->n_values,
        .n_inputs = g->n_inputs,
        .n_outputs = g->n_outputs,
        .n_scalars = g->n_scalars,
        .n_draws = g->n_draws,
        .n_groups = g->n_groups,
        .arena_bytes = g->arena_bytes,
        .hash = g->hash,
    };
    return give(out, &info, sizeof info);
}

/* As much of a list as an array of `room` holds, then -1; false: not all. */
static bool first_of(const int32_t *list, uint32_t n, int32_t *array,
                     uint32_t room)
{
    for (uint32_t i = 0; i < room; i++)
        array[i] = i < n ? list[i] : -1;
    return n <= room;
}

bool trn__graph_give_node(trn_context *c, trn_graph_node *node,
                          trn_graph_node *out)
{
    const uint32_t room_in = sizeof node->in / sizeof node->in[0];
    const uint32_t room_out = sizeof node->out / sizeof node->out[0];
    const uint32_t room_scalar = sizeof node->scalar / sizeof node->scalar[0];
    bool whole = first_of(node->ins, node->n_in, node->in, room_in);
    whole &= first_of(node->outs, node->n_out, node->out, room_out);
    whole &=
        first_of(node->scalars, node->n_scalars, node->scalar, room_scalar);
    if (whole || out->size >= TRN__SIZE_WITH(trn_graph_node, scalars))
        return give(out, node, sizeof *node);
    trn__fail(c, TRN_ERR_UNSUPPORTED,
              "%s: a node with %u inputs, %u outputs and %u scalars; device %s "
              "is of an older version, which holds %u, %u and %u",
              trn__graph_ops[node->op].name, (unsigned)node->n_in,
              (unsigned)node->n_out, (unsigned)node->n_scalars,
              c->backend->name, (unsigned)room_in, (unsigned)room_out,
              (unsigned)room_scalar);
    return false;
}

bool trn__graph_get_node(const trn_graph *g, int32_t i, trn_graph_node *out)
{
    if (i < 0 || i >= g->n_nodes)
        return false;
    const trn__graph_node *n = &g->nodes[i];
    trn_graph_node node = {
        .op = n->op,
        .n_in = n->n_in,
        .n_out = n->n_out,
        .attrs = n->attrs,
        .attrs_size = n->attrs_size,
        .n_scalars = n->n_scalars,
        .draw = n->draw,
        .group = n->group,
        .fused_only = n->fused_only,
        .on_host = n->on_host,
        .origin = n->origin == 0 ? n->op : n->origin,
        .checks = trn__graph_node_checks(g, i),
        .ins = n->in,
        .outs = n->out,
        .scalars = n->scalar,
    };
    return trn__graph_give_node(g->c, &node, out);
}

bool trn__graph_get_value(const trn_graph *g, int32_t i, trn_graph_value *out)
{
    if (i < 0 || i >= g->n_values)
        return false;
    const trn__graph_value *v = &g->values[i];
    trn_graph_value value = {
        .node = v->node,
        .input = v->input,
        .arg = v->arg,
        .base = v->base,
        .state = v->state,
        .output = v->output,
        .arena_at = v->arena_at,
    };
    return give(out, &value, sizeof value);
}

bool trn__graph_get_output(const trn_graph *g, int32_t i, trn_graph_output *out)
{
    if (i < 0 || i >= g->n_outputs)
        return false;
    trn_graph_output output = {
        .value = g->outputs[i].value,
        .alias = g->outputs[i].alias,
    };
    return give(out, &output, sizeof output);
}

int32_t trn__graph_get_input(const trn_graph *g, int32_t i)
{
    return i < 0 || i >= g->n_inputs ? -1 : g->inputs[i];
}
