/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiling a graph for the CPU: it is read once, through the host's accessors,
 * into a program of the device's own.
 *
 * Invariants of a program: every value's `base` owns its memory; an UPDATE
 * step's overwritten inputs lie in the memory of the values that it gives;
 * every output of the graph ends in its buffer.  Where the graph's memory plan
 * does not have it so, a copy step is put in.
 */
#include "backends/cpu/cpu_program.h"

#include <string.h>

static const uint8_t class_table[TRN_OP_LIMIT] = {
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    [TRN_OP_##nm] = TRN__CPU_CLASS_##cls,
#include "trn/ops.def"
};

static const uint8_t writes_table[TRN_OP_LIMIT] = {
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    [TRN_OP_##nm] = (writes),
#include "trn/ops.def"
};

trn__cpu_class trn__cpu_class_of(uint32_t op)
{
    return op < TRN_OP_LIMIT ? (trn__cpu_class)class_table[op]
                             : TRN__CPU_CLASS_NONE;
}

/* What compile knows while it reads. */
typedef struct reading {
    trn_device *dev;
    const trn_host_services *host;
    const trn_graph *g;
    trn_graph_info info;
    trn_program *p;
    char *attrs; /* room for copies of attributes */
    /* how much the program will hold, at most */
    size_t n_values, n_steps, n_pieces, attrs_bytes;
} reading;

static int32_t malformed(const reading *r)
{
    return r->host->fail(r->host->host, TRN_ERR_INTERNAL,
                         "the CPU device was given a malformed graph");
}

static size_t up8(size_t bytes)
{
    return (bytes + 7) & ~(size_t)7;
}

static bool get_node(const reading *r, int32_t i, trn_graph_node *node)
{
    *node = (trn_graph_node){.size = (uint32_t)sizeof *node};
    return r->host->graph_node(r->g, i, node) &&
           node->n_in <= TRN__CPU_MAX_IN && node->n_out <= TRN__CPU_MAX_OUT &&
           node->n_scalars <= TRN__CPU_MAX_SCALARS;
}

/* ---- values ---- */

static void span_of(trn__cpu_value *v)
{
    const trn_arg *a = &v->arg;
    const int64_t size = (int64_t)trn__cpu_size(a->dtype);
    v->low = v->high = 0;
    if (trn__cpu_numel(a) == 0)
        return;
    int64_t low = a->offset, high = low;
    for (uint32_t d = 0; d < a->rank; d++) {
        const int64_t reach = (a->shape[d] - 1) * a->stride[d];
        if (reach < 0)
            low += reach;
        else
            high += reach;
    }
    v->low = low * size;
    v->high = (high + 1) * size;
}

/* The memory of a value that is no view; -1 where a number is wrong. */
static int place_owner(const reading *r, const trn_graph_value *from,
                       trn__cpu_value *v)
{
    trn_graph_output o = {.size = (uint32_t)sizeof o, .alias = -1};
    if (from->output >= 0 && !r->host->graph_output(r->g, from->output, &o))
        return -1;
    if (from->state >= 0 || from->input >= 0 || o.alias >= 0) {
        v->where = TRN__CPU_INPUT;
        v->number = from->state >= 0   ? from->state
                    : from->input >= 0 ? from->input
                                       : o.alias;
        return v->number < r->info.n_inputs ? 0 : -1;
    }
    if (from->output >= 0) {
        v->where = TRN__CPU_OUTPUT;
        v->number = from->output;
    } else if (from->arena_at >= 0) {
        v->where = TRN__CPU_ARENA;
        v->at = (uint64_t)from->arena_at;
    }
    return 0;
}

static bool read_value(const reading *r, int32_t i)
{
    trn__cpu_value *v = &r->p->values[i];
    trn_graph_value from = {.size = (uint32_t)sizeof from};
    if (!r->host->graph_value(r->g, i, &from) ||
        from.arg.dtype - TRN_F64 > TRN_BOOL - TRN_F64 ||
        from.arg.rank > TRN_MAX_RANK || from.base < 0 ||
        from.base >= r->info.n_values)
        return false;
    *v = (trn__cpu_value){
        .arg = from.arg,
        .base = from.base,
        .last_use = -1,
        .maker = -1,
        .slot = -1,
    };
    v->arg.buffer = NULL;
    span_of(v);
    return from.base != i || place_owner(r, &from, v) == 0;
}

static bool read_values(const reading *r)
{
    trn__cpu_value *values = r->p->values;
    for (int32_t i = 0; i < r->info.n_values; i++)
        if (!read_value(r, i))
            return false;
    for (int32_t i = 0; i < r->info.n_values; i++) {
        int32_t hops = 0;
        while (values[values[i].base].base != values[i].base) {
            values[i].base = values[values[i].base].base;
            if (++hops > r->info.n_values)
                return false;
        }
    }
    r->p->n_values = r->info.n_values;
    return true;
}

/* ---- steps ---- */

static bool same_memory(const trn_program *p, int32_t a, int32_t b)
{
    const trn__cpu_value *x = &p->values[p->values[a].base];
    const trn__cpu_value *y = &p->values[p->values[b].base];
    return x == y || (x->where != TRN__CPU_NOWHERE && x->where == y->where &&
                      x->number == y->number && x->at == y->at);
}

static trn__cpu_step *add_step(const reading *r, uint32_t op, int32_t node)
{
    trn__cpu_step *s = &r->p->steps[r->p->n_steps];
    *s = (trn__cpu_step){
        .op = op,
        .node = node,
        .draw = -1,
        .group = -1,
        .head = r->p->n_steps,
        .span = 1,
    };
    r->p->n_steps++;
    return s;
}

static void finish_step(const reading *r, trn__cpu_step *s)
{
    trn__cpu_value *values = r->p->values;
    const int32_t at = (int32_t)(s - r->p->steps);
    const uint32_t writes = writes_table[s->op];
    for (uint32_t i = 0; i < s->n_in; i++) {
        trn__cpu_value *owner = &values[values[s->in[i]].base];
        owner->last_use = at;
        if (writes >> i & 1u)
            s->writes_input |= owner->where == TRN__CPU_INPUT;
    }
    for (uint32_t i = 0; i < s->n_out; i++) {
        trn__cpu_value *v = &values[s->out[i]];
        v->maker = at;
        if (writes == 0)
            s->writes_input |= values[v->base].where == TRN__CPU_INPUT;
    }
}

static void add_copy(const reading *r, int32_t node, int32_t from, int32_t to)
{
    trn__cpu_step *s = add_step(r, TRN_OP_copy, node);
    s->n_in = s->n_out = 1;
    s->in[0] = from;
    s->out[0] = to;
    finish_step(r, s);
}

/* The old value stays whole where the new one has memory of its own. */
static void move_written(const reading *r, int32_t i, trn_graph_node *node)
{
    const uint32_t writes = writes_table[node->op];
    for (uint32_t k = 0, o = 0; k < node->n_in; k++) {
        if ((writes >> k & 1u) == 0 || o == node->n_out)
            continue;
        const int32_t to = node->out[o++];
        if (same_memory(r->p, node->in[k], to))
            continue;
        add_copy(r, i, node->in[k], to);
        node->in[k] = to;
    }
}

static bool in_range(const reading *r, const trn_graph_node *node)
{
    for (uint32_t k = 0; k < node->n_in; k++)
        if (node->in[k] < 0 || node->in[k] >= r->info.n_values)
            return false;
    for (uint32_t k = 0; k < node->n_out; k++)
        if (node->out[k] < 0 || node->out[k] >= r->info.n_values)
            return false;
    for (uint32_t k = 0; k < node->n_scalars; k++)
        if (node->scalar[k] < 0 || node->scalar[k] >= r->info.n_scalars)
            return false;
    return node->draw < r->info.n_draws;
}

/* A view costs nothing because its value lies in its input's memory. */
static bool is_view(const reading *r, const trn_graph_node *node)
{
    return node->n_in == 1 && node->n_out == 1 &&
           same_memory(r->p, node->in[0], node->out[0]);
}

static int32_t read_node(reading *r, int32_t i)
{
    trn_graph_node node;
    if (!get_node(r, i, &node) || !in_range(r, &node))
        return malformed(r);
    const trn__cpu_class cls = trn__cpu_class_of(node.op);
    const trn_op_call question = {.op = node.op};
    if (cls == TRN__CPU_CLASS_VIEW)
        return is_view(r, &node) ? TRN_OK : malformed(r);
    if (!trn__cpu_supports(r->dev, &question))
        return r->host->fail(r->host->host, TRN_ERR_UNSUPPORTED,
                             "the CPU device has no kernel for an op of the "
                             "graph");
    if (cls == TRN__CPU_CLASS_UPDATE)
        move_written(r, i, &node);
    trn__cpu_step *s = add_step(r, node.op, i);
    s->n_in = node.n_in;
    s->n_out = node.n_out;
    s->n_scalars = node.n_scalars;
    memcpy(s->in, node.in, sizeof s->in);
    memcpy(s->out, node.out, sizeof s->out);
    memcpy(s->scalar, node.scalar, sizeof s->scalar);
    s->draw = node.draw;
    s->group = node.group;
    s->checks = node.checks != 0;
    if (node.attrs != NULL && node.attrs_size > 0) {
        s->attrs = memcpy(r->attrs, node.attrs, node.attrs_size);
        s->attrs_size = node.attrs_size;
        r->attrs += up8(node.attrs_size);
    }
    finish_step(r, s);
    return TRN_OK;
}

/* An output whose value does not lie in its buffer is copied there at last. */
static bool place_output(const reading *r, int32_t i)
{
    trn_program *p = r->p;
    trn_graph_output o = {.size = (uint32_t)sizeof o};
    if (!r->host->graph_output(r->g, i, &o) || o.value < 0 ||
        o.value >= r->info.n_values || o.alias >= r->info.n_inputs)
        return false;
    const trn__cpu_value *v = &p->values[o.value];
    trn__cpu_value *to = &p->values[p->n_values];
    *to = (trn__cpu_value){
        .arg = v->arg,
        .base = p->n_values,
        .where = o.alias >= 0 ? TRN__CPU_INPUT : TRN__CPU_OUTPUT,
        .number = o.alias >= 0 ? o.alias : i,
        .last_use = -1,
        .maker = -1,
        .slot = -1,
    };
    if (same_memory(p, o.value, p->n_values) || trn__cpu_numel(&v->arg) == 0)
        return true;
    int64_t next = 1;
    to->arg.offset = 0;
    for (uint32_t d = to->arg.rank; d-- > 0;) {
        to->arg.stride[d] = next;
        next *= to->arg.shape[d];
    }
    span_of(to);
    add_copy(r, v->maker < 0 ? -1 : p->steps[v->maker].node, o.value,
             p->n_values++);
    return true;
}

/* ---- the program ---- */

/* How much room the nodes need. */
static bool measure(reading *r)
{
    trn_graph_node node;
    r->n_values = (size_t)r->info.n_values + (size_t)r->info.n_outputs;
    r->n_steps = (size_t)r->info.n_nodes + (size_t)r->info.n_outputs;
    for (int32_t i = 0; i < r->info.n_nodes; i++) {
        if (!get_node(r, i, &node))
            return false;
        if (trn__cpu_class_of(node.op) == TRN__CPU_CLASS_UPDATE)
            r->n_steps += node.n_out;
        r->n_pieces += node.group >= 0;
        r->attrs_bytes += up8(node.attrs_size);
    }
    return true;
}

static bool allocate(reading *r)
{
    const size_t values = r->n_values * sizeof(trn__cpu_value);
    const size_t steps = r->n_steps * sizeof(trn__cpu_step);
    const size_t pieces = r->n_pieces * sizeof(trn__cpu_piece);
    char *at =
        trn__cpu_alloc(r->dev, up8(sizeof *r->p) + up8(values) + up8(steps) +
                                   up8(pieces) + r->attrs_bytes);
    if (at == NULL)
        return false;
    r->p = (trn_program *)(void *)at;
    *r->p = (trn_program){
        .n_inputs = r->info.n_inputs,
        .n_outputs = r->info.n_outputs,
        .n_scalars = r->info.n_scalars,
        .n_draws = r->info.n_draws,
        .arena_bytes = r->info.arena_bytes,
        .keep_at = -1,
    };
    at += up8(sizeof *r->p);
    r->p->values = (trn__cpu_value *)(void *)at;
    at += up8(values);
    r->p->steps = (trn__cpu_step *)(void *)at;
    at += up8(steps);
    r->p->pieces = (trn__cpu_piece *)(void *)at;
    r->attrs = at + up8(pieces);
    return true;
}

static int32_t read_graph(reading *r)
{
    if (!read_values(r))
        return malformed(r);
    for (int32_t i = 0; i < r->info.n_nodes; i++) {
        const int32_t status = read_node(r, i);
        if (status != TRN_OK)
            return status;
    }
    for (int32_t i = 0; i < r->info.n_outputs; i++)
        if (!place_output(r, i))
            return malformed(r);
    return TRN_OK;
}

int32_t trn__cpu_compile(trn_device *dev, const trn_graph *graph,
                         trn_program **program)
{
    reading r = {
        .dev = dev,
        .host = dev->host,
        .g = graph,
        .info = {.size = (uint32_t)sizeof r.info},
    };
    *program = NULL;
    if (!r.host->graph_info(graph, &r.info) || r.info.n_nodes < 0 ||
        r.info.n_values < 0 || r.info.n_inputs < 0 || r.info.n_outputs < 0 ||
        !measure(&r))
        return malformed(&r);
    if (!allocate(&r))
        return trn__cpu_no_memory(dev);
    const int32_t status = read_graph(&r);
    if (status != TRN_OK) {
        trn__cpu_release(dev, r.p);
        return status;
    }
    trn__cpu_fuse(dev, r.p);
    trn__cpu_find_kept(r.p);
    trn__cpu_find_workspace(dev, r.p);
    *program = r.p;
    return TRN_OK;
}

void trn__cpu_release(trn_device *dev, trn_program *program)
{
    if (program != NULL)
        trn__cpu_free(dev, program);
}
