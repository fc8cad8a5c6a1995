/* SPDX-License-Identifier: Apache-2.0
 *
 * One node's result by XLA, held against the CPU's at its op's bound.
 */
#include <math.h>
#include <stdlib.h>

#include "tests/xla/xla_bounds.h"
#include "tests/xla/xla_node.h"

/* How many terms the sums of a node have. */
static double n_terms(const trn_graph *g, const trn__graph_node *n)
{
    const trn_arg *x = &g->values[n->in[0]].arg;
    const trn_matmul_attrs *product = (const void *)n->attrs;
    switch (n->op) {
    case TRN_OP_matmul:
        return (double)x->shape[x->rank - (product->trans_a ? 2 : 1)];
    case TRN_OP_embedding_grad:
    case TRN_OP_scatter_add:
        return (double)xla_numel(g, n->in[1]);
    default:
        return (double)xla_numel(g, n->in[0]) /
               xla_most(1, (double)xla_numel(g, n->out[0]));
    }
}

double *xla_node_wide(trn_context *c, const trn_graph *g, int32_t node,
                      const xla_values *v, bool magnitudes)
{
    const trn__graph_node *n = &g->nodes[node];
    const xla_values wide = {
        .scalars = v->scalars, .draws = v->draws, .wide = true};
    double *result = xla_memory(xla_bytes(g, n->out[0], true));
    void *in[TRN__MAX_IN], *out[1] = {result};
    for (int i = 0; i < n->n_in; i++) {
        uint32_t dtype = g->values[n->in[i]].arg.dtype;
        in[i] = xla_memory(xla_bytes(g, n->in[i], true));
        if (trn__is_float(dtype))
            xla_widen(dtype, v->at[n->in[i]], xla_numel(g, n->in[i]),
                      magnitudes, in[i]);
        else
            memcpy(in[i], v->at[n->in[i]], xla_bytes(g, n->in[i], true));
    }
    xla_interpret_node(c, g, node, &wide, in, out, NULL);
    for (int i = 0; i < n->n_in; i++)
        free(in[i]);
    return result;
}

static double unit_of(uint32_t dtype)
{
    return dtype == TRN_F64 ? 0x1p-53 : 0x1p-24;
}

static double ulps_of(const xla_bound *b, uint32_t dtype)
{
    return dtype == TRN_F64   ? b->ulp_f64
           : dtype == TRN_F32 ? b->ulp_f32
                              : b->ulp_small;
}

/* Distance as a part of the bound. */
static double share(uint32_t dtype, double want, double got, double bound)
{
    if (want == got || (isnan(want) && isnan(got)))
        return 0;
    if (!isfinite(want) || !isfinite(got) || !trn__is_float(dtype))
        return INFINITY;
    double off = fabs(want - got);
    if (off <= (double)xla_tiny((trn_dtype)dtype))
        return 0;
    return bound > 0 ? off / bound : INFINITY;
}

void xla_node_bounds(trn_context *c, const trn_graph *g, int32_t node,
                     const xla_values *v, double *bound)
{
    const trn__graph_node *n = &g->nodes[node];
    const xla_bound *b = &xla_bounds[n->op];
    int32_t y = n->out[0];
    uint32_t dtype = g->values[y].arg.dtype;
    double *size = NULL, units = 0;
    if (b->units > 0 && n->n_in > 0 && trn__is_float(dtype)) {
        /* deviations are squared, so a variance is its own size: that of
         * magnitudes is smaller where signs differ */
        size = xla_node_wide(c, g, node, v, n->op != TRN_OP_var);
        units = (b->units + b->per_term * n_terms(g, n)) * unit_of(dtype);
    }
    for (int64_t i = 0; i < xla_numel(g, y); i++) {
        double x = xla_element(dtype, v->at[y], i);
        bound[i] = 0;
        if (isfinite(x) && trn__is_float(dtype))
            bound[i] =
                ulps_of(b, dtype) * (double)dtype_ulp((trn_dtype)dtype, x);
        if (size != NULL)
            bound[i] += units * size[i];
    }
    free(size);
}

double xla_node_share(trn_context *c, const xla_program *p, int32_t node,
                      const void *got, int64_t *where)
{
    const trn_graph *g = p->graph;
    int32_t y = g->nodes[node].out[0];
    uint32_t dtype = g->values[y].arg.dtype;
    int64_t n = xla_numel(g, y);
    double worst = 0;
    if (xla_bounds[g->nodes[node].op].moves) {
        *where = dtype_differ((trn_dtype)dtype, p->narrow.at[y], got, n);
        return *where < 0 ? 0 : INFINITY;
    }
    double *bound = xla_memory(sizeof *bound * (size_t)n);
    xla_node_bounds(c, g, node, &p->narrow, bound);
    for (int64_t i = 0; i < n; i++) {
        double s = share(dtype, xla_element(dtype, p->narrow.at[y], i),
                         xla_element(dtype, got, i), bound[i]);
        if (s > worst) {
            worst = s;
            *where = i;
        }
    }
    free(bound);
    return worst;
}

bool xla_node_reads_subnormal(const xla_program *p, int32_t node)
{
    const trn__graph_node *n = &p->graph->nodes[node];
    if (xla_bounds[n->op].moves)
        return false;
    for (int i = 0; i < n->n_in; i++) {
        uint32_t dtype = p->graph->values[n->in[i]].arg.dtype;
        double tiny = (double)xla_tiny((trn_dtype)dtype);
        for (int64_t k = 0;
             trn__is_float(dtype) && k < xla_numel(p->graph, n->in[i]); k++) {
            double x = fabs(xla_element(dtype, p->narrow.at[n->in[i]], k));
            if (x > 0 && x < tiny)
                return true;
        }
    }
    return false;
}
