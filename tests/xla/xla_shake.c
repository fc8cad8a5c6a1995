/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs with values that are a little off; see xla_shake.h.
 */
#include <math.h>
#include <stdlib.h>

#include "tests/harness.h"
#include "tests/xla/xla_bounds.h"
#include "tests/xla/xla_node.h"
#include "tests/xla/xla_shake.h"

enum { RUNS = 6 };

/* Were there no roundings on the way to an element?  A sum has none in any
 * order if that of the magnitudes has none.  What f64 holds beyond f32 is taken
 * for rounded. */
static bool is_exact(uint32_t dtype, double x, double exact, double size)
{
    return x == exact && (double)(float)size == size &&
           (dtype != TRN_F64 || (double)(float)x == x);
}

/* Exact elements stay, so that equal numbers, and zeros, stay what they are. */
static void move(trn_context *c, const trn_graph *g, int32_t node,
                 const xla_values *v, uint64_t *state)
{
    int32_t y = g->nodes[node].out[0];
    uint32_t dtype = g->values[y].arg.dtype;
    int64_t n = xla_numel(g, y);
    bool sums = xla_bounds[g->nodes[node].op].units > 0;
    if (!trn__is_float(dtype) || xla_bounds[g->nodes[node].op].moves)
        return;
    double *exact = xla_node_wide(c, g, node, v, false);
    double *size = xla_node_wide(c, g, node, v, true);
    double *bound = xla_memory(sizeof *bound * (size_t)n);
    xla_node_bounds(c, g, node, v, bound);
    for (int64_t i = 0; i < n; i++) {
        double x = xla_element(dtype, v->at[y], i);
        bool up = (random_next(state) & 1) != 0;
        if (!isfinite(x) || is_exact(dtype, x, exact[i], sums ? size[i] : 0))
            continue;
        double ulp = (double)dtype_ulp((trn_dtype)dtype, x);
        double by = bound[i] > ulp ? bound[i] : ulp;
        dtype_put((trn_dtype)dtype, v->at[y], i,
                  (long double)(up ? x + by : x - by));
    }
    free(exact);
    free(size);
    free(bound);
}

/* moves: with a state of its own; NULL: the run as it is */
static bool run(trn_context *c, const xla_program *p, xla_values *v,
                uint64_t *moves)
{
    const trn_graph *g = p->graph;
    *v = (xla_values){.scalars = p->scalars, .draws = p->narrow.draws};
    xla_values_open(v, g);
    for (int32_t i = 0; i < g->n_inputs; i++) {
        int32_t at = g->inputs[i];
        v->at[at] = xla_memory(xla_bytes(g, at, false));
        memcpy(v->at[at], p->narrow.at[at], xla_bytes(g, at, false));
    }
    for (int32_t q = 0; q < g->n_nodes; q++) {
        if (xla_interpret_step(c, g, v, q) != TRN_OK)
            return false;
        if (moves != NULL)
            move(c, g, q, v, moves);
    }
    return true;
}

/* The distance of a value in the two runs; negative: they decide differently.
 */
static double distance(const trn_graph *g, int32_t value, const xla_values *a,
                       const xla_values *b)
{
    uint32_t dtype = g->values[value].arg.dtype;
    double most = 0;
    if (!trn__is_float(dtype))
        return memcmp(a->at[value], b->at[value], xla_bytes(g, value, false)) ==
                       0
                   ? 0
                   : -1;
    for (int64_t i = 0; i < xla_numel(g, value); i++) {
        double x = xla_element(dtype, a->at[value], i);
        double y = xla_element(dtype, b->at[value], i);
        if (x == y || (isnan(x) && isnan(y)))
            continue;
        if (!isfinite(x) || !isfinite(y))
            return -1;
        most = xla_most(most, fabs(x - y));
    }
    return most;
}

bool xla_shake(trn_context *c, const xla_program *p, double *moved)
{
    const trn_graph *g = p->graph;
    xla_values still, v;
    bool same = run(c, p, &still, NULL);
    memset(moved, 0, sizeof *moved * (size_t)g->n_outputs);
    for (uint64_t i = 0; i < RUNS && same; i++) {
        uint64_t state = random_mix(p->seed, i);
        same = run(c, p, &v, &state);
        for (int32_t k = 0; k < g->n_values && same; k++)
            same = distance(g, k, &still, &v) >= 0;
        for (int32_t k = 0; k < g->n_outputs && same; k++)
            moved[k] = xla_most(moved[k],
                                distance(g, g->outputs[k].value, &still, &v));
        xla_values_free(&v);
    }
    xla_values_free(&still);
    return same;
}
