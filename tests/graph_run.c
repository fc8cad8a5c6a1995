/* SPDX-License-Identifier: Apache-2.0
 *
 * The interpreter of graph_build.h: values without memory of each other, and
 * the same graph prepared, in the memory that the passes gave it.
 *
 * The second run is as hostile as the interface allows: the arena holds
 * garbage, a group runs element by element, and every result is written as soon
 * as it is there.
 */
#include <stdlib.h>

#include "graph_build.h"

typedef struct run {
    const trn_graph *g;
    uint64_t **memory; /* of each value that is a base */
    uint64_t **inputs, **outputs, **own;
    uint64_t *arena;
} run;

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * UINT64_C(0xff51afd7ed558ccd) + 1;
    return h ^ (h >> 31);
}

static int64_t size_of(const trn_graph *g, int32_t v)
{
    return trn__numel(g->values[v].arg.rank, g->values[v].arg.shape);
}

static void *zeros(int64_t n)
{
    void *memory = calloc((size_t)n + 1, sizeof(uint64_t));
    assert_non_null(memory);
    return memory;
}

/* Element i of value v, in row-major order. */
static uint64_t *element(const run *r, int32_t v, int64_t i)
{
    const trn_arg *arg = &r->g->values[v].arg;
    int64_t at = arg->offset;
    for (uint32_t d = arg->rank; d-- > 0;) {
        at += i % arg->shape[d] * arg->stride[d];
        i /= arg->shape[d];
    }
    return r->memory[r->g->values[v].base] + at;
}

/* Element i of output k of node n. */
static uint64_t result(const run *r, const trn__graph_node *n, int k, int64_t i)
{
    bool one_by_one = trn__graph_ops[n->op].fuses || trn__graph_is_update(n);
    uint64_t h = mix(n->op, (uint64_t)k);
    if (n->op == TRN_OP_copy)
        return *element(r, n->in[0], i);
    if (n->op == TRN_OP_assign)
        return *element(r, n->in[1], i);
    for (uint32_t b = 0; b < TRN__MAX_ATTRS / 8; b++)
        h = mix(h, n->attrs[b]);
    for (int s = 0; s < n->n_scalars; s++)
        h = mix(h, (uint64_t)n->scalar[s]);
    h = mix(h, (uint64_t)n->draw);
    if (n->draw >= 0 || !one_by_one)
        h = mix(h, (uint64_t)i);
    for (int a = 0; a < n->n_in; a++) {
        if (one_by_one) {
            h = mix(h, *element(r, n->in[a], i));
            continue;
        }
        for (int64_t j = 0; j < size_of(r->g, n->in[a]); j++)
            h = mix(h, *element(r, n->in[a], j));
    }
    return h;
}

static void run_element(const run *r, const trn__graph_node *n, int64_t i)
{
    uint64_t words[TRN__MAX_OUT];
    for (int k = 0; k < n->n_out; k++)
        words[k] = result(r, n, k, i);
    for (int k = 0; k < n->n_out; k++)
        *element(r, n->out[k], i) = words[k];
}

/* Runs nodes [from, to), element by element. */
static void run_nodes(const run *r, int32_t from, int32_t to)
{
    if (trn__graph_is_view(&r->g->nodes[from]))
        return;
    for (int64_t i = 0; i < size_of(r->g, r->g->nodes[from].out[0]); i++) {
        for (int32_t q = from; q < to; q++)
            run_element(r, &r->g->nodes[q], i);
    }
}

static void open_run(run *r, const trn_graph *g)
{
    r->g = g;
    r->memory = zeros(g->n_values);
    r->own = zeros(g->n_values);
    r->inputs = zeros(g->n_inputs);
    r->outputs = zeros(g->n_outputs);
    r->arena = zeros((int64_t)g->arena_bytes / 8);
    for (uint64_t i = 0; i < g->arena_bytes / 8; i++)
        r->arena[i] = UINT64_C(0xdeadbeef);
    for (int32_t i = 0; i < g->n_inputs; i++) {
        int64_t n = size_of(g, g->inputs[i]);
        r->inputs[i] = zeros(n);
        for (int64_t k = 0; k < n; k++)
            r->inputs[i][k] = mix((uint64_t)i + 1000, (uint64_t)k);
    }
    for (int32_t i = 0; i < g->n_outputs; i++)
        r->outputs[i] = zeros(size_of(g, g->outputs[i].value));
}

static void close_run(run *r)
{
    for (int32_t v = 0; v < r->g->n_values; v++)
        free(r->own[v]);
    for (int32_t i = 0; i < r->g->n_inputs; i++)
        free(r->inputs[i]);
    for (int32_t i = 0; i < r->g->n_outputs; i++)
        free(r->outputs[i]);
    free(r->memory);
    free(r->own);
    free(r->inputs);
    free(r->outputs);
    free(r->arena);
}

static void run_values(run *r, const trn_graph *g)
{
    open_run(r, g);
    for (int32_t v = 0; v < g->n_values; v++) {
        r->own[v] = zeros(size_of(g, v));
        r->memory[v] =
            g->values[v].input >= 0 ? r->inputs[g->values[v].input] : r->own[v];
    }
    for (int32_t q = 0; q < g->n_nodes; q++)
        run_nodes(r, q, q + 1);
}

static bool is_fused_only(const trn_graph *g, int32_t v)
{
    const trn__graph_node *n = &g->nodes[g->values[v].node];
    for (int k = 0; k < n->n_out; k++) {
        if (n->out[k] == v)
            return (n->fused_only >> k) & 1u;
    }
    return false;
}

/* Where the interface says that base v lies. */
static uint64_t *place_of(run *r, int32_t v)
{
    trn_graph_value value = {.size = sizeof value};
    assert_true(trn__graph_get_value(r->g, v, &value));
    int places = (value.input >= 0) + (value.arena_at >= 0) +
                 (value.state >= 0 && value.input < 0);
    if (value.input >= 0)
        r->memory[v] = r->inputs[value.input];
    else if (value.state >= 0)
        r->memory[v] = r->inputs[value.state];
    else if (value.arena_at >= 0)
        r->memory[v] = r->arena + value.arena_at / 8;
    else if (value.output >= 0 && ++places)
        r->memory[v] = r->outputs[value.output];
    else if (is_fused_only(r->g, v) && ++places)
        r->memory[v] = r->own[v] = zeros(size_of(r->g, v));
    assert_int_equal(places, 1);
    return r->memory[v];
}

static void run_memory(run *r, const trn_graph *g)
{
    open_run(r, g);
    for (int32_t v = 0; v < g->n_values; v++) {
        if (g->values[v].base == v)
            assert_non_null(place_of(r, v));
    }
    for (int32_t q = 0, end; q < g->n_nodes; q = end) {
        const trn__graph_node *n = &g->nodes[q];
        for (end = q + 1; n->group >= 0 && end < g->n_nodes &&
                          g->nodes[end].group == n->group;)
            end++;
        for (int k = 0; trn__graph_is_update(n) && k < n->n_out; k++) {
            int32_t old = n->in[trn__graph_written(n, n->out[k])];
            assert_ptr_equal(element(r, old, 0), element(r, n->out[k], 0));
        }
        run_nodes(r, q, end);
    }
}

/* ---- checks ---- */

static int32_t group_edge(const trn_graph *g, int32_t q, int32_t step)
{
    while (g->nodes[q].group >= 0 && q + step >= 0 && q + step < g->n_nodes &&
           g->nodes[q + step].group == g->nodes[q].group)
        q += step;
    return q;
}

/* The moments from a base's making to its last reading, by looking at all. */
static void lifetime(const trn_graph *g, int32_t v, int32_t *from, int32_t *to)
{
    int32_t last = g->values[v].node;
    for (int32_t q = 0; q < g->n_nodes; q++) {
        for (int i = 0; i < g->nodes[q].n_in; i++) {
            if (g->values[g->nodes[q].in[i]].base == v && q > last)
                last = q;
        }
    }
    *from = group_edge(g, g->values[v].node, -1);
    *to = group_edge(g, last, 1);
}

static bool overwrites(const trn_graph *g, int32_t w, int32_t old)
{
    const trn__graph_node *n = &g->nodes[g->values[w].node];
    return trn__graph_is_update(n) &&
           g->values[n->in[trn__graph_written(n, w)]].base == old;
}

static void check_pair(const trn_graph *g, int32_t a, int32_t b)
{
    const trn__graph_value *x = &g->values[a], *y = &g->values[b];
    int32_t from_a, to_a, from_b, to_b;
    if (x->arena_at + trn__graph_value_bytes(g, a) <= y->arena_at ||
        y->arena_at + trn__graph_value_bytes(g, b) <= x->arena_at ||
        overwrites(g, a, b) || overwrites(g, b, a))
        return;
    lifetime(g, a, &from_a, &to_a);
    lifetime(g, b, &from_b, &to_b);
    CHECK(to_a < from_b || to_b < from_a, "%%%d and %%%d overlap:\n%s\n", a, b,
          graph_text(g));
}

static void check_groups(const trn_graph *g)
{
    for (int32_t q = 0; q < g->n_nodes; q++) {
        const trn__graph_node *n = &g->nodes[q];
        assert_false(n->dead);
        for (int i = 0; i < n->n_in; i++)
            assert_true(g->values[n->in[i]].node < q);
        if (n->group < 0)
            continue;
        assert_true(trn__graph_ops[n->op].fuses && n->group < g->n_groups);
        int32_t first = group_edge(g, q, -1), last = group_edge(g, q, 1);
        assert_in_range(last - first + 1, 2, TRN__GROUP_NODES);
        for (int32_t p = 0; p < g->n_nodes; p++) {
            if (g->nodes[p].group == n->group)
                assert_in_range(p, first, last);
        }
    }
}

void graph_check(const trn_graph *g)
{
    uint64_t peak = 0;
    for (int32_t v = 0; v < g->n_values; v++) {
        const trn__graph_value *x = &g->values[v];
        if (x->arena_at < 0)
            continue;
        assert_int_equal(x->arena_at % 64, 0);
        uint64_t end = (uint64_t)(x->arena_at + trn__graph_value_bytes(g, v));
        peak = end > peak ? end : peak;
        for (int32_t w = 0; w < v; w++) {
            if (g->values[w].arena_at >= 0)
                check_pair(g, v, w);
        }
    }
    assert_int_equal((peak + 63) / 64 * 64, g->arena_bytes);
    check_groups(g);
}

static void compare(const run *a, const run *b)
{
    const trn_graph *g = a->g;
    for (int32_t i = 0; i < g->n_inputs; i++) {
        int32_t v = g->inputs[i];
        for (int32_t o = 0; o < g->n_outputs; o++) {
            if (g->outputs[o].alias == i)
                v = g->outputs[o].value;
        }
        for (int64_t k = 0; k < size_of(g, v); k++)
            CHECK(*element(a, v, k) == b->inputs[i][k],
                  "input %d, element %d\n%s\n", i, (int)k, graph_text(b->g));
    }
    for (int32_t o = 0; o < g->n_outputs; o++) {
        int32_t v = g->outputs[o].value, w = b->g->outputs[o].value;
        int32_t alias = b->g->outputs[o].alias;
        assert_int_equal(b->g->values[w].output, o);
        assert_ptr_equal(element(b, w, 0),
                         alias >= 0 ? b->inputs[alias] : b->outputs[o]);
        for (int64_t k = 0; k < size_of(g, v); k++)
            CHECK(*element(a, v, k) == *element(b, w, k),
                  "output %d, element %d\n%s\n", o, (int)k, graph_text(b->g));
    }
}

trn_graph *graph_prepared(const trn_graph *g)
{
    run values, memory;
    trn_graph *copy = trn__graph_copy(g);
    assert_non_null(copy);
    assert_int_equal(trn__graph_prepare(copy), TRN_OK);
    assert_int_equal(copy->hash, trn__graph_hash(g));
    graph_check(copy);
    run_values(&values, g);
    run_memory(&memory, copy);
    compare(&values, &memory);
    close_run(&values);
    close_run(&memory);
    return copy;
}
