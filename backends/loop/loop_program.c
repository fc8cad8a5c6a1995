/* SPDX-License-Identifier: Apache-2.0
 *
 * compile: a graph, read through the host's accessors, becomes a program.
 *
 * The host's graph is trusted to be well formed only as far as no index of it
 * leads out of our lists: whatever does is refused.
 */
#include <string.h>

#include "loop.h"

/* What the rows say: which ops there are, which inputs they overwrite. */
static const uint8_t writes_of[TRN_OP_LIMIT] = {
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    [id] = writes,
#include "trn/ops.def"
};

static bool in_range(int32_t i, int32_t n)
{
    return i >= 0 && i < n;
}

static void *zeroed(trn_device *dev, size_t n, size_t size)
{
    size_t bytes = n == 0 ? size : n * size;
    void *memory = dev->host->alloc(dev->host->host, bytes);
    if (memory != NULL)
        memset(memory, 0, bytes);
    return memory;
}

static int32_t refused(trn_device *dev, const char *why)
{
    return trn__loop_fail(dev, TRN_ERR_INTERNAL, why);
}

static bool read_value(trn_device *dev, const trn_graph *g, int32_t i,
                       trn__loop_value *v, int32_t n_values)
{
    trn_graph_value given = {.size = sizeof given};
    if (!dev->host->graph_value(g, i, &given))
        return false;
    *v = (trn__loop_value){
        .arg = given.arg,
        .base = given.base,
        .input = given.input,
        .at = -1,
        .last = -1,
    };
    return in_range(v->base, n_values) && given.arg.rank <= TRN_MAX_RANK &&
           given.arg.dtype >= TRN_F64 && given.arg.dtype <= TRN_BOOL;
}

static bool too_wide(const trn_device *dev, const trn_program *p, int32_t value)
{
    uint32_t dtype = p->values[value].arg.dtype;
    return dev->options.strict && (dtype == TRN_F64 || dtype == TRN_I64);
}

/* Inputs and what nodes make, so that values nobody needs do not matter. */
static int32_t check_types(trn_device *dev, const trn_program *p)
{
    bool bad = false;
    for (int32_t i = 0; i < p->info.n_inputs; i++)
        bad |= too_wide(dev, p, p->inputs[i]);
    for (int32_t i = 0; i < p->info.n_nodes; i++) {
        const trn_graph_node *n = &p->nodes[i].as_given;
        for (uint32_t j = 0; j < n->n_out; j++)
            bad |= too_wide(dev, p, n->out[j]);
    }
    return bad ? trn__loop_fail(dev, TRN_ERR_DTYPE,
                                "loop: compile: a value is f64 or i64, which "
                                "this device (strict) does not compute")
               : TRN_OK;
}

static int32_t read_values(trn_device *dev, const trn_graph *g, trn_program *p)
{
    const trn_graph_info *info = &p->info;
    for (int32_t i = 0; i < info->n_values; i++) {
        if (!read_value(dev, g, i, &p->values[i], info->n_values))
            return refused(dev, "loop: compile: a value is not well formed");
    }
    for (int32_t i = 0; i < info->n_values; i++) {
        trn__loop_value *v = &p->values[i];
        while (p->values[v->base].base != v->base) /* a circle ends at v */
            v->base = p->values[v->base].base;
    }
    for (int32_t i = 0; i < info->n_inputs; i++) {
        p->inputs[i] = dev->host->graph_input(g, i);
        if (!in_range(p->inputs[i], info->n_values))
            return refused(dev, "loop: compile: an input has no value");
    }
    return TRN_OK;
}

static bool node_is_sound(const trn_program *p, const trn_graph_node *n)
{
    if (n->op >= TRN_OP_LIMIT || n->n_in > 8 || n->n_out > 4 ||
        n->n_scalars > 8 || n->draw >= p->info.n_draws)
        return false;
    for (uint32_t j = 0; j < n->n_in; j++)
        if (!in_range(n->in[j], p->info.n_values))
            return false;
    for (uint32_t j = 0; j < n->n_out; j++)
        if (!in_range(n->out[j], p->info.n_values))
            return false;
    for (uint32_t j = 0; j < n->n_scalars; j++)
        if (!in_range(n->scalar[j], p->info.n_scalars))
            return false;
    uint32_t writes = writes_of[n->op], n_writes = 0;
    for (uint32_t j = 0; j < 8; j++)
        n_writes += (writes >> j) & 1u;
    return n_writes == 0 || (n_writes == n->n_out && writes >> n->n_in == 0);
}

/* Attributes are kept, each at a multiple of 8, in one block. */
static size_t attrs_room(const trn_graph_node *n)
{
    return n->attrs == NULL ? 0 : ((size_t)n->attrs_size + 7) / 8 * 8;
}

static int32_t read_nodes(trn_device *dev, const trn_graph *g, trn_program *p)
{
    size_t room = 0;
    for (int32_t i = 0; i < p->info.n_nodes; i++) {
        trn__loop_node *n = &p->nodes[i];
        n->as_given.size = sizeof n->as_given;
        if (!dev->host->graph_node(g, i, &n->as_given) ||
            !node_is_sound(p, &n->as_given))
            return refused(dev, "loop: compile: a node is not well formed");
        n->writes = writes_of[n->as_given.op];
        n->idle = n->as_given.n_out == 1 &&
                  p->values[n->as_given.out[0]].base != n->as_given.out[0];
        room += attrs_room(&n->as_given);
    }
    p->attrs = zeroed(dev, room, 1);
    if (p->attrs == NULL)
        return trn__loop_fail(dev, TRN_ERR_NOMEM, "loop: compile: no memory");
    room = 0;
    for (int32_t i = 0; i < p->info.n_nodes; i++) {
        trn_graph_node *n = &p->nodes[i].as_given;
        if (n->attrs == NULL)
            continue;
        memcpy(p->attrs + room, n->attrs, n->attrs_size);
        n->attrs = p->attrs + room;
        room += attrs_room(n);
    }
    return TRN_OK;
}

static int32_t read_outputs(trn_device *dev, const trn_graph *g, trn_program *p)
{
    for (int32_t i = 0; i < p->info.n_outputs; i++) {
        trn_graph_output given = {.size = sizeof given};
        if (!dev->host->graph_output(g, i, &given) ||
            !in_range(given.value, p->info.n_values) ||
            given.alias >= p->info.n_inputs)
            return refused(dev, "loop: compile: an output is not well formed");
        p->outputs[i].value = given.value;
        p->outputs[i].alias = given.alias < 0 ? -1 : given.alias;
    }
    return TRN_OK;
}

static int32_t read_graph(trn_device *dev, const trn_graph *g, trn_program *p)
{
    const trn_graph_info *info = &p->info;
    p->info.size = sizeof p->info;
    if (!dev->host->graph_info(g, &p->info) || info->n_nodes < 0 ||
        info->n_values < 0 || info->n_inputs < 0 || info->n_outputs < 0)
        return refused(dev, "loop: compile: the graph has no numbers");
    p->nodes = zeroed(dev, (size_t)info->n_nodes, sizeof *p->nodes);
    p->values = zeroed(dev, (size_t)info->n_values, sizeof *p->values);
    p->inputs = zeroed(dev, (size_t)info->n_inputs, sizeof *p->inputs);
    p->outputs = zeroed(dev, (size_t)info->n_outputs, sizeof *p->outputs);
    if (p->nodes == NULL || p->values == NULL || p->inputs == NULL ||
        p->outputs == NULL)
        return trn__loop_fail(dev, TRN_ERR_NOMEM, "loop: compile: no memory");
    int32_t status = read_values(dev, g, p);
    if (status == TRN_OK)
        status = read_nodes(dev, g, p);
    if (status == TRN_OK)
        status = check_types(dev, p);
    if (status == TRN_OK)
        status = read_outputs(dev, g, p);
    if (status != TRN_OK)
        return status;
    if (!trn__loop_plan(dev, p))
        return trn__loop_fail(dev, TRN_ERR_NOMEM, "loop: compile: no memory");
    p->arena = trn__loop_pool_alloc(&dev->pool, p->arena_bytes + 1);
    if (p->arena == NULL)
        return trn__loop_fail(dev, TRN_ERR_NOMEM,
                              "loop: compile: the program's transient values "
                              "do not fit into the device's memory");
    return TRN_OK;
}

int32_t trn__loop_compile(trn_device *dev, const trn_graph *graph,
                          trn_program **program)
{
    *program = NULL;
    if (trn__loop_call(dev, TRN__LOOP_compile))
        return trn__loop_fail(dev, TRN_ERR_DEVICE,
                              "loop: compile failed, as asked for");
    trn__loop_sleep(dev->options.compile_ms);
    trn_program *p = zeroed(dev, 1, sizeof *p);
    if (p == NULL)
        return trn__loop_fail(dev, TRN_ERR_NOMEM, "loop: compile: no memory");
    int32_t status = read_graph(dev, graph, p);
    if (status == TRN_OK)
        *program = p;
    else
        trn__loop_release(dev, p);
    return status;
}

void trn__loop_release(trn_device *dev, trn_program *p)
{
    const trn_host_services *host = dev->host;
    if (p == NULL)
        return;
    trn__loop_drain(dev, NULL, p);
    trn__loop_pool_free(&dev->pool, p->arena);
    host->dealloc(host->host, p->nodes);
    host->dealloc(host->host, p->values);
    host->dealloc(host->host, p->inputs);
    host->dealloc(host->host, p->outputs);
    host->dealloc(host->host, p->attrs);
    host->dealloc(host->host, p);
}
