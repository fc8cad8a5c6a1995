/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads before writes: an UPDATE node moves behind those that read what it
 * overwrites, where they do not need its results.  This saves the copy of the
 * old value that they would read otherwise.
 */
#include "libtrn/graph/graph_order.h"

/* Of the nodes behind p that read the old memory of a state that p overwrites
 * the last one, or -1; `free` leaves out those that this round has reached. */
static int32_t last_reader(trn__order *o, int32_t p, bool free)
{
    const trn_graph *g = o->g;
    const trn__graph_node *update = &g->nodes[p];
    int32_t last = -1;
    for (int k = 0; k < update->n_out; k++) {
        int32_t w = update->out[k], q;
        if (g->values[w].state < 0)
            continue;
        int32_t old = update->in[trn__graph_written(update, w)];
        trn__order_walk walk = trn__order_readers(o, g->values[old].base);
        while ((q = trn__order_next(o, &walk)) >= 0) {
            if (trn__order_behind(o, q, last < 0 ? p : last) &&
                !(free && o->at[q].round == o->round))
                last = q;
        }
    }
    return last;
}

/* Reaches the nodes up to `last` that need node p, directly or not, and p: how
 * many.  They are chained from p on. */
static int32_t reach(trn__order *o, int32_t p, int32_t last)
{
    const trn_graph *g = o->g;
    int32_t n = 1, end = p;
    o->round++;
    o->at[p].round = o->round;
    o->at[p].chain = -1;
    for (int32_t m = p; m >= 0; m = o->at[m].chain) {
        for (int k = 0; k < g->nodes[m].n_out; k++) {
            int32_t read = o->reads[g->nodes[m].out[k]];
            while (read >= 0) {
                int32_t q = read / TRN__MAX_IN;
                read = o->at[q].older[read % TRN__MAX_IN];
                o->g->work++;
                if (o->at[q].round == o->round || trn__order_behind(o, q, last))
                    continue;
                o->at[q].round = o->round;
                o->at[q].chain = -1;
                o->at[end].chain = q;
                end = q;
                n++;
            }
        }
    }
    return n;
}

trn_status trn__graph_sink(trn__order *o, int32_t p, bool *moved)
{
    *moved = false;
    int32_t last = last_reader(o, p, false);
    if (last < 0)
        return TRN_OK;
    reach(o, p, last);
    last = last_reader(o, p, true);
    if (last < 0)
        return TRN_OK;
    int32_t n = reach(o, p, last);
    int32_t *later = trn__order_sorted(o, p, n);
    if (later == NULL)
        return TRN_ERR_NOMEM;
    trn__line_move(&o->line, later, n, last);
    trn__free(o->g->c, later);
    *moved = true;
    return TRN_OK;
}
