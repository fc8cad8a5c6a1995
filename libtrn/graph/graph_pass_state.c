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

#include "libtrn/graph/graph_order.h"

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

static bool read_after(trn__order *o, int32_t p, int32_t b)
{
    trn__order_walk walk = trn__order_readers(o, b);
    int32_t q;
    while ((q = trn__order_next(o, &walk)) >= 0) {
        if (trn__order_behind(o, q, p))
            return true;
    }
    return false;
}

/* Must value v, which is made before node p, be there after it?  It must if it
 * is read after p, or a view of it that this round has reached is. */
static bool is_needed(trn__order *o, int32_t p, int32_t v)
{
    for (int32_t read = o->reads[v]; read >= 0;) {
        int32_t q = read / TRN__MAX_IN;
        read = o->at[q].older[read % TRN__MAX_IN];
        o->g->work++;
        if (trn__order_behind(o, q, p) || o->at[q].round == o->round)
            return true;
    }
    return false;
}

/* Chains the views of b, made before node p, that are read after it, and the
 * views on which these stand; this round reaches them.  How many. */
static int32_t find_views(trn__order *o, int32_t p, int32_t b, int32_t *first)
{
    const trn_graph *g = o->g;
    trn__order_walk walk = trn__order_readers(o, b);
    int32_t q, n = 0, all = -1;
    while ((q = trn__order_next(o, &walk)) >= 0) {
        if (!trn__graph_is_view(&g->nodes[q]) || trn__order_behind(o, q, p))
            continue;
        o->at[q].chain = all;
        all = q;
    }
    *first = -1;
    o->round++;
    for (int32_t next; all >= 0; all = next) { /* those of others come first */
        next = o->at[all].chain;
        if (!is_needed(o, p, g->nodes[all].out[0]))
            continue;
        o->at[all].round = o->round;
        o->at[all].chain = *first;
        *first = all;
        n++;
    }
    return n;
}

/* Puts views of b's copy before node p, for the n that are chained from `first`
 * on; at[q].copy becomes the value that stands for that of view q. */
static bool copy_views(trn__order *o, int32_t p, int32_t copy, int32_t first,
                       int32_t n)
{
    trn_graph *g = o->g;
    int32_t *views = n == 0 ? NULL : trn__order_sorted(o, first, n);
    bool done = n == 0 || views != NULL;
    for (int32_t k = 0; k < n && done; k++) {
        trn__graph_node view = g->nodes[views[k]];
        int32_t maker = g->values[view.in[0]].node;
        trn_arg out = g->values[view.out[0]].arg;
        bool on_view = maker >= 0 && o->at[maker].round == o->round;
        view.in[0] = on_view ? o->at[maker].copy : copy;
        int32_t v = trn__order_insert(o, p, &view, 1, &out);
        o->at[views[k]].copy = v;
        done = v >= 0;
    }
    trn__free(g->c, views);
    return done;
}

/* Value v, of a view, lies in b's memory now, and so do views of it. */
static void move_base(trn__order *o, int32_t v, int32_t b)
{
    trn_graph *g = o->g;
    trn__order_walk walk = trn__order_readers(o, v);
    int32_t q;
    g->values[v].base = b;
    while ((q = trn__order_next(o, &walk)) >= 0) {
        if (trn__graph_is_view(&g->nodes[q]))
            g->values[g->nodes[q].out[0]].base = b;
    }
}

/* Whoever reads v after node p reads `copy` instead. */
static void read_copy(trn__order *o, int32_t p, int32_t v, int32_t copy)
{
    trn_graph *g = o->g;
    for (int32_t read = o->reads[v]; read >= 0;) {
        int32_t q = read / TRN__MAX_IN, i = read % TRN__MAX_IN;
        read = o->at[q].older[i];
        o->g->work++;
        if (!trn__order_behind(o, q, p))
            continue;
        trn__order_rewire(o, q, i, copy);
        if (trn__graph_is_view(&g->nodes[q]))
            move_base(o, g->nodes[q].out[0], g->values[copy].base);
    }
}

/* Node p is about to overwrite b: whoever reads b after it reads a copy made
 * before it. */
static trn_status save_old_value(trn__order *o, int32_t p, int32_t b)
{
    const trn_graph *g = o->g;
    int32_t first;
    int32_t copy = trn__order_insert_copy(o, p, b);
    int32_t n = copy < 0 ? 0 : find_views(o, p, b, &first);
    if (copy < 0 || !copy_views(o, p, copy, first, n))
        return TRN_ERR_NOMEM;
    read_copy(o, p, b, copy);
    for (int32_t q = first, k = 0; k < n; k++, q = o->at[q].chain)
        read_copy(o, p, g->nodes[q].out[0], o->at[q].copy);
    return TRN_OK;
}

/* Input i of node p becomes a copy of what it is. */
static trn_status copy_input(trn__order *o, int32_t p, int i)
{
    int32_t copy = trn__order_insert_copy(o, p, o->g->nodes[p].in[i]);
    if (copy < 0)
        return TRN_ERR_NOMEM;
    trn__order_rewire(o, p, i, copy);
    return TRN_OK;
}

/* Input i of node p is overwritten on a chain. */
static trn_status write_state(trn__order *o, int32_t p, int i)
{
    trn_graph *g = o->g;
    int32_t b = g->values[g->nodes[p].in[i]].base;
    for (int k = 0; k < g->nodes[p].n_in; k++) {
        if (k != i && g->values[g->nodes[p].in[k]].base == b)
            TRN_TRY(copy_input(o, p, k));
    }
    return read_after(o, p, b) ? save_old_value(o, p, b) : TRN_OK;
}

/* Input i of node p is overwritten, and no output replaces it. */
static trn_status write_value(trn__order *o, int32_t p, int i)
{
    trn_graph *g = o->g;
    trn__graph_node *n = &g->nodes[p];
    if (n->op == TRN_OP_assign) { /* then nothing need be there before */
        n->op = TRN_OP_copy;
        trn__order_rewire(o, p, 0, n->in[1]);
        trn__order_rewire(o, p, 1, -1);
        n->n_in = 1;
        return TRN_OK;
    }
    int32_t v = n->in[i];
    const trn__graph_value *base = &g->values[g->values[v].base];
    bool in_place = base->node >= 0 && base->state < 0 && base->output < 0 &&
                    trn__graph_is_whole(g, v);
    for (int k = 0; k < n->n_in; k++)
        in_place &= k == i || g->values[n->in[k]].base != g->values[v].base;
    if (in_place && !read_after(o, p, g->values[v].base))
        return TRN_OK;
    return copy_input(o, p, i);
}

/* Chains go first, as they have no choice of memory. */
static trn_status place_writes(trn__order *o, int32_t p)
{
    const trn_graph *g = o->g;
    for (int chain = 1; chain >= 0; chain--) {
        for (int k = 0; k < g->nodes[p].n_out; k++) {
            const trn__graph_node *n = &g->nodes[p];
            int32_t w = n->out[k];
            if (!trn__graph_is_update(n) ||
                (g->values[w].state >= 0) != (chain == 1))
                continue;
            int i = trn__graph_written(n, w);
            TRN_TRY(chain ? write_state(o, p, i) : write_value(o, p, i));
        }
    }
    return TRN_OK;
}

/* sunk[p]: node p has been moved behind the readers of what it overwrites.
 * Once is enough: two that read each other's old state would change places for
 * ever. */
static trn_status place_all(trn__order *o, int32_t *sunk)
{
    for (int32_t p = o->line.first, next; p >= 0; p = next) {
        int32_t before = o->line.at[p].before;
        bool moved = false;
        if (trn__graph_is_update(&o->g->nodes[p]) && !sunk[p]) {
            sunk[p] = 1;
            TRN_TRY(trn__graph_sink(o, p, &moved));
        }
        if (trn__graph_is_update(&o->g->nodes[p]) && !moved)
            TRN_TRY(place_writes(o, p));
        next = before < 0 ? o->line.first : o->line.at[before].next;
        if (!moved)
            next = o->line.at[p].next;
    }
    return TRN_OK;
}

/* What is put in on the way is no UPDATE node. */
static trn_status place_in_order(trn_graph *g)
{
    trn__order o;
    int32_t *sunk = trn__graph_numbers(g, g->n_nodes, 0);
    trn_status status = trn__order_open(&o, g);
    if (sunk != NULL && status == TRN_OK)
        status = place_all(&o, sunk);
    if (sunk != NULL && status == TRN_OK)
        status = trn__order_apply(&o);
    trn__order_close(&o);
    trn__free(g->c, sunk);
    return sunk == NULL ? TRN_ERR_NOMEM : status;
}

trn_status trn__graph_state(trn_graph *g)
{
    TRN_TRY(mark_chains(g));
    TRN_TRY(place_in_order(g));
    for (int32_t i = 0; i < g->n_outputs; i++) {
        if (g->outputs[i].alias >= 0)
            g->values[g->outputs[i].value].output = i;
    }
    for (int32_t v = 0; v < g->n_values; v++) /* a view lies with its base */
        g->values[v].state = g->values[g->values[v].base].state;
    return TRN_OK;
}
