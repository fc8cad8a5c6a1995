/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of the passes.
 *
 * The hash is taken first: it names the trace, so that a later trace of the
 * same step finds the plan without running a pass.  Duplicates go before dead
 * nodes, which they make; both before outputs and state, which put in copies
 * only for readers that are still there; fusion sees the order that state
 * demands; the memory plan sees the final order.
 */
#include "libtrn/graph/graph_pass.h"

trn_status trn__graph_prepare(trn_graph *g)
{
    g->work = 0;
    g->hash = trn__graph_hash(g);
    trn__graph_layout(g);
    TRN_TRY(trn__graph_cse(g));
    TRN_TRY(trn__graph_dead(g));
    TRN_TRY(trn__graph_fold(g));
    TRN_TRY(trn__graph_dead(g));
    TRN_TRY(trn__graph_outputs(g));
    TRN_TRY(trn__graph_state(g));
    TRN_TRY(trn__graph_dead(g));
    TRN_TRY(trn__graph_fuse(g));
    return trn__graph_plan(g);
}
