/* SPDX-License-Identifier: Apache-2.0
 *
 * State: which memory the values of UPDATE rows lie in.
 *
 * In a graph a write makes a new value; a device writes in place.  For each
 * output that replaces an input (alias), the writes that lead from the input
 * to it form its chain; they all take place in the input's memory (state).  A
 * chain that does not begin at the input gets a last `assign` into it.  Other
 * writes take over the memory of what they overwrite if nobody else needs
 * that, and are given a copy to overwrite if somebody does.  An input that is
 * no output's alias is never written.  Who reads a state's old value is put
 * before the write, or reads a copy if it needs the new value too.
 *
 * After this pass, in the order of the list and in every order that keeps
 * readers of an overwritten value before its overwriting, writes in place give
 * what values without memory would give.
 */
#include <string.h>

#include "libtrn/graph/graph_pass.h"

/* Walks from v against the writes to input `alias`, which begins the chain;
 * marks the values on the way if asked to.  Is it reached? */
static bool walk_chain(trn_graph *g, int32_t v, int32_t alias, bool mark)
{
    for (;;) {
        if (!trn__graph_is_whole(g, v))
            return false;
        int32_t b = g->values[v].base;
        if (b == g->inputs[alias])
            return true;
        int32_t maker = g->values[b].node;
        if (maker < 0 || !trn__graph_is_update(&g->nodes[maker]))
            return false;
        if (mark)
            g->values[b].state = alias;
        const trn__graph_node *n = &g->nodes[maker];
        v = n->in[trn__graph_written(n, b)];
    }
}

static trn_status mark_chains(trn_graph *g)
{
    for (int32_t i = 0; i < g->n_outputs; i++) {
        trn__graph_output *o = &g->outputs[i];
        if (o->alias < 0)
            continue;
        if (walk_chain(g, o->value, o->alias, false)) {
            walk_chain(g, o->value, o->alias, true);
            continue;
        }
        trn__graph_node assign;
        memset(&assign, 0, sizeof assign);
        assign.op = TRN_OP_assign;
        assign.in[0] = g->inputs[o->alias];
        assign.in[1] = o->value;
        trn_arg out = g->values[g->inputs[o->alias]].arg;
        int32_t v = trn__graph_add_node(g, &assign, 1, &out);
        if (v < 0)
            return g->c->status;
        g->values[v].state = o->alias;
        o->value = v;
    }
    return TRN_OK;
}

static bool reads_base(const trn_graph *g, const trn__graph_node *n, int32_t b)
{
    for (int i = 0; i < n->n_in; i++) {
        if (g->values[n->in[i]].base == b)
            return true;
    }
    return false;
}

static bool read_after(const trn_graph *g, int32_t p, int32_t b)
{
    for (int32_t q = p + 1; q < g->n_nodes; q++) {
        if (reads_base(g, &g->nodes[q], b))
            return true;
    }
    return false;
}

/* Marks in `moves` the views of b, made before node p, that are read after it,
 * and the views on which these stand. */
static void mark_views(const trn_graph *g, int32_t p, int32_t b, int32_t *moves)
{
    for (int32_t q = g->n_nodes - 1; q >= 0; q--) {
        const trn__graph_node *n = &g->nodes[q];
        if (q == p || (q < p && !(trn__graph_is_view(n) && moves[n->out[0]])))
            continue;
        for (int i = 0; i < n->n_in; i++) {
            const trn__graph_value *v = &g->values[n->in[i]];
            if (v->base == b && n->in[i] != b && v->node < p)
                moves[n->in[i]] = 1;
        }
    }
}

/* Puts views of b's copy before node p, for all that are marked in `moves`;
 * copy_of[v] becomes the view that stands for v.  The new place of p. */
static int32_t copy_views(trn_graph *g, int32_t p, const int32_t *moves,
                          int32_t n_values, int32_t *copy_of)
{
    for (int32_t q = 0; q < p; q++) {
        trn__graph_node view = g->nodes[q];
        if (!trn__graph_is_view(&view))
            continue;
        int32_t v = view.out[0];
        if (v >= n_values || !moves[v])
            continue;
        view.in[0] = copy_of[view.in[0]];
        trn_arg out = g->values[v].arg;
        copy_of[v] = trn__graph_insert(g, p, &view, 1, &out);
        if (copy_of[v] < 0)
            return -1;
        p++;
    }
    return p;
}

/* Node p is about to overwrite b: whoever reads b after it reads a copy made
 * before it.  The new place of p, or -1. */
static int32_t save_old_value(trn_graph *g, int32_t p, int32_t b)
{
    int32_t n_values = g->n_values;
    int32_t *moves = trn__graph_numbers(g, n_values, 0);
    int32_t *copy_of = trn__graph_numbers(g, n_values, -1);
    int32_t place = -1;
    if (moves != NULL && copy_of != NULL) {
        mark_views(g, p, b, moves);
        copy_of[b] = trn__graph_insert_copy(g, p, b);
        if (copy_of[b] >= 0)
            place = copy_views(g, p + 1, moves, n_values, copy_of);
    }
    for (int32_t q = place + 1; place >= 0 && q < g->n_nodes; q++) {
        trn__graph_node *n = &g->nodes[q];
        for (int i = 0; i < n->n_in; i++) {
            if (n->in[i] < n_values && copy_of[n->in[i]] >= 0)
                n->in[i] = copy_of[n->in[i]];
        }
    }
    trn__free(g->c, moves);
    trn__free(g->c, copy_of);
    trn__graph_layout(g);
    return place;
}

/* Input i of node p becomes a copy of what it is.  The new place of p. */
static int32_t copy_input(trn_graph *g, int32_t p, int i)
{
    int32_t copy = trn__graph_insert_copy(g, p, g->nodes[p].in[i]);
    if (copy < 0)
        return -1;
    g->nodes[p + 1].in[i] = copy;
    return p + 1;
}

/* Input i of node p is overwritten on a chain. */
static int32_t write_state(trn_graph *g, int32_t p, int i)
{
    int32_t b = g->values[g->nodes[p].in[i]].base;
    for (int k = 0; k < g->nodes[p].n_in && p >= 0; k++) {
        if (k != i && g->values[g->nodes[p].in[k]].base == b)
            p = copy_input(g, p, k);
    }
    if (p >= 0 && read_after(g, p, b))
        p = save_old_value(g, p, b);
    return p;
}

/* Input i of node p is overwritten, and no output replaces it. */
static int32_t write_value(trn_graph *g, int32_t p, int i)
{
    trn__graph_node *n = &g->nodes[p];
    if (n->op == TRN_OP_assign) { /* then nothing need be there before */
        n->op = TRN_OP_copy;
        n->in[0] = n->in[1];
        n->n_in = 1;
        n->in[1] = -1;
        return p;
    }
    int32_t v = n->in[i];
    const trn__graph_value *base = &g->values[g->values[v].base];
    bool in_place = base->node >= 0 && base->state < 0 && base->output < 0 &&
                    trn__graph_is_whole(g, v);
    for (int k = 0; k < n->n_in; k++)
        in_place &= k == i || g->values[n->in[k]].base != g->values[v].base;
    if (in_place && !read_after(g, p, g->values[v].base))
        return p;
    return copy_input(g, p, i);
}

/* Chains go first, as they have no choice of memory. */
static int32_t place_writes(trn_graph *g, int32_t p)
{
    for (int chain = 1; chain >= 0; chain--) {
        for (int k = 0; p >= 0 && k < g->nodes[p].n_out; k++) {
            const trn__graph_node *n = &g->nodes[p];
            int32_t w = n->out[k];
            if (!trn__graph_is_update(n) ||
                (g->values[w].state >= 0) != (chain == 1))
                continue;
            int i = trn__graph_written(n, w);
            p = chain ? write_state(g, p, i) : write_value(g, p, i);
        }
    }
    return p;
}

/* sunk[v]: the node that makes v has been moved behind the readers of what it
 * overwrites.  Once is enough: two that read each other's old state would
 * change places for ever. */
static trn_status place_all(trn_graph *g, int32_t *sunk)
{
    for (int32_t p = 0; p < g->n_nodes; p++) {
        const trn__graph_node *n = &g->nodes[p];
        if (!trn__graph_is_update(n))
            continue;
        bool moved = false;
        if (!sunk[n->out[0]]) {
            sunk[n->out[0]] = 1;
            TRN_TRY(trn__graph_sink(g, p, &moved));
        }
        p = moved ? p - 1 : place_writes(g, p);
        if (!moved && p < 0)
            return trn__pending(g->c);
    }
    return TRN_OK;
}

trn_status trn__graph_state(trn_graph *g)
{
    TRN_TRY(mark_chains(g));
    int32_t *sunk = trn__graph_numbers(g, g->n_values, 0);
    trn_status status = sunk == NULL ? TRN_ERR_NOMEM : place_all(g, sunk);
    trn__free(g->c, sunk);
    TRN_TRY(status);
    for (int32_t i = 0; i < g->n_outputs; i++) {
        if (g->outputs[i].alias >= 0)
            g->values[g->outputs[i].value].output = i;
    }
    for (int32_t v = 0; v < g->n_values; v++) /* a view lies with its base */
        g->values[v].state = g->values[g->values[v].base].state;
    return TRN_OK;
}
