/* SPDX-License-Identifier: Apache-2.0
 *
 * One node's result by XLA, held against the CPU's at its op's bound.
 */
#include <math.h>
#include <stdlib.h>

#include "tests/xla/xla_bounds.h"
#include "tests/xla/xla_node.h"

static double most(double a, double b)
{
    return b > a ? b : a;
}

static double element(uint32_t dtype, const void *data, int64_t i)
{
    return (double)dtype_get((trn_dtype)dtype, data, i);
}

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
               most(1, (double)xla_numel(g, n->out[0]));
    }
}

/* The node on the magnitudes of its inputs: what rounding errors of sums are
 * relative to. */
static double *sizes_of(trn_context *c, const xla_program *p, int32_t node)
{
    const trn_graph *g = p->graph;
    const trn__graph_node *n = &g->nodes[node];
    const xla_values wide = {
        .scalars = p->scalars, .draws = p->narrow.draws, .wide = true};
    double *size = xla_memory(xla_bytes(g, n->out[0], true));
    void *in[TRN__MAX_IN], *out[1] = {size};
    for (int i = 0; i < n->n_in; i++) {
        uint32_t dtype = g->values[n->in[i]].arg.dtype;
        in[i] = xla_memory(xla_bytes(g, n->in[i], true));
        if (trn__is_float(dtype))
            xla_widen(dtype, p->narrow.at[n->in[i]], xla_numel(g, n->in[i]),
                      true, in[i]);
        else
            memcpy(in[i], p->narrow.at[n->in[i]], xla_bytes(g, n->in[i], true));
    }
    xla_interpret_node(c, g, node, &wide, in, out, NULL);
    for (int i = 0; i < n->n_in; i++)
        free(in[i]);
    return size;
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

double xla_node_share(trn_context *c, const xla_program *p, int32_t node,
                      const void *got, int64_t *where)
{
    const trn_graph *g = p->graph;
    const trn__graph_node *n = &g->nodes[node];
    const xla_bound *b = &xla_bounds[n->op];
    int32_t v = n->out[0];
    uint32_t dtype = g->values[v].arg.dtype;
    int64_t count = xla_numel(g, v);
    const void *want = p->narrow.at[v];
    double worst = 0;
    if (b->moves) {
        *where = dtype_differ((trn_dtype)dtype, want, got, count);
        return *where < 0 ? 0 : INFINITY;
    }
    double *size = b->units > 0 && trn__is_float(dtype) && n->n_in > 0
                       ? sizes_of(c, p, node)
                       : NULL;
    double units = b->units + (size == NULL ? 0 : b->per_term * n_terms(g, n));
    for (int64_t i = 0; i < count; i++) {
        double x = element(dtype, want, i);
        double bound =
            isfinite(x) && trn__is_float(dtype)
                ? ulps_of(b, dtype) * (double)dtype_ulp((trn_dtype)dtype, x)
                : 0;
        if (size != NULL)
            bound += units * unit_of(dtype) * size[i];
        double s = share(dtype, x, element(dtype, got, i), bound);
        if (s > worst) {
            worst = s;
            *where = i;
        }
    }
    free(size);
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
            double x = fabs(element(dtype, p->narrow.at[n->in[i]], k));
            if (x > 0 && x < tiny)
                return true;
        }
    }
    return false;
}
