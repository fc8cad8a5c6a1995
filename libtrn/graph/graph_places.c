/* SPDX-License-Identifier: Apache-2.0
 *
 * Which memory is taken when, as a binary tree over memory.
 *
 * A place of the tree is a piece of memory, whose halves are the places below
 * it.  A slot lies in the few places that make it up, each of which has the
 * periods in which it is taken by such slots.
 *
 * Beside them a place has some periods in which it is of no use: taken by one
 * slot or by many, but for gaps in which a slot of the size at hand has no
 * room. They let a search pass over packed memory without looking into it.  A
 * few are enough, as the memory of a step is packed anew but a few times: when
 * it goes forward, goes back, and updates.  What they do not tell is looked up
 * below.
 */
#include <string.h>

#include "libtrn/graph/graph_pass.h"
#include "libtrn/graph/graph_places.h"

#define N_FULL 6
#define N_GAPS 16 /* that one search takes down */
#define ROOT 0

/* At all these times no slot of so many units or more may lie here, or in part;
 * from > to: nothing is said. */
typedef struct fullness {
    int32_t from, to;
    int64_t units;
} fullness;

typedef struct trn__period {
    int32_t from, to;
    int32_t next; /* later one of the same place, -1: none */
} trn__period;

typedef struct trn__place {
    int32_t from, to; /* nothing is taken here at other times */
    int32_t half[2];  /* -1: nothing is taken there alone */
    /* Periods of slots that this place is a part of; none touch.  `late` is one
     * of them, from which the next search goes on. */
    int32_t first, late;
    fullness full[N_FULL];
} trn__place;

/* Units low .. high - 1, at these times. */
typedef struct area {
    int64_t low, high;
    fullness when;
} area;

typedef struct wanted {
    int32_t from, to;
    int64_t units;
    int64_t end;       /* of what was of no use so far */
    fullness end_when; /* ... at these times */
    int64_t best, best_gap;
    area gaps[N_GAPS]; /* that are too small */
    int n_gaps;
} wanted;

static const fullness NOTHING = {.from = 0, .to = -1};

/* `list` with room for one more; NULL with the error raised. */
static void *grown(trn_context *c, void *list, int32_t n, int32_t *room,
                   size_t element)
{
    if (n < *room)
        return list;
    int32_t more = *room == 0 ? 64 : 2 * *room;
    void *wider = trn__alloc(c, (size_t)more * element);
    if (wider == NULL) {
        trn__fail_memory(c, "graph", (size_t)more * element);
        return NULL;
    }
    if (n > 0)
        memcpy(wider, list, (size_t)n * element);
    trn__free(c, list);
    *room = more;
    return wider;
}

static int32_t new_place(trn__places *p)
{
    void *list = grown(p->g->c, p->places, p->n_places, &p->room_places,
                       sizeof *p->places);
    if (list == NULL)
        return -1;
    p->places = list;
    trn__place *place = &p->places[p->n_places];
    *place = (trn__place){
        .from = INT32_MAX,
        .to = -1,
        .half = {-1, -1},
        .first = -1,
        .late = -1,
    };
    for (int i = 0; i < N_FULL; i++)
        place->full[i] = NOTHING;
    return p->n_places++;
}

trn_status trn__places_open(trn__places *p, trn_graph *g, int64_t units)
{
    *p = (trn__places){.g = g};
    while (p->depth < 62 && ((int64_t)1 << p->depth) < units)
        p->depth++;
    return new_place(p) < 0 ? TRN_ERR_NOMEM : TRN_OK;
}

void trn__places_close(trn__places *p)
{
    trn__free(p->g->c, p->places);
    trn__free(p->g->c, p->periods);
}

/* ---- periods ---- */

/* The last period of a place that begins at or before `time`, or -1. */
static int32_t last_before(trn__places *p, int32_t u, int32_t time)
{
    trn__place *place = &p->places[u];
    int32_t k = place->late;
    if (k < 0 || p->periods[k].from > time)
        k = place->first;
    if (k < 0 || p->periods[k].from > time)
        return -1;
    for (int32_t next; (next = p->periods[k].next) >= 0; k = next) {
        if (p->periods[next].from > time)
            break;
        p->g->work++;
    }
    place->late = k;
    return k;
}

/* Is the place of no use to a slot?  `when` tells at which times, in part. */
static bool is_full(trn__places *p, int32_t u, const wanted *w, fullness *when)
{
    const trn__place *place = &p->places[u];
    for (int i = 0; i < N_FULL; i++) {
        *when = place->full[i];
        if (when->from <= w->to && when->to >= w->from &&
            when->units <= w->units)
            return true;
    }
    int32_t k = last_before(p, u, w->to);
    if (k < 0 || p->periods[k].to < w->from)
        return false;
    *when = (fullness){p->periods[k].from, p->periods[k].to, 1};
    return true;
}

static bool is_said(const fullness *f)
{
    return f->from <= f->to;
}

static bool covers(const fullness *a, const fullness *b)
{
    return a->units <= b->units && a->from <= b->from && a->to >= b->to;
}

/* Notes what is known of the place, unless it knows of many longer times. Slots
 * to come have at most `units`: what is said of larger ones is forgotten. */
static void note_full(trn__place *place, fullness f, int64_t units)
{
    fullness *shortest = &place->full[0];
    for (fullness *is = place->full; is < place->full + N_FULL; is++) {
        if (is_said(is) && covers(is, &f))
            return;
        bool touch = is->from <= f.to + 1 && is->to + 1 >= f.from;
        if (is_said(is) && is->units == f.units && touch) {
            f.from = is->from < f.from ? is->from : f.from;
            f.to = is->to > f.to ? is->to : f.to;
        }
        if (is->units > units || covers(&f, is))
            *is = NOTHING;
        if (is->to - is->from < shortest->to - shortest->from)
            shortest = is;
    }
    if (f.to - f.from > shortest->to - shortest->from)
        *shortest = f;
}

/* A place is of no use when both halves are. */
static void note_halves(trn__places *p, int32_t u, int64_t units)
{
    trn__place *place = &p->places[u];
    if (place->half[0] < 0 || place->half[1] < 0)
        return;
    const trn__place *low = &p->places[place->half[0]];
    const trn__place *high = &p->places[place->half[1]];
    for (int i = 0; i < N_FULL; i++) {
        for (int k = 0; k < N_FULL; k++) {
            fullness f = low->full[i];
            const fullness *h = &high->full[k];
            f.from = h->from > f.from ? h->from : f.from;
            f.to = h->to < f.to ? h->to : f.to;
            f.units = h->units > f.units ? h->units : f.units;
            if (is_said(&f) && f.units <= units)
                note_full(place, f, units);
        }
    }
}

/* A slot that place u is a part of lives then. */
static bool add_period(trn__places *p, int32_t u, int32_t from, int32_t to)
{
    int32_t before = last_before(p, u, from);
    int32_t next = before < 0 ? p->places[u].first : p->periods[before].next;
    if (before >= 0 && p->periods[before].to + 1 == from) {
        p->periods[before].to = to;
        return true;
    }
    if (next >= 0 && p->periods[next].from == to + 1) {
        p->periods[next].from = from;
        return true;
    }
    void *list = grown(p->g->c, p->periods, p->n_periods, &p->room_periods,
                       sizeof *p->periods);
    if (list == NULL)
        return false;
    p->periods = list;
    p->periods[p->n_periods] = (trn__period){from, to, next};
    *(before < 0 ? &p->places[u].first : &p->periods[before].next) =
        p->n_periods++;
    return true;
}

/* ---- searching and taking; place u is units at .. at + 2^depth - 1 ---- */

/* Units from `at` on are of no use: a gap ends. */
static void end_gap(wanted *w, int64_t at, const fullness *when)
{
    int64_t gap = at - w->end;
    if (gap >= w->units && gap < w->best_gap) {
        w->best = w->end;
        w->best_gap = gap;
    }
    if (gap <= 0 || gap >= w->units || w->n_gaps == N_GAPS)
        return;
    area *a = &w->gaps[w->n_gaps];
    *a = (area){.low = w->end, .high = at, .when = *when};
    if (w->end_when.from > a->when.from)
        a->when.from = w->end_when.from;
    if (w->end_when.to < a->when.to)
        a->when.to = w->end_when.to;
    a->when.units = w->units;
    w->n_gaps += is_said(&a->when);
}

static void search(trn__places *p, int32_t u, int64_t at, int depth, wanted *w)
{
    fullness when;
    if (u < 0 || p->places[u].from > w->to || p->places[u].to < w->from ||
        w->best_gap == w->units) /* there is no tighter one */
        return;
    p->g->work++;
    if (is_full(p, u, w, &when)) {
        end_gap(w, at, &when);
        w->end = at + ((int64_t)1 << depth);
        w->end_when = when;
        return;
    }
    for (int i = 0; i < 2 && depth > 0; i++)
        search(p, p->places[u].half[i], at + ((int64_t)i << (depth - 1)),
               depth - 1, w);
}

/* An area is of no use, as far as place u has it: taken by a slot (units 1), or
 * too small a gap for slots of `units`. */
static bool fill(trn__places *p, int32_t u, int64_t at, int depth,
                 const area *a, int64_t units)
{
    trn__place *place = &p->places[u];
    p->g->work++;
    place->from = a->when.from < place->from ? a->when.from : place->from;
    place->to = a->when.to > place->to ? a->when.to : place->to;
    if (a->low <= at && at + ((int64_t)1 << depth) <= a->high) {
        note_full(place, a->when, units);
        return a->when.units > 1 || add_period(p, u, a->when.from, a->when.to);
    }
    int64_t half = (int64_t)1 << (depth - 1);
    for (int i = 0; i < 2; i++, at += half) {
        if (at + half <= a->low || a->high <= at)
            continue;
        int32_t below = p->places[u].half[i];
        if (below < 0) {
            below = new_place(p);
            if (below < 0)
                return false;
            p->places[u].half[i] = below;
        }
        if (!fill(p, below, at, depth - 1, a, units))
            return false;
    }
    note_halves(p, u, units);
    return true;
}

int64_t trn__places_take(trn__places *p, int32_t from, int32_t to,
                         int64_t units)
{
    wanted w = {
        .from = from,
        .to = to,
        .units = units,
        .end_when = {.from = 0, .to = INT32_MAX, .units = 1}, /* the edge */
        .best = -1,
        .best_gap = INT64_MAX,
    };
    search(p, ROOT, 0, p->depth, &w);
    for (int i = 0; i < w.n_gaps; i++) {
        if (!fill(p, ROOT, 0, p->depth, &w.gaps[i], units))
            return -1;
    }
    area slot = {
        .low = w.best >= 0 ? w.best : w.end,
        .when = {.from = from, .to = to, .units = 1},
    };
    slot.high = slot.low + units;
    return fill(p, ROOT, 0, p->depth, &slot, units) ? slot.low : -1;
}
