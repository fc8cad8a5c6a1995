/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowering a graph: inputs become parameters, each node its instructions,
 * outputs the root.
 */
#include <stdio.h>
#include <string.h>

#include "backends/hlo/hlo_lower.h"

static trn__hlo_lower_fn *const lower_of[TRN_OP_LIMIT] = {
#define PRIM(name) trn__hlo_lower_##name
#define COMP(name) NULL
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    [id] = kind(nm),
#include "trn/ops.def"
#undef PRIM
#undef COMP
};

uint32_t trn__hlo_type_of(uint32_t dtype)
{
    static const uint32_t types[] = {
        [TRN_F64] = TRN__HLO_F64,   [TRN_F32] = TRN__HLO_F32,
        [TRN_BF16] = TRN__HLO_BF16, [TRN_F16] = TRN__HLO_F16,
        [TRN_I64] = TRN__HLO_S64,   [TRN_I32] = TRN__HLO_S32,
        [TRN_U32] = TRN__HLO_U32,   [TRN_U8] = TRN__HLO_U8,
        [TRN_BOOL] = TRN__HLO_PRED,
    };
    return dtype < sizeof types / sizeof types[0] ? types[dtype] : 0;
}

uint32_t trn__hlo_compute_type(uint32_t dtype)
{
    return dtype == TRN_BF16 || dtype == TRN_F16 ? (uint32_t)TRN__HLO_F32
                                                 : trn__hlo_type_of(dtype);
}

int64_t trn__hlo_arg_numel(const trn_arg *arg)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < arg->rank; d++)
        n *= arg->shape[d];
    return n;
}

trn_arg trn__hlo_value_arg(const trn__hlo_lowering *l, int32_t value)
{
    trn_graph_value v = {.size = (uint32_t)sizeof v};
    l->host->graph_value(l->graph, value, &v);
    return v.arg;
}

int32_t trn__hlo_in(const trn__hlo_lowering *l, int k)
{
    return l->value[l->node.in[k]];
}

trn_arg trn__hlo_in_arg(const trn__hlo_lowering *l, int k)
{
    return trn__hlo_value_arg(l, l->node.in[k]);
}

trn_arg trn__hlo_out_arg(const trn__hlo_lowering *l)
{
    return trn__hlo_value_arg(l, l->node.out[0]);
}

trn__hlo_shape trn__hlo_out_shape(const trn__hlo_lowering *l)
{
    const trn_arg y = trn__hlo_out_arg(l);
    return trn__hlo_array(trn__hlo_type_of(y.dtype), y.rank, y.shape);
}

int32_t trn__hlo_up(trn__hlo_lowering *l, int k)
{
    const trn_arg x = trn__hlo_in_arg(l, k);
    return trn__hlo_convert(&l->m, trn__hlo_compute_type(x.dtype),
                            trn__hlo_in(l, k));
}

int32_t trn__hlo_down(trn__hlo_lowering *l, int32_t x)
{
    return trn__hlo_convert(&l->m, trn__hlo_type_of(trn__hlo_out_arg(l).dtype),
                            x);
}

int32_t trn__hlo_zeros(trn__hlo_lowering *l)
{
    const trn__hlo_shape s = trn__hlo_out_shape(l);
    return trn__hlo_splat(&l->m, trn__hlo_number(&l->m, s.type, 0.0), &s);
}

void *trn__hlo_grow(trn__hlo_lowering *l, void *list, int32_t used,
                    int32_t *room, size_t size)
{
    if (used < *room)
        return list;
    const int32_t want = 2 * *room + 8;
    void *bigger = l->host->alloc(l->host->host, (size_t)want * size);
    if (bigger == NULL) {
        trn__hlo_fail(&l->m, TRN_ERR_NOMEM, "hlo: no memory for the module");
        return list;
    }
    if (used > 0)
        memcpy(bigger, list, (size_t)used * size);
    l->host->dealloc(l->host->host, list);
    *room = want;
    return bigger;
}

int32_t trn__hlo_new_param(trn__hlo_lowering *l, uint32_t source, int32_t index,
                           uint32_t dtype, uint32_t rank, const int64_t *shape)
{
    trn__hlo_program *p = l->program;
    const trn__hlo_shape s =
        trn__hlo_array(trn__hlo_type_of(dtype), rank, shape);
    p->params = trn__hlo_grow(l, p->params, p->n_params, &l->room_params,
                              sizeof *p->params);
    const int32_t inst = trn__hlo_parameter(&l->m, &s);
    if (inst < 0)
        return -1;
    trn__hlo_param *param = &p->params[p->n_params++];
    memset(param, 0, sizeof *param);
    param->source = source;
    param->dtype = dtype;
    param->rank = rank;
    memcpy(param->shape, s.dims, rank * sizeof s.dims[0]);
    param->bytes = (uint64_t)trn__hlo_numel(&s) * trn__hlo_type_bytes(s.type);
    param->index = index;
    param->alias = -1;
    return inst;
}

/* What the profile cannot have; no tensor of such a type should have come so
 * far, and one that is too large can be made of small ones. */
static bool takes(trn__hlo_lowering *l, const trn_arg *arg)
{
    const trn__hlo_profile *p = l->profile;
    const char *type = trn__hlo_type_text(trn__hlo_type_of(arg->dtype));
    char message[160];
    if (!(TRN_DTYPE_BIT(arg->dtype) & p->stores))
        snprintf(message, sizeof message,
                 "hlo: a tensor of the step is %s, which profile %s does not "
                 "store",
                 type, p->name);
    else if (trn__hlo_arg_numel(arg) > p->max_size)
        snprintf(message, sizeof message,
                 "hlo: a tensor of the step has %lld elements; profile %s "
                 "takes up to %lld",
                 (long long)trn__hlo_arg_numel(arg), p->name,
                 (long long)p->max_size);
    else
        return true;
    trn__hlo_fail(&l->m, TRN_ERR_UNSUPPORTED, message);
    return false;
}

static void lower_inputs(trn__hlo_lowering *l)
{
    for (int32_t i = 0; i < l->info.n_inputs; i++) {
        const int32_t v = l->host->graph_input(l->graph, i);
        const trn_arg arg = trn__hlo_value_arg(l, v);
        if (!takes(l, &arg))
            return;
        const bool empty = trn__hlo_arg_numel(&arg) == 0;
        l->param_of[i] = empty ? -1 : l->program->n_params;
        l->value[v] = empty
                          ? TRN__HLO_EMPTY
                          : trn__hlo_new_param(l, TRN__HLO_INPUT, i, arg.dtype,
                                               arg.rank, arg.shape);
    }
}

/* Indices are checked even where there is nothing to compute. */
static void check_only(trn__hlo_lowering *l)
{
    const trn_scatter_attrs *scatter = l->node.attrs;
    const trn_embedding_grad_attrs *rows = l->node.attrs;
    switch (l->node.op) {
    case TRN_OP_embedding:
        trn__hlo_check_index(l, trn__hlo_in(l, 1),
                             trn__hlo_in_arg(l, 0).shape[0]);
        break;
    case TRN_OP_embedding_grad:
        trn__hlo_check_index(l, trn__hlo_in(l, 1), rows->n_rows);
        break;
    case TRN_OP_scatter_add:
        trn__hlo_check_index(l, trn__hlo_in(l, 1), scatter->size);
        break;
    default:
        break;
    }
}

static int32_t lower_node(trn__hlo_lowering *l)
{
    trn__hlo_lower_fn *fn =
        l->node.op < TRN_OP_LIMIT ? lower_of[l->node.op] : NULL;
    const trn_arg y = trn__hlo_out_arg(l);
    if (fn == NULL || l->node.on_host)
        return trn__hlo_fail(&l->m, TRN_ERR_UNSUPPORTED,
                             "hlo: a node that has no lowering");
    if (!takes(l, &y))
        return -1;
    if (trn__hlo_arg_numel(&y) > 0)
        return fn(l);
    check_only(l);
    return TRN__HLO_EMPTY;
}

static void lower_nodes(trn__hlo_lowering *l)
{
    for (int32_t i = 0; i < l->info.n_nodes && l->m.status == TRN_OK; i++) {
        const int32_t first = l->m.n_insts;
        l->node = (trn_graph_node){.size = (uint32_t)sizeof l->node};
        l->host->graph_node(l->graph, i, &l->node);
        l->node_number = i;
        l->value[l->node.out[0]] = trn__hlo_new_state(l, lower_node(l));
        for (int32_t k = first; k < l->m.n_insts; k++)
            l->m.insts[k].node = i;
    }
}

void *trn__hlo_cleared(trn__hlo_lowering *l, size_t bytes)
{
    void *memory = l->host->alloc(l->host->host, bytes);
    if (memory == NULL)
        trn__hlo_fail(&l->m, TRN_ERR_NOMEM, "hlo: no memory for the module");
    else
        memset(memory, 0, bytes);
    return memory;
}

/* ---- the whole ---- */

static void begin(trn__hlo_lowering *l)
{
    l->draws = l->vector = l->good = -1;
    l->info = (trn_graph_info){.size = (uint32_t)sizeof l->info};
    l->program = trn__hlo_cleared(l, sizeof *l->program);
    l->detail = trn__hlo_cleared(l, sizeof *l->detail);
    if (!l->host->graph_info(l->graph, &l->info))
        trn__hlo_fail(&l->m, TRN_ERR_INTERNAL, "hlo: not a graph");
    const size_t n_values = (size_t)l->info.n_values + 1;
    l->value = trn__hlo_cleared(l, n_values * sizeof *l->value);
    l->param_of = trn__hlo_cleared(l, ((size_t)l->info.n_inputs + 1) *
                                          sizeof *l->param_of);
    l->replaces = trn__hlo_cleared(l, n_values * sizeof *l->replaces);
    l->guarded = trn__hlo_cleared(l, n_values * sizeof *l->guarded);
    if (l->m.status != TRN_OK)
        return;
    l->program->detail = l->detail;
    l->program->check = -1;
    l->detail->wide = (l->profile->types >> TRN__HLO_S64) & 1u;
    for (int i = 0; i < TRN__HLO_N_VECTORS; i++)
        l->detail->vectors[i].inst = l->detail->vectors[i].param = -1;
    l->program->results = trn__hlo_cleared(l, ((size_t)l->info.n_outputs + 1) *
                                                  sizeof *l->program->results);
}

/* A second opinion, before anybody else sees the module. */
static void verify(trn__hlo_lowering *l)
{
    char why[200], message[256];
    if (l->m.status != TRN_OK)
        return;
    if (!trn__hlo_verify(&l->m, l->profile, why, sizeof why)) {
        snprintf(message, sizeof message, "hlo: %s", why);
        trn__hlo_fail(&l->m, TRN_ERR_INTERNAL, message);
    }
}

static void lower_all(trn__hlo_lowering *l)
{
    trn__hlo_module_init(&l->m, l->host);
    begin(l);
    int32_t *roots =
        trn__hlo_cleared(l, ((size_t)l->info.n_outputs + 1) * sizeof *roots);
    if (l->m.status == TRN_OK) {
        lower_inputs(l);
        trn__hlo_find_states(l);
        lower_nodes(l);
    }
    if (l->m.status == TRN_OK)
        trn__hlo_lower_outputs(l, roots);
    l->host->dealloc(l->host->host, roots);
    if (l->m.status == TRN_OK) {
        trn__hlo_prune(l);
        trn__hlo_find_plain_products(l);
    }
    verify(l);
}

/* Frees the lowering and leaves its error with the host; gives its status. */
static int32_t finish(trn__hlo_lowering *l)
{
    int32_t status = l->m.status;
    if (status != TRN_OK)
        status = l->host->fail(l->host->host, status, l->m.message);
    trn__hlo_module_free(&l->m);
    l->host->dealloc(l->host->host, l->value);
    l->host->dealloc(l->host->host, l->param_of);
    l->host->dealloc(l->host->host, l->replaces);
    l->host->dealloc(l->host->host, l->guarded);
    return status;
}

void trn__hlo_free(const trn_host_services *host, trn__hlo_program *p)
{
    if (p == NULL)
        return;
    struct trn__hlo_detail *d = p->detail;
    for (int i = 0; d != NULL && i < TRN__HLO_N_VECTORS; i++)
        host->dealloc(host->host, d->vectors[i].list);
    if (d != NULL) {
        host->dealloc(host->host, d->checks);
        host->dealloc(host->host, d->randoms);
    }
    host->dealloc(host->host, d);
    host->dealloc(host->host, p->bytes);
    host->dealloc(host->host, p->params);
    host->dealloc(host->host, p->results);
    host->dealloc(host->host, p);
}

/* Frees what a failed lowering has made, complete or not. */
static void drop(trn__hlo_lowering *l)
{
    if (l->program != NULL && l->program->detail == NULL)
        l->program->detail = l->detail;
    else if (l->program == NULL)
        l->host->dealloc(l->host->host, l->detail);
    trn__hlo_free(l->host, l->program);
}

int32_t trn__hlo_lower(const trn_host_services *host, const trn_graph *graph,
                       const trn__hlo_profile *profile, trn__hlo_program **out)
{
    trn__hlo_lowering l = {.host = host, .graph = graph, .profile = profile};
    *out = NULL;
    lower_all(&l);
    if (l.m.status == TRN_OK) {
        l.program->bytes = trn__hlo_encode(&l.m, &l.program->n_bytes);
        if (l.program->bytes == NULL)
            trn__hlo_fail(&l.m, TRN_ERR_NOMEM, "hlo: no memory for the bytes");
    }
    const int32_t status = finish(&l);
    if (status == TRN_OK)
        *out = l.program;
    else
        drop(&l);
    return status;
}

int32_t trn__hlo_print(const trn_host_services *host, const trn_graph *graph,
                       const trn__hlo_profile *profile, trn__hlo_put put,
                       void *user)
{
    trn__hlo_lowering l = {.host = host, .graph = graph, .profile = profile};
    lower_all(&l);
    if (l.m.status == TRN_OK)
        trn__hlo_write_text(&l.m, put, user);
    const int32_t status = finish(&l);
    drop(&l);
    return status;
}
