/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of the loop device alone: its table by dlopen, a host that is a
 * context with made-up graph accessors, and graphs made by hand.
 */
#ifndef TRN_TESTS_LOOP_HOST_H
#define TRN_TESTS_LOOP_HOST_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness.h"
#include "libtrn/context/context.h"

enum { MAX_NODES = 64, MAX_VALUES = 96, MAX_PORTS = 8, MAX_SCALARS = 8 };

/* A graph as a device sees it. */
typedef struct fake_graph {
    trn_graph_info info;
    trn_graph_node node[MAX_NODES];
    trn_graph_value value[MAX_VALUES];
    int32_t input[MAX_PORTS];
    trn_graph_output output[MAX_PORTS];
} fake_graph;

static const trn_backend *loop_table;
static uint64_t (*loop_counter)(const char *name);

/* One device with its host. */
typedef struct loop_host {
    trn_context *c; /* on the CPU: its services, and run_op to compare with */
    trn_host_services services;
    trn_device *dev;
    char message[256]; /* what the device said last */
} loop_host;

static loop_host *speaking;

static inline const fake_graph *fake(const trn_graph *g)
{
    return (const fake_graph *)(const void *)g;
}

static inline const trn_graph *as_graph(const fake_graph *g)
{
    return (const trn_graph *)(const void *)g;
}

static inline bool fake_info(const trn_graph *g, trn_graph_info *out)
{
    *out = fake(g)->info;
    return true;
}

static inline bool fake_node(const trn_graph *g, int32_t i, trn_graph_node *out)
{
    if (i < 0 || i >= fake(g)->info.n_nodes)
        return false;
    *out = fake(g)->node[i];
    return true;
}

static inline bool fake_value(const trn_graph *g, int32_t i,
                              trn_graph_value *out)
{
    if (i < 0 || i >= fake(g)->info.n_values)
        return false;
    *out = fake(g)->value[i];
    return true;
}

static inline bool fake_output(const trn_graph *g, int32_t i,
                               trn_graph_output *out)
{
    if (i < 0 || i >= fake(g)->info.n_outputs)
        return false;
    *out = fake(g)->output[i];
    return true;
}

static inline int32_t fake_input(const trn_graph *g, int32_t i)
{
    return fake(g)->input[i];
}

static inline int32_t fake_fail(void *host, int32_t status, const char *message)
{
    (void)host;
    snprintf(speaking->message, sizeof speaking->message, "%s", message);
    return status;
}

/* "<folder of this program>/../trn-loop.so", or what TRN_LOOP_PATH names */
static inline int loop_load(void **state)
{
    char path[4200];
    trn_plugin_fn entry;
    (void)state;
    const char *given = getenv("TRN_LOOP_PATH");
    ssize_t n = readlink("/proc/self/exe", path, 4000);
    if (n <= 0)
        return -1;
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    snprintf(slash, 32, "/../trn-loop.so");
    void *object = dlopen(given == NULL ? path : given, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL)
        return -1;
    void *symbol = dlsym(object, TRN_PLUGIN_ENTRY);
    memcpy(&entry, &symbol, sizeof entry);
    symbol = dlsym(object, "trn_loop_counter");
    memcpy(&loop_counter, &symbol, sizeof loop_counter);
    loop_table = entry(TRN_BACKEND_VERSION);
    /* It stays loaded until the program ends. */
    /* cppcheck-suppress resourceLeak */
    return loop_table == NULL || loop_counter == NULL ? -1 : 0;
}

/* The host of a device for the context of the test. */
static inline void loop_host_make(loop_host *h, trn_context *c)
{
    *h = (loop_host){.c = c, .services = c->services};
    h->services.graph_info = fake_info;
    h->services.graph_node = fake_node;
    h->services.graph_value = fake_value;
    h->services.graph_output = fake_output;
    h->services.graph_input = fake_input;
    h->services.fail = fake_fail;
    speaking = h;
}

/* Opens a device with these options. */
static inline int32_t loop_open(loop_host *h, trn_context *c,
                                const char *options)
{
    loop_host_make(h, c);
    return loop_table->open(&h->services, options, &h->dev);
}

static inline void loop_start(loop_host *h, trn_context *c, const char *options)
{
    int32_t status = loop_open(h, c, options);
    CHECK(status == TRN_OK, "%s\n", h->message);
}

/* ---- graphs ---- */

/* A packed operand of that shape. */
static inline trn_arg packed(uint32_t dtype, int rank, const int64_t *shape)
{
    trn_arg a = {.dtype = dtype, .rank = (uint32_t)rank};
    int64_t next = 1;
    for (int d = rank - 1; d >= 0; d--) {
        a.shape[d] = shape[d];
        a.stride[d] = next;
        next *= shape[d];
    }
    return a;
}

static inline void graph_begin(fake_graph *g)
{
    memset(g, 0, sizeof *g);
    g->info.size = sizeof g->info;
}

/* base -1: memory of its own */
static inline int32_t graph_value(fake_graph *g, int32_t node, trn_arg arg,
                                  int32_t base)
{
    int32_t v = g->info.n_values++;
    assert_true(v < MAX_VALUES);
    g->value[v] = (trn_graph_value){
        .size = sizeof g->value[v],
        .node = node,
        .input = -1,
        .arg = arg,
        .base = base < 0 ? v : base,
        .state = -1,
        .output = -1,
        .arena_at = -1,
    };
    return v;
}

static inline int32_t graph_input(fake_graph *g, trn_arg arg)
{
    int32_t v = graph_value(g, -1, arg, -1);
    g->value[v].input = g->info.n_inputs;
    g->input[g->info.n_inputs++] = v;
    return v;
}

/* A node on inputs in[0 .. n_in-1], those of -1 excluded; its output. */
static inline int32_t graph_node(fake_graph *g, uint32_t op, int32_t a,
                                 int32_t b, trn_arg out, int32_t base)
{
    int32_t i = g->info.n_nodes++;
    assert_true(i < MAX_NODES);
    trn_graph_node *n = &g->node[i];
    *n = (trn_graph_node){
        .size = sizeof *n,
        .op = op,
        .n_in = (uint32_t)(a >= 0) + (uint32_t)(b >= 0),
        .n_out = 1,
        .in = {a, b},
        .draw = -1,
        .group = -1,
    };
    n->out[0] = graph_value(g, i, out, base);
    return n->out[0];
}

/* Attributes and n_scalars further scalars for the node made last. */
static inline void graph_attrs(fake_graph *g, const void *attrs, uint32_t size,
                               uint32_t n_scalars)
{
    trn_graph_node *n = &g->node[g->info.n_nodes - 1];
    n->attrs = attrs;
    n->attrs_size = size;
    n->n_scalars = n_scalars;
    for (uint32_t i = 0; i < n_scalars; i++)
        n->scalar[i] = g->info.n_scalars++;
}

static inline void graph_output(fake_graph *g, int32_t value, int32_t alias)
{
    g->output[g->info.n_outputs++] = (trn_graph_output){
        .size = sizeof g->output[0],
        .value = value,
        .alias = alias,
    };
}

/* ---- memory ---- */

static inline trn_buffer *put(loop_host *h, const void *data, uint64_t bytes)
{
    trn_buffer *b = loop_table->alloc(h->dev, bytes);
    assert_non_null(b);
    if (data != NULL)
        assert_int_equal(loop_table->write(h->dev, b, 0, data, bytes), TRN_OK);
    return b;
}

static inline void take(loop_host *h, const trn_buffer *b, void *data,
                        uint64_t bytes)
{
    assert_int_equal(loop_table->read(h->dev, b, 0, data, bytes), TRN_OK);
}

static inline int32_t outcome_of(loop_host *h, uint64_t ticket,
                                 trn_outcome *out)
{
    *out = (trn_outcome){.size = sizeof *out};
    int32_t status = loop_table->wait(h->dev, ticket, out);
    assert_int_equal(out->status, status);
    return status;
}

#endif
