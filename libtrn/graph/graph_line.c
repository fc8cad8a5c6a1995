/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers in a line: labels, links.
 *
 * A label is given within the gap between those of its neighbours.  It stands
 * close to the end at which nothing more is expected, so that many numbers put
 * at one place after the other halve no gap; where a gap is used up all labels
 * are given anew.
 */
#include <stdlib.h>
#include <string.h>

#include "libtrn/graph/graph_line.h"

#define LABEL_GAP ((int64_t)1 << 30)
#define LABEL_SHARE 1024 /* of a gap that is taken at once */

/* ---- begin and end ---- */

trn_status trn__line_open(trn__line *l, trn_graph *g, int32_t n)
{
    *l = (trn__line){.g = g, .first = -1, .last = -1};
    if (!trn__line_room(l, n))
        return TRN_ERR_NOMEM;
    for (int32_t q = 0; q < n; q++)
        l->at[q] = (trn__line_item){
            .label = (q + 1) * LABEL_GAP,
            .before = q - 1,
            .next = q + 1 < n ? q + 1 : -1,
        };
    if (n > 0) {
        l->first = 0;
        l->last = n - 1;
    }
    return TRN_OK;
}

void trn__line_close(trn__line *l)
{
    trn__free(l->g->c, l->at);
}

bool trn__line_room(trn__line *l, int32_t n)
{
    if (n <= l->room && l->at != NULL)
        return true;
    size_t bytes = 2 * ((size_t)n + 1) * sizeof *l->at;
    trn__line_item *wider = trn__alloc(l->g->c, bytes);
    if (wider == NULL) {
        trn__fail_memory(l->g->c, "graph", bytes);
        return false;
    }
    if (l->at != NULL)
        memcpy(wider, l->at, (size_t)l->room * sizeof *wider);
    trn__free(l->g->c, l->at);
    l->at = wider;
    l->room = 2 * (n + 1);
    return true;
}

/* ---- labels ---- */

static void label_all(trn__line *l)
{
    int64_t label = 0;
    for (int32_t q = l->first; q >= 0; q = l->at[q].next) {
        l->at[q].label = label += LABEL_GAP;
        l->g->work++;
    }
}

/* Labels for the n numbers from q on, whose neighbours have theirs: from the
 * low or from the high end of the gap. */
static void label_some(trn__line *l, int32_t q, int32_t n, bool low_end)
{
    int32_t behind = q, before = l->at[q].before;
    for (int32_t k = 0; k < n; k++)
        behind = l->at[behind].next;
    int64_t low = before < 0 ? 0 : l->at[before].label;
    int64_t high = behind < 0 ? low + LABEL_GAP : l->at[behind].label;
    int64_t step = (high - low) / LABEL_SHARE / n;
    l->g->work += n;
    if (high - low <= n) {
        label_all(l);
        return;
    }
    step = step < 1 ? 1 : step;
    for (int32_t k = 0; k < n; k++, q = l->at[q].next)
        l->at[q].label = low_end ? low + step * (k + 1) : high - step * (n - k);
}

/* ---- links ---- */

static void link_between(trn__line *l, int32_t before, int32_t q, int32_t next)
{
    l->at[q].before = before;
    l->at[q].next = next;
    *(before < 0 ? &l->first : &l->at[before].next) = q;
    *(next < 0 ? &l->last : &l->at[next].before) = q;
}

void trn__line_remove(trn__line *l, int32_t q)
{
    int32_t before = l->at[q].before, next = l->at[q].next;
    *(before < 0 ? &l->first : &l->at[before].next) = next;
    *(next < 0 ? &l->last : &l->at[next].before) = before;
}

void trn__line_insert(trn__line *l, int32_t p, int32_t q)
{
    link_between(l, p < 0 ? l->last : l->at[p].before, q, p);
    label_some(l, q, 1, true);
}

void trn__line_move(trn__line *l, const int32_t *numbers, int32_t n,
                    int32_t after)
{
    int32_t at = after;
    for (int32_t k = 0; k < n; k++) {
        trn__line_remove(l, numbers[k]);
        link_between(l, at, numbers[k], at < 0 ? l->first : l->at[at].next);
        at = numbers[k];
    }
    if (n > 0)
        label_some(l, numbers[0], n, false);
}

/* ---- sorting ---- */

typedef struct labelled {
    int64_t label;
    int32_t number;
} labelled;

static int by_label(const void *a, const void *b)
{
    const labelled *x = a, *y = b;
    return (x->label > y->label) - (x->label < y->label);
}

bool trn__line_sort(const trn__line *l, int32_t *numbers, int32_t n)
{
    size_t bytes = ((size_t)n + 1) * sizeof(labelled);
    if (n < 2)
        return true;
    labelled *list = trn__alloc(l->g->c, bytes);
    if (list == NULL) {
        trn__fail_memory(l->g->c, "graph", bytes);
        return false;
    }
    for (int32_t k = 0; k < n; k++)
        list[k] = (labelled){l->at[numbers[k]].label, numbers[k]};
    qsort(list, (size_t)n, sizeof *list, by_label);
    for (int32_t k = 0; k < n; k++)
        numbers[k] = list[k].number;
    l->g->work += n;
    trn__free(l->g->c, list);
    return true;
}
