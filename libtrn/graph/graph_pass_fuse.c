/* SPDX-License-Identifier: Apache-2.0
 *
 * Fusion groups: element-wise nodes over one shape that may run in one pass.
 *
 * Nodes are taken in the order of the list.  One joins the groups that make its
 * inputs, or that read what it reads, unless something outside would have to
 * run between the members (a reduction of one that another reads, a permuted
 * view, a write of memory that is still read).  Then the list is put in an
 * order in which members are neighbours: that of the list, a group standing
 * where its last member stood, or before if it is needed before.
 *
 * A group does not reach over more than a few nodes of other kinds: it would
 * move work far from where the step has it, and keep memory alive in between.
 */
#include "libtrn/graph/graph_line.h"
#include "libtrn/graph/graph_pass.h"

#define MAX_BETWEEN 4

/* A unit is a group or a node alone; its name is one of its nodes. */
typedef struct fuser {
    trn_graph *g;
    int32_t *dep_at, *dep; /* node q runs after dep[dep_at[q] .. dep_at[q+1]) */
    int32_t *unit, *next;  /* of node q; the next member, -1 at the end */
    int32_t *count, *high; /* of a unit: members, the last of them */
    int32_t *between;      /* nodes of other kinds before node q */
    int32_t *seen, *stack;
    /* How far `missing` has looked: member of a unit, dependences of a node. */
    int32_t *member, *seen_deps;
    int32_t *reader; /* the last element-wise node that read value v */
    int32_t round;
    trn__line line; /* the units, in an order in which they might run */
} fuser;

static void close_fuser(fuser *f)
{
    int32_t *arrays[] = {f->dep_at, f->dep,    f->unit,    f->next,
                         f->count,  f->high,   f->between, f->seen,
                         f->stack,  f->reader, f->member,  f->seen_deps};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        trn__free(f->g->c, arrays[i]);
    trn__free(f->g->c, f->line.at);
}

static bool fuses(const trn_graph *g, int32_t q)
{
    /* An integer division may report a zero: no piece of a longer pass. */
    return trn__graph_op_of(&g->nodes[q])->fuses &&
           !trn__graph_node_checks(g, q) && !g->nodes[q].on_host;
}

static trn_status open_fuser(fuser *f, trn_graph *g)
{
    int32_t n = g->n_nodes;
    *f = (fuser){.g = g};
    f->dep_at = trn__graph_numbers(g, n + 1, 0);
    f->dep = trn__graph_numbers(g, 2 * TRN__MAX_IN * n, -1);
    f->unit = trn__graph_numbers(g, n, 0);
    f->next = trn__graph_numbers(g, n, -1);
    f->count = trn__graph_numbers(g, n, 1);
    f->high = trn__graph_numbers(g, n, 0);
    f->between = trn__graph_numbers(g, n, 0);
    f->member = trn__graph_numbers(g, n, 0);
    f->seen_deps = trn__graph_numbers(g, n, 0);
    f->seen = trn__graph_numbers(g, n, 0);
    f->stack = trn__graph_numbers(g, n, 0);
    f->reader = trn__graph_numbers(g, g->n_values, -1);
    TRN_TRY(trn__pending(g->c));
    TRN_TRY(trn__line_open(&f->line, g, n));
    int32_t between = 0;
    for (int32_t q = 0; q < n; q++) {
        f->unit[q] = f->high[q] = q;
        f->member[q] = q;
        f->between[q] = between;
        between += !fuses(g, q) && !trn__graph_is_view(&g->nodes[q]) &&
                   g->nodes[q].op != TRN_OP_full;
    }
    return TRN_OK;
}

/* ---- dependences ---- */

/* For each base the node that overwrites it in place, else -1. */
static void find_writers(const trn_graph *g, int32_t *writer)
{
    for (int32_t q = 0; q < g->n_nodes; q++) {
        const trn__graph_node *n = &g->nodes[q];
        if (!trn__graph_is_update(n))
            continue;
        for (int i = 0; i < n->n_out; i++) {
            int32_t old = n->in[trn__graph_written(n, n->out[i])];
            writer[g->values[old].base] = q;
        }
    }
}

/* Counts (dep_at[q + 1]) or fills in what each node runs after: who makes its
 * inputs, and who reads what it overwrites. */
static void visit_deps(fuser *f, const int32_t *writer, bool fill)
{
    trn_graph *g = f->g;
    for (int32_t q = 0; q < g->n_nodes; q++) {
        const trn__graph_node *n = &g->nodes[q];
        for (int i = 0; i < n->n_in; i++) {
            int32_t maker = g->values[n->in[i]].node;
            int32_t w = writer[g->values[n->in[i]].base];
            if (maker >= 0 && fill)
                f->dep[f->dep_at[q]++] = maker;
            else if (maker >= 0)
                f->dep_at[q + 1]++;
            if (w < 0 || w == q)
                continue;
            if (fill)
                f->dep[f->dep_at[w]++] = q;
            else
                f->dep_at[w + 1]++;
        }
    }
}

static trn_status find_deps(fuser *f)
{
    int32_t n = f->g->n_nodes;
    int32_t *writer = trn__graph_numbers(f->g, f->g->n_values, -1);
    if (writer == NULL)
        return TRN_ERR_NOMEM;
    find_writers(f->g, writer);
    visit_deps(f, writer, false);
    for (int32_t q = 0; q < n; q++)
        f->dep_at[q + 1] += f->dep_at[q];
    visit_deps(f, writer, true);
    for (int32_t q = n; q > 0; q--) /* filling has moved each to its end */
        f->dep_at[q] = f->dep_at[q - 1];
    f->dep_at[0] = 0;
    trn__free(f->g->c, writer);
    return TRN_OK;
}

/* ---- joining ---- */

static bool same_shape(const trn_graph *g, int32_t p, int32_t q)
{
    return trn__same_shape(&g->values[g->nodes[p].out[0]].arg,
                           &g->values[g->nodes[q].out[0]].arg);
}

/* Is the number of values that a and b together read from outside allowed? */
static bool few_inputs(const fuser *f, int32_t a, int32_t b)
{
    int32_t found[TRN__GROUP_INPUTS];
    int n_found = 0;
    for (int k = 0; k < 2; k++) {
        for (int32_t m = k == 0 ? a : b; m >= 0; m = f->next[m]) {
            const trn__graph_node *n = &f->g->nodes[m];
            for (int i = 0; i < n->n_in; i++) {
                int32_t maker = f->g->values[n->in[i]].node;
                int32_t unit = maker < 0 ? -1 : f->unit[maker];
                int at = 0;
                while (at < n_found && found[at] != n->in[i])
                    at++;
                if (unit == a || unit == b || at < n_found)
                    continue;
                if (n_found == TRN__GROUP_INPUTS)
                    return false;
                found[n_found++] = n->in[i];
            }
        }
    }
    return true;
}

/* Adds the units that unit u runs after and that stand behind a in the line;
 * false if a is among them, and u is not b. */
static bool push_deps(fuser *f, int32_t u, int32_t a, int32_t b, int32_t *n)
{
    for (int32_t m = u; m >= 0; m = f->next[m]) {
        for (int32_t k = f->dep_at[m]; k < f->dep_at[m + 1]; k++) {
            int32_t d = f->unit[f->dep[k]];
            f->g->work++;
            if (d == a && u != b)
                return false;
            if (d == u || f->seen[d] == f->round ||
                !trn__line_behind(&f->line, d, a))
                continue;
            f->seen[d] = f->round;
            f->stack[(*n)++] = d;
        }
    }
    return true;
}

/* Would a and b, which stands behind a, in one unit run after something that
 * runs after them?  If not, the n units on the stack are those between them
 * that b runs after, and a does not run before. */
static bool leads_back(fuser *f, int32_t a, int32_t b, int32_t *n)
{
    *n = 0;
    f->round++;
    push_deps(f, b, a, b, n);
    for (int32_t k = 0; k < *n; k++) {
        if (!push_deps(f, f->stack[k], a, b, n))
            return true;
    }
    return false;
}

/* b's members go to a. */
static void unite(fuser *f, int32_t a, int32_t b)
{
    int32_t end = a;
    while (f->next[end] >= 0)
        end = f->next[end];
    f->next[end] = b;
    for (int32_t m = b; m >= 0; m = f->next[m])
        f->unit[m] = a;
    f->count[a] += f->count[b];
    if (f->high[b] > f->high[a])
        f->high[a] = f->high[b];
}

/* The first of a and b in the line has the place of both: what b runs after, n
 * units on the stack, goes before it. */
static bool make_place(fuser *f, int32_t a, int32_t b, int32_t first, int32_t n)
{
    if (!trn__line_sort(&f->line, f->stack, n))
        return false;
    trn__line_move(&f->line, f->stack, n, f->line.at[first].before);
    if (first == b)
        trn__line_move(&f->line, &a, 1, b);
    trn__line_remove(&f->line, b);
    return true;
}

/* Node q's unit takes in that of an earlier node p, if that may be. */
static void try_join(fuser *f, int32_t q, int32_t p)
{
    if (p < 0 || !fuses(f->g, p) || !same_shape(f->g, p, q))
        return;
    int32_t a = f->unit[p], b = f->unit[q], n = 0;
    if (a == b || f->count[a] + f->count[b] > TRN__GROUP_NODES ||
        f->between[q] - f->between[f->high[a]] > MAX_BETWEEN ||
        !few_inputs(f, a, b))
        return;
    int32_t first = trn__line_behind(&f->line, a, b) ? b : a;
    if (!leads_back(f, first, first == a ? b : a, &n) &&
        make_place(f, a, b, first, n))
        unite(f, a, b);
}

static void find_groups(fuser *f)
{
    const trn_graph *g = f->g;
    for (int32_t q = 0; q < g->n_nodes; q++) {
        const trn__graph_node *n = &g->nodes[q];
        if (!fuses(g, q))
            continue;
        for (int i = 0; i < n->n_in; i++)
            try_join(f, q, g->values[n->in[i]].node);
        for (int i = 0; i < n->n_in; i++) {
            try_join(f, q, f->reader[n->in[i]]);
            f->reader[n->in[i]] = q;
        }
    }
}

/* ---- the new order ---- */

/* A unit that must run before u and has not, or -1 (seen: has run).  What it
 * has looked at before, and has run since, it does not look at again. */
static int32_t missing(fuser *f, int32_t u)
{
    for (int32_t m = f->member[u]; m >= 0; m = f->member[u] = f->next[m]) {
        int32_t n = f->dep_at[m + 1] - f->dep_at[m];
        for (; f->seen_deps[m] < n; f->seen_deps[m]++) {
            int32_t d = f->unit[f->dep[f->dep_at[m] + f->seen_deps[m]]];
            if (d != u && f->seen[d] != f->round)
                return d;
        }
    }
    return -1;
}

/* Appends u's members, in the order of the list. */
static int32_t emit(fuser *f, int32_t u, int32_t *order, int32_t n)
{
    int32_t group = f->count[u] > 1 ? f->g->n_groups++ : -1;
    int32_t first = n;
    for (int32_t m = u; m >= 0; m = f->next[m]) {
        int32_t at = n++;
        for (; at > first && order[at - 1] > m; at--)
            order[at] = order[at - 1];
        order[at] = m;
        f->g->nodes[m].group = group;
    }
    f->seen[u] = f->round;
    return n;
}

static void put_in_order(fuser *f, int32_t *order)
{
    int32_t n = 0;
    f->g->n_groups = 0;
    f->round++;
    for (int32_t q = 0; q < f->g->n_nodes; q++) {
        int32_t n_stack = 0, u = f->unit[q];
        if (f->high[u] != q || f->seen[u] == f->round)
            continue;
        f->stack[n_stack++] = u;
        while (n_stack > 0) {
            u = f->stack[n_stack - 1];
            int32_t before = missing(f, u);
            if (before >= 0) {
                f->stack[n_stack++] = before;
                continue;
            }
            n = emit(f, u, order, n);
            n_stack--;
        }
    }
}

/* Sets fused_only: what nobody outside the group reads, and is no output. */
static void mark_fused_only(trn_graph *g, int32_t *outside)
{
    for (int32_t q = 0; q < g->n_nodes; q++) {
        const trn__graph_node *n = &g->nodes[q];
        for (int i = 0; i < n->n_in; i++) {
            int32_t maker = g->values[n->in[i]].node;
            if (maker >= 0 && g->nodes[maker].group != n->group)
                outside[n->in[i]] = 1;
        }
    }
    for (int32_t i = 0; i < g->n_outputs; i++)
        outside[g->outputs[i].value] = 1;
    for (int32_t q = 0; q < g->n_nodes; q++) {
        trn__graph_node *n = &g->nodes[q];
        for (int i = 0; i < n->n_out && n->group >= 0; i++)
            n->fused_only |= outside[n->out[i]] ? 0u : 1u << i;
    }
}

trn_status trn__graph_fuse(trn_graph *g)
{
    fuser f;
    int32_t *order = NULL, *outside = NULL;
    trn_status status = open_fuser(&f, g);
    if (status == TRN_OK)
        status = find_deps(&f);
    if (status == TRN_OK) {
        order = trn__graph_numbers(g, g->n_nodes, -1);
        outside = trn__graph_numbers(g, g->n_values, 0);
        status = trn__pending(g->c);
    }
    if (status == TRN_OK) {
        find_groups(&f);
        status = trn__pending(g->c);
    }
    if (status == TRN_OK) {
        put_in_order(&f, order);
        status = trn__graph_reorder(g, order, g->n_nodes);
    }
    if (status == TRN_OK)
        mark_fused_only(g, outside);
    close_fuser(&f);
    trn__free(g->c, order);
    trn__free(g->c, outside);
    return status;
}
