/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the values of a program lie while it runs.
 *
 * Inputs lie in the host's buffers, which are only read until every node has
 * succeeded; all else, new values of states included, lies in an arena.  The
 * plan that comes with the graph is not used: it may lay values of a fusion
 * group over each other, and nodes are run one by one here.
 */
#include "loop.h"

#define ALIGNMENT 64

typedef struct region {
    uint64_t at, bytes;
    int32_t last;
} region;

/* Bytes from a base's first byte to the end of the value's last element. */
static uint64_t reach(const trn_arg *a)
{
    int64_t last = a->offset;
    for (uint32_t d = 0; d < a->rank; d++) {
        if (a->shape[d] == 0)
            return 0;
        last += (a->shape[d] - 1) * a->stride[d];
    }
    return ((uint64_t)last + 1) * trn__loop_size(a->dtype);
}

static uint64_t packed(const trn_arg *a)
{
    uint64_t bytes = trn__loop_size(a->dtype);
    for (uint32_t d = 0; d < a->rank; d++)
        bytes *= (uint64_t)a->shape[d];
    return bytes;
}

static void needed_until(trn_program *p, int32_t value, int32_t node)
{
    trn__loop_value *base = &p->values[p->values[value].base];
    base->last = node > base->last ? node : base->last;
}

static void measure(trn_program *p)
{
    for (int32_t v = 0; v < p->info.n_values; v++) {
        trn__loop_value *base = &p->values[p->values[v].base];
        uint64_t bytes = reach(&p->values[v].arg);
        base->bytes = bytes > base->bytes ? bytes : base->bytes;
    }
    for (int32_t i = 0; i < p->info.n_nodes; i++) {
        const trn_graph_node *n = &p->nodes[i].as_given;
        for (uint32_t j = 0; j < n->n_in; j++)
            needed_until(p, n->in[j], i);
        for (uint32_t j = 0; j < n->n_out; j++)
            needed_until(p, n->out[j], i);
    }
    for (int32_t o = 0; o < p->info.n_outputs; o++)
        needed_until(p, p->outputs[o].value, p->info.n_nodes);
}

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
}

/* Puts a region into the lowest gap of those in use, which are in order. */
static void place(region *used, int32_t *n, trn__loop_value *v)
{
    region r = {.at = 0, .bytes = rounded(v->bytes), .last = v->last};
    int32_t i = 0;
    while (i < *n && used[i].at - r.at < r.bytes) {
        r.at = used[i].at + used[i].bytes;
        i++;
    }
    for (int32_t k = *n; k > i; k--)
        used[k] = used[k - 1];
    used[i] = r;
    ++*n;
    v->at = (int64_t)r.at;
}

static void drop(region *used, int32_t *n, int32_t node)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < *n; i++) {
        if (used[i].last > node)
            used[kept++] = used[i];
    }
    *n = kept;
}

/* An output that is read from the memory of an input must be set aside before
 * any input is written. */
static void stage_outputs(trn_program *p)
{
    for (int32_t i = 0; i < p->info.n_outputs; i++) {
        trn__loop_output *o = &p->outputs[i];
        const trn__loop_value *v = &p->values[o->value];
        o->staged = -1;
        o->same = o->alias >= 0 && v->input == o->alias;
        if (o->alias < 0)
            continue;
        p->undo_bytes += rounded(p->values[p->inputs[o->alias]].bytes);
        if (o->same || p->values[v->base].input < 0)
            continue;
        o->staged = (int64_t)p->arena_bytes;
        p->arena_bytes += rounded(packed(&v->arg));
    }
}

bool trn__loop_plan(trn_device *dev, trn_program *p)
{
    const trn_host_services *host = dev->host;
    region *used =
        host->alloc(host->host, (size_t)(p->info.n_values + 1) * sizeof *used);
    int32_t n = 0;
    if (used == NULL)
        return false;
    measure(p);
    for (int32_t i = 0; i < p->info.n_nodes; i++) {
        const trn_graph_node *node = &p->nodes[i].as_given;
        for (uint32_t j = 0; j < node->n_out; j++) {
            trn__loop_value *v = &p->values[node->out[j]];
            if (v->base == node->out[j])
                place(used, &n, v);
        }
        if (n > 0) {
            uint64_t end = used[n - 1].at + used[n - 1].bytes;
            p->arena_bytes = end > p->arena_bytes ? end : p->arena_bytes;
        }
        drop(used, &n, i);
    }
    host->dealloc(host->host, used);
    stage_outputs(p);
    return true;
}
